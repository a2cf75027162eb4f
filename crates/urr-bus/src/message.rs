//! Messages of the bus, to publish and as delivered.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;

/// Headers of a message.
pub type MessageHeaders = BTreeMap<String, String>;

/// A message to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusMessage {
    pub topic: String,
    /// Messages of one key keep their order. An empty key is none.
    pub key: Vec<u8>,
    pub body: Vec<u8>,
    pub headers: MessageHeaders,
    /// Where it must go, if its key shall not decide: dead letters keep their partition.
    pub partition: Option<i32>,
}

impl BusMessage {
    pub fn new(
        topic: impl Into<String>,
        key: impl Into<Vec<u8>>,
        body: impl Into<Vec<u8>>,
    ) -> BusMessage {
        BusMessage {
            topic: topic.into(),
            key: key.into(),
            body: body.into(),
            headers: MessageHeaders::new(),
            partition: None,
        }
    }
}

/// The position of a message on the bus, written `topic/partition/offset`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessagePosition {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
}

impl fmt::Display for MessagePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.topic, self.partition, self.offset)
    }
}

/// Text that is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the position of a message: expected <topic>/<partition>/<offset>")]
pub struct ParsePositionError;

impl FromStr for MessagePosition {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<MessagePosition, ParsePositionError> {
        let mut parts = text.split('/');
        let (Some(topic), Some(partition), Some(offset), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(ParsePositionError);
        };
        if topic.is_empty() {
            return Err(ParsePositionError);
        }
        Ok(MessagePosition {
            topic: topic.to_owned(),
            partition: partition.parse().map_err(|_| ParsePositionError)?,
            offset: offset.parse().map_err(|_| ParsePositionError)?,
        })
    }
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub position: MessagePosition,
    pub key: Vec<u8>,
    pub body: Vec<u8>,
    pub headers: MessageHeaders,
}

/// Messages to handle and then to acknowledge together. Those of one partition are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryBatch {
    pub deliveries: Vec<Delivery>,
}

impl DeliveryBatch {
    /// For each partition the offset after its last message: where the group goes on.
    pub(crate) fn next_offsets(&self) -> HashMap<(&str, i32), i64> {
        let mut next = HashMap::new();
        for Delivery { position, .. } in &self.deliveries {
            let place = (position.topic.as_str(), position.partition);
            let offset = next.entry(place).or_insert(0);
            *offset = (*offset).max(position.offset + 1);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back_as_it_is_written() {
        let position =
            MessagePosition { topic: "payment-events-dlq".to_owned(), partition: 2, offset: 17 };
        assert_eq!(position.to_string(), "payment-events-dlq/2/17");
        assert_eq!("payment-events-dlq/2/17".parse(), Ok(position));
    }

    #[test]
    fn other_text_is_no_position() {
        for text in ["", "a", "a/1", "/1/2", "a/1/2/3", "a/x/2", "a/1/x", "a/1/"] {
            assert_eq!(text.parse::<MessagePosition>(), Err(ParsePositionError), "{text}");
        }
    }
}
