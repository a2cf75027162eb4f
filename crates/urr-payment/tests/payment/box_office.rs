//! Sales at the box office: recorded without a provider, on accounts of their own, and given back
//! when the staff say so.

use serde_json::{Value, json};
use urr_bus::HandlerOutcome;
use urr_kernel::{Uuid, Won};
use urr_payment::{
    CloseRefundRequest, LedgerAccount, PaymentId, PaymentStatus, RefundClosure, RefundStatus,
};
use urr_storage::StorageError;

use crate::contract;
use crate::fixture::World;

/// A sale of 200,000 won, as the ticket service announces it.
struct Sale {
    reservation_id: Uuid,
    payment_id: Uuid,
    event_id: Uuid,
    user_id: Uuid,
}

impl Sale {
    fn new(world: &World) -> Sale {
        let [reservation_id, payment_id, event_id, user_id] = [(); 4].map(|()| world.ids.next_id());
        Sale { reservation_id, payment_id, event_id, user_id }
    }

    fn snapshot(&self, amount: i64) -> Value {
        json!({
            "reservationId": self.reservation_id, "reservationNumber": "R-1",
            "userId": self.user_id, "eventId": self.event_id, "totalAmount": amount,
            "bookingFee": 0, "quantity": 2, "seatIds": [0, 1],
            "timestamp": "2026-12-01T12:00:00Z", "paymentId": self.payment_id,
        })
    }

    async fn announce(&self, world: &World, kind: &str, amount: i64, more: Value) {
        let mut data = self.snapshot(amount);
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let event = world.event(kind, self.reservation_id, &data);
        // The inbox keeps a repeated event away; without it, it changes nothing either.
        for _ in 0..2 {
            assert_eq!(world.consume(&event).await, Ok(HandlerOutcome::Done));
        }
    }

    async fn sell(&self, world: &World, method: &str) {
        let more = json!({ "fencingToken": 3, "paymentMethod": method, "receiptNumber": "7" });
        self.announce(world, "BOX_OFFICE_SOLD", 200_000, more).await;
    }

    async fn cancel(&self, world: &World, reason: &str, refund: i64) {
        let more = json!({
            "reason": reason, "refundAmount": refund, "cancellationFee": 200_000 - refund,
        });
        self.announce(world, "RESERVATION_CANCELLED", 200_000, more).await;
    }
}

async fn balance(world: &World, account: LedgerAccount) -> i64 {
    let proof = world.payments.prove_ledger().await.unwrap();
    assert!(proof.is_balanced(), "{proof}");
    proof.balance(account).amount()
}

async fn kinds(world: &World) -> Vec<String> {
    world.announced().await.into_iter().map(|event| event.event_type).collect()
}

contract! {
    async fn a_sale_is_a_payment_on_its_own_account(world: World) {
        for (method, account) in [
            ("box_office_cash", LedgerAccount::BoxOfficeCash),
            ("box_office_card", LedgerAccount::BoxOfficeCard),
        ] {
            let sale = Sale::new(&world);
            sale.sell(&world, method).await;
            let payment = world.find(PaymentId(sale.payment_id)).await;
            assert_eq!(payment.status, PaymentStatus::Confirmed);
            assert_eq!((payment.step, payment.charged), (None, Won::new(200_000)));
            assert_eq!(payment.method.as_deref(), Some(method));
            assert_eq!(balance(&world, account).await, 200_000);
        }
        assert_eq!(balance(&world, LedgerAccount::Provider).await, 0, "no provider is asked");
        assert_eq!(balance(&world, LedgerAccount::Sales).await, -400_000);
        assert_eq!(kinds(&world).await, ["PAYMENT_CONFIRMED"; 2]);
        assert!(world.provider_books().await.is_empty());
    }

    async fn money_that_was_handed_over_is_refunded_at_once(world: World) {
        let sale = Sale::new(&world);
        sale.sell(&world, "box_office_cash").await;
        let part = json!({
            "cancellationId": world.ids.next_id(), "cancelledSeatIds": [1],
            "cancelledQuantity": 1, "cancelledAmount": 100_000, "refundAmount": 90_000,
            "cancellationFee": 10_000, "reason": "REFUNDED_AT_BOX_OFFICE 0072",
        });
        sale.announce(&world, "RESERVATION_PARTLY_CANCELLED", 100_000, part).await;
        assert_eq!(balance(&world, LedgerAccount::BoxOfficeCash).await, 110_000);
        sale.cancel(&world, "REFUNDED_AT_BOX_OFFICE", 100_000).await;
        assert_eq!(balance(&world, LedgerAccount::BoxOfficeCash).await, 10_000);
        assert_eq!(balance(&world, LedgerAccount::CancellationFees).await, -10_000);
        assert_eq!(balance(&world, LedgerAccount::RefundsDue).await, 0);
        world.settle().await;
        let payment = world.find(PaymentId(sale.payment_id)).await;
        let expected = (PaymentStatus::Refunded, Won::new(190_000), None);
        assert_eq!((payment.status, payment.refunded, payment.step), expected);
        let expected = ["PAYMENT_CONFIRMED", "PAYMENT_REFUNDED", "PAYMENT_REFUNDED"];
        assert_eq!(kinds(&world).await, expected);
    }

    /// A cancelled event: nobody has handed anything over yet.
    async fn money_that_was_not_handed_over_is_owed_until_somebody_says_how_it_was_paid(world: World) {
        let sale = Sale::new(&world);
        sale.sell(&world, "box_office_cash").await;
        sale.cancel(&world, "EVENT_CANCELLED", 200_000).await;
        world.payments.resolve_due().await.unwrap();
        assert_eq!(balance(&world, LedgerAccount::BoxOfficeCash).await, 200_000);
        assert_eq!(balance(&world, LedgerAccount::RefundsDue).await, -200_000);
        let id = PaymentId(sale.payment_id);
        let refund = world.payments.list_refunds(id).await.unwrap().remove(0);
        assert_eq!(refund.failure_code.as_deref(), Some("PAY_AT_BOX_OFFICE"));
        let close = CloseRefundRequest {
            admin_id: world.ids.next_id(),
            refund_id: refund.id,
            closure: RefundClosure::PaidOtherwise,
            reason: "계좌 이체".to_owned(),
        };
        world.payments.close_refund(id, close).await.unwrap();
        let refund = world.payments.list_refunds(id).await.unwrap().remove(0);
        assert_eq!(refund.status, RefundStatus::Closed);
        assert_eq!(balance(&world, LedgerAccount::RefundsDue).await, 0);
        assert_eq!(balance(&world, LedgerAccount::PaidOtherwise).await, -200_000);
    }

    async fn a_sale_without_its_ledger_entry_is_found(world: World) {
        let sale = Sale::new(&world);
        sale.sell(&world, "box_office_card").await;
        assert!(world.payments.prove_ledger().await.unwrap().is_balanced());
        let lost = world.db.write(|tx| {
            tx.execute("delete from ledger_lines", &[])?;
            tx.execute("delete from ledger_entries", &[])
        });
        let lost: Result<u64, StorageError> = lost.await;
        assert_eq!(lost, Ok(2));
        let proof = world.payments.prove_ledger().await.unwrap();
        assert_eq!(proof.unexplained.len(), 1, "{proof}");
    }
}
