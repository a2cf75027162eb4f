//! The ledger's accounts and entries. The lines of an entry add up to zero.
//!
//! What we have or are owed is above zero; what we owe or have earned is below.

use urr_contracts::internal::ticket::PayableKind;
use urr_kernel::Won;
use urr_storage::storable_enum;

use super::payment::Payment;

/// Where money is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LedgerAccount {
    /// At the provider, for us.
    Provider,
    /// Charged, and not delivered yet.
    Deposits,
    /// Tickets, also those that a member sold on.
    Sales,
    BookingFees,
    CancellationFees,
    /// To be refunded.
    RefundsDue,
    Memberships,
    /// What buyers pay for a transfer.
    TransferFees,
    /// Refunded by other means where the provider would not: its balance still includes it.
    PaidOtherwise,
    /// In the till of the box office.
    BoxOfficeCash,
    /// At the box office's card terminal.
    BoxOfficeCard,
}

storable_enum!(LedgerAccount {
    Provider => "provider",
    Deposits => "deposits",
    Sales => "sales",
    BookingFees => "booking_fees",
    CancellationFees => "cancellation_fees",
    RefundsDue => "refunds_due",
    Memberships => "memberships",
    TransferFees => "transfer_fees",
    PaidOtherwise => "paid_otherwise",
    BoxOfficeCash => "box_office_cash",
    BoxOfficeCard => "box_office_card",
});

impl LedgerAccount {
    /// Where money that was paid is kept.
    pub const KEEPING: [LedgerAccount; 3] =
        [LedgerAccount::Provider, LedgerAccount::BoxOfficeCash, LedgerAccount::BoxOfficeCard];

    /// The account of the price.
    fn of_price(kind: PayableKind) -> LedgerAccount {
        match kind {
            PayableKind::Reservation | PayableKind::Transfer => LedgerAccount::Sales,
            PayableKind::Membership => LedgerAccount::Memberships,
        }
    }

