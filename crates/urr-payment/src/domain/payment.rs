//! A payment: what is paid for, how far it is, and what is to be done next.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid, Won, define_id};

define_id!(
    /// A payment. The ticket service knows it by this id.
    PaymentId
);

/// All prices are in won.
pub const CURRENCY: &str = "KRW";

macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$doc])* $variant,)*
        }

        impl $type {
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }

            pub fn parse(name: &str) -> Option<$type> {
                match name {
                    $($name => Some($type::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// How far a payment is, as everybody sees it.
    PaymentStatus {
        /// An order was made; nobody has agreed to pay it yet.
        Pending = "pending",
        Approving = "approving",
        /// The money is ours. With nothing left to do, so is the ticket the buyer's.
        Confirmed = "confirmed",
        Failed = "failed",
        /// The provider was asked to charge, and nobody knows whether it did.
        Unknown = "unknown",
        Refunding = "refunding",
        /// Partly or wholly.
        Refunded = "refunded",
    }
}

named! {
    /// What is to be done next.
    SagaStep {
        /// The hold must not expire any more.
        Pin = "pin",
        /// The provider was asked to charge, or is about to be.
        Charge = "charge",
        /// The provider is asked what it did.
        Query = "query",
        /// The ticket service gives the ticket.
        Deliver = "deliver",
        /// The hold may expire again.
        Unpin = "unpin",
        /// The provider gives money back.
        Refund = "refund",
        /// The ticket service learns that the money is back.
        Report = "report",
    }
}

named! {
    /// What can be paid for.
    PayableKind {
        Reservation = "reservation",
        Transfer = "transfer",
        Membership = "membership",
    }
}

/// What is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayableRef {
    pub kind: PayableKind,
    pub id: Uuid,
}

impl PayableRef {
    pub fn reservation(id: Uuid) -> PayableRef {
        PayableRef { kind: PayableKind::Reservation, id }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    pub id: PaymentId,
    /// What the provider knows it by.
    pub order_id: String,
    pub user_id: Uuid,
    pub payable: PayableRef,
    pub event_id: Option<Uuid>,
    /// The ticket that a transfer hands over.
    pub reservation_id: Option<Uuid>,
    /// Of the hold that is paid for: another one is another purchase.
    pub fencing_token: Option<i64>,
    pub order_name: String,
    pub amount: Won,
    /// Part of the amount: the surcharge of a pre-sale, or the fee of a transfer.
    pub booking_fee: Won,
    pub currency: String,
    pub provider: String,
    /// What the buyer brought back from the provider.
    pub payment_key: Option<String>,
    /// What the provider calls the charge.
    pub provider_key: Option<String>,
    pub method: Option<String>,
    pub status: PaymentStatus,
    pub step: Option<SagaStep>,
    pub attempts: u32,
    /// When the provider was first asked to charge.
    pub charge_sent_at: Option<Timestamp>,
    /// When it was last asked.
    pub last_charge_at: Option<Timestamp>,
    /// Why it failed, or why the money goes back.
    pub failure_code: Option<String>,
    /// What the last look said that brought nothing.
    pub wait_code: Option<String>,
    /// Why the buyer wants their money back, in their own words.
    pub cancel_reason: Option<String>,
    pub approved_at: Option<Timestamp>,
    pub receipt_url: Option<String>,
    /// What the provider took.
    pub charged: Won,
    pub refunded: Won,
    pub correlation_id: Uuid,
    /// What told of the hold that is paid for.
    pub cause_event_id: Option<Uuid>,
    pub confirmed_event_id: Option<Uuid>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Payment {
    /// What was taken and not given back.
    pub fn remaining(&self) -> Won {
        self.charged.minus(self.refunded).expect("no more is given back than was taken")
    }

    /// Every attempt at the charge has the same key, so that together they charge once.
    pub fn charge_key(&self) -> String {
        format!("{}:confirm", self.id)
    }

    /// Of an attempt to close the account that its buyer was given: closing it twice does no harm.
    pub fn close_deposit_key(&self) -> String {
        format!("{}:close-deposit:{}", self.id, self.attempts)
    }

    /// The reservation that it pays for, by itself or by a transfer.
    pub fn reservation(&self) -> Option<Uuid> {
        match self.payable.kind {
            PayableKind::Reservation => Some(self.payable.id),
            PayableKind::Transfer => self.reservation_id,
            PayableKind::Membership => None,
        }
    }

    /// Whether somebody has concluded that nothing was charged.
    pub fn is_abandoned(&self) -> bool {
        self.status == PaymentStatus::Failed && self.charged == Won::ZERO
    }

    /// Whether nothing more happens to it by itself.
    pub fn is_settled(&self) -> bool {
        self.step.is_none()
    }
}

/// What a buyer says when they come back from the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub user_id: Uuid,
    pub payment_key: String,
    pub amount: Won,
}

/// What an approval of a payment leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    Begin,
    /// This very approval was begun before.
    Begun,
}

/// Why an approval leads to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalRejection {
    /// Another user's does not exist either.
    #[error("there is no such order")]
    NotFound,
    #[error("the amount is not that of the order")]
    AmountMismatch,
    /// With another key.
    #[error("a payment of the order is under way")]
    InProgress,
    /// With another key, or by another order.
    #[error("it is paid")]
    AlreadyPaid,
    #[error("the order has come to an end")]
    Over,
}

/// Decides about a buyer's approval. The caller locked the payment.
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
        PaymentStatus::Pending => Ok(ApprovalDecision::Begin),
        PaymentStatus::Approving
        | PaymentStatus::Unknown
        | PaymentStatus::Confirmed
        | PaymentStatus::Failed
            if is_same =>
        {
            Ok(ApprovalDecision::Begun)
        }
        PaymentStatus::Refunding | PaymentStatus::Refunded if is_same => {
            Ok(ApprovalDecision::Begun)
        }
        PaymentStatus::Approving | PaymentStatus::Unknown => Err(ApprovalRejection::InProgress),
        PaymentStatus::Confirmed => Err(ApprovalRejection::AlreadyPaid),
        PaymentStatus::Failed | PaymentStatus::Refunding | PaymentStatus::Refunded => {
            Err(ApprovalRejection::Over)
        }
    }
}

const RETRY_DELAY_MIN: Duration = Duration::from_secs(1);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5 * 60);

/// How long a payment that could not get on waits for the next look.
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
    fn looks_become_rarer_up_to_five_minutes() {
        let waits: Vec<u64> =
            [0, 1, 2, 5, 8, 9, 40].map(|attempts| retry_delay(attempts).as_secs()).into();
        assert_eq!(waits, [1, 2, 4, 32, 256, 300, 300]);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for status in ["pending", "approving", "confirmed", "failed", "unknown", "refunded"] {
            assert_eq!(PaymentStatus::parse(status).unwrap().name(), status);
        }
        for step in ["pin", "charge", "query", "deliver", "unpin", "refund", "report"] {
            assert_eq!(SagaStep::parse(step).unwrap().name(), step);
        }
        assert_eq!((PaymentStatus::parse("paid"), SagaStep::parse("")), (None, None));
    }
}
