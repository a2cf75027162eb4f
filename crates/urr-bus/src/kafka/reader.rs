//! Looking at Kafka's topics without being part of a group: for start and operators' commands.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rdkafka::admin::AdminClient;
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::subscription::to_delivery;
use super::{KafkaOptions, REQUEST_TIMEOUT, blocking};
use crate::bus::SCAN_MAX;
use crate::{BusError, Delivery};

const SCAN_TIMEOUT: Duration = Duration::from_mins(1);

/// Waits until each partition has a leader: a consumer that starts before would look again only
/// after a while.
pub(super) async fn wait_for_leaders(
    admin: AdminClient<DefaultClientContext>,
    topics: Vec<String>,
) -> Result<(), BusError> {
    let deadline = Instant::now() + REQUEST_TIMEOUT;
    blocking(move || {
        for topic in topics {
            while !has_leaders(&admin, &topic)? {
                if Instant::now() > deadline {
                    let doing = "choosing the leaders of new topics";
                    return Err(BusError::Slow { doing });
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    })
    .await
}

fn has_leaders(admin: &AdminClient<DefaultClientContext>, topic: &str) -> Result<bool, BusError> {
    let metadata = admin
        .inner()
        .fetch_metadata(Some(topic), REQUEST_TIMEOUT)
        .map_err(BusError::kafka("reading metadata"))?;
    Ok(metadata.topics().iter().all(|topic| {
        let led = |partition: &rdkafka::metadata::MetadataPartition| partition.leader() >= 0;
        !topic.partitions().is_empty() && topic.partitions().iter().all(led)
    }))
}

/// Kafka wants a group even of those who choose their partitions themselves. It is never joined.
fn reader(options: &KafkaOptions) -> Result<BaseConsumer, BusError> {
    let mut config = options.config();
    config
        .set("group.id", "urr-operator")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true");
    config.create().map_err(BusError::kafka("starting"))
}

pub(super) async fn topics(options: &KafkaOptions) -> Result<Vec<String>, BusError> {
    let options = options.clone();
    blocking(move || {
        let metadata = reader(&options)?
            .fetch_metadata(None, REQUEST_TIMEOUT)
            .map_err(BusError::kafka("reading metadata"))?;
        let mut names: Vec<String> =
            metadata.topics().iter().map(|topic| topic.name().to_owned()).collect();
        names.sort();
        Ok(names)
    })
    .await
}

pub(super) async fn scan(options: &KafkaOptions, topic: &str) -> Result<Vec<Delivery>, BusError> {
    let (options, topic) = (options.clone(), topic.to_owned());
    blocking(move || {
        let reader = reader(&options)?;
        let ends = assign_all(&reader, &topic)?;
        let mut deliveries = read_to(&reader, &topic, ends)?;
        deliveries.sort_by(|a, b| a.position.cmp(&b.position));
        Ok(deliveries)
    })
    .await
}

/// Starts to read every partition at its beginning, and says where each ends now.
fn assign_all(reader: &BaseConsumer, topic: &str) -> Result<HashMap<i32, i64>, BusError> {
    const DOING: &str = "opening a topic";
    let metadata =
        reader.fetch_metadata(Some(topic), REQUEST_TIMEOUT).map_err(BusError::kafka(DOING))?;
    let (mut assignment, mut ends) = (TopicPartitionList::new(), HashMap::new());
    for partition in metadata.topics().iter().flat_map(|topic| topic.partitions()) {
        let (low, high) = reader
            .fetch_watermarks(topic, partition.id(), REQUEST_TIMEOUT)
            .map_err(BusError::kafka(DOING))?;
        if low < high {
            ends.insert(partition.id(), high);
            assignment
                .add_partition_offset(topic, partition.id(), Offset::Offset(low))
                .map_err(BusError::kafka(DOING))?;
        }
    }
    reader.assign(&assignment).map_err(BusError::kafka(DOING))?;
    Ok(ends)
}

fn read_to(
    reader: &BaseConsumer,
    topic: &str,
    mut ends: HashMap<i32, i64>,
) -> Result<Vec<Delivery>, BusError> {
    let deadline = Instant::now() + SCAN_TIMEOUT;
    let mut deliveries = Vec::new();
    while !ends.is_empty() {
        if Instant::now() > deadline {
            let doing = "reading a topic to its end";
            return Err(BusError::Slow { doing });
        }
        match reader.poll(Duration::from_millis(100)) {
            None => {}
            Some(Ok(message)) => {
                let delivery = to_delivery(&message);
                let position = &delivery.position;
                let end = ends.get(&position.partition).copied().unwrap_or(0);
                if position.offset + 1 >= end {
                    ends.remove(&position.partition);
                }
                if position.offset < end {
                    deliveries.push(delivery);
                }
            }
            // The last offsets may belong to no message; the end is the end all the same.
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(partition))) => {
                ends.remove(&partition);
            }
            Some(Err(error)) => return Err(BusError::kafka("reading a topic")(error)),
        }
        if deliveries.len() > SCAN_MAX {
            let topic = topic.to_owned();
            return Err(BusError::TooMany { topic, limit: SCAN_MAX });
        }
    }
    Ok(deliveries)
}
