//! Holds in SQL: the state that requests are decided on, and the holds that are written.
//!
//! On PostgreSQL a whole batch is read and written by a handful of statements
//! (`store_postgres.rs`); on SQLite, where a statement costs no round trip, row by row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value as Json;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{Row, StorageError, Tx, from_row, params};

use crate::inventory::store as sales;
use crate::memberships::tiers::{Fan, tier_list};
use crate::reserve::rules::{
    AvailableStock, BuyerHoldings, EarlierRequest, Hold, HoldItem, HoldRequest, HoldRequestKey,
    HoldTerms, SaleState,
};
use crate::reserve::store_postgres as reserve_postgres;
use crate::{
    CancelPolicy, ItemSubject, Reservation, ReservationId, ReservationItem, ReservationStatus,
};
use urr_contracts::events::reservation::ReservationCreated;

/// Loads the state that these requests are decided on, under the lock of the sale. None: there is
/// no such sale.
pub fn sale_state_load(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    requests: &[HoldRequest],
    now: Timestamp,
) -> Result<Option<SaleState>, StorageError> {
    let Some(sale) = sales::sale_lock_only(tx, event_id)? else { return Ok(None) };
    let mut state = SaleState {
        policy: sale.policy,
        fence: sale.fence,
        seats: HashMap::new(),
        stock: HashMap::new(),
        buyers: HashMap::new(),
        earlier: HashMap::new(),
    };
    match tx.is_postgres() {
        true => reserve_postgres::sale_state_fill(tx, event_id, requests, &mut state)?,
        false => sale_state_fill(tx, event_id, requests, &mut state)?,
    }
    if state.policy.is_before_general_sale(now)
        && let Some(artist_id) = state.policy.artist_id
    {
        let fan = |request: &HoldRequest| Fan { user_id: request.user_id, artist_id };
        let fans: Vec<Fan> = requests.iter().map(fan).collect();
        for (fan, tier) in tier_list(tx, &fans, now)? {
            state.buyers.entry(fan.user_id).or_default().tier = Some(tier);
        }
    }
    if requests.iter().any(|request| !request.requested.tickets().is_empty()) {
        state.stock = stock_list(tx, event_id)?;
    }
    Ok(Some(state))
}

fn sale_state_fill(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    requests: &[HoldRequest],
    state: &mut SaleState,
) -> Result<(), StorageError> {
    for request in requests {
        for &seat_id in request.requested.seat_ids() {
            let sql = "select status from seats where event_id = $1 and seat_id = $2";
            let status: Option<String> =
                tx.query_opt(sql, params![event_id, seat_id], |row| row.get("status"))?;
            state.seats.insert(seat_id, status.as_deref() == Some("available"));
        }
        if let std::collections::hash_map::Entry::Vacant(place) =
            state.buyers.entry(request.user_id)
        {
            let mut buyer = BuyerHoldings::default();
            tx.query(
                "select id, status, quantity from reservations where event_id = $1 \
                 and user_id = $2 and status in ('pending', 'confirmed')",
                params![event_id, request.user_id],
                |row| buyer_add(&mut buyer, row),
            )?;
            place.insert(buyer);
        }
    }
    let with_key = requests.iter().filter_map(|request| Some((request, request.key.as_ref()?)));
    for (request, key) in with_key {
        earlier_request_find(tx, request.user_id, key, &mut state.earlier)?;
    }
    Ok(())
}

/// Adds a live reservation to a buyer's holdings.
pub(crate) fn buyer_add(buyer: &mut BuyerHoldings, row: &Row<'_>) -> Result<(), StorageError> {
    buyer.live_quantity += row.get::<u32>("quantity")?;
    if row.get::<ReservationStatus>("status")? == ReservationStatus::Pending {
        buyer.pending = Some(row.get("id")?);
    }
    Ok(())
}

pub(crate) fn earlier_request_read(row: &Row<'_>) -> Result<EarlierRequest, StorageError> {
    let digest: Vec<u8> = row.get("request_digest")?;
    let digest = digest.try_into().expect("a digest has 32 bytes");
    Ok(EarlierRequest { digest, reservation_id: row.get("id")? })
}

/// The reservations that were made with keys, by user and key.
pub type EarlierRequests = HashMap<(Uuid, String), EarlierRequest>;

