//! Pins and confirmations in SQL, under the lock of the sale: on PostgreSQL one statement for all holds
//! of a set, on SQLite one for each.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use urr_kernel::{Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{DbResult, Row, StorageError, Tx, params};

use crate::in_list::for_each_chunk;
use crate::reservations::store::items::{ITEM, item_read};
use crate::{Reservation, ReservationId, ReservationItem};

/// A hold that a payment pins.
#[derive(Clone, Copy, Debug)]
pub struct PinnedHold {
    pub id: ReservationId,
    pub payment_id: Uuid,
    pub now: Timestamp,
}

/// Pins holds. The records were checked under the lock, so a miss is a bug.
pub fn holds_pin(tx: &mut Tx<'_>, pins: &[PinnedHold]) -> DbResult<()> {
    if !tx.is_postgres() {
        return pins.iter().try_for_each(|pin| hold_pin(tx, pin));
    }
    if pins.is_empty() {
        return Ok(());
    }
    let row = |pin: &PinnedHold| json!({"id": pin.id.0, "by": pin.payment_id, "at": pin.now});
    let rows: Json = pins.iter().map(row).collect();
    tx.change_later(
        "update reservations set pinned_by = pin.by, pinned_at = pin.at, updated_at = pin.at \
         from jsonb_to_recordset($1) as pin (id uuid, by uuid, at timestamptz) \
         where reservations.id = pin.id and status = 'pending' and pinned_by is null",
        params![rows],
        pins.len() as u64,
    )
}

fn hold_pin(tx: &mut Tx<'_>, pin: &PinnedHold) -> DbResult<()> {
    tx.change_later(
        "update reservations set pinned_by = $2, pinned_at = $3, updated_at = $3 \
         where id = $1 and status = 'pending' and pinned_by is null",
        params![pin.id, pin.payment_id, pin.now],
        1,
    )
}

/// An item of a hold.
#[derive(Clone, Debug)]
pub struct HeldItem {
    pub item: ReservationItem,
    /// Whether its seat is held for this reservation.
    pub has_seat: bool,
}

impl HeldItem {
    /// Whether its seat is not its own.
    pub fn is_lost(&self) -> bool {
        self.item.seat_id().is_some() && !self.has_seat
    }
}

