//! What every movement of money is in the books: lines that add up to zero.
//!
//! What we have or are owed is above zero, what we owe or have earned is below.

use urr_kernel::Won;

use super::payment::{Payment, TargetKind, named};

named! {
    /// Where money is.
    Account {
        /// At the provider, for us.
        Provider = "provider",
        /// Taken, and nothing given for it yet.
        Deposits = "deposits",
        /// Tickets, whoever sold them.
        Sales = "sales",
        BookingFees = "booking_fees",
        CancellationFees = "cancellation_fees",
        /// To be given back.
        RefundsDue = "refunds_due",
        Memberships = "memberships",
        /// What buyers pay for handing a ticket over.
        TransferFees = "transfer_fees",
        /// Given back from elsewhere, where the provider would not: what it has for us includes it.
        PaidOtherwise = "paid_otherwise",
    }
}

impl Account {
    pub const ALL: [Account; 9] = [
        Account::Provider,
        Account::Deposits,
        Account::Sales,
        Account::BookingFees,
        Account::CancellationFees,
        Account::RefundsDue,
        Account::Memberships,
        Account::TransferFees,
        Account::PaidOtherwise,
    ];

    /// Where the price goes of what is sold.
    fn of_price(kind: TargetKind) -> Account {
        match kind {
            TargetKind::Reservation | TargetKind::Transfer => Account::Sales,
            TargetKind::Membership => Account::Memberships,
        }
    }

