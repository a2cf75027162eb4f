//! The public interface of the bus, whichever engine it has.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{Clock, Timestamp};

use crate::embedded::EmbeddedBus;
use crate::kafka::{self, KafkaBus, KafkaOptions, KafkaReader, KafkaSubscription};
use crate::reader::{PartitionRange, TopicReader};
use crate::subscription::SubscriptionEngine;
use crate::{BusError, BusMessage, Delivery, MessagePosition, Subscription};

/// The bus. Clones share it.
#[derive(Clone)]
pub struct Bus {
    engine: Arc<BusEngine>,
}

enum BusEngine {
    Embedded(EmbeddedBus),
    Kafka(Box<KafkaBus>),
}

/// A topic that must exist. Its dead-letter topic is created with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    pub name: String,
    pub partitions: i32,
    /// Messages are kept this long. Inboxes must remember longer, or a replay would act again.
    pub retention: Duration,
}

const PARTITIONS: i32 = 3;
const RETENTION: Duration = Duration::from_hours(7 * 24);

impl TopicSpec {
    /// Three partitions, kept for seven days.
    pub fn new(name: impl Into<String>) -> TopicSpec {
        TopicSpec { name: name.into(), partitions: PARTITIONS, retention: RETENTION }
    }
}

const DEAD_LETTER_SUFFIX: &str = "-dlq";

/// Where the dead letters of a topic go.
pub fn dead_letter_topic(topic: &str) -> String {
    format!("{topic}{DEAD_LETTER_SUFFIX}")
}

/// The topic whose dead letters these are, if it is such a topic.
pub(crate) fn topic_of_dead_letters(topic: &str) -> Option<&str> {
    topic.strip_suffix(DEAD_LETTER_SUFFIX)
}

impl Bus {
    /// Opens the log in a SQLite file, and creates it if it is missing.
    ///
    /// One process owns the file while it runs; a command of an operator may join it for a moment.
    pub fn open_embedded(path: &Path, clock: &Clock) -> Result<Bus, BusError> {
        let engine = BusEngine::Embedded(EmbeddedBus::open(path, clock)?);
        Ok(Bus { engine: Arc::new(engine) })
    }

    /// Opens the log for somebody who only reads. Nothing is created or changed.
    pub fn open_embedded_read_only(path: &Path, clock: &Clock) -> Result<Bus, BusError> {
        let engine = BusEngine::Embedded(EmbeddedBus::open_read_only(path, clock)?);
        Ok(Bus { engine: Arc::new(engine) })
    }

    /// The embedded bus on a database that has the tables of [`crate::EMBEDDED_SCHEMA`].
    #[cfg(feature = "simulation")]
    pub fn on_database(db: urr_storage::Db, clock: &Clock) -> Bus {
        Bus { engine: Arc::new(BusEngine::Embedded(EmbeddedBus::on(db, clock))) }
    }

    /// Prepares to use Kafka. The broker need not be there yet. Call it inside the async runtime.
    pub fn connect_kafka(options: KafkaOptions) -> Result<Bus, BusError> {
        let engine = BusEngine::Kafka(Box::new(KafkaBus::connect(options)?));
        Ok(Bus { engine: Arc::new(engine) })
    }

    /// Creates the topics that are missing, each with its dead-letter topic.
    pub async fn ensure_topics(&self, topics: &[TopicSpec]) -> Result<(), BusError> {
        match &*self.engine {
            BusEngine::Embedded(bus) => bus.ensure_topics(topics).await,
            BusEngine::Kafka(bus) => bus.ensure_topics(topics).await,
        }
    }

    /// Publishes messages and says of each, in the same order, where it is or why it is not.
    ///
    /// A message is not published if an earlier one of the same topic and key failed. A failed one
    /// may still arrive (the answer was lost): publish it again, and let inboxes sort it out.
    pub async fn publish(
        &self,
        messages: Vec<BusMessage>,
    ) -> Vec<Result<MessagePosition, BusError>> {
        match &*self.engine {
            BusEngine::Embedded(bus) => bus.publish(messages).await,
            BusEngine::Kafka(bus) => bus.producer.publish(messages).await,
        }
    }

    pub async fn publish_one(&self, message: BusMessage) -> Result<MessagePosition, BusError> {
        let mut results = self.publish(vec![message]).await;
        results.pop().expect("one result per message")
    }

