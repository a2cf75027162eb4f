//! Sales in SQL: the row that orders all changes of an event, and its seats.

use serde::{Deserialize, Serialize};
use urr_kernel::{CancelPolicy, Timestamp, Uuid, Won};
use urr_storage::{BatchKey, DbResult, Row, Tx, from_row, params};

use crate::{Inventory, SalePolicy};

/// A sale to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSale {
    pub inventory: Inventory,
    pub facts: SaleFacts,
    pub ticket_types: Vec<NewTicketType>,
}

/// The part of a sale that the catalog may still change. It is also stored as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SaleFacts {
    pub revision: i64,
    pub title: String,
    pub venue_name: String,
    pub artist_id: Option<Uuid>,
    pub starts_at: Timestamp,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
    pub seats_per_user_max: u32,
    #[serde(default)]
    pub requires_identity: bool,
    /// Whether a ticket that was checked out admits again.
    #[serde(default)]
    pub allows_reentry: bool,
    /// Whose event it is.
    #[serde(default)]
    pub organiser_id: Option<Uuid>,
    /// None: the usual fees.
    #[serde(default)]
    pub cancel_policy: Option<CancelPolicy>,
}

impl SaleFacts {
    pub fn cancel_policy_json(&self) -> Option<serde_json::Value> {
        let to_json = |policy| serde_json::to_value(policy).expect("a policy is JSON");
        self.cancel_policy.as_ref().map(to_json)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTicketType {
    pub id: Uuid,
    pub name: String,
    pub description: String,
    pub price: Won,
    pub total: u32,
}

/// A locked sale: no other transaction changes the event until this one ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedSale {
    pub policy: SalePolicy,
    /// The highest number that was given to this transaction; see [`sale_lock`].
    pub fence: i64,
    /// Whether fans wait for seats that return.
    pub has_seat_alerts: bool,
}

/// Creates a sale with all its seats and ticket types. `false`: it existed before.
pub fn sale_create(tx: &mut Tx<'_>, new: &NewSale, now: Timestamp) -> DbResult<bool> {
    if !sale_insert(tx, new, now)? {
        return Ok(false);
    }
    let event_id = new.inventory.event_id;
    let ordered = new.inventory.layout.seat_count();
    if ordered > 0 {
        tx.execute(
            "insert into seats (event_id, seat_id, status, fence) \
             with recursive numbers (seat_id) as (\
                 select 0 union all select seat_id + 1 from numbers where seat_id + 1 < $2::integer\
             ) select $1::uuid, seat_id, 'available', 0 from numbers",
            params![event_id, ordered],
        )?;
    }
    for ticket_type in &new.ticket_types {
        ticket_type_insert(tx, event_id, ticket_type, now)?;
    }
    let seats: u32 = tx.query_one(
        "select count(*) as total from seats where event_id = $1",
        params![event_id],
        |row| row.get("total"),
    )?;
    assert_eq!(seats, ordered, "every seat of the layout was made");
    tx.execute("update sales set is_complete = true where event_id = $1", params![event_id])?;
    Ok(true)
}

fn sale_insert(tx: &mut Tx<'_>, new: &NewSale, now: Timestamp) -> DbResult<bool> {
    let (inventory, facts) = (&new.inventory, &new.facts);
    let layout = serde_json::to_value(&inventory.layout).expect("a layout is JSON");
    let prices = serde_json::to_value(&inventory.prices).expect("prices are JSON");
    let rows = tx.execute(
        "insert into sales (event_id, revision, kind, status, title, venue_name, artist_id, \
         starts_at, sale_starts_at, sale_ends_at, has_presale, seats_per_user_max, cancel_policy, \
         layout, prices, seats_total, is_complete, fence, created_at, requires_identity, \
         organiser_id, allows_reentry) \
         values ($1, $2, $3, 'open', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, false, \
         0, $16, $17, $18, $19) \
         on conflict (event_id) do nothing",
        params![
            inventory.event_id,
            facts.revision,
            inventory.kind,
            facts.title,
            facts.venue_name,
            facts.artist_id,
            facts.starts_at,
            facts.sale_starts_at,
            facts.sale_ends_at,
            facts.has_presale,
            facts.seats_per_user_max,
            facts.cancel_policy_json(),
            layout,
            prices,
            inventory.layout.seat_count(),
            now,
            facts.requires_identity,
            facts.organiser_id,
            facts.allows_reentry
        ],
    )?;
    Ok(rows == 1)
}

pub fn ticket_type_insert(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    new: &NewTicketType,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into ticket_types \
         (id, event_id, name, description, price, total, available, created_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing",
        params![new.id, event_id, new.name, new.description, new.price, new.total, new.total, now],
    )?;
    Ok(rows == 1)
}

/// The batch of the writes that wait for the lock of this sale anyway.
pub fn sale_batch(event_id: Uuid) -> BatchKey {
    BatchKey { name: "sale", id: event_id }
}

/// Takes the lock that orders all changes of an event, and `numbers` fencing tokens: the last of
/// them is `fence`, the others are those right below it. None: there is no such event.
pub fn sale_lock(tx: &mut Tx<'_>, event_id: Uuid, numbers: u32) -> DbResult<Option<LockedSale>> {
    tx.query_opt(
        "update sales set fence = fence + $2::bigint where event_id = $1 \
         returning fence, status, is_complete, artist_id, starts_at, sale_starts_at, sale_ends_at, \
         has_presale, seats_per_user_max, requires_identity, \
         cancel_policy, has_seat_alerts",
        params![event_id, i64::from(numbers)],
        locked_sale_read,
    )
}

/// Takes the same lock without a number, for transactions that may change nothing. Changes are
/// numbered by [`sale_number`], from the `fence` seen here on.
pub fn sale_lock_only(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<LockedSale>> {
    tx.query_opt(
        "select fence, status, is_complete, artist_id, starts_at, sale_starts_at, sale_ends_at, \
         has_presale, seats_per_user_max, requires_identity, \
         cancel_policy, has_seat_alerts from sales where event_id = $1 for update",
        params![event_id],
        locked_sale_read,
    )
}

fn locked_sale_read(row: &Row<'_>) -> DbResult<LockedSale> {
    Ok(from_row!(row => LockedSale { fence, has_seat_alerts; policy: policy_read(row)? }))
}

/// Stores the last number that was given out under [`sale_lock_only`].
pub fn sale_number(tx: &mut Tx<'_>, event_id: Uuid, fence: i64) -> DbResult<()> {
    tx.execute("update sales set fence = $2 where event_id = $1", params![event_id, fence])?;
    Ok(())
}

/// The policy of a sale without its lock: it may change a moment later.
pub fn policy_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<SalePolicy>> {
    tx.query_opt(
        "select status, is_complete, artist_id, starts_at, sale_starts_at, sale_ends_at, \
         has_presale, seats_per_user_max, requires_identity, \
         cancel_policy from sales where event_id = $1",
        params![event_id],
        policy_read,
    )
}

pub(crate) fn policy_read(row: &Row<'_>) -> DbResult<SalePolicy> {
    Ok(from_row!(row => SalePolicy {
        status, is_complete, artist_id, starts_at, sale_starts_at, sale_ends_at, has_presale,
        seats_per_user_max, requires_identity;
        cancel_policy: row.get_json("cancel_policy")?,
    }))
}

pub fn inventory_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<Inventory>> {
    tx.query_opt(
        "select kind, layout, prices from sales where event_id = $1 and is_complete",
        params![event_id],
        |row| {
            let (layout, prices) = (row.get_json("layout")?, row.get_json("prices")?);
            Ok(Inventory { event_id, kind: row.get("kind")?, layout, prices })
        },
    )
}

/// The title and the venue of an event that has a sale.
pub fn sale_title_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<(String, String)> {
    let sql = "select title, venue_name from sales where event_id = $1";
    let read = |row: &Row<'_>| Ok((row.get("title")?, row.get("venue_name")?));
    tx.query_one(sql, params![event_id], read)
}
