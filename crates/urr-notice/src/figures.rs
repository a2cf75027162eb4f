//! What operators see of the notices. Those that were dropped are counted by the waiting room, whose
//! buffer drops some too.

use prometheus_client::metrics::counter::Counter;
use urr_service::Metrics;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub(crate) sent: Counter,
}

impl Figures {
    pub fn register(&self, metrics: &Metrics) {
        metrics.register("urr_notices_sent", "Notices of admissions", self.sent.clone());
    }

    /// How many the queue has taken.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }
}