    /// Where the fee goes that is part of the price.
    pub fn of_fee(kind: TargetKind) -> Account {
        match kind {
            TargetKind::Reservation | TargetKind::Membership => Account::BookingFees,
            TargetKind::Transfer => Account::TransferFees,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Charge,
    Deliver,
    Cancel,
    Return,
    Refund,
    Withdraw,
    Close,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Charge => "charge",
            Kind::Deliver => "deliver",
            Kind::Cancel => "cancel",
            Kind::Return => "return",
            Kind::Refund => "refund",
            Kind::Withdraw => "withdraw",
            Kind::Close => "close",
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
    pub fn deliver(sale: Sale) -> Posting {
        let (amount, fee) = (sale.amount.amount(), sale.fee.amount());
        let lines = [
            (Account::Deposits, amount),
            (Account::of_price(sale.kind), fee - amount),
            (Account::of_fee(sale.kind), -fee),
        ];
        Posting::new(Kind::Deliver, &lines)
    }

    /// What was delivered is cancelled: the sale is undone. Of what is kept, the fee that is part
    /// of the price stays what it is and the rest is a cancellation fee.
    pub fn cancel(cancelled: Cancelled) -> Posting {
        let Cancelled { sale: Sale { kind, amount, fee }, given_before, refund } = cancelled;
        let kept = amount.amount() - given_before.amount() - refund.amount();
        let fee_kept = fee.amount().min(kept);
        let lines = [
            (Account::of_price(kind), amount.amount() - fee.amount() - given_before.amount()),
            (Account::of_fee(kind), fee.amount() - fee_kept),
            (Account::CancellationFees, fee_kept - kept),
            (Account::RefundsDue, -refund.amount()),
        ];
        Posting::new(Kind::Cancel, &lines)
    }

    /// A part of a sale is given back, and the sale stands.
    pub fn goodwill(kind: TargetKind, refund: Won) -> Posting {
        let refund = refund.amount();
        let lines = [(Account::of_price(kind), refund), (Account::RefundsDue, -refund)];
        Posting::new(Kind::Cancel, &lines)
    }

    /// What was kept of a cancelled sale is given back after all: the cancellation fee first, then
    /// the fee that was part of the price. `cancellation_fee` is what is left of the first.
    pub fn waive_fee(kind: TargetKind, refund: Won, cancellation_fee: Won) -> Posting {
        let (refund, first) = (refund.amount(), refund.min(cancellation_fee).amount());
        let lines = [
            (Account::CancellationFees, first),
            (Account::of_fee(kind), refund - first),
            (Account::RefundsDue, -refund),
        ];
        Posting::new(Kind::Cancel, &lines)
    }

    /// Something is not given back after all: what owed it is undone.
    pub fn withdraw(owed: &[(Account, Won)]) -> Posting {
        let lines: Vec<(Account, i64)> =
            owed.iter().map(|(account, amount)| (*account, -amount.amount())).collect();
        Posting::new(Kind::Withdraw, &lines)
    }

    /// Something was given back by other means than the provider.
    pub fn close(amount: Won) -> Posting {
        let amount = amount.amount();
        let lines = [(Account::RefundsDue, amount), (Account::PaidOtherwise, -amount)];
        Posting::new(Kind::Close, &lines)
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

/// What was sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sale {
    pub kind: TargetKind,
    pub amount: Won,
    /// Part of the amount.
    pub fee: Won,
}

impl Sale {
    pub fn of(payment: &Payment) -> Sale {
        Sale { kind: payment.target.kind, amount: payment.charged, fee: payment.booking_fee }
    }
}

/// What is cancelled of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled {
    pub sale: Sale,
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

    fn ticket(amount: i64, fee: i64) -> Sale {
        Sale { kind: TargetKind::Reservation, amount: Won::new(amount), fee: Won::new(fee) }
    }

    fn balances(postings: &[Posting]) -> [i64; 9] {
        Account::ALL.map(|account| sum(postings, account))
    }

    #[test]
    fn a_cancelled_sale_leaves_only_what_was_kept() {
        let sale = ticket(102_000, 2_000);
        let refund = Won::new(70_000);
        let mut books = vec![
            Posting::charge(sale.amount),
            Posting::deliver(sale),
            Posting::cancel(Cancelled { sale, given_before: Won::ZERO, refund }),
            Posting::refund(refund),
        ];
        assert_eq!(balances(&books), [32_000, 0, 0, -2_000, -30_000, 0, 0, 0, 0]);
        let kind = TargetKind::Reservation;
        books.push(Posting::waive_fee(kind, Won::new(31_000), Won::new(30_000)));
        books.push(Posting::refund(Won::new(31_000)));
        assert_eq!(balances(&books), [1_000, 0, 0, -1_000, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_ticket_that_is_handed_over_is_sold_once_and_the_fee_is_kept() {
        let sold = ticket(102_000, 2_000);
        let handed_over =
            Sale { kind: TargetKind::Transfer, amount: Won::new(112_200), fee: Won::new(10_200) };
        let given_before = Won::ZERO;
        let books = [
            Posting::charge(sold.amount),
            Posting::deliver(sold),
            Posting::charge(handed_over.amount),
            Posting::deliver(handed_over),
            Posting::cancel(Cancelled { sale: sold, given_before, refund: sold.amount }),
            Posting::refund(sold.amount),
        ];
        assert_eq!(balances(&books), [112_200, 0, -102_000, 0, 0, 0, 0, -10_200, 0]);
    }

    #[test]
    fn what_is_withdrawn_or_paid_otherwise_is_not_owed_any_more() {
        let sale = ticket(102_000, 2_000);
        let goodwill = Posting::goodwill(sale.kind, Won::new(5_000));
        let mut books =
            vec![Posting::charge(sale.amount), Posting::deliver(sale), goodwill.clone()];
        let before = balances(&books[..2]);
        books.push(Posting::withdraw(&goodwill.lines));
        assert_eq!(balances(&books), before);
        books.pop();
        books.push(Posting::close(Won::new(5_000)));
        assert_eq!(balances(&books), [102_000, 0, -95_000, -2_000, 0, 0, 0, 0, -5_000]);
    }

    proptest! {
        #[test]
        fn whatever_is_kept_the_books_balance_and_nothing_is_owed(
            amount in 0_i64..1_000_000, fee in 0_i64..1_000_000,
            before in 0_i64..1_000_000, refund in 0_i64..1_000_000,
        ) {
            let (fee, before) = (fee.min(amount), before.min(amount));
            let refund = refund.min(amount - before);
            let sale = ticket(amount, fee);
            let [given_before, refund] = [before, refund].map(Won::new);
            let books = [
                Posting::charge(sale.amount),
                Posting::deliver(sale),
                Posting::goodwill(sale.kind, given_before),
                Posting::refund(given_before),
                Posting::cancel(Cancelled { sale, given_before, refund }),
                Posting::refund(refund),
            ];
            prop_assert_eq!(sum(&books, Account::Deposits), 0);
            prop_assert_eq!(sum(&books, Account::RefundsDue), 0);
            prop_assert_eq!(sum(&books, Account::Sales), 0);
            let left = amount - before - refund.amount();
            prop_assert_eq!(sum(&books, Account::Provider), left);
            prop_assert!(sum(&books, Account::BookingFees) <= 0);
            prop_assert!(sum(&books, Account::CancellationFees) <= 0);
        }
    }
}
