//! What the provider's answers about a charge mean.

use std::time::Duration;

use urr_kernel::{Timestamp, Won};

use super::claim_timeouts::SagaTimeouts;
use super::payment::Payment;
use crate::provider::{
    PaymentChannel, ProviderLookup, ProviderOutcome, ProviderPayment, ProviderState,
};

/// How often the same charge is retried while the provider says that nothing was paid.
pub const CHARGE_RETRIES_MAX: u32 = 4;
/// Later than this after the first attempt, the buyer no longer expects to be charged.
pub const CHARGE_RETRIED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// The provider answered about another order.
pub const ORDER_MISMATCH: &str = "ORDER_MISMATCH";
/// A part of the charge was refunded, but not by us.
pub const PARTLY_RETURNED: &str = "PARTLY_RETURNED";
/// It was paid by a channel for tests, which moves no money.
pub const TEST_CHANNEL: &str = "TEST_CHANNEL";
/// It was paid by another channel than the configured one. The buyer's browser chooses the channel.
pub const CHANNEL_MISMATCH: &str = "CHANNEL_MISMATCH";
/// The request did not reach the provider.
pub const PROVIDER_UNAVAILABLE: &str = "PROVIDER_UNAVAILABLE";
/// The buyer chose to transfer money to a deposit account later. Seats are not held that long.
pub const METHOD_NOT_SUPPORTED: &str = "METHOD_NOT_SUPPORTED";

/// The ticket service's limit for the name of a payment method.
const METHOD_CHARS_MAX: usize = 50;

/// What to do about a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeDecision {
    /// The provider charged what was ordered.
    Paid(ProviderPayment),
    /// The provider charged something else on this order: all of it is refunded (P3).
    Mismatch { paid: ProviderPayment, code: &'static str },
    /// Nothing was charged, and nothing will be.
    Failed { code: String },
    /// The provider was not reached: the buyer may confirm the order again.
    Reopen,
    /// The same charge may be retried with the same key.
    RetryCharge,
    /// The buyer was given a deposit account: the provider is asked to close it.
    CloseDeposit,
    /// Query the provider later.
    Wait { code: String },
}

/// Decides by the answer to the first attempt at a charge.
pub fn decide_charge(
    payment: &Payment,
    outcome: ProviderOutcome<ProviderPayment>,
) -> ChargeDecision {
    match outcome {
        ProviderOutcome::Done(paid) => decide_paid(payment, paid),
        ProviderOutcome::Declined { code } => ChargeDecision::Failed { code },
        ProviderOutcome::Unsent { .. } => ChargeDecision::Reopen,
        ProviderOutcome::Unknown { code } => ChargeDecision::Wait { code },
    }
}

/// Decides by the answer to a retried charge. A refusal of the retry says nothing about the first
/// attempt: whether that one charged is for the next query to tell.
pub fn decide_retried_charge(
    payment: &Payment,
    outcome: ProviderOutcome<ProviderPayment>,
) -> ChargeDecision {
    match outcome {
        ProviderOutcome::Done(paid) => decide_paid(payment, paid),
        ProviderOutcome::Declined { code }
        | ProviderOutcome::Unsent { code }
        | ProviderOutcome::Unknown { code } => ChargeDecision::Wait { code },
    }
}

/// Decides by the provider's own record of the order.
pub fn decide_queried_charge(
    payment: &Payment,
    found: ProviderLookup,
    timeouts: &SagaTimeouts,
    now: Timestamp,
) -> ChargeDecision {
    let first_sent_at = payment.charge_sent_at.unwrap_or(payment.updated_at);
    let last_sent_at = payment.last_charge_at.unwrap_or(first_sent_at);
    let unpaid = |code: &str| {
        if payment.attempts < CHARGE_RETRIES_MAX && now < first_sent_at + CHARGE_RETRIED_WITHIN {
            return ChargeDecision::RetryCharge;
        }
        let code = payment.failure_code.clone().unwrap_or_else(|| code.to_owned());
        match now >= last_sent_at + timeouts.not_found_trusted_after {
            true => ChargeDecision::Failed { code },
            false => ChargeDecision::Wait { code },
        }
    };
    let is_deposit_closed = payment.failure_code.as_deref() == Some(METHOD_NOT_SUPPORTED);
    match found {
        ProviderLookup::Unknown { code } => ChargeDecision::Wait { code },
        ProviderLookup::NotFound => unpaid("NOTHING_CHARGED"),
        ProviderLookup::Payment(found) if found.order_id != payment.order_id => {
            unpaid(ORDER_MISMATCH)
        }
        ProviderLookup::Payment(found) => match found.state {
            ProviderState::Open => unpaid("NOT_PAID"),
            ProviderState::Paid | ProviderState::Deposit => decide_paid(payment, found),
            ProviderState::Refunded | ProviderState::Dead if is_deposit_closed => {
                ChargeDecision::Failed { code: METHOD_NOT_SUPPORTED.to_owned() }
            }
            ProviderState::Refunded => ChargeDecision::Failed { code: "RETURNED".to_owned() },
            ProviderState::Dead => ChargeDecision::Failed { code: "NOT_PAID".to_owned() },
        },
    }
}

