//! Draws and who takes part in them.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Row, StorageError, Tx, params};

use crate::domain::draw::{Digest, DrawSecret, Drawn, Entrant, Tag};

/// So many entrants are in a row.
pub const ENTRANTS_PER_PART: usize = 5_000;
/// A tag and the number of the arrival.
const ENTRANT_BYTES: usize = 16 + 4;

/// A draw as far as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    pub event_id: Uuid,
    pub secret: DrawSecret,
    pub commitment: Digest,
    pub committed_at: Timestamp,
    pub closing: Option<Closing>,
    pub entrants: Option<Entrants>,
    pub done_at: Option<Timestamp>,
}

/// Who arrived later than this does not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    pub last_number: i64,
    pub closed_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrants {
    pub count: u32,
    pub digest: Digest,
    pub arrivals: Digest,
}

pub fn draw_find(tx: &mut Tx<'_>, event_id: Uuid) -> Result<Option<Draw>, StorageError> {
    tx.query_opt(
        "select event_id, secret, commitment, committed_at, last_number, closed_at, \
         entrants_count, entrants_digest, arrivals_digest, done_at from draws where event_id = $1",
        params![event_id],
        read_draw,
    )
}

/// Commits to a secret. A commitment that was made is never replaced: then it returns `false`.
pub fn draw_insert(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    secret: &DrawSecret,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "insert into draws (event_id, secret, commitment, committed_at) values ($1, $2, $3, $4) \
         on conflict (event_id) do nothing",
        params![event_id, &secret.expose()[..], &secret.commitment(event_id)[..], now],
    )?;
    Ok(rows == 1)
}

/// Says who takes part at most. Only the first word counts.
pub fn draw_close(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    closing: &Closing,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update draws set last_number = $2, closed_at = $3 \
         where event_id = $1 and last_number is null",
        params![event_id, closing.last_number, closing.closed_at],
    )?;
    Ok(rows == 1)
}

/// Says who takes part and in which order. Only the first word counts, and it counts whole: two
/// processes may have read the room at different moments.
pub fn entrants_insert(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    drawn: &Drawn,
) -> Result<bool, StorageError> {
    let count = u32::try_from(drawn.entrants.len()).expect("a room holds fewer than 2^32");
    let rows = tx.execute(
        "update draws set entrants_count = $2, entrants_digest = $3, arrivals_digest = $4 \
         where event_id = $1 and last_number is not null and entrants_count is null",
        params![event_id, count, &drawn.digest[..], &drawn.arrivals[..]],
    )?;
    if rows == 0 {
        return Ok(false);
    }
    for (part, entrants) in (0_u32..).zip(drawn.entrants.chunks(ENTRANTS_PER_PART)) {
        tx.execute(
            "insert into draw_entrants (event_id, part, entrants) values ($1, $2, $3)",
            params![event_id, part, encode(entrants)],
        )?;
    }
    Ok(true)
}

/// Says that everybody has their number. Only the first word counts.
pub fn draw_finish(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    done_at: Timestamp,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update draws set done_at = $2 \
         where event_id = $1 and entrants_count is not null and done_at is null",
        params![event_id, done_at],
    )?;
    Ok(rows == 1)
}

/// Some of the entrants in the order that was drawn; `None` behind the last.
pub fn entrants_find(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    part: u32,
) -> Result<Option<Vec<Entrant>>, StorageError> {
    tx.query_opt(
        "select entrants from draw_entrants where event_id = $1 and part = $2",
        params![event_id, part],
        |row| decode(&row.get::<Vec<u8>>("entrants")?),
    )
}

fn read_draw(row: &Row<'_>) -> Result<Draw, StorageError> {
    let last_number: Option<i64> = row.get("last_number")?;
    let closed_at: Option<Timestamp> = row.get("closed_at")?;
    let count: Option<u32> = row.get("entrants_count")?;
    let digests = (digest(row, "entrants_digest")?, digest(row, "arrivals_digest")?);
    Ok(Draw {
        event_id: row.get("event_id")?,
        secret: DrawSecret::new(needed(digest(row, "secret")?, "secret")?),
        commitment: needed(digest(row, "commitment")?, "commitment")?,
        committed_at: row.get("committed_at")?,
        closing: last_number
            .zip(closed_at)
            .map(|(last_number, closed_at)| Closing { last_number, closed_at }),
        entrants: match (count, digests) {
            (Some(count), (Some(digest), Some(arrivals))) => {
                Some(Entrants { count, digest, arrivals })
            }
            _ => None,
        },
        done_at: row.get("done_at")?,
    })
}

fn digest(row: &Row<'_>, column: &str) -> Result<Option<[u8; 32]>, StorageError> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    let Some(bytes) = bytes else { return Ok(None) };
    bytes.try_into().map(Some).map_err(|_| broken(column, "not 32 bytes"))
}

fn needed<T>(value: Option<T>, column: &str) -> Result<T, StorageError> {
    value.ok_or_else(|| broken(column, "missing"))
}

fn broken(column: &str, reason: &str) -> StorageError {
    StorageError::Decode { column: column.to_owned(), reason: reason.to_owned() }
}

fn encode(entrants: &[Entrant]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entrants.len() * ENTRANT_BYTES);
    for entrant in entrants {
        bytes.extend_from_slice(&entrant.tag.0);
        bytes.extend_from_slice(&entrant.arrival.to_be_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<Entrant>, StorageError> {
    let (rows, rest) = bytes.as_chunks::<ENTRANT_BYTES>();
    if !rest.is_empty() {
        return Err(broken("entrants", "not whole"));
    }
    let entrant = |row: &[u8; ENTRANT_BYTES]| {
        let (tag, arrival) = row.split_first_chunk().expect("a tag is the longer part");
        let arrival = arrival.try_into().expect("the rest of a row is the arrival");
        Entrant { tag: Tag(*tag), arrival: u32::from_be_bytes(arrival) }
    };
    Ok(rows.iter().map(entrant).collect())
}
