//! The provider cannot be reached: nothing was sent, so the order stays open, and the same request
//! pays it when the provider is back.

use std::time::Duration;

use serde_json::json;
use urr_payment::provider::TestCard;
use urr_payment::{FaultPoints, PaymentStatus, SagaStep};

use crate::api_client::ApiClient;
use crate::contract;
use crate::fake_ticket_service::Fault;
use crate::fixture::Pause;

const PROCESS: &str = "/api/payments/process";

contract! {
    async fn the_same_confirm_pays_when_the_provider_is_back(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let order = world.order(&held).await;
        let key = world.approval(&order, TestCard::Approve).await.approval.payment_key;
        let confirm = || api.confirm(held.user_id, &key, &order.order_id, 102_000);
        world.sandbox.set_down(true);
        for _ in 0..3 {
            let (status, refused) = confirm().await;
            let expected = (503, &json!("PROVIDER_UNAVAILABLE"), &json!(5));
            assert_eq!((status.as_u16(), &refused["code"], &refused["retryAfter"]), expected);
            assert_eq!(refused["status"], "pending", "the order is open: {refused}");
            let payment = world.find(order.id).await;
            assert_eq!((payment.status, payment.step), (PaymentStatus::Pending, None));
            assert_eq!((payment.charge_sent_at, payment.last_charge_at), (None, None));
            assert_eq!(world.tickets.get(held.id).pinned_by, None, "the hold may end");
        }
        world.sandbox.set_down(false);
        for _ in 0..2 {
            let (status, paid) = confirm().await;
            assert_eq!((status.as_u16(), &paid["success"]), (200, &json!(true)), "{paid}");
        }
        assert_eq!(world.tickets.get(held.id).tickets, 1);
        let calls = "select count(*) as number from provider_calls where outcome = 'unsent'";
        assert_eq!(world.number(calls).await, 3);
        assert_eq!(world.provider_books().await.len(), 1, "it was charged once");
        world.assert_whole().await;
    }

    async fn the_same_test_card_pays_when_the_sandbox_is_back(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let body = json!({"paymentMethod": "approve", "reservationId": held.id});
        world.sandbox.set_down(true);
        let (status, answer) = api.post(Some(held.user_id), PROCESS, &body).await;
        assert_eq!((status.as_u16(), &answer["code"]), (503, &json!("PROVIDER_UNAVAILABLE")));
        world.sandbox.set_down(false);
        let (status, paid) = api.post(Some(held.user_id), PROCESS, &body).await;
        assert_eq!((status.as_u16(), &paid["payment"]["orderId"]), (200, &answer["orderId"]));
        assert_eq!(world.number("select count(*) as number from payments").await, 1);
        world.assert_whole().await;
    }

    /// Nobody waits for a provider with seats that others want.
    async fn an_open_order_whose_hold_has_ended_charges_nothing(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let order = world.order(&held).await;
        let key = world.approval(&order, TestCard::Approve).await.approval.payment_key;
        world.sandbox.set_down(true);
        let (status, _) = api.confirm(held.user_id, &key, &order.order_id, 102_000).await;
        assert_eq!(status, 503);
        world.sandbox.set_down(false);
        world.clock.advance(Duration::from_secs(300));
        let (status, over) = api.confirm(held.user_id, &key, &order.order_id, 102_000).await;
        assert_eq!((status.as_u16(), &over["code"]), (409, &json!("RESERVATION_EXPIRED")));
        assert!(world.provider_books().await.is_empty());
        world.assert_whole().await;
    }

    /// The ticket service is away as well: the pin is released later, and until then nothing begins.
    async fn an_open_order_begins_again_only_when_its_pin_is_released(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        world.sandbox.set_down(true);
        world.tickets.fail("unpin", [Fault::Silent; 2]);
        let payment = world.approve(&approval).await.unwrap();
        let unpinning = (PaymentStatus::Pending, Some(SagaStep::Unpin));
        assert_eq!((payment.status, payment.step), unpinning);
        world.sandbox.set_down(false);
        let payment = world.approve(&approval).await.unwrap();
        assert_eq!((payment.status, payment.step), unpinning, "it has not begun");
        world.settle_now().await;
        assert_eq!(world.tickets.get(held.id).pinned_by, None);
        assert_eq!(world.approve(&approval).await.unwrap().status, PaymentStatus::Confirmed);
        world.assert_whole().await;
    }

    /// Two processes get the same confirm while the provider comes back.
    async fn confirms_in_two_processes_while_the_provider_comes_back_charge_once(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        world.sandbox.set_down(true);
        let (faults, pause) = Pause::at("call confirm");
        let (slow, context) = (world.instance(faults), world.context());
        let first = approval.clone();
        let away = tokio::spawn(async move { slow.approve(first, &context).await.unwrap() });
        pause.reached().await;
        world.sandbox.set_down(false);
        let other = world.instance(FaultPoints::default());
        let during = other.approve(approval.clone(), &world.context()).await.unwrap();
        assert_eq!(during.status, PaymentStatus::Approving, "the first one is at it");
        pause.end();
        assert_eq!(away.await.unwrap().status, PaymentStatus::Pending);
        let paid = other.approve(approval, &world.context()).await.unwrap();
        assert_eq!(paid.status, PaymentStatus::Confirmed);
        assert_eq!(world.provider_books().await.len(), 1);
        world.assert_whole().await;
    }
}
