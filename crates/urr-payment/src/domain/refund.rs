//! Refunds: why, how much, in which order, and the payment's state afterwards.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use urr_contracts::events::payment::RefundCause;
use urr_kernel::{Timestamp, UnknownName, Uuid, Won, define_id};
use urr_storage::{FromColumn, Value, storable_enum, storable_id};

use super::charge_outcome::ORDER_MISMATCH;
use super::payment::{Payment, PaymentId, PaymentStatus};
use crate::provider::{ProviderLookup, ProviderState, is_final_answer};

define_id!(
    /// A refund. The provider knows it by this id.
    RefundId
);
storable_id!(RefundId);

/// Why money goes back. Each origin gives at most one refund per payment; tickets that are cancelled
/// one by one are origins of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundOrigin {
    /// The purchase was cancelled.
    Cancelled,
    /// Some tickets of the purchase were cancelled. The key names which cancellation it is.
    PartlyCancelled(String),
    /// The reservation was sold to another member, whose payment replaces this one (M-8).
    Transferred,
    /// The ticket service refused to confirm what was paid (P7).
    NotConfirmable,
    /// Another payment has paid for the same payable.
    Duplicate,
    /// The provider charged something else than was ordered.
    Mismatch,
    /// An administrator gives back a part. The key names the request.
    Goodwill(String),
}

const GOODWILL: &str = "admin:";
const PARTLY_CANCELLED: &str = "part:";

impl RefundOrigin {
    /// The cause as others see it: without an administrator's key.
    pub fn cause(&self) -> RefundCause {
        match self {
            RefundOrigin::Cancelled => RefundCause::Cancelled,
            RefundOrigin::PartlyCancelled(_) => RefundCause::PartlyCancelled,
            RefundOrigin::Transferred => RefundCause::Transferred,
            RefundOrigin::NotConfirmable => RefundCause::NotConfirmable,
            RefundOrigin::Duplicate => RefundCause::Duplicate,
            RefundOrigin::Mismatch => RefundCause::Mismatch,
            RefundOrigin::Goodwill(_) => RefundCause::Goodwill,
        }
    }

    pub fn is_goodwill(&self) -> bool {
        matches!(self, RefundOrigin::Goodwill(_))
    }

    pub fn is_part(&self) -> bool {
        matches!(self, RefundOrigin::PartlyCancelled(_))
    }

    /// Whether the payment may still pin the hold.
    pub fn needs_unpin(&self) -> bool {
        use RefundOrigin::{Duplicate, Mismatch, NotConfirmable};
        matches!(self, NotConfirmable | Duplicate | Mismatch)
    }
}

/// The name in the tables.
impl fmt::Display for RefundOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefundOrigin::Goodwill(key) => write!(f, "{GOODWILL}{key}"),
            RefundOrigin::PartlyCancelled(key) => write!(f, "{PARTLY_CANCELLED}{key}"),
            other => f.write_str(other.cause().as_str()),
        }
    }
}

impl FromStr for RefundOrigin {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<RefundOrigin, UnknownName> {
        if let Some(key) = text.strip_prefix(GOODWILL) {
            return Ok(RefundOrigin::Goodwill(key.to_owned()));
        }
        if let Some(key) = text.strip_prefix(PARTLY_CANCELLED) {
            return Ok(RefundOrigin::PartlyCancelled(key.to_owned()));
        }
        match text.parse()? {
            RefundCause::Cancelled => Ok(RefundOrigin::Cancelled),
            RefundCause::Transferred => Ok(RefundOrigin::Transferred),
            RefundCause::NotConfirmable => Ok(RefundOrigin::NotConfirmable),
            RefundCause::Duplicate => Ok(RefundOrigin::Duplicate),
            RefundCause::Mismatch => Ok(RefundOrigin::Mismatch),
            RefundCause::Goodwill | RefundCause::PartlyCancelled | RefundCause::Other => {
                Err(UnknownName { type_name: "RefundOrigin", text: text.to_owned() })
            }
        }
    }
}

