//! A provider that does not give money back: others are not kept waiting, somebody settles it, and
//! the books say how.

use std::time::Duration;

use serde_json::json;
use urr_kernel::Won;
use urr_payment::provider::TestCard;
use urr_payment::{
    AdminRefundRequest, CloseError, CloseRefundRequest, LedgerAccount, Payment, PaymentStatus,
    Refund, RefundClosure, RefundStatus, SagaStep,
};

use crate::api_client::ApiClient;
use crate::contract;
use crate::fixture::{PRICE, World};

async fn give(world: &World, payment: &Payment, amount: i64, key: &str) {
    let refund = AdminRefundRequest {
        admin_id: world.ids.next_id(),
        amount: Some(Won::new(amount)),
        reason: "늦은 입장".to_owned(),
        key: key.to_owned(),
        refund_max: None,
    };
    world.payments.refund_as_admin(payment.id, refund, &world.context()).await.unwrap();
}

/// Everybody does their work a few times, whether or not it comes to anything.
async fn work(world: &World) {
    for _ in 0..4 {
        for held in world.tickets.take_cancelled() {
            world.consume(&world.cancelled_event(&held)).await.unwrap();
        }
        world.payments.resolve_due().await.unwrap();
        world.clock.advance(Duration::from_secs(301));
    }
}

async fn refunds(world: &World, payment: &Payment) -> Vec<Refund> {
    world.payments.list_refunds(payment.id).await.unwrap()
}

fn close(world: &World, refund: &Refund, closure: RefundClosure) -> CloseRefundRequest {
    let (admin_id, reason) = (world.ids.next_id(), "은행 송금".to_owned());
    CloseRefundRequest { admin_id, refund_id: refund.id, closure, reason }
}

async fn balances(world: &World) -> [i64; 11] {
    let proof = world.payments.prove_ledger().await.unwrap();
    assert!(proof.is_balanced(), "{proof}");
    let with_provider = proof.charged.amount() - proof.refunded.amount();
    let accounted = proof.sold.amount() - proof.cancelled.amount();
    let open = proof.undelivered().amount() + proof.owed().amount();
    assert_eq!(with_provider, accounted + open, "{proof}");
    LedgerAccount::ALL.map(|account| proof.balance(account).amount())
}

