//! The SQL of artists.

use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use super::{Artist, ArtistId};

const COLUMNS: &str = "id, name, description, image_url, membership_price, created_at, \
    (select count(*) from artist_members as m where m.artist_id = artists.id and m.is_live) \
    as member_count, (select count(*) from events as e where e.artist_id = artists.id \
    and e.deleted_at is null) as event_count";

fn artist_from_row(row: &Row<'_>) -> DbResult<Artist> {
    Ok(from_row!(row => Artist {
        id, name, description, image_url, membership_price, member_count, event_count, created_at
    }))
}

/// Notes whether a membership is live. Older announcements do not overwrite newer ones.
pub fn member_upsert(
    tx: &mut Tx<'_>,
    membership_id: Uuid,
    artist_id: Uuid,
    is_live: bool,
    announced_at: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "insert into artist_members (membership_id, artist_id, is_live, announced_at) \
         values ($1, $2, $3, $4) on conflict (membership_id) do update \
         set is_live = excluded.is_live, announced_at = excluded.announced_at \
         where artist_members.announced_at <= excluded.announced_at",
        params![membership_id, artist_id, is_live, announced_at],
    )?;
    Ok(())
}

/// `false` if the name is taken.
pub fn artist_insert(tx: &mut Tx<'_>, artist: &Artist) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into artists (id, name, description, image_url, membership_price, created_at) \
         values ($1, $2, $3, $4, $5, $6) on conflict (name) do nothing",
        params![
            artist.id,
            artist.name,
            artist.description,
            artist.image_url,
            artist.membership_price,
            artist.created_at
        ],
    )?;
    Ok(rows == 1)
}

pub fn artist_update(tx: &mut Tx<'_>, artist: &Artist) -> DbResult<()> {
    tx.execute(
        "update artists set name = $2, description = $3, image_url = $4, membership_price = $5 \
         where id = $1",
        params![
            artist.id,
            artist.name,
            artist.description,
            artist.image_url,
            artist.membership_price
        ],
    )?;
    Ok(())
}

pub fn artist_list(tx: &mut Tx<'_>, page: Page) -> DbResult<Vec<Artist>> {
    tx.query(
        &format!("select {COLUMNS} from artists order by name collate \"C\" limit $1 offset $2"),
        params![page.limit(), page.offset()],
        artist_from_row,
    )
}

pub fn artist_count(tx: &mut Tx<'_>) -> DbResult<u64> {
    tx.query_one("select count(*) as total from artists", &[], |row| row.get("total"))
}

pub fn artist_find(tx: &mut Tx<'_>, id: ArtistId) -> DbResult<Option<Artist>> {
    let sql = format!("select {COLUMNS} from artists where id = $1");
    tx.query_opt(&sql, params![id], artist_from_row)
}

pub fn artist_find_by_name(tx: &mut Tx<'_>, name: &str) -> DbResult<Option<Artist>> {
    let sql = format!("select {COLUMNS} from artists where name = $1");
    tx.query_opt(&sql, params![name], artist_from_row)
}
