//! The SQL of single events; `list_store.rs` has the filtered lists.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use super::rules::{
    ArtistRef, EventId, EventRecord, EventTerms, HallRef, OrderedInventory, RunningMinutes,
    TicketType, VenueRef,
};
use super::schedule::{EventStatus, Schedule};
use crate::sql::{decode_error, get_named, to_json};
use crate::{ArtistId, VenueId};

/// Events joined with the names of their venue, artist and hall.
pub const FROM: &str = "events e join venues v on v.id = e.venue_id \
     left join artists a on a.id = e.artist_id left join halls h on h.id = e.hall_id";

pub const COLUMNS: &str = "e.id, e.revision, e.title, e.description, e.kind, e.status, \
     e.artist_id, a.name as artist_name, e.venue_id, v.name as venue_name, \
     v.address as venue_address, e.hall_id, h.name as hall_name, e.starts_at, e.sale_starts_at, \
     e.sale_ends_at, e.has_presale, e.seats_per_user_max, e.requires_identity, e.organiser_id, \
     e.allows_reentry, e.poster_image_url, e.cancel_policy, \
     e.age_rating, e.running_minutes, e.notices, e.casting, e.prices, \
     e.price_min, e.price_max, e.seats_ordered, e.ticket_types_ordered, e.places_ordered, \
     e.capacity, e.inventory_ready, e.inventory_problem, e.cancel_reason, e.created_by, e.created_at, \
     e.updated_at, e.deleted_at";

pub fn event_from_row(row: &Row<'_>) -> DbResult<EventRecord> {
    let artist = match row.get("artist_id")? {
        Some(id) => Some(ArtistRef { id, name: row.get("artist_name")? }),
        None => None,
    };
    let hall = match row.get("hall_id")? {
        Some(id) => Some(HallRef { id, name: row.get("hall_name")? }),
        None => None,
    };
    let schedule = Schedule::parse(
        row.get("starts_at")?,
        row.get("sale_starts_at")?,
        row.get("sale_ends_at")?,
    );
    Ok(from_row!(row => EventRecord {
        id, revision, title, description, has_presale, seats_per_user_max, requires_identity,
        allows_reentry, organiser_id, poster_image_url, price_min, price_max, capacity,
        inventory_ready, inventory_problem, cancel_reason,
        created_by, created_at, updated_at, deleted_at;
        kind: get_named(row, "kind")?,
        announced_status: row.get("status")?,
        artist: artist,
        venue: VenueRef {
            id: row.get("venue_id")?,
            name: row.get("venue_name")?,
            address: row.get("venue_address")?,
        },
        hall: hall,
        schedule: schedule.map_err(|error| decode_error("starts_at", error))?,
        terms: terms_from_row(row)?,
        prices: row.get_json("prices")?,
        ordered: OrderedInventory {
            seats: row.get("seats_ordered")?,
            ticket_types: row.get("ticket_types_ordered")?,
            places: row.get("places_ordered")?,
        },
    }))
}

fn terms_from_row(row: &Row<'_>) -> DbResult<EventTerms> {
    let running_minutes = row.get::<Option<u32>>("running_minutes")?.map(RunningMinutes::new);
    let running_minutes = running_minutes.transpose();
    Ok(from_row!(row => EventTerms {
        age_rating, notices;
        cancel_policy: row.get_json("cancel_policy")?,
        casting: row.get_json("casting")?,
        running_minutes: running_minutes.map_err(|error| decode_error("running_minutes", error))?,
    }))
}