    /// Starts to consume topics for a group, from where it last acknowledged.
    ///
    /// Subscriptions of one group share the partitions on Kafka. On the embedded bus the first one
    /// has them all, and a second one for the same topic is refused.
    pub async fn subscribe(
        &self,
        group: &str,
        topics: &[String],
    ) -> Result<Subscription, BusError> {
        match &*self.engine {
            BusEngine::Embedded(bus) => {
                let subscription = bus.subscribe(group, topics).await?;
                Ok(Subscription(SubscriptionEngine::Embedded(subscription)))
            }
            BusEngine::Kafka(bus) => {
                let subscription = KafkaSubscription::start(&bus.options, group, topics)?;
                Ok(Subscription(SubscriptionEngine::Kafka(subscription)))
            }
        }
    }

    /// The names of all topics.
    pub async fn topics(&self) -> Result<Vec<String>, BusError> {
        match &*self.engine {
            BusEngine::Embedded(bus) => bus.topics().await,
            BusEngine::Kafka(bus) => kafka::reader::topics(&bus.options).await,
        }
    }

    /// Everything a topic holds at this moment, partition by partition. For tests and audits, which
    /// have the memory for it.
    pub async fn scan(&self, topic: &str) -> Result<Vec<Delivery>, BusError> {
        let mut deliveries = Vec::new();
        let mut pages = self.pages(topic).await?;
        loop {
            let page = pages.next_page().await?;
            if page.is_empty() {
                return Ok(deliveries);
            }
            deliveries.extend(page);
        }
    }

    /// Everything a topic holds at this moment, page by page, apart from any group: for those who
    /// read a topic from its beginning again, however long it is.
    pub async fn pages(&self, topic: &str) -> Result<TopicPages, BusError> {
        let ahead = self.extents(topic).await?;
        Ok(TopicPages { bus: self.clone(), ahead: ahead.into(), reader: None })
    }

    /// The partitions of a topic as they are at this moment; nothing if there is no such topic.
    pub(crate) async fn extents(&self, topic: &str) -> Result<Vec<PartitionRange>, BusError> {
        match &*self.engine {
            BusEngine::Embedded(bus) => bus.extents(topic).await,
            BusEngine::Kafka(bus) => kafka::reader::extents(&bus.options, topic).await,
        }
    }

    pub(crate) async fn reader(&self, extent: &PartitionRange) -> Result<TopicReader, BusError> {
        match &*self.engine {
            BusEngine::Embedded(bus) => Ok(TopicReader::Embedded(bus.reader(extent))),
            BusEngine::Kafka(bus) => {
                KafkaReader::open(&bus.options, extent).await.map(TopicReader::Kafka)
            }
        }
    }

    /// Deletes messages beyond their retention, a bounded number at a time. Returns how many.
    /// Kafka does that itself. Dead letters are kept.
    pub async fn trim(&self, now: Timestamp, limit: u32) -> Result<u64, BusError> {
        match &*self.engine {
            BusEngine::Embedded(bus) => bus.trim(now, limit).await,
            BusEngine::Kafka(_) => Ok(0),
        }
    }

    /// Finishes what is under way. End relays and consumers before.
    pub async fn close(&self) {
        match &*self.engine {
            BusEngine::Embedded(bus) => bus.close().await,
            BusEngine::Kafka(bus) => bus.producer.close().await,
        }
    }
}

/// A topic from its beginning to where it ended when this was asked for.
pub struct TopicPages {
    bus: Bus,
    ahead: VecDeque<PartitionRange>,
    reader: Option<TopicReader>,
}

impl TopicPages {
    /// The messages that follow, in the order of each partition. No messages: that was the end.
    pub async fn next_page(&mut self) -> Result<Vec<Delivery>, BusError> {
        loop {
            if let Some(reader) = &mut self.reader {
                let page = reader.next_page().await?;
                if !page.is_empty() {
                    return Ok(page);
                }
            }
            let Some(extent) = self.ahead.pop_front() else {
                return Ok(Vec::new());
            };
            self.reader = match extent.start < extent.end {
                true => Some(self.bus.reader(&extent).await?),
                false => None,
            };
        }
    }
}
