//! A group's reading of topics, whichever engine the bus has.

use std::convert::Infallible;

use crate::embedded::{EmbeddedLagReader, EmbeddedSubscription};
use crate::kafka::{KafkaLagReader, KafkaSubscription};
use crate::{BusError, DeliveryBatch};

/// A batch is handled and acknowledged as a whole, so it is kept small.
pub(crate) const BATCH_MAX: usize = 256;

/// One consumer of a group. Batches follow each other without gaps whether or not they are
/// acknowledged; what was not acknowledged comes again to the next subscription of the group.
pub struct Subscription(pub(crate) SubscriptionEngine);

pub(crate) enum SubscriptionEngine {
    Embedded(EmbeddedSubscription),
    Kafka(KafkaSubscription),
}

impl Subscription {
    /// Waits for messages: at least one, at most 256. Dropping the future loses none.
    pub async fn next_batch(&mut self) -> Result<DeliveryBatch, BusError> {
        match &mut self.0 {
            SubscriptionEngine::Embedded(subscription) => subscription.next_batch().await,
            SubscriptionEngine::Kafka(subscription) => subscription.next_batch().await,
        }
    }

    /// Records that the group has dealt with a batch. Call it after the effects are durable.
    ///
    /// On Kafka the partitions may have moved to another consumer meanwhile; it will get the
    /// messages again, which its inbox notices.
    pub async fn acknowledge(&mut self, batch: &DeliveryBatch) -> Result<(), BusError> {
        match &mut self.0 {
            SubscriptionEngine::Embedded(subscription) => subscription.acknowledge(batch).await,
            SubscriptionEngine::Kafka(subscription) => subscription.acknowledge(batch).await,
        }
    }

    /// Keeps the place in the group while a batch takes long. Run it beside the handling and drop
    /// it with the end of that; by itself it never ends.
    pub async fn keep_alive(&mut self) -> Infallible {
        match &mut self.0 {
            SubscriptionEngine::Embedded(_) => std::future::pending().await,
            SubscriptionEngine::Kafka(subscription) => subscription.keep_alive().await,
        }
    }

    /// A way to ask for the lag while the subscription is busy.
    pub fn lag_reader(&self) -> LagReader {
        LagReader(match &self.0 {
            SubscriptionEngine::Embedded(one) => LagReaderEngine::Embedded(one.lag_reader()),
            SubscriptionEngine::Kafka(one) => LagReaderEngine::Kafka(one.lag_reader()),
        })
    }

    /// Leaves the group in order, so that its partitions move on at once.
    pub async fn close(self) {
        match self.0 {
            SubscriptionEngine::Embedded(subscription) => drop(subscription),
            SubscriptionEngine::Kafka(subscription) => subscription.close().await,
        }
    }
}

/// How many messages of a partition the group has not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionLag {
    pub topic: String,
    pub partition: i32,
    pub messages: i64,
}

/// Tells how far a group is behind, for the partitions that this subscription has.
pub struct LagReader(LagReaderEngine);

enum LagReaderEngine {
    Embedded(EmbeddedLagReader),
    Kafka(KafkaLagReader),
}

impl LagReader {
    pub async fn lag(&self) -> Result<Vec<PartitionLag>, BusError> {
        match &self.0 {
            LagReaderEngine::Embedded(reader) => reader.lag().await,
            LagReaderEngine::Kafka(reader) => reader.lag().await,
        }
    }
}
