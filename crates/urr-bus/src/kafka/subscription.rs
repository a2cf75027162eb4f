//! Consuming from Kafka.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{
    BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance, StreamConsumer,
};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientContext, Message as _};
use tracing::{error, info, warn};
use urr_kernel::error_chain;

use super::{KafkaOptions, REQUEST_TIMEOUT, blocking};
use crate::subscription::{BATCH_MAX, PartitionLag};
use crate::{BusError, Delivery, DeliveryBatch, MessageHeaders, MessagePosition};

const DOING: &str = "consuming";
/// The broker answers when it has so many bytes, or after so long: a fetch for every event would cost
/// it, and us, more than the events themselves.
const FETCH_BYTES: &str = "16384";
const FETCH_WAIT_MS: &str = "50";

/// The client remembers that a partition was paused also while another consumer has it. One that
/// comes back would never be read again, so what is assigned to us is always resumed.
struct ResumeAssigned;

impl ClientContext for ResumeAssigned {}

impl ConsumerContext for ResumeAssigned {
    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(partitions) = rebalance
            && let Err(error) = consumer.resume(partitions)
        {
            error!(%error, "assigned partitions could not be resumed and may not be read");
        }
    }
}

type GroupConsumer = StreamConsumer<ResumeAssigned>;

pub(crate) struct KafkaSubscription {
    /// Taken out only to be closed.
    consumer: Option<Arc<GroupConsumer>>,
    /// What arrived although we had paused: a partition was assigned to us in the meantime.
    early: VecDeque<Delivery>,
    paused: bool,
    /// A batch that takes longer than this is waited for with paused partitions.
    patience: Duration,
}

impl KafkaSubscription {
    pub(crate) fn start(
        options: &KafkaOptions,
        group: &str,
        topics: &[String],
    ) -> Result<KafkaSubscription, BusError> {
        let mut config = options.config();
        config
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "earliest")
            .set("fetch.min.bytes", FETCH_BYTES)
            .set("fetch.wait.max.ms", FETCH_WAIT_MS)
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("session.timeout.ms", options.session_timeout.as_millis().to_string())
            .set("max.poll.interval.ms", options.poll_interval_max.as_millis().to_string())
            // A topic that appears after us is found within seconds.
            .set("topic.metadata.refresh.interval.ms", "10000");
        let consumer = GroupConsumer::from_config_and_context(&config, ResumeAssigned)
            .map_err(BusError::kafka("starting"))?;
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        consumer.subscribe(&topics).map_err(BusError::kafka("subscribing"))?;
        Ok(KafkaSubscription {
            consumer: Some(Arc::new(consumer)),
            early: VecDeque::new(),
            paused: false,
            patience: options.poll_interval_max / 10,
        })
    }

    fn consumer(&self) -> &Arc<GroupConsumer> {
        self.consumer.as_ref().expect("only closing takes it out")
    }

    pub(crate) async fn next_batch(&mut self) -> Result<DeliveryBatch, BusError> {
        if self.paused {
            self.resume()?;
        }
        let mut deliveries: Vec<Delivery> = self.early.drain(..).collect();
        let consumer = Arc::clone(self.consumer());
        let mut stream = consumer.stream();
        while deliveries.is_empty() {
            let message = stream.next().await.expect("the stream of a consumer has no end");
            match message {
                Ok(message) => deliveries.push(to_delivery(&message)),
                Err(error) => note_or_fail(error)?,
            }
        }
        // What has arrived besides comes along; an error will show itself again.
        while deliveries.len() < BATCH_MAX
            && let Some(Some(Ok(message))) = stream.next().now_or_never()
        {
            deliveries.push(to_delivery(&message));
        }
        Ok(DeliveryBatch { deliveries })
    }

    /// Commits the place of the group and waits for the broker's word.
    pub(crate) async fn acknowledge(&mut self, batch: &DeliveryBatch) -> Result<(), BusError> {
        const COMMITTING: &str = "acknowledging";
        let ours = self.consumer().assignment().map_err(BusError::kafka(COMMITTING))?;
        let mut offsets = TopicPartitionList::new();
        for ((topic, partition), offset) in batch.next_offsets() {
            // A partition that has moved on has an owner who may already be further.
            if ours.find_partition(topic, partition).is_some() {
                offsets
                    .add_partition_offset(topic, partition, Offset::Offset(offset))
                    .map_err(BusError::kafka(COMMITTING))?;
            }
        }
        if offsets.count() == 0 {
            return Ok(());
        }
        let consumer = Arc::clone(self.consumer());
        let commit = blocking(move || consumer.commit(&offsets, CommitMode::Sync));
        let Ok(outcome) = tokio::time::timeout(REQUEST_TIMEOUT, commit).await else {
            return Err(BusError::Slow { doing: COMMITTING });
        };
        match outcome {
            Err(error) if partitions_moved(&error) => {
                info!(%error, "partitions moved before they were acknowledged; they come again");
                Ok(())
            }
            outcome => outcome.map_err(BusError::kafka(COMMITTING)),
        }
    }

    /// Waits first, because most batches are quick. Then pauses what we have, so that asking for
    /// messages gives none and only shows that we live.
    pub(crate) async fn keep_alive(&mut self) -> Infallible {
        tokio::time::sleep(self.patience).await;
        let consumer = Arc::clone(self.consumer());
        let mut stream = consumer.stream();
        loop {
            self.pause();
            let asked = tokio::time::timeout(self.patience, stream.next()).await;
            if let Ok(Some(Ok(message))) = asked {
                self.early.push_back(to_delivery(&message));
            }
        }
    }

    fn pause(&mut self) {
        let consumer = self.consumer();
        let paused = consumer.assignment().and_then(|ours| consumer.pause(&ours));
        self.paused = true;
        if let Err(error) = paused {
            warn!(%error, "partitions could not be paused");
        }
    }

    fn resume(&mut self) -> Result<(), BusError> {
        let consumer = self.consumer();
        let resumed = consumer.assignment().and_then(|ours| consumer.resume(&ours));
        resumed.map_err(BusError::kafka(DOING))?;
        self.paused = false;
        Ok(())
    }

    pub(crate) fn lag_reader(&self) -> KafkaLagReader {
        KafkaLagReader { consumer: Arc::downgrade(self.consumer()) }
    }

    pub(crate) async fn close(mut self) {
        let consumer = self.consumer.take();
        blocking(move || drop(consumer)).await;
    }
}

