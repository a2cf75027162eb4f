//! Somebody tries card after card: each hold has a few attempts, and what they leave is removed.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_payment::provider::TestCard;
use urr_payment::{FaultPoints, PaymentSettings, PaymentStatus};

use crate::api_client::{Answer, ApiClient};
use crate::contract;
use crate::fake_ticket_service::{FakePayable, Fault};
use crate::fixture::{World, settings};

const PROCESS: &str = "/api/payments/process";
const DAY: Duration = Duration::from_hours(24);

async fn decline(api: &ApiClient, held: &FakePayable) -> Answer {
    let body = json!({"paymentMethod": "decline", "reservationId": held.id});
    api.post(Some(held.user_id), PROCESS, &body).await
}

fn code((status, body): &Answer) -> (u16, &str) {
    (status.as_u16(), body["code"].as_str().unwrap_or_default())
}

async fn rows(world: &World) -> i64 {
    world.number("select count(*) as number from payments").await
}

contract! {
    /// An attack had 586 declines and 2,344 rows in 20 seconds.
    async fn after_five_declines_the_hold_is_given_up(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        for left in [4, 3, 2, 1] {
            let declined = decline(&api, &held).await;
            assert_eq!(code(&declined), (402, "PAYMENT_DECLINED"));
            assert_eq!(declined.1["attemptsLeft"], left, "{}", declined.1);
            assert_eq!(world.tickets.get(held.id).status, "pending", "the seats are kept");
        }
        let last = decline(&api, &held).await;
        assert_eq!(code(&last), (409, "TOO_MANY_DECLINES"), "{}", last.1);
        assert_eq!(last.1["providerCode"], "REJECT_CARD_PAYMENT");
        assert_eq!(world.tickets.get(held.id).status, "cancelled", "others can have the seats");
        for _ in 0..20 {
            assert_eq!(code(&decline(&api, &held).await), (409, "TOO_MANY_DECLINES"));
            let body = json!({"reservationId": held.id, "amount": 102_000});
            let prepared = api.post(Some(held.user_id), "/api/payments/prepare", &body).await;
            assert_eq!(code(&prepared), (409, "TOO_MANY_DECLINES"));
        }
        assert_eq!(rows(&world).await, 5);
        assert_eq!(world.number("select count(*) as number from provider_calls").await, 5);
        world.assert_whole().await;
        // Another hold, and another buyer, have attempts of their own.
        let fresh = world.hold();
        world.tickets.change(fresh.id, |fresh| fresh.user_id = held.user_id);
        let fresh = world.tickets.get(fresh.id);
        assert_eq!(code(&decline(&api, &fresh).await), (402, "PAYMENT_DECLINED"));
    }

    async fn the_control_without_the_limit_there_is_no_end(world: World) {
        let settings = PaymentSettings { declines_per_hold_max: u32::MAX, ..settings() };
        let payments = world.instance_with(FaultPoints::default(), settings);
        let (api, held) = (ApiClient::to(&payments, &world), world.hold());
        for _ in 0..12 {
            assert_eq!(code(&decline(&api, &held).await), (402, "PAYMENT_DECLINED"));
        }
        assert_eq!(rows(&world).await, 12);
        assert_eq!(world.tickets.get(held.id).status, "pending");
    }

    /// An order that was prepared before is refused as well, and charges nothing.
    async fn an_order_of_a_hold_that_was_given_up_is_not_charged(world: World) {
        let settings = PaymentSettings { declines_per_hold_max: 1, ..settings() };
        let payments = world.instance_with(FaultPoints::default(), settings);
        let (api, held) = (ApiClient::to(&payments, &world), world.hold());
        let order = world.order(&held).await;
        let key = world.approval(&order, TestCard::Approve).await.approval.payment_key;
        world.tickets.change(held.id, |held| held.fence = 8);
        assert_eq!(code(&decline(&api, &held).await), (409, "TOO_MANY_DECLINES"));
        let refused = api.confirm(held.user_id, &key, &order.order_id, 102_000).await;
        assert_eq!(code(&refused), (409, "TOO_MANY_DECLINES"));
        assert!(world.provider_books().await.is_empty());
    }

    async fn a_hold_is_given_up_also_if_the_ticket_service_is_away(world: World) {
        let settings = PaymentSettings { declines_per_hold_max: 1, ..settings() };
        let payments = world.instance_with(FaultPoints::default(), settings);
        let (api, held) = (ApiClient::to(&payments, &world), world.hold());
        world.tickets.fail("release", [Fault::Dies, Fault::Silent]);
        assert_eq!(code(&decline(&api, &held).await), (409, "TOO_MANY_DECLINES"));
        for _ in 0..4 {
            world.clock.advance(Duration::from_secs(10));
            payments.resolve_due().await.unwrap();
        }
        assert_eq!(world.tickets.get(held.id).status, "cancelled");
        world.assert_whole().await;
    }

    /// They have no hold to give up; they can be tried again after an hour.
    async fn a_membership_is_refused_for_an_hour(world: World) {
        let (api, membership) = (ApiClient::new(&world), world.membership(1));
        let pay = async |card: &str| {
            let body = json!({
                "paymentMethod": card, "paymentType": "membership", "referenceId": membership.id,
            });
            api.post(Some(membership.user_id), PROCESS, &body).await
        };
        for _ in 0..5 {
            pay("decline").await;
        }
        assert_eq!(code(&pay("approve").await), (409, "TOO_MANY_DECLINES"));
        assert_eq!(world.tickets.calls("release"), 0);
        world.clock.advance(Duration::from_hours(1));
        let later = world.clock.now() + DAY;
        world.tickets.change(membership.id, |held| held.expires_at = later);
        assert_eq!(pay("approve").await.0, 200);
    }

    async fn double_clicks_leave_no_stray_order(world: World) {
        let apis = [
            ApiClient::new(&world),
            ApiClient::to(&world.instance(FaultPoints::default()), &world),
        ];
        let prepare = json!({"amount": 102_000});
        let process = json!({"paymentMethod": "approve"});
        let bodies = [("/api/payments/prepare", prepare), (PROCESS, process)];
        for round in 0..6 {
            let held = world.hold();
            let (path, body) = &bodies[round % 2];
            let mut body: Value = body.clone();
            body["reservationId"] = json!(held.id);
            let clicks = (0..10).map(|number| apis[number % 2].post(Some(held.user_id), path, &body));
            for answer in join_all(clicks).await {
                assert!([200, 202].contains(&answer.0.as_u16()), "{path}: {}", answer.1);
            }
            let orders = world.payments.list_by_payable(held.id).await.unwrap();
            assert_eq!(orders.len(), 1, "{path}: {orders:?}");
        }
        world.settle().await;
        world.assert_whole().await;
    }

    async fn what_failed_or_was_never_confirmed_is_removed_after_a_while(world: World) {
        let (_, failed) = world.pay(TestCard::Decline).await;
        let (_, paid) = world.pay(TestCard::Approve).await;
        let (_, reversed) = world.pay(TestCard::WrongAmount).await;
        let pending = world.order(&world.hold()).await;
        world.settle().await;
        let exists = async |id| world.payments.find(id).await.unwrap().is_some();
        world.clock.advance(7 * DAY - Duration::from_secs(301));
        world.payments.delete_old_rows().await.unwrap();
        assert!(exists(pending.id).await && exists(failed.id).await, "the control");
        world.clock.advance(Duration::from_secs(600));
        world.payments.delete_old_rows().await.unwrap();
        assert!(!exists(pending.id).await && exists(failed.id).await);
        world.clock.advance(23 * DAY);
        world.payments.delete_old_rows().await.unwrap();
        assert!(!exists(failed.id).await);
        for (payment, status) in
            [(paid, PaymentStatus::Confirmed), (reversed, PaymentStatus::Refunded)]
        {
            assert_eq!(world.find(payment.id).await.status, status, "money is never forgotten");
        }
        let left = "select count(*) as number from provider_calls as c \
                    where not exists (select 1 from payments as p where p.id = c.payment_id)";
        assert_eq!(world.number(left).await, 0);
        let commands = "select count(distinct order_id) as number from payment_idempotency";
        assert_eq!(world.number(commands).await, 2);
        assert_eq!(world.number("select count(*) as number from sandbox_payments").await, 2);
        world.assert_whole().await;
    }

    /// Somebody else's failures count against nobody.
    async fn declines_of_one_buyer_leave_a_transfer_to_others(world: World) {
        let (ticket, _) = world.pay(TestCard::Approve).await;
        let listing = world.listing(&ticket);
        let api = ApiClient::new(&world);
        let pay = async |user: Uuid, card: &str| {
            let body = json!({
                "paymentMethod": card, "paymentType": "transfer", "referenceId": listing.id,
            });
            api.post(Some(user), PROCESS, &body).await
        };
        let (thief, buyer) = (world.ids.next_id(), world.ids.next_id());
        for _ in 0..5 {
            pay(thief, "decline").await;
        }
        assert_eq!(code(&pay(thief, "approve").await), (409, "TOO_MANY_DECLINES"));
        assert_eq!(pay(buyer, "approve").await.0, 200);
        world.settle().await;
        world.assert_whole().await;
    }
}
