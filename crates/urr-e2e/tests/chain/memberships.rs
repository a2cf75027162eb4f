//! Fans: a membership is paid for, tickets bring points, and what is given back takes them along.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_e2e::TestApp;
use urr_kernel::{DomainEvent, Uuid};
use urr_test::eventually;

use crate::fixture::{FAR, Shop, VIP, created, order_of, text};
use crate::on_both_deployments;

const YEAR_PRICE: i64 = 30_000;

/// An artist that the ticket service knows, and a member.
pub async fn join(app: &TestApp, shop: &Shop<'_>, user_id: Uuid, artist_id: Uuid) -> Value {
    let subscribe = async || {
        let body = Some(json!({"artistId": artist_id}));
        shop.send(user_id, Method::POST, "/api/memberships/subscribe", body).await
    };
    let membership = eventually("the ticket office has heard of the artist", async || {
        app.clock.advance(Duration::from_secs(1));
        let answer = subscribe().await;
        (answer.status == 201).then(|| answer.json())
    })
    .await;
    assert_eq!(membership["price"], YEAR_PRICE, "{membership}");
    let body = json!({
        "paymentType": "membership", "referenceId": membership["membershipId"],
        "paymentMethod": "approve",
    });
    let paid = shop.send(user_id, Method::POST, "/api/payments/process", Some(body)).await;
    assert_eq!(paid.status, 200, "{paid:?}");
    assert_eq!(subscribe().await.refusal(), (409, "ALREADY_MEMBER".into()));
    paid.json()["payment"].take()
}

pub async fn mine(shop: &Shop<'_>, user_id: Uuid, artist_id: Uuid) -> (String, i64) {
    let path = format!("/api/memberships/my/{artist_id}");
    let mine = shop.send(user_id, Method::GET, &path, None).await.json();
    let membership = &mine["membership"];
    // Those of a purchase do not count yet.
    let points = ["points", "pendingPoints"].map(|name| membership[name].as_i64().unwrap());
    (text(&membership["effectiveTier"]), points.iter().sum())
}

pub async fn new_artist(app: &TestApp) -> Uuid {
    let body = json!({"name": format!("한강 밴드 {}", app.ids.next_id())});
    let artist = created(app.post("/api/admin/artists").as_admin().json(&body).send().await);
    text(&artist["artist"]["id"]).parse().unwrap()
}

on_both_deployments! {
    /// M-18, R-9: points are given once, by the call and the event that both tell of a payment, and
    /// taken back with what they were given for.
    async fn m_18_r_9_points_come_with_a_purchase_once_and_go_with_its_refund(app: TestApp) {
        let artist_id = new_artist(&app).await;
        let shop = Shop::open_of(&app, FAR, Some(artist_id)).await;
        let fan = app.ids.next_id();
        let payment = join(&app, &shop, fan, artist_id).await;
        assert_eq!(mine(&shop, fan, artist_id).await, ("silver".into(), 200));
        let (held, order) = shop.buy_as(fan, &[0]).await;
        assert_eq!(mine(&shop, fan, artist_id).await, ("silver".into(), 300));
        shop.settle().await;
        assert_eq!(mine(&shop, fan, artist_id).await, ("silver".into(), 300), "told twice");

        assert_eq!(shop.cancel(&held).await.status, 200);
        assert_eq!(shop.cancel(&held).await.status, 200);
        shop.settle().await;
        assert_eq!(shop.order(&held, &order).await["refundedAmount"], VIP);
        assert_eq!(mine(&shop, fan, artist_id).await, ("silver".into(), 200));

        // The administrator gives the year back: the membership ends, and so do its points (M-15).
        let path = format!("/api/admin/payments/{}/refund", order_of(&payment).payment_id);
        let refund = app.post(&path).as_admin().json(&json!({"reason": "탈퇴 요청"}));
        let refund = refund.send().await;
        assert_eq!(refund.status, 200, "{refund:?}");
        shop.settle().await;
        eventually("the membership has ended", async || {
            let mine = mine(&shop, fan, artist_id).await;
            (mine == ("bronze".to_owned(), 0)).then_some(())
        })
        .await;
        let told = |event: &DomainEvent| event.event_type == "MEMBERSHIP_ACTIVATED";
        let events = app.bus().scan("membership-events").await.unwrap();
        let events = events.iter().map(|delivery| DomainEvent::from_bytes(&delivery.body).unwrap());
        let activated: Vec<DomainEvent> = events.filter(told).collect();
        assert_eq!(activated.len(), 1, "{activated:?}");
        assert_eq!(activated[0].data["artistId"], json!(artist_id));
        assert_eq!(activated[0].data["paymentId"], payment["id"]);
        app.stop().await;
    }
}