impl Drop for KafkaSubscription {
    /// Leaving the group waits for the broker, which an async thread must not.
    fn drop(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            std::thread::spawn(move || drop(consumer));
        }
    }
}

/// The client recovers from most errors by itself and only reports them.
fn note_or_fail(error: KafkaError) -> Result<(), BusError> {
    let failure = BusError::kafka(DOING)(error);
    if failure.is_fatal() {
        return Err(failure);
    }
    warn!(error = error_chain(&failure), "the Kafka consumer reports a problem and goes on");
    Ok(())
}

fn partitions_moved(error: &KafkaError) -> bool {
    use RDKafkaErrorCode::{AssignmentLost, FencedInstanceId, IllegalGeneration};
    use RDKafkaErrorCode::{RebalanceInProgress, UnknownMemberId};
    matches!(
        error.rdkafka_error_code(),
        Some(
            AssignmentLost
                | FencedInstanceId
                | IllegalGeneration
                | RebalanceInProgress
                | UnknownMemberId
        )
    )
}

pub(super) fn to_delivery(message: &BorrowedMessage<'_>) -> Delivery {
    let mut headers = MessageHeaders::new();
    for header in message.headers().into_iter().flat_map(|headers| headers.iter()) {
        let value = String::from_utf8_lossy(header.value.unwrap_or_default());
        headers.insert(header.key.to_owned(), value.into_owned());
    }
    Delivery {
        position: MessagePosition {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
        },
        key: message.key().unwrap_or_default().to_owned(),
        body: message.payload().unwrap_or_default().to_owned(),
        headers,
    }
}

pub(crate) struct KafkaLagReader {
    /// Not a reason to stay in the group.
    consumer: Weak<GroupConsumer>,
}

impl KafkaLagReader {
    pub(crate) async fn lag(&self) -> Result<Vec<PartitionLag>, BusError> {
        let Some(consumer) = self.consumer.upgrade() else {
            return Ok(Vec::new());
        };
        let lag = blocking(move || read_lag(&consumer)).await;
        lag.map_err(BusError::kafka("reading the lag"))
    }
}

fn read_lag(consumer: &GroupConsumer) -> Result<Vec<PartitionLag>, KafkaError> {
    let committed = consumer.committed(REQUEST_TIMEOUT)?;
    let places: HashMap<(String, i32), Offset> = committed.to_topic_map();
    let mut lags = Vec::with_capacity(places.len());
    for ((topic, partition), offset) in places {
        let (low, high) = consumer.fetch_watermarks(&topic, partition, REQUEST_TIMEOUT)?;
        let next = match offset {
            Offset::Offset(offset) => offset,
            _ => low,
        };
        lags.push(PartitionLag { topic, partition, messages: (high - next).max(0) });
    }
    Ok(lags)
}
