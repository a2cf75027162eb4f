//! The proof of the books: every won that was taken is a sale, a fee, or was given back.

use std::fmt;

use urr_kernel::{Uuid, Won};
use urr_storage::StorageError;

use crate::Payments;
use crate::domain::postings::Account;
use crate::store::ledger;

/// So many differences are named. One is too many.
const NAMED_MAX: u32 = 100;

/// What the books say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// By the payments themselves.
    pub charged: Won,
    pub refunded: Won,
    /// In the order of [`Account::ALL`].
    pub balances: Vec<(Account, Won)>,
    /// Empty if all is well.
    pub unexplained: Vec<Unexplained>,
}

/// Money that nobody can explain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unexplained {
    /// The lines of an entry do not add up to zero.
    Entry { id: Uuid, amount: Won },
    /// What the books have at the provider is not what a payment took and gave back.
    Payment { id: Uuid, amount: Won },
    /// A payment has come to its end, and something is left on an account that should be empty.
    Left { payment_id: Uuid, account: String, amount: Won },
    /// The accounts do not add up to zero.
    Books { amount: Won },
    /// An account that does not exist.
    Account { name: String, amount: Won },
}

impl Proof {
    pub fn balance(&self, account: Account) -> Won {
        let found = self.balances.iter().find(|(of, _)| *of == account);
        found.map_or(Won::ZERO, |(_, balance)| *balance)
    }

    pub fn holds(&self) -> bool {
        self.unexplained.is_empty()
    }
}

impl Payments {
    /// Reads the whole books, at one moment.
    pub async fn prove(&self) -> Result<Proof, StorageError> {
        let proof = self.0.db.read(|tx| {
            let (charged, refunded) = ledger::totals(tx)?;
            let stored = ledger::balances(tx)?;
            let mut unexplained = Vec::new();
            let entries = ledger::entries_unbalanced(tx, NAMED_MAX)?.into_iter();
            unexplained.extend(entries.map(|(id, amount)| Unexplained::Entry { id, amount }));
            let payments = ledger::payments_off(tx, NAMED_MAX)?.into_iter();
            unexplained.extend(payments.map(|(id, amount)| Unexplained::Payment { id, amount }));
            let left = ledger::payments_owing(tx, NAMED_MAX)?.into_iter();
            unexplained.extend(left.map(|(payment_id, account, amount)| Unexplained::Left {
                payment_id,
                account,
                amount,
            }));
            let sum: i64 = stored.iter().map(|(_, balance)| balance.amount()).sum();
            if sum != 0 {
                unexplained.push(Unexplained::Books { amount: Won::new(sum) });
            }
            for (name, amount) in &stored {
                if Account::parse(name).is_none() {
                    let (name, amount) = (name.clone(), *amount);
                    unexplained.push(Unexplained::Account { name, amount });
                }
            }
            let balances = Account::ALL.into_iter().map(|account| {
                let found = stored.iter().find(|(name, _)| name == account.name());
                (account, found.map_or(Won::ZERO, |(_, balance)| *balance))
            });
            let balances = balances.collect();
            Ok::<_, StorageError>(Proof { charged, refunded, balances, unexplained })
        });
        let proof = proof.await?;
        self.0.figures.note_proof(&proof);
        Ok(proof)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "charged            {:>20}", self.charged.to_string())?;
        writeln!(f, "refunded           {:>20}", self.refunded.to_string())?;
        for (account, balance) in &self.balances {
            writeln!(f, "{:<19}{:>20}", account.name(), balance.to_string())?;
        }
        for difference in &self.unexplained {
            writeln!(f, "unexplained: {difference:?}")?;
        }
        let verdict = if self.holds() { "nothing is unexplained" } else { "THE BOOKS ARE WRONG" };
        write!(f, "{verdict}")
    }
}
