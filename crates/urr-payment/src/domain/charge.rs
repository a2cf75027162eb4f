//! What the provider's answers about a charge mean.

use std::time::Duration;

use urr_kernel::{Timestamp, Won};

use super::patience::Patience;
use super::payment::Payment;
use crate::provider::{Found, Outcome, ProviderPayment, ProviderState};

/// So often the same charge is tried again while the provider says that nothing was paid.
pub const CHARGES_AGAIN_MAX: u32 = 4;
/// A buyer who has waited so long since the first attempt does not expect to be charged any more.
pub const CHARGED_AGAIN_WITHIN: Duration = Duration::from_secs(10 * 60);

/// The provider tells of another order than it was asked for.
pub const ORDER_MISMATCH: &str = "ORDER_MISMATCH";
/// A part of the charge is back, by somebody else's hand.
pub const PARTLY_RETURNED: &str = "PARTLY_RETURNED";
/// Surely nothing was sent to the provider.
pub const PROVIDER_UNAVAILABLE: &str = "PROVIDER_UNAVAILABLE";
/// The buyer has chosen to pay later, by transferring money to an account. Seats do not wait so
/// long.
pub const METHOD_NOT_SUPPORTED: &str = "METHOD_NOT_SUPPORTED";

/// So long may the name of a payment method be at the ticket office.
const METHOD_CHARS_MAX: usize = 50;

/// What is now known of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What was ordered was paid.
    Paid(ProviderPayment),
    /// Something else was paid on this order: all of it goes back (P3).
    Mismatch { paid: ProviderPayment, code: &'static str },
    /// Nothing was taken, and nothing will be.
    Failed { code: String },
    /// The same charge, by the same key, may be tried again.
    ChargeAgain,
    /// The buyer was given an account to pay into: the provider is told to close it.
    CallOff,
    /// Ask later.
    Wait { code: String },
}

/// What the answer to a first charge means.
pub fn judge_charge(payment: &Payment, outcome: Outcome<ProviderPayment>) -> Verdict {
    match outcome {
        Outcome::Done(paid) => judge_paid(payment, paid),
        Outcome::Declined { code } => Verdict::Failed { code },
        Outcome::Unsent { .. } => Verdict::Failed { code: PROVIDER_UNAVAILABLE.to_owned() },
        Outcome::Unknown { code } => Verdict::Wait { code },
    }
}

/// What the answer to another attempt at the same charge means. A refusal of it says nothing of the
/// first attempt: whether that one charged is for the next look at the provider to tell.
pub fn judge_charge_again(payment: &Payment, outcome: Outcome<ProviderPayment>) -> Verdict {
    match outcome {
        Outcome::Done(paid) => judge_paid(payment, paid),
        Outcome::Declined { code } | Outcome::Unsent { code } | Outcome::Unknown { code } => {
            Verdict::Wait { code }
        }
    }
}

/// What the provider's own view of the order means.
pub fn judge_found(
    payment: &Payment,
    found: Found,
    patience: &Patience,
    now: Timestamp,
) -> Verdict {
    let first_sent_at = payment.charge_sent_at.unwrap_or(payment.updated_at);
    let last_sent_at = payment.last_charge_at.unwrap_or(first_sent_at);
    let unpaid = |code: &str| {
        if payment.looks < CHARGES_AGAIN_MAX && now < first_sent_at + CHARGED_AGAIN_WITHIN {
            return Verdict::ChargeAgain;
        }
        let code = payment.failure_code.clone().unwrap_or_else(|| code.to_owned());
        match now >= last_sent_at + patience.nothing_believed_after {
            true => Verdict::Failed { code },
            false => Verdict::Wait { code },
        }
    };
    let is_called_off = payment.failure_code.as_deref() == Some(METHOD_NOT_SUPPORTED);
    match found {
        Found::Unknown { code } => Verdict::Wait { code },
        Found::Nothing => unpaid("NOTHING_CHARGED"),
        Found::Payment(found) if found.order_id != payment.order_id => unpaid(ORDER_MISMATCH),
        Found::Payment(found) => match found.state {
            ProviderState::Open => unpaid("NOT_PAID"),
            ProviderState::Paid | ProviderState::Deposit => judge_paid(payment, found),
            ProviderState::Returned | ProviderState::Dead if is_called_off => {
                Verdict::Failed { code: METHOD_NOT_SUPPORTED.to_owned() }
            }
            ProviderState::Returned => Verdict::Failed { code: "RETURNED".to_owned() },
            ProviderState::Dead => Verdict::Failed { code: "NOT_PAID".to_owned() },
        },
    }
}

