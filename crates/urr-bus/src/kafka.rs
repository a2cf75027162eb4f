//! The bus on Kafka.

mod login;
mod producer;
pub(crate) mod reader;
mod subscription;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication, TopicResult,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode;
use tracing::warn;

pub use self::login::{KafkaEncryption, KafkaLogin, SaslMechanism};
pub(crate) use self::reader::KafkaReader;
pub(crate) use self::subscription::{KafkaLagReader, KafkaSubscription};

use self::producer::Producer;
use crate::BusError;
use crate::bus::{TopicSpec, dead_letter_topic};

type KafkaAdmin = AdminClient<DefaultClientContext>;

const CREATING: &str = "creating topics";

/// An answer of the broker to anything but a publication takes no longer than this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How to reach Kafka.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// `host:port`, several separated by commas.
    pub bootstrap: String,
    /// None: the connection is plain.
    pub encryption: Option<KafkaEncryption>,
    /// None: the broker is not told who we are, or sees it in our certificate.
    pub login: Option<KafkaLogin>,
    /// What the broker calls us in its logs.
    pub client_id: String,
    pub replication_factor: i32,
    /// A message that the broker did not confirm in this time has failed, and is tried again.
    pub delivery_timeout: Duration,
    /// A consumer that is not heard of for this long loses its partitions.
    pub session_timeout: Duration,
    /// A consumer that does not ask for messages for this long is taken for dead. While a batch
    /// takes long, it is asked for them at a tenth of this time.
    pub poll_interval_max: Duration,
}

impl KafkaOptions {
    pub fn new(bootstrap: impl Into<String>) -> KafkaOptions {
        KafkaOptions {
            bootstrap: bootstrap.into(),
            encryption: None,
            login: None,
            client_id: "urr".to_owned(),
            replication_factor: 1,
            delivery_timeout: Duration::from_secs(10),
            session_timeout: Duration::from_secs(15),
            poll_interval_max: Duration::from_mins(5),
        }
    }

    /// What every client of ours has in common.
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.bootstrap)
            .set("client.id", &self.client_id)
            // A broker that comes back is noticed within a second, not within ten.
            .set("reconnect.backoff.ms", "100")
            .set("reconnect.backoff.max.ms", "1000")
            .set("socket.keepalive.enable", "true");
        login::configure(&mut config, self.encryption.as_ref(), self.login.as_ref());
        config
    }
}

pub(crate) struct KafkaBus {
    pub(crate) options: KafkaOptions,
    pub(crate) producer: Producer,
}

impl KafkaBus {
    pub(crate) fn connect(options: KafkaOptions) -> Result<KafkaBus, BusError> {
        let producer = Producer::new(&options)?;
        Ok(KafkaBus { options, producer })
    }

    /// Creates topics that are missing, and partitions of topics that have too few.
    pub(crate) async fn ensure_topics(&self, topics: &[TopicSpec]) -> Result<(), BusError> {
        let admin: KafkaAdmin =
            self.options.config().create().map_err(BusError::kafka(CREATING))?;
        let admin = Arc::new(admin);
        let named: Vec<NamedTopic> = topics.iter().flat_map(NamedTopic::pair).collect();
        self.create_topics(&admin, &named).await?;
        let names = named.into_iter().map(|topic| (topic.name, 1)).collect();
        let found = reader::wait_for_leaders(&admin, names).await?;
        let mut wanted = BTreeMap::new();
        for topic in topics {
            // A dead letter goes to the partition of the same number, also if someone gave the
            // topic more partitions than we ask for.
            let partitions = topic.partitions.max(found[&topic.name]);
            wanted.insert(topic.name.clone(), partitions);
            wanted.insert(dead_letter_topic(&topic.name), partitions);
        }
        create_partitions(&admin, &wanted, &found).await?;
        reader::wait_for_leaders(&admin, wanted).await.map(drop)
    }

    async fn create_topics(
        &self,
        admin: &KafkaAdmin,
        topics: &[NamedTopic],
    ) -> Result<(), BusError> {
        let copies = self.options.replication_factor;
        // A publication that one broker alone has would be lost with it, and its outbox row is
        // marked already.
        let copies_min = (copies - 1).max(1).to_string();
        let new: Vec<NewTopic<'_>> = topics
            .iter()
            .map(|topic| {
                NewTopic::new(&topic.name, topic.partitions, TopicReplication::Fixed(copies))
                    .set("retention.ms", &topic.retention_ms)
                    .set("min.insync.replicas", &copies_min)
            })
            .collect();
        let results = admin.create_topics(&new, &admin_options()).await;
        require_created(results, RDKafkaErrorCode::TopicAlreadyExists)
    }
}

fn admin_options() -> AdminOptions {
    AdminOptions::new()
        .request_timeout(Some(REQUEST_TIMEOUT))
        .operation_timeout(Some(REQUEST_TIMEOUT))
}

async fn create_partitions(
    admin: &KafkaAdmin,
    wanted: &BTreeMap<String, i32>,
    found: &BTreeMap<String, i32>,
) -> Result<(), BusError> {
    let mut new = Vec::new();
    for (topic, partitions) in wanted.iter().filter(|(topic, count)| found[*topic] < **count) {
        warn!(topic, partitions, found = found[topic], "a topic gets the partitions it lacks");
        let count = usize::try_from(*partitions).expect("a topic has partitions");
        new.push(NewPartitions::new(topic, count));
    }
    if new.is_empty() {
        return Ok(());
    }
    let results = admin.create_partitions(&new, &admin_options()).await;
    // Another process did it at the same time; if not, waiting for them will tell.
    require_created(results, RDKafkaErrorCode::InvalidPartitions)
}

/// Whether everything was created, or refused with `present` because it is there already.
fn require_created(
    results: Result<Vec<TopicResult>, KafkaError>,
    present: RDKafkaErrorCode,
) -> Result<(), BusError> {
    for result in results.map_err(BusError::kafka(CREATING))? {
        if let Err((_, code)) = result
            && code != present
        {
            return Err(BusError::kafka(CREATING)(KafkaError::AdminOp(code)));
        }
    }
    Ok(())
}

/// A topic as the broker is asked for it.
struct NamedTopic {
    name: String,
    partitions: i32,
    retention_ms: String,
}

impl NamedTopic {
    /// A topic and that of its dead letters, which are kept until someone looks at them.
    fn pair(topic: &TopicSpec) -> [NamedTopic; 2] {
        [
            NamedTopic {
                name: topic.name.clone(),
                partitions: topic.partitions,
                retention_ms: topic.retention.as_millis().to_string(),
            },
            NamedTopic {
                name: dead_letter_topic(&topic.name),
                partitions: topic.partitions,
                retention_ms: "-1".to_owned(),
            },
        ]
    }
}

/// Runs a call of the client that blocks, off the async threads.
///
/// It has a thread of its own: some calls never return while the broker is away, and a runtime that
/// ends would wait for those in its pool.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, answer) = tokio::sync::oneshot::channel();
    // Nobody may be waiting for the answer any more.
    std::thread::spawn(move || sender.send(call()).ok());
    answer.await.expect("a call of the Kafka client does not panic")
}
