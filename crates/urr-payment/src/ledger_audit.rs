//! The proof of the ledger: every won that was charged is a sale, a fee, or was refunded.

use std::fmt;

use urr_kernel::{Uuid, Won};
use urr_storage::DbResult;

use crate::PaymentService;
use crate::domain::ledger::LedgerAccount;
use crate::domain::ledger_audit::{LedgerDifference, LedgerSums};
use crate::store::ledger::{self, EntryMark, LedgerRange};

/// How many differences are listed. One is too many.
const LISTED_MAX: usize = 100;
/// How many ranges are a part: what is read in a second or two.
const RANGES_PER_PART: usize = 20;
/// How many payments, or entries, one transaction reads.
const READ_AT_ONCE: u32 = 1_000;

/// The sums of the whole ledger, and what they do not explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProof {
    /// By the payments themselves.
    pub charged: Won,
    pub refunded: Won,
    /// By the ledger: what was delivered, and what of it was cancelled and is refunded.
    pub sold: Won,
    pub cancelled: Won,
    /// In the order of [`LedgerAccount::ALL`].
    pub balances: Vec<(LedgerAccount, Won)>,
    /// Empty if all is well.
    pub unexplained: Vec<LedgerDifference>,
}

impl LedgerProof {
    fn of(sums: LedgerSums) -> LedgerProof {
        let mut unexplained = sums.unexplained_of_all();
        unexplained.splice(0..0, sums.unexplained.into_iter().take(LISTED_MAX));
        let balance = |account: LedgerAccount| {
            (account, Won::new(sums.balances.get(account.as_str()).copied().unwrap_or(0)))
        };
        LedgerProof {
            charged: Won::new(sums.charged),
            refunded: Won::new(sums.refunded),
            sold: Won::new(sums.sold),
            cancelled: Won::new(sums.cancelled),
            balances: LedgerAccount::ALL.into_iter().map(balance).collect(),
            unexplained,
        }
    }

    pub fn balance(&self, account: LedgerAccount) -> Won {
        let found = self.balances.iter().find(|(of, _)| *of == account);
        found.map_or(Won::ZERO, |(_, balance)| *balance)
    }

    /// What was charged and is neither delivered nor to be refunded yet.
    pub fn undelivered(&self) -> Won {
        Won::new(-self.balance(LedgerAccount::Deposits).amount())
    }

    /// What is to be refunded.
    pub fn owed(&self) -> Won {
        Won::new(-self.balance(LedgerAccount::RefundsDue).amount())
    }

    pub fn is_balanced(&self) -> bool {
        self.unexplained.is_empty()
    }
}

/// The proof of some payments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerPart {
    pub proof: LedgerProof,
    /// The last of its payments; none if it was the last part.
    pub next: Option<Uuid>,
}

impl PaymentService {
    /// Proves the whole ledger, a range at a time. Each payment is read in one transaction.
    pub async fn prove_ledger(&self) -> DbResult<LedgerProof> {
        let mut sums = LedgerSums::default();
        let mut after = Uuid::nil();
        while let Some(until) = self.add_payments(after, &mut sums).await? {
            after = until;
            sums.unexplained.truncate(LISTED_MAX);
        }
        Ok(LedgerProof::of(sums))
    }

    /// Proves the next payments after one. All entries of a payment are in its part, so the accounts
    /// of each part add up by themselves.
    pub async fn prove_ledger_part(&self, after: Option<Uuid>) -> DbResult<LedgerPart> {
        let mut sums = LedgerSums::default();
        let mut next = Some(after.unwrap_or(Uuid::nil()));
        for _ in 0..RANGES_PER_PART {
            let Some(after) = next else { break };
            next = self.add_payments(after, &mut sums).await?;
        }
        Ok(LedgerPart { proof: LedgerProof::of(sums), next })
    }

    /// Adds the next payments. Returns the last of them; none if there are no more.
    pub(crate) async fn add_payments(
        &self,
        after: Uuid,
        sums: &mut LedgerSums,
    ) -> DbResult<Option<Uuid>> {
        let find = self.read(move |tx| ledger::payment_find_after(tx, after, READ_AT_ONCE));
        let Some(until) = find.await? else { return Ok(None) };
        self.add_range(LedgerRange::Payments { after, until }, sums).await?;
        Ok(Some(until))
    }

    /// Adds the payments of the next entries.
    pub(crate) async fn add_entries(
        &self,
        after: EntryMark,
        sums: &mut LedgerSums,
    ) -> DbResult<Option<EntryMark>> {
        let find = self.read(move |tx| ledger::entry_find_after(tx, after, READ_AT_ONCE));
        let Some(until) = find.await? else { return Ok(None) };
        self.add_range(LedgerRange::Entries { after, until }, sums).await?;
        Ok(Some(until))
    }

    /// Payments and lines are read in one transaction: a payment and its entries must be of the same
    /// moment.
    async fn add_range(&self, range: LedgerRange, sums: &mut LedgerSums) -> DbResult<()> {
        let read = self.read(move |tx| {
            Ok((ledger::totals_list(tx, &range)?, ledger::lines_list(tx, &range)?))
        });
        let (payments, lines) = read.await?;
        sums.add(&payments, &lines);
        Ok(())
    }

    /// What the ledger does not explain about one payment.
    pub(crate) async fn prove_payment(&self, id: Uuid) -> DbResult<Vec<LedgerDifference>> {
        let mut sums = LedgerSums::default();
        self.add_range(LedgerRange::One(id), &mut sums).await?;
        Ok(sums.unexplained)
    }
}

impl fmt::Display for LedgerProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "charged            {:>20}", self.charged.to_string())?;
        writeln!(f, "refunded           {:>20}", self.refunded.to_string())?;
        for (account, balance) in &self.balances {
            writeln!(f, "{:<19}{:>20}", account.as_str(), balance.to_string())?;
        }
        for difference in &self.unexplained {
            writeln!(f, "unexplained: {difference:?}")?;
        }
        f.write_str(if self.is_balanced() { "balanced" } else { "NOT BALANCED" })
    }
}
