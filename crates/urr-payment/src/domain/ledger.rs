//! What every movement of money is in the books: lines that add up to zero.
//!
//! What we have or are owed is above zero, what we owe or have earned is below.

use urr_kernel::Won;

use super::payment::{PayableKind, Payment, named};

named! {
    /// Where money is.
    LedgerAccount {
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

impl LedgerAccount {
    pub const ALL: [LedgerAccount; 9] = [
        LedgerAccount::Provider,
        LedgerAccount::Deposits,
        LedgerAccount::Sales,
        LedgerAccount::BookingFees,
        LedgerAccount::CancellationFees,
        LedgerAccount::RefundsDue,
        LedgerAccount::Memberships,
        LedgerAccount::TransferFees,
        LedgerAccount::PaidOtherwise,
    ];

    /// Where the price goes of what is sold.
    fn of_price(kind: PayableKind) -> LedgerAccount {
        match kind {
            PayableKind::Reservation | PayableKind::Transfer => LedgerAccount::Sales,
            PayableKind::Membership => LedgerAccount::Memberships,
        }
    }

    /// Where the fee goes that is part of the price.
    pub fn of_fee(kind: PayableKind) -> LedgerAccount {
        match kind {
            PayableKind::Reservation | PayableKind::Membership => LedgerAccount::BookingFees,
            PayableKind::Transfer => LedgerAccount::TransferFees,
        }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Charge,
    Deliver,
    Cancel,
    Return,
    Refund,
    Withdraw,
    Close,
}

impl EntryKind {
    pub const fn name(self) -> &'static str {
        match self {
            EntryKind::Charge => "charge",
            EntryKind::Deliver => "deliver",
            EntryKind::Cancel => "cancel",
            EntryKind::Return => "return",
            EntryKind::Refund => "refund",
            EntryKind::Withdraw => "withdraw",
            EntryKind::Close => "close",
        }
    }
}

/// A movement of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub kind: EntryKind,
    /// No two of one account, none of zero.
    pub lines: Vec<(LedgerAccount, Won)>,
}

impl Posting {
    fn new(kind: EntryKind, lines: &[(LedgerAccount, i64)]) -> Posting {
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
        Posting::new(
            EntryKind::Charge,
            &[(LedgerAccount::Provider, amount), (LedgerAccount::Deposits, -amount)],
        )
    }

    /// The buyer has what was paid for.
    pub fn deliver(sale: PurchaseAmounts) -> Posting {
        let (amount, fee) = (sale.amount.amount(), sale.fee.amount());
        let lines = [
            (LedgerAccount::Deposits, amount),
            (LedgerAccount::of_price(sale.kind), fee - amount),
            (LedgerAccount::of_fee(sale.kind), -fee),
        ];
        Posting::new(EntryKind::Deliver, &lines)
    }

    /// What was delivered is cancelled: the sale is undone. Of what is kept, the fee that is part
    /// of the price stays what it is and the rest is a cancellation fee.
    pub fn cancel(cancelled: Cancellation) -> Posting {
        let Cancellation { sale: PurchaseAmounts { kind, amount, fee }, given_before, refund } =
            cancelled;
        let kept = amount.amount() - given_before.amount() - refund.amount();
        let fee_kept = fee.amount().min(kept);
        let lines = [
            (LedgerAccount::of_price(kind), amount.amount() - fee.amount() - given_before.amount()),
            (LedgerAccount::of_fee(kind), fee.amount() - fee_kept),
            (LedgerAccount::CancellationFees, fee_kept - kept),
            (LedgerAccount::RefundsDue, -refund.amount()),
        ];
        Posting::new(EntryKind::Cancel, &lines)
    }

    /// A part of a sale is given back, and the sale stands.
    pub fn goodwill(kind: PayableKind, refund: Won) -> Posting {
        let refund = refund.amount();
        let lines = [(LedgerAccount::of_price(kind), refund), (LedgerAccount::RefundsDue, -refund)];
        Posting::new(EntryKind::Cancel, &lines)
    }

    /// What was kept of a cancelled sale is given back after all: the cancellation fee first, then
    /// the fee that was part of the price. `cancellation_fee` is what is left of the first.
    pub fn waive_fee(kind: PayableKind, refund: Won, cancellation_fee: Won) -> Posting {
        let (refund, first) = (refund.amount(), refund.min(cancellation_fee).amount());
        let lines = [
            (LedgerAccount::CancellationFees, first),
            (LedgerAccount::of_fee(kind), refund - first),
            (LedgerAccount::RefundsDue, -refund),
        ];
        Posting::new(EntryKind::Cancel, &lines)
    }

    /// Something is not given back after all: what owed it is undone.
    pub fn withdraw(owed: &[(LedgerAccount, Won)]) -> Posting {
        let lines: Vec<(LedgerAccount, i64)> =
            owed.iter().map(|(account, amount)| (*account, -amount.amount())).collect();
        Posting::new(EntryKind::Withdraw, &lines)
    }

    /// Something was given back by other means than the provider.
    pub fn close(amount: Won) -> Posting {
        let amount = amount.amount();
        let lines = [(LedgerAccount::RefundsDue, amount), (LedgerAccount::PaidOtherwise, -amount)];
        Posting::new(EntryKind::Close, &lines)
    }

    /// Nothing was given for the money: all of it is to go back.
    pub fn reverse_charge(amount: Won) -> Posting {
        let amount = amount.amount();
        Posting::new(
            EntryKind::Return,
            &[(LedgerAccount::Deposits, amount), (LedgerAccount::RefundsDue, -amount)],
        )
    }

    /// The provider has given money back.
    pub fn refund(amount: Won) -> Posting {
        let amount = amount.amount();
        Posting::new(
            EntryKind::Refund,
            &[(LedgerAccount::RefundsDue, amount), (LedgerAccount::Provider, -amount)],
        )
    }
}

/// What was sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurchaseAmounts {
    pub kind: PayableKind,
    pub amount: Won,
    /// Part of the amount.
    pub fee: Won,
}

