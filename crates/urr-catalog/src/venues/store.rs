//! The SQL of venues and halls.

use urr_kernel::Timestamp;
use urr_layout::{Grid, Layout};
use urr_service::Page;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::sql::to_json;
use crate::{Hall, HallId, HallSummary, SeatTemplate, Venue, VenueId};

const VENUE_COLUMNS: &str = "id, name, address, description, created_at";
const SUMMARY_COLUMNS: &str = "id, venue_id, name, description, seats_total, grades, created_at";
const HALL_COLUMNS: &str = "id, venue_id, name, description, seats_total, grades, created_at, \
     layout, grid, revision, \
     (select count(*) from events where events.hall_id = halls.id) as events_total";

fn venue_from_row(row: &Row<'_>) -> DbResult<Venue> {
    Ok(from_row!(row => Venue { id, name, address, description, created_at }))
}

/// `false` if the name is taken.
pub fn venue_insert(tx: &mut Tx<'_>, venue: &Venue) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into venues (id, name, address, description, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, $5) on conflict (name) do nothing",
        params![venue.id, venue.name, venue.address, venue.description, venue.created_at],
    )?;
    Ok(rows == 1)
}

pub fn venue_update(tx: &mut Tx<'_>, venue: &Venue, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update venues set name = $2, address = $3, description = $4, updated_at = $5 \
         where id = $1",
        params![venue.id, venue.name, venue.address, venue.description, now],
    )?;
    Ok(())
}

pub fn venue_delete(tx: &mut Tx<'_>, id: VenueId) -> DbResult<()> {
    tx.execute("delete from venues where id = $1", params![id])?;
    Ok(())
}

pub fn venue_list(tx: &mut Tx<'_>, page: Page) -> DbResult<Vec<Venue>> {
    tx.query(
        &format!(
            "select {VENUE_COLUMNS} from venues order by name collate \"C\" limit $1 offset $2"
        ),
        params![page.limit(), page.offset()],
        venue_from_row,
    )
}

pub fn venue_count(tx: &mut Tx<'_>) -> DbResult<u64> {
    tx.query_one("select count(*) as total from venues", &[], |row| row.get("total"))
}

pub fn venue_find(tx: &mut Tx<'_>, id: VenueId) -> DbResult<Option<Venue>> {
    let sql = format!("select {VENUE_COLUMNS} from venues where id = $1");
    tx.query_opt(&sql, params![id], venue_from_row)
}

pub fn venue_find_by_name(tx: &mut Tx<'_>, name: &str) -> DbResult<Option<Venue>> {
    let sql = format!("select {VENUE_COLUMNS} from venues where name = $1");
    tx.query_opt(&sql, params![name], venue_from_row)
}

/// Whether a hall or an event, even a deleted one, belongs to the venue.
pub fn venue_is_used(tx: &mut Tx<'_>, id: VenueId) -> DbResult<bool> {
    let used: u64 = tx.query_one(
        "select (select count(*) from halls where venue_id = $1) \
         + (select count(*) from events where venue_id = $1) as used",
        params![id],
        |row| row.get("used"),
    )?;
    Ok(used > 0)
}

fn summary_from_row(row: &Row<'_>) -> DbResult<HallSummary> {
    Ok(from_row!(row => HallSummary {
        id, venue_id, name, description, seats_total, created_at;
        grades: row.get_json("grades")?,
    }))
}

fn hall_from_row(row: &Row<'_>) -> DbResult<Hall> {
    let layout: Layout = row.get_json("layout")?;
    let grid: Option<serde_json::Value> = row.get("grid")?;
    let grid: Option<Grid> = match grid {
        Some(_) => Some(row.get_json("grid")?),
        None => None,
    };
    let (revision, events_total) = (row.get("revision")?, row.get("events_total")?);
    let template = SeatTemplate { layout, grid };
    Ok(Hall { summary: summary_from_row(row)?, template, revision, events_total })
}

/// `false` if the venue has a hall of this name.
pub fn hall_insert(tx: &mut Tx<'_>, hall: &Hall) -> DbResult<bool> {
    let Hall { summary, template: SeatTemplate { layout, grid }, revision, .. } = hall;
    let rows = tx.execute(
        "insert into halls (id, venue_id, name, description, layout, grid, seats_total, grades, \
         created_at, updated_at, revision) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10) \
         on conflict (venue_id, name) do nothing",
        params![
            summary.id,
            summary.venue_id,
            summary.name,
            summary.description,
            to_json(layout),
            grid.as_ref().map(to_json),
            summary.seats_total,
            to_json(&summary.grades),
            summary.created_at,
            *revision
        ],
    )?;
    Ok(rows == 1)
}

pub fn hall_update(tx: &mut Tx<'_>, hall: &Hall, now: Timestamp) -> DbResult<()> {
    let Hall { summary, template: SeatTemplate { layout, grid }, revision, .. } = hall;
    tx.execute(
        "update halls set name = $2, description = $3, layout = $4, grid = $5, seats_total = $6, \
         grades = $7, updated_at = $8, revision = $9 where id = $1",
        params![
            summary.id,
            summary.name,
            summary.description,
            to_json(layout),
            grid.as_ref().map(to_json),
            summary.seats_total,
            to_json(&summary.grades),
            now,
            *revision
        ],
    )?;
    Ok(())
}

pub fn hall_delete(tx: &mut Tx<'_>, id: HallId) -> DbResult<()> {
    tx.execute("delete from halls where id = $1", params![id])?;
    Ok(())
}

pub fn hall_find(tx: &mut Tx<'_>, id: HallId) -> DbResult<Option<Hall>> {
    let sql = format!("select {HALL_COLUMNS} from halls where id = $1");
    tx.query_opt(&sql, params![id], hall_from_row)
}

/// Whether another hall of the venue has the same name.
pub fn hall_name_is_taken(tx: &mut Tx<'_>, hall: &HallSummary) -> DbResult<bool> {
    let twin = tx.query_opt(
        "select 1 as found from halls where venue_id = $1 and name = $2 and id <> $3",
        params![hall.venue_id, hall.name, hall.id],
        |_| Ok(()),
    )?;
    Ok(twin.is_some())
}

/// Leaves out the layouts, which may have tens of thousands of seats.
pub fn hall_list_of_venue(tx: &mut Tx<'_>, id: VenueId) -> DbResult<Vec<HallSummary>> {
    let sql = format!(
        "select {SUMMARY_COLUMNS} from halls where venue_id = $1 order by name collate \"C\" limit 100"
    );
    tx.query(&sql, params![id], summary_from_row)
}

pub fn hall_list(tx: &mut Tx<'_>, page: Page) -> DbResult<Vec<Hall>> {
    let sql = format!(
        "select {HALL_COLUMNS} from halls order by name collate \"C\", id limit $1 offset $2"
    );
    tx.query(&sql, params![page.limit(), page.offset()], hall_from_row)
}

pub fn hall_count(tx: &mut Tx<'_>) -> DbResult<u64> {
    tx.query_one("select count(*) as total from halls", &[], |row| row.get("total"))
}

/// Whether an event, even a deleted one, uses the hall.
pub fn hall_is_used(tx: &mut Tx<'_>, id: HallId) -> DbResult<bool> {
    let sql = "select count(*) as used from events where hall_id = $1";
    let used: u64 = tx.query_one(sql, params![id], |row| row.get("used"))?;
    Ok(used > 0)
}
