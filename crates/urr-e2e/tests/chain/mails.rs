//! Mails of purchases, cancellations and refunds, in the language of the user.

use axum::http::Method;
use serde_json::{Value, json};
use urr_e2e::TestApp;
use urr_kernel::Uuid;
use urr_payment::provider::TestCard;
use urr_test::eventually;

use crate::fixture::{FAR, HeldSeats, Shop, created, text};
use crate::on_both_deployments;

/// Somebody with an account, in English.
async fn register(app: &TestApp) -> Uuid {
    let opened = created(app.register("mina@example.com", "강변의 밤을 걷다").await);
    let user_id: Uuid = text(&opened["user"]["id"]).parse().unwrap();
    app.verify_email().await;
    let body = json!({"name": "김민아", "language": "en"});
    let call = app.request(Method::PUT, "/api/auth/me");
    let changed = call.as_person(user_id, urr_service::UserRole::User).json(&body).send().await;
    assert_eq!(changed.json()["user"]["language"], "en");
    user_id
}

/// The mails to a user by kind, once the mail of this kind was sent.
async fn told(shop: &Shop<'_>, user_id: Uuid, kind: &str) -> Value {
    eventually(&format!("the mail about a {kind} is sent"), async || {
        let path = format!("/api/admin/mails?kind={kind}&status=sent");
        let mails = shop.app.get(&path).as_admin().send().await.json();
        let mails = mails["mails"].as_array().unwrap().clone();
        let mail = mails.iter().find(|mail| mail["userId"] == json!(user_id))?;
        let path = format!("/api/admin/mails/{}", text(&mail["id"]));
        Some(shop.app.get(&path).as_admin().send().await.json()["mail"].take())
    })
    .await
}

on_both_deployments! {
    async fn a_buyer_is_told_of_the_purchase_the_cancellation_and_the_refund(app: TestApp) {
        let shop = Shop::open(&app, FAR).await;
        let user_id = register(&app).await;
        let entry = app.admit(user_id, shop.event_id).await;
        let body = json!({"eventId": shop.event_id, "seatIds": [0, 1]});
        let call = app.post("/api/seats/reserve").as_admitted(user_id, &entry);
        let held = created(call.json(&body).send().await)["reservation"].take();
        let (id, amount) = (text(&held["id"]), held["totalAmount"].as_i64().unwrap());
        let held = HeldSeats { user_id, entry, id, amount };
        assert_eq!(shop.pay(&held, TestCard::Approve).await.status, 200);

        let purchase = told(&shop, user_id, "purchase").await;
        assert_eq!(purchase["address"], "m***@example.com");
        assert_eq!(purchase["subject"], "Your booking is confirmed: 한강의 밤");
        let words = text(&purchase["text"]);
        for known in ["Amount paid: KRW 300,000", "Payment method: Card", "Tickets: 2", &held.id] {
            assert!(words.contains(known), "{known}: {words}");
        }
        assert!(words.contains("Seats: "), "{words}");
        assert!(words.contains("Thu, 24 December 2026, 19:00 (Korean time, UTC+9)"), "{words}");

        assert_eq!(shop.cancel(&held).await.status, 200);
        let cancellation = text(&told(&shop, user_id, "cancellation").await["text"]);
        for known in ["Refund: KRW 300,000", "Cancellation fee: KRW 0", "At your request"] {
            assert!(cancellation.contains(known), "{known}: {cancellation}");
        }
        let refund = text(&told(&shop, user_id, "refund").await["text"]);
        for known in ["Refund: KRW 300,000", "To: Card", "Event: 한강의 밤"] {
            assert!(refund.contains(known), "{known}: {refund}");
        }
        let mine = shop.send(user_id, Method::GET, "/api/notifications", None).await.json();
        assert_eq!(mine["pagination"]["total"], 3, "{mine}");
        // Without an account there is no mail, and nobody gets the mail of another user.
        let (stranger, _) = shop.buy(&[5]).await;
        shop.settle().await;
        eventually("the mail to nobody is dropped", async || {
            let path = "/api/admin/mails?status=dropped";
            let dropped = app.get(path).as_admin().send().await.json();
            let mut mails = dropped["mails"].as_array()?.iter();
            mails.any(|mail| mail["lastError"] == "NO_ACCOUNT").then_some(())
        })
        .await;
        let mine = shop.send(user_id, Method::GET, "/api/notifications", None).await.json();
        assert_eq!(mine["pagination"]["total"], 3, "{stranger:?} {mine}");
        app.stop().await;
    }

    /// Through the whole system: a grade is sold out, somebody cancels, and who asked is told.
    async fn a_fan_who_asked_is_told_of_returned_seats(app: TestApp) {
        let shop = Shop::open(&app, FAR).await;
        let fan = register(&app).await;
        let path = format!("/api/tickets/event/{}", shop.event_id);
        let grades = app.get(&path).send().await.json()["grades"].take();
        let (grade, total) = (text(&grades[0]["grade"]), grades[0]["total"].as_u64().unwrap());
        let seats: Vec<u32> = (0..u32::try_from(total).unwrap()).collect();
        let (paid, _) = shop.buy(&seats[..4]).await;
        for some in seats[4..].chunks(4) {
            shop.hold(some).await;
        }
        let path = format!("/api/alerts/events/{}/seats", shop.event_id);
        let wish = json!({"grade": grade, "quantity": 2});
        let asked = shop.send(fan, Method::PUT, &path, Some(wish)).await;
        assert_eq!((asked.status.as_u16(), &asked.json()["status"]), (200, &json!("waiting")));
        assert_eq!(shop.cancel(&paid).await.status, 200);
        let mail = told(&shop, fan, "seat_alert").await;
        let words = text(&mail["text"]);
        assert!(words.contains("You asked for: 2") && words.contains(&grade), "{words}");
        app.stop().await;
    }
}
