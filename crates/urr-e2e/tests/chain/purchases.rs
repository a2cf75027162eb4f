//! Purchase, cancellation, refund, cancelled event: after each step all services agree.

use axum::http::Method;
use serde_json::json;
use urr_e2e::TestApp;
use urr_payment::provider::TestCard;

use crate::fixture::{FAR, HeldSeats, NEAR, Order, R, Shop, VIP, order_of};
use crate::on_both_deployments;

/// Status and payment status of a reservation, valid tickets, status of the order, what went back.
async fn assert_state(
    shop: &Shop<'_>,
    (held, order): &(HeldSeats, Order),
    reservation: (&str, &str, usize),
    payment: (&str, i64),
) {
    let (status, payment_status, tickets, order, refunded) = shop.state(held, order).await;
    assert_eq!((status.as_str(), payment_status.as_str(), tickets), reservation, "{held:?}");
    assert_eq!((order.as_str(), refunded), payment, "{held:?}");
}

const BOUGHT: (&str, &str, usize) = ("confirmed", "paid", 1);
const REFUNDED: (&str, &str, usize) = ("cancelled", "refunded", 0);

on_both_deployments! {
    /// K-1, K-8, M-1, M-3, M-5.
    async fn k_1_k_8_m_1_a_seat_is_bought_cancelled_and_refunded_and_everybody_agrees(
        app: TestApp
    ) {
        let (far, near) = (Shop::open(&app, FAR).await, Shop::open(&app, NEAR).await);
        let by_process = far.buy(&[0]).await;
        let held = far.hold(&[1]).await;
        let order = far.prepare(&held, TestCard::Approve).await;
        let paid = far.confirm(held.user_id, &order).await;
        assert_eq!(paid.status, 200, "{paid:?}");
        let by_confirm = (held, order_of(&paid.json()["payment"]));
        let late = near.buy(&[100]).await;
        far.settle().await;
        for bought in [&by_process, &by_confirm] {
            assert_state(&far, bought, BOUGHT, ("confirmed", 0)).await;
        }
        let overview = far.statistics("overview").await;
        assert_eq!(overview["confirmedReservations"], 3);
        assert_eq!(overview["totalRevenue"], 2 * VIP + R);

        // Nothing is kept: it is early. And the same by the key of the payment.
        assert_eq!(far.cancel(&by_process.0).await.status, 200);
        let path = format!("/api/payments/{}/cancel", by_confirm.1.payment_key);
        let body = Some(json!({"cancelReason": "일정이 바뀜"}));
        let cancelled = far.send(by_confirm.0.user_id, Method::POST, &path, body).await;
        assert_eq!(cancelled.json()["refundAmount"], VIP, "{cancelled:?}");
        far.settle().await;
        for cancelled in [&by_process, &by_confirm] {
            assert_state(&far, cancelled, REFUNDED, ("refunded", VIP)).await;
        }
        // It is late: by the policy 30 per cent are kept. Asking again changes nothing.
        assert_eq!(near.cancel(&late.0).await.json()["reservation"]["refundAmount"], R * 7 / 10);
        assert_eq!(near.cancel(&late.0).await.status, 200);
        near.settle().await;
        assert_state(&near, &late, REFUNDED, ("refunded", R * 7 / 10)).await;
        let event = near.statistics(&format!("events/{}", near.event_id)).await;
        assert_eq!(event["overview"]["totalRevenue"], R * 3 / 10);
        assert_eq!(event["overview"]["cancelledReservations"], 1);
        assert_eq!(event["overview"]["soldSeats"], 0);
        let methods = near.statistics("payments").await;
        assert_eq!(methods[0]["refundAmount"], 2 * VIP + R * 7 / 10, "{methods}");
        let revenue = near.statistics("revenue").await;
        assert_eq!(revenue[0]["totalRevenue"], R * 3 / 10, "{revenue}");
        let daily = near.statistics("daily").await;
        assert_eq!((&daily[0]["confirmed"], &daily[0]["cancelled"]), (&json!(3), &json!(3)));
        let lost = near.statistics("cancellations").await;
        assert_eq!(lost["overview"]["totalRefundAmount"], 2 * VIP + R * 7 / 10, "{lost}");
        let funnel = near.statistics("conversion").await;
        assert_eq!(funnel["funnel"]["totalStarted"], 3, "{funnel}");
        app.stop().await;
    }

    /// A part goes back and the ticket stays; all goes back and it does not. What could not be paid
    /// leaves the hold as it was.
    async fn an_administrator_gives_money_back_and_a_declined_card_costs_nothing(app: TestApp) {
        let shop = Shop::open(&app, FAR).await;
        let (part, whole) = (shop.buy(&[0]).await, shop.buy(&[1]).await);
        let refund = async |order: &Order, body| {
            let path = format!("/api/admin/payments/{}/refund", order.payment_id);
            let call = app.post(&path).as_admin().header("idempotency-key", &order.id);
            call.json(&body).send().await
        };
        let body = json!({"amount": 5_000, "reason": "좌석 불편 보상"});
        for _ in 0..2 {
            let given = refund(&part.1, body.clone()).await;
            assert_eq!(given.status, 200, "{given:?}");
        }
        let given = refund(&whole.1, json!({"reason": "중복 예매"})).await;
        assert_eq!(given.status, 200, "{given:?}");
        let held = shop.hold(&[2]).await;
        let declined = shop.pay(&held, TestCard::Decline).await;
        assert_eq!(declined.refusal(), (402, "PAYMENT_DECLINED".into()));
        shop.settle().await;
        assert_state(&shop, &part, BOUGHT, ("confirmed", 5_000)).await;
        assert_state(&shop, &whole, REFUNDED, ("refunded", VIP)).await;
        assert_eq!(shop.reservation(&held).await["reservation"]["status"], "pending");
        // The same hold with another card.
        assert_eq!(shop.pay(&held, TestCard::Approve).await.status, 200);
        // Of what was given back before, no won goes back twice.
        assert_eq!(shop.cancel(&part.0).await.status, 200);
        shop.settle().await;
        assert_state(&shop, &part, REFUNDED, ("refunded", VIP)).await;
        let overview = shop.statistics("overview").await;
        assert_eq!(overview["totalRevenue"], VIP);
        app.stop().await;
    }

    /// M-9: the event is called off: who has paid gets everything, whatever the policy keeps; holds
    /// end; and who is paying at this moment gets it back as well.
    async fn m_9_when_an_event_is_cancelled_everybody_gets_everything_back(app: TestApp) {
        let shop = Shop::open(&app, NEAR).await;
        let bought = [shop.buy(&[0, 1]).await, shop.buy(&[100]).await, shop.buy(&[101]).await];
        let cards = [TestCard::ChargeThenFail, TestCard::Duplicate];
        let mut unclear = Vec::new();
        for (seat, card) in (10..).zip(cards) {
            let held = shop.hold(&[seat]).await;
            let paid = shop.pay(&held, card).await;
            assert_eq!(paid.status, 202, "{paid:?}");
            unclear.push((held, order_of(&paid.json()["payment"])));
        }
        let unpaid = shop.hold(&[20]).await;
        shop.call_off().await;
        let of_event = async || shop.statistics(&format!("events/{}", shop.event_id)).await;
        urr_test::eventually("everybody has been given back", async || {
            app.clock.advance(std::time::Duration::from_secs(2));
            let overview = of_event().await["overview"].take();
            (overview["cancelledReservations"] == 6).then_some(())
        })
        .await;
        shop.settle().await;
        for sold in bought.iter().chain(&unclear) {
            let amount = sold.0.amount;
            assert_state(&shop, sold, REFUNDED, ("refunded", amount)).await;
        }
        assert_eq!(shop.reservation(&unpaid).await["reservation"]["status"], "cancelled");
        let overview = of_event().await["overview"].take();
        assert_eq!((&overview["totalRevenue"], &overview["soldSeats"]), (&json!(0), &json!(0)));
        assert_eq!(overview["status"], "cancelled");
        app.stop().await;
    }
}
