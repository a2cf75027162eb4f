//! Money that goes back: why, how much, and what is left of the payment afterwards.

use urr_kernel::{Timestamp, Uuid, Won, define_id};

use super::payment::{Payment, PaymentId, Status, named};
use crate::provider::{Found, ProviderState};

define_id!(
    /// A return of money. The provider knows it by this id.
    RefundId
);

/// Why money goes back. Each happens once per payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The ticket office has cancelled what was paid for.
    Cancelled,
    /// The ticket office could not give what was paid for (P7).
    NotConfirmable,
    /// Another payment has paid for it already.
    Duplicate,
    /// The provider took something else than what was ordered.
    Mismatch,
    /// An administrator gives back a part, by a key of their own.
    Goodwill(String),
}

const GOODWILL: &str = "admin:";

impl Cause {
    pub fn name(&self) -> String {
        match self {
            Cause::Cancelled => "cancelled".to_owned(),
            Cause::NotConfirmable => "not_confirmable".to_owned(),
            Cause::Duplicate => "duplicate".to_owned(),
            Cause::Mismatch => "mismatch".to_owned(),
            Cause::Goodwill(key) => format!("{GOODWILL}{key}"),
        }
    }

    pub fn parse(name: &str) -> Option<Cause> {
        match name {
            "cancelled" => Some(Cause::Cancelled),
            "not_confirmable" => Some(Cause::NotConfirmable),
            "duplicate" => Some(Cause::Duplicate),
            "mismatch" => Some(Cause::Mismatch),
            name => Some(Cause::Goodwill(name.strip_prefix(GOODWILL)?.to_owned())),
        }
    }

    /// Whether the hold may still be pinned by the payment, and is to be let go.
    pub fn leaves_a_hold(&self) -> bool {
        !matches!(self, Cause::Cancelled | Cause::Goodwill(_))
    }
}

named! {
    /// How far a return is.
    RefundStatus {
        Requested = "requested",
        /// The provider was asked, and nobody knows whether it did.
        Unknown = "unknown",
        Done = "done",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    pub id: RefundId,
    pub payment_id: PaymentId,
    pub cause: Cause,
    pub amount: Won,
    /// What is kept of the price.
    pub fee: Won,
    pub reason: String,
    pub requested_by: Option<Uuid>,
    /// What the ticket office expects to hear.
    pub office_amount: Option<Won>,
    pub status: RefundStatus,
    pub sent_at: Option<Timestamp>,
    pub declines: u32,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub created_at: Timestamp,
    pub done_at: Option<Timestamp>,
}

impl Refund {
    /// Every attempt has the same key until the provider says no: it repeats its answers by key.
    pub fn key(&self) -> String {
        match self.declines {
            0 => self.id.to_string(),
            declines => format!("{}:{declines}", self.id),
        }
    }
}

/// The state of a payment when nothing more of it is on its way back. A part that an administrator
/// gave back leaves the ticket as it is.
pub fn status_after(payment: &Payment, refunds: &[Cause]) -> Status {
    let stands = refunds.iter().all(|cause| matches!(cause, Cause::Goodwill(_)));
    match stands && payment.refunded < payment.charged {
        true => Status::Confirmed,
        false => Status::Refunded,
    }
}

/// What the provider's own view says about a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReturnVerdict {
    Returned,
    /// It was not given back: the same return may be asked for again.
    NotYet,
    Wait {
        code: String,
    },
}

/// Returns of a payment go one after the other, so the sum of what was given back tells.
pub fn judge_return(payment: &Payment, amount: Won, found: Found) -> ReturnVerdict {
    let expected = payment.refunded.plus(amount).expect("it was charged");
    match found {
        Found::Unknown { code } => ReturnVerdict::Wait { code },
        Found::Payment(found) if found.order_id != payment.order_id => {
            ReturnVerdict::Wait { code: "ORDER_MISMATCH".to_owned() }
        }
        Found::Payment(found)
            if found.returned >= expected || found.state == ProviderState::Returned =>
        {
            ReturnVerdict::Returned
        }
        Found::Payment(_) => ReturnVerdict::NotYet,
        Found::Nothing => ReturnVerdict::Wait { code: "NOT_FOUND".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::super::payment::tests::payment;
    use super::*;

    #[test]
    fn causes_are_read_as_they_are_written() {
        let causes = [
            Cause::Cancelled,
            Cause::NotConfirmable,
            Cause::Duplicate,
            Cause::Mismatch,
            Cause::Goodwill("key:1".to_owned()),
        ];
        for cause in causes {
            assert_eq!(Cause::parse(&cause.name()), Some(cause));
        }
        assert_eq!(Cause::parse("something"), None);
    }

    #[test]
    fn a_part_given_back_by_an_administrator_leaves_the_payment_as_it_is() {
        let part = |refunded| Payment {
            charged: Won::new(100),
            refunded: Won::new(refunded),
            ..payment(Status::Refunding, None)
        };
        let goodwill = Cause::Goodwill("1".to_owned());
        assert_eq!(status_after(&part(40), std::slice::from_ref(&goodwill)), Status::Confirmed);
        assert_eq!(status_after(&part(100), std::slice::from_ref(&goodwill)), Status::Refunded);
        assert_eq!(status_after(&part(40), &[goodwill, Cause::Cancelled]), Status::Refunded);
        assert_eq!(status_after(&part(0), &[Cause::Cancelled]), Status::Refunded);
    }
}
