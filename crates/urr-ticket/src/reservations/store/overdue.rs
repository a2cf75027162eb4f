//! Expired holds and closed sales in SQL.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, from_row, params};

use crate::SaleStatus;
use crate::inventory::store as sales;

/// An expired hold and its position in the order of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overdue {
    pub expires_at: Timestamp,
    pub id: Uuid,
    pub event_id: Uuid,
}

impl Overdue {
    /// Before all others.
    pub const FIRST: Overdue =
        Overdue { expires_at: Timestamp::UNIX_EPOCH, id: Uuid::nil(), event_id: Uuid::nil() };
}

/// The next holds whose time is over. Those that are being paid are not among them.
pub fn hold_list(
    tx: &mut Tx<'_>,
    now: Timestamp,
    after: Overdue,
    limit: u32,
) -> DbResult<Vec<Overdue>> {
    tx.query(
        "select expires_at, id, event_id from reservations \
         where status = 'pending' and pinned_by is null and expires_at <= $1 \
         and (expires_at, id) > ($2, $3) order by expires_at, id limit $4",
        params![now, after.expires_at, after.id, limit],
        |row| Ok(from_row!(row => Overdue { expires_at, id, event_id })),
    )
}

/// Whether the sale is unlocked; if so, this transaction has locked it.
pub fn sale_is_free(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<bool> {
    let free = tx.query_opt(
        "select event_id from sales where event_id = $1 for update skip locked",
        params![event_id],
        |row| row.get::<Uuid>("event_id"),
    )?;
    Ok(free.is_some())
}

/// A sale that was closed and may still have something to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedSale {
    pub event_id: Uuid,
    pub status: SaleStatus,
    /// Whether it took place and was deleted afterwards. Then only holds end; visitors had what
    /// they paid for. A cancelled event is refunded, however late.
    pub took_place: bool,
    /// The catalog's event that closed it.
    pub closed_by: Option<Uuid>,
}

/// The next closed sales after `after`.
pub fn sale_list_to_empty(
    tx: &mut Tx<'_>,
    now: Timestamp,
    after: Uuid,
    limit: u32,
) -> DbResult<Vec<ClosedSale>> {
    tx.query(
        "select event_id, status, starts_at, closed_by from sales where status <> 'open' \
         and emptied_at is null and event_id > $1 order by event_id limit $2",
        params![after, limit],
        |row| {
            let status = row.get("status")?;
            let has_begun = row.get::<Timestamp>("starts_at")? <= now;
            let took_place = has_begun && status == SaleStatus::Deleted;
            let (event_id, closed_by) = (row.get("event_id")?, row.get("closed_by")?);
            Ok(ClosedSale { event_id, status, took_place, closed_by })
        },
    )
}

/// The next reservations that end with the sale and are not pinned.
pub fn live_list(
    tx: &mut Tx<'_>,
    sale: &ClosedSale,
    after: Uuid,
    limit: u32,
) -> DbResult<Vec<Uuid>> {
    tx.query(
        "select id from reservations where event_id = $1 and id > $2 and (status = 'pending' \
         or (status = 'confirmed' and not $3)) and pinned_by is null order by id limit $4",
        params![sale.event_id, after, sale.took_place, limit],
        |row| row.get("id"),
    )
}

/// Marks a closed sale as emptied if no reservation is left to end.
pub fn sale_mark_emptied(tx: &mut Tx<'_>, sale: &ClosedSale, now: Timestamp) -> DbResult<()> {
    // Under the lock all reservations that began before the sale was closed are committed. No seat
    // changes, so the change is not numbered.
    if sales::sale_lock_only(tx, sale.event_id)?.is_none() {
        return Ok(());
    }
    tx.execute(
        "update sales set emptied_at = $2 where event_id = $1 and status <> 'open' \
         and not exists (select 1 from reservations where event_id = $1 \
         and (status = 'pending' or (status = 'confirmed' and not $3)))",
        params![sale.event_id, now, sale.took_place],
    )?;
    Ok(())
}
