//! Money that goes back: why, how much, and what is left of the payment afterwards.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid, Won, define_id};

use super::charge::ORDER_MISMATCH;
use super::payment::{Payment, PaymentId, PaymentStatus, named};
use crate::provider::{ProviderLookup, ProviderState, is_final_answer};

define_id!(
    /// A return of money. The provider knows it by this id.
    RefundId
);

/// Why money goes back. Each happens once per payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundCause {
    /// What was paid for is cancelled.
    Cancelled,
    /// The ticket is somebody else's now, who has paid for it (M-8).
    Transferred,
    /// The ticket service could not give what was paid for (P7).
    NotConfirmable,
    /// Another payment has paid for it already.
    Duplicate,
    /// The provider took something else than what was ordered.
    Mismatch,
    /// An administrator gives back a part, by a key of their own.
    Goodwill(String),
}

const GOODWILL: &str = "admin:";

impl RefundCause {
    pub fn name(&self) -> String {
        match self {
            RefundCause::Cancelled => "cancelled".to_owned(),
            RefundCause::Transferred => "transferred".to_owned(),
            RefundCause::NotConfirmable => "not_confirmable".to_owned(),
            RefundCause::Duplicate => "duplicate".to_owned(),
            RefundCause::Mismatch => "mismatch".to_owned(),
            RefundCause::Goodwill(key) => format!("{GOODWILL}{key}"),
        }
    }

    /// As everybody else calls it: an administrator's key is nobody's business.
    pub fn public_name(&self) -> &'static str {
        match self {
            RefundCause::Cancelled => "cancelled",
            RefundCause::Transferred => "transferred",
            RefundCause::NotConfirmable => "not_confirmable",
            RefundCause::Duplicate => "duplicate",
            RefundCause::Mismatch => "mismatch",
            RefundCause::Goodwill(_) => "goodwill",
        }
    }

    pub fn parse(name: &str) -> Option<RefundCause> {
        match name {
            "cancelled" => Some(RefundCause::Cancelled),
            "transferred" => Some(RefundCause::Transferred),
            "not_confirmable" => Some(RefundCause::NotConfirmable),
            "duplicate" => Some(RefundCause::Duplicate),
            "mismatch" => Some(RefundCause::Mismatch),
            name => Some(RefundCause::Goodwill(name.strip_prefix(GOODWILL)?.to_owned())),
        }
    }

    pub fn is_goodwill(&self) -> bool {
        matches!(self, RefundCause::Goodwill(_))
    }

    /// Whether the hold may still be pinned by the payment, and is to be let go.
    pub fn needs_unpin(&self) -> bool {
        matches!(self, RefundCause::NotConfirmable | RefundCause::Duplicate | RefundCause::Mismatch)
    }
}

named! {
    /// How far a return is.
    RefundStatus {
        Requested = "requested",
        /// The provider was asked, and nobody knows whether it did.
        Unknown = "unknown",
        /// The provider has given it back.
        Done = "done",
        /// It was given by other means.
        Closed = "closed",
        /// It is not given after all.
        Withdrawn = "withdrawn",
    }
}

impl RefundStatus {
    pub fn is_open(self) -> bool {
        matches!(self, RefundStatus::Requested | RefundStatus::Unknown)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    pub id: RefundId,
    pub payment_id: PaymentId,
    pub cause: RefundCause,
    pub amount: Won,
    /// What is kept of the price.
    pub fee: Won,
    pub reason: String,
    pub requested_by: Option<Uuid>,
    /// What the ticket service has asked for; none if it has not asked.
    pub requested_amount: Option<Won>,
    pub status: RefundStatus,
    /// When the provider was first asked by the present key.
    pub sent_at: Option<Timestamp>,
    /// The number of the key.
    pub key_number: u32,
    /// How often the provider has said no.
    pub declines: u32,
    /// What the provider last said, if that was not yes.
    pub failure_code: Option<String>,
    pub correlation_id: Uuid,
    pub causation_id: Option<Uuid>,
    pub created_at: Timestamp,
    pub done_at: Option<Timestamp>,
}

impl Refund {
    /// Whether the buyer has the money, or shall have it.
    fn is_due_or_given(&self) -> bool {
        self.status != RefundStatus::Withdrawn
    }

