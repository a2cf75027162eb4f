//! Holds in SQL: the state that requests are decided on, and the holds that are written.
//!
//! On PostgreSQL a whole batch is read and written by a handful of statements
//! (`store_postgres.rs`); on SQLite, where a statement costs no round trip, row by row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value as Json;
use urr_kernel::{IdempotencyKey, Timestamp, Uuid};
use urr_layout::SeatId;
use urr_service::idempotency::{KEY_TTL, KeyedRequest, key_claim, key_complete, key_release};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, Row, StorageError, Tx, params};

use crate::alerts::gates::AlertGates;
use crate::alerts::store::{GatePass, gates_load};
use crate::in_list::for_each_chunk;
use crate::inventory::store as sales;
use crate::memberships::tiers::tier_list;
use crate::reservations::store::{RESERVATION, items, reservation_read};
use crate::reserve::persons::persons_load;
use crate::reserve::rules::{
    AvailableStock, BuyerHoldings, EarlierRequest, EarlierRequests, Hold, HoldRequest, HoldTerms,
    RequestedItems, SaleState,
};
use crate::reserve::store_postgres as reserve_postgres;
use crate::{
    CancelPolicy, ItemSubject, Reservation, ReservationId, ReservationItem, ReservationStatus,
    SeatStatus,
};
use urr_contracts::events::reservation::ReservationCreated;

/// Loads the state that these requests are decided on, under the lock of the sale. None: there is
/// no such sale.
pub fn sale_state_load(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    requests: &[HoldRequest],
    terms: &HoldTerms,
) -> DbResult<Option<SaleState>> {
    let now = terms.now;
    let Some(sale) = sales::sale_lock_only(tx, event_id)? else { return Ok(None) };
    let mut state = SaleState {
        policy: sale.policy,
        fence: sale.fence,
        seats: HashMap::new(),
        map: None,
        stock: HashMap::new(),
        buyers: HashMap::new(),
        persons: HashMap::new(),
        earlier: HashMap::new(),
        gates: AlertGates::default(),
    };
    match tx.is_postgres() {
        true => reserve_postgres::sale_state_fill(tx, event_id, requests, &mut state)?,
        false => sale_state_fill(tx, event_id, requests, &mut state)?,
    }
    for key in requests.iter().filter_map(|request| request.key.as_ref()) {
        let owner = (key.user_id, key.key.clone());
        // A key whose time is over may name another request.
        if state.earlier.get(&owner).is_some_and(|earlier| earlier.used_at <= now - KEY_TTL) {
            key_release(tx, key)?;
            state.earlier.remove(&owner);
        }
    }
    if state.policy.is_before_general_sale(now)
        && let Some(artist_id) = state.policy.artist_id
    {
        let user_ids: Vec<Uuid> = requests.iter().map(|request| request.user_id).collect();
        for (user_id, tier) in tier_list(tx, artist_id, &user_ids, now)? {
            state.buyers.entry(user_id).or_default().tier = Some(tier);
        }
    }
    if state.policy.requires_identity {
        persons_load(tx, event_id, requests, &mut state)?;
    }
    if sale.has_seat_alerts {
        state.gates = gates_load(tx, event_id, GatePass::ForHold, terms.gate_max, now)?;
    }
    if requests.iter().any(|one| matches!(one.requested, RequestedItems::Tickets(_))) {
        state.stock = stock_list(tx, event_id)?;
    }
    Ok(Some(state))
}

fn sale_state_fill(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    requests: &[HoldRequest],
    state: &mut SaleState,
) -> DbResult<()> {
    for request in requests {
        for &seat_id in request.requested.seat_ids() {
            state.seats.insert(seat_id, seat_is_free(tx, event_id, seat_id)?);
        }
        if let std::collections::hash_map::Entry::Vacant(place) =
            state.buyers.entry(request.user_id)
        {
            let mut buyer = BuyerHoldings::default();
            tx.query(
                "select id, status, quantity from reservations where event_id = $1 \
                 and user_id = $2 and status in ('pending', 'confirmed') and kind = 'online'",
                params![event_id, request.user_id],
                |row| buyer_add(&mut buyer, row),
            )?;
            place.insert(buyer);
        }
    }
    for key in requests.iter().filter_map(|request| request.key.as_ref()) {
        state.earlier.extend(earlier_request_find(tx, key)?);
    }
    Ok(())
}

