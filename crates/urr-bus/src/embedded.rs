//! The embedded bus: the log is a SQLite file.
//!
//! Offsets are given out in the transaction of the writer, so they are dense and a reader never
//! sees a later message before an earlier one of its partition.

pub(crate) mod log;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tracing::error;
use urr_kernel::{Clock, Timestamp};
use urr_storage::{Db, Schema, SqliteOptions, migrate};

use crate::bus::{TopicSpec, dead_letter_topic};
use crate::reader::{PAGE_MAX, PartitionRange};
use crate::subscription::{BATCH_MAX, PartitionLag};
use crate::{BusError, BusMessage, Delivery, DeliveryBatch, MessagePosition};

pub const SCHEMA: Schema = Schema {
    name: "bus",
    migrations: urr_storage::migrations![1 "log" => "../migrations/0001_log.sql"],
};

/// A publisher in this process wakes the consumers; an operator's command is another process.
const POLL: Duration = Duration::from_secs(1);

type PartitionKey = (String, i32);

pub(crate) struct EmbeddedBus {
    db: Db,
    clock: Clock,
    /// Wakes those who wait for a publication, always in the same order.
    appended: Arc<Notify>,
    /// Which group consumes which topic at present.
    consuming: Arc<Mutex<HashSet<(String, String)>>>,
}

impl EmbeddedBus {
    pub(crate) fn open(path: &Path, clock: &Clock) -> Result<EmbeddedBus, BusError> {
        migrate::migrate_sqlite(path, &SCHEMA, clock.now())?;
        let options = SqliteOptions { readers: 2, ..SqliteOptions::default() };
        Ok(EmbeddedBus::on(Db::open_sqlite(path, &options)?, clock))
    }

    pub(crate) fn open_read_only(path: &Path, clock: &Clock) -> Result<EmbeddedBus, BusError> {
        let options = SqliteOptions { readers: 1, ..SqliteOptions::default() };
        Ok(EmbeddedBus::on(Db::open_sqlite_read_only(path, &options)?, clock))
    }

    /// `db` has the tables.
    pub(crate) fn on(db: Db, clock: &Clock) -> EmbeddedBus {
        let (appended, consuming) = (Arc::default(), Arc::default());
        EmbeddedBus { db, clock: clock.clone(), appended, consuming }
    }

    pub(crate) async fn ensure_topics(&self, topics: &[TopicSpec]) -> Result<(), BusError> {
        let topics = topics.to_vec();
        self.db
            .write(move |tx| {
                for topic in &topics {
                    let retention_ms = i64::try_from(topic.retention.as_millis())
                        .expect("messages are kept for less than centuries");
                    let dead_letters = dead_letter_topic(&topic.name);
                    for partition in 0..topic.partitions {
                        log::partition_insert(tx, &topic.name, partition, retention_ms)?;
                        log::partition_insert(tx, &dead_letters, partition, log::KEEP_FOR_EVER_MS)?;
                    }
                }
                Ok(())
            })
            .await
    }

    /// In one transaction. A message that has nowhere to go fails alone, as it does on Kafka.
    pub(crate) async fn publish(
        &self,
        messages: Vec<BusMessage>,
    ) -> Vec<Result<MessagePosition, BusError>> {
        let (count, now) = (messages.len(), self.clock.now());
        let outcome: Result<Vec<_>, BusError> = self
            .db
            .write(move |tx| {
                let mut partitions = HashMap::new();
                let mut append =
                    |message| match log::message_append(tx, &mut partitions, message, now) {
                        Err(BusError::Storage(error)) => Err(BusError::Storage(error)),
                        result => Ok(result),
                    };
                messages.iter().map(&mut append).collect()
            })
            .await;
        match outcome {
            Ok(results) => {
                self.appended.notify_waiters();
                results
            }
            Err(error) => vec![Err(error); count],
        }
    }

    pub(crate) async fn subscribe(
        &self,
        group: &str,
        topics: &[String],
    ) -> Result<EmbeddedSubscription, BusError> {
        let claim = TopicClaim::take(&self.consuming, group, topics)?;
        let (group, topics) = (group.to_owned(), topics.to_vec());
        let reader =
            EmbeddedLagReader { db: self.db.clone(), group: group.clone(), topics: topics.clone() };
        let positions =
            self.db.write(move |tx| log::group_offset_start(tx, &group, &topics)).await?;
        Ok(EmbeddedSubscription {
            reader,
            appended: Arc::clone(&self.appended),
            positions,
            _claim: claim,
        })
    }

    pub(crate) async fn topics(&self) -> Result<Vec<String>, BusError> {
        self.db.read(|tx| Ok(log::topic_list(tx)?)).await
    }

    pub(crate) async fn extents(&self, topic: &str) -> Result<Vec<PartitionRange>, BusError> {
        let topic = topic.to_owned();
        self.db.read(move |tx| Ok(log::extent_list(tx, &topic)?)).await
    }

    pub(crate) fn reader(&self, extent: &PartitionRange) -> EmbeddedReader {
        EmbeddedReader { db: self.db.clone(), rest: extent.clone() }
    }

