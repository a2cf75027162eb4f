//! Reservations in SQL. Every change is a compare-and-set under the lock of its sale.

pub(crate) mod confirm;
pub(crate) mod items;
pub(crate) mod list;
pub(crate) mod moved;
pub(crate) mod overdue;
pub(crate) mod sums;
pub(crate) mod tickets;

use std::collections::{HashMap, HashSet};

use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_storage::{DbResult, Row, StorageError, Tx, from_row, params};

use crate::alerts::store::gates_note_return;
use crate::in_list::for_each_chunk;
use crate::memberships::points::PointAction;
use crate::memberships::points::store::points_revoke;
use crate::payables::attempts::EndedAttempts;
use crate::reservations::rules::ReservationRecord;
use crate::{CancelPolicy, EventChain, Reservation, ReservationId, ReservationStatus};

/// The columns of a [`Reservation`].
pub(crate) const RESERVATION: &str = "id, number, user_id, event_id, status, payment_status, \
    total_amount, booking_fee, quantity, fence, expires_at, pinned_by, created_at";

/// A query for [`ReservationRecord`]s; a condition on `r` follows.
pub(crate) const RECORD: &str = "select r.id, r.number, r.user_id, r.event_id, r.kind, r.status, \
    r.payment_status, r.total_amount, r.booking_fee, r.quantity, r.fence, r.expires_at, r.pinned_by, \
    r.extended_at, r.ended_attempts, r.payment_id, r.payment_method, r.refund_amount, r.end_reason, r.created_at, r.updated_at, \
    r.agreed_starts_at, r.announced_starts_at, r.cancelled_amount, r.cancelled_refund_amount, \
    r.correlation_id, r.last_event_id, \
    s.status as sale_status, s.starts_at, s.artist_id, s.title as event_title, s.venue_name \
    from reservations as r join sales as s on s.event_id = r.event_id where";