pub fn seat_is_free(tx: &mut Tx<'_>, event_id: Uuid, seat_id: SeatId) -> DbResult<bool> {
    let sql = "select status from seats where event_id = $1 and seat_id = $2";
    let status = tx.query_opt(sql, params![event_id, seat_id], |row| row.get("status"))?;
    Ok(status == Some(SeatStatus::Available))
}

/// Adds a live reservation to a buyer's holdings.
pub(crate) fn buyer_add(buyer: &mut BuyerHoldings, row: &Row<'_>) -> DbResult<()> {
    buyer.live_quantity += row.get::<u32>("quantity")?;
    if row.get::<ReservationStatus>("status")? == ReservationStatus::Pending {
        buyer.pending = Some(row.get("id")?);
    }
    Ok(())
}

/// A key with its owner, and what came of it.
pub(crate) type EarlierEntry = ((Uuid, IdempotencyKey), EarlierRequest);

pub(crate) fn earlier_request_read(row: &Row<'_>) -> DbResult<EarlierEntry> {
    let (key, id): (String, String) = (row.get("key")?, row.get("resource_id")?);
    let key = IdempotencyKey::parse(&key).expect("only keys are stored");
    let reservation_id = ReservationId(id.parse().expect("a reservation came of it"));
    let (fingerprint, used_at) = (row.get("fingerprint")?, row.get("created_at")?);
    let earlier = EarlierRequest { fingerprint, reservation_id, used_at };
    Ok(((row.get("user_id")?, key), earlier))
}

/// The reservations that were made with these keys.
pub fn earlier_request_list(
    tx: &mut Tx<'_>,
    asked: &[KeyedRequest],
    now: Timestamp,
) -> DbResult<EarlierRequests> {
    let mut found = EarlierRequests::new();
    match tx.is_postgres() {
        true => found.extend(reserve_postgres::earlier_request_list(tx, asked)?),
        false => {
            for key in asked {
                found.extend(earlier_request_find(tx, key)?);
            }
        }
    }
    found.retain(|_, earlier| earlier.used_at > now - KEY_TTL);
    Ok(found)
}

fn earlier_request_find(tx: &mut Tx<'_>, key: &KeyedRequest) -> DbResult<Option<EarlierEntry>> {
    tx.query_opt(
        "select user_id, key, fingerprint, resource_id, created_at from idempotency_keys \
         where user_id = $1 and operation = $2 and key = $3",
        params![key.user_id, key.operation, key.key.as_str()],
        earlier_request_read,
    )
}

/// All ticket types of an event: there are few, and the sale's lock keeps them still.
fn stock_list(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<HashMap<Uuid, AvailableStock>> {
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
pub type NewHold<'a> = (&'a Hold, Option<&'a KeyedRequest>);

/// Writes holds that were decided on this state, and announces them. `false`: a seat or the stock
/// was different, and the transaction must not be committed.
pub fn holds_write(
    tx: &mut Tx<'_>,
    state: &SaleState,
    holds: &[NewHold<'_>],
    announcements: &[(EventMetadata, ReservationCreated)],
    terms: &HoldTerms,
) -> DbResult<bool> {
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
            let (reservation, is_unguarded) =
                (&hold.reservation, terms.dangerous_without_seat_guard);
            for seat_id in hold.seat_ids() {
                if !seat_hold(tx, reservation, seat_id, reservation.fence, is_unguarded)? {
                    return Ok(false);
                }
            }
            hold_insert(tx, state, (hold, *key), stamp, terms)?;
        }
        outbox::append_all(tx, announcements)?;
    }
    stock_take(tx, holds)
}

/// Takes a seat for a hold. `false`: it is not available.
pub fn seat_hold(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    seat_id: SeatId,
    fence: i64,
    is_unguarded: bool,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update seats set status = 'held', reservation_id = $3, fence = $4 \
         where event_id = $1 and seat_id = $2 and (status = 'available' or $5)",
        params![reservation.event_id, seat_id, reservation.id, fence, is_unguarded],
    )?;
    Ok(rows == 1)
}