    pub(crate) async fn trim(&self, now: Timestamp, limit: u32) -> Result<u64, BusError> {
        let trim = self.db.write(move |tx| {
            let (mut trimmed, mut unread, mut groups) = (0, 0, BTreeSet::new());
            for partition in log::partition_ends(tx)? {
                trimmed += log::message_trim(tx, &partition, now, limit)?;
                let lost = log::message_trim_unread(tx, &partition, now, limit)?;
                if lost > 0 {
                    unread += lost;
                    groups.extend(log::group_deprived_list(tx, &partition)?);
                }
            }
            Ok::<_, BusError>((trimmed + unread, unread, groups))
        });
        let (trimmed, unread, groups) = trim.await?;
        if unread > 0 {
            error!(unread, ?groups, "messages were deleted that these groups never read");
        }
        Ok(trimmed)
    }

    pub(crate) async fn close(&self) {
        let db = self.db.clone();
        let closing = tokio::task::spawn_blocking(move || db.close());
        closing.await.expect("closing the storage does not panic");
        // Those who wait learn that it is closed.
        self.appended.notify_waiters();
    }
}

/// Reads a range of a partition.
pub(crate) struct EmbeddedReader {
    db: Db,
    rest: PartitionRange,
}

impl EmbeddedReader {
    pub(crate) async fn next_page(&mut self) -> Result<Vec<Delivery>, BusError> {
        let PartitionRange { topic, partition, start, end } = self.rest.clone();
        let read = self.db.read(move |tx| {
            Ok::<_, BusError>(log::message_read(tx, &topic, partition, start, PAGE_MAX)?)
        });
        let mut page = read.await?;
        page.retain(|delivery| delivery.position.offset < end);
        self.rest.start = page.last().map_or(end, |delivery| delivery.position.offset + 1);
        Ok(page)
    }
}

/// The right of one subscription to a group's topics. Given back when it is dropped.
struct TopicClaim {
    consuming: Arc<Mutex<HashSet<(String, String)>>>,
    claimed: Vec<(String, String)>,
}

impl TopicClaim {
    fn take(
        consuming: &Arc<Mutex<HashSet<(String, String)>>>,
        group: &str,
        topics: &[String],
    ) -> Result<TopicClaim, BusError> {
        let mut claim = TopicClaim { consuming: Arc::clone(consuming), claimed: Vec::new() };
        for topic in topics {
            let place = (group.to_owned(), topic.clone());
            let mut taken = consuming.lock().unwrap_or_else(PoisonError::into_inner);
            if !taken.insert(place.clone()) {
                let (group, topic) = place;
                return Err(BusError::GroupBusy { group, topic });
            }
            claim.claimed.push(place);
        }
        Ok(claim)
    }
}

impl Drop for TopicClaim {
    fn drop(&mut self) {
        let mut taken = self.consuming.lock().unwrap_or_else(PoisonError::into_inner);
        for place in &self.claimed {
            taken.remove(place);
        }
    }
}

pub(crate) struct EmbeddedSubscription {
    reader: EmbeddedLagReader,
    appended: Arc<Notify>,
    /// What the next batch starts with, per partition.
    positions: BTreeMap<PartitionKey, i64>,
    _claim: TopicClaim,
}

impl EmbeddedSubscription {
    pub(crate) async fn next_batch(&mut self) -> Result<DeliveryBatch, BusError> {
        let appended = Arc::clone(&self.appended);
        loop {
            // From before the read, so that no publication is missed.
            let mut is_appended = pin!(appended.notified());
            is_appended.as_mut().enable();
            let deliveries = self.read().await?;
            if !deliveries.is_empty() {
                let batch = DeliveryBatch { deliveries };
                for ((topic, partition), offset) in batch.next_offsets() {
                    self.positions.insert((topic.to_owned(), partition), offset);
                }
                return Ok(batch);
            }
            tokio::select! {
                biased;
                () = is_appended => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    async fn read(&self) -> Result<Vec<Delivery>, BusError> {
        let (topics, positions) = (self.reader.topics.clone(), self.positions.clone());
        self.reader
            .db
            .read(move |tx| {
                let mut places = Vec::new();
                for topic in &topics {
                    places.extend(log::partitions_with_news(tx, topic, &positions)?);
                }
                // Every partition with new messages gets its share, so that none waits for another.
                let share = BATCH_MAX / places.len().clamp(1, BATCH_MAX);
                let mut deliveries = Vec::new();
                for (topic, partition, from) in places.iter().take(BATCH_MAX) {
                    deliveries.extend(log::message_read(tx, topic, *partition, *from, share)?);
                }
                Ok(deliveries)
            })
            .await
    }

    pub(crate) async fn acknowledge(&mut self, batch: &DeliveryBatch) -> Result<(), BusError> {
        let group = self.reader.group.clone();
        let offsets: Vec<(PartitionKey, i64)> = batch
            .next_offsets()
            .into_iter()
            .map(|((topic, partition), offset)| ((topic.to_owned(), partition), offset))
            .collect();
        self.reader
            .db
            .write(move |tx| {
                for (place, offset) in &offsets {
                    log::group_offset_set(tx, &group, place, *offset)?;
                }
                Ok(())
            })
            .await
    }

    pub(crate) fn lag_reader(&self) -> EmbeddedLagReader {
        self.reader.clone()
    }
}

#[derive(Clone)]
pub(crate) struct EmbeddedLagReader {
    db: Db,
    group: String,
    topics: Vec<String>,
}

impl EmbeddedLagReader {
    pub(crate) async fn lag(&self) -> Result<Vec<PartitionLag>, BusError> {
        let (group, topics) = (self.group.clone(), self.topics.clone());
        self.db
            .read(move |tx| {
                let mut lags = Vec::new();
                for topic in &topics {
                    lags.extend(log::group_lag(tx, &group, topic)?);
                }
                Ok(lags)
            })
            .await
    }
}
