//! The proof of the books: every won that was taken is a sale, a fee, or was given back.

use std::fmt;

use urr_kernel::{Uuid, Won};
use urr_storage::{StorageError, Tx};

use crate::PaymentService;
use crate::domain::ledger::LedgerAccount;
use crate::domain::ledger_audit::{LedgerDifference, LedgerLine, LedgerSums, PaymentTotals};
use crate::store::ledger::{self, EntryMark, LedgerRange};

/// So many differences are named. One is too many.
const NAMED_MAX: usize = 100;
/// So many payments, or entries, are read at one moment.
const AT_ONCE: u32 = 1_000;

/// What the books say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerAudit {
    /// By the payments themselves.
    pub charged: Won,
    pub refunded: Won,
    /// By the books: what was handed over, and what of that was cancelled and goes back.
    pub sold: Won,
    pub cancelled: Won,
    /// In the order of [`LedgerAccount::ALL`].
    pub balances: Vec<(LedgerAccount, Won)>,
    /// Empty if all is well.
    pub unexplained: Vec<LedgerDifference>,
}

impl LedgerAudit {
    pub fn balance(&self, account: LedgerAccount) -> Won {
        let found = self.balances.iter().find(|(of, _)| *of == account);
        found.map_or(Won::ZERO, |(_, balance)| *balance)
    }

    /// What was taken and is neither handed over nor to go back yet.
    pub fn undelivered(&self) -> Won {
        Won::new(-self.balance(LedgerAccount::Deposits).amount())
    }

    /// What is to go back and has not gone yet.
    pub fn owed(&self) -> Won {
        Won::new(-self.balance(LedgerAccount::RefundsDue).amount())
    }

    pub fn is_balanced(&self) -> bool {
        self.unexplained.is_empty()
    }
}

impl PaymentService {
    /// Goes through the whole books, a stretch at a time: each payment's are read at one moment.
    pub async fn audit_ledger(&self) -> Result<LedgerAudit, StorageError> {
        let mut sums = LedgerSums::default();
        let mut after = Uuid::nil();
        while let Some(until) = self.add_payments(after, &mut sums).await? {
            after = until;
        }
        let mut unexplained = sums.unexplained_of_all();
        unexplained.splice(0..0, sums.unexplained.into_iter().take(NAMED_MAX));
        let balance = |account: LedgerAccount| {
            (account, Won::new(sums.balances.get(account.name()).copied().unwrap_or(0)))
        };
        Ok(LedgerAudit {
            charged: Won::new(sums.charged),
            refunded: Won::new(sums.refunded),
            sold: Won::new(sums.sold),
            cancelled: Won::new(sums.cancelled),
            balances: LedgerAccount::ALL.into_iter().map(balance).collect(),
            unexplained,
        })
    }

    /// Adds the next payments and says which is the last of them; none if there are no more.
    pub(crate) async fn add_payments(
        &self,
        after: Uuid,
        sums: &mut LedgerSums,
    ) -> Result<Option<Uuid>, StorageError> {
        let stretch = self.0.db.read(move |tx| {
            let Some(until) = ledger::payment_after(tx, after, AT_ONCE)? else { return Ok(None) };
            let stretch = LedgerRange::PaymentService { after, until };
            Ok::<_, StorageError>(Some((until, read(tx, &stretch)?)))
        });
        Ok(stretch.await?.map(|(until, (payments, lines))| {
            sums.add(&payments, &lines);
            until
        }))
    }

    /// The same for the payments of the next entries.
    pub(crate) async fn add_entries(
        &self,
        after: EntryMark,
        sums: &mut LedgerSums,
    ) -> Result<Option<EntryMark>, StorageError> {
        let stretch = self.0.db.read(move |tx| {
            let Some(until) = ledger::entry_after(tx, after, AT_ONCE)? else { return Ok(None) };
            let stretch = LedgerRange::Entries { after, until };
            Ok::<_, StorageError>(Some((until, read(tx, &stretch)?)))
        });
        Ok(stretch.await?.map(|(until, (payments, lines))| {
            sums.add(&payments, &lines);
            until
        }))
    }

    /// What nobody can explain about one payment.
    pub(crate) async fn find_differences(
        &self,
        id: Uuid,
    ) -> Result<Vec<LedgerDifference>, StorageError> {
        let found = self.0.db.read(move |tx| read(tx, &LedgerRange::One(id))).await?;
        let mut sums = LedgerSums::default();
        sums.add(&found.0, &found.1);
        Ok(sums.unexplained)
    }
}

fn read(
    tx: &mut Tx<'_>,
    stretch: &LedgerRange,
) -> Result<(Vec<PaymentTotals>, Vec<LedgerLine>), StorageError> {
    Ok((ledger::accounts(tx, stretch)?, ledger::lines(tx, stretch)?))
}

impl fmt::Display for LedgerAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "charged            {:>20}", self.charged.to_string())?;
        writeln!(f, "refunded           {:>20}", self.refunded.to_string())?;
        for (account, balance) in &self.balances {
            writeln!(f, "{:<19}{:>20}", account.name(), balance.to_string())?;
        }
        for difference in &self.unexplained {
            writeln!(f, "unexplained: {difference:?}")?;
        }
        let verdict =
            if self.is_balanced() { "nothing is unexplained" } else { "THE BOOKS ARE WRONG" };
        write!(f, "{verdict}")
    }
}
