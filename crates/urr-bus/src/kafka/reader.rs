//! Reads topics of Kafka without being part of a group: for the start and operators' commands.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::MetadataPartition;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::subscription::to_delivery;
use super::{KafkaAdmin, KafkaOptions, REQUEST_TIMEOUT, blocking};
use crate::reader::{PAGE_MAX, PartitionRange};
use crate::{BusError, Delivery};

/// The pause before Kafka is asked again while a partition gets a leader. The thread may sleep: all of
/// this runs in `blocking`.
const LEADER_PAUSE: Duration = Duration::from_millis(50);

/// Waits until each topic has its partitions, each with a leader: a consumer that starts earlier
/// would notice them only after a while. Returns how many there are.
pub(super) async fn wait_for_leaders(
    admin: &Arc<KafkaAdmin>,
    wanted: BTreeMap<String, i32>,
) -> Result<BTreeMap<String, i32>, BusError> {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    let admin = Arc::clone(admin);
    blocking(move || {
        let mut counts = BTreeMap::new();
        for (topic, wanted) in wanted {
            let mut led = count_if_led(&admin, &topic)?;
            while led.is_none_or(|count| count < wanted) {
                if Instant::now() > deadline {
                    let doing = "choosing the leaders of new topics";
                    return Err(BusError::Slow { doing });
                }
                std::thread::sleep(LEADER_PAUSE);
                led = count_if_led(&admin, &topic)?;
            }
            counts.extend(led.map(|count| (topic, count)));
        }
        Ok(counts)
    })
    .await
}

/// How many partitions a topic has, if each has a leader.
fn count_if_led(admin: &KafkaAdmin, topic: &str) -> Result<Option<i32>, BusError> {
    let metadata = admin
        .inner()
        .fetch_metadata(Some(topic), REQUEST_TIMEOUT)
        .map_err(BusError::kafka("reading metadata"))?;
    let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
    let count = partitions.clone().count();
    let are_led = partitions.all(|partition: &MetadataPartition| partition.leader() >= 0);
    let count = i32::try_from(count).expect("partitions have 32-bit numbers");
    Ok(are_led.then_some(count))
}

/// Kafka wants a group even of those who choose their partitions themselves. It is never joined.
fn consumer(options: &KafkaOptions) -> Result<BaseConsumer, BusError> {
    let mut config = options.config();
    config
        .set("group.id", "urr-operator")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "earliest")
        .set("enable.partition.eof", "true");
    config.create().map_err(BusError::kafka("starting"))
}

pub(crate) async fn topics(options: &KafkaOptions) -> Result<Vec<String>, BusError> {
    let options = options.clone();
    blocking(move || {
        let metadata = consumer(&options)?
            .fetch_metadata(None, REQUEST_TIMEOUT)
            .map_err(BusError::kafka("reading metadata"))?;
        let mut names: Vec<String> =
            metadata.topics().iter().map(|topic| topic.name().to_owned()).collect();
        names.sort();
        Ok(names)
    })
    .await
}

pub(crate) async fn extents(
    options: &KafkaOptions,
    topic: &str,
) -> Result<Vec<PartitionRange>, BusError> {
    const DOING: &str = "looking at a topic";
    let (options, topic) = (options.clone(), topic.to_owned());
    blocking(move || {
        let consumer = consumer(&options)?;
        let metadata = consumer
            .fetch_metadata(Some(&topic), REQUEST_TIMEOUT)
            .map_err(BusError::kafka(DOING))?;
        let partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
        let mut numbers: Vec<i32> = partitions.map(MetadataPartition::id).collect();
        numbers.sort_unstable();
        let mut extents = Vec::with_capacity(numbers.len());
        for partition in numbers {
            let ask = || consumer.fetch_watermarks(&topic, partition, REQUEST_TIMEOUT);
            let (start, end) = once_led(ask).map_err(BusError::kafka(DOING))?;
            extents.push(PartitionRange { topic: topic.clone(), partition, start, end });
        }
        Ok(extents)
    })
    .await
}

/// Reads a range of a partition.
pub(crate) struct KafkaReader {
    /// Taken out only to be dropped.
    consumer: Option<Arc<BaseConsumer>>,
    next: i64,
    end: i64,
}