pub fn record_find(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<Option<ReservationRecord>> {
    tx.query_opt(&format!("{RECORD} r.id = $1"), params![id], record_read)
}

/// Several reservations by their ids.
pub fn records_find(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<HashMap<Uuid, ReservationRecord>> {
    let records = records_find_with_flow(tx, ids)?;
    Ok(records.into_iter().map(|(id, (record, _))| (id, record)).collect())
}

/// The same with their event chains.
pub fn records_find_with_flow(
    tx: &mut Tx<'_>,
    ids: &[Uuid],
) -> DbResult<HashMap<Uuid, (ReservationRecord, EventChain)>> {
    let mut records = HashMap::with_capacity(ids.len());
    let read = |row: &Row<'_>| Ok((row.get("id")?, (record_read(row)?, flow_read(row)?)));
    for_each_chunk(ids, &[], |list, values| {
        records.extend(tx.query(&format!("{RECORD} r.id in ({list})"), values, read)?);
        Ok::<_, StorageError>(())
    })?;
    Ok(records)
}

pub(crate) fn record_read(row: &Row<'_>) -> DbResult<ReservationRecord> {
    Ok(from_row!(row => ReservationRecord {
        kind, extended_at, payment_id, payment_method, refund_amount, end_reason, updated_at, agreed_starts_at,
        announced_starts_at, cancelled_amount, cancelled_refund_amount, sale_status, starts_at,
        artist_id, event_title, venue_name;
        reservation: reservation_read(row)?,
        ended_attempts: EndedAttempts::read(row)?,
    }))
}

pub(crate) fn reservation_read(row: &Row<'_>) -> DbResult<Reservation> {
    Ok(from_row!(row => Reservation {
        id, number, user_id, event_id, status, payment_status, total_amount, booking_fee, quantity,
        fence, expires_at, pinned_by, created_at
    }))
}

/// The cancellation policy that was agreed on when the reservation was made.
pub fn cancel_policy_find(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<CancelPolicy> {
    let sql = "select cancel_policy from reservations where id = $1";
    tx.query_one(sql, params![id], |row| row.get_json("cancel_policy"))
}

/// The cancellation policies of several reservations.
pub fn cancel_policies_find(
    tx: &mut Tx<'_>,
    ids: &[Uuid],
) -> DbResult<HashMap<Uuid, CancelPolicy>> {
    let mut policies = HashMap::with_capacity(ids.len());
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!("select id, cancel_policy from reservations where id in ({list})");
        let read = |row: &Row<'_>| Ok((row.get("id")?, row.get_json("cancel_policy")?));
        policies.extend(tx.query(&sql, values, read)?);
        Ok::<_, StorageError>(())
    })?;
    Ok(policies)
}

/// The event chain of a reservation.
pub fn flow_find(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<EventChain> {
    let sql = "select correlation_id, last_event_id from reservations where id = $1";
    tx.query_one(sql, params![id], flow_read)
}

fn flow_read(row: &Row<'_>) -> DbResult<EventChain> {
    Ok(from_row!(row => EventChain { correlation_id, last_event_id }))
}

/// What a user holds or has bought of an event.
pub fn live_quantity(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<u32> {
    tx.query_one(
        "select coalesce(sum(quantity), 0)::bigint as total from reservations \
         where event_id = $1 and user_id = $2 and status in ('pending', 'confirmed') \
         and kind = 'online'",
        params![event_id, user_id],
        |row| row.get("total"),
    )
}

/// Whether a user has an unpaid hold of an event.
pub fn has_pending_hold(tx: &mut Tx<'_>, event_id: Uuid, user_id: Uuid) -> DbResult<bool> {
    let sql = "select count(*) as total from reservations \
               where event_id = $1 and user_id = $2 and status = 'pending'";
    tx.query_one(sql, params![event_id, user_id], |row| Ok(row.get::<i64>("total")? > 0))
}

/// How reservations end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationEnding<'a> {
    /// Holds whose time is over.
    Expired,
    /// Holds and confirmed reservations. `refund` is the amount to refund; none means all that was
    /// paid.
    Cancelled { reason: &'a str, refund: Option<Won> },
    /// Cancelled, but only holds: paid reservations stay.
    Withdrawn { reason: &'a str },
}

impl ReservationEnding<'_> {
    pub fn status(self) -> ReservationStatus {
        match self {
            ReservationEnding::Expired => ReservationStatus::Expired,
            ReservationEnding::Cancelled { .. } | ReservationEnding::Withdrawn { .. } => {
                ReservationStatus::Cancelled
            }
        }
    }
}

/// A reservation that has just ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedReservation {
    /// Its fencing token is the one under which its seats were locked.
    pub reservation: Reservation,
    /// None: it was never paid.
    pub refund_amount: Option<Won>,
    pub payment_id: Option<Uuid>,
    pub flow: EventChain,
    /// Its seats, in order.
    pub seat_ids: Vec<SeatId>,
    /// How many of them were not its own, which only a bug or a change by hand can cause.
    pub seats_lost: usize,
}

/// Ends the reservations that can end so, and releases exactly their own seats and stock. A pinned
/// hold does not end.
pub fn reservations_end(
    tx: &mut Tx<'_>,
    fence: i64,
    ids: &[Uuid],
    ending: ReservationEnding<'_>,
    now: Timestamp,
) -> DbResult<Vec<EndedReservation>> {
    let mut ended = match ending {
        ReservationEnding::Expired => reservations_expire(tx, ids, now)?,
        ReservationEnding::Cancelled { reason, refund } => {
            assert!(refund.is_none() || ids.len() == 1, "an amount is that of one reservation");
            let cancel = CancelStatement { reason, refund, condition: CANCELLABLE };
            reservations_cancel(tx, ids, cancel, now)?
        }
        ReservationEnding::Withdrawn { reason } => {
            let cancel = CancelStatement { reason, refund: None, condition: FREE_HOLD };
            reservations_cancel(tx, ids, cancel, now)?
        }
    };
    let ids: Vec<Uuid> = ended.iter().map(|one| one.reservation.id.0).collect();
    let freed = seats_free(tx, fence, &ids)?;
    stock_return(tx, &ids)?;
    if let Some(one) = ended.first() {
        gates_note_return(tx, one.reservation.event_id, now)?;
    }
    let mut seats = items_end(tx, &ids)?;
    let paid: Vec<Uuid> = ended.iter().filter_map(EndedReservation::paid_id).collect();
    tickets_invalidate(tx, &paid)?;
    if !paid.is_empty() {
        points_revoke(tx, PointAction::TicketPurchase, &paid, now)?;
    }
    for one in &mut ended {
        one.seat_ids = seats.remove(&one.reservation.id.0).unwrap_or_default();
        one.seat_ids.sort_unstable();
        let event_id = one.reservation.event_id;
        let is_lost = |seat_id: &&SeatId| !freed.contains(&(event_id, **seat_id));
        one.seats_lost = one.seat_ids.iter().filter(is_lost).count();
    }
    Ok(ended)
}

impl EndedReservation {
    /// Its id, if it was paid.
    pub fn paid_id(&self) -> Option<Uuid> {
        self.refund_amount.map(|_| self.reservation.id.0)
    }
}

const ENDED: &str = "refund_amount, payment_id, correlation_id, last_event_id";

fn ended_read(row: &Row<'_>) -> DbResult<EndedReservation> {
    Ok(from_row!(row => EndedReservation {
        refund_amount, payment_id;
        reservation: reservation_read(row)?,
        flow: flow_read(row)?,
        seat_ids: Vec::new(),
        seats_lost: 0,
    }))
}

fn reservations_expire(
    tx: &mut Tx<'_>,
    ids: &[Uuid],
    now: Timestamp,
) -> DbResult<Vec<EndedReservation>> {
    let mut ended = Vec::new();
    for_each_chunk(ids, params![now], |list, values| {
        let sql = format!(
            "update reservations set status = 'expired', updated_at = $1 where id in ({list}) \
             and status = 'pending' and pinned_by is null and expires_at <= $1 \
             returning {RESERVATION}, {ENDED}"
        );
        ended.extend(tx.query(&sql, values, ended_read)?);
        Ok::<_, StorageError>(())
    })?;
    Ok(ended)
}

/// A hold without a pin.
const FREE_HOLD: &str = "status = 'pending' and pinned_by is null";
const CANCELLABLE: &str = "status = 'confirmed' or (status = 'pending' and pinned_by is null)";

struct CancelStatement<'a> {
    reason: &'a str,
    /// None: all that was paid.
    refund: Option<Won>,
    /// Which reservations can be cancelled so.
    condition: &'a str,
}

fn reservations_cancel(
    tx: &mut Tx<'_>,
    ids: &[Uuid],
    cancel: CancelStatement<'_>,
    now: Timestamp,
) -> DbResult<Vec<EndedReservation>> {
    let CancelStatement { reason, refund, condition } = cancel;
    let mut ended = Vec::new();
    for_each_chunk(ids, params![now, reason, refund], |list, values| {
        let sql = format!(
            "update reservations set status = 'cancelled', updated_at = $1, end_reason = $2, \
             payment_status = case when status <> 'confirmed' then payment_status \
                 when payment_id is null then 'refunded' else 'refunding' end, \
             refund_amount = case when status = 'confirmed' \
                 then coalesce($3::bigint, total_amount) end \
             where id in ({list}) and ({condition}) returning {RESERVATION}, {ENDED}"
        );
        ended.extend(tx.query(&sql, values, ended_read)?);
        Ok::<_, StorageError>(())
    })?;
    Ok(ended)
}

/// Releases the seats of the reservations, if they are still theirs.
fn seats_free(tx: &mut Tx<'_>, fence: i64, ids: &[Uuid]) -> DbResult<HashSet<(Uuid, SeatId)>> {
    let mut freed = HashSet::new();
    for_each_chunk(ids, params![fence], |list, values| {
        let sql = format!(
            "update seats set status = 'available', reservation_id = null, fence = $1 \
             from reservation_items as item where item.reservation_id in ({list}) \
             and item.is_live and seats.event_id = item.event_id \
             and seats.seat_id = item.seat_id and seats.reservation_id = item.reservation_id \
             returning seats.event_id as event_id, seats.seat_id as seat_id"
        );
        let read = |row: &Row<'_>| Ok((row.get("event_id")?, row.get("seat_id")?));
        freed.extend(tx.query(&sql, values, read)?);
        Ok::<_, StorageError>(())
    })?;
    Ok(freed)
}

fn stock_return(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<()> {
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!(
            "update ticket_types set available = available + returned.quantity from (\
                 select ticket_type_id, sum(quantity) as quantity from reservation_items \
                 where reservation_id in ({list}) and is_live and ticket_type_id is not null \
                 group by ticket_type_id\
             ) as returned where ticket_types.id = returned.ticket_type_id"
        );
        tx.execute(&sql, values)?;
        Ok(())
    })
}