impl FromColumn for RefundOrigin {
    fn from_column(column: Value<'_>) -> Result<RefundOrigin, String> {
        String::from_column(column)?.parse().map_err(|error: UnknownName| error.to_string())
    }
}

/// How far a refund is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefundStatus {
    Requested,
    /// The provider was asked, and its answer does not say whether it refunded.
    Unknown,
    /// The provider has refunded.
    Done,
    /// The buyer got the money by other means.
    Closed,
    /// The refund was withdrawn.
    Withdrawn,
}

storable_enum!(RefundStatus {
    Requested => "requested",
    Unknown => "unknown",
    Done => "done",
    Closed => "closed",
    Withdrawn => "withdrawn",
});

impl RefundStatus {
    pub fn is_open(self) -> bool {
        matches!(self, RefundStatus::Requested | RefundStatus::Unknown)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    pub id: RefundId,
    pub payment_id: PaymentId,
    pub origin: RefundOrigin,
    pub amount: Won,
    /// What is kept of the price.
    pub fee: Won,
    pub reason: String,
    pub requested_by: Option<Uuid>,
    /// The amount that the ticket service asked for; none if it did not ask.
    pub requested_amount: Option<Won>,
    pub status: RefundStatus,
    /// When the provider was first asked with the present key.
    pub sent_at: Option<Timestamp>,
    /// The number of the present idempotency key.
    pub key_number: u32,
    /// How often the provider has declined.
    pub declines: u32,
    /// The provider's last code that did not mean success.
    pub failure_code: Option<String>,
    pub correlation_id: Uuid,
    /// The trace of the request or event that caused it.
    pub traceparent: Option<String>,
    pub causation_id: Option<Uuid>,
    pub created_at: Timestamp,
    pub done_at: Option<Timestamp>,
}

impl Refund {
    /// A refund of this amount, caused by the charge, that nothing was done about yet.
    pub fn new(
        id: Uuid,
        payment: &Payment,
        origin: RefundOrigin,
        amount: Won,
        reason: String,
        now: Timestamp,
    ) -> Refund {
        Refund {
            id: RefundId(id),
            payment_id: payment.id,
            origin,
            amount,
            fee: Won::ZERO,
            reason,
            requested_by: None,
            requested_amount: None,
            status: RefundStatus::Requested,
            sent_at: None,
            key_number: 0,
            declines: 0,
            failure_code: None,
            correlation_id: payment.correlation_id,
            traceparent: payment.traceparent.clone(),
            causation_id: payment.confirmed_event_id,
            created_at: now,
            done_at: None,
        }
    }

    /// Whether the buyer has the money or will get it.
    fn is_due_or_given(&self) -> bool {
        self.status != RefundStatus::Withdrawn
    }

    /// The reason that the provider is given and shows to the buyer. `buyer_reason` is the buyer's
    /// own, if they gave one.
    pub fn reason_text(&self, buyer_reason: Option<&str>) -> String {
        let why = match &self.origin {
            RefundOrigin::Cancelled => match self.reason.as_str() {
                "CANCELLED_BY_OWNER" => "고객 요청에 따른 예매 취소",
                "EVENT_CANCELLED" | "EVENT_DELETED" => "공연 취소에 따른 환불",
                _ => "예매 취소에 따른 환불",
            },
            RefundOrigin::PartlyCancelled(_) => "예매 일부 취소에 따른 환불",
            RefundOrigin::Transferred => "티켓 양도 완료에 따른 환불",
            RefundOrigin::NotConfirmable => "예매 확정 불가에 따른 전액 환불",
            RefundOrigin::Duplicate => "중복 결제 환불",
            RefundOrigin::Mismatch => "결제 내용 불일치에 따른 환불",
            RefundOrigin::Goodwill(_) => return format!("고객센터 환불: {}", self.reason),
        };
        match buyer_reason.filter(|_| self.origin == RefundOrigin::Cancelled) {
            Some(reason) => format!("{why}: {reason}"),
            None => why.to_owned(),
        }
    }
}

/// Refunds that the provider is asked for in one request: one, or all that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundBatch(Vec<Refund>);

impl RefundBatch {
    /// The refunds to work on next. An unclear one comes first: until it is clear, the provider's
    /// sum does not tell what a later refund has done. If nothing is to stay, all go together,
    /// which a provider that refuses partial refunds may grant. Otherwise a declined one goes behind
    /// the others.
    pub fn choose(payment: &Payment, all: &[Refund]) -> Option<RefundBatch> {
        let mut open: Vec<Refund> = all.to_vec();
        open.retain(|refund| refund.status.is_open());
        if open.iter().any(|refund| refund.status == RefundStatus::Unknown) {
            open.retain(|refund| refund.status == RefundStatus::Unknown);
            return Some(RefundBatch(open));
        }
        if open.len() > 1 && sum(&open) == payment.remaining() {
            return Some(RefundBatch(open));
        }
        let order = |refund: &Refund| (refund.amount != Won::ZERO, refund.declines);
        open.into_iter().min_by_key(order).map(|refund| RefundBatch(vec![refund]))
    }

