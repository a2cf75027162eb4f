//! Draws and their entrants.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, StorageError, Tx, params};

use crate::domain::beacon::BeaconValue;
use crate::domain::draw::{Digest, DrawSecret, Entrant, EntrantList, EntrantTag};
use crate::draw::{DrawSeal, SealedWithOtherKey};

/// How many entrants one row holds.
pub const ENTRANTS_PER_PART: usize = 5_000;
/// A tag and the arrival number.
const ENTRANT_BYTES: usize = 16 + 4;

/// A draw in whatever state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDraw {
    pub event_id: Uuid,
    /// See [`DrawSeal`].
    pub sealed_secret: Vec<u8>,
    pub commitment: Digest,
    pub committed_at: Timestamp,
    pub closing: Option<DrawClosing>,
    pub entrants: Option<DrawEntrants>,
    /// The entrants are in drawn order as soon as there is one.
    pub beacon: Option<BeaconValue>,
    pub done_at: Option<Timestamp>,
}

impl StoredDraw {
    pub fn secret(&self, seal: &DrawSeal) -> Result<DrawSecret, SealedWithOtherKey> {
        seal.open(self.event_id, &self.sealed_secret)
    }
}

/// A secret that is committed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawCommitment {
    sealed_secret: Vec<u8>,
    commitment: Digest,
}

impl DrawCommitment {
    pub fn new(event_id: Uuid, secret: &DrawSecret, seal: &DrawSeal) -> DrawCommitment {
        let sealed_secret = seal.seal(event_id, secret);
        DrawCommitment { sealed_secret, commitment: secret.commitment(event_id) }
    }
}

/// Users who joined after it do not take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawClosing {
    pub last_number: i64,
    pub closed_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawEntrants {
    pub count: u32,
    pub digest: Digest,
    pub arrivals: Digest,
    pub fixed_at: Timestamp,
}

pub fn draw_find(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<Option<StoredDraw>> {
    tx.query_opt(
        "select event_id, sealed_secret, commitment, committed_at, last_number, closed_at, \
         entrants_count, entrants_digest, arrivals_digest, fixed_at, beacon, done_at \
         from draws where event_id = $1",
        params![event_id],
        read_draw,
    )
}

/// Commits to a secret. A commitment is never replaced: then it returns `false`.
pub fn draw_insert(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    new: &DrawCommitment,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into draws (event_id, sealed_secret, commitment, committed_at) \
         values ($1, $2, $3, $4) on conflict (event_id) do nothing",
        params![event_id, new.sealed_secret, &new.commitment[..], now],
    )?;
    Ok(rows == 1)
}

