//! Holds in SQL on PostgreSQL: one statement for all requests of a batch.
//!
//! Rows are looked up one by one, by `cross join lateral (… limit 1)`: for an event whose seats
//! were just inserted PostgreSQL has no statistics, and a plain join would read all seats of the
//! event. Lists are passed as text with commas: the storage has no arrays.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use urr_kernel::{EventData, Uuid};
use urr_layout::SeatId;
use urr_service::idempotency::KeyedRequest;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, Row, Tx, params};

use crate::reserve::OPERATION;
use crate::reserve::rules::{HoldRequest, HoldTerms, SaleState};
use crate::reserve::store::{
    EarlierEntry, NewHold, buyer_add, earlier_request_read, policy_json, subject_columns,
};
use urr_contracts::events::reservation::ReservationCreated;

/// Loads the requested seats, the buyers' holdings and earlier requests by one statement, because
/// the sale is locked meanwhile.
pub(crate) fn sale_state_fill(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    requests: &[HoldRequest],
    state: &mut SaleState,
) -> DbResult<()> {
    let seat_ids: Vec<SeatId> =
        requests.iter().flat_map(|request| request.requested.seat_ids()).copied().collect();
    // A seat that does not exist is not free.
    state.seats = seat_ids.iter().map(|&seat_id| (seat_id, false)).collect();
    let (owners, keys) = key_lists(requests.iter().filter_map(|request| request.key.as_ref()));
    tx.query(
        SALE_STATE_FILL,
        params![event_id, list(&seat_ids), user_ids(requests), owners, keys, OPERATION],
        |row| sale_state_add(state, row),
    )?;
    Ok(())
}

/// Keys with their owners, as two lists. A key has no white space.
fn key_lists<'a>(asked: impl Iterator<Item = &'a KeyedRequest>) -> (String, String) {
    let (owners, keys): (Vec<Uuid>, Vec<&str>) =
        asked.map(|request| (request.user_id, request.key.as_str())).unzip();
    (list(&owners), keys.join(" "))
}

/// The reservations that were made with these keys.
pub(crate) fn earlier_request_list(
    tx: &mut Tx<'_>,
    asked: &[KeyedRequest],
) -> DbResult<Vec<EarlierEntry>> {
    let (owners, keys) = key_lists(asked.iter());
    tx.query(
        "select sent.user_id, sent.key, kept.fingerprint, kept.resource_id, kept.created_at \
         from unnest(string_to_array($1, ',')::uuid[], string_to_array($2, ' ')) \
         as sent (user_id, key) \
         cross join lateral (select fingerprint, resource_id, created_at from idempotency_keys \
         where user_id = sent.user_id and operation = $3 and key = sent.key limit 1) as kept",
        params![owners, keys, OPERATION],
        earlier_request_read,
    )
}

const SALE_STATE_FILL: &str = "\
    select 'seat' as kind, asked.seat_id, null::uuid as id, null::uuid as user_id, seat.status, \
    0 as quantity, null::text as key, null::text as fingerprint, null::text as resource_id, \
    null::timestamptz as created_at \
    from unnest(string_to_array($2, ',')::integer[]) as asked (seat_id) \
    cross join lateral (select status from seats \
    where event_id = $1 and seat_id = asked.seat_id limit 1) as seat \
    union all \
    select 'buyer', 0, live.id, buyer.user_id, live.status, live.quantity, null, null, null, null \
    from (select distinct unnest(string_to_array($3, ',')::uuid[]) as user_id) as buyer \
    cross join lateral (select id, status, quantity from reservations \
    where event_id = $1 and user_id = buyer.user_id and status in ('pending', 'confirmed') \
    and kind = 'online' offset 0) as live \
    union all \
    select 'kept', 0, null, sent.user_id, '', 0, sent.key, kept.fingerprint, kept.resource_id, \
    kept.created_at \
    from unnest(string_to_array($4, ',')::uuid[], string_to_array($5, ' ')) as sent (user_id, key) \
    cross join lateral (select fingerprint, resource_id, created_at from idempotency_keys \
    where user_id = sent.user_id and operation = $6 and key = sent.key limit 1) as kept";

fn sale_state_add(state: &mut SaleState, row: &Row<'_>) -> DbResult<()> {
    match row.get::<String>("kind")?.as_str() {
        "seat" => {
            let is_free = row.get::<String>("status")? == "available";
            state.seats.insert(row.get("seat_id")?, is_free);
        }
        "buyer" => buyer_add(state.buyers.entry(row.get("user_id")?).or_default(), row)?,
        _ => state.earlier.extend([earlier_request_read(row)?]),
    }
    Ok(())
}

fn user_ids(requests: &[HoldRequest]) -> String {
    let user_ids: Vec<Uuid> = requests.iter().map(|request| request.user_id).collect();
    list(&user_ids)
}

pub(crate) fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<String>>().join(",")
}

