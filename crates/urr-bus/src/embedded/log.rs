//! The tables of the log.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Row, Tx, from_row, params};

use super::PartitionKey;
use crate::partition::partition_of;
use crate::reader::PartitionRange;
use crate::subscription::PartitionLag;
use crate::{BusError, BusMessage, Delivery, MessagePosition};

/// Dead letters have no end of retention, as Kafka writes it.
pub(super) const KEEP_FOR_EVER_MS: i64 = -1;

pub(crate) fn topic_list(tx: &mut Tx<'_>) -> DbResult<Vec<String>> {
    let sql = "select distinct topic from bus_partition order by topic";
    tx.query(sql, &[], |row| row.get("topic"))
}

/// The partitions of a topic, each from its first message to its end.
pub(crate) fn extent_list(tx: &mut Tx<'_>, topic: &str) -> DbResult<Vec<PartitionRange>> {
    tx.query(
        "select p.partition, p.next_offset, coalesce((select min(m.message_offset) \
         from bus_message m where m.topic = p.topic and m.partition = p.partition), \
         p.next_offset) as first_offset from bus_partition p where p.topic = $1 \
         order by p.partition",
        params![topic],
        |row| {
            Ok(PartitionRange {
                topic: topic.to_owned(),
                partition: row.get("partition")?,
                start: row.get("first_offset")?,
                end: row.get("next_offset")?,
            })
        },
    )
}

pub(super) fn partition_insert(
    tx: &mut Tx<'_>,
    topic: &str,
    partition: i32,
    retention_ms: i64,
) -> DbResult<()> {
    tx.execute(
        "insert into bus_partition (topic, partition, next_offset, retention_ms) \
         values ($1, $2, 0, $3) \
         on conflict (topic, partition) do update set retention_ms = excluded.retention_ms",
        params![topic, partition, retention_ms],
    )?;
    Ok(())
}

/// Appends one message. `partitions` remembers how many each topic has.
pub(super) fn message_append<'a>(
    tx: &mut Tx<'_>,
    partitions: &mut HashMap<&'a str, i32>,
    message: &'a BusMessage,
    now: Timestamp,
) -> Result<MessagePosition, BusError> {
    let topic = message.topic.as_str();
    let count = match partitions.get(topic) {
        Some(count) => *count,
        None => {
            let sql = "select count(*) as partitions from bus_partition where topic = $1";
            let count = tx.query_one(sql, params![topic], |row| row.get("partitions"))?;
            partitions.insert(topic, count);
            count
        }
    };
    if count == 0 {
        return Err(BusError::UnknownTopic(topic.to_owned()));
    }
    let by_key = || partition_of(&message.key, count);
    let partition = message.partition.unwrap_or_else(by_key);
    let offset: Option<i64> = tx.query_opt(
        "update bus_partition set next_offset = next_offset + 1 \
         where topic = $1 and partition = $2 returning next_offset - 1 as message_offset",
        params![topic, partition],
        |row| row.get("message_offset"),
    )?;
    let offset = offset.ok_or_else(|| BusError::UnknownTopic(format!("{topic}/{partition}")))?;
    let headers = serde_json::to_value(&message.headers).expect("headers are texts");
    tx.execute(
        "insert into bus_message \
         (topic, partition, message_offset, key, body, headers, appended_at) \
         values ($1, $2, $3, $4, $5, $6, $7)",
        params![topic, partition, offset, message.key, message.body, headers, now],
    )?;
    Ok(MessagePosition { topic: topic.to_owned(), partition, offset })
}

/// Where a group goes on. A group that is new starts at the beginning, and is remembered, so that
/// nothing is trimmed before it was read.
pub(super) fn group_offset_start(
    tx: &mut Tx<'_>,
    group: &str,
    topics: &[String],
) -> Result<BTreeMap<PartitionKey, i64>, BusError> {
    let mut positions = BTreeMap::new();
    for topic in topics {
        tx.execute(
            "insert into bus_group_offset (consumer_group, topic, partition, next_offset) \
             select $1, topic, partition, 0 from bus_partition where topic = $2 \
             on conflict (consumer_group, topic, partition) do nothing",
            params![group, topic],
        )?;
        let offsets = tx.query(
            "select partition, next_offset from bus_group_offset \
             where consumer_group = $1 and topic = $2",
            params![group, topic],
            |row| Ok(((topic.clone(), row.get("partition")?), row.get("next_offset")?)),
        )?;
        positions.extend(offsets);
    }
    Ok(positions)
}

/// A group that reads nothing keeps messages for this many times their retention. Then they are
/// deleted unread, as on Kafka.
const RETENTIONS_UNREAD_MAX: i64 = 4;

/// A partition, where it ends, and up to where every group has read it.
pub(super) struct PartitionEnd {
    topic: String,
    partition: i32,
    retention_ms: i64,
    read_by_all: i64,
    next_offset: i64,
}

pub(super) fn partition_ends(tx: &mut Tx<'_>) -> DbResult<Vec<PartitionEnd>> {
    tx.query(
        "select p.topic, p.partition, p.retention_ms, p.next_offset, \
         coalesce((select min(g.next_offset) from bus_group_offset g \
         where g.topic = p.topic and g.partition = p.partition), p.next_offset) as read_by_all \
         from bus_partition p where p.retention_ms <> $1",
        params![KEEP_FOR_EVER_MS],
        |row| {
            Ok(from_row!(row => PartitionEnd {
                topic, partition, retention_ms, read_by_all, next_offset
            }))
        },
    )
}

