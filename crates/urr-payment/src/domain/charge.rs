//! What the provider's answers about a charge mean.

use std::time::Duration;

use urr_kernel::{Timestamp, Won};

use super::payment::Payment;
use crate::provider::{Found, Outcome, ProviderPayment, ProviderState};

/// So often the same charge is tried again while the provider says that nothing was paid.
pub const CHARGES_AGAIN_MAX: u32 = 4;
/// A call that nobody waits for any more may still arrive at the provider: before this, "nothing"
/// is not believed.
pub const NOTHING_BELIEVED_AFTER: Duration = Duration::from_secs(60);

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
    /// Ask later.
    Wait { code: String },
}

/// What the answer to a first charge means.
pub fn judge_charge(payment: &Payment, outcome: Outcome<ProviderPayment>) -> Verdict {
    match outcome {
        Outcome::Done(paid) => judge_paid(payment, paid),
        Outcome::Declined { code } => Verdict::Failed { code },
        Outcome::Unknown { code } => Verdict::Wait { code },
    }
}

/// What the answer to another attempt at the same charge means. A refusal of it says nothing of the
/// first attempt: whether that one charged is for the next look at the provider to tell.
pub fn judge_charge_again(payment: &Payment, outcome: Outcome<ProviderPayment>) -> Verdict {
    match outcome {
        Outcome::Done(paid) => judge_paid(payment, paid),
        Outcome::Declined { code } | Outcome::Unknown { code } => Verdict::Wait { code },
    }
}

/// What the provider's own view of the order means. `sent_at` is when it was last asked to charge.
pub fn judge_found(payment: &Payment, found: Found, sent_at: Timestamp, now: Timestamp) -> Verdict {
    let unpaid = |code: &str| {
        if payment.looks < CHARGES_AGAIN_MAX {
            return Verdict::ChargeAgain;
        }
        let code = payment.failure_code.clone().unwrap_or_else(|| code.to_owned());
        match now >= sent_at + NOTHING_BELIEVED_AFTER {
            true => Verdict::Failed { code },
            false => Verdict::Wait { code },
        }
    };
    match found {
        Found::Unknown { code } => Verdict::Wait { code },
        Found::Nothing => unpaid("NOTHING_CHARGED"),
        Found::Payment(found) if found.order_id != payment.order_id => unpaid("ORDER_MISMATCH"),
        Found::Payment(found) => match found.state {
            ProviderState::Open => unpaid("NOT_PAID"),
            ProviderState::Paid => judge_paid(payment, found),
            ProviderState::Returned => Verdict::Failed { code: "RETURNED".to_owned() },
            ProviderState::Dead => Verdict::Failed { code: "NOT_PAID".to_owned() },
        },
    }
}

/// A payment of another order is not ours, whatever the provider calls it: it is no success, and not
/// ours to give back.
fn judge_paid(payment: &Payment, paid: ProviderPayment) -> Verdict {
    if paid.order_id != payment.order_id {
        return Verdict::Wait { code: "ORDER_MISMATCH".to_owned() };
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
        return Verdict::Wait { code: "PARTLY_RETURNED".to_owned() };
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
            amount: Won::new(100_000),
            currency: "KRW".to_owned(),
            state: ProviderState::Paid,
            returned: Won::ZERO,
            method: "card".to_owned(),
            approved_at: None,
            receipt_url: None,
        }
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-12-01T{text}Z").parse().unwrap()
    }

    /// One word for what a look means, after so many looks, so long after the charge was sent.
    fn look(found: Found, looks: u32, now: &str) -> String {
        let payment = Payment { looks, ..ours() };
        match judge_found(&payment, found, at("12:00:00"), at(now)) {
            Verdict::Paid(_) => "paid".to_owned(),
            Verdict::Mismatch { code, .. } => format!("mismatch {code}"),
            Verdict::Failed { code } => format!("failed {code}"),
            Verdict::ChargeAgain => "again".to_owned(),
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
        assert_eq!(look(Found::Nothing, 3, "12:30:00"), "again");
        assert_eq!(look(Found::Nothing, 4, "12:00:59"), "wait NOTHING_CHARGED");
        assert_eq!(look(Found::Nothing, 4, "12:01:00"), "failed NOTHING_CHARGED");
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
    }
}
