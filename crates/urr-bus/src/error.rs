//! What can go wrong on the bus.

use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use urr_storage::StorageError;

/// A failure of the bus. Cloneable, because one failed commit is the answer to many messages.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BusError {
    #[error("topic {0:?} does not exist; topics are created at start, not by use")]
    UnknownTopic(String),
    /// The embedded bus gives all partitions of a topic to one consumer of a group.
    #[error("group {group:?} already consumes topic {topic:?} in this process")]
    GroupBusy { group: String, topic: String },
    /// Publishing it would have overtaken a message of the same key that failed.
    #[error("held back, because an earlier message of the same key was not published")]
    HeldBack,
    #[error("the embedded log failed")]
    Storage(#[from] StorageError),
    #[error("Kafka failed while {doing}")]
    Kafka {
        doing: &'static str,
        #[source]
        source: KafkaError,
    },
    /// Kafka did not do something in the time it was given.
    #[error("Kafka took too long {doing}")]
    Slow { doing: &'static str },
}

impl BusError {
    pub(crate) fn kafka(doing: &'static str) -> impl Fn(KafkaError) -> BusError {
        move |source| BusError::Kafka { doing, source }
    }

    /// Whether the client itself is broken: only a new one helps.
    pub(crate) fn is_fatal(&self) -> bool {
        let BusError::Kafka { source, .. } = self else {
            return false;
        };
        matches!(source, KafkaError::MessageConsumptionFatal(_))
            || source.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal)
    }

    /// Whether the storage under the embedded bus was closed, as it is at shutdown.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, BusError::Storage(StorageError::Closed))
    }
}
