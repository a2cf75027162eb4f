//! A payment: what is paid for, how far it is, and which step comes next.

use std::time::Duration;

use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{Timestamp, Uuid, Won, define_id};
use urr_storage::{storable_enum, storable_id};

use super::ledger::LedgerAccount;

define_id!(
    /// A payment. The ticket service knows it by this id.
    PaymentId
);
storable_id!(PaymentId);

/// All prices are in won.
pub const CURRENCY: &str = "KRW";

/// How far a payment is, for users and other services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaymentStatus {
    /// The order was created, and the buyer has not confirmed it.
    Pending,
    Approving,
    /// The money was charged. With no step left, the ticket was delivered too.
    Confirmed,
    Failed,
    /// The provider was asked to charge, and its answer does not say whether it did.
    Unknown,
    Refunding,
    /// Partly or wholly.
    Refunded,
}

storable_enum!(PaymentStatus {
    Pending => "pending",
    Approving => "approving",
    Confirmed => "confirmed",
    Failed => "failed",
    Unknown => "unknown",
    Refunding => "refunding",
    Refunded => "refunded",
});

/// The next step of a payment's saga.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SagaStep {
    /// Pin the hold, so that it does not expire.
    Pin,
    /// Ask the provider to charge.
    Charge,
    /// Ask the provider what it did.
    Query,
    /// Have the ticket service confirm what was paid.
    Deliver,
    /// Release the pin.
    Unpin,
    /// Have the provider refund.
    Refund,
    /// Report the refund to the ticket service.
    Report,
}

storable_enum!(SagaStep {
    Pin => "pin",
    Charge => "charge",
    Query => "query",
    Deliver => "deliver",
    Unpin => "unpin",
    Refund => "refund",
    Report => "report",
});

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub id: PaymentId,
    /// What the provider knows it by.
    pub order_id: String,
    pub user_id: Uuid,
    pub payable: PayableRef,
    pub event_id: Option<Uuid>,
    /// The reservation that a transfer hands over.
    pub reservation_id: Option<Uuid>,
    /// Of the hold that is paid. A hold with another token is another purchase.
    pub fencing_token: Option<i64>,
    pub order_name: String,
    pub amount: Won,
    /// Part of the amount: the surcharge of a pre-sale, or the fee of a transfer.
    pub booking_fee: Won,
    pub currency: String,
    pub provider: String,
    /// The provider's key of the checkout, which the buyer's browser sends.
    pub payment_key: Option<String>,
    /// The provider's id of the charge.
    pub provider_key: Option<String>,
    pub method: Option<String>,
    pub status: PaymentStatus,
    pub step: Option<SagaStep>,
    /// How often the present step was tried without success.
    pub attempts: u32,
    /// Which attempt to pin the payable it is, from 1. After an unpin a new one begins.
    pub pin_attempt: i64,
    /// When the provider was first asked to charge.
    pub charge_sent_at: Option<Timestamp>,
    /// When the provider was last asked to charge.
    pub last_charge_at: Option<Timestamp>,
    /// Why the payment failed or is refunded.
    pub failure_code: Option<String>,
    /// The code of the last attempt that had no result.
    pub wait_code: Option<String>,
    /// Why the buyer cancelled, in their own words.
    pub cancel_reason: Option<String>,
    pub approved_at: Option<Timestamp>,
    pub receipt_url: Option<String>,
    /// What the provider charged.
    pub charged: Won,
    pub refunded: Won,
    pub correlation_id: Uuid,
    /// The trace of the request that confirmed it.
    pub traceparent: Option<String>,
    /// The event that announced the hold.
    pub cause_event_id: Option<Uuid>,
    pub confirmed_event_id: Option<Uuid>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The provider of payments at the box office. Nobody is asked: the staff have the money.
pub const BOX_OFFICE: &str = "box_office";

impl Payment {
    pub fn is_box_office(&self) -> bool {
        self.provider == BOX_OFFICE
    }

