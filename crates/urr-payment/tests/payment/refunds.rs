//! Money goes back: once per cause, by the provider, and both sides end in the same state.

use std::time::Duration;

use urr_bus::{HandleError, HandlerOutcome};
use urr_kernel::Won;
use urr_payment::provider::TestCard;
use urr_payment::{
    AdminRefundRequest, LedgerAccount, OwnerCancelRequest, PaymentId, PaymentStatus, RefundError,
    RefundOrigin, SagaStep,
};

use crate::contract;
use crate::fake_ticket_service::{FakePayable, Fault};
use crate::fixture::{PRICE, Pause, World};

/// A ticket that was paid, cancelled for a fee, and its refund begun.
async fn cancel(world: &World, held: &FakePayable, fee: i64) -> FakePayable {
    world.tickets.change(held.id, |held| held.cancel_fee = Won::new(fee));
    world.tickets.cancel(held.id);
    world.tickets.take_cancelled().pop().unwrap()
}

fn part(world: &World, amount: Option<i64>, key: &str) -> AdminRefundRequest {
    AdminRefundRequest {
        admin_id: world.ids.next_id(),
        amount: amount.map(Won::new),
        reason: "a kindness".to_owned(),
        key: key.to_owned(),
        refund_max: None,
    }
}

contract! {
    /// M-1, M-5: what was paid and cancelled comes back, by the provider.
    async fn m_1_a_cancelled_ticket_is_refunded_and_the_cause_is_named(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let cancelled = cancel(&world, &held, 0).await;
        let event = world.cancelled_event(&cancelled);
        assert_eq!(world.consume(&event).await, Ok(HandlerOutcome::Done));
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Refunding);
        world.settle().await;
        let payment = world.find(payment.id).await;
        assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, PRICE));
        assert_eq!(world.tickets.get(held.id).payment_status, "refunded");
        let refunded = world.announced().await.pop().unwrap();
        assert_eq!(refunded.event_type, "PAYMENT_REFUNDED");
        assert_eq!(refunded.causation_id, Some(event.id));
        assert_eq!(refunded.correlation_id, event.correlation_id);
        let data = &refunded.data;
        let refunds = world.payments.list_refunds(payment.id).await.unwrap();
        let expected = serde_json::json!({
            "paymentId": payment.id.0, "orderId": payment.order_id, "userId": held.user_id,
            "paymentType": "reservation", "referenceId": held.id, "reservationId": held.id,
            "eventId": held.event_id, "paymentMethod": payment.method, "amount": PRICE, "fee": 0,
            "requestedAmount": PRICE, "refundId": refunds[0].id.0, "cause": "cancelled",
            "reason": "CANCELLED_BY_OWNER", "isWhole": true, "timestamp": "2026-12-01T12:00:00Z",
            "type": "PAYMENT_REFUNDED", "sagaId": event.correlation_id,
        });
        assert_eq!(data, &expected);
        world.assert_whole().await;
    }

    /// A ticket is cancelled after its delivery and before its charge is recorded.
    async fn a_cancellation_waits_until_the_charge_is_recorded(world: World) {
        for is_killed in [false, true] {
            let (faults, pause) = Pause::at("call deliver");
            let slow = world.instance(faults);
            let held = world.hold();
            let order = world.order(&held).await;
            let approval = world.approval(&order, TestCard::Approve).await;
            let context = world.context();
            let paying = tokio::spawn(async move { slow.approve(approval, &context).await });
            pause.reached().await;
            let cancelled = cancel(&world, &held, 32_000).await;
            let event = world.cancelled_event(&cancelled);
            let early = world.consume(&event).await;
            assert_eq!(early, Err(HandleError::NotYet("the charge is not recorded yet".to_owned())));
            match is_killed {
                true => {
                    paying.abort();
                    world.clock.advance(Duration::from_secs(81));
                    world.settle_now().await;
                }
                false => {
                    pause.end();
                    paying.await.unwrap().unwrap();
                }
            }
            world.consume(&event).await.unwrap();
            world.settle().await;
            assert_eq!(world.find(order.id).await.refunded, Won::new(70_000), "killed: {is_killed}");
        }
        world.assert_whole().await;
    }

    /// P11: what the policy keeps is kept, and is a cancellation fee in the books.
    async fn a_part_that_the_policy_keeps_stays(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let cancelled = cancel(&world, &held, 32_000).await;
        world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
        world.settle().await;
        assert_eq!(world.find(payment.id).await.refunded, Won::new(70_000));
        let proof = world.payments.prove_ledger().await.unwrap();
        let balances = LedgerAccount::ALL.map(|account| proof.balance(account).amount());
        assert_eq!(balances, [32_000, 0, 0, -2_000, -30_000, 0, 0, 0, 0, 0, 0], "{proof}");
        world.assert_whole().await;
    }

    async fn when_nothing_goes_back_the_provider_is_not_asked(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let cancelled = cancel(&world, &held, PRICE.amount()).await;
        world.sandbox.set_down(true);
        world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
        world.settle().await;
        world.sandbox.set_down(false);
        let payment = world.find(payment.id).await;
        assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, Won::ZERO));
        world.assert_whole().await;
    }

    /// K-4, K-10: a second delivery and a second publication of the same fact.
    async fn a_cancellation_that_is_heard_twice_gives_back_once(world: World) {
        let (held, _) = world.pay(TestCard::Approve).await;
        let cancelled = cancel(&world, &held, 0).await;
        let (event, copy) = (world.cancelled_event(&cancelled), world.cancelled_event(&cancelled));
        for event in [&event, &event, &copy] {
            assert_eq!(world.consume(event).await, Ok(HandlerOutcome::Done));
        }
        world.settle().await;
        assert_eq!(world.consume(&copy).await, Ok(HandlerOutcome::Done));
        world.settle().await;
        assert_eq!(world.number("select count(*) as number from refunds").await, 1);
        world.assert_whole().await;
    }

    async fn a_return_whose_answer_was_lost_is_found_and_not_made_again(world: World) {
        let (held, payment) = world.pay(TestCard::RefundTimesOut).await;
        let cancelled = cancel(&world, &held, 1_000).await;
        world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
        world.payments.resolve_due().await.unwrap();
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Refunding);
        world.settle().await;
        assert_eq!(world.find(payment.id).await.refunded, Won::new(101_000));
        world.assert_whole().await;
    }

    async fn a_provider_that_is_away_or_says_no_still_owes_the_money(world: World) {
        let (held, payment) = world.pay(TestCard::RefundDeclined).await;
        let cancelled = cancel(&world, &held, 0).await;
        world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
        for is_down in [true, false, false] {
            world.sandbox.set_down(is_down);
            world.payments.resolve_due().await.unwrap();
            world.clock.advance(Duration::from_secs(301));
        }
        let payment = world.find(payment.id).await;
        assert_eq!((payment.status, payment.step), (PaymentStatus::Refunding, Some(SagaStep::Refund)));
        assert_eq!(world.payments.count_stuck().await, Ok(1), "operators see it");
        let refund = world.payments.list_refunds(payment.id).await.unwrap().pop().unwrap();
        assert_eq!(refund.declines, 2, "after each no it is another question");
        let proof = world.payments.prove_ledger().await.unwrap();
        assert_eq!(proof.balance(LedgerAccount::RefundsDue), Won::new(-102_000));
        assert!(proof.is_balanced(), "what is under way explains itself: {proof}");
    }

    /// K-1: the ticket service gave the ticket and died, and its owner was quicker than our next look.
    async fn a_ticket_that_is_cancelled_before_we_know_of_it_is_refunded_once(world: World) {
        for hears_first in [true, false] {
            world.tickets.fail("confirm", [Fault::Dies]);
            let (held, payment) = world.pay(TestCard::Approve).await;
            assert_eq!(payment.step, Some(SagaStep::Deliver));
            let cancelled = cancel(&world, &held, 32_000).await;
            let event = world.cancelled_event(&cancelled);
            if hears_first {
                world.consume(&event).await.unwrap();
                world.settle().await;
            } else {
                world.settle().await;
                world.consume(&event).await.unwrap();
                world.settle().await;
            }
            let payment = world.find(payment.id).await;
            assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, Won::new(70_000)));
        }
        world.assert_whole().await;
    }

    async fn a_cancellation_of_what_we_never_sold_is_a_dead_letter(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let (other, _) = world.pay(TestCard::Approve).await;
        let poison = |outcome: Result<HandlerOutcome, HandleError>| {
            assert!(matches!(outcome, Err(HandleError::Poison(_))), "{outcome:?}");
        };
        let refund = |held: &FakePayable| FakePayable { refund_amount: Some(PRICE), ..held.clone() };
        // An unknown payment, another reservation's, an amount below zero, no amount, no words.
        let unknown = FakePayable { payment_id: Some(world.ids.next_id()), ..refund(&held) };
        poison(world.consume(&world.cancelled_event(&unknown)).await);
        let foreign = FakePayable { payment_id: Some(payment.id.0), ..refund(&other) };
        poison(world.consume(&world.cancelled_event(&foreign)).await);
        let negative = FakePayable { refund_amount: Some(Won::new(-1)), ..held.clone() };
        poison(world.consume(&world.cancelled_event(&negative)).await);
        let mut garbled = world.cancelled_event(&refund(&held));
        garbled.data = serde_json::json!("free tickets");
        poison(world.consume(&garbled).await);
        // What was never paid concerns nobody here.
        let unpaid = world.hold();
        assert_eq!(world.consume(&world.cancelled_event(&unpaid)).await, Ok(HandlerOutcome::Ignored));
        world.settle().await;
        assert_eq!(world.number("select count(*) as number from refunds").await, 0);
        world.assert_whole().await;
    }

    /// More than was paid cannot come back, whatever the ticket service says.
    async fn no_more_goes_back_than_was_taken(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let cancelled = cancel(&world, &held, 0).await;
        let greedy = FakePayable { refund_amount: Some(Won::new(i64::MAX)), ..cancelled };
        world.tickets.change(held.id, |held| held.refund_amount = greedy.refund_amount);
        world.consume(&world.cancelled_event(&greedy)).await.unwrap();
        world.settle().await;
        assert_eq!(world.find(payment.id).await.refunded, PRICE);
        world.assert_whole().await;
    }

    async fn an_administrator_gives_a_part_back_once_per_key_and_the_ticket_stays(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let refund = |amount, key: &'static str| {
            let (id, context) = (payment.id, world.context());
            let refund = part(&world, amount, key);
            let payments = world.payments.clone();
            async move { payments.refund_as_admin(id, refund, &context).await }
        };
        refund(Some(2_000), "first").await.unwrap();
        refund(Some(2_000), "first").await.unwrap();
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Confirmed, Won::new(2_000)));
        assert_eq!(world.tickets.get(held.id).status, "confirmed");
        for (amount, key) in [(0, "a"), (-1, "b"), (100_001, "c"), (i64::MAX, "d")] {
            let refused = refund(Some(amount), key).await;
            assert!(matches!(refused, Err(RefundError::TooMuch)), "{amount}");
        }
        assert!(matches!(refund(Some(100_000), "e").await, Err(RefundError::CancelInstead)));
        let (unknown, asked) = (PaymentId(world.ids.next_id()), part(&world, Some(1), "f"));
        let refused = world.payments.refund_as_admin(unknown, asked, &world.context()).await;
        assert!(matches!(refused, Err(RefundError::NotFound)));
        world.assert_whole().await;
        // All of the rest goes back by cancelling, of which the ticket service has the last word.
        let amount = refund(None, "g").await.unwrap();
        assert_eq!(amount, Won::new(100_000), "the part that was given counts towards it");
        world.settle().await;
        let causes: Vec<RefundOrigin> = world.payments.list_refunds(payment.id).await.unwrap()
            .into_iter().map(|refund| refund.origin).collect();
        assert_eq!(causes, [RefundOrigin::Goodwill("first".to_owned()), RefundOrigin::Cancelled]);
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Refunded, PRICE));
        world.assert_whole().await;
    }

    async fn a_fee_can_be_waived_after_the_refund(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let cancelled = cancel(&world, &held, 32_000).await;
        world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
        world.settle().await;
        let waived = part(&world, Some(32_000), "flu");
        world.payments.refund_as_admin(payment.id, waived, &world.context()).await.unwrap();
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Refunded, PRICE));
        world.tickets.change(held.id, |held| held.cancel_fee = Won::ZERO);
        world.assert_whole().await;
    }

    /// P9, M-8: one's own payment only, and by cancelling only.
    async fn m_8_an_owner_cancels_by_the_key_of_the_payment_and_nobody_else_does(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let key = payment.payment_key.clone().unwrap();
        let thief = world.ids.next_id();
        for (user_id, key) in [(thief, key.as_str()), (held.user_id, "no-such-key")] {
            let owner = OwnerCancelRequest { user_id, reason: None };
            let refused = world.payments.cancel_by_owner(key, owner, &world.context()).await;
            assert!(matches!(refused, Err(RefundError::NotFound)));
        }
        assert_eq!(world.tickets.calls("cancel"), 0);
        let owner = OwnerCancelRequest { user_id: held.user_id, reason: None };
        let amount =
            world.payments.cancel_by_owner(&key, owner, &world.context()).await.unwrap();
        assert_eq!(amount, PRICE);
        world.settle().await;
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Refunded);
        world.assert_whole().await;
    }

    /// A ticket of a purchase goes back, and the purchase stands: then another, then the rest.
    async fn tickets_are_refunded_one_by_one_and_the_rest_later(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        let held = world.tickets.get(payment.payable.id);
        let cancellation = world.ids.next_id();
        let balances = async || {
            let proof = world.payments.prove_ledger().await.unwrap();
            LedgerAccount::ALL.map(|account| proof.balance(account).amount())
        };
        // The same event twice, and a copy of it: one refund.
        let event = world.partly_cancelled_event(&held, (50_000, 45_000), cancellation);
        let copy = world.partly_cancelled_event(&held, (50_000, 45_000), cancellation);
        for event in [&event, &event, &copy] {
            assert_eq!(world.consume(event).await, Ok(HandlerOutcome::Done));
        }
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Confirmed, Won::new(45_000)));
        assert_eq!(balances().await, [57_000, 0, -50_000, -2_000, -5_000, 0, 0, 0, 0, 0, 0]);
        let refunded = world.announced().await.pop().unwrap();
        assert_eq!(refunded.data["cause"], "partly_cancelled");
        assert_eq!((&refunded.data["amount"], &refunded.data["fee"]),
            (&serde_json::json!(45_000), &serde_json::json!(5_000)));
        // Another one, for nothing: the provider is not asked for it.
        let other = world.partly_cancelled_event(&held, (10_000, 0), world.ids.next_id());
        world.consume(&other).await.unwrap();
        world.settle().await;
        assert_eq!(balances().await, [57_000, 0, -40_000, -2_000, -15_000, 0, 0, 0, 0, 0, 0]);
        // Of the rest, which has cost 42,000, half of the price goes back.
        let cancelled = cancel(&world, &held, PRICE.amount() - 20_000).await;
        world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Refunded, Won::new(65_000)));
        assert_eq!(balances().await, [37_000, 0, 0, -2_000, -35_000, 0, 0, 0, 0, 0, 0]);
        // What was kept of the first tickets is kept, too.
        world.tickets.change(held.id, |held| held.cancel_fee = Won::new(37_000));
        world.assert_whole().await;
    }

    /// Topics have no common order: the transfer of the rest may be heard of first.
    async fn a_cancelled_ticket_that_is_heard_of_after_the_transfer_is_refunded_too(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        let held = world.tickets.get(payment.payable.id);
        let data = serde_json::json!({
            "transferId": world.ids.next_id(), "reservationId": held.id, "eventId": held.event_id,
            "sellerId": held.user_id, "buyerId": world.ids.next_id(), "originalPrice": 52_000,
            "fee": 5_200, "totalPrice": 57_200, "paymentId": world.ids.next_id(),
            "sellerPaymentId": payment.id.0, "sellerPayout": 52_000,
            "timestamp": world.clock.now(),
        });
        world.consume(&world.event("TRANSFER_COMPLETED", held.id, &data)).await.unwrap();
        world.settle().await;
        let part = world.partly_cancelled_event(&held, (50_000, 45_000), world.ids.next_id());
        assert_eq!(world.consume(&part).await, Ok(HandlerOutcome::Done));
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Refunded, Won::new(97_000)));
        let proof = world.payments.prove_ledger().await.unwrap();
        let balances = LedgerAccount::ALL.map(|account| proof.balance(account).amount());
        assert_eq!(balances, [5_000, 0, 0, -2_000, -3_000, 0, 0, 0, 0, 0, 0], "{proof}");
    }

    /// The ticket service does not hear of it at first.
    async fn a_silent_ticket_service_is_told_of_the_refund_until_it_hears(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        let cancelled = cancel(&world, &held, 0).await;
        world.tickets.fail("refunded", [Fault::Silent, Fault::Dies, Fault::Silent]);
        world.consume(&world.cancelled_event(&cancelled)).await.unwrap();
        world.payments.resolve_due().await.unwrap();
        let waiting = world.find(payment.id).await;
        assert_eq!((waiting.status, waiting.step), (PaymentStatus::Refunded, Some(SagaStep::Report)));
        world.settle().await;
        world.assert_whole().await;
    }
}