    /// What the provider is told, and shows the buyer. `words` are the buyer's own, if they gave
    /// any.
    pub fn reason_text(&self, words: Option<&str>) -> String {
        let why = match &self.cause {
            RefundCause::Cancelled => match self.reason.as_str() {
                "CANCELLED_BY_OWNER" => "고객 요청에 따른 예매 취소",
                "EVENT_CANCELLED" | "EVENT_DELETED" => "공연 취소에 따른 환불",
                _ => "예매 취소에 따른 환불",
            },
            RefundCause::Transferred => "티켓 양도 완료에 따른 환불",
            RefundCause::NotConfirmable => "예매 확정 불가에 따른 전액 환불",
            RefundCause::Duplicate => "중복 결제 환불",
            RefundCause::Mismatch => "결제 내용 불일치에 따른 환불",
            RefundCause::Goodwill(_) => return format!("고객센터 환불: {}", self.reason),
        };
        match words.filter(|_| self.cause == RefundCause::Cancelled) {
            Some(words) => format!("{why}: {words}"),
            None => why.to_owned(),
        }
    }
}

/// What the provider is asked to give back at once: one return, or all that are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundBatch(Vec<Refund>);

impl RefundBatch {
    /// What is to be done next of a payment's returns. What is unclear comes first: before it is
    /// clear, nobody can tell by the sum what a later return has done. If nothing is to stay, all
    /// go together, which a provider that gives no part back may grant. Otherwise one that was
    /// declined stands back behind the others.
    pub fn choose(payment: &Payment, all: &[Refund]) -> Option<RefundBatch> {
        let open: Vec<&Refund> = all.iter().filter(|refund| refund.status.is_open()).collect();
        let is_unclear = |refund: &&&Refund| refund.status == RefundStatus::Unknown;
        let unclear: Vec<Refund> = open.iter().filter(is_unclear).map(|r| (*r).clone()).collect();
        if !unclear.is_empty() {
            return Some(RefundBatch(unclear));
        }
        let together: Vec<Refund> = open.iter().map(|refund| (*refund).clone()).collect();
        if sum(&together) == payment.remaining() && together.len() > 1 {
            return Some(RefundBatch(together));
        }
        let first = open.iter().min_by_key(|refund| (refund.amount != Won::ZERO, refund.declines));
        first.map(|refund| RefundBatch(vec![(*refund).clone()]))
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

    /// Every attempt has the same key until the provider has said no, or that it failed: it repeats
    /// its answers by key.
    pub fn key(&self) -> String {
        let first = &self.0[0];
        let key_number: u32 = self.0.iter().map(|refund| refund.key_number).sum();
        match (self.0.len(), key_number) {
            (1, 0) => first.id.to_string(),
            (1, key_number) => format!("{}:{key_number}", first.id),
            (_, key_number) => format!("{}:{key_number}:{}", first.id, self.amount().amount()),
        }
    }

    /// Whether the present key leads nowhere any more: the provider has answered to it that it
    /// failed, which it will repeat for ever, and after a while nothing has come of it.
    pub fn needs_new_key(&self, quiet: Duration, now: Timestamp) -> bool {
        self.0.iter().all(|refund| {
            refund.failure_code.as_deref().is_some_and(is_final_answer)
                && refund.sent_at.is_some_and(|sent_at| now >= sent_at + quiet)
        })
    }

    /// What the provider is told, and shows the buyer.
    pub fn reason_text(&self, words: Option<&str>) -> String {
        self.0[self.0.len() - 1].reason_text(words)
    }
}

fn sum(refunds: &[Refund]) -> Won {
    Won::new(refunds.iter().map(|refund| refund.amount.amount()).sum())
}

/// What was given back or is to be, by whatever means.
pub fn refund_total(refunds: &[Refund]) -> Won {
    let refund_total = refunds.iter().filter(|refund| refund.is_due_or_given());
    Won::new(refund_total.map(|refund| refund.amount.amount()).sum())
}

/// What of a cancelled payment goes back. `asked` is the price less what is kept; what was given
/// before counts towards it, so that what is kept stays the same.
pub fn refundable_amount(payment: &Payment, asked: Won, refunds: &[Refund]) -> Won {
    let asked = asked.min(payment.charged).amount();
    Won::new((asked - refund_total(refunds).amount()).max(0))
}

/// Whether what was paid for is the buyer's still: only parts were given back, by administrators.
pub fn purchase_stands(refunds: &[Refund]) -> bool {
    refunds
        .iter()
        .filter(|refund| refund.is_due_or_given())
        .all(|refund| refund.cause.is_goodwill())
}

/// The state of a payment when nothing more of it is on its way back. A part that an administrator
/// gave back leaves the ticket as it is.
pub fn status_after_refunds(payment: &Payment, refunds: &[Refund]) -> PaymentStatus {
    match purchase_stands(refunds) && refund_total(refunds) < payment.charged {
        true => PaymentStatus::Confirmed,
        false => PaymentStatus::Refunded,
    }
}

/// What the provider's own view says about a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefundDecision {
    Refunded,
    /// It was not given back: the same return may be asked for again.
    NotYet,
    Wait {
        code: String,
    },
}

/// Returns of a payment go one after the other, so the sum of what was given back tells.
pub fn decide_queried_refund(
    payment: &Payment,
    amount: Won,
    found: ProviderLookup,
) -> RefundDecision {
    let expected = payment.refunded.plus(amount).expect("it was charged");
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

    fn refund(number: u128, cause: RefundCause, amount: i64) -> Refund {
        let created_at: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
        Refund {
            id: RefundId(Uuid::from_u128(number)),
            payment_id: PaymentId(Uuid::from_u128(1)),
            cause,
            amount: Won::new(amount),
            fee: Won::ZERO,
            reason: "a kindness".to_owned(),
            requested_by: None,
            requested_amount: None,
            status: RefundStatus::Requested,
            sent_at: None,
            key_number: 0,
            declines: 0,
            failure_code: None,
            correlation_id: Uuid::nil(),
            causation_id: None,
            created_at,
            done_at: None,
        }
    }

    fn goodwill(number: u128, amount: i64) -> Refund {
        refund(number, RefundCause::Goodwill(number.to_string()), amount)
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
            RefundCause::Cancelled,
            RefundCause::Transferred,
            RefundCause::NotConfirmable,
            RefundCause::Duplicate,
            RefundCause::Mismatch,
            RefundCause::Goodwill("key:1".to_owned()),
        ];
        for cause in causes {
            assert_eq!(RefundCause::parse(&cause.name()), Some(cause));
        }
        assert_eq!(RefundCause::parse("something"), None);
    }

