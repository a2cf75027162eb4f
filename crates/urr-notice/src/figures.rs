//! What operators see of the notices.

use prometheus_client::metrics::counter::Counter;
use urr_service::Metrics;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub(crate) sent: Counter,
    pub(crate) dropped: Counter,
}

impl Figures {
    pub fn register(&self, metrics: &Metrics) {
        metrics.register("urr_notices_sent", "Notices of admissions", self.sent.clone());
        let help = "Notices of admissions that were given up because the queue did not take them";
        metrics.register("urr_notices_dropped", help, self.dropped.clone());
    }

    /// How many the queue has taken.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// How many were given up.
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}