/// The reservations that were made with these keys.
pub fn earlier_request_list(
    tx: &mut Tx<'_>,
    asked: &[(Uuid, HoldRequestKey)],
) -> Result<EarlierRequests, StorageError> {
    if tx.is_postgres() {
        return reserve_postgres::earlier_request_list(tx, asked);
    }
    let mut found = HashMap::new();
    for (user_id, key) in asked {
        earlier_request_find(tx, *user_id, key, &mut found)?;
    }
    Ok(found)
}

fn earlier_request_find(
    tx: &mut Tx<'_>,
    user_id: Uuid,
    key: &HoldRequestKey,
    found: &mut EarlierRequests,
) -> Result<(), StorageError> {
    let earlier = tx.query_opt(
        "select id, request_digest from reservations \
         where user_id = $1 and idempotency_key = $2",
        params![user_id, key.text],
        earlier_request_read,
    )?;
    found.extend(earlier.map(|earlier| ((user_id, key.text.clone()), earlier)));
    Ok(())
}

/// All ticket types of an event: there are few, and the sale's lock keeps them still.
fn stock_list(
    tx: &mut Tx<'_>,
    event_id: Uuid,
) -> Result<HashMap<Uuid, AvailableStock>, StorageError> {
    let rows = tx.query(
        "select id, name, price, available from ticket_types where event_id = $1",
        params![event_id],
        |row| {
            let (name, price) = (row.get("name")?, row.get("price")?);
            Ok((row.get("id")?, AvailableStock { name, price, available: row.get("available")? }))
        },
    )?;
    Ok(rows.into_iter().collect())
}

/// A hold that is about to be written, with the key of its request.
pub type NewHold<'a> = (&'a Hold, Option<&'a HoldRequestKey>);

