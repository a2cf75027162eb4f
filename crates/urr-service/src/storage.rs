//! The storage in answers and metrics: how its errors are answered, and its counters.

use std::fmt;
use std::time::Duration;

use axum::http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use urr_storage::{Db, DbStats, StorageError};

use crate::{ApiError, Metrics};

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> ApiError {
        let again = Duration::from_secs(1);
        match error {
            StorageError::Overloaded | StorageError::Contention | StorageError::Timeout => {
                ApiError::unavailable("BUSY", "We are very busy. Please try again.", again)
                    .caused_by(error)
            }
            StorageError::Unavailable(_) | StorageError::DiskFull | StorageError::Closed => {
                let sentence = "We cannot do this at the moment. Please try again.";
                ApiError::unavailable("STORAGE_UNAVAILABLE", sentence, again).caused_by(error)
            }
            StorageError::OutcomeUnknown(_) => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "OUTCOME_UNKNOWN",
                "We cannot tell whether this was done. Please look before you try again.",
            )
            .caused_by(error),
            // These are bugs of ours: an operation maps the constraints that it expects itself.
            StorageError::Constraint { .. }
            | StorageError::Panicked(_)
            | StorageError::Aborted
            | StorageError::Decode { .. }
            | StorageError::Statement { .. }
            | StorageError::Unsafe(_) => ApiError::internal(error),
        }
    }
}

impl Metrics {
    /// Registers the metrics of the storages of these services. To be called once.
    pub fn observe_storages(&self, storages: Vec<(&'static str, Db)>) {
        let watched = ObservedStorages(storages);
        self.with_registry(|registry| registry.register_collector(Box::new(watched)));
    }
}

/// Reads the statistics of the storages at every scrape.
struct ObservedStorages(Vec<(&'static str, Db)>);

impl fmt::Debug for ObservedStorages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(service, _)| service)).finish()
    }
}

/// Name, help text, and how the counter is read.
type StorageCounter = (&'static str, &'static str, fn(&DbStats) -> u64);

const COUNTERS: [StorageCounter; 8] = [
    ("urr_storage_committed", "Closures committed.", |stats| stats.committed),
    ("urr_storage_rolled_back", "Closures undone.", |stats| stats.rolled_back),
    ("urr_storage_commits", "Commits, each of a group of closures.", |stats| stats.groups),
    ("urr_storage_groups_lost", "Groups that had to run again.", |stats| stats.groups_lost),
    ("urr_storage_retries", "Closures that had to run again.", |stats| stats.retries),
    ("urr_storage_refused", "Closures refused, the queue being full.", |stats| stats.refused),
    ("urr_storage_statements", "Statements of closures.", |stats| stats.statements),
    ("urr_storage_round_trips", "Waits for PostgreSQL.", |stats| stats.round_trips),
];

impl Collector for ObservedStorages {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let stats: Vec<_> = self.0.iter().map(|(name, db)| (*name, db.stats())).collect();
        for (name, help, read) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (service, stats) in &stats {
                let label = [("service", *service)];
                ConstCounter::new(read(stats)).encode(family.encode_family(&label)?)?;
            }
        }
        let (name, help) = ("urr_storage_queue_length", "Closures waiting for their turn.");
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (service, stats) in &stats {
            let waiting = i64::try_from(stats.queue_length).unwrap_or(i64::MAX);
            let label = [("service", *service)];
            ConstGauge::new(waiting).encode(family.encode_family(&label)?)?;
        }
        Ok(())
    }
}
