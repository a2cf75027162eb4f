//! What the payment service announces. The key is the payment's id: its facts keep their order.

use serde::{Deserialize, Serialize};
use urr_kernel::{EventData, Timestamp, Uuid, Won};

use crate::domain::payment::{PayableKind, Payment};
use crate::domain::refund::Refund;

/// What every fact about a payment says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentFacts {
    pub payment_id: Uuid,
    pub order_id: String,
    pub user_id: Uuid,
    /// `reservation`, `transfer` or `membership`.
    pub payment_type: String,
    /// What was paid for, whatever it is.
    pub reference_id: Uuid,
    /// The same if it is a reservation; of a transfer the one that it hands over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
    pub payment_method: String,
    pub timestamp: Timestamp,
}

impl PaymentFacts {
    fn of(payment: &Payment, method: &str, now: Timestamp) -> PaymentFacts {
        PaymentFacts {
            payment_id: payment.id.0,
            order_id: payment.order_id.clone(),
            user_id: payment.user_id,
            payment_type: payment.payable.kind.name().to_owned(),
            reference_id: payment.payable.id,
            reservation_id: payment.reservation(),
            event_id: payment.event_id,
            payment_method: method.to_owned(),
            timestamp: now,
        }
    }
}

/// The money was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentConfirmed {
    #[serde(flatten)]
    pub facts: PaymentFacts,
    pub amount: Won,
    /// Part of the amount.
    pub booking_fee: Won,
    /// Part of the amount; only of a transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_fee: Option<Won>,
    /// Of the hold that was paid for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fencing_token: Option<i64>,
}

impl PaymentConfirmed {
    pub fn of(payment: &Payment, method: &str, now: Timestamp) -> PaymentConfirmed {
        let fee_of = |kind| (payment.payable.kind == kind).then_some(payment.booking_fee);
        PaymentConfirmed {
            facts: PaymentFacts::of(payment, method, now),
            amount: payment.amount,
            booking_fee: fee_of(PayableKind::Reservation).unwrap_or(Won::ZERO),
            transfer_fee: fee_of(PayableKind::Transfer),
            fencing_token: payment.fencing_token,
        }
    }
}

/// Money was given back: all, a part, or nothing if the policy keeps everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaymentRefunded {
    #[serde(flatten)]
    pub facts: PaymentFacts,
    pub refund_id: Uuid,
    pub amount: Won,
    /// What was kept.
    pub fee: Won,
    /// What the ticket service has asked for; missing if it has not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_amount: Option<Won>,
    pub cause: String,
    pub reason: String,
    /// Whether nothing of the charge is left.
    pub is_whole: bool,
}

impl PaymentRefunded {
    /// `payment` is as it was before.
    pub fn of(payment: &Payment, refund: &Refund, now: Timestamp) -> PaymentRefunded {
        let method = payment.method.as_deref().unwrap_or_default();
        PaymentRefunded {
            facts: PaymentFacts::of(payment, method, now),
            refund_id: refund.id.0,
            amount: refund.amount,
            fee: refund.fee,
            requested_amount: refund.requested_amount,
            cause: refund.cause.public_name().to_owned(),
            reason: refund.reason.clone(),
            is_whole: payment.remaining() == refund.amount,
        }
    }
}

macro_rules! payment_events {
    ($($event:ty => $type:literal;)*) => {$(
        impl EventData for $event {
            const TOPIC: &'static str = "payment-events";
            const TYPE: &'static str = $type;

            fn aggregate_id(&self) -> Uuid {
                self.facts.payment_id
            }
        }
    )*};
}

payment_events! {
    PaymentConfirmed => "PAYMENT_CONFIRMED";
    PaymentRefunded => "PAYMENT_REFUNDED";
}