impl KafkaReader {
    pub(crate) async fn open(
        options: &KafkaOptions,
        extent: &PartitionRange,
    ) -> Result<KafkaReader, BusError> {
        const DOING: &str = "opening a topic";
        let (options, extent) = (options.clone(), extent.clone());
        blocking(move || {
            let consumer = consumer(&options)?;
            let mut assignment = TopicPartitionList::new();
            assignment
                .add_partition_offset(&extent.topic, extent.partition, Offset::Offset(extent.start))
                .and_then(|()| consumer.assign(&assignment))
                .map_err(BusError::kafka(DOING))?;
            let consumer = Some(Arc::new(consumer));
            Ok(KafkaReader { consumer, next: extent.start, end: extent.end })
        })
        .await
    }

    pub(crate) async fn next_page(&mut self) -> Result<Vec<Delivery>, BusError> {
        let consumer = Arc::clone(self.consumer.as_ref().expect("only dropping takes it out"));
        let (next, end) = (self.next, self.end);
        let (next, page) = blocking(move || read_page(&consumer, next, end)).await?;
        self.next = next;
        Ok(page)
    }
}

impl Drop for KafkaReader {
    /// The end of a client waits for its threads, which an async thread must not.
    fn drop(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            std::thread::spawn(move || drop(consumer));
        }
    }
}

/// Whether the error tells of one broker or of the leader of one partition, and nothing of the others.
fn is_about_a_broker(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure, OperationTimedOut, Resolve};
    matches!(code, BrokerTransportFailure | AllBrokersDown | OperationTimedOut | Resolve)
        || is_about_a_leader(code)
}

/// Whether a partition has just got another leader, or is about to get one.
fn is_about_a_leader(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{LeaderNotAvailable, NotLeaderForPartition};
    matches!(code, NotLeaderForPartition | LeaderNotAvailable)
}

/// Asks again while a partition changes its leader: the client does so only for messages.
fn once_led<T>(mut ask: impl FnMut() -> Result<T, KafkaError>) -> Result<T, KafkaError> {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    loop {
        match ask() {
            Err(error)
                if error.rdkafka_error_code().is_some_and(is_about_a_leader)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(LEADER_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// The messages from `next` on, before `end`, and where to go on. No messages: that
/// was the end.
fn read_page(
    consumer: &BaseConsumer,
    mut next: i64,
    end: i64,
) -> Result<(i64, Vec<Delivery>), BusError> {
    let mut deadline = Instant::now() + REQUEST_TIMEOUT;
    let mut page = Vec::new();
    while next < end && page.len() < PAGE_MAX {
        if Instant::now() > deadline {
            return Err(BusError::Slow { doing: "reading a topic" });
        }
        match consumer.poll(Duration::from_millis(100)) {
            None => continue,
            Some(Ok(message)) => {
                let delivery = to_delivery(&message);
                next = delivery.position.offset + 1;
                page.extend(Some(delivery).filter(|_| next <= end));
            }
            // The last offsets may belong to no message; the end is the end all the same.
            Some(Err(KafkaError::PartitionEOF(_))) => next = end,
            // A broker that is listed is down; another one has the partition, or has it soon.
            Some(Err(KafkaError::MessageConsumption(code))) if is_about_a_broker(code) => continue,
            Some(Err(error)) => return Err(BusError::kafka("reading a topic")(error)),
        }
        deadline = Instant::now() + REQUEST_TIMEOUT;
    }
    Ok((next, page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_changes_its_leader_is_asked_again_and_other_errors_are_told_at_once() {
        let failed = |code| Err(KafkaError::MetadataFetch(code));
        let mut answers = vec![
            Ok(7),
            failed(RDKafkaErrorCode::NotLeaderForPartition),
            failed(RDKafkaErrorCode::LeaderNotAvailable),
        ];
        assert_eq!(once_led(|| answers.pop().expect("asked three times")), Ok(7));
        assert!(answers.is_empty());

        let mut asked = 0;
        let outcome: Result<i32, _> = once_led(|| {
            asked += 1;
            failed(RDKafkaErrorCode::TopicAuthorizationFailed)
        });
        assert_eq!(outcome, failed(RDKafkaErrorCode::TopicAuthorizationFailed));
        assert_eq!(asked, 1);
    }
}