    /// The account of the fee that is part of the price.
    fn of_fee(kind: PayableKind) -> LedgerAccount {
        match kind {
            PayableKind::Reservation | PayableKind::Membership => LedgerAccount::BookingFees,
            PayableKind::Transfer => LedgerAccount::TransferFees,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Charge,
    Deliver,
    /// What was delivered, or a part of it, is to be refunded.
    Cancel,
    /// What was not delivered is to be refunded.
    Return,
    Refund,
    Withdraw,
    Close,
}

storable_enum!(EntryKind {
    Charge => "charge",
    Deliver => "deliver",
    Cancel => "cancel",
    Return => "return",
    Refund => "refund",
    Withdraw => "withdraw",
    Close => "close",
});

/// The lines of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub kind: EntryKind,
    /// At most one line per account, and none of zero.
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

    /// Adds the amount to one account and takes it from another.
    fn between(kind: EntryKind, to: LedgerAccount, from: LedgerAccount, amount: Won) -> Posting {
        Posting::new(kind, &[(to, amount.amount()), (from, -amount.amount())])
    }

    /// The provider has charged.
    pub fn charge(amount: Won) -> Posting {
        Posting::between(
            EntryKind::Charge,
            LedgerAccount::Provider,
            LedgerAccount::Deposits,
            amount,
        )
    }

    /// The box office has taken money.
    pub fn take(account: LedgerAccount, amount: Won) -> Posting {
        Posting::between(EntryKind::Charge, account, LedgerAccount::Deposits, amount)
    }

    /// The buyer got what was paid.
    pub fn deliver(purchase: PurchaseAmounts) -> Posting {
        let (amount, fee) = (purchase.amount.amount(), purchase.fee.amount());
        let lines = [
            (LedgerAccount::Deposits, amount),
            (LedgerAccount::of_price(purchase.kind), fee - amount),
            (LedgerAccount::of_fee(purchase.kind), -fee),
        ];
        Posting::new(EntryKind::Deliver, &lines)
    }

    /// A delivered purchase is cancelled. Of what is kept, the fee that is part of the price stays
    /// what it is, and the rest is a cancellation fee.
    pub fn cancel(cancelled: Cancellation) -> Posting {
        let Cancellation {
            purchase: PurchaseAmounts { kind, amount, fee },
            refunded_before,
            refund,
        } = cancelled;
        let kept = amount.amount() - refunded_before.amount() - refund.amount();
        let fee_kept = fee.amount().min(kept);
        let lines = [
            (
                LedgerAccount::of_price(kind),
                amount.amount() - fee.amount() - refunded_before.amount(),
            ),
            (LedgerAccount::of_fee(kind), fee.amount() - fee_kept),
            (LedgerAccount::CancellationFees, fee_kept - kept),
            (LedgerAccount::RefundsDue, -refund.amount()),
        ];
        Posting::new(EntryKind::Cancel, &lines)
    }

    /// Tickets of a delivered purchase are cancelled, and the others stand. Refund and fee together
    /// are their price.
    pub fn cancel_part(kind: PayableKind, refund: Won, fee: Won) -> Posting {
        let (refund, fee) = (refund.amount(), fee.amount());
        let lines = [
            (LedgerAccount::of_price(kind), refund + fee),
            (LedgerAccount::CancellationFees, -fee),
            (LedgerAccount::RefundsDue, -refund),
        ];
        Posting::new(EntryKind::Cancel, &lines)
    }

    /// A part of a purchase is refunded, and the purchase stands.
    pub fn goodwill(kind: PayableKind, refund: Won) -> Posting {
        let price = LedgerAccount::of_price(kind);
        Posting::between(EntryKind::Cancel, price, LedgerAccount::RefundsDue, refund)
    }

    /// What was kept of a cancelled purchase is refunded after all: the cancellation fee first, then
    /// the fee that was part of the price. `cancellation_fee` is what is left of the former.
    pub fn waive_fee(kind: PayableKind, refund: Won, cancellation_fee: Won) -> Posting {
        let (refund, first) = (refund.amount(), refund.min(cancellation_fee).amount());
        let lines = [
            (LedgerAccount::CancellationFees, first),
            (LedgerAccount::of_fee(kind), refund - first),
            (LedgerAccount::RefundsDue, -refund),
        ];
        Posting::new(EntryKind::Cancel, &lines)
    }

    /// A refund is withdrawn: the lines that owed it are reversed.
    pub fn withdraw(owed: &[(LedgerAccount, Won)]) -> Posting {
        let lines: Vec<(LedgerAccount, i64)> =
            owed.iter().map(|(account, amount)| (*account, -amount.amount())).collect();
        Posting::new(EntryKind::Withdraw, &lines)
    }

    /// A refund was paid by other means than the provider.
    pub fn close(amount: Won) -> Posting {
        let (due, otherwise) = (LedgerAccount::RefundsDue, LedgerAccount::PaidOtherwise);
        Posting::between(EntryKind::Close, due, otherwise, amount)
    }

    /// Nothing was delivered: the whole charge is to be refunded.
    pub fn reverse_charge(amount: Won) -> Posting {
        let (deposits, due) = (LedgerAccount::Deposits, LedgerAccount::RefundsDue);
        Posting::between(EntryKind::Return, deposits, due, amount)
    }

    /// The provider has refunded.
    #[cfg(test)]
    pub fn refund(amount: Won) -> Posting {
        Posting::give_back(LedgerAccount::Provider, amount)
    }

    /// What was due was given back from there.
    pub fn give_back(account: LedgerAccount, amount: Won) -> Posting {
        Posting::between(EntryKind::Refund, LedgerAccount::RefundsDue, account, amount)
    }
}

/// The amounts of a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurchaseAmounts {
    pub kind: PayableKind,
    pub amount: Won,
    /// Part of the amount.
    pub fee: Won,
}

impl PurchaseAmounts {
    pub fn new(payment: &Payment) -> PurchaseAmounts {
        PurchaseAmounts {
            kind: payment.payable.kind,
            amount: payment.charged,
            fee: payment.booking_fee,
        }
    }
}

