//! The books in SQL: written once, never changed.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{StorageError, Tx, Value, params};

use crate::domain::ledger::{EntryKind, LedgerAccount, Posting};
use crate::domain::ledger_audit::{LedgerLine, PaymentTotals};
use crate::domain::payment::PaymentId;
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

pub(super) const ENTRY_EXISTS: &str =
    "select count(*) as entries from ledger_entries where payment_id = $1 and kind = $2";

/// Whether something is in the books of a payment.
pub fn entry_exists(
    tx: &mut Tx<'_>,
    payment_id: PaymentId,
    kind: EntryKind,
) -> Result<bool, StorageError> {
    let entries: i64 =
        tx.query_one(ENTRY_EXISTS, params![payment_id.0, kind.name()], |row| row.get("entries"))?;
    Ok(entries > 0)
}

/// What is on an account by one payment alone.
pub fn balance_of(
    tx: &mut Tx<'_>,
    payment_id: PaymentId,
    account: LedgerAccount,
) -> Result<Won, StorageError> {
    tx.query_one(
        "select cast(coalesce(sum(l.amount), 0) as bigint) as balance \
         from ledger_entries as e join ledger_lines as l on l.entry_id = e.id \
         where e.payment_id = $1 and l.account = $2",
        params![payment_id.0, account.name()],
        |row| row.get("balance"),
    )
}

/// The lines by which a return was owed.
pub fn refund_lines(
    tx: &mut Tx<'_>,
    refund_id: RefundId,
) -> Result<Vec<(LedgerAccount, Won)>, StorageError> {
    tx.query(
        "select l.account, l.amount from ledger_entries as e \
         join ledger_lines as l on l.entry_id = e.id \
         where e.refund_id = $1 and e.kind = $2 order by l.account",
        params![refund_id.0, EntryKind::Cancel.name()],
        |row| {
            let account: String = row.get("account")?;
            let account = LedgerAccount::parse(&account).expect("only known names are stored");
            Ok((account, row.get("amount")?))
        },
    )
}

/// A stretch of the books: those of the payments after one, or those written in a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerRange {
    /// Of payments after the first id, up to the second.
    PaymentService { after: Uuid, until: Uuid },
    /// Of payments with an entry after the first mark, up to the second.
    Entries { after: EntryMark, until: EntryMark },
    /// Of one payment.
    One(Uuid),
}

/// A place among the entries as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryMark {
    pub at: Timestamp,
    pub id: Uuid,
}

impl LedgerRange {
    /// What the column with a payment's id must be.
    fn condition(&self, column: &str) -> String {
        match self {
            LedgerRange::PaymentService { .. } => format!("{column} > $1 and {column} <= $2"),
            LedgerRange::Entries { .. } => format!(
                "{column} in (select payment_id from ledger_entries \
                 where (at, id) > ($1, $2) and (at, id) <= ($3, $4))"
            ),
            LedgerRange::One(_) => format!("{column} = $1"),
        }
    }

    fn values(&self) -> Vec<Value<'static>> {
        match *self {
            LedgerRange::PaymentService { after, until } => {
                vec![Value::Uuid(after), Value::Uuid(until)]
            }
            LedgerRange::Entries { after, until } => vec![
                Value::Time(after.at),
                Value::Uuid(after.id),
                Value::Time(until.at),
                Value::Uuid(until.id),
            ],
            LedgerRange::One(id) => vec![Value::Uuid(id)],
        }
    }

    pub(super) fn accounts_sql(&self) -> String {
        let condition = self.condition("id");
        format!(
            "select id, charged_amount, refunded_amount, step from payments where {condition} \
             order by id"
        )
    }

    pub(super) fn lines_sql(&self) -> String {
        let condition = self.condition("e.payment_id");
        format!(
            "select e.payment_id, e.id, e.kind, l.account, l.amount from ledger_entries as e \
             join ledger_lines as l on l.entry_id = e.id where {condition} \
             order by e.payment_id, e.id, l.account"
        )
    }
}

/// What payments say of themselves.
pub fn accounts(
    tx: &mut Tx<'_>,
    stretch: &LedgerRange,
) -> Result<Vec<PaymentTotals>, StorageError> {
    tx.query(&stretch.accounts_sql(), &stretch.values(), |row| {
        Ok(PaymentTotals {
            id: row.get("id")?,
            charged: row.get("charged_amount")?,
            refunded: row.get("refunded_amount")?,
            is_settled: row.get::<Option<String>>("step")?.is_none(),
        })
    })
}

/// What the books say of payments.
pub fn lines(tx: &mut Tx<'_>, stretch: &LedgerRange) -> Result<Vec<LedgerLine>, StorageError> {
    tx.query(&stretch.lines_sql(), &stretch.values(), |row| {
        Ok(LedgerLine {
            payment_id: row.get("payment_id")?,
            entry_id: row.get("id")?,
            kind: row.get("kind")?,
            account: row.get("account")?,
            amount: row.get("amount")?,
        })
    })
}

/// The last of so many payments after one; none if there are no more.
pub fn payment_after(
    tx: &mut Tx<'_>,
    after: Uuid,
    count: u32,
) -> Result<Option<Uuid>, StorageError> {
    let sql = "select id from payments where id > $1 order by id limit $2";
    let ids = tx.query(sql, params![after, count], |row| row.get("id"))?;
    Ok(ids.last().copied())
}

pub(super) const ENTRY_AFTER: &str = "select at, id from ledger_entries \
    where (at, id) > ($1, $2) order by at, id limit $3";

/// The last of so many entries after one; none if there are no more.
pub fn entry_after(
    tx: &mut Tx<'_>,
    after: EntryMark,
    count: u32,
) -> Result<Option<EntryMark>, StorageError> {
    let marks = tx.query(ENTRY_AFTER, params![after.at, after.id, count], |row| {
        Ok(EntryMark { at: row.get("at")?, id: row.get("id")? })
    })?;
    Ok(marks.last().copied())
}