/// A payment of another order, whatever the provider calls it, is neither a success nor ours to
/// refund.
fn decide_paid(payment: &Payment, paid: ProviderPayment) -> ChargeDecision {
    if paid.order_id != payment.order_id {
        return ChargeDecision::Wait { code: ORDER_MISMATCH.to_owned() };
    }
    if paid.state == ProviderState::Deposit {
        return ChargeDecision::CloseDeposit;
    }
    if paid.state != ProviderState::Paid {
        return ChargeDecision::Wait { code: "NOT_PAID".to_owned() };
    }
    match paid.channel {
        PaymentChannel::Configured => {}
        PaymentChannel::Test => return ChargeDecision::Mismatch { paid, code: TEST_CHANNEL },
        PaymentChannel::Other => return ChargeDecision::Mismatch { paid, code: CHANNEL_MISMATCH },
    }
    if paid.currency != payment.currency {
        return ChargeDecision::Mismatch { paid, code: "CURRENCY_MISMATCH" };
    }
    if paid.amount != payment.amount {
        return ChargeDecision::Mismatch { paid, code: "AMOUNT_MISMATCH" };
    }
    let paid = ProviderPayment { method: method_name(&paid, payment), ..paid };
    if paid.refunded != Won::ZERO {
        // Somebody refunded it at the provider: an operator has to look at it.
        return ChargeDecision::Wait { code: PARTLY_RETURNED.to_owned() };
    }
    ChargeDecision::Paid(paid)
}

