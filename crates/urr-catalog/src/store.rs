//! The SQL of the catalogue.

use urr_service::Page;
use urr_storage::{Row, StorageError, Tx, params};

use crate::{Artist, ArtistId, ArtistName};

const ARTIST_COLUMNS: &str = "id, name, description, membership_price, created_at";

fn artist_read(row: &Row<'_>) -> Result<Artist, StorageError> {
    let name: String = row.get("name")?;
    Ok(Artist {
        id: ArtistId(row.get("id")?),
        name: ArtistName::parse(&name).expect("only parsed names are stored"),
        description: row.get("description")?,
        membership_price: row.get("membership_price")?,
        created_at: row.get("created_at")?,
    })
}

/// `false`: the name is taken.
pub fn artist_insert(tx: &mut Tx<'_>, artist: &Artist) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "insert into artists (id, name, description, membership_price, created_at) \
         values ($1, $2, $3, $4, $5) on conflict (name) do nothing",
        params![
            artist.id.0,
            artist.name.as_str(),
            artist.description,
            artist.membership_price,
            artist.created_at
        ],
    )?;
    Ok(rows == 1)
}

pub fn artist_list(tx: &mut Tx<'_>, page: Page) -> Result<Vec<Artist>, StorageError> {
    tx.query(
        &format!(
            "select {ARTIST_COLUMNS} from artists order by name collate \"C\" limit $1 offset $2"
        ),
        params![page.limit(), page.offset()],
        artist_read,
    )
}

pub fn artist_count(tx: &mut Tx<'_>) -> Result<u64, StorageError> {
    tx.query_one("select count(*) as total from artists", &[], |row| row.get("total"))
}

pub fn artist_find(tx: &mut Tx<'_>, id: ArtistId) -> Result<Option<Artist>, StorageError> {
    tx.query_opt(
        &format!("select {ARTIST_COLUMNS} from artists where id = $1"),
        params![id.0],
        artist_read,
    )
}
