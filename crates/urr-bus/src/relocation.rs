//! Carries what nobody has handled yet from an embedded log to another bus.
//!
//! Messages are not carried that every group has handled. One that some groups have handled is
//! published to all; the inboxes of those groups, which move with their tables, know it.

use std::collections::HashSet;

use urr_storage::{DbResult, Tx};

use crate::bus::{dead_letter_topic, topic_of_dead_letters};
use crate::dead_letters::REPLAYED;
use crate::embedded::log;
use crate::reader::{PAGE_MAX, PartitionRange};
use crate::{Bus, BusError, BusMessage, Delivery};

/// Published at once.
const BATCH: usize = 500;

/// What an embedded log holds that somebody still has to handle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadMessages {
    /// In the order of each partition.
    pub messages: Vec<BusMessage>,
    /// Dead letters that were not replayed.
    pub dead_letters: Vec<BusMessage>,
}

#[derive(Debug, thiserror::Error)]
pub enum RelocationError {
    #[error(
        "the topic {topic} holds messages that are not of this shop; use topics that are empty"
    )]
    ForeignMessages { topic: String },
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl UnreadMessages {
    /// Reads the log in the tables of [`crate::EMBEDDED_SCHEMA`].
    pub fn read(tx: &mut Tx<'_>) -> DbResult<UnreadMessages> {
        let mut unread = UnreadMessages::default();
        for topic in log::topic_list(tx)? {
            if topic_of_dead_letters(&topic).is_some() {
                unread.dead_letters.extend(open_letters(tx, &topic)?);
                continue;
            }
            let slowest = log::slowest_offsets(tx, &topic)?;
            for mut range in log::extent_list(tx, &topic)? {
                let Some(from) = slowest.get(&range.partition) else { continue };
                range.start = range.start.max(*from);
                let deliveries = read_range(tx, range)?;
                // The key decides: the other bus may have another number of partitions.
                unread.messages.extend(deliveries.into_iter().map(message));
            }
        }
        Ok(unread)
    }

    /// Publishes everything that is not on the other bus yet. If it is repeated after a failure, the
    /// rest follows. `topics` exist there; one that has messages of somebody else is refused.
    pub async fn publish(&self, bus: &Bus, topics: &[&str]) -> Result<(), RelocationError> {
        let all: HashSet<MessageKey> = self.iter().map(key).collect();
        let mut present = HashSet::new();
        let both = topics.iter().map(|topic| ((*topic).to_owned(), dead_letter_topic(topic)));
        for topic in both.flat_map(<[String; 2]>::from) {
            let mut pages = bus.pages(&topic).await?;
            loop {
                let page = pages.next_page().await?;
                if page.is_empty() {
                    break;
                }
                for delivery in page {
                    let key = (topic.clone(), delivery.key, delivery.body);
                    if !all.contains(&key) {
                        return Err(RelocationError::ForeignMessages { topic });
                    }
                    present.insert(key);
                }
            }
        }
        let missing: Vec<&BusMessage> =
            self.iter().filter(|message| !present.contains(&key(message))).collect();
        for batch in missing.chunks(BATCH) {
            let batch = batch.iter().map(|message| (*message).clone()).collect();
            for published in bus.publish(batch).await {
                published?;
            }
        }
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = &BusMessage> {
        self.messages.iter().chain(&self.dead_letters)
    }
}

type MessageKey = (String, Vec<u8>, Vec<u8>);

fn key(message: &BusMessage) -> MessageKey {
    (message.topic.clone(), message.key.clone(), message.body.clone())
}

fn open_letters(tx: &mut Tx<'_>, topic: &str) -> DbResult<Vec<BusMessage>> {
    let mut all = Vec::new();
    for range in log::extent_list(tx, topic)? {
        all.extend(read_range(tx, range)?);
    }
    let replayed: HashSet<String> =
        all.iter().filter_map(|delivery| delivery.headers.get(REPLAYED).cloned()).collect();
    let is_open = |delivery: &Delivery| {
        let id = delivery.position.to_string();
        !delivery.headers.contains_key(REPLAYED) && !replayed.contains(&id)
    };
    Ok(all.into_iter().filter(is_open).map(message).collect())
}

fn read_range(tx: &mut Tx<'_>, mut range: PartitionRange) -> DbResult<Vec<Delivery>> {
    let mut all: Vec<Delivery> = Vec::new();
    loop {
        let page = log::message_read(tx, &range.topic, range.partition, range.start, PAGE_MAX)?;
        let Some(last) = page.last() else { return Ok(all) };
        range.start = last.position.offset + 1;
        all.extend(page);
    }
}

fn message(delivery: Delivery) -> BusMessage {
    let Delivery { position, key, body, headers } = delivery;
    BusMessage { topic: position.topic, key, body, headers, partition: None }
}
