//! The money of an event, and the entries of the ledger, in SQL.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{DbResult, Tx, from_row, params};

use crate::domain::payment::Payment;
use crate::domain::settlement::LedgerSum;
use crate::store::payments::{COLUMNS, read};

/// The ledger's lines about the payments of an event, by kind and account.
pub fn ledger_sum_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<LedgerSum>> {
    tx.query(
        "select e.kind, l.account, cast(sum(l.amount) as bigint) as amount from payments as p \
         join ledger_entries as e on e.payment_id = p.id \
         join ledger_lines as l on l.entry_id = e.id \
         where p.event_id = $1 group by e.kind, l.account order by e.kind, l.account",
        params![event_id],
        |row| Ok(from_row!(row => LedgerSum { kind, account, amount })),
    )
}

/// The charged payments of an event by one method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodSales {
    /// None: the provider did not say.
    pub method: Option<String>,
    pub payments: u64,
    pub charged: Won,
    pub refunded: Won,
}

impl MethodSales {
    pub fn net(&self) -> Won {
        self.charged.minus(self.refunded).expect("no more is refunded than was charged")
    }
}

pub fn method_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Vec<MethodSales>> {
    tx.query(
        "select method, count(*) as payments, cast(sum(charged_amount) as bigint) as charged, \
         cast(sum(refunded_amount) as bigint) as refunded from payments \
         where event_id = $1 and charged_amount > 0 group by method \
         order by cast(sum(charged_amount) as bigint) desc, method",
        params![event_id],
        |row| Ok(from_row!(row => MethodSales { method, payments, charged, refunded })),
    )
}

/// Payments of an event in the order of ids.
pub fn payment_page_of_event(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    after: Uuid,
    limit: u32,
) -> DbResult<Vec<Payment>> {
    let sql = format!(
        "select {COLUMNS} from payments where event_id = $1 and id > $2 order by id limit $3"
    );
    tx.query(&sql, params![event_id, after, limit], read)
}

/// A line of the ledger with its entry and its payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    pub entry_id: Uuid,
    pub at: Timestamp,
    pub kind: String,
    pub payment_id: Uuid,
    pub refund_id: Option<Uuid>,
    pub order_id: String,
    pub event_id: Option<Uuid>,
    pub account: String,
    pub amount: Won,
}

/// The lines of the next entries, in the order of their ids: whole entries only.
pub fn ledger_page(
    tx: &mut Tx<'_>,
    range: (Timestamp, Timestamp),
    after: Uuid,
    limit: u32,
) -> DbResult<Vec<LedgerRow>> {
    tx.query(
        "select e.id as entry_id, e.at, e.kind, e.payment_id, e.refund_id, p.order_id, \
         p.event_id, l.account, l.amount from (select id, at, kind, payment_id, refund_id \
             from ledger_entries where id > $1 and at >= $2 and at < $3 order by id limit $4) as e \
         join payments as p on p.id = e.payment_id join ledger_lines as l on l.entry_id = e.id \
         order by e.id, l.account",
        params![after, range.0, range.1, limit],
        |row| {
            Ok(from_row!(row => LedgerRow {
                entry_id, at, kind, payment_id, refund_id, order_id, event_id, account, amount
            }))
        },
    )
}
