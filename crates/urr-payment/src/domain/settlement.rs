//! The settlement of an event: what was sold, what went back, what was kept. It is a sum over the
//! ledger's lines about the event, by the same rules as the audit of the whole ledger.

use std::collections::BTreeMap;

use urr_kernel::Won;

use super::ledger::LedgerAccount;
use super::ledger_audit::LedgerSums;

/// The lines of a kind on an account, added up. Both are texts, as for an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSum {
    pub kind: String,
    pub account: String,
    pub amount: Won,
}

/// What an event has earned. `gross` less `refunds` and `paid_otherwise` is what was kept: sales and
/// fees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// What buyers paid for what they got.
    pub gross: Won,
    /// What of it goes back through the provider, paid or due.
    pub refunds: Won,
    /// What went back by other means.
    pub paid_otherwise: Won,
    pub sales: Won,
    pub booking_fees: Won,
    pub cancellation_fees: Won,
    pub transfer_fees: Won,
    /// Refunds that are not done yet; part of `refunds`.
    pub refunds_due: Won,
    /// Charged, and neither delivered nor to be refunded yet.
    pub undelivered: Won,
    /// At the provider, for us.
    pub at_provider: Won,
    /// In the till of the box office, and at its card terminal.
    pub box_office_cash: Won,
    pub box_office_card: Won,
    /// Every account, as the audit has it.
    pub balances: BTreeMap<String, i64>,
}

impl Settlement {
    pub fn new(lines: &[LedgerSum]) -> Settlement {
        let mut sums = LedgerSums::default();
        for line in lines {
            sums.add_amount(&line.kind, &line.account, line.amount);
        }
        let balance =
            |account: LedgerAccount| sums.balances.get(account.as_str()).copied().unwrap_or(0);
        // What we owe or have earned is below zero in the ledger.
        let earned = |account| Won::new(-balance(account));
        Settlement {
            gross: Won::new(sums.sold),
            refunds: Won::new(sums.cancelled),
            paid_otherwise: earned(LedgerAccount::PaidOtherwise),
            sales: earned(LedgerAccount::Sales),
            booking_fees: earned(LedgerAccount::BookingFees),
            cancellation_fees: earned(LedgerAccount::CancellationFees),
            transfer_fees: earned(LedgerAccount::TransferFees),
            refunds_due: earned(LedgerAccount::RefundsDue),
            undelivered: earned(LedgerAccount::Deposits),
            at_provider: Won::new(balance(LedgerAccount::Provider)),
            box_office_cash: Won::new(balance(LedgerAccount::BoxOfficeCash)),
            box_office_card: Won::new(balance(LedgerAccount::BoxOfficeCard)),
            balances: sums.balances,
        }
    }

    /// What is kept for us, wherever it is.
    pub fn held(&self) -> Won {
        let places = [self.at_provider, self.box_office_cash, self.box_office_card];
        Won::new(places.iter().map(|place| place.amount()).sum())
    }

    /// Sales and fees together.
    pub fn kept(&self) -> Won {
        let parts = [self.sales, self.booking_fees, self.cancellation_fees, self.transfer_fees];
        Won::new(parts.iter().map(|part| part.amount()).sum())
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::internal::ticket::PayableKind;

    use super::*;
    use crate::domain::ledger::{Cancellation, Posting, PurchaseAmounts};

    fn settle(postings: &[Posting]) -> Settlement {
        let lines = postings.iter().flat_map(|posting| {
            posting.lines.iter().map(|(account, amount)| LedgerSum {
                kind: posting.kind.as_str().to_owned(),
                account: account.as_str().to_owned(),
                amount: *amount,
            })
        });
        Settlement::new(&lines.collect::<Vec<_>>())
    }

    #[test]
    fn what_was_sold_less_what_went_back_is_what_was_kept() {
        let kind = PayableKind::Reservation;
        let purchase = PurchaseAmounts { kind, amount: Won::new(102_000), fee: Won::new(2_000) };
        let (refunded_before, refund) = (Won::new(5_000), Won::new(60_000));
        let mut postings = vec![
            Posting::charge(purchase.amount),
            Posting::deliver(purchase),
            Posting::charge(purchase.amount),
            Posting::deliver(purchase),
            Posting::goodwill(kind, refunded_before),
            Posting::close(refunded_before),
            Posting::cancel(Cancellation { purchase, refunded_before, refund }),
        ];
        let settled = settle(&postings);
        assert_eq!(settled.gross, Won::new(204_000));
        assert_eq!((settled.refunds, settled.paid_otherwise), (refund, refunded_before));
        assert_eq!((settled.refunds_due, settled.undelivered), (refund, Won::ZERO));
        assert_eq!(settled.kept(), Won::new(204_000 - 65_000));
        assert_eq!(settled.sales, Won::new(100_000));
        assert_eq!(settled.booking_fees, Won::new(4_000));
        assert_eq!(settled.cancellation_fees, Won::new(35_000));
        // The refund is done: what was sold and kept stays.
        postings.push(Posting::refund(refund));
        let done = settle(&postings);
        assert_eq!((done.refunds_due, done.refunds), (Won::ZERO, refund));
        assert_eq!(done.kept(), settled.kept());
        assert_eq!(done.at_provider, Won::new(204_000 - 60_000));
    }
}