pub fn event_insert(tx: &mut Tx<'_>, event: &EventRecord, search_text: &str) -> DbResult<()> {
    tx.execute(
        "insert into events (id, revision, title, description, kind, status, artist_id, venue_id, \
         hall_id, starts_at, sale_starts_at, sale_ends_at, has_presale, seats_per_user_max, \
         poster_image_url, prices, price_min, price_max, seats_ordered, ticket_types_ordered, \
         places_ordered, inventory_ready, inventory_problem, cancel_reason, search_text, \
         created_by, created_at, updated_at, capacity, cancel_policy, age_rating, \
         running_minutes, notices, requires_identity, organiser_id, allows_reentry, casting) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, \
         $19, $20, $21, $22, $23, $24, $25, $26, $27, $27, $28, $29, $30, $31, $32, $33, $34, \
         $35, $36)",
        params![
            event.id,
            event.revision,
            event.title,
            event.description,
            event.kind.as_str(),
            event.announced_status,
            event.artist.as_ref().map(|artist| artist.id),
            event.venue.id,
            event.hall.as_ref().map(|hall| hall.id),
            event.schedule.starts_at(),
            event.schedule.sale_starts_at(),
            event.schedule.sale_ends_at(),
            event.has_presale,
            event.seats_per_user_max,
            event.poster_image_url,
            to_json(&event.prices),
            event.price_min,
            event.price_max,
            event.ordered.seats,
            event.ordered.ticket_types,
            event.ordered.places,
            event.inventory_ready,
            event.inventory_problem,
            event.cancel_reason,
            search_text,
            event.created_by,
            event.created_at,
            event.capacity,
            event.terms.cancel_policy.as_ref().map(to_json),
            event.terms.age_rating,
            event.terms.running_minutes.map(RunningMinutes::minutes),
            event.terms.notices,
            event.requires_identity,
            event.organiser_id,
            event.allows_reentry,
            to_json(&event.terms.casting)
        ],
    )
    .map(drop)
}

/// Writes a changed event. `false` if it has another revision meanwhile.
pub fn event_update(tx: &mut Tx<'_>, event: &EventRecord, search_text: &str) -> DbResult<bool> {
    let rows = tx.execute(
        "update events set revision = $2, title = $3, description = $4, status = $5, \
         artist_id = $6, starts_at = $7, sale_starts_at = $8, sale_ends_at = $9, \
         has_presale = $10, seats_per_user_max = $11, poster_image_url = $12, \
         cancel_reason = $13, search_text = $14, updated_at = $15, deleted_at = $16, \
         cancel_policy = $18, age_rating = $19, running_minutes = $20, notices = $21, \
         requires_identity = $22, organiser_id = $23, allows_reentry = $24, casting = $25 \
         where id = $1 and revision = $17",
        params![
            event.id,
            event.revision,
            event.title,
            event.description,
            event.announced_status,
            event.artist.as_ref().map(|artist| artist.id),
            event.schedule.starts_at(),
            event.schedule.sale_starts_at(),
            event.schedule.sale_ends_at(),
            event.has_presale,
            event.seats_per_user_max,
            event.poster_image_url,
            event.cancel_reason,
            search_text,
            event.updated_at,
            event.deleted_at,
            event.revision - 1,
            event.terms.cancel_policy.as_ref().map(to_json),
            event.terms.age_rating,
            event.terms.running_minutes.map(RunningMinutes::minutes),
            event.terms.notices,
            event.requires_identity,
            event.organiser_id,
            event.allows_reentry,
            to_json(&event.terms.casting)
        ],
    )?;
    Ok(rows == 1)
}

/// Stores the announced status. `false` if the event was changed meanwhile.
pub fn event_set_status(
    tx: &mut Tx<'_>,
    event: &EventRecord,
    status: EventStatus,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update events set status = $3, revision = revision + 1, updated_at = $5 \
         where id = $1 and revision = $2 and status = $4 and deleted_at is null",
        params![event.id, event.revision, status, event.announced_status, now],
    )?;
    Ok(rows == 1)
}

/// Finds deleted events too.
pub fn event_find(tx: &mut Tx<'_>, id: EventId) -> DbResult<Option<EventRecord>> {
    let sql = format!("select {COLUMNS} from {FROM} where e.id = $1");
    tx.query_opt(&sql, params![id], event_from_row)
}

pub fn event_list_of_artist(
    tx: &mut Tx<'_>,
    id: ArtistId,
    now: Timestamp,
    limit: u32,
) -> DbResult<Vec<EventRecord>> {
    let sql = format!(
        "select {COLUMNS} from {FROM} where e.artist_id = $1 and e.starts_at >= $2 \
         and e.deleted_at is null order by e.starts_at, e.id limit $3"
    );
    tx.query(&sql, params![id, now, limit], event_from_row)
}

/// Other events of the same venue or artist that begin between two times, and were neither cancelled
/// nor deleted.
pub fn event_list_near(
    tx: &mut Tx<'_>,
    event: &EventRecord,
    (from, to): (Timestamp, Timestamp),
    limit: u32,
) -> DbResult<Vec<EventRecord>> {
    let sql = format!(
        "select {COLUMNS} from {FROM} where e.starts_at > $1 and e.starts_at < $2 \
         and (e.venue_id = $3 or e.artist_id = $4) and e.id <> $5 and e.status <> 'cancelled' \
         and e.deleted_at is null order by e.starts_at, e.id limit $6"
    );
    let artist_id = event.artist.as_ref().map(|artist| artist.id);
    tx.query(&sql, params![from, to, event.venue.id, artist_id, event.id, limit], event_from_row)
}