    pub fn all(&self) -> &[Refund] {
        &self.0
    }

    pub fn amount(&self) -> Won {
        sum(&self.0)
    }

    pub fn is_unclear(&self) -> bool {
        self.0.iter().any(|refund| refund.status == RefundStatus::Unknown)
    }

    /// The idempotency key. It stays the same until the provider has declined or reported a failure,
    /// because providers repeat their answer to a key.
    pub fn key(&self) -> String {
        let first = &self.0[0];
        let key_number: u32 = self.0.iter().map(|refund| refund.key_number).sum();
        match (self.0.len(), key_number) {
            (1, 0) => first.id.to_string(),
            (1, key_number) => format!("{}:{key_number}", first.id),
            (_, key_number) => format!("{}:{key_number}:{}", first.id, self.amount().amount()),
        }
    }

    /// Whether the present key is useless: the provider answered it with a failure, which it would
    /// repeat for ever, and after a while the refund has still not happened.
    pub fn needs_new_key(&self, quiet: Duration, now: Timestamp) -> bool {
        self.0.iter().all(|refund| {
            refund.failure_code.as_deref().is_some_and(is_final_answer)
                && refund.sent_at.is_some_and(|sent_at| now >= sent_at + quiet)
        })
    }

    /// The reason that the provider is given and shows to the buyer.
    pub fn reason_text(&self, buyer_reason: Option<&str>) -> String {
        self.0[self.0.len() - 1].reason_text(buyer_reason)
    }
}

fn sum(refunds: &[Refund]) -> Won {
    Won::new(refunds.iter().map(|refund| refund.amount.amount()).sum())
}

/// The sum of all refunds that are done or due, by whatever means.
pub fn refund_total(refunds: &[Refund]) -> Won {
    let due = refunds.iter().filter(|refund| refund.is_due_or_given());
    Won::new(due.map(|refund| refund.amount.amount()).sum())
}

/// What was charged for tickets that were not cancelled one by one. Of the others everything is
/// settled: their refund and their fee.
pub fn standing_charge(payment: &Payment, refunds: &[Refund]) -> Won {
    let parts = refunds.iter().filter(|refund| refund.is_due_or_given() && refund.origin.is_part());
    let settled: i64 = parts.map(|part| part.amount.amount() + part.fee.amount()).sum();
    Won::new(payment.charged.amount() - settled)
}

/// What is left of [`standing_charge`] after the other refunds.
pub fn standing_remainder(payment: &Payment, refunds: &[Refund]) -> Won {
    let others: Vec<Refund> =
        refunds.iter().filter(|refund| !refund.origin.is_part()).cloned().collect();
    let left = standing_charge(payment, refunds).minus(refund_total(&others));
    left.expect("refunds do not exceed the charge")
}

/// The amount that goes back when a payment is cancelled. `asked` is the price of what stands less
/// the cancellation fee; earlier gifts count towards it, so that the fee stays the same.
pub fn refundable_amount(payment: &Payment, asked: Won, refunds: &[Refund]) -> Won {
    let standing = standing_charge(payment, refunds);
    let given = standing.amount() - standing_remainder(payment, refunds).amount();
    Won::new((asked.min(standing).amount() - given).max(0))
}

/// The refund and the fee of tickets that are cancelled while others stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartAmounts {
    pub refund: Won,
    pub fee: Won,
}

