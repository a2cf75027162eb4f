//! The bus: topics of ordered messages, from an outbox to the inboxes of its consumers.
//!
//! A [`Bus`] is either embedded (a log in a SQLite file of its own) or Kafka. Both have the same
//! concepts: topics with partitions, a key that decides the partition, groups with an acknowledged
//! offset per partition. Delivery is at least once; the inbox of a consumer makes that one effect.
//!
//! - [`relay`] takes events from a service's outbox to the bus.
//! - [`consumer`] takes messages from the bus to a service's handler.
//! - [`dead_letters`] keeps messages that no handler can take, for an operator to replay.
//!
//! Invariants:
//! - Messages of one topic and key are published, delivered and handled in order.
//! - A message is acknowledged only after its effect, or its dead letter, is durable.
//! - No message stops its partition: it is handled, rejected, or becomes a dead letter.
//!
//! Deliberately absent: exactly-once of the broker (it would not reach into our databases), and any
//! network call inside a handler.

mod backoff;
mod bus;
pub mod consumer;
pub mod dead_letters;
mod embedded;
mod error;
mod kafka;
mod message;
mod metrics;
mod partition;
mod reader;
pub mod relay;
mod relocation;
mod subscription;

pub use bus::{Bus, TopicPages, TopicSpec, dead_letter_topic};
pub use consumer::{
    BatchHandler, Consumer, EventHandler, HandleError, HandledEvent, Handler, HandlerContext,
    HandlerOutcome, decode_event,
};
pub use dead_letters::{DeadLetter, DeadLetterError};
pub use embedded::SCHEMA as EMBEDDED_SCHEMA;
pub use error::BusError;
pub use kafka::{KafkaEncryption, KafkaLogin, KafkaOptions, SaslMechanism};
pub use message::{
    BusMessage, Delivery, DeliveryBatch, MessageHeaders, MessagePosition, ParsePositionError,
};
pub use metrics::BusMetrics;
pub use relay::Relay;
pub use relocation::{RelocationError, UnreadMessages};
pub use subscription::{LagReader, PartitionLag, Subscription};