/// Gives a seat of a hold back. `false`: it is not its own.
pub fn seat_drop(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    seat_id: SeatId,
    fence: i64,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update seats set status = 'available', reservation_id = null, fence = $4 \
         where event_id = $1 and seat_id = $2 and reservation_id = $3 and status = 'held'",
        params![reservation.event_id, seat_id, reservation.id, fence],
    )?;
    tx.execute(
        "delete from reservation_items where reservation_id = $1 and seat_id = $2",
        params![reservation.id, seat_id],
    )?;
    Ok(rows == 1)
}

/// The hold has a new token, and the amount of its present items. Its fee stays. `stamp` is that of
/// the announcement.
pub fn hold_update(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    fence: i64,
    stamp: &EventMetadata,
) -> DbResult<()> {
    let rows = tx.execute(
        "update reservations set fence = $3, updated_at = $4, last_event_id = $5, \
         quantity = (select sum(quantity) from reservation_items where reservation_id = $1), \
         total_amount = booking_fee + (select sum(quantity * unit_price)::bigint from reservation_items \
             where reservation_id = $1) \
         where id = $1 and fence = $2 and status = 'pending' and pinned_by is null",
        params![reservation.id, reservation.fence, fence, stamp.time, stamp.event_id],
    )?;
    assert_eq!(rows, 1, "the hold was seen under the lock");
    Ok(())
}

fn hold_insert(
    tx: &mut Tx<'_>,
    state: &SaleState,
    (hold, key): NewHold<'_>,
    stamp: &EventMetadata,
    terms: &HoldTerms,
) -> DbResult<()> {
    let reservation = &hold.reservation;
    if let Some(key) = key {
        key_claim(tx, key, terms.now)?;
        key_complete(tx, key, &reservation.id.to_string())?;
    }
    tx.execute(
        "insert into reservations (id, number, user_id, event_id, status, payment_status, \
         total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, agreed_starts_at, \
         announced_starts_at, correlation_id, last_event_id, created_at, updated_at) \
         values ($1, $2, $3, $4, 'pending', 'unpaid', $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, \
         $14, $14)",
        params![
            reservation.id,
            reservation.number,
            reservation.user_id,
            reservation.event_id,
            reservation.total_amount,
            reservation.booking_fee,
            reservation.quantity,
            reservation.fence,
            reservation.expires_at,
            policy_json(state.cancel_policy(terms)),
            state.policy.starts_at,
            stamp.context.correlation_id,
            stamp.event_id,
            reservation.created_at
        ],
    )?;
    for item in &hold.items {
        item_insert(tx, reservation, item, !terms.dangerous_without_seat_guard)?;
    }
    Ok(())
}

pub fn item_insert(
    tx: &mut Tx<'_>,
    reservation: &Reservation,
    item: &ReservationItem,
    is_live: bool,
) -> DbResult<()> {
    let (seat_id, ticket_type_id) = subject_columns(item.subject);
    tx.execute(
        "insert into reservation_items (reservation_id, position, event_id, seat_id, \
         ticket_type_id, quantity, unit_price, is_live) values ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![
            reservation.id,
            item.position,
            reservation.event_id,
            seat_id,
            ticket_type_id,
            item.quantity,
            item.unit_price,
            is_live
        ],
    )?;
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
fn stock_take(tx: &mut Tx<'_>, holds: &[NewHold<'_>]) -> DbResult<bool> {
    let mut needed: BTreeMap<Uuid, u32> = BTreeMap::new();
    for item in holds.iter().flat_map(|(hold, _)| &hold.items) {
        if let ItemSubject::TicketType(ticket_type_id) = item.subject {
            *needed.entry(ticket_type_id).or_default() += item.quantity;
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
) -> DbResult<HashMap<ReservationId, Hold>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let mut items = items::item_list_of(tx, &ids)?;
    let mut holds = HashMap::new();
    for_each_chunk(&ids, &[], |list, values| {
        let sql = format!("select {RESERVATION} from reservations where id in ({list})");
        for reservation in tx.query(&sql, values, reservation_read)? {
            let items = items.remove(&reservation.id.0).unwrap_or_default();
            holds.insert(reservation.id, Hold { reservation, items });
        }
        Ok::<_, StorageError>(())
    })?;
    Ok(holds)
}
