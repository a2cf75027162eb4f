//! Metrics of notices. Dropped notices are counted by the queue service, whose buffer drops some too.

use prometheus_client::metrics::counter::Counter;
use urr_service::Metrics;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct NoticeMetrics {
    pub(crate) sent: Counter,
}

impl NoticeMetrics {
    pub fn register(&self, metrics: &Metrics) {
        metrics.register("urr_notices_sent", "Notices of admissions", self.sent.clone());
    }

    /// The number of notices that SQS has accepted.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }
}
