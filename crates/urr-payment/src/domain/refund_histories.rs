//! Histories of one purchase: tickets that are cancelled one by one, gifts, a cancellation or a
//! transfer of the rest, in whatever order we learn of them. The books balance after each.

use proptest::collection::vec;
use proptest::prelude::*;
use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::{Timestamp, Uuid, Won};

use super::ledger::{Cancellation, LedgerAccount, Posting, PurchaseAmounts};
use super::payment::tests::payment;
use super::payment::{Payment, PaymentStatus};
use super::refund::{
    PartAmounts, Refund, RefundOrigin, part_amounts, purchase_stands, refund_total,
    refundable_amount, standing_charge, standing_remainder,
};

const KIND: PayableKind = PayableKind::Reservation;

#[derive(Clone, Debug)]
enum Step {
    /// One of the tickets is cancelled; so much of its price is kept.
    Part {
        fee_percent: i64,
    },
    Gift {
        amount: i64,
    },
    /// The rest is cancelled for a fee, or handed over without one.
    End {
        fee_percent: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..=100_i64).prop_map(|fee_percent| Step::Part { fee_percent }),
        2 => (1..=120_000_i64).prop_map(|amount| Step::Gift { amount }),
        1 => (0..=100_i64).prop_map(|fee_percent| Step::End { fee_percent }),
    ]
}

struct Books {
    payment: Payment,
    price: i64,
    tickets_left: i64,
    refunds: Vec<Refund>,
    postings: Vec<Posting>,
    /// Cancelled tickets of which we learn after the rest was handed over.
    late: bool,
}

impl Books {
    fn balance(&self, account: LedgerAccount) -> i64 {
        let lines = self.postings.iter().flat_map(|posting| &posting.lines);
        lines.filter(|(of, _)| *of == account).map(|(_, amount)| amount.amount()).sum()
    }

    fn refund(&mut self, origin: RefundOrigin, amount: Won, fee: Won, posting: Posting) {
        let id = Uuid::from_u128(self.refunds.len() as u128 + 10);
        let now = Timestamp::UNIX_EPOCH;
        let refund = Refund::new(id, &self.payment, origin, amount, String::new(), now);
        self.refunds.push(Refund { fee, ..refund });
        self.postings.extend([posting, Posting::refund(amount)]);
    }

    fn apply(&mut self, step: &Step) {
        let key = self.refunds.len().to_string();
        match *step {
            Step::Part { fee_percent }
                if self.tickets_left > 1 && purchase_stands(&self.refunds) =>
            {
                self.tickets_left -= 1;
                self.cancel_part(key, fee_percent);
            }
            Step::Part { fee_percent } if self.late => {
                self.late = false;
                self.cancel_part(key, fee_percent);
            }
            Step::Gift { amount } if purchase_stands(&self.refunds) => {
                let left = standing_remainder(&self.payment, &self.refunds).amount();
                if amount < left {
                    let amount = Won::new(amount);
                    let posting = Posting::goodwill(KIND, amount);
                    self.refund(RefundOrigin::Goodwill(key), amount, Won::ZERO, posting);
                }
            }
            Step::End { fee_percent } if purchase_stands(&self.refunds) => self.end(fee_percent),
            _ => {}
        }
    }

    fn cancel_part(&mut self, key: String, fee_percent: i64) {
        let asked = Won::new(self.price - self.price * fee_percent / 100);
        let (price, stands) = (Won::new(self.price), purchase_stands(&self.refunds));
        let PartAmounts { refund, fee } = part_amounts(&self.payment, price, asked, &self.refunds);
        let posting = match stands {
            true => Posting::cancel_part(KIND, refund, fee),
            false => {
                let kept = -self.balance(LedgerAccount::CancellationFees);
                Posting::waive_fee(KIND, refund, Won::new(kept))
            }
        };
        self.refund(RefundOrigin::PartlyCancelled(key), refund, fee, posting);
    }

    fn end(&mut self, fee_percent: i64) {
        let standing = standing_charge(&self.payment, &self.refunds);
        let left = standing_remainder(&self.payment, &self.refunds);
        // One more ticket was cancelled, and we do not know of it yet.
        let is_late = self.tickets_left > 1 && fee_percent % 2 == 1;
        let rest = standing.amount() - if is_late { self.price } else { 0 };
        let kept = if is_late { 0 } else { rest * fee_percent / 100 };
        let amount = refundable_amount(&self.payment, Won::new(rest - kept), &self.refunds);
        let purchase = PurchaseAmounts { amount: standing, ..PurchaseAmounts::new(&self.payment) };
        let refunded_before = standing.minus(left).unwrap();
        let posting = Posting::cancel(Cancellation { purchase, refunded_before, refund: amount });
        let fee = left.minus(amount).unwrap();
        let origin = if is_late { RefundOrigin::Transferred } else { RefundOrigin::Cancelled };
        self.refund(origin, amount, fee, posting);
        self.late = is_late;
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let refunded = refund_total(&self.refunds).amount();
        let charged = self.payment.charged.amount();
        prop_assert!(refunded <= charged, "{} of {}", refunded, charged);
        prop_assert_eq!(self.balance(LedgerAccount::Provider), charged - refunded);
        prop_assert_eq!(self.balance(LedgerAccount::Deposits), 0);
        prop_assert_eq!(self.balance(LedgerAccount::RefundsDue), 0);
        for account in [LedgerAccount::BookingFees, LedgerAccount::CancellationFees] {
            prop_assert!(self.balance(account) <= 0, "{:?}: {}", account, self.balance(account));
        }
        let sum: i64 = LedgerAccount::ALL.map(|account| self.balance(account)).iter().sum();
        prop_assert_eq!(sum, 0);
        if !purchase_stands(&self.refunds) {
            prop_assert_eq!(self.balance(LedgerAccount::Sales), 0, "nothing is sold any more");
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn the_books_balance_after_every_step_of_every_history(
        tickets in 1..=5_i64, price in 0..=30_000_i64, booking_fee in 0..=3_000_i64,
        steps in vec(step(), 1..12),
    ) {
        let charged = Won::new(tickets * price + booking_fee);
        let booking_fee = Won::new(booking_fee);
        let paid = payment(PaymentStatus::Confirmed, None);
        let payment = Payment { amount: charged, charged, booking_fee, ..paid };
        let purchase = PurchaseAmounts::new(&payment);
        let postings = vec![Posting::charge(charged), Posting::deliver(purchase)];
        let (refunds, tickets_left, late) = (Vec::new(), tickets, false);
        let mut books = Books { payment, price, tickets_left, refunds, postings, late };
        for step in &steps {
            books.apply(step);
            books.check()?;
        }
    }
}
