//! The outbox: domain events are inserted with the change they announce, and published afterwards.
//!
//! The relay (in `urr-bus`) is the only reader. It never remembers "the highest number seen": a
//! transaction may commit its number after a later number was seen, and its event would be lost.
//! It reads the rows that are not yet marked as published.

use std::time::Duration;

use urr_kernel::{CallContext, DomainEvent, EventData, Timestamp, Uuid};

use crate::{DbResult, Tx, Value, from_row, params};

/// An event is a fact, not a document; what exceeds this is a mistake, found before the broker
/// refuses it for ever.
pub const EVENT_BYTES_MAX: usize = 256 * 1024;

/// The envelope of a new event without its data. The id is given by the caller, so that a closure
/// that runs twice announces the same event.
#[derive(Clone, Copy, Debug)]
pub struct EventMetadata {
    pub event_id: Uuid,
    pub source: &'static str,
    pub time: Timestamp,
    pub context: CallContext,
}

/// Announces a fact, if and only if this transaction commits.
pub fn append<D: EventData>(tx: &mut Tx<'_>, metadata: &EventMetadata, data: &D) -> DbResult<()> {
    let (event, body) = envelope(metadata, data);
    tx.execute_later(
        "insert into outbox (event_id, topic, key, body, created_at) values ($1, $2, $3, $4, $5)",
        params![event.id, D::TOPIC, event.subject, body, metadata.time],
    )?;
    tx.note_outbox_row();
    Ok(())
}

/// Announces many facts in their order: on PostgreSQL by one statement.
pub fn append_all<D: EventData>(tx: &mut Tx<'_>, facts: &[(EventMetadata, D)]) -> DbResult<()> {
    if !tx.is_postgres() {
        return facts.iter().try_for_each(|(metadata, data)| append(tx, metadata, data));
    }
    let Some((first, _)) = facts.first() else { return Ok(()) };
    let rows = rows_to_insert(tx, facts);
    tx.execute_later(
        "insert into outbox (event_id, topic, key, body, created_at) \
         select id, $2::text, key, body, $3::timestamptz \
         from jsonb_to_recordset($1) as fact (id uuid, key text, body text)",
        params![rows, D::TOPIC, first.time],
    )
}

/// Facts as an array of `{id, key, body}`, for a caller whose own statement inserts them with the
/// change that they announce: that saves a round trip to PostgreSQL.
pub fn rows_to_insert<D: EventData>(
    tx: &mut Tx<'_>,
    facts: &[(EventMetadata, D)],
) -> serde_json::Value {
    tx.note_outbox_row();
    let rows = facts.iter().map(|(metadata, data)| {
        let (event, body) = envelope(metadata, data);
        serde_json::json!({"id": event.id, "key": event.subject, "body": body})
    });
    rows.collect()
}

/// The event in its envelope, and as text.
fn envelope<D: EventData>(metadata: &EventMetadata, data: &D) -> (DomainEvent, String) {
    let event = DomainEvent::new(
        metadata.event_id,
        metadata.source,
        metadata.time,
        &metadata.context,
        data,
    );
    let body = String::from_utf8(event.to_bytes()).expect("JSON is UTF-8");
    assert!(body.len() <= EVENT_BYTES_MAX, "a {} of {} bytes", D::TYPE, body.len());
    (event, body)
}

/// An event that waits to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    pub seq: i64,
    pub topic: String,
    pub key: String,
    pub body: String,
}

/// Takes or renews the lease of the outbox. Only one relay of a schema has it at a time.
///
/// A lease that ends more than twice its length from now was set by a clock that is far ahead. It is
/// ignored, or nothing would be published for hours. The second length allows for clocks that differ
/// a little.
pub fn lease_take(
    tx: &mut Tx<'_>,
    holder: Uuid,
    now: Timestamp,
    lease: Duration,
) -> DbResult<bool> {
    let rows = tx.execute(
        "insert into outbox_lease (id, holder, held_until) values (1, $1, $2) \
         on conflict (id) do update set holder = excluded.holder, held_until = excluded.held_until \
         where outbox_lease.holder = excluded.holder or outbox_lease.held_until < $3 \
         or outbox_lease.held_until > $4",
        params![holder, now + lease, now, now + lease * 2],
    )?;
    Ok(rows == 1)
}

/// Releases the lease, so that another relay need not wait for its end.
pub fn lease_release(tx: &mut Tx<'_>, holder: Uuid) -> DbResult<()> {
    tx.execute("delete from outbox_lease where holder = $1", params![holder])?;
    Ok(())
}

/// The oldest events that were not published yet.
pub fn unpublished(tx: &mut Tx<'_>, limit: u32) -> DbResult<Vec<OutboxRow>> {
    unpublished_after(tx, 0, limit)
}

fn unpublished_after(tx: &mut Tx<'_>, seq: i64, limit: u32) -> DbResult<Vec<OutboxRow>> {
    tx.query(
        "select seq, topic, key, body from outbox where published_at is null and seq > $1 \
         order by seq limit $2",
        params![seq, limit],
        |row| Ok(from_row!(row => OutboxRow { seq, topic, key, body })),
    )
}

/// The oldest unpublished events after `seq`. `passed` is how many up to `seq` the reader could not
/// publish.
///
/// `None` if there are more of those by now: a transaction has committed late, and its event must be
/// published before later ones of the same key. The rows are read before the count, so the count
/// includes everything that was committed when they were read.
pub fn unpublished_behind(
    tx: &mut Tx<'_>,
    seq: i64,
    passed: u64,
    limit: u32,
) -> DbResult<Option<Vec<OutboxRow>>> {
    let rows = unpublished_after(tx, seq, limit)?;
    let sql = "select count(*) as waiting from outbox where published_at is null and seq <= $1";
    let waiting: u64 = tx.query_one(sql, params![seq], |row| row.get("waiting"))?;
    Ok((waiting <= passed).then_some(rows))
}

/// How many rows one statement marks. The last chunk is padded with its last number, so that there
/// is one statement to prepare and not a hundred.
const MARK_CHUNK: usize = 100;

pub fn mark_published(tx: &mut Tx<'_>, seqs: &[i64], now: Timestamp) -> DbResult<()> {
    let numbers: Vec<String> = (2..MARK_CHUNK + 2).map(|number| format!("${number}")).collect();
    let sql = format!("update outbox set published_at = $1 where seq in ({})", numbers.join(", "));
    for chunk in seqs.chunks(MARK_CHUNK) {
        let last = chunk.last().expect("a chunk is not empty");
        let padded = chunk.iter().chain(std::iter::repeat(last)).take(MARK_CHUNK);
        let mut values = vec![Value::Time(now)];
        values.extend(padded.map(|seq| Value::Int(*seq)));
        tx.execute_later(&sql, &values)?;
    }
    Ok(())
}

/// Deletes events published before `before`, a bounded number at a time. Returns how many.
pub fn purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from outbox where seq in \
         (select seq from outbox where published_at < $1 order by published_at limit $2)",
        params![before, limit],
    )
}

/// How many events wait to be published, and since when the oldest does.
pub fn lag(tx: &mut Tx<'_>) -> DbResult<(u64, Option<Timestamp>)> {
    tx.query_one(
        "select count(*) as waiting, min(created_at) as oldest from outbox \
         where published_at is null",
        &[],
        |row| Ok((row.get("waiting")?, row.get("oldest")?)),
    )
}