contract! {
    /// Everything that is left is owed: one return of all of it settles the parts as well.
    async fn a_declined_part_is_settled_when_everything_goes_back(world: World) {
        let (held, payment) = world.pay(TestCard::PartDeclined).await;
        give(&world, &payment, 2_000, "part").await;
        work(&world).await;
        let part = refunds(&world, &payment).await.pop().unwrap();
        assert!(part.declines > 0 && part.status == RefundStatus::Requested, "{part:?}");
        world.tickets.cancel(held.id);
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.refunded), (PaymentStatus::Refunded, PRICE));
        assert!(refunds(&world, &payment).await.iter().all(|r| r.status == RefundStatus::Done));
        assert_eq!(world.tickets.get(held.id).refund_amount, Some(Won::new(100_000)));
        world.assert_whole().await;
    }

    async fn a_declined_return_does_not_keep_another_one_waiting(world: World) {
        let (_, payment) = world.pay(TestCard::RefundDeclined).await;
        give(&world, &payment, 2_000, "declined").await;
        work(&world).await;
        // From now on the provider gives back, but not this one again: its turn is later.
        let declined = refunds(&world, &payment).await.pop().unwrap();
        give(&world, &payment, 3_000, "next").await;
        world.payments.resolve_due().await.unwrap();
        let all = refunds(&world, &payment).await;
        assert_eq!(all[0].declines, declined.declines, "it stands back");
        assert_eq!(all[1].declines, 1, "the other one has had its turn");
    }

    async fn a_goodwill_that_was_declined_can_be_withdrawn(world: World) {
        let (held, payment) = world.pay(TestCard::PartDeclined).await;
        let before = balances(&world).await;
        give(&world, &payment, 2_000, "part").await;
        let asked = refunds(&world, &payment).await.pop().unwrap();
        let withdraw = close(&world, &asked, RefundClosure::Withdrawn);
        let early = world.payments.close_refund(payment.id, withdraw.clone()).await;
        assert_eq!(early, Err(CloseError::NotDeclined), "the provider may give it yet");
        work(&world).await;
        assert_eq!(world.find(payment.id).await.step, Some(SagaStep::Refund));
        for _ in 0..2 {
            world.payments.close_refund(payment.id, withdraw.clone()).await.unwrap();
        }
        let other = close(&world, &asked, RefundClosure::PaidOtherwise);
        let refused = world.payments.close_refund(payment.id, other).await;
        assert_eq!(refused, Err(CloseError::Over));
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.step), (PaymentStatus::Confirmed, None));
        assert_eq!(balances(&world).await, before, "as if it had never been promised");
        assert_eq!(world.tickets.get(held.id).status, "confirmed");
        world.assert_whole().await;
    }

    /// The books: what went back from elsewhere is still at the provider, and is explained.
    async fn what_is_owed_can_be_paid_by_other_means(world: World) {
        let (held, payment) = world.pay(TestCard::RefundDeclined).await;
        world.tickets.change(held.id, |held| held.cancel_fee = Won::new(32_000));
        world.tickets.cancel(held.id);
        work(&world).await;
        let owed = refunds(&world, &payment).await.pop().unwrap();
        let withdraw = close(&world, &owed, RefundClosure::Withdrawn);
        let refused = world.payments.close_refund(payment.id, withdraw).await;
        assert_eq!(refused, Err(CloseError::Owed), "the buyer is entitled to it");
        let api = ApiClient::new(&world);
        let path = format!("/api/admin/payments/{}/refunds/{}/close", payment.id, owed.id);
        let body = json!({"reason": "은행 송금"});
        let (status, _) = api.post(Some(payment.user_id), &path, &body).await;
        assert_eq!(status, 403, "not for users");
        let (status, answer) = api.post_as_admin(&path, "c1", &body).await;
        assert_eq!((status.as_u16(), &answer["refunds"][0]["status"]), (200, &json!("closed")));
        world.settle().await;
        let after = world.find(payment.id).await;
        assert_eq!((after.status, after.step), (PaymentStatus::Refunded, None));
        assert_eq!(world.tickets.get(held.id).payment_status, "refunded", "the ticket service hears of it");
        let expected = [102_000, 0, 0, -2_000, -30_000, 0, 0, 0, -70_000, 0, 0];
        assert_eq!(balances(&world).await, expected);
        let refunded = world.announced().await.pop().unwrap();
        assert_eq!((refunded.event_type.as_str(), &refunded.data["amount"]),
            ("PAYMENT_REFUNDED", &json!(70_000)));
        let (_, log) = api.get_as_admin("/api/admin/payments/log").await;
        assert!(log.to_string().contains("REFUND_PAID_OTHERWISE"), "{log}");
    }

    async fn what_nobody_knows_is_not_paid_a_second_time(world: World) {
        let (held, payment) = world.pay(TestCard::RefundDeclined).await;
        world.tickets.cancel(held.id);
        work(&world).await;
        let owed = refunds(&world, &payment).await.pop().unwrap();
        let unclear = "update refunds set status = 'unknown'";
        let done: Result<u64, urr_storage::StorageError> =
            world.db.write(move |tx| tx.execute(unclear, &[])).await;
        assert_eq!(done, Ok(1));
        let otherwise = close(&world, &owed, RefundClosure::PaidOtherwise);
        let refused = world.payments.close_refund(payment.id, otherwise.clone()).await;
        assert_eq!(refused, Err(CloseError::Unclear));
        let elsewhere = urr_payment::PaymentId(world.ids.next_id());
        let refused = world.payments.close_refund(elsewhere, otherwise).await;
        assert_eq!(refused, Err(CloseError::NotFound));
    }

    /// The fee of the policy stays what it is, whatever was given before.
    async fn what_was_given_of_good_will_counts_towards_the_refund_and_the_fee_stays(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        give(&world, &payment, 12_000, "part").await;
        world.settle().await;
        world.tickets.change(held.id, |held| held.cancel_fee = Won::new(32_000));
        world.tickets.cancel(held.id);
        world.settle().await;
        assert_eq!(world.find(payment.id).await.refunded, Won::new(70_000), "102,000 less 32,000");
        assert_eq!(balances(&world).await, [32_000, 0, 0, -2_000, -30_000, 0, 0, 0, 0, 0, 0]);
        let told = world.tickets.get(held.id).refund_amount;
        assert_eq!(told, Some(Won::new(58_000)), "the ticket service hears what really came");
        let refunded = world.announced().await.pop().unwrap();
        assert_eq!((&refunded.data["amount"], &refunded.data["requestedAmount"]),
            (&json!(58_000), &json!(70_000)));
        world.assert_whole().await;
    }

    /// The cancellation fee first, then the booking fee.
    async fn a_fee_that_is_waived_leaves_nothing_on_any_account(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        world.tickets.change(held.id, |held| held.cancel_fee = Won::new(32_000));
        world.tickets.cancel(held.id);
        world.settle().await;
        give(&world, &payment, 31_000, "most").await;
        world.settle().await;
        assert_eq!(balances(&world).await, [1_000, 0, 0, -1_000, 0, 0, 0, 0, 0, 0, 0]);
        give(&world, &payment, 1_000, "rest").await;
        world.settle().await;
        assert_eq!(balances(&world).await, [0; 11]);
    }

    /// M-11: while a part goes back, what was paid for is still paid.
    async fn m_11_nobody_pays_for_what_is_paid_while_a_part_of_it_goes_back(world: World) {
        let (held, payment) = world.pay(TestCard::RefundDeclined).await;
        let second = world.hold();
        world.tickets.change(second.id, |other| other.user_id = held.user_id);
        let order = world.order(&world.tickets.get(second.id)).await;
        let same: Result<u64, urr_storage::StorageError> = world.db.write(move |tx| {
            let sql = "update payments set payable_id = $2 where id = $1";
            tx.execute(sql, urr_storage::params![order.id.0, held.id])
        }).await;
        assert_eq!(same, Ok(1));
        give(&world, &payment, 2_000, "part").await;
        work(&world).await;
        let going = world.find(payment.id).await;
        assert_eq!((going.status, going.step), (PaymentStatus::Confirmed, Some(SagaStep::Refund)));
        let approval = world.approval(&order, TestCard::Approve).await;
        let refused = world.approve(&approval).await;
        assert_eq!(refused, Err(urr_payment::ApprovalRejection::AlreadyPaid.into()));
    }
}
