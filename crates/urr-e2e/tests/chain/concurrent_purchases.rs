//! Concurrent purchases through the gateway.

use futures_util::future::join_all;
use serde_json::json;
use urr_e2e::TestApp;
use urr_payment::provider::TestCard;

use crate::fixture::{FAR, Shop, VIP};
use crate::on_both_deployments;

const AT_ONCE: usize = 100;

async fn assert_bought_once(shop: &Shop<'_>) {
    shop.settle().await;
    let overview = shop.statistics("overview").await;
    assert_eq!(overview["completedPayments"], 1, "{overview}");
    assert_eq!(overview["totalRevenue"], VIP);
    let (reserved, paid) = (
        shop.app.service_tables().reservations().await,
        shop.app.service_tables().payments().await,
    );
    let tickets: i64 = reserved.values().map(|one| one.valid_tickets).sum();
    let charged: i64 = paid.values().map(|one| one.theirs.0).sum();
    assert_eq!((tickets, charged), (1, VIP), "{paid:#?}");
}

on_both_deployments! {
    /// M-11: one charge, one ticket, and the same answer for every request.
    async fn m_11_a_hundred_confirms_of_one_order_at_once_are_one_charge_and_one_ticket(
        app: TestApp
    ) {
        let shop = Shop::open(&app, FAR).await;
        let held = shop.hold(&[0]).await;
        let order = shop.prepare(&held, TestCard::Approve).await;
        for answer in join_all((0..AT_ONCE).map(|_| shop.confirm(held.user_id, &order))).await {
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.json()["success"], true);
        }
        // Somebody else's confirmation, or that of another amount, is none.
        let foreign = shop.confirm(app.ids.next_id(), &order).await;
        assert_eq!(foreign.refusal(), (404, "PAYMENT_NOT_FOUND".into()));
        assert_bought_once(&shop).await;
        app.stop().await;
    }

    /// M-11: the same with a key per click.
    async fn m_11_a_hundred_payments_of_one_hold_at_once_are_one_charge_and_one_ticket(
        app: TestApp
    ) {
        let shop = Shop::open(&app, FAR).await;
        let held = shop.hold(&[0]).await;
        let pay = async || {
            let body = json!({"reservationId": held.id, "paymentMethod": "approve"});
            let call = app.post("/api/payments/process");
            let call = call.as_person(held.user_id, urr_service::UserRole::User);
            let key = app.ids.next_id().to_string();
            call.header("idempotency-key", &key).json(&body).send().await
        };
        let answers = join_all((0..AT_ONCE).map(|_| pay())).await;
        let paid = answers.iter().filter(|answer| answer.status == 200).count();
        let refused = answers.iter().filter(|answer| answer.status == 409).count();
        let pending = answers.iter().filter(|answer| answer.status == 202).count();
        assert!(paid >= 1 && paid + refused + pending == AT_ONCE, "{answers:#?}");
        assert_bought_once(&shop).await;
        app.stop().await;
    }
}
