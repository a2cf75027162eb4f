//! The history of reservations in SQL.

use urr_kernel::{Timestamp, Uuid, Won};
use urr_storage::{DbResult, StorageError, Tx, from_row, params};

use super::{HistoryActor, HistoryDetails, HistoryEntry};
use crate::ReservationId;
use crate::check_in::rules::ScanDirection;
use crate::transfers::CANCELLED_BY_SELLER;

/// Writes an entry down. `id` is that of the domain event that says the same.
pub fn history_insert(
    tx: &mut Tx<'_>,
    id: Uuid,
    reservation_id: ReservationId,
    entry: &HistoryEntry,
) -> DbResult<()> {
    let details = serde_json::to_value(&entry.details).expect("details are a plain struct");
    tx.execute_later(
        "insert into reservation_history (id, reservation_id, kind, actor, actor_id, amount, \
         reason, details, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        params![
            id,
            reservation_id,
            entry.kind,
            entry.by.name(),
            entry.by.user_id(),
            entry.amount,
            entry.reason,
            details,
            entry.at
        ],
    )
}

/// The entries that were written down.
pub fn history_list(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Vec<HistoryEntry>> {
    tx.query(
        "select kind, actor, actor_id, amount, reason, details, created_at \
         from reservation_history where reservation_id = $1 order by created_at, id",
        params![id],
        |row| {
            let (actor, actor_id): (String, Option<Uuid>) =
                (row.get("actor")?, row.get("actor_id")?);
            Ok(from_row!(row => HistoryEntry {
                kind, amount, reason;
                at: row.get("created_at")?,
                by: actor_read(&actor, actor_id)?,
                details: row.get_json::<HistoryDetails>("details")?,
            }))
        },
    )
}

fn actor_read(actor: &str, actor_id: Option<Uuid>) -> DbResult<HistoryActor> {
    match (actor, actor_id) {
        ("owner", Some(id)) => Ok(HistoryActor::Owner(id)),
        ("admin", Some(id)) => Ok(HistoryActor::Admin(id)),
        ("system", None) => Ok(HistoryActor::System),
        _ => Err(StorageError::Decode {
            column: "actor".to_owned(),
            reason: format!("there is no actor {actor}"),
        }),
    }
}

/// An attempt to sell a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferTrace {
    pub id: Uuid,
    pub seller_id: Uuid,
    pub buyer_id: Option<Uuid>,
    pub price: Won,
    pub fee: Won,
    pub end_reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub completed_at: Option<Timestamp>,
}

impl TransferTrace {
    pub fn is_ended_by_seller(&self) -> bool {
        self.end_reason.as_deref() == Some(CANCELLED_BY_SELLER)
    }
}

pub fn transfer_trace_list(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Vec<TransferTrace>> {
    tx.query(
        "select id, seller_id, buyer_id, original_price as price, fee, end_reason, created_at, \
         updated_at, completed_at from transfers where reservation_id = $1 order by number",
        params![id],
        |row| {
            Ok(from_row!(row => TransferTrace {
                id, seller_id, buyer_id, price, fee, end_reason, created_at, updated_at,
                completed_at
            }))
        },
    )
}

/// A ticket that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedTicket {
    pub created_at: Timestamp,
}

/// A scan by which somebody came in or went out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanTrace {
    pub number: String,
    pub direction: ScanDirection,
    pub door: String,
    pub staff_id: Uuid,
    pub scanned_at: Timestamp,
    pub undone_at: Option<Timestamp>,
    pub undone_by: Option<Uuid>,
}

/// The scans of the tickets of a reservation that let somebody pass, also those that were undone.
pub fn scan_trace_list(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Vec<ScanTrace>> {
    tx.query(
        "select t.number, s.direction, s.door, s.staff_id, s.scanned_at, s.undone_at, s.undone_by \
         from tickets t join ticket_scans s on s.ticket_id = t.id \
         where t.reservation_id = $1 and s.outcome = 'accepted' \
         order by s.scanned_at, t.position, t.unit, s.id",
        params![id],
        |row| {
            Ok(from_row!(row => ScanTrace {
                number, direction, door, staff_id, scanned_at, undone_at, undone_by
            }))
        },
    )
}

pub fn used_ticket_list(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Vec<UsedTicket>> {
    tx.query(
        "select created_at from tickets where reservation_id = $1 order by position, unit",
        params![id],
        |row| Ok(from_row!(row => UsedTicket { created_at })),
    )
}