/// The items of holds. Seat by seat: a join might read all seats of the event.
pub fn held_items_of(tx: &mut Tx<'_>, ids: &[Uuid]) -> DbResult<HashMap<Uuid, Vec<HeldItem>>> {
    let mut items: HashMap<Uuid, Vec<HeldItem>> = HashMap::new();
    for_each_chunk(ids, &[], |list, values| {
        let sql = format!(
            "select {ITEM}, (select count(*) from seats where seats.event_id = i.event_id \
             and seats.seat_id = i.seat_id and seats.reservation_id = i.reservation_id \
             and seats.status = 'held') as own_seats from reservation_items as i \
             left join ticket_types as t on t.id = i.ticket_type_id \
             where i.reservation_id in ({list}) and i.is_live \
             order by i.reservation_id, i.position"
        );
        let read = |row: &Row<'_>| {
            let has_seat = row.get::<i64>("own_seats")? == 1;
            let item = HeldItem { item: item_read(row)?, has_seat };
            Ok((row.get::<Uuid>("reservation_id")?, item))
        };
        for (id, item) in tx.query(&sql, values, read)? {
            items.entry(id).or_default().push(item);
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(items)
}

/// The values of a confirmation.
#[derive(Clone, Debug)]
pub struct SoldHold {
    pub id: ReservationId,
    /// The event whose seats are sold.
    pub sale_id: Uuid,
    pub payment_id: Uuid,
    pub payment_method: String,
    /// All of them were found to be its own.
    pub seats: Vec<SeatId>,
    pub fence: i64,
    /// The id of its domain event.
    pub event_id: Uuid,
    pub now: Timestamp,
}

/// Pinned holds are sold. Pins and seats were seen under the lock, so a miss is a bug.
pub fn holds_confirm(tx: &mut Tx<'_>, sold: &[SoldHold]) -> DbResult<()> {
    if !tx.is_postgres() {
        return sold.iter().try_for_each(|one| hold_confirm(tx, one));
    }
    if sold.is_empty() {
        return Ok(());
    }
    let row = |one: &SoldHold| {
        json!({
            "id": one.id.0, "payment": one.payment_id, "method": one.payment_method,
            "at": one.now, "told_by": one.event_id,
        })
    };
    let rows: Json = sold.iter().map(row).collect();
    tx.change_later(
        "update reservations set status = 'confirmed', payment_status = 'paid', \
         payment_id = pinned_by, pinned_by = null, pinned_at = null, \
         payment_method = sold.method, updated_at = sold.at, last_event_id = sold.told_by \
         from jsonb_to_recordset($1) as sold (id uuid, payment uuid, method text, \
         at timestamptz, told_by uuid) where reservations.id = sold.id \
         and status = 'pending' and pinned_by = sold.payment",
        params![rows],
        sold.len() as u64,
    )?;
    let seats = sold.iter().flat_map(|one| {
        one.seats.iter().map(|seat_id| {
            json!({
                "sale": one.sale_id, "seat": seat_id, "hold": one.id.0, "fence": one.fence,
            })
        })
    });
    let seats: Vec<Json> = seats.collect();
    if seats.is_empty() {
        return Ok(());
    }
    let count = seats.len() as u64;
    tx.change_later(
        "update seats set status = 'sold', fence = place.fence from (\
         select sold.fence, found.at from jsonb_to_recordset($1) as sold (sale uuid, \
         seat integer, hold uuid, fence bigint) cross join lateral (select ctid as at from seats \
         where event_id = sold.sale and seat_id = sold.seat and reservation_id = sold.hold \
         and status = 'held' limit 1) as found) as place where seats.ctid = place.at",
        params![Json::from(seats)],
        count,
    )
}

fn hold_confirm(tx: &mut Tx<'_>, sold: &SoldHold) -> DbResult<()> {
    tx.change_later(
        "update reservations set status = 'confirmed', payment_status = 'paid', \
         payment_id = pinned_by, pinned_by = null, pinned_at = null, payment_method = $3, \
         updated_at = $4, last_event_id = $5 \
         where id = $1 and status = 'pending' and pinned_by = $2",
        params![sold.id, sold.payment_id, sold.payment_method, sold.now, sold.event_id],
        1,
    )?;
    for seat_id in &sold.seats {
        tx.change_later(
            "update seats set status = 'sold', fence = $4 where event_id = $1 and seat_id = $2 \
             and reservation_id = $3 and status = 'held'",
            params![sold.sale_id, *seat_id, sold.id, sold.fence],
            1,
        )?;
    }
    Ok(())
}

/// A ticket that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTicket {
    pub id: Uuid,
    pub number: String,
    pub position: u16,
    pub unit: u16,
    pub seat_id: Option<SeatId>,
}

/// A new ticket with its reservation.
#[derive(Clone, Debug)]
pub struct TicketOf<'a> {
    pub reservation: &'a Reservation,
    pub new: NewTicket,
    pub now: Timestamp,
}

pub fn tickets_insert(tx: &mut Tx<'_>, tickets: &[TicketOf<'_>]) -> DbResult<()> {
    if !tx.is_postgres() {
        return tickets.iter().try_for_each(|ticket| ticket_insert(tx, ticket));
    }
    if tickets.is_empty() {
        return Ok(());
    }
    let row = |TicketOf { reservation, new, now }: &TicketOf<'_>| {
        json!({
            "id": new.id, "number": new.number, "reservation": reservation.id.0,
            "event": reservation.event_id, "position": new.position, "unit": new.unit,
            "seat": new.seat_id, "at": now,
        })
    };
    let rows: Json = tickets.iter().map(row).collect();
    tx.execute_later(
        "insert into tickets (id, number, reservation_id, event_id, position, unit, seat_id, \
         issue, is_valid, created_at) select id, number, reservation, event, position, unit, \
         seat, 1, true, at from jsonb_to_recordset($1) as new (id uuid, number text, \
         reservation uuid, event uuid, position smallint, unit smallint, seat integer, \
         at timestamptz)",
        params![rows],
    )
}

fn ticket_insert(tx: &mut Tx<'_>, ticket: &TicketOf<'_>) -> DbResult<()> {
    let TicketOf { reservation, new, now } = ticket;
    tx.execute_later(
        "insert into tickets (id, number, reservation_id, event_id, position, unit, seat_id, \
         issue, is_valid, created_at) values ($1, $2, $3, $4, $5, $6, $7, 1, true, $8)",
        params![
            new.id,
            new.number,
            reservation.id,
            reservation.event_id,
            new.position,
            new.unit,
            new.seat_id,
            *now
        ],
    )
}