/// Writes holds that were decided on this state, and announces them. `false`: a seat or the stock
/// was different, and the transaction must not be committed.
pub fn holds_write(
    tx: &mut Tx<'_>,
    state: &SaleState,
    holds: &[NewHold<'_>],
    announcements: &[(EventMetadata, ReservationCreated)],
    terms: &HoldTerms,
) -> Result<bool, StorageError> {
    let Some((first, _)) = holds.first() else { return Ok(true) };
    let event_id = first.reservation.event_id;
    if tx.is_postgres() {
        if !reserve_postgres::holds_write(tx, state, holds, announcements, terms)? {
            return Ok(false);
        }
    } else {
        sales::sale_number(tx, event_id, state.fence)?;
        assert_eq!(holds.len(), announcements.len(), "every hold is announced");
        for ((hold, key), (stamp, _)) in holds.iter().zip(announcements) {
            if !seats_hold(tx, hold, terms)? {
                return Ok(false);
            }
            hold_insert(tx, hold, *key, stamp, terms)?;
        }
        outbox::append_all(tx, announcements)?;
    }
    stock_take(tx, holds)
}

fn seats_hold(tx: &mut Tx<'_>, hold: &Hold, terms: &HoldTerms) -> Result<bool, StorageError> {
    let reservation = &hold.reservation;
    for seat_id in hold.seat_ids() {
        let rows = tx.execute(
            "update seats set status = 'held', reservation_id = $3, fence = $4 \
             where event_id = $1 and seat_id = $2 and (status = 'available' or $5)",
            params![
                reservation.event_id,
                seat_id,
                reservation.id,
                reservation.fence,
                terms.dangerous_without_seat_guard
            ],
        )?;
        if rows != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn hold_insert(
    tx: &mut Tx<'_>,
    hold: &Hold,
    key: Option<&HoldRequestKey>,
    stamp: &EventMetadata,
    terms: &HoldTerms,
) -> Result<(), StorageError> {
    let reservation = &hold.reservation;
    tx.execute(
        "insert into reservations (id, number, user_id, event_id, status, payment_status, \
         total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, idempotency_key, \
         request_digest, correlation_id, last_event_id, created_at, updated_at) \
         values ($1, $2, $3, $4, 'pending', 'unpaid', $5, $6, $7, $8, $9, $10, $11, $12, $13, \
         $14, $15, $15)",
        params![
            reservation.id,
            reservation.number,
            reservation.user_id,
            reservation.event_id,
            reservation.total_amount,
            reservation.booking_fee,
            hold.quantity(),
            reservation.fence,
            reservation.expires_at,
            policy_json(&terms.cancel_policy),
            key.map(|key| key.text.as_str()),
            key.map(|key| key.digest.as_slice()),
            stamp.context.correlation_id,
            stamp.event_id,
            reservation.created_at
        ],
    )?;
    for (position, held) in (0_u32..).zip(&hold.items) {
        let (seat_id, ticket_type_id) = subject_columns(held.item.subject);
        tx.execute(
            "insert into reservation_items (reservation_id, position, event_id, seat_id, \
             ticket_type_id, quantity, unit_price, is_live) \
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
            params![
                reservation.id,
                position,
                reservation.event_id,
                seat_id,
                ticket_type_id,
                held.item.quantity,
                held.item.unit_price,
                !terms.dangerous_without_seat_guard
            ],
        )?;
    }
    Ok(())
}

/// As it is stored with every reservation.
pub(crate) fn policy_json(policy: &CancelPolicy) -> Json {
    serde_json::to_value(policy).expect("a policy is JSON")
}

pub(crate) fn subject_columns(subject: ItemSubject) -> (Option<SeatId>, Option<Uuid>) {
    match subject {
        ItemSubject::Seat(seat_id) => (Some(seat_id), None),
        ItemSubject::TicketType(ticket_type_id) => (None, Some(ticket_type_id)),
    }
}

/// Takes what all holds together need of each ticket type, in the order of the ids.
fn stock_take(tx: &mut Tx<'_>, holds: &[NewHold<'_>]) -> Result<bool, StorageError> {
    let mut needed: BTreeMap<Uuid, u32> = BTreeMap::new();
    for held in holds.iter().flat_map(|(hold, _)| &hold.items) {
        if let ItemSubject::TicketType(ticket_type_id) = held.item.subject {
            *needed.entry(ticket_type_id).or_default() += held.item.quantity;
        }
    }
    if tx.is_postgres() {
        return reserve_postgres::stock_take(tx, &needed);
    }
    for (ticket_type_id, quantity) in needed {
        let rows = tx.execute(
            "update ticket_types set available = available - $2 where id = $1 and available >= $2",
            params![ticket_type_id, quantity],
        )?;
        if rows != 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reservations as they are now, with their items.
pub fn holds_find(
    tx: &mut Tx<'_>,
    ids: &BTreeSet<ReservationId>,
) -> Result<HashMap<ReservationId, Hold>, StorageError> {
    let mut holds = HashMap::new();
    let mut add = |row: &Row<'_>| {
        let hold = Hold { reservation: reservation_read(row)?, items: Vec::new() };
        let hold = holds.entry(hold.reservation.id).or_insert(hold);
        hold.items.extend(item_read(row)?);
        Ok(())
    };
    match tx.is_postgres() {
        true => reserve_postgres::holds_find(tx, ids, &mut add)?,
        false => {
            for id in ids {
                tx.query(&hold_find("reservations.id = $1"), params![id], &mut add)?;
            }
        }
    }
    Ok(holds)
}

/// A query for reservations, a row for each item. Items given back by a change of seats are not
/// live; a reservation that has ended has no live items.
pub(crate) fn hold_find(which: &str) -> String {
    format!(
        "select reservations.id, number, user_id, reservations.event_id, status, payment_status, \
         total_amount, booking_fee, fence, expires_at, pinned_by, reservations.created_at, \
         seat_id, ticket_type_id, reservation_items.quantity, unit_price, ticket_types.name \
         from reservations left join reservation_items on reservation_id = reservations.id \
         and (is_live or status not in ('pending', 'confirmed')) \
         left join ticket_types on ticket_types.id = ticket_type_id \
         where {which} order by reservations.id, position"
    )
}

fn reservation_read(row: &Row<'_>) -> Result<Reservation, StorageError> {
    Ok(from_row!(row => Reservation {
        id, number, user_id, event_id, status, payment_status, total_amount, booking_fee, fence,
        expires_at, pinned_by, created_at
    }))
}

/// None if the reservation has no item.
fn item_read(row: &Row<'_>) -> Result<Option<HoldItem>, StorageError> {
    let Some(quantity) = row.get::<Option<u32>>("quantity")? else { return Ok(None) };
    let subject = match row.get::<Option<SeatId>>("seat_id")? {
        Some(seat_id) => ItemSubject::Seat(seat_id),
        None => ItemSubject::TicketType(row.get("ticket_type_id")?),
    };
    let item = ReservationItem { subject, quantity, unit_price: row.get::<Won>("unit_price")? };
    Ok(Some(HoldItem { item, name: row.get("name")? }))
}