/// Deletes old messages that every group has read.
pub(super) fn message_trim(
    tx: &mut Tx<'_>,
    end: &PartitionEnd,
    now: Timestamp,
    limit: u32,
) -> DbResult<u64> {
    message_trim_range(tx, end, 0..end.read_by_all, before(now, end.retention_ms), limit)
}

/// Deletes messages that are too old to wait for any group.
pub(super) fn message_trim_unread(
    tx: &mut Tx<'_>,
    end: &PartitionEnd,
    now: Timestamp,
    limit: u32,
) -> DbResult<u64> {
    let age_ms = end.retention_ms.saturating_mul(RETENTIONS_UNREAD_MAX);
    message_trim_range(tx, end, end.read_by_all..end.next_offset, before(now, age_ms), limit)
}

fn before(now: Timestamp, age_ms: i64) -> Timestamp {
    let before_us = now.as_microsecond().saturating_sub(age_ms.saturating_mul(1_000));
    Timestamp::from_microsecond(before_us).unwrap_or(Timestamp::MIN)
}

/// Looks at no more than `limit` messages: the log is long, and this is its only writer.
fn message_trim_range(
    tx: &mut Tx<'_>,
    end: &PartitionEnd,
    offsets: Range<i64>,
    before: Timestamp,
    limit: u32,
) -> DbResult<u64> {
    tx.execute(
        "delete from bus_message where topic = $1 and partition = $2 and message_offset in \
         (select message_offset from (select message_offset, appended_at from bus_message \
         where topic = $1 and partition = $2 and message_offset >= $3 and message_offset < $4 \
         order by message_offset limit $6) as oldest where appended_at < $5)",
        params![end.topic, end.partition, offsets.start, offsets.end, before, limit],
    )
}

/// The groups that have not read up to where a partition begins by now.
pub(super) fn group_deprived_list(tx: &mut Tx<'_>, end: &PartitionEnd) -> DbResult<Vec<String>> {
    tx.query(
        "select consumer_group from bus_group_offset \
         where topic = $1 and partition = $2 and next_offset < coalesce((select \
         min(message_offset) from bus_message where topic = $1 and partition = $2), $3)",
        params![end.topic, end.partition, end.next_offset],
        |row| row.get("consumer_group"),
    )
}

fn read_delivery(row: &Row<'_>) -> DbResult<Delivery> {
    let offset = row.get("message_offset")?;
    let position = from_row!(row => MessagePosition { topic, partition; offset: offset });
    let headers = row.get_json("headers")?;
    Ok(from_row!(row => Delivery { key, body; position: position, headers: headers }))
}

pub(super) fn partitions_with_news(
    tx: &mut Tx<'_>,
    topic: &str,
    positions: &BTreeMap<PartitionKey, i64>,
) -> DbResult<Vec<(String, i32, i64)>> {
    let ends: Vec<(i32, i64)> = tx.query(
        "select partition, next_offset from bus_partition where topic = $1 order by partition",
        params![topic],
        |row| Ok((row.get("partition")?, row.get("next_offset")?)),
    )?;
    let mut places = Vec::new();
    for (partition, end) in ends {
        let place = (topic.to_owned(), partition);
        let from = positions.get(&place).copied().unwrap_or(0);
        if from < end {
            places.push((place.0, partition, from));
        }
    }
    Ok(places)
}

pub(crate) fn message_read(
    tx: &mut Tx<'_>,
    topic: &str,
    partition: i32,
    from: i64,
    limit: usize,
) -> DbResult<Vec<Delivery>> {
    let limit = i64::try_from(limit).expect("a batch is small");
    tx.query(
        "select topic, partition, message_offset, key, body, headers from bus_message \
         where topic = $1 and partition = $2 and message_offset >= $3 \
         order by message_offset limit $4",
        params![topic, partition, from, limit],
        read_delivery,
    )
}

pub(super) fn group_offset_set(
    tx: &mut Tx<'_>,
    group: &str,
    (topic, partition): &PartitionKey,
    next_offset: i64,
) -> DbResult<()> {
    tx.execute(
        "insert into bus_group_offset (consumer_group, topic, partition, next_offset) \
         values ($1, $2, $3, $4) on conflict (consumer_group, topic, partition) \
         do update set next_offset = excluded.next_offset",
        params![group, topic, *partition, next_offset],
    )?;
    Ok(())
}

pub(super) fn group_lag(tx: &mut Tx<'_>, group: &str, topic: &str) -> DbResult<Vec<PartitionLag>> {
    tx.query(
        "select p.partition, p.next_offset - coalesce(g.next_offset, 0) as lag \
         from bus_partition p left join bus_group_offset g on g.consumer_group = $1 \
         and g.topic = p.topic and g.partition = p.partition where p.topic = $2",
        params![group, topic],
        |row| {
            Ok(PartitionLag {
                topic: topic.to_owned(),
                partition: row.get("partition")?,
                messages: row.get("lag")?,
            })
        },
    )
}

/// Where the slowest group of each partition of a topic goes on. A partition that no group reads is
/// absent.
pub(crate) fn slowest_offsets(tx: &mut Tx<'_>, topic: &str) -> DbResult<BTreeMap<i32, i64>> {
    let sql = "select partition, min(next_offset) as next_offset from bus_group_offset \
               where topic = $1 group by partition";
    let offsets =
        tx.query(sql, params![topic], |row| Ok((row.get("partition")?, row.get("next_offset")?)))?;
    Ok(offsets.into_iter().collect())
}
