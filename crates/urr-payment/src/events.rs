//! Makes the domain events of payments.

use urr_contracts::events::payment::{
    ChargeReversed, PaymentConfirmed, PaymentRefunded, PaymentSnapshot,
};
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{Timestamp, Uuid, Won};

use crate::domain::payment::Payment;
use crate::domain::refund::Refund;

fn snapshot(payment: &Payment, method: Option<&str>, now: Timestamp) -> PaymentSnapshot {
    PaymentSnapshot {
        payment_id: payment.id.0,
        order_id: payment.order_id.clone(),
        user_id: payment.user_id,
        payment_type: payment.payable.kind.into(),
        reference_id: payment.payable.id,
        reservation_id: payment.reservation(),
        event_id: payment.event_id,
        payment_method: method.map(str::to_owned),
        timestamp: now,
    }
}

/// The id of the event that a payment is confirmed. It is always the same, because the delivery that
/// it causes may be asked for before the event is written.
pub fn confirmed_event_id(payment: &Payment) -> Uuid {
    const CONFIRMED: u128 = 0x434f_4e46;
    Uuid::from_u128(payment.id.0.as_u128() ^ CONFIRMED)
}

pub fn payment_confirmed(payment: &Payment, method: &str, now: Timestamp) -> PaymentConfirmed {
    let fee_of = |kind| (payment.payable.kind == kind).then_some(payment.booking_fee);
    PaymentConfirmed {
        payment: snapshot(payment, Some(method), now),
        amount: payment.amount,
        booking_fee: fee_of(PayableKind::Reservation).unwrap_or(Won::ZERO),
        transfer_fee: fee_of(PayableKind::Transfer),
        fencing_token: payment.fencing_token,
    }
}

/// `payment` is as it was before the refund.
pub fn payment_refunded(payment: &Payment, refund: &Refund, now: Timestamp) -> PaymentRefunded {
    PaymentRefunded {
        payment: snapshot(payment, payment.method.as_deref(), now),
        refund_id: refund.id.0,
        amount: refund.amount,
        fee: refund.fee,
        requested_amount: refund.requested_amount,
        cause: refund.origin.cause(),
        reason: refund.reason.clone(),
        is_whole: Some(payment.remaining() == refund.amount),
    }
}

/// `payment` is as it was before the refund.
pub fn charge_reversed(payment: &Payment, refund: &Refund, now: Timestamp) -> ChargeReversed {
    ChargeReversed {
        payment: snapshot(payment, payment.method.as_deref(), now),
        refund_id: refund.id.0,
        amount: refund.amount,
        ordered_amount: payment.amount,
        cause: refund.origin.cause(),
        reason: refund.reason.clone(),
    }
}