/// Writes the sale's number, the reservations, their items, their announcements and their seats at
/// once. `false`: not every seat was free.
pub(crate) fn holds_write(
    tx: &mut Tx<'_>,
    state: &SaleState,
    holds: &[NewHold<'_>],
    announcements: &[(EventMetadata, ReservationCreated)],
    terms: &HoldTerms,
) -> DbResult<bool> {
    let (first, _) = holds.first().expect("the caller has something to write");
    let (items, facts) = (items_json(holds), outbox::rows_to_insert(tx, announcements));
    let seats: usize = holds.iter().map(|(hold, _)| hold.seat_ids().len()).sum();
    let held = tx.execute(
        HOLDS_WRITE,
        params![
            first.reservation.event_id,
            state.fence,
            holds_json(holds, announcements),
            items,
            first.reservation.expires_at,
            terms.now,
            terms.dangerous_without_seat_guard,
            facts,
            ReservationCreated::TOPIC,
            policy_json(state.cancel_policy(terms)),
            OPERATION,
            state.policy.starts_at
        ],
    )?;
    let is_whole = usize::try_from(held) == Ok(seats);
    // Without the guard a seat may be twice in a batch, and is then updated once.
    Ok(is_whole || terms.dangerous_without_seat_guard)
}

/// It updates as many rows as seats were free. The lock of the sale keeps the rows in place.
const HOLDS_WRITE: &str = "\
    with numbered as (\
        update sales set fence = $2 where event_id = $1\
    ), hold as (\
        select * from jsonb_to_recordset($3) as hold (id uuid, number text, user_id uuid, \
        total_amount bigint, booking_fee bigint, quantity integer, fence bigint, key text, \
        fingerprint text, flow uuid, told_by uuid)\
    ), made as (\
        insert into reservations (id, number, user_id, event_id, status, payment_status, \
        total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, agreed_starts_at, \
        announced_starts_at, correlation_id, last_event_id, created_at, updated_at) \
        select id, number, user_id, $1, 'pending', 'unpaid', total_amount, booking_fee, \
        quantity, fence, $5::timestamptz, $10::jsonb, $12::timestamptz, $12::timestamptz, flow, \
        told_by, $6::timestamptz, $6::timestamptz from hold\
    ), named as (\
        insert into idempotency_keys (user_id, operation, key, fingerprint, resource_id, \
        created_at) select user_id, $11::text, key, fingerprint, id::text, $6::timestamptz \
        from hold where key is not null\
    ), item as (\
        select hold_id, position, seat_id, type_id, quantity, unit_price, fence \
        from jsonb_to_recordset($4) as item (hold_id uuid, position smallint, \
        seat_id integer, type_id uuid, quantity integer, unit_price bigint, fence bigint)\
    ), listed as (\
        insert into reservation_items (reservation_id, position, event_id, seat_id, \
        ticket_type_id, quantity, unit_price, is_live) \
        select hold_id, position, $1, seat_id, type_id, quantity, unit_price, not $7::boolean \
        from item\
    ), announced as (\
        insert into outbox (event_id, topic, key, body, created_at) \
        select id, $9::text, key, body, $6::timestamptz \
        from jsonb_to_recordset($8) as fact (id uuid, key text, body text)\
    ) \
    update seats set status = 'held', reservation_id = place.hold_id, fence = place.fence \
    from (select item.hold_id, item.fence, seat.at from item \
    cross join lateral (select ctid as at from seats \
    where event_id = $1 and seat_id = item.seat_id limit 1) as seat) as place \
    where seats.ctid = place.at and (seats.status = 'available' or $7::boolean)";

/// Takes the quantities of all ticket types at once. `false`: one of them has too few.
pub(crate) fn stock_take(tx: &mut Tx<'_>, needed: &BTreeMap<Uuid, u32>) -> DbResult<bool> {
    if needed.is_empty() {
        return Ok(true);
    }
    let type_ids: Vec<Uuid> = needed.keys().copied().collect();
    let quantities: Vec<u32> = needed.values().copied().collect();
    let rows = tx.execute(
        "update ticket_types set available = available - needed.quantity \
         from unnest(string_to_array($1, ',')::uuid[], string_to_array($2, ',')::integer[]) \
         as needed (id, quantity) \
         where ticket_types.id = needed.id and available >= needed.quantity",
        params![list(&type_ids), list(&quantities)],
    )?;
    Ok(usize::try_from(rows) == Ok(needed.len()))
}

fn holds_json(
    holds: &[NewHold<'_>],
    announcements: &[(EventMetadata, ReservationCreated)],
) -> Json {
    assert_eq!(holds.len(), announcements.len(), "every hold is announced");
    let row = |((hold, key), (stamp, _)): (&NewHold<'_>, &(EventMetadata, ReservationCreated))| {
        let reservation = &hold.reservation;
        json!({
            "id": reservation.id.0,
            "number": reservation.number,
            "user_id": reservation.user_id,
            "total_amount": reservation.total_amount,
            "booking_fee": reservation.booking_fee,
            "quantity": reservation.quantity,
            "fence": reservation.fence,
            "key": key.map(|key| key.key.as_str()),
            "fingerprint": key.map(|key| &key.fingerprint),
            "flow": stamp.context.correlation_id,
            "told_by": stamp.event_id,
        })
    };
    holds.iter().zip(announcements).map(row).collect()
}

fn items_json(holds: &[NewHold<'_>]) -> Json {
    let mut rows = Vec::new();
    for (hold, _) in holds {
        for item in &hold.items {
            let (seat_id, type_id) = subject_columns(item.subject);
            rows.push(json!({
                "hold_id": hold.reservation.id.0,
                "position": item.position,
                "seat_id": seat_id,
                "type_id": type_id,
                "quantity": item.quantity,
                "unit_price": item.unit_price,
                "fence": hold.reservation.fence,
            }));
        }
    }
    Json::from(rows)
}
