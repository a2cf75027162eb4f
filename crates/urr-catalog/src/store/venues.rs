//! Venues and halls.

use urr_layout::{Grid, Layout};
use urr_service::Page;
use urr_storage::{Row, StorageError, Tx, params};

use crate::{Hall, HallId, SeatTemplate, Venue, VenueId};

const VENUE_COLUMNS: &str = "id, name, address, description, created_at";
const HALL_COLUMNS: &str = "id, venue_id, name, description, layout, grid, created_at";

fn venue_read(row: &Row<'_>) -> Result<Venue, StorageError> {
    Ok(Venue {
        id: VenueId(row.get("id")?),
        name: row.get("name")?,
        address: row.get("address")?,
        description: row.get("description")?,
        created_at: row.get("created_at")?,
    })
}

/// `false`: the name is taken.
pub fn venue_insert(tx: &mut Tx<'_>, venue: &Venue) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "insert into venues (id, name, address, description, created_at, updated_at) \
         values ($1, $2, $3, $4, $5, $5) on conflict (name) do nothing",
        params![venue.id.0, venue.name, venue.address, venue.description, venue.created_at],
    )?;
    Ok(rows == 1)
}

pub fn venue_update(tx: &mut Tx<'_>, venue: &Venue) -> Result<(), StorageError> {
    tx.execute(
        "update venues set name = $2, address = $3, description = $4 where id = $1",
        params![venue.id.0, venue.name, venue.address, venue.description],
    )?;
    Ok(())
}

pub fn venue_delete(tx: &mut Tx<'_>, id: VenueId) -> Result<(), StorageError> {
    tx.execute("delete from venues where id = $1", params![id.0])?;
    Ok(())
}

pub fn venue_list(tx: &mut Tx<'_>, page: Page) -> Result<Vec<Venue>, StorageError> {
    tx.query(
        &format!(
            "select {VENUE_COLUMNS} from venues order by name collate \"C\" limit $1 offset $2"
        ),
        params![page.limit(), page.offset()],
        venue_read,
    )
}

pub fn venue_count(tx: &mut Tx<'_>) -> Result<u64, StorageError> {
    tx.query_one("select count(*) as total from venues", &[], |row| row.get("total"))
}

pub fn venue_find(tx: &mut Tx<'_>, id: VenueId) -> Result<Option<Venue>, StorageError> {
    let sql = format!("select {VENUE_COLUMNS} from venues where id = $1");
    tx.query_opt(&sql, params![id.0], venue_read)
}

pub fn venue_find_by_name(tx: &mut Tx<'_>, name: &str) -> Result<Option<Venue>, StorageError> {
    let sql = format!("select {VENUE_COLUMNS} from venues where name = $1");
    tx.query_opt(&sql, params![name], venue_read)
}

/// Whether a hall or an event, even a deleted one, belongs to it.
pub fn venue_is_used(tx: &mut Tx<'_>, id: VenueId) -> Result<bool, StorageError> {
    let used: u64 = tx.query_one(
        "select (select count(*) from halls where venue_id = $1) \
         + (select count(*) from events where venue_id = $1) as used",
        params![id.0],
        |row| row.get("used"),
    )?;
    Ok(used > 0)
}

fn hall_read(row: &Row<'_>) -> Result<Hall, StorageError> {
    let broken = |error: serde_json::Error| StorageError::Decode {
        column: "layout".to_owned(),
        reason: error.to_string(),
    };
    let layout: Layout = serde_json::from_value(row.get("layout")?).map_err(broken)?;
    let grid: Option<serde_json::Value> = row.get("grid")?;
    let grid: Option<Grid> = grid.map(serde_json::from_value).transpose().map_err(broken)?;
    Ok(Hall {
        id: HallId(row.get("id")?),
        venue_id: VenueId(row.get("venue_id")?),
        name: row.get("name")?,
        description: row.get("description")?,
        template: SeatTemplate::stored(layout, grid),
        created_at: row.get("created_at")?,
    })
}

fn plain<T: serde::Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).expect("a layout is a plain struct")
}

/// `false`: the venue has a hall of this name.
pub fn hall_insert(tx: &mut Tx<'_>, hall: &Hall) -> Result<bool, StorageError> {
    let (layout, grid) = (plain(hall.template.layout()), hall.template.grid().map(plain));
    let rows = tx.execute(
        "insert into halls (id, venue_id, name, description, layout, grid, seats_total, \
         created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $8) \
         on conflict (venue_id, name) do nothing",
        params![
            hall.id.0,
            hall.venue_id.0,
            hall.name,
            hall.description,
            layout,
            grid,
            hall.template.layout().seat_count(),
            hall.created_at
        ],
    )?;
    Ok(rows == 1)
}

pub fn hall_update(tx: &mut Tx<'_>, hall: &Hall) -> Result<(), StorageError> {
    let (layout, grid) = (plain(hall.template.layout()), hall.template.grid().map(plain));
    tx.execute(
        "update halls set name = $2, description = $3, layout = $4, grid = $5, seats_total = $6 \
         where id = $1",
        params![
            hall.id.0,
            hall.name,
            hall.description,
            layout,
            grid,
            hall.template.layout().seat_count()
        ],
    )?;
    Ok(())
}

pub fn hall_delete(tx: &mut Tx<'_>, id: HallId) -> Result<(), StorageError> {
    tx.execute("delete from halls where id = $1", params![id.0])?;
    Ok(())
}

pub fn hall_find(tx: &mut Tx<'_>, id: HallId) -> Result<Option<Hall>, StorageError> {
    let sql = format!("select {HALL_COLUMNS} from halls where id = $1");
    tx.query_opt(&sql, params![id.0], hall_read)
}

pub fn hall_find_by_name(
    tx: &mut Tx<'_>,
    venue_id: VenueId,
    name: &str,
) -> Result<Option<Hall>, StorageError> {
    let sql = format!("select {HALL_COLUMNS} from halls where venue_id = $1 and name = $2");
    tx.query_opt(&sql, params![venue_id.0, name], hall_read)
}

pub fn hall_list_of_venue(tx: &mut Tx<'_>, id: VenueId) -> Result<Vec<Hall>, StorageError> {
    let sql = format!(
        "select {HALL_COLUMNS} from halls where venue_id = $1 order by name collate \"C\" limit 100"
    );
    tx.query(&sql, params![id.0], hall_read)
}

pub fn hall_list(tx: &mut Tx<'_>, page: Page) -> Result<Vec<Hall>, StorageError> {
    let sql = format!(
        "select {HALL_COLUMNS} from halls order by name collate \"C\", id limit $1 offset $2"
    );
    tx.query(&sql, params![page.limit(), page.offset()], hall_read)
}

pub fn hall_count(tx: &mut Tx<'_>) -> Result<u64, StorageError> {
    tx.query_one("select count(*) as total from halls", &[], |row| row.get("total"))
}

/// Whether an event, even a deleted one, was made of it.
pub fn hall_is_used(tx: &mut Tx<'_>, id: HallId) -> Result<bool, StorageError> {
    let sql = "select count(*) as used from events where hall_id = $1";
    let used: u64 = tx.query_one(sql, params![id.0], |row| row.get("used"))?;
    Ok(used > 0)
}
