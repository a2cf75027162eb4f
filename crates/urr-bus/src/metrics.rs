//! Metrics of the bus: published events, outcomes of messages, and lags.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use urr_kernel::Timestamp;

use crate::{MessagePosition, PartitionLag};

/// The metrics of the bus. Clones share them; the default is registered nowhere.
#[derive(Clone, Debug, Default)]
pub struct BusMetrics {
    published: Family<Labels<1>, Counter>,
    publish_failures: Family<Labels<1>, Counter>,
    outbox_waiting: Family<Labels<1>, Gauge>,
    outbox_oldest_age_seconds: Family<Labels<1>, Gauge>,
    handled: Family<Labels<3>, Counter>,
    retries: Family<Labels<2>, Counter>,
    dead_letters: Family<Labels<2>, Counter>,
    consumer_lag: Family<Labels<3>, Gauge>,
}

/// The names of the labels with their values.
type Labels<const N: usize> = [(&'static str, String); N];

impl BusMetrics {
    /// Registers the metrics under names that begin with `urr_bus_`.
    pub fn register(registry: &mut Registry) -> BusMetrics {
        let metrics = BusMetrics::default();
        let registry = registry.sub_registry_with_prefix("urr_bus");
        let published = metrics.published.clone();
        registry.register("published", "Messages published", published);
        let failures = metrics.publish_failures.clone();
        registry.register("publish_failures", "Attempts to publish that failed", failures);
        let waiting = metrics.outbox_waiting.clone();
        registry.register("outbox_waiting", "Events not published yet", waiting);
        let age = metrics.outbox_oldest_age_seconds.clone();
        let help = "Age of the oldest event not published yet";
        registry.register("outbox_oldest_age_seconds", help, age);
        registry.register("handled", "Messages dealt with, by outcome", metrics.handled.clone());
        let retries = metrics.retries.clone();
        registry.register("handler_retries", "Attempts to handle that failed", retries);
        let dead_letters = metrics.dead_letters.clone();
        registry.register("dead_letters", "Messages set aside as dead letters", dead_letters);
        let lag = metrics.consumer_lag.clone();
        registry.register("consumer_lag", "Messages not acknowledged yet", lag);
        metrics
    }

    pub(crate) fn count_published(&self, topic: &str, ok: bool) {
        let family = if ok { &self.published } else { &self.publish_failures };
        family.get_or_create(&[("topic", topic.to_owned())]).inc();
    }

    pub(crate) fn set_outbox(
        &self,
        service: &str,
        waiting: u64,
        oldest: Option<Timestamp>,
        now: Timestamp,
    ) {
        let labels = [("service", service.to_owned())];
        let waiting = i64::try_from(waiting).unwrap_or(i64::MAX);
        self.outbox_waiting.get_or_create(&labels).set(waiting);
        let age_seconds = oldest.map_or(0, |oldest| now.as_second() - oldest.as_second());
        let age = self.outbox_oldest_age_seconds.get_or_create(&labels);
        age.set(age_seconds.max(0));
    }

    pub(crate) fn count_handled(&self, group: &str, place: &MessagePosition, outcome: &str) {
        let [group, topic] = group_labels(group, &place.topic);
        self.handled.get_or_create(&[group, topic, ("outcome", outcome.to_owned())]).inc();
    }

    pub(crate) fn count_retry(&self, group: &str, place: &MessagePosition) {
        self.retries.get_or_create(&group_labels(group, &place.topic)).inc();
    }

    pub(crate) fn count_dead_letter(&self, group: &str, place: &MessagePosition) {
        self.dead_letters.get_or_create(&group_labels(group, &place.topic)).inc();
    }

    /// Replaces the lags of the group, because partitions may have moved to another consumer.
    pub(crate) fn set_lag(&self, group: &str, known: &[PartitionLag], lags: &[PartitionLag]) {
        let labels = |lag: &PartitionLag| {
            let [group, topic] = group_labels(group, &lag.topic);
            [group, topic, ("partition", lag.partition.to_string())]
        };
        let same = |a: &PartitionLag, b: &PartitionLag| labels(a) == labels(b);
        for gone in known.iter().filter(|old| !lags.iter().any(|lag| same(lag, old))) {
            self.consumer_lag.remove(&labels(gone));
        }
        for lag in lags {
            self.consumer_lag.get_or_create(&labels(lag)).set(lag.messages);
        }
    }
}

fn group_labels(group: &str, topic: &str) -> Labels<2> {
    [("group", group.to_owned()), ("topic", topic.to_owned())]
}