/// The method's name for other services: not empty, and not too long.
fn method_name(paid: &ProviderPayment, payment: &Payment) -> String {
    match paid.method.trim() {
        "" => payment.provider.clone(),
        method => method.chars().take(METHOD_CHARS_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::payment::{PaymentStatus, SagaStep};
    use super::*;

    fn ours() -> Payment {
        super::super::payment::tests::payment(PaymentStatus::Unknown, Some(SagaStep::Query))
    }

    fn paid() -> ProviderPayment {
        ProviderPayment {
            order_id: "ORD_1".to_owned(),
            payment_key: "key".to_owned(),
            transaction_id: None,
            amount: Won::new(100_000),
            currency: "KRW".to_owned(),
            state: ProviderState::Paid,
            refunded: Won::ZERO,
            method: "card".to_owned(),
            approved_at: None,
            receipt_url: None,
            channel: PaymentChannel::Configured,
        }
    }

    fn open() -> ProviderPayment {
        ProviderPayment { state: ProviderState::Open, ..paid() }
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-12-01T{text}Z").parse().unwrap()
    }

    /// One word for the decision by a query, after some attempts and some time.
    fn query(found: ProviderLookup, attempts: u32, now: &str) -> String {
        let sent_at = Some(at("12:00:00"));
        let payment =
            Payment { attempts, charge_sent_at: sent_at, last_charge_at: sent_at, ..ours() };
        let timeouts = SagaTimeouts::new(Duration::from_secs(10));
        match decide_queried_charge(&payment, found, &timeouts, at(now)) {
            ChargeDecision::Paid(_) => "paid".to_owned(),
            ChargeDecision::Mismatch { code, .. } => format!("mismatch {code}"),
            ChargeDecision::Failed { code } => format!("failed {code}"),
            ChargeDecision::Reopen => "reopen".to_owned(),
            ChargeDecision::RetryCharge => "again".to_owned(),
            ChargeDecision::CloseDeposit => "call close deposit".to_owned(),
            ChargeDecision::Wait { code } => format!("wait {code}"),
        }
    }

    #[test]
    fn a_look_at_the_provider_tells() {
        let of = |change: fn(&mut ProviderPayment)| {
            let mut payment = paid();
            change(&mut payment);
            ProviderLookup::Payment(payment)
        };
        let timeout = || ProviderLookup::Unknown { code: "TIMEOUT".to_owned() };
        assert_eq!(query(of(|_| {}), 0, "12:00:01"), "paid");
        assert_eq!(
            query(of(|p| p.amount = Won::new(1)), 0, "12:00:01"),
            "mismatch AMOUNT_MISMATCH"
        );
        assert_eq!(
            query(of(|p| p.currency = "USD".into()), 0, "12:00:01"),
            "mismatch CURRENCY_MISMATCH"
        );
        assert_eq!(
            query(of(|p| p.channel = PaymentChannel::Test), 0, "12:00:01"),
            "mismatch TEST_CHANNEL"
        );
        assert_eq!(
            query(of(|p| p.channel = PaymentChannel::Other), 0, "12:00:01"),
            "mismatch CHANNEL_MISMATCH"
        );
        assert_eq!(query(of(|p| p.refunded = Won::new(1)), 0, "12:00:01"), "wait PARTLY_RETURNED");
        assert_eq!(query(of(|p| p.state = ProviderState::Dead), 0, "12:00:01"), "failed NOT_PAID");
        assert_eq!(
            query(of(|p| p.state = ProviderState::Refunded), 0, "12:00:01"),
            "failed RETURNED"
        );
        assert_eq!(query(of(|p| p.state = ProviderState::Open), 0, "12:00:01"), "again");
        assert_eq!(query(ProviderLookup::NotFound, 0, "12:00:01"), "again");
        assert_eq!(query(timeout(), 40, "23:00:00"), "wait TIMEOUT", "silence is never a no");
    }

    #[test]
    fn nothing_is_believed_after_several_looks_and_a_minute() {
        assert_eq!(query(ProviderLookup::NotFound, 3, "12:09:59"), "again");
        assert_eq!(query(ProviderLookup::NotFound, 4, "12:00:59"), "wait NOTHING_CHARGED");
        assert_eq!(query(ProviderLookup::NotFound, 4, "12:01:00"), "failed NOTHING_CHARGED");
    }

    #[test]
    fn ten_minutes_after_the_first_attempt_nobody_is_charged_any_more() {
        for found in [ProviderLookup::NotFound, ProviderLookup::Payment(open())] {
            assert_eq!(query(found.clone(), 0, "12:09:59"), "again");
            assert!(query(found, 0, "12:10:00").starts_with("failed"));
        }
        assert_eq!(
            query(ProviderLookup::Payment(paid()), 0, "12:10:00"),
            "paid",
            "what was paid was paid"
        );
    }

    #[test]
    fn an_account_to_pay_into_is_deposit_closed() {
        let account = ProviderPayment { state: ProviderState::Deposit, ..paid() };
        assert_eq!(
            query(ProviderLookup::Payment(account.clone()), 0, "12:00:01"),
            "call close deposit"
        );
        assert_eq!(
            decide_charge(&ours(), ProviderOutcome::Done(account)),
            ChargeDecision::CloseDeposit
        );
        let payment = Payment { failure_code: Some(METHOD_NOT_SUPPORTED.to_owned()), ..ours() };
        let dead =
            ProviderLookup::Payment(ProviderPayment { state: ProviderState::Dead, ..paid() });
        let timeouts = SagaTimeouts::new(Duration::from_secs(10));
        let failed = ChargeDecision::Failed { code: METHOD_NOT_SUPPORTED.to_owned() };
        assert_eq!(decide_queried_charge(&payment, dead, &timeouts, at("12:00:01")), failed);
    }

    #[test]
    fn a_payment_of_another_order_is_neither_a_success_nor_ours_to_give_back() {
        let foreign = ProviderPayment { order_id: "ORD_2".to_owned(), ..paid() };
        let verdict = decide_charge(&ours(), ProviderOutcome::Done(foreign.clone()));
        assert_eq!(verdict, ChargeDecision::Wait { code: "ORDER_MISMATCH".to_owned() });
        assert_eq!(query(ProviderLookup::Payment(foreign), 4, "12:01:00"), "failed ORDER_MISMATCH");
    }

    #[test]
    fn others_are_told_a_method_that_is_short_and_not_empty() {
        for (said, told) in
            [("카드", "카드"), (" ", "sandbox"), (&"가".repeat(60), &"가".repeat(50))]
        {
            let named = ProviderPayment { method: said.to_owned(), ..paid() };
            let ChargeDecision::Paid(paid) = decide_charge(&ours(), ProviderOutcome::Done(named))
            else {
                panic!("it is paid");
            };
            assert_eq!(paid.method, told);
        }
    }

    #[test]
    fn a_refusal_ends_the_first_attempt_only() {
        let no = || ProviderOutcome::Declined { code: "NO_MONEY".to_owned() };
        let failed = ChargeDecision::Failed { code: "NO_MONEY".to_owned() };
        let wait = ChargeDecision::Wait { code: "NO_MONEY".to_owned() };
        assert_eq!(decide_charge(&ours(), no()), failed);
        assert_eq!(decide_retried_charge(&ours(), no()), wait);
        let unsent = || ProviderOutcome::Unsent { code: "UNREACHABLE".to_owned() };
        let wait = ChargeDecision::Wait { code: "UNREACHABLE".to_owned() };
        assert_eq!(decide_charge(&ours(), unsent()), ChargeDecision::Reopen);
        assert_eq!(decide_retried_charge(&ours(), unsent()), wait);
    }
}
