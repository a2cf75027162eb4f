//! The books in SQL: written once, never changed.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx, params};

use crate::domain::payment::PaymentId;
use crate::domain::postings::{Kind, Posting};
use crate::domain::refund::RefundId;

/// What an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryOf {
    /// Of the entry.
    pub id: Uuid,
    pub payment_id: PaymentId,
    pub refund_id: Option<RefundId>,
    pub now: Timestamp,
}

pub fn entry_insert(tx: &mut Tx<'_>, of: EntryOf, posting: &Posting) -> Result<(), StorageError> {
    let EntryOf { id, payment_id, refund_id, now } = of;
    tx.execute(
        "insert into ledger_entries (id, at, payment_id, refund_id, kind) \
         values ($1, $2, $3, $4, $5)",
        params![id, now, payment_id.0, refund_id.map(|id| id.0), posting.kind.name()],
    )?;
    for (account, amount) in &posting.lines {
        tx.execute(
            "insert into ledger_lines (entry_id, account, amount) values ($1, $2, $3)",
            params![id, account.name(), *amount],
        )?;
    }
    Ok(())
}

/// Whether something is in the books of a payment.
pub fn entry_exists(
    tx: &mut Tx<'_>,
    payment_id: PaymentId,
    kind: Kind,
) -> Result<bool, StorageError> {
    let sql = "select count(*) as entries from ledger_entries where payment_id = $1 and kind = $2";
    let entries: i64 =
        tx.query_one(sql, params![payment_id.0, kind.name()], |row| row.get("entries"))?;
    Ok(entries > 0)
}

/// What is on every account.
pub fn balances(tx: &mut Tx<'_>) -> Result<Vec<(String, Won)>, StorageError> {
    tx.query(
        "select account, cast(sum(amount) as bigint) as balance from ledger_lines \
         group by account order by account",
        &[],
        |row| Ok((row.get("account")?, row.get("balance")?)),
    )
}

/// Everything that was taken and everything that was given back, by the payments themselves.
pub fn totals(tx: &mut Tx<'_>) -> Result<(Won, Won), StorageError> {
    tx.query_one(
        "select cast(coalesce(sum(charged_amount), 0) as bigint) as charged, \
         cast(coalesce(sum(refunded_amount), 0) as bigint) as refunded from payments",
        &[],
        |row| Ok((row.get("charged")?, row.get("refunded")?)),
    )
}

/// Entries whose lines do not add up to zero, and by how much.
pub fn entries_unbalanced(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<(Uuid, Won)>, StorageError> {
    tx.query(
        "select entry_id, cast(sum(amount) as bigint) as balance from ledger_lines \
         group by entry_id having sum(amount) <> 0 order by entry_id limit $1",
        params![limit],
        |row| Ok((row.get("entry_id")?, row.get("balance")?)),
    )
}

/// Payments whose money at the provider is not what was taken less what was given back.
pub fn payments_off(tx: &mut Tx<'_>, limit: u32) -> Result<Vec<(Uuid, Won)>, StorageError> {
    tx.query(
        "select p.id, cast(coalesce(b.balance, 0) - p.charged_amount + p.refunded_amount \
         as bigint) as balance from payments as p left join \
         (select e.payment_id, sum(l.amount) as balance from ledger_entries as e \
          join ledger_lines as l on l.entry_id = e.id where l.account = 'provider' \
          group by e.payment_id) as b on b.payment_id = p.id \
         where coalesce(b.balance, 0) <> p.charged_amount - p.refunded_amount \
         order by p.id limit $1",
        params![limit],
        |row| Ok((row.get("id")?, row.get("balance")?)),
    )
}

/// Payments with nothing left to do of which something was taken and nothing given for it, or
/// something is still to be given back.
pub fn payments_owing(
    tx: &mut Tx<'_>,
    limit: u32,
) -> Result<Vec<(Uuid, String, Won)>, StorageError> {
    tx.query(
        "select p.id, l.account, cast(sum(l.amount) as bigint) as balance from payments as p \
         join ledger_entries as e on e.payment_id = p.id \
         join ledger_lines as l on l.entry_id = e.id \
         where p.step is null and l.account in ('deposits', 'refunds_due') \
         group by p.id, l.account having sum(l.amount) <> 0 order by p.id limit $1",
        params![limit],
        |row| Ok((row.get("id")?, row.get("account")?, row.get("balance")?)),
    )
}