    /// Where its money is kept.
    pub fn keeping_account(&self) -> LedgerAccount {
        match self.method.as_deref() {
            Some("box_office_card") if self.is_box_office() => LedgerAccount::BoxOfficeCard,
            _ if self.is_box_office() => LedgerAccount::BoxOfficeCash,
            _ => LedgerAccount::Provider,
        }
    }

    /// What was charged and not refunded.
    pub fn remaining(&self) -> Won {
        self.charged.minus(self.refunded).expect("no more is refunded than was charged")
    }

    /// The idempotency key of the charge. Every attempt has the same one, so that together they
    /// charge once.
    pub fn charge_key(&self) -> String {
        format!("{}:confirm", self.id)
    }

    /// The idempotency key for closing the buyer's deposit account; closing it twice does no harm.
    pub fn close_deposit_key(&self) -> String {
        format!("{}:close-deposit:{}", self.id, self.attempts)
    }

    /// The reservation that is paid, directly or by a transfer.
    pub fn reservation(&self) -> Option<Uuid> {
        match self.payable.kind {
            PayableKind::Reservation => Some(self.payable.id),
            PayableKind::Transfer => self.reservation_id,
            PayableKind::Membership => None,
        }
    }

    /// Whether money was taken for it at some time.
    pub fn is_paid(&self) -> bool {
        use PaymentStatus::{Confirmed, Refunded, Refunding};
        matches!(self.status, Confirmed | Refunding | Refunded)
    }

    /// Whether we concluded that nothing was charged.
    pub fn is_abandoned(&self) -> bool {
        self.status == PaymentStatus::Failed && self.charged == Won::ZERO
    }

    /// Whether the saga has no step left.
    pub fn is_settled(&self) -> bool {
        self.step.is_none()
    }

    /// Whether the provider was asked to charge, and did not.
    pub fn is_declined(&self) -> bool {
        self.is_abandoned() && self.charge_sent_at.is_some()
    }
}

/// A buyer's confirmation of an order after the provider's checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub user_id: Uuid,
    pub payment_key: String,
    pub amount: Won,
}

/// What an approval leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    Begin,
    /// The same approval has begun before.
    Begun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalRejection {
    /// Also the answer to another user's order.
    #[error("there is no such order")]
    NotFound,
    #[error("the amount is not that of the order")]
    AmountMismatch,
    /// With another payment key.
    #[error("a payment of the order is under way")]
    InProgress,
    /// With another payment key, or by another order.
    #[error("it is paid")]
    AlreadyPaid,
    #[error("the provider has declined too often")]
    TooManyDeclines,
    #[error("the order has come to an end")]
    Over,
}

/// Decides about a buyer's approval. The caller has locked the payment.
pub fn decide_approval(
    payment: &Payment,
    approval: &Approval,
) -> Result<ApprovalDecision, ApprovalRejection> {
    if payment.user_id != approval.user_id {
        return Err(ApprovalRejection::NotFound);
    }
    if payment.amount != approval.amount {
        return Err(ApprovalRejection::AmountMismatch);
    }
    let is_same = payment.payment_key.as_deref() == Some(approval.payment_key.as_str());
    match payment.status {
        // The last attempt was not sent, and its pin is still being released.
        PaymentStatus::Pending if !payment.is_settled() => Ok(ApprovalDecision::Begun),
        PaymentStatus::Pending => Ok(ApprovalDecision::Begin),
        _ if is_same => Ok(ApprovalDecision::Begun),
        PaymentStatus::Approving | PaymentStatus::Unknown => Err(ApprovalRejection::InProgress),
        PaymentStatus::Confirmed => Err(ApprovalRejection::AlreadyPaid),
        PaymentStatus::Failed | PaymentStatus::Refunding | PaymentStatus::Refunded => {
            Err(ApprovalRejection::Over)
        }
    }
}

const RETRY_DELAY_MIN: Duration = Duration::from_secs(1);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5 * 60);