    #[test]
    fn a_part_given_back_by_an_administrator_leaves_the_payment_as_it_is() {
        let cancelled = refund(9, RefundCause::Cancelled, 0);
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
        let rest = refund(3, RefundCause::Cancelled, 70);
        assert_eq!(chosen(&paid(0), &[declined.clone(), fresh.clone(), rest]), [1, 2, 3]);
        let rest = refund(3, RefundCause::Cancelled, 60);
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
            |cause, reason: &str| Refund { reason: reason.to_owned(), ..refund(1, cause, 100) };
        let owner = refund(RefundCause::Cancelled, "CANCELLED_BY_OWNER");
        assert_eq!(owner.reason_text(None), "고객 요청에 따른 예매 취소");
        assert_eq!(owner.reason_text(Some("감기")), "고객 요청에 따른 예매 취소: 감기");
        let event = refund(RefundCause::Cancelled, "EVENT_CANCELLED");
        assert_eq!(event.reason_text(None), "공연 취소에 따른 환불");
        let duplicate = refund(RefundCause::Duplicate, "RESERVATION_CONFIRMED");
        assert_eq!(duplicate.reason_text(Some("감기")), "중복 결제 환불", "not their reason");
        let goodwill = refund(RefundCause::Goodwill("key".to_owned()), "늦은 입장");
        assert_eq!(goodwill.reason_text(None), "고객센터 환불: 늦은 입장");
        assert_eq!(goodwill.cause.public_name(), "goodwill");
    }
}