/// What goes back of tickets with this price, and what is kept of it. What an administrator gave
/// before may leave less of the price than is asked for.
pub fn part_amounts(payment: &Payment, price: Won, asked: Won, refunds: &[Refund]) -> PartAmounts {
    let left = match purchase_stands(refunds) {
        // The booking fee belongs to the tickets that stay.
        true => standing_remainder(payment, refunds).amount() - payment.booking_fee.amount(),
        // All that was kept when the rest was cancelled.
        false => payment.charged.amount() - refund_total(refunds).amount(),
    };
    let taken = price.amount().min(left).max(0);
    let refund = asked.amount().min(taken).max(0);
    PartAmounts { refund: Won::new(refund), fee: Won::new(taken - refund) }
}

/// Whether the buyer still owns what was paid, or some of it: all refunds are parts given by
/// administrators, or tickets that were cancelled one by one.
pub fn purchase_stands(refunds: &[Refund]) -> bool {
    refunds
        .iter()
        .filter(|refund| refund.is_due_or_given())
        .all(|refund| refund.origin.is_goodwill() || refund.origin.is_part())
}

/// The status of a payment without open refunds. A partial refund leaves the other tickets, and the
/// payment, as they are.
pub fn status_after_refunds(payment: &Payment, refunds: &[Refund]) -> PaymentStatus {
    let is_partly_cancelled = refunds.iter().any(|refund| refund.origin.is_part());
    let has_rest = is_partly_cancelled || refund_total(refunds) < payment.charged;
    match purchase_stands(refunds) && has_rest {
        true => PaymentStatus::Confirmed,
        false => PaymentStatus::Refunded,
    }
}

/// What the provider's own record says about a refund.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundDecision {
    Refunded,
    /// Not refunded: the provider may be asked again.
    NotYet,
    Wait {
        code: String,
    },
}

