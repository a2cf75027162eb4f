//! A group's reading of topics, whichever form the bus has.

use std::convert::Infallible;

use crate::embedded::{EmbeddedLagReader, EmbeddedSubscription};
use crate::kafka::{KafkaLagReader, KafkaSubscription};
use crate::{Batch, BusError};

/// A batch is handled and acknowledged as a whole, so it is kept small.
pub(crate) const BATCH_MAX: usize = 256;

/// One consumer of a group. Batches follow each other without gaps whether or not they are
/// acknowledged; what was not acknowledged comes again to the next subscription of the group.
pub struct Subscription {
    form: Form,
}

enum Form {
    Embedded(EmbeddedSubscription),
    Kafka(KafkaSubscription),
}

impl Subscription {
    pub(crate) fn embedded(subscription: EmbeddedSubscription) -> Subscription {
        Subscription { form: Form::Embedded(subscription) }
    }

    pub(crate) fn kafka(subscription: KafkaSubscription) -> Subscription {
        Subscription { form: Form::Kafka(subscription) }
    }

    /// Waits for messages: at least one, at most 256. Dropping the future loses none.
    pub async fn next_batch(&mut self) -> Result<Batch, BusError> {
        match &mut self.form {
            Form::Embedded(subscription) => subscription.next_batch().await,
            Form::Kafka(subscription) => subscription.next_batch().await,
        }
    }

    /// Records that the group has dealt with a batch. Call it after the effects are durable.
    ///
    /// On Kafka the partitions may have moved to another consumer meanwhile; it will get the
    /// messages again, which its inbox notices.
    pub async fn acknowledge(&mut self, batch: &Batch) -> Result<(), BusError> {
        match &mut self.form {
            Form::Embedded(subscription) => subscription.acknowledge(batch).await,
            Form::Kafka(subscription) => subscription.acknowledge(batch).await,
        }
    }

    /// Keeps the place in the group while a batch takes long. Run it beside the handling and drop
    /// it with the end of that; by itself it never ends.
    pub async fn keep_alive(&mut self) -> Infallible {
        match &mut self.form {
            Form::Embedded(_) => std::future::pending().await,
            Form::Kafka(subscription) => subscription.keep_alive().await,
        }
    }

    /// A way to ask for the lag while the subscription is busy.
    pub fn lag_reader(&self) -> LagReader {
        LagReader {
            form: match &self.form {
                Form::Embedded(subscription) => LagForm::Embedded(subscription.lag_reader()),
                Form::Kafka(subscription) => LagForm::Kafka(subscription.lag_reader()),
            },
        }
    }

    /// Leaves the group in order, so that its partitions move on at once.
    pub async fn close(self) {
        match self.form {
            Form::Embedded(subscription) => drop(subscription),
            Form::Kafka(subscription) => subscription.close().await,
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
pub struct LagReader {
    form: LagForm,
}

enum LagForm {
    Embedded(EmbeddedLagReader),
    Kafka(KafkaLagReader),
}

impl LagReader {
    pub async fn lag(&self) -> Result<Vec<PartitionLag>, BusError> {
        match &self.form {
            LagForm::Embedded(reader) => reader.lag().await,
            LagForm::Kafka(reader) => reader.lag().await,
        }
    }
}