/// The amounts of a cancelled purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancellation {
    pub purchase: PurchaseAmounts,
    /// Refunded while the purchase stood.
    pub refunded_before: Won,
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

    fn balances(postings: &[Posting]) -> [i64; 11] {
        LedgerAccount::ALL.map(|account| sum(postings, account))
    }

    #[test]
    fn a_cancelled_sale_leaves_only_what_was_kept() {
        let purchase = ticket(102_000, 2_000);
        let refund = Won::new(70_000);
        let mut postings = vec![
            Posting::charge(purchase.amount),
            Posting::deliver(purchase),
            Posting::cancel(Cancellation { purchase, refunded_before: Won::ZERO, refund }),
            Posting::refund(refund),
        ];
        assert_eq!(balances(&postings), [32_000, 0, 0, -2_000, -30_000, 0, 0, 0, 0, 0, 0]);
        let kind = PayableKind::Reservation;
        postings.push(Posting::waive_fee(kind, Won::new(31_000), Won::new(30_000)));
        postings.push(Posting::refund(Won::new(31_000)));
        assert_eq!(balances(&postings), [1_000, 0, 0, -1_000, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_ticket_that_is_handed_over_is_sold_once_and_the_fee_is_kept() {
        let sold = ticket(102_000, 2_000);
        let handed_over = PurchaseAmounts {
            kind: PayableKind::Transfer,
            amount: Won::new(112_200),
            fee: Won::new(10_200),
        };
        let refunded_before = Won::ZERO;
        let postings = [
            Posting::charge(sold.amount),
            Posting::deliver(sold),
            Posting::charge(handed_over.amount),
            Posting::deliver(handed_over),
            Posting::cancel(Cancellation { purchase: sold, refunded_before, refund: sold.amount }),
            Posting::refund(sold.amount),
        ];
        assert_eq!(balances(&postings), [112_200, 0, -102_000, 0, 0, 0, 0, -10_200, 0, 0, 0]);
    }

    #[test]
    fn what_is_withdrawn_or_paid_otherwise_is_not_owed_any_more() {
        let purchase = ticket(102_000, 2_000);
        let goodwill = Posting::goodwill(purchase.kind, Won::new(5_000));
        let mut postings =
            vec![Posting::charge(purchase.amount), Posting::deliver(purchase), goodwill.clone()];
        let before = balances(&postings[..2]);
        postings.push(Posting::withdraw(&goodwill.lines));
        assert_eq!(balances(&postings), before);
        postings.pop();
        postings.push(Posting::close(Won::new(5_000)));
        assert_eq!(balances(&postings), [102_000, 0, -95_000, -2_000, 0, 0, 0, 0, -5_000, 0, 0]);
    }

    proptest! {
        #[test]
        fn whatever_is_kept_the_books_balance_and_nothing_is_owed(
            amount in 0_i64..1_000_000, fee in 0_i64..1_000_000,
            before in 0_i64..1_000_000, refund in 0_i64..1_000_000,
        ) {
            let (fee, before) = (fee.min(amount), before.min(amount));
            let refund = refund.min(amount - before);
            let purchase = ticket(amount, fee);
            let [refunded_before, refund] = [before, refund].map(Won::new);
            let postings = [
                Posting::charge(purchase.amount),
                Posting::deliver(purchase),
                Posting::goodwill(purchase.kind, refunded_before),
                Posting::refund(refunded_before),
                Posting::cancel(Cancellation { purchase, refunded_before, refund }),
                Posting::refund(refund),
            ];
            prop_assert_eq!(sum(&postings, LedgerAccount::Deposits), 0);
            prop_assert_eq!(sum(&postings, LedgerAccount::RefundsDue), 0);
            prop_assert_eq!(sum(&postings, LedgerAccount::Sales), 0);
            let left = amount - before - refund.amount();
            prop_assert_eq!(sum(&postings, LedgerAccount::Provider), left);
            prop_assert!(sum(&postings, LedgerAccount::BookingFees) <= 0);
            prop_assert!(sum(&postings, LedgerAccount::CancellationFees) <= 0);
        }
    }
}
