//! The provider's books beside ours.

use std::time::Duration;

use urr_kernel::Won;
use urr_payment::provider::{ChargeRequest, ProviderOutcome, TestCard};
use urr_payment::{Payment, PaymentStatus, ProviderDifference, Reconciliation, RefundOrigin};
use urr_storage::StorageError;

use crate::contract;
use crate::fake_ticket_service::FakePayable;
use crate::fixture::{PRICE, World};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn reconcile(world: &World) -> Reconciliation {
    let now = world.clock.now();
    let found = world.payments.reconcile(now - DAY, now + DAY).await.unwrap();
    assert_eq!(found.silent, [] as [&str; 0], "the sandbox answers");
    found
}

/// A payment that was given up, and that the provider has charged after all.
async fn charged_late(world: &World) -> (FakePayable, Payment) {
    let (held, payment) = world.pay(TestCard::TimeOut).await;
    world.settle().await;
    assert_eq!(world.find(payment.id).await.status, PaymentStatus::Failed);
    let order = &payment.order_id;
    let payment_key = world.sandbox.issue_key(TestCard::Approve, order, PRICE).await.unwrap();
    let charge = ChargeRequest {
        order_id: order.clone(),
        payment_key,
        amount: PRICE,
        idempotency_key: "late".to_owned(),
    };
    assert!(matches!(world.sandbox.confirm(&charge).await, ProviderOutcome::Done(_)));
    (held, payment)
}

contract! {
    async fn books_that_agree_have_no_differences(world: World) {
        world.pay(TestCard::Approve).await;
        let (held, _) = world.pay(TestCard::Approve).await;
        world.tickets.cancel(held.id);
        world.settle().await;
        let found = reconcile(&world).await;
        assert_eq!(found, Reconciliation { compared: 2, ..Reconciliation::default() });
    }

    /// M-6: the net under the net.
    async fn m_6_money_that_came_late_is_a_ticket_if_the_hold_is_there_still(world: World) {
        let (held, payment) = charged_late(&world).await;
        let later = world.clock.now() + DAY;
        world.tickets.change(held.id, |held| held.expires_at = later);
        assert_eq!(reconcile(&world).await.reopened, [payment.order_id]);
        world.settle().await;
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Confirmed);
        assert_eq!(world.tickets.get(held.id).tickets, 1);
        world.assert_whole().await;
        assert_eq!(reconcile(&world).await.reopened, [] as [String; 0]);
    }

    async fn money_that_came_too_late_goes_back(world: World) {
        let (held, payment) = charged_late(&world).await;
        reconcile(&world).await;
        world.settle().await;
        let payment = world.find(payment.id).await;
        assert_eq!((payment.status, payment.refunded), (PaymentStatus::Refunded, PRICE));
        assert_eq!(world.tickets.get(held.id).tickets, 0);
        world.assert_whole().await;
    }

    async fn money_for_what_was_paid_otherwise_in_the_meantime_goes_back(world: World) {
        let (held, payment) = charged_late(&world).await;
        let later = world.clock.now() + DAY;
        world.tickets.change(held.id, |held| held.expires_at = later);
        let order = world.order(&world.tickets.get(held.id)).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        assert_eq!(world.approve(&approval).await.unwrap().status, PaymentStatus::Confirmed);
        reconcile(&world).await;
        world.settle().await;
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Refunded);
        let refunds = world.payments.list_refunds(payment.id).await.unwrap();
        assert_eq!(refunds[0].origin, RefundOrigin::Duplicate);
        assert_eq!(world.tickets.get(held.id).tickets, 1);
        world.assert_whole().await;
    }

    async fn what_only_one_side_knows_is_named(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        // An order that we have never made.
        let key = world.sandbox.issue_key(TestCard::Approve, "ORD_X", Won::new(500)).await.unwrap();
        let charge = ChargeRequest {
            order_id: "ORD_X".to_owned(),
            payment_key: key,
            amount: Won::new(500),
            idempotency_key: "x".to_owned(),
        };
        assert!(matches!(world.sandbox.confirm(&charge).await, ProviderOutcome::Done(_)));
        let unknown =
            ProviderDifference::UnknownOrder { order_id: "ORD_X".to_owned(), amount: Won::new(500) };
        assert_eq!(reconcile(&world).await.differences, std::slice::from_ref(&unknown));
        // A payment of ours that is gone from the provider's books.
        let forget = [
            "delete from sandbox_movements where idempotency_key <> 'x'",
            "delete from sandbox_payments where order_id <> 'ORD_X'",
        ];
        for forget in forget {
            let gone: Result<u64, StorageError> =
                world.db.write(move |tx| tx.execute(forget, &[])).await;
            assert_eq!(gone, Ok(1));
        }
        let missing =
            ProviderDifference::MissingAtProvider { order_id: payment.order_id, amount: PRICE };
        assert_eq!(reconcile(&world).await.differences, [unknown, missing]);
    }

    /// The list is read before our books, and a charge may come in between.
    async fn what_the_list_does_not_have_yet_is_no_difference(world: World) {
        world.pay(TestCard::Approve).await;
        let late = "delete from sandbox_movements";
        let gone: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(late, &[])).await;
        assert_eq!(gone, Ok(1));
        let found = reconcile(&world).await;
        assert_eq!(found, Reconciliation::default(), "the provider knows of it when it is asked");
    }

    async fn money_that_somebody_gave_back_by_hand_is_named(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        let by_hand = "update sandbox_payments set refunded = 7";
        let done: Result<u64, StorageError> =
            world.db.write(move |tx| tx.execute(by_hand, &[])).await;
        assert_eq!(done, Ok(1));
        let (ours, theirs) = ((PRICE, Won::ZERO), (PRICE, Won::new(7)));
        let differs = ProviderDifference::Amounts { order_id: payment.order_id, ours, theirs };
        assert_eq!(reconcile(&world).await.differences, [differs]);
    }

    async fn without_the_providers_list_nothing_is_concluded(world: World) {
        world.pay(TestCard::Approve).await;
        world.sandbox.set_down(true);
        let now = world.clock.now();
        let silent = Reconciliation { silent: vec!["sandbox"], ..Reconciliation::default() };
        assert_eq!(world.payments.reconcile(now - DAY, now + DAY).await, Ok(silent));
    }
}
