//! Whether the ledger explains every won: what payments say about themselves against the ledger.
//!
//! The entries of one payment are proved without those of any other, so the ledger can be audited a
//! range at a time.

use std::collections::BTreeMap;
use std::fmt;

use urr_kernel::{Uuid, Won};

use super::ledger::{EntryKind, LedgerAccount};

/// What a payment says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaymentTotals {
    pub id: Uuid,
    pub charged: Won,
    pub refunded: Won,
    /// Whether the saga has no step left.
    pub is_settled: bool,
}

/// A line of the ledger with its entry. Kind and account are texts, because an audit must survive
/// names that do not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    pub payment_id: Uuid,
    pub entry_id: Uuid,
    pub kind: String,
    pub account: String,
    pub amount: Won,
}

/// Money that the ledger does not explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerDifference {
    /// The lines of an entry do not add up to zero.
    Entry { id: Uuid, payment_id: Uuid, amount: Won },
    /// The ledger's balance where the money is kept is not what the payment charged less what it
    /// refunded.
    Payment { id: Uuid, amount: Won },
    /// The payment is settled, and an account that should be empty is not.
    Left { payment_id: Uuid, account: String, amount: Won },
    /// The accounts do not add up to zero.
    Accounts { amount: Won },
    /// There is no such account.
    Account { name: String, amount: Won },
}

impl LedgerDifference {
    /// The payment that it is about, if it is about one.
    pub fn payment_id(&self) -> Option<Uuid> {
        match self {
            LedgerDifference::Entry { payment_id, .. }
            | LedgerDifference::Left { payment_id, .. } => Some(*payment_id),
            LedgerDifference::Payment { id, .. } => Some(*id),
            LedgerDifference::Accounts { .. } | LedgerDifference::Account { .. } => None,
        }
    }
}

/// The accounts that are empty when a payment is settled.
const EMPTY_WHEN_SETTLED: [LedgerAccount; 2] = [LedgerAccount::Deposits, LedgerAccount::RefundsDue];

/// The sums of the ranges that were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerSums {
    /// By the payments themselves.
    pub charged: i64,
    pub refunded: i64,
    /// By the ledger: what was delivered, and what of it was cancelled and is refunded by the
    /// provider.
    pub sold: i64,
    pub cancelled: i64,
    pub balances: BTreeMap<String, i64>,
    /// About single payments.
    pub unexplained: Vec<LedgerDifference>,
}

impl LedgerSums {
    /// Adds the payments of a range and all lines about them.
    pub fn add(&mut self, payments: &[PaymentTotals], lines: &[LedgerLine]) {
        let mut of_payment: BTreeMap<Uuid, Vec<&LedgerLine>> = BTreeMap::new();
        for line in lines {
            of_payment.entry(line.payment_id).or_default().push(line);
            self.add_amount(&line.kind, &line.account, line.amount);
        }
        for payment in payments {
            self.charged += payment.charged.amount();
            self.refunded += payment.refunded.amount();
            let lines = of_payment.get(&payment.id).map_or(&[][..], Vec::as_slice);
            find_differences(payment, lines, &mut self.unexplained);
        }
    }

    /// Adds what entries of a kind say about an account.
    pub fn add_amount(&mut self, kind: &str, account: &str, amount: Won) {
        *self.balances.entry(account.to_owned()).or_default() += amount.amount();
        let is_of = |kinds: &[EntryKind], on: LedgerAccount| {
            account == on.as_str() && kinds.iter().any(|one| one.as_str() == kind)
        };
        if is_of(&[EntryKind::Deliver], LedgerAccount::Deposits) {
            self.sold += amount.amount();
        }
        // A refund that is withdrawn or paid by other means is not refunded by the provider.
        if is_of(
            &[EntryKind::Cancel, EntryKind::Withdraw, EntryKind::Close],
            LedgerAccount::RefundsDue,
        ) {
            self.cancelled -= amount.amount();
        }
    }

    /// What is wrong with the accounts as a whole. It makes sense only if every range was added.
    pub fn unexplained_of_all(&self) -> Vec<LedgerDifference> {
        let mut found = Vec::new();
        let sum: i64 = self.balances.values().sum();
        if sum != 0 {
            found.push(LedgerDifference::Accounts { amount: Won::new(sum) });
        }
        for (name, amount) in &self.balances {
            if name.parse::<LedgerAccount>().is_err() {
                let (name, amount) = (name.clone(), Won::new(*amount));
                found.push(LedgerDifference::Account { name, amount });
            }
        }
        found
    }
}

fn find_differences(
    payment: &PaymentTotals,
    lines: &[&LedgerLine],
    found: &mut Vec<LedgerDifference>,
) {
    let mut entries: BTreeMap<Uuid, i64> = BTreeMap::new();
    let mut accounts: BTreeMap<&str, i64> = BTreeMap::new();
    for line in lines {
        *entries.entry(line.entry_id).or_default() += line.amount.amount();
        *accounts.entry(line.account.as_str()).or_default() += line.amount.amount();
    }
    let on = |account: LedgerAccount| accounts.get(account.as_str()).copied().unwrap_or(0);
    let unbalanced = entries.into_iter().filter(|(_, sum)| *sum != 0);
    found.extend(unbalanced.map(|(id, sum)| LedgerDifference::Entry {
        id,
        payment_id: payment.id,
        amount: Won::new(sum),
    }));
    let kept: i64 = LedgerAccount::KEEPING.into_iter().map(on).sum();
    let off = kept - payment.charged.amount() + payment.refunded.amount();
    if off != 0 {
        found.push(LedgerDifference::Payment { id: payment.id, amount: Won::new(off) });
    }
    for account in EMPTY_WHEN_SETTLED.into_iter().filter(|_| payment.is_settled) {
        if on(account) != 0 {
            let (account_name, amount) = (account.as_str().to_owned(), Won::new(on(account)));
            let payment_id = payment.id;
            found.push(LedgerDifference::Left { payment_id, account: account_name, amount });
        }
    }
}

impl fmt::Display for LedgerDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LedgerDifference::Entry { id, payment_id, amount } => write!(
                f,
                "payment {payment_id}: the lines of its entry {id} add up to {amount} and not to \
                 zero"
            ),
            LedgerDifference::Payment { id, amount } if amount.amount() < 0 => write!(
                f,
                "payment {id}: it says that it has {} more at the provider than the ledger does",
                Won::new(-amount.amount())
            ),
            LedgerDifference::Payment { id, amount } => {
                write!(f, "payment {id}: the ledger has {amount} more at the provider than it says")
            }
            LedgerDifference::Left { payment_id, account, amount } => {
                write!(f, "payment {payment_id}: it is settled, and {amount} are left on {account}")
            }
            LedgerDifference::Accounts { amount } => {
                write!(f, "the accounts together add up to {amount} and not to zero")
            }
            LedgerDifference::Account { name, amount } => {
                write!(f, "{amount} are on {name:?}, and there is no such account")
            }
        }
    }
}