/// A payment of another order is not ours, whatever the provider calls it: it is no success, and not
/// ours to give back.
fn judge_paid(payment: &Payment, paid: ProviderPayment) -> Verdict {
    if paid.order_id != payment.order_id {
        return Verdict::Wait { code: ORDER_MISMATCH.to_owned() };
    }
    if paid.state == ProviderState::Deposit {
        return Verdict::CallOff;
    }
    if paid.state != ProviderState::Paid {
        return Verdict::Wait { code: "NOT_PAID".to_owned() };
    }
    if paid.currency != payment.currency {
        return Verdict::Mismatch { paid, code: "CURRENCY_MISMATCH" };
    }
    if paid.amount != payment.amount {
        return Verdict::Mismatch { paid, code: "AMOUNT_MISMATCH" };
    }
    let paid = ProviderPayment { method: method_name(&paid, payment), ..paid };
    if paid.returned != Won::ZERO {
        // Somebody has had a hand in it: so must somebody of ours.
        return Verdict::Wait { code: PARTLY_RETURNED.to_owned() };
    }
    Verdict::Paid(paid)
}

/// What others are told of the method: never nothing, and never much.
fn method_name(paid: &ProviderPayment, payment: &Payment) -> String {
    match paid.method.trim() {
        "" => payment.provider.clone(),
        method => method.chars().take(METHOD_CHARS_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::payment::{Status, Step};
    use super::*;

    fn ours() -> Payment {
        super::super::payment::tests::payment(Status::Unknown, Some(Step::Query))
    }

    fn paid() -> ProviderPayment {
        ProviderPayment {
            order_id: "ORD_1".to_owned(),
            payment_key: "key".to_owned(),
            transaction_id: None,
            amount: Won::new(100_000),
            currency: "KRW".to_owned(),
            state: ProviderState::Paid,
            returned: Won::ZERO,
            method: "card".to_owned(),
            approved_at: None,
            receipt_url: None,
        }
    }

    fn open() -> ProviderPayment {
        ProviderPayment { state: ProviderState::Open, ..paid() }
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-12-01T{text}Z").parse().unwrap()
    }

    /// One word for what a look means, after so many looks, so long after the charge was sent.
    fn look(found: Found, looks: u32, now: &str) -> String {
        let sent_at = Some(at("12:00:00"));
        let payment = Payment { looks, charge_sent_at: sent_at, last_charge_at: sent_at, ..ours() };
        let patience = Patience::of(Duration::from_secs(10));
        match judge_found(&payment, found, &patience, at(now)) {
            Verdict::Paid(_) => "paid".to_owned(),
            Verdict::Mismatch { code, .. } => format!("mismatch {code}"),
            Verdict::Failed { code } => format!("failed {code}"),
            Verdict::ChargeAgain => "again".to_owned(),
            Verdict::CallOff => "call off".to_owned(),
            Verdict::Wait { code } => format!("wait {code}"),
        }
    }

    #[test]
    fn a_look_at_the_provider_tells() {
        let of = |change: fn(&mut ProviderPayment)| {
            let mut payment = paid();
            change(&mut payment);
            Found::Payment(payment)
        };
        let timeout = || Found::Unknown { code: "TIMEOUT".to_owned() };
        assert_eq!(look(of(|_| {}), 0, "12:00:01"), "paid");
        assert_eq!(look(of(|p| p.amount = Won::new(1)), 0, "12:00:01"), "mismatch AMOUNT_MISMATCH");
        assert_eq!(
            look(of(|p| p.currency = "USD".into()), 0, "12:00:01"),
            "mismatch CURRENCY_MISMATCH"
        );
        assert_eq!(look(of(|p| p.returned = Won::new(1)), 0, "12:00:01"), "wait PARTLY_RETURNED");
        assert_eq!(look(of(|p| p.state = ProviderState::Dead), 0, "12:00:01"), "failed NOT_PAID");
        assert_eq!(
            look(of(|p| p.state = ProviderState::Returned), 0, "12:00:01"),
            "failed RETURNED"
        );
        assert_eq!(look(of(|p| p.state = ProviderState::Open), 0, "12:00:01"), "again");
        assert_eq!(look(Found::Nothing, 0, "12:00:01"), "again");
        assert_eq!(look(timeout(), 40, "23:00:00"), "wait TIMEOUT", "silence is never a no");
    }

    #[test]
    fn nothing_is_believed_after_several_looks_and_a_minute() {
        assert_eq!(look(Found::Nothing, 3, "12:09:59"), "again");
        assert_eq!(look(Found::Nothing, 4, "12:00:59"), "wait NOTHING_CHARGED");
        assert_eq!(look(Found::Nothing, 4, "12:01:00"), "failed NOTHING_CHARGED");
    }

    #[test]
    fn ten_minutes_after_the_first_attempt_nobody_is_charged_any_more() {
        for found in [Found::Nothing, Found::Payment(open())] {
            assert_eq!(look(found.clone(), 0, "12:09:59"), "again");
            assert!(look(found, 0, "12:10:00").starts_with("failed"));
        }
        assert_eq!(look(Found::Payment(paid()), 0, "12:10:00"), "paid", "what was paid was paid");
    }

    #[test]
    fn an_account_to_pay_into_is_called_off() {
        let account = ProviderPayment { state: ProviderState::Deposit, ..paid() };
        assert_eq!(look(Found::Payment(account.clone()), 0, "12:00:01"), "call off");
        assert_eq!(judge_charge(&ours(), Outcome::Done(account)), Verdict::CallOff);
        let payment = Payment { failure_code: Some(METHOD_NOT_SUPPORTED.to_owned()), ..ours() };
        let dead = Found::Payment(ProviderPayment { state: ProviderState::Dead, ..paid() });
        let patience = Patience::of(Duration::from_secs(10));
        let failed = Verdict::Failed { code: METHOD_NOT_SUPPORTED.to_owned() };
        assert_eq!(judge_found(&payment, dead, &patience, at("12:00:01")), failed);
    }

    #[test]
    fn a_payment_of_another_order_is_neither_a_success_nor_ours_to_give_back() {
        let foreign = ProviderPayment { order_id: "ORD_2".to_owned(), ..paid() };
        let verdict = judge_charge(&ours(), Outcome::Done(foreign.clone()));
        assert_eq!(verdict, Verdict::Wait { code: "ORDER_MISMATCH".to_owned() });
        assert_eq!(look(Found::Payment(foreign), 4, "12:01:00"), "failed ORDER_MISMATCH");
    }

    #[test]
    fn others_are_told_a_method_that_is_short_and_not_empty() {
        for (said, told) in
            [("카드", "카드"), (" ", "sandbox"), (&"가".repeat(60), &"가".repeat(50))]
        {
            let named = ProviderPayment { method: said.to_owned(), ..paid() };
            let Verdict::Paid(paid) = judge_charge(&ours(), Outcome::Done(named)) else {
                panic!("it is paid");
            };
            assert_eq!(paid.method, told);
        }
    }

    #[test]
    fn a_refusal_ends_the_first_attempt_only() {
        let no = || Outcome::Declined { code: "NO_MONEY".to_owned() };
        let failed = Verdict::Failed { code: "NO_MONEY".to_owned() };
        let wait = Verdict::Wait { code: "NO_MONEY".to_owned() };
        assert_eq!(judge_charge(&ours(), no()), failed);
        assert_eq!(judge_charge_again(&ours(), no()), wait);
        let unsent = || Outcome::Unsent { code: "UNREACHABLE".to_owned() };
        let failed = Verdict::Failed { code: PROVIDER_UNAVAILABLE.to_owned() };
        let wait = Verdict::Wait { code: "UNREACHABLE".to_owned() };
        assert_eq!(judge_charge(&ours(), unsent()), failed);
        assert_eq!(judge_charge_again(&ours(), unsent()), wait);
    }
}
