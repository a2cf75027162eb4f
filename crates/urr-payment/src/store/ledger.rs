//! The ledger: entries are inserted and never changed.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{DbResult, Tx, Value, from_row, params};

use crate::domain::ledger::{EntryKind, LedgerAccount, Posting};
use crate::domain::ledger_audit::{LedgerLine, PaymentTotals};
use crate::domain::payment::PaymentId;
use crate::domain::refund::{Refund, RefundId};

/// Names an entry and what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryOf {
    /// The entry's own id.
    pub id: Uuid,
    pub payment_id: PaymentId,
    pub refund_id: Option<RefundId>,
    pub now: Timestamp,
}

impl EntryOf {
    /// The entry by which a refund becomes due, at the time of the refund.
    pub fn refund(id: Uuid, refund: &Refund) -> EntryOf {
        let (payment_id, refund_id) = (refund.payment_id, Some(refund.id));
        EntryOf { id, payment_id, refund_id, now: refund.created_at }
    }
}

pub fn entry_insert(tx: &mut Tx<'_>, of: EntryOf, posting: &Posting) -> DbResult<()> {
    let EntryOf { id, payment_id, refund_id, now } = of;
    tx.execute_later(
        "insert into ledger_entries (id, at, payment_id, refund_id, kind) \
         values ($1, $2, $3, $4, $5)",
        params![id, now, payment_id, refund_id, posting.kind],
    )?;
    for (account, amount) in &posting.lines {
        tx.execute_later(
            "insert into ledger_lines (entry_id, account, amount) values ($1, $2, $3)",
            params![id, *account, *amount],
        )?;
    }
    Ok(())
}

pub(super) const ENTRY_EXISTS: &str =
    "select count(*) as entries from ledger_entries where payment_id = $1 and kind = $2";

/// Whether a payment has an entry of this kind.
pub fn entry_exists(tx: &mut Tx<'_>, payment_id: PaymentId, kind: EntryKind) -> DbResult<bool> {
    let entries: i64 =
        tx.query_one(ENTRY_EXISTS, params![payment_id, kind], |row| row.get("entries"))?;
    Ok(entries > 0)
}

/// The balance of an account, of one payment alone.
pub fn balance_of(tx: &mut Tx<'_>, payment_id: PaymentId, account: LedgerAccount) -> DbResult<Won> {
    tx.query_one(
        "select cast(coalesce(sum(l.amount), 0) as bigint) as balance \
         from ledger_entries as e join ledger_lines as l on l.entry_id = e.id \
         where e.payment_id = $1 and l.account = $2",
        params![payment_id, account],
        |row| row.get("balance"),
    )
}

/// The balance of every account, of all payments together.
pub fn account_balances(tx: &mut Tx<'_>) -> DbResult<Vec<(LedgerAccount, Won)>> {
    let sql = "select account, cast(sum(amount) as bigint) as balance from ledger_lines \
               group by account order by account collate \"C\"";
    tx.query(sql, &[], |row| Ok((row.get("account")?, row.get("balance")?)))
}

/// The lines by which a refund became due.
pub fn refund_lines(tx: &mut Tx<'_>, refund_id: RefundId) -> DbResult<Vec<(LedgerAccount, Won)>> {
    tx.query(
        "select l.account, l.amount from ledger_entries as e \
         join ledger_lines as l on l.entry_id = e.id \
         where e.refund_id = $1 and e.kind = $2 order by l.account",
        params![refund_id, EntryKind::Cancel],
        |row| Ok((row.get("account")?, row.get("amount")?)),
    )
}

/// Which part of the ledger is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerRange {
    /// The payments after the first id, up to the second.
    Payments { after: Uuid, until: Uuid },
    /// The payments that have an entry after the first mark, up to the second.
    Entries { after: EntryMark, until: EntryMark },
    /// One payment.
    One(Uuid),
}

/// A position among the entries in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryMark {
    pub at: Timestamp,
    pub id: Uuid,
}

impl LedgerRange {
    /// The condition on a column with payment ids.
    fn condition(&self, column: &str) -> String {
        match self {
            LedgerRange::Payments { .. } => format!("{column} > $1 and {column} <= $2"),
            LedgerRange::Entries { .. } => format!(
                "{column} in (select payment_id from ledger_entries \
                 where (at, id) > ($1, $2) and (at, id) <= ($3, $4))"
            ),
            LedgerRange::One(_) => format!("{column} = $1"),
        }
    }

    fn values(&self) -> Vec<Value<'static>> {
        match *self {
            LedgerRange::Payments { after, until } => {
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

    pub(super) fn totals_sql(&self) -> String {
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

/// What the payments of a range say about themselves.
pub fn totals_list(tx: &mut Tx<'_>, range: &LedgerRange) -> DbResult<Vec<PaymentTotals>> {
    tx.query(&range.totals_sql(), &range.values(), |row| {
        Ok(PaymentTotals {
            id: row.get("id")?,
            charged: row.get("charged_amount")?,
            refunded: row.get("refunded_amount")?,
            is_settled: row.get::<Option<String>>("step")?.is_none(),
        })
    })
}

/// The ledger's lines about the payments of a range.
pub fn lines_list(tx: &mut Tx<'_>, range: &LedgerRange) -> DbResult<Vec<LedgerLine>> {
    tx.query(&range.lines_sql(), &range.values(), |row| {
        Ok(from_row!(row => LedgerLine {
            payment_id, kind, account, amount;
            entry_id: row.get("id")?,
        }))
    })
}

/// The last of the next `count` payments; none if there are no more.
pub fn payment_find_after(tx: &mut Tx<'_>, after: Uuid, count: u32) -> DbResult<Option<Uuid>> {
    let sql = "select id from payments where id > $1 order by id limit $2";
    let ids = tx.query(sql, params![after, count], |row| row.get("id"))?;
    Ok(ids.last().copied())
}

pub(super) const ENTRY_AFTER: &str = "select at, id from ledger_entries \
    where (at, id) > ($1, $2) order by at, id limit $3";

/// The last of the next `count` entries; none if there are no more.
pub fn entry_find_after(
    tx: &mut Tx<'_>,
    after: EntryMark,
    count: u32,
) -> DbResult<Option<EntryMark>> {
    let marks = tx.query(ENTRY_AFTER, params![after.at, after.id, count], |row| {
        Ok(EntryMark { at: row.get("at")?, id: row.get("id")? })
    })?;
    Ok(marks.last().copied())
}