/// The pause before the next attempt at a step: exponential, up to five minutes.
pub fn retry_delay(attempts: u32) -> Duration {
    let factor = 1_u32.checked_shl(attempts).unwrap_or(u32::MAX);
    RETRY_DELAY_MIN.saturating_mul(factor).min(RETRY_DELAY_MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn payment(status: PaymentStatus, step: Option<SagaStep>) -> Payment {
        let now: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        Payment {
            id: PaymentId(Uuid::from_u128(1)),
            order_id: "ORD_1".to_owned(),
            user_id: Uuid::from_u128(2),
            payable: PayableRef { kind: PayableKind::Reservation, id: Uuid::from_u128(3) },
            event_id: None,
            reservation_id: None,
            fencing_token: Some(7),
            order_name: "A concert".to_owned(),
            amount: Won::new(100_000),
            booking_fee: Won::new(2_000),
            currency: CURRENCY.to_owned(),
            provider: "sandbox".to_owned(),
            payment_key: Some("key".to_owned()),
            provider_key: None,
            method: None,
            status,
            step,
            attempts: 0,
            pin_attempt: 1,
            charge_sent_at: None,
            last_charge_at: None,
            failure_code: None,
            wait_code: None,
            cancel_reason: None,
            approved_at: None,
            receipt_url: None,
            charged: Won::ZERO,
            refunded: Won::ZERO,
            correlation_id: Uuid::from_u128(4),
            traceparent: None,
            cause_event_id: None,
            confirmed_event_id: None,
            created_at: now,
            updated_at: now,
        }
    }

    fn approval(key: &str) -> Approval {
        Approval {
            user_id: Uuid::from_u128(2),
            payment_key: key.to_owned(),
            amount: Won::new(100_000),
        }
    }

    #[test]
    fn m_7_an_order_is_approved_once_and_its_end_is_an_end() {
        use ApprovalDecision::{Begin, Begun};
        use ApprovalRejection::{AlreadyPaid, InProgress, Over};
        let table = [
            (PaymentStatus::Pending, Ok(Begin), Ok(Begin)),
            (PaymentStatus::Approving, Ok(Begun), Err(InProgress)),
            (PaymentStatus::Unknown, Ok(Begun), Err(InProgress)),
            (PaymentStatus::Confirmed, Ok(Begun), Err(AlreadyPaid)),
            (PaymentStatus::Failed, Ok(Begun), Err(Over)),
            (PaymentStatus::Refunding, Ok(Begun), Err(Over)),
            (PaymentStatus::Refunded, Ok(Begun), Err(Over)),
        ];
        for (status, same, another) in table {
            let payment = payment(status, None);
            assert_eq!(decide_approval(&payment, &approval("key")), same, "{status:?}");
            assert_eq!(decide_approval(&payment, &approval("other")), another, "{status:?}");
        }
    }

    #[test]
    fn an_order_whose_charge_was_not_sent_begins_anew_when_its_pin_is_released() {
        use ApprovalDecision::{Begin, Begun};
        for (step, decision) in [(Some(SagaStep::Unpin), Begun), (None, Begin)] {
            let payment = payment(PaymentStatus::Pending, step);
            for key in ["key", "other"] {
                assert_eq!(decide_approval(&payment, &approval(key)), Ok(decision));
            }
        }
    }

    #[test]
    fn a_foreign_order_and_another_amount_are_refused_whatever_the_state() {
        for status in [
            PaymentStatus::Pending,
            PaymentStatus::Approving,
            PaymentStatus::Confirmed,
            PaymentStatus::Failed,
        ] {
            let payment = payment(status, None);
            let foreign = Approval { user_id: Uuid::from_u128(9), ..approval("key") };
            assert_eq!(decide_approval(&payment, &foreign), Err(ApprovalRejection::NotFound));
            for amount in [0, -100_000, 99_999, 100_001, i64::MAX] {
                let altered = Approval { amount: Won::new(amount), ..approval("key") };
                assert_eq!(
                    decide_approval(&payment, &altered),
                    Err(ApprovalRejection::AmountMismatch)
                );
            }
        }
    }

    #[test]
    fn attempts_become_rarer_up_to_five_minutes() {
        let waits: Vec<u64> =
            [0, 1, 2, 5, 8, 9, 40].map(|attempts| retry_delay(attempts).as_secs()).into();
        assert_eq!(waits, [1, 2, 4, 32, 256, 300, 300]);
    }
}