impl PurchaseAmounts {
    pub fn of(payment: &Payment) -> PurchaseAmounts {
        PurchaseAmounts {
            kind: payment.payable.kind,
            amount: payment.charged,
            fee: payment.booking_fee,
        }
    }
}

/// What is cancelled of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancellation {
    pub sale: PurchaseAmounts,
    /// Given back while the sale stood.
    pub given_before: Won,
    pub refund: Won,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(postings: &[Posting], account: LedgerAccount) -> i64 {
        let lines = postings.iter().flat_map(|posting| &posting.lines);
        lines.filter(|(of, _)| *of == account).map(|(_, amount)| amount.amount()).sum()
    }

    fn ticket(amount: i64, fee: i64) -> PurchaseAmounts {
        PurchaseAmounts {
            kind: PayableKind::Reservation,
            amount: Won::new(amount),
            fee: Won::new(fee),
        }
    }

    fn balances(postings: &[Posting]) -> [i64; 9] {
        LedgerAccount::ALL.map(|account| sum(postings, account))
    }

    #[test]
    fn a_cancelled_sale_leaves_only_what_was_kept() {
        let sale = ticket(102_000, 2_000);
        let refund = Won::new(70_000);
        let mut books = vec![
            Posting::charge(sale.amount),
            Posting::deliver(sale),
            Posting::cancel(Cancellation { sale, given_before: Won::ZERO, refund }),
            Posting::refund(refund),
        ];
        assert_eq!(balances(&books), [32_000, 0, 0, -2_000, -30_000, 0, 0, 0, 0]);
        let kind = PayableKind::Reservation;
        books.push(Posting::waive_fee(kind, Won::new(31_000), Won::new(30_000)));
        books.push(Posting::refund(Won::new(31_000)));
        assert_eq!(balances(&books), [1_000, 0, 0, -1_000, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_ticket_that_is_handed_over_is_sold_once_and_the_fee_is_kept() {
        let sold = ticket(102_000, 2_000);
        let handed_over = PurchaseAmounts {
            kind: PayableKind::Transfer,
            amount: Won::new(112_200),
            fee: Won::new(10_200),
        };
        let given_before = Won::ZERO;
        let books = [
            Posting::charge(sold.amount),
            Posting::deliver(sold),
            Posting::charge(handed_over.amount),
            Posting::deliver(handed_over),
            Posting::cancel(Cancellation { sale: sold, given_before, refund: sold.amount }),
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
                Posting::cancel(Cancellation { sale, given_before, refund }),
                Posting::refund(refund),
            ];
            prop_assert_eq!(sum(&books, LedgerAccount::Deposits), 0);
            prop_assert_eq!(sum(&books, LedgerAccount::RefundsDue), 0);
            prop_assert_eq!(sum(&books, LedgerAccount::Sales), 0);
            let left = amount - before - refund.amount();
            prop_assert_eq!(sum(&books, LedgerAccount::Provider), left);
            prop_assert!(sum(&books, LedgerAccount::BookingFees) <= 0);
            prop_assert!(sum(&books, LedgerAccount::CancellationFees) <= 0);
        }
    }
}
