//! What every movement of money is in the books: lines that add up to zero.
//!
//! What we have or are owed is above zero, what we owe or have earned is below.

use urr_kernel::Won;

use super::payment::named;

named! {
    /// Where money is.
    Account {
        /// At the provider, for us.
        Provider = "provider",
        /// Taken, and nothing given for it yet.
        Deposits = "deposits",
        Sales = "sales",
        BookingFees = "booking_fees",
        CancellationFees = "cancellation_fees",
        /// To be given back.
        RefundsDue = "refunds_due",
        Memberships = "memberships",
        /// To be given to sellers.
        TransfersDue = "transfers_due",
    }
}

impl Account {
    pub const ALL: [Account; 8] = [
        Account::Provider,
        Account::Deposits,
        Account::Sales,
        Account::BookingFees,
        Account::CancellationFees,
        Account::RefundsDue,
        Account::Memberships,
        Account::TransfersDue,
    ];
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Charge,
    Deliver,
    Cancel,
    Return,
    Refund,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Charge => "charge",
            Kind::Deliver => "deliver",
            Kind::Cancel => "cancel",
            Kind::Return => "return",
            Kind::Refund => "refund",
        }
    }
}

/// A movement of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub kind: Kind,
    /// No two of one account, none of zero.
    pub lines: Vec<(Account, Won)>,
}

impl Posting {
    fn new(kind: Kind, lines: &[(Account, i64)]) -> Posting {
        let sum: i64 = lines.iter().map(|(_, amount)| amount).sum();
        assert_eq!(sum, 0, "the lines of a {kind:?} add up to zero: {lines:?}");
        let lines = lines.iter().filter(|(_, amount)| *amount != 0);
        Posting {
            kind,
            lines: lines.map(|(account, amount)| (*account, Won::new(*amount))).collect(),
        }
    }

    /// The provider has taken money.
    pub fn charge(amount: Won) -> Posting {
        let amount = amount.amount();
        Posting::new(Kind::Charge, &[(Account::Provider, amount), (Account::Deposits, -amount)])
    }

    /// The buyer has what was paid for.
    pub fn deliver(amount: Won, booking_fee: Won) -> Posting {
        let (amount, fee) = (amount.amount(), booking_fee.amount());
        let lines = [
            (Account::Deposits, amount),
            (Account::Sales, fee - amount),
            (Account::BookingFees, -fee),
        ];
        Posting::new(Kind::Deliver, &lines)
    }

    /// What was delivered is cancelled: the sale is undone. Of what is kept, the booking fee stays
    /// what it is and the rest is a cancellation fee.
    pub fn cancel(cancelled: Cancelled) -> Posting {
        let Cancelled { amount, booking_fee, given_before, refund } = cancelled;
        let kept = amount.amount() - given_before.amount() - refund.amount();
        let fee_kept = booking_fee.amount().min(kept);
        let lines = [
            (Account::Sales, amount.amount() - booking_fee.amount() - given_before.amount()),
            (Account::BookingFees, booking_fee.amount() - fee_kept),
            (Account::CancellationFees, fee_kept - kept),
            (Account::RefundsDue, -refund.amount()),
        ];
        Posting::new(Kind::Cancel, &lines)
    }

    /// A part of a sale is given back, and the sale stands.
    pub fn goodwill(refund: Won) -> Posting {
        let refund = refund.amount();
        Posting::new(Kind::Cancel, &[(Account::Sales, refund), (Account::RefundsDue, -refund)])
    }

    /// What was kept of a cancelled sale is given back after all.
    pub fn waive_fee(refund: Won) -> Posting {
        let refund = refund.amount();
        let lines = [(Account::CancellationFees, refund), (Account::RefundsDue, -refund)];
        Posting::new(Kind::Cancel, &lines)
    }

    /// Nothing was given for the money: all of it is to go back.
    pub fn give_back(amount: Won) -> Posting {
        let amount = amount.amount();
        Posting::new(Kind::Return, &[(Account::Deposits, amount), (Account::RefundsDue, -amount)])
    }

    /// The provider has given money back.
    pub fn refund(amount: Won) -> Posting {
        let amount = amount.amount();
        Posting::new(Kind::Refund, &[(Account::RefundsDue, amount), (Account::Provider, -amount)])
    }
}

/// What is cancelled of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled {
    pub amount: Won,
    pub booking_fee: Won,
    /// Given back while the sale stood.
    pub given_before: Won,
    pub refund: Won,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(postings: &[Posting], account: Account) -> i64 {
        let lines = postings.iter().flat_map(|posting| &posting.lines);
        lines.filter(|(of, _)| *of == account).map(|(_, amount)| amount.amount()).sum()
    }

    #[test]
    fn a_cancelled_sale_leaves_only_what_was_kept() {
        let (amount, booking_fee) = (Won::new(102_000), Won::new(2_000));
        let refund = Won::new(70_000);
        let cancelled = Cancelled { amount, booking_fee, given_before: Won::ZERO, refund };
        let books = [
            Posting::charge(amount),
            Posting::deliver(amount, booking_fee),
            Posting::cancel(cancelled),
            Posting::refund(refund),
        ];
        let left = Account::ALL.map(|account| sum(&books, account));
        assert_eq!(left, [32_000, 0, 0, -2_000, -30_000, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn whatever_is_kept_the_books_balance_and_nothing_is_owed(
            amount in 0_i64..1_000_000, fee in 0_i64..1_000_000,
            before in 0_i64..1_000_000, refund in 0_i64..1_000_000,
        ) {
            let (fee, before) = (fee.min(amount), before.min(amount));
            let refund = refund.min(amount - before);
            let [amount, booking_fee, given_before, refund] =
                [amount, fee, before, refund].map(Won::new);
            let books = [
                Posting::charge(amount),
                Posting::deliver(amount, booking_fee),
                Posting::goodwill(given_before),
                Posting::refund(given_before),
                Posting::cancel(Cancelled { amount, booking_fee, given_before, refund }),
                Posting::refund(refund),
            ];
            prop_assert_eq!(sum(&books, Account::Deposits), 0);
            prop_assert_eq!(sum(&books, Account::RefundsDue), 0);
            prop_assert_eq!(sum(&books, Account::Sales), 0);
            let left = amount.amount() - given_before.amount() - refund.amount();
            prop_assert_eq!(sum(&books, Account::Provider), left);
            prop_assert!(sum(&books, Account::BookingFees) <= 0);
            prop_assert!(sum(&books, Account::CancellationFees) <= 0);
        }
    }
}