/// All events of an artist or a venue, whose search texts contain its name.
pub fn event_list_by_artist_or_venue(
    tx: &mut Tx<'_>,
    artist: Option<ArtistId>,
    venue: Option<VenueId>,
) -> DbResult<Vec<EventRecord>> {
    let sql = format!(
        "select {COLUMNS} from {FROM} where e.artist_id = $1 or e.venue_id = $2 order by e.id"
    );
    tx.query(&sql, params![artist, venue], event_from_row)
}

/// Events whose announced status differs from the one by their times.
pub fn event_list_due(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<Vec<EventRecord>> {
    let due = "e.deleted_at is null and e.status in ('upcoming', 'on_sale')";
    let sql = format!(
        "select {COLUMNS} from {FROM} where {due} and ((e.status = 'upcoming' \
         and e.sale_starts_at <= $1) or e.sale_ends_at <= $1) order by e.id limit $2"
    );
    tx.query(&sql, params![now, limit], event_from_row)
}

pub fn event_mark_ready(tx: &mut Tx<'_>, id: EventId) -> DbResult<()> {
    tx.execute(
        "update events set inventory_ready = true, inventory_problem = '' \
         where id = $1 and inventory_ready = false",
        params![id],
    )
    .map(drop)
}

pub fn event_set_inventory_problem(tx: &mut Tx<'_>, id: EventId, problem: &str) -> DbResult<()> {
    tx.execute(
        "update events set inventory_problem = $2 where id = $1 and inventory_ready = false",
        params![id, problem],
    )?;
    Ok(())
}

pub fn ticket_type_insert(
    tx: &mut Tx<'_>,
    event_id: EventId,
    position: u8,
    ticket_type: &TicketType,
) -> DbResult<()> {
    tx.execute(
        "insert into event_ticket_types \
         (id, event_id, position, name, description, price, total, fence) \
         values ($1, $2, $3, $4, $5, $6, $7, 0)",
        params![
            ticket_type.id,
            event_id,
            position,
            ticket_type.name,
            ticket_type.description,
            ticket_type.price,
            ticket_type.total
        ],
    )?;
    Ok(())
}

/// Inserts or updates a ticket type; a new one comes last. `false` if the stored one is as recent.
pub fn ticket_type_upsert(
    tx: &mut Tx<'_>,
    event_id: EventId,
    ticket_type: &TicketType,
    fence: i64,
) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into event_ticket_types \
         (id, event_id, position, name, description, price, total, fence) \
         values ($1, $2, (select coalesce(max(position) + 1, 0) from event_ticket_types \
             where event_id = $2), $3, $4, $5, $6, $7) \
         on conflict (id) do update set name = excluded.name, \
         description = excluded.description, price = excluded.price, total = excluded.total, \
         fence = excluded.fence where event_ticket_types.fence < excluded.fence \
         and event_ticket_types.event_id = excluded.event_id",
        params![
            ticket_type.id,
            event_id,
            ticket_type.name,
            ticket_type.description,
            ticket_type.price,
            ticket_type.total,
            fence
        ],
    )?;
    Ok(rows == 1)
}

/// Sets the price range and the capacity of a standing event from its ticket types.
pub fn event_update_from_ticket_types(tx: &mut Tx<'_>, id: EventId) -> DbResult<()> {
    let ticket_types = "from event_ticket_types where event_id = $1";
    let sql = format!(
        "update events set price_min = (select min(price) {ticket_types}), \
         price_max = (select max(price) {ticket_types}), \
         capacity = (select sum(total)::bigint {ticket_types}) where id = $1"
    );
    tx.execute(&sql, params![id])?;
    Ok(())
}

pub fn ticket_type_list(tx: &mut Tx<'_>, id: EventId) -> DbResult<Vec<TicketType>> {
    tx.query(
        "select id, name, description, price, total from event_ticket_types \
         where event_id = $1 order by position",
        params![id],
        |row| Ok(from_row!(row => TicketType { id, name, description, price, total })),
    )
}
