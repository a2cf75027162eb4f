//! Publishing to Kafka.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer as _};
use rdkafka::types::RDKafkaErrorCode;
use tracing::{error, warn};

use super::{KafkaOptions, REQUEST_TIMEOUT, blocking};
use crate::{BusError, BusMessage, MessagePosition};

const DOING: &str = "publishing";

/// The client queues this long when its memory is full.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) struct Producer {
    config: ClientConfig,
    /// Replaced when it has broken for good.
    client: RwLock<FutureProducer>,
}

impl Producer {
    pub(super) fn new(options: &KafkaOptions) -> Result<Producer, BusError> {
        let mut config = options.config();
        config
            .set("acks", "all")
            // The client's own retries neither double nor reorder.
            .set("enable.idempotence", "true")
            .set("compression.type", "lz4")
            .set("partitioner", "murmur2_random")
            .set("delivery.timeout.ms", options.delivery_timeout.as_millis().to_string())
            .set("request.timeout.ms", (options.delivery_timeout / 2).as_millis().to_string())
            // An event whose topic does not exist must not hold up its batch for long.
            .set("topic.metadata.propagation.max.ms", "1000")
            // The next message of a key waits for this one: a longer linger would only add up.
            .set("linger.ms", "1");
        let client = config.create().map_err(BusError::kafka("starting"))?;
        Ok(Producer { config, client: RwLock::new(client) })
    }

    /// Messages of one key are sent one after the other, each when the one before is confirmed:
    /// then a failure cannot be overtaken, whatever the client does inside. Keys go side by side.
    pub(crate) async fn publish(
        &self,
        messages: Vec<BusMessage>,
    ) -> Vec<Result<MessagePosition, BusError>> {
        let client = self.client();
        let mut chains: HashMap<(&str, &[u8]), Vec<usize>> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            let chain = chains.entry((&message.topic, &message.key)).or_default();
            chain.push(index);
        }
        let mut publishing = Vec::with_capacity(chains.len());
        for indexes in chains.values() {
            publishing.push(publish_chain(&client, &messages, indexes));
        }
        let mut results = join_all(publishing).await.concat();
        results.sort_by_key(|(index, _)| *index);
        self.replace_if_broken(&client).await;
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn client(&self) -> FutureProducer {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A producer can break for good, for instance when the broker forgot its sequence numbers.
    async fn replace_if_broken(&self, used: &FutureProducer) {
        let Some((code, reason)) = used.client().fatal_error() else {
            return;
        };
        warn!(%code, reason, "the Kafka producer broke and is replaced");
        let fresh: FutureProducer = match self.config.create() {
            Ok(fresh) => fresh,
            Err(error) => {
                error!(%error, "no new Kafka producer could be made");
                return;
            }
        };
        let broken = {
            let mut client = self.client.write().unwrap_or_else(PoisonError::into_inner);
            // Another publication may have replaced it meanwhile.
            if client.client().fatal_error().is_none() {
                fresh
            } else {
                std::mem::replace(&mut *client, fresh)
            }
        };
        blocking(move || drop(broken)).await;
    }

    pub(crate) async fn close(&self) {
        let client = self.client();
        if let Err(error) = blocking(move || client.flush(REQUEST_TIMEOUT)).await {
            warn!(%error, "messages were still on their way to Kafka; the relay sends them again");
        }
    }
}

async fn publish_chain(
    client: &FutureProducer,
    messages: &[BusMessage],
    indexes: &[usize],
) -> Vec<(usize, Result<MessagePosition, BusError>)> {
    let mut results = Vec::with_capacity(indexes.len());
    let mut failed = false;
    for index in indexes {
        let result = if failed {
            Err(BusError::HeldBack)
        } else {
            publish_one(client, &messages[*index]).await
        };
        failed = result.is_err();
        results.push((*index, result));
    }
    results
}

async fn publish_one(
    client: &FutureProducer,
    message: &BusMessage,
) -> Result<MessagePosition, BusError> {
    let mut headers = OwnedHeaders::new_with_capacity(message.headers.len());
    for (key, value) in &message.headers {
        let value = Some(value.as_str());
        headers = headers.insert(Header { key, value });
    }
    let mut record: FutureRecord<'_, Vec<u8>, Vec<u8>> =
        FutureRecord::to(&message.topic).payload(&message.body).headers(headers);
    if !message.key.is_empty() {
        record = record.key(&message.key);
    }
    if let Some(partition) = message.partition {
        record = record.partition(partition);
    }
    match client.send(record, QUEUE_TIMEOUT).await {
        Ok(delivery) => Ok(MessagePosition {
            topic: message.topic.clone(),
            partition: delivery.partition,
            offset: delivery.offset,
        }),
        Err((error, _)) => Err(explain(message, error)),
    }
}

fn explain(message: &BusMessage, error: KafkaError) -> BusError {
    use RDKafkaErrorCode::{UnknownPartition, UnknownTopic, UnknownTopicOrPartition};
    match error.rdkafka_error_code() {
        Some(UnknownTopic | UnknownTopicOrPartition | UnknownPartition) => {
            BusError::UnknownTopic(message.topic.clone())
        }
        _ => BusError::kafka(DOING)(error),
    }
}
