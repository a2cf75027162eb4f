//! The desk's SQL on PostgreSQL: a statement for all requests of a batch, not one for each.

use serde_json::{Value as Json, json};
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

use super::reserve::{NewHold, buyer_add, kept_read, subject_columns, tier_read};
use crate::domain::hold::{Board, HoldRequest, Terms};

/// Fills the board with the seats asked for, what the buyers have, and earlier answers.
pub(super) fn board_fill(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    requests: &[HoldRequest],
    board: &mut Board,
) -> Result<(), StorageError> {
    let seat_ids: Vec<u32> =
        requests.iter().flat_map(|request| request.wanted.seat_ids()).copied().collect();
    if !seat_ids.is_empty() {
        // A seat that does not exist is not free.
        board.seats = seat_ids.iter().map(|&seat_id| (seat_id, false)).collect();
        tx.query(
            "select seats.seat_id, seats.status from jsonb_array_elements_text($2) as asked (id) \
             join seats on seats.event_id = $1 and seats.seat_id = asked.id::integer",
            params![event_id, Json::from(seat_ids)],
            |row| {
                let is_free = row.get::<String>("status")? == "available";
                board.seats.insert(row.get("seat_id")?, is_free);
                Ok(())
            },
        )?;
    }
    tx.query(
        "select reservations.id, user_id, status, quantity from \
         (select distinct value::uuid as id from jsonb_array_elements_text($2)) as buyer \
         join reservations on event_id = $1 and user_id = buyer.id \
         and status in ('pending', 'confirmed')",
        params![event_id, user_ids(requests)],
        |row| buyer_add(board.buyers.entry(row.get("user_id")?).or_default(), row),
    )?;
    kept_fill(tx, requests, board)
}

fn kept_fill(
    tx: &mut Tx<'_>,
    requests: &[HoldRequest],
    board: &mut Board,
) -> Result<(), StorageError> {
    let keys: Vec<Json> = requests
        .iter()
        .filter_map(|request| {
            let key = request.key.as_ref()?;
            Some(json!({"user_id": request.user_id, "key": key.text}))
        })
        .collect();
    if keys.is_empty() {
        return Ok(());
    }
    tx.query(
        "select reservations.id, reservations.user_id, idempotency_key, request_digest \
         from (select distinct user_id, key from jsonb_to_recordset($1) \
         as sent (user_id uuid, key text)) as sent \
         join reservations on reservations.user_id = sent.user_id and idempotency_key = sent.key",
        params![Json::from(keys)],
        |row| {
            let owner = (row.get("user_id")?, row.get("idempotency_key")?);
            board.kept.insert(owner, kept_read(row)?);
            Ok(())
        },
    )?;
    Ok(())
}

/// Notes the standing of the buyers with the artist.
pub(super) fn tiers_fill(
    tx: &mut Tx<'_>,
    artist_id: Uuid,
    now: Timestamp,
    requests: &[HoldRequest],
    board: &mut Board,
) -> Result<(), StorageError> {
    tx.query(
        "select user_id, tier from \
         (select distinct value::uuid as id from jsonb_array_elements_text($2)) as buyer \
         join memberships on user_id = buyer.id and artist_id = $1 \
         and status = 'active' and expires_at > $3",
        params![artist_id, user_ids(requests), now],
        |row| {
            let buyer = board.buyers.entry(row.get("user_id")?).or_default();
            buyer.tier = Some(tier_read(row)?);
            Ok(())
        },
    )?;
    Ok(())
}

fn user_ids(requests: &[HoldRequest]) -> Json {
    requests.iter().map(|request| json!(request.user_id)).collect()
}

/// Writes the sale's number, the reservations, their items and their seats at once. `false`: not
/// every seat was free.
pub(super) fn holds_write(
    tx: &mut Tx<'_>,
    board: &Board,
    holds: &[NewHold<'_>],
    terms: &Terms,
) -> Result<bool, StorageError> {
    let (first, _) = holds.first().expect("the caller has something to write");
    let items = items_json(holds);
    let seats = holds.iter().map(|(hold, _)| hold.seat_ids().len()).sum::<usize>();
    let held: u64 = tx.query_one(
        "with numbered as (\
             update sales set fence = $2 where event_id = $1 returning 1\
         ), made as (\
             insert into reservations (id, number, user_id, event_id, status, payment_status, \
             total_amount, quantity, fence, expires_at, idempotency_key, request_digest, \
             created_at, updated_at) \
             select id, number, user_id, $1, 'pending', 'unpaid', total_amount, quantity, fence, \
             $5::timestamptz, key, decode(digest, 'hex'), $6::timestamptz, $6::timestamptz \
             from jsonb_to_recordset($3) as hold (id uuid, number text, user_id uuid, \
             total_amount bigint, quantity integer, fence bigint, key text, digest text) \
             returning 1\
         ), item as (\
             select hold_id, position, seat_id, type_id, quantity, unit_price, fence \
             from jsonb_to_recordset($4) as item (hold_id uuid, position smallint, \
             seat_id integer, type_id uuid, quantity integer, unit_price bigint, fence bigint)\
         ), listed as (\
             insert into reservation_items (reservation_id, position, event_id, seat_id, \
             ticket_type_id, quantity, unit_price, is_live) \
             select hold_id, position, $1, seat_id, type_id, quantity, unit_price, not $7::boolean \
             from item returning 1\
         ), held as (\
             update seats set status = 'held', reservation_id = item.hold_id, fence = item.fence \
             from item where seats.event_id = $1 and seats.seat_id = item.seat_id \
             and (seats.status = 'available' or $7::boolean) returning 1\
         ) select count(*) as held from held",
        params![
            first.reservation.event_id,
            board.fence,
            holds_json(holds),
            items,
            first.reservation.expires_at,
            terms.now,
            terms.dangerous_without_seat_guard
        ],
        |row| row.get("held"),
    )?;
    let is_whole = usize::try_from(held) == Ok(seats);
    // Without the guard a seat may be twice in a batch, and is then updated once.
    Ok(is_whole || terms.dangerous_without_seat_guard)
}

fn holds_json(holds: &[NewHold<'_>]) -> Json {
    let row = |(hold, key): &NewHold<'_>| {
        let reservation = &hold.reservation;
        json!({
            "id": reservation.id.0,
            "number": reservation.number,
            "user_id": reservation.user_id,
            "total_amount": reservation.total_amount,
            "quantity": hold.quantity(),
            "fence": reservation.fence,
            "key": key.map(|key| key.text.as_str()),
            "digest": key.map(|key| hex(&key.digest)),
        })
    };
    holds.iter().map(row).collect()
}

fn items_json(holds: &[NewHold<'_>]) -> Json {
    let mut rows = Vec::new();
    for (hold, _) in holds {
        for (position, held) in hold.items.iter().enumerate() {
            let (seat_id, type_id) = subject_columns(held.item.subject);
            rows.push(json!({
                "hold_id": hold.reservation.id.0,
                "position": position,
                "seat_id": seat_id,
                "type_id": type_id,
                "quantity": held.item.quantity,
                "unit_price": held.item.unit_price,
                "fence": hold.reservation.fence,
            }));
        }
    }
    Json::from(rows)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all that is written");
        text
    })
}
