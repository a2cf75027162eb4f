//! Nobody knows whether the money was taken: it is found out, never assumed.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::ready;
use serde_json::json;
use urr_kernel::Won;
use urr_payment::provider::TestCard;
use urr_payment::{
    AdminRefundRequest, FaultMoment, FaultPoint, FaultPoints, PaymentStatus, RefundOrigin, SagaStep,
};
use urr_storage::{StorageError, params};

use crate::contract;
use crate::fixture::{PRICE, Pause, World};

contract! {
    async fn a_charge_whose_answer_was_lost_is_found_and_not_made_again(world: World) {
        for card in [TestCard::ChargeThenTimeOut, TestCard::ChargeThenFail, TestCard::Duplicate] {
            let (held, payment) = world.pay(card).await;
            assert_eq!(payment.status, PaymentStatus::Unknown, "{card:?}");
            assert_eq!(payment.step, Some(SagaStep::Query), "{card:?}");
            assert_eq!(held.pinned_by, Some(payment.id.0), "the seat waits for the truth");
            world.settle().await;
            assert_eq!(world.find(payment.id).await.status, PaymentStatus::Confirmed, "{card:?}");
            assert_eq!(world.tickets.get(held.id).tickets, 1);
        }
        assert_eq!(world.provider_books().await.len(), 3);
        world.assert_whole().await;
    }

    async fn a_charge_that_never_arrived_is_made_again_by_the_same_key(world: World) {
        let (held, payment) = world.pay(TestCard::Stumble).await;
        assert_eq!(payment.status, PaymentStatus::Unknown);
        world.settle().await;
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Confirmed);
        assert_eq!(world.tickets.get(held.id).tickets, 1);
        world.assert_whole().await;
    }

    async fn a_charge_that_never_comes_about_fails_after_several_looks(world: World) {
        for card in [TestCard::TimeOut, TestCard::UnknownCode] {
            let (held, payment) = world.pay(card).await;
            assert_eq!(payment.status, PaymentStatus::Unknown, "{card:?}");
            world.settle().await;
            assert_eq!(world.find(payment.id).await.status, PaymentStatus::Failed, "{card:?}");
            assert_eq!(world.tickets.get(held.id).pinned_by, None);
        }
        assert!(world.provider_books().await.is_empty());
        world.assert_whole().await;
    }

    /// The process that charged was held up for so long that another one took the payment over, or
    /// gave it up.
    async fn a_charge_is_recorded_whatever_another_process_did_meanwhile(world: World) {
        for (taken_over, is_given_up) in [
            ("update payments set status = 'unknown', step = 'query' where status = 'approving'", false),
            ("update payments set status = 'failed', step = null where status = 'approving'", true),
        ] {
            let held = world.hold();
            let order = world.order(&held).await;
            let approval = world.approval(&order, TestCard::Approve).await;
            let (faults, pause) = Pause::at("call confirm");
            let (slow, context) = (world.instance(faults), world.context());
            let held_up =
                tokio::spawn(async move { slow.approve(approval, &context).await.unwrap() });
            pause.reached().await;
            run(&world, taken_over).await;
            if is_given_up {
                world.tickets.change(held.id, |held| {
                    held.pinned_by = None;
                    held.ended.insert(order.id.0, 1);
                });
            }
            pause.end();
            assert_eq!(held_up.await.unwrap().status, PaymentStatus::Confirmed);
            assert_eq!(world.tickets.get(held.id).tickets, 1);
        }
        world.assert_whole().await;
    }

    /// P3: one won less was taken than was ordered.
    async fn what_is_not_the_amount_of_the_order_goes_back_whole(world: World) {
        let (held, payment) = world.pay(TestCard::WrongAmount).await;
        world.settle().await;
        let payment = world.find(payment.id).await;
        assert_eq!(payment.status, PaymentStatus::Refunded);
        assert_eq!(payment.charged, payment.refunded);
        assert_ne!(payment.charged, PRICE);
        let refunds = world.payments.list_refunds(payment.id).await.unwrap();
        let causes: Vec<&RefundOrigin> = refunds.iter().map(|refund| &refund.origin).collect();
        assert_eq!(causes, [&RefundOrigin::Mismatch]);
        assert_eq!(world.tickets.get(held.id).tickets, 0);
        let announced = world.announced().await;
        assert_eq!(announced.len(), 1, "nobody was told that it was paid: {announced:?}");
        let reversed = &announced[0];
        assert_eq!(reversed.event_type, "CHARGE_REVERSED", "the buyer is told that it goes back");
        assert_eq!(reversed.subject, payment.order_id);
        assert_eq!(reversed.data["userId"], json!(held.user_id));
        assert_eq!(reversed.data["amount"], json!(PRICE.amount() - 1));
        assert_eq!(reversed.data["orderedAmount"], json!(PRICE));
        assert_eq!(reversed.data["cause"], "mismatch");
        assert_eq!(reversed.data["reason"], "AMOUNT_MISMATCH");
        world.assert_whole().await;
    }

    async fn a_provider_that_is_away_after_an_attempt_ends_nothing(world: World) {
        let (held, payment) = world.pay(TestCard::TimeOut).await;
        world.sandbox.set_down(true);
        for _ in 0..20 {
            world.clock.advance(Duration::from_secs(301));
            world.payments.resolve_due().await.unwrap();
        }
        let waiting = world.find(payment.id).await;
        assert_eq!(waiting.status, PaymentStatus::Unknown, "silence is never a no");
        assert_eq!(world.tickets.get(held.id).pinned_by, Some(payment.id.0));
        world.sandbox.set_down(false);
        world.settle().await;
        // It was never charged, and that is certain only now.
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Failed);
        world.assert_whole().await;
    }

    /// A buyer who has waited for ten minutes does not expect to be charged any more.
    async fn a_charge_that_never_arrived_is_not_made_after_ten_minutes(world: World) {
        let (held, payment) = world.pay(TestCard::Stumble).await;
        assert_eq!(payment.status, PaymentStatus::Unknown);
        world.clock.advance(Duration::from_secs(599));
        let attempts = "select count(*) as number from provider_calls";
        assert_eq!(world.number(attempts).await, 1);
        world.clock.advance(Duration::from_secs(1));
        world.settle().await;
        assert_eq!(world.number(attempts).await, 1, "it was looked at and not charged");
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Failed);
        assert_eq!(world.tickets.get(held.id).pinned_by, None);
        world.assert_whole().await;
    }

    /// Somebody took so long to charge that somebody else has given up on it.
    async fn a_charge_that_comes_back_after_it_was_given_up_is_taken_up_again(world: World) {
        for is_there_still in [true, false] {
            let (faults, pause) = Pause::at("call confirm");
            let slow = world.instance(faults);
            let held = world.hold();
            let order = world.order(&held).await;
            let approval = world.approval(&order, TestCard::Approve).await;
            let context = world.context();
            let charging = tokio::spawn(async move { slow.approve(approval, &context).await });
            pause.reached().await;
            run(&world, "update payments set status = 'failed', step = null \
                         where status = 'approving'").await;
            world.tickets.change(held.id, |held| {
                held.pinned_by = None;
                held.status = if is_there_still { "pending" } else { "expired" };
            });
            pause.end();
            let payment = charging.await.unwrap().unwrap();
            let expected = if is_there_still { PaymentStatus::Confirmed } else { PaymentStatus::Refunded };
            assert_eq!((payment.status, payment.step), (expected, None));
            assert_eq!(world.tickets.get(held.id).tickets, u32::from(is_there_still));
        }
        assert_eq!(world.provider_books().await.len(), 2, "both were charged");
        world.assert_whole().await;
    }

    /// The process that began the payment ended before it pinned the hold.
    async fn a_charge_that_may_have_been_sent_is_repeated_only_if_the_hold_can_be_pinned(
        world: World
    ) {
        for is_there_still in [true, false] {
            let (faults, pause) = Pause::at("begun");
            let ended = world.instance(faults);
            let held = world.hold();
            let order = world.order(&held).await;
            let approval = world.approval(&order, TestCard::Approve).await;
            let context = world.context();
            let beginning = tokio::spawn(async move { ended.approve(approval, &context).await });
            pause.reached().await;
            beginning.abort();
            if !is_there_still {
                world.tickets.change(held.id, |held| held.status = "expired");
            }
            // Its claim ends, and the hold does not yet.
            world.clock.advance(Duration::from_secs(81));
            world.settle_now().await;
            let payment = world.find(order.id).await;
            let expected = if is_there_still { PaymentStatus::Confirmed } else { PaymentStatus::Failed };
            assert_eq!((payment.status, payment.step), (expected, None), "{payment:?}");
            assert_eq!(world.tickets.get(held.id).tickets, u32::from(is_there_still));
        }
        assert_eq!(world.provider_books().await.len(), 1, "without a hold nothing is charged");
        world.assert_whole().await;
    }

    /// What the provider calls the charge is what another order of ours was paid by.
    async fn a_charge_by_the_key_of_another_payment_goes_back_and_is_not_tried_for_ever(
        world: World
    ) {
        let (_, other) = world.pay(TestCard::Approve).await;
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        let key = approval.approval.payment_key.clone();
        let taken: Result<u64, StorageError> = world.db.write(move |tx| {
            let sql = "update payments set provider_key = $2 where id = $1";
            tx.execute(sql, params![other.id.0, key])
        }).await;
        assert_eq!(taken, Ok(1));
        let payment = world.approve(&approval).await.unwrap();
        assert_eq!((payment.status, payment.step), (PaymentStatus::Refunded, None));
        assert_eq!(payment.failure_code.as_deref(), Some("KEY_USED_TWICE"));
        assert_eq!(payment.charged, payment.refunded);
        assert_eq!(world.tickets.get(held.id).tickets, 0);
        world.assert_whole().await;
    }

    /// Somebody who was held up must not take what another process gave back for what it was about
    /// to give back itself.
    async fn a_return_is_judged_by_what_was_given_back_at_that_very_moment(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        for (key, amount) in [("first", 5_000), ("second", 3_000)] {
            let refund = AdminRefundRequest {
                admin_id: world.ids.next_id(),
                amount: Some(Won::new(amount)),
                reason: "a kindness".to_owned(),
                key: key.to_owned(),
                refund_max: None,
            };
            world.payments.refund_as_admin(payment.id, refund, &world.context()).await.unwrap();
        }
        let (faults, pause) = Pause::at("claim");
        let (late, id) = (world.instance(faults), payment.id);
        let held_up = tokio::spawn(async move { late.resume(id).await.unwrap().unwrap() });
        pause.reached().await;
        // Another one gives the first part back, and cannot reach the provider for the second.
        world.clock.advance(Duration::from_secs(301));
        let sandbox = world.sandbox.clone();
        let quick = world.instance(FaultPoints::listening(move |point| {
            if point == (FaultPoint { moment: FaultMoment::After, name: "refunded" }) {
                sandbox.set_down(true);
            }
            ready(()).boxed()
        }));
        quick.resume(id).await.unwrap();
        world.sandbox.set_down(false);
        assert_eq!(world.find(id).await.refunded, Won::new(5_000));
        pause.end();
        held_up.await.unwrap();
        world.settle().await;
        assert_eq!(world.find(id).await.refunded, Won::new(8_000));
        assert_eq!(world.provider_books().await[0].refunded, Won::new(8_000));
        world.assert_whole().await;
    }
}

async fn run(world: &World, sql: &'static str) {
    let done: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}
