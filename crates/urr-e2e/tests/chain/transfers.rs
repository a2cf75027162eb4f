//! A ticket changes hands: the buyer pays, the seller gets back what they had paid, and from then on
//! only the buyer's payment is the ticket's.

use axum::http::Method;
use serde_json::{Value, json};
use urr_e2e::TestApp;
use urr_kernel::{DomainEvent, Uuid};
use urr_test::eventually;

use crate::fixture::{FAR, Shop, VIP, created, order_of, text};
use crate::on_both_deployments;

/// Without an artist ten per cent.
const FEE: i64 = VIP / 10;

async fn list(shop: &Shop<'_>, seller: Uuid, reservation_id: &str) -> Value {
    let body = Some(json!({"reservationId": reservation_id}));
    created(shop.send(seller, Method::POST, "/api/transfers", body).await)["transfer"].take()
}

async fn pay(shop: &Shop<'_>, buyer: Uuid, transfer: &Value) -> urr_e2e::TestResponse {
    let body = json!({
        "paymentType": "transfer", "referenceId": transfer["id"], "paymentMethod": "approve",
    });
    shop.send(buyer, Method::POST, "/api/payments/process", Some(body)).await
}

on_both_deployments! {
    /// M-8, M-11, K-1, K-5, P9, P12.
    async fn m_8_a_ticket_that_was_sold_on_is_its_buyers_and_its_sellers_money_is_back(
        app: TestApp
    ) {
        let shop = Shop::open(&app, FAR).await;
        let (held, sold) = shop.buy(&[0]).await;
        let transfer = list(&shop, held.user_id, &held.id).await;
        assert_eq!(transfer["totalPrice"], VIP + FEE, "{transfer}");
        // What is listed is not given back.
        let cancelled = shop.cancel(&held).await;
        assert_eq!(cancelled.status, 409, "{cancelled:?}");

        let (buyer, rival) = (app.ids.next_id(), app.ids.next_id());
        let (first, second) =
            tokio::join!(pay(&shop, buyer, &transfer), pay(&shop, rival, &transfer));
        let (buyer, paid) = match (first.status.as_u16(), second.status.as_u16()) {
            (200, 409 | 404) => (buyer, first),
            (409 | 404, 200) => (rival, second),
            _ => panic!("one of two buys it: {first:?} {second:?}"),
        };
        let bought = order_of(&paid.json()["payment"]);
        shop.settle().await;

        eventually("the buyer is told", async || {
            let mails = app.get("/api/admin/mails?kind=purchase").as_admin().send().await.json();
            let mut mails = mails["mails"].as_array()?.iter();
            mails.any(|mail| mail["userId"] == json!(buyer)).then_some(())
        })
        .await;

        // The seller has their money and nothing else, whatever they try.
        let of_seller = shop.order(&held, &sold).await;
        assert_eq!((&of_seller["status"], &of_seller["refundedAmount"]),
            (&json!("refunded"), &json!(VIP)), "{of_seller}");
        let path = format!("/api/payments/{}/cancel", sold.payment_key);
        let again = shop.send(held.user_id, Method::POST, &path, Some(json!({}))).await;
        assert_eq!(again.status, 409, "{again:?}");
        assert_eq!(shop.cancel(&held).await.status, 404);
        // The buyer has the ticket, and gets back what they paid.
        let path = format!("/api/reservations/{}", held.id);
        let theirs = shop.send(buyer, Method::GET, &path, None).await.json();
        assert_eq!(theirs["reservation"]["status"], "confirmed", "{theirs}");
        let qr = text(&theirs["reservation"]["tickets"][0]["qr"]);
        assert!(qr.starts_with("URR1."), "{qr}");
        let path = format!("/api/reservations/{}/cancel", held.id);
        let cancelled = shop.send(buyer, Method::POST, &path, None).await;
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
        shop.settle().await;
        let path = format!("/api/payments/order/{}", bought.id);
        let order = shop.send(buyer, Method::GET, &path, None).await.json()["payment"].take();
        assert_eq!(order["status"], "refunded", "{order}");
        assert_eq!(order["paymentType"], "transfer");

        let events = app.bus().scan("transfer-events").await.unwrap();
        let events = events.iter().map(|delivery| DomainEvent::from_bytes(&delivery.body).unwrap());
        let completed: Vec<DomainEvent> =
            events.filter(|event| event.event_type == "TRANSFER_COMPLETED").collect();
        assert_eq!(completed.len(), 1, "{completed:?}");
        let data = &completed[0].data;
        assert_eq!(data["sellerPaymentId"], json!(sold.payment_id), "{data}");
        assert_eq!((&data["sellerPayout"], &data["totalPrice"]), (&json!(VIP), &json!(VIP + FEE)));
        app.stop().await;
    }
}