/// The items are no longer live. Returns the seats among them by reservation.
fn items_end(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<HashMap<Uuid, Vec<SeatId>>> {
    let mut seats: HashMap<Uuid, Vec<SeatId>> = HashMap::new();
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!(
            "update reservation_items set is_live = false where reservation_id in ({list}) \
             and is_live returning reservation_id, seat_id"
        );
        let items = tx.query(&sql, values, |row| {
            Ok((row.get::<Uuid>("reservation_id")?, row.get::<Option<SeatId>>("seat_id")?))
        })?;
        for (id, seat_id) in items {
            seats.entry(id).or_default().extend(seat_id);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(seats)
}

fn tickets_invalidate(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<()> {
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!("update tickets set is_valid = false where reservation_id in ({list})");
        tx.execute(&sql, values)?;
        Ok(())
    })
}

/// Whether a ticket of the reservation was used. The tickets are locked: none is checked in until
/// the transaction ends.
pub fn ticket_was_used(tx: &mut Tx<'_>, id: ReservationId) -> DbResult<bool> {
    let used = tx.query(
        "select checked_in_at from tickets where reservation_id = $1 order by id for update",
        params![id],
        |row| row.get::<Option<Timestamp>>("checked_in_at"),
    )?;
    Ok(used.iter().any(Option::is_some))
}

/// Gives a hold more time. The record was checked under the lock, so a miss is a bug.
pub fn hold_extend(
    tx: &mut Tx<'_>,
    id: ReservationId,
    expires_at: Timestamp,
    now: Timestamp,
) -> DbResult<()> {
    let rows = tx.execute(
        "update reservations set expires_at = $2, extended_at = $3, updated_at = $3 \
         where id = $1 and status = 'pending' and pinned_by is null and extended_at is null",
        params![id, expires_at, now],
    )?;
    assert_eq!(rows, 1, "the hold was seen to be free under the lock");
    Ok(())
}

/// Records the attempts that have ended, and releases the pin of this payment. That of another
/// payment stays.
pub fn hold_unpin(
    tx: &mut Tx<'_>,
    id: ReservationId,
    payment_id: Uuid,
    ended: &EndedAttempts,
    now: Timestamp,
) -> DbResult<()> {
    let rows = tx.execute(
        "update reservations set \
         pinned_at = case when pinned_by = $2 then null else pinned_at end, \
         pinned_by = case when pinned_by = $2 then null else pinned_by end, \
         ended_attempts = $3, updated_at = $4 where id = $1 and status = 'pending'",
        params![id, payment_id, ended.to_json(), now],
    )?;
    assert_eq!(rows, 1, "the hold was seen under the lock");
    Ok(())
}

pub fn reservation_mark_refunded(
    tx: &mut Tx<'_>,
    id: ReservationId,
    returned: Won,
    now: Timestamp,
) -> DbResult<()> {
    let rows = tx.execute(
        "update reservations set payment_status = 'refunded', refund_amount = $2, \
         updated_at = $3 where id = $1 and payment_status = 'refunding'",
        params![id, returned, now],
    )?;
    assert_eq!(rows, 1, "the state was seen under the lock");
    Ok(())
}