/// Decides by the provider's sum of refunds, which works because refunds of a payment are made one
/// after the other.
pub fn decide_queried_refund(
    payment: &Payment,
    amount: Won,
    found: ProviderLookup,
) -> RefundDecision {
    let expected = payment.refunded.plus(amount).expect("no more is refunded than was charged");
    match found {
        ProviderLookup::Unknown { code } => RefundDecision::Wait { code },
        ProviderLookup::Payment(found) if found.order_id != payment.order_id => {
            RefundDecision::Wait { code: ORDER_MISMATCH.to_owned() }
        }
        ProviderLookup::Payment(found)
            if found.refunded >= expected || found.state == ProviderState::Refunded =>
        {
            RefundDecision::Refunded
        }
        ProviderLookup::Payment(_) => RefundDecision::NotYet,
        ProviderLookup::NotFound => RefundDecision::Wait { code: "NOT_FOUND".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::super::payment::tests::payment;
    use super::*;

    fn refund(number: u128, origin: RefundOrigin, amount: i64) -> Refund {
        let now: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        let (id, amount, reason) = (Uuid::from_u128(number), Won::new(amount), "a kindness");
        Refund::new(id, &paid(0), origin, amount, reason.to_owned(), now)
    }

    fn goodwill(number: u128, amount: i64) -> Refund {
        refund(number, RefundOrigin::Goodwill(number.to_string()), amount)
    }

    fn paid(refunded: i64) -> Payment {
        let (charged, refunded) = (Won::new(100), Won::new(refunded));
        Payment { charged, refunded, ..payment(PaymentStatus::Refunding, None) }
    }

    fn chosen(payment: &Payment, all: &[Refund]) -> Vec<u128> {
        let chosen = RefundBatch::choose(payment, all);
        let chosen = chosen.map(|returns| returns.0).unwrap_or_default();
        chosen.iter().map(|refund| refund.id.0.as_u128()).collect()
    }

    #[test]
    fn causes_are_read_as_they_are_written() {
        let causes = [
            RefundOrigin::Cancelled,
            RefundOrigin::Transferred,
            RefundOrigin::NotConfirmable,
            RefundOrigin::Duplicate,
            RefundOrigin::Mismatch,
            RefundOrigin::Goodwill("key:1".to_owned()),
            RefundOrigin::PartlyCancelled("0198b7a0".to_owned()),
        ];
        for cause in causes {
            assert_eq!(cause.to_string().parse(), Ok(cause));
        }
        for unknown in ["something", "goodwill", "partly_cancelled", "other"] {
            assert!(unknown.parse::<RefundOrigin>().is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_part_given_back_by_an_administrator_leaves_the_payment_as_it_is() {
        let cancelled = refund(9, RefundOrigin::Cancelled, 0);
        assert_eq!(status_after_refunds(&paid(40), &[goodwill(1, 40)]), PaymentStatus::Confirmed);
        assert_eq!(status_after_refunds(&paid(100), &[goodwill(1, 100)]), PaymentStatus::Refunded);
        assert_eq!(
            status_after_refunds(&paid(40), &[goodwill(1, 40), cancelled.clone()]),
            PaymentStatus::Refunded
        );
        assert_eq!(
            status_after_refunds(&paid(0), std::slice::from_ref(&cancelled)),
            PaymentStatus::Refunded
        );
        let withdrawn = Refund { status: RefundStatus::Withdrawn, ..goodwill(1, 100) };
        assert_eq!(status_after_refunds(&paid(0), &[withdrawn]), PaymentStatus::Confirmed);
    }

    #[test]
    fn what_was_declined_stands_back_and_what_is_unclear_comes_first() {
        let declined = Refund { declines: 1, ..goodwill(1, 10) };
        let fresh = goodwill(2, 20);
        assert_eq!(chosen(&paid(0), &[declined.clone(), fresh.clone()]), [2]);
        let unclear = Refund { status: RefundStatus::Unknown, ..declined.clone() };
        assert_eq!(chosen(&paid(0), &[fresh.clone(), unclear]), [1]);
        let rest = refund(3, RefundOrigin::Cancelled, 70);
        assert_eq!(chosen(&paid(0), &[declined.clone(), fresh.clone(), rest]), [1, 2, 3]);
        let rest = refund(3, RefundOrigin::Cancelled, 60);
        assert_eq!(chosen(&paid(0), &[declined, fresh, rest]), [2], "something is to stay");
        let closed = Refund { status: RefundStatus::Closed, ..goodwill(1, 10) };
        assert_eq!(chosen(&paid(0), &[closed]), [] as [u128; 0]);
    }

    #[test]
    fn what_was_given_before_counts_towards_a_refund_and_the_fee_stays() {
        let before = [goodwill(1, 30)];
        let back = |asked, before: &[Refund]| {
            refundable_amount(&paid(0), Won::new(asked), before).amount()
        };
        assert_eq!((back(70, &[]), back(70, &before)), (70, 40));
        assert_eq!((back(20, &before), back(i64::MAX, &before)), (0, 70));
        let withdrawn = Refund { status: RefundStatus::Withdrawn, ..goodwill(1, 30) };
        assert_eq!(back(70, &[withdrawn]), 70);
    }

    fn part(number: u128, amount: i64, fee: i64) -> Refund {
        let origin = RefundOrigin::PartlyCancelled(number.to_string());
        Refund { fee: Won::new(fee), ..refund(number, origin, amount) }
    }

    #[test]
    fn tickets_that_were_cancelled_one_by_one_are_no_part_of_what_is_cancelled_later() {
        let refunds = [part(1, 45, 5)];
        assert_eq!(standing_charge(&paid(45), &refunds), Won::new(50));
        let back = |asked, refunds: &[Refund]| {
            refundable_amount(&paid(45), Won::new(asked), refunds).amount()
        };
        assert_eq!((back(40, &refunds), back(i64::MAX, &refunds)), (40, 50));
        let with_gift = [part(1, 45, 5), goodwill(2, 30)];
        assert_eq!((back(40, &with_gift), back(50, &with_gift)), (10, 20));
        assert_eq!(status_after_refunds(&paid(45), &refunds), PaymentStatus::Confirmed);
        let everything = [part(1, 45, 5), refund(2, RefundOrigin::Cancelled, 40)];
        assert_eq!(status_after_refunds(&paid(85), &everything), PaymentStatus::Refunded);
    }

    #[test]
    fn of_a_ticket_no_more_goes_back_than_is_left_of_the_price() {
        let part_of = |price, asked, refunds: &[Refund]| {
            let amounts = part_amounts(&paid(0), Won::new(price), Won::new(asked), refunds);
            (amounts.refund.amount(), amounts.fee.amount())
        };
        assert_eq!(part_of(50, 45, &[]), (45, 5));
        assert_eq!(part_of(50, 45, &[goodwill(1, 30)]), (45, 5));
        assert_eq!(part_of(50, 45, &[goodwill(1, 60)]), (40, 0));
        assert_eq!(part_of(50, 45, &[goodwill(1, 100)]), (0, 0));
        // The rest was handed over before we learnt of the cancelled ticket: its price was kept.
        let handed_over = refund(2, RefundOrigin::Transferred, 50);
        assert_eq!(part_of(50, 45, &[handed_over]), (45, 5));
    }

    #[test]
    fn a_key_is_given_up_only_when_the_provider_has_failed_by_it_and_a_minute_is_over() {
        let at = |text: &str| format!("2026-12-01T{text}Z").parse::<Timestamp>().unwrap();
        let minute = Duration::from_secs(60);
        let sent = |code: &str| {
            let failure_code = (!code.is_empty()).then(|| code.to_owned());
            let sent_at = Some(at("12:00:00"));
            RefundBatch(vec![Refund { failure_code, sent_at, ..goodwill(1, 10) }])
        };
        let failed = sent("FAILED_REFUND_PROCESS");
        assert!(!failed.needs_new_key(minute, at("12:00:59")));
        assert!(failed.needs_new_key(minute, at("12:01:00")));
        for code in ["", "TIMEOUT", "INTERRUPTED", "UNREACHABLE", "IDEMPOTENT_REQUEST_PROCESSING"] {
            assert!(!sent(code).needs_new_key(minute, at("23:00:00")), "{code}");
        }
    }

    #[test]
    fn no_two_questions_have_the_same_key() {
        let key = |refunds: &[Refund]| RefundBatch(refunds.to_vec()).key();
        let again = Refund { key_number: 1, ..goodwill(1, 10) };
        let keys = [
            key(&[goodwill(1, 10)]),
            key(std::slice::from_ref(&again)),
            key(&[goodwill(1, 10), goodwill(2, 20)]),
            key(&[again.clone(), goodwill(2, 20)]),
            key(&[again, goodwill(3, 30)]),
        ];
        for (number, key) in keys.iter().enumerate() {
            assert!(!keys[..number].contains(key), "{keys:?}");
        }
    }

    #[test]
    fn the_provider_is_told_a_sentence_that_the_buyer_can_read() {
        let refund =
            |origin, reason: &str| Refund { reason: reason.to_owned(), ..refund(1, origin, 100) };
        let owner = refund(RefundOrigin::Cancelled, "CANCELLED_BY_OWNER");
        assert_eq!(owner.reason_text(None), "고객 요청에 따른 예매 취소");
        assert_eq!(owner.reason_text(Some("감기")), "고객 요청에 따른 예매 취소: 감기");
        let event = refund(RefundOrigin::Cancelled, "EVENT_CANCELLED");
        assert_eq!(event.reason_text(None), "공연 취소에 따른 환불");
        let duplicate = refund(RefundOrigin::Duplicate, "RESERVATION_CONFIRMED");
        assert_eq!(duplicate.reason_text(Some("감기")), "중복 결제 환불", "not their reason");
        let goodwill = refund(RefundOrigin::Goodwill("key".to_owned()), "늦은 입장");
        assert_eq!(goodwill.reason_text(None), "고객센터 환불: 늦은 입장");
        assert_eq!(goodwill.origin.cause().as_str(), "goodwill");
    }
}