/// Removes a commitment whose secret is lost, unless the draw was closed meanwhile.
pub fn draw_delete_unclosed(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<()> {
    let sql = "delete from draws where event_id = $1 and last_number is null";
    tx.execute(sql, params![event_id]).map(drop)
}

/// Sets the last number that takes part. Only the first call counts.
pub fn draw_close(tx: &mut Tx<'_>, event_id: Uuid, closing: &DrawClosing) -> DbResult<bool> {
    let rows = tx.execute(
        "update draws set last_number = $2, closed_at = $3 \
         where event_id = $1 and last_number is null",
        params![event_id, closing.last_number, closing.closed_at],
    )?;
    Ok(rows == 1)
}

/// Stores the entrants as they arrived. Only the first call counts, as a whole: two processes may have
/// read the room at different moments.
pub fn entrants_insert(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    list: &EntrantList,
    fixed_at: Timestamp,
) -> DbResult<bool> {
    let count = u32::try_from(list.entrants.len()).expect("a room holds fewer than 2^32");
    let rows = tx.execute(
        "update draws set entrants_count = $2, entrants_digest = $3, arrivals_digest = $4, \
         fixed_at = $5 \
         where event_id = $1 and last_number is not null and entrants_count is null",
        params![event_id, count, &list.digest[..], &list.arrivals[..], fixed_at],
    )?;
    if rows == 1 {
        parts_insert(tx, event_id, &list.entrants)?;
    }
    Ok(rows == 1)
}

/// Stores the value of the beacon and the entrants as drawn. Only the first call counts.
pub fn entrants_reorder(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    beacon: &BeaconValue,
    drawn: &[Entrant],
) -> DbResult<bool> {
    let rows = tx.execute(
        "update draws set beacon = $2 \
         where event_id = $1 and entrants_count is not null and beacon is null",
        params![event_id, beacon.to_string()],
    )?;
    if rows == 1 {
        tx.execute("delete from draw_entrants where event_id = $1", params![event_id])?;
        parts_insert(tx, event_id, drawn)?;
    }
    Ok(rows == 1)
}

fn parts_insert(tx: &mut Tx<'_>, event_id: Uuid, entrants: &[Entrant]) -> DbResult<()> {
    for (part, entrants) in (0_u32..).zip(entrants.chunks(ENTRANTS_PER_PART)) {
        tx.execute(
            "insert into draw_entrants (event_id, part, entrants) values ($1, $2, $3)",
            params![event_id, part, encode(entrants)],
        )?;
    }
    Ok(())
}

/// Notes that all entrants have their numbers. Only the first call counts.
pub fn draw_finish(tx: &mut Tx<'_>, event_id: Uuid, done_at: Timestamp) -> DbResult<bool> {
    let rows = tx.execute(
        "update draws set done_at = $2 \
         where event_id = $1 and beacon is not null and done_at is null",
        params![event_id, done_at],
    )?;
    Ok(rows == 1)
}

/// One part of the entrants in drawn order; `None` behind the last.
pub fn entrants_find(tx: &mut Tx<'_>, event_id: Uuid, part: u32) -> DbResult<Option<Vec<Entrant>>> {
    tx.query_opt(
        "select entrants from draw_entrants where event_id = $1 and part = $2",
        params![event_id, part],
        |row| decode(&row.get::<Vec<u8>>("entrants")?),
    )
}

fn read_draw(row: &Row<'_>) -> DbResult<StoredDraw> {
    let last_number: Option<i64> = row.get("last_number")?;
    let closed_at: Option<Timestamp> = row.get("closed_at")?;
    let count: Option<u32> = row.get("entrants_count")?;
    let fixed_at: Option<Timestamp> = row.get("fixed_at")?;
    let digests = (digest(row, "entrants_digest")?, digest(row, "arrivals_digest")?, fixed_at);
    let beacon: Option<String> = row.get("beacon")?;
    let beacon = beacon.map(|text| text.parse()).transpose();
    Ok(StoredDraw {
        event_id: row.get("event_id")?,
        sealed_secret: row.get("sealed_secret")?,
        beacon: beacon.map_err(|_| broken("beacon", "unknown"))?,
        commitment: needed(digest(row, "commitment")?, "commitment")?,
        committed_at: row.get("committed_at")?,
        closing: last_number
            .zip(closed_at)
            .map(|(last_number, closed_at)| DrawClosing { last_number, closed_at }),
        entrants: match (count, digests) {
            (Some(count), (Some(digest), Some(arrivals), Some(fixed_at))) => {
                Some(DrawEntrants { count, digest, arrivals, fixed_at })
            }
            _ => None,
        },
        done_at: row.get("done_at")?,
    })
}

fn digest(row: &Row<'_>, column: &str) -> DbResult<Option<[u8; 32]>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    let Some(bytes) = bytes else { return Ok(None) };
    bytes.try_into().map(Some).map_err(|_| broken(column, "not 32 bytes"))
}

fn needed<T>(value: Option<T>, column: &str) -> DbResult<T> {
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

fn decode(bytes: &[u8]) -> DbResult<Vec<Entrant>> {
    let (rows, rest) = bytes.as_chunks::<ENTRANT_BYTES>();
    if !rest.is_empty() {
        return Err(broken("entrants", "not whole"));
    }
    let entrant = |row: &[u8; ENTRANT_BYTES]| {
        let (tag, arrival) = row.split_first_chunk().expect("a tag is the longer part");
        let arrival = arrival.try_into().expect("the rest of a row is the arrival");
        Entrant { tag: EntrantTag(*tag), arrival: u32::from_be_bytes(arrival) }
    };
    Ok(rows.iter().map(entrant).collect())
}

#[cfg(test)]
mod tests {
    use urr_storage::Db;
    use urr_test::engines::{Database, Engine, block_on};

    use super::*;
    use crate::SCHEMA;

    const EVENT: Uuid = Uuid::from_u128(1);

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    /// The list if these take part.
    fn listed(users: &[u128]) -> EntrantList {
        let tag = |user: &u128| EntrantTag::of(EVENT, Uuid::from_u128(*user));
        EntrantList::new(&users.iter().map(tag).collect::<Vec<_>>())
    }

    fn commitment(byte: u8) -> DrawCommitment {
        DrawCommitment { sealed_secret: vec![byte; 60], commitment: [byte; 32] }
    }

    fn beacon(byte: u8) -> BeaconValue {
        BeaconValue::Offline([byte; 32])
    }

    async fn write<T: Send + 'static>(
        db: &Db,
        body: impl Fn(&mut Tx<'_>) -> DbResult<T> + Send + 'static,
    ) -> T {
        db.write(body).await.unwrap()
    }

    /// Two processes may have seen different people in the room: the first word counts, and whole.
    #[test]
    fn of_two_words_on_the_same_step_the_first_counts() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let Some(database) = Database::open(engine, &SCHEMA, time(0)) else { continue };
            block_on(async {
                let db = &database.db;
                insert_room(db).await;
                let (one, other) = (listed(&[1, 2, 3]), listed(&[1, 2]));
                assert!(write(db, |tx| draw_insert(tx, EVENT, &commitment(1), time(1))).await);
                assert!(!write(db, |tx| draw_insert(tx, EVENT, &commitment(2), time(2))).await);
                let too_early = one.clone();
                let early = move |tx: &mut Tx<'_>| entrants_insert(tx, EVENT, &too_early, time(2));
                assert!(!write(db, early).await);
                assert!(!write(db, |tx| draw_finish(tx, EVENT, time(3))).await);
                for (last_number, is_first) in [(3, true), (4, false)] {
                    let closing = DrawClosing { last_number, closed_at: time(last_number) };
                    let closed = write(db, move |tx| draw_close(tx, EVENT, &closing)).await;
                    assert_eq!(closed, is_first);
                }
                assert!(!write(db, |tx| draw_finish(tx, EVENT, time(5))).await);
                for (list, is_first) in [(one.clone(), true), (other, false)] {
                    let fix = move |tx: &mut Tx<'_>| entrants_insert(tx, EVENT, &list, time(5));
                    assert_eq!(write(db, fix).await, is_first);
                }
                assert!(!write(db, |tx| draw_finish(tx, EVENT, time(5))).await, "not ordered");
                let drawn: Vec<Entrant> = one.entrants.iter().rev().copied().collect();
                for (byte, is_first) in [(7, true), (8, false)] {
                    let drawn = drawn.clone();
                    let order =
                        move |tx: &mut Tx<'_>| entrants_reorder(tx, EVENT, &beacon(byte), &drawn);
                    assert_eq!(write(db, order).await, is_first);
                }
                assert!(write(db, |tx| draw_finish(tx, EVENT, time(6))).await);
                assert!(!write(db, |tx| draw_finish(tx, EVENT, time(7))).await);
                let found = write(db, |tx| draw_find(tx, EVENT)).await.unwrap();
                let EntrantList { digest, arrivals, .. } = one;
                let entrants = DrawEntrants { count: 3, digest, arrivals, fixed_at: time(5) };
                assert_eq!(found.sealed_secret, [1; 60]);
                assert_eq!(found.commitment, [1; 32]);
                assert_eq!(found.beacon, Some(beacon(7)));
                assert_eq!(found.committed_at, time(1));
                assert_eq!(found.closing, Some(DrawClosing { last_number: 3, closed_at: time(3) }));
                assert_eq!(found.entrants, Some(entrants));
                assert_eq!(found.done_at, Some(time(6)));
                let listed = write(db, |tx| entrants_find(tx, EVENT, 0)).await;
                assert_eq!(listed, Some(drawn));
            });
        }
    }

    #[test]
    fn many_entrants_are_read_as_they_were_written() {
        let database = Database::open(Engine::Sqlite, &SCHEMA, time(0)).unwrap();
        block_on(async {
            let db = &database.db;
            insert_room(db).await;
            let users: Vec<u128> = (0..12_345).collect();
            let (drawn, written) = (listed(&users), listed(&users));
            write(db, move |tx| {
                draw_insert(tx, EVENT, &commitment(1), time(1))?;
                draw_close(tx, EVENT, &DrawClosing { last_number: 20_000, closed_at: time(2) })?;
                entrants_insert(tx, EVENT, &written, time(3))
            })
            .await;
            let mut read = Vec::new();
            for part in 0..3 {
                read.extend(write(db, move |tx| entrants_find(tx, EVENT, part)).await.unwrap());
            }
            assert_eq!(read, drawn.entrants);
            assert_eq!(write(db, |tx| entrants_find(tx, EVENT, 3)).await, None);
        });
    }

    async fn insert_room(db: &Db) {
        let insert = "insert into rooms (event_id, revision, status, title, has_presale, opening, \
                      is_paused, has_autopilot, updated_at) \
                      values ($1, 1, 'open', '', false, 'lottery', false, false, $2)";
        write(db, move |tx| tx.execute(insert, params![EVENT, time(0)])).await;
    }
}
