//! Reads ranges of partitions page by page, outside of any group: for operators' commands.

use crate::embedded::EmbeddedReader;
use crate::kafka::KafkaReader;
use crate::{BusError, Delivery};

/// How many messages are in memory at a time, however long the topic is.
pub(crate) const PAGE_MAX: usize = 500;

/// A range of a partition: the offsets from `start` to before `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartitionRange {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) start: i64,
    pub(crate) end: i64,
}

pub(crate) enum TopicReader {
    Embedded(EmbeddedReader),
    Kafka(KafkaReader),
}

impl TopicReader {
    /// The messages that follow, in order. No messages: that was the end.
    pub(crate) async fn next_page(&mut self) -> Result<Vec<Delivery>, BusError> {
        match self {
            TopicReader::Embedded(reader) => reader.next_page().await,
            TopicReader::Kafka(reader) => reader.next_page().await,
        }
    }
}
