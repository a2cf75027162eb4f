//! Metrics of mails.

use std::sync::atomic::AtomicI64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_service::Metrics;

use crate::domain::mail::MailStatus;

type KindCounter = Family<[(&'static str, &'static str); 1], Counter>;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MailMetrics {
    sent: KindCounter,
    failed: KindCounter,
    dropped: KindCounter,
    waiting: Gauge<i64, AtomicI64>,
}

impl MailMetrics {
    pub fn register(&self, metrics: &Metrics) {
        let help = "Mails that the transport has accepted";
        metrics.register("urr_mails_sent", help, self.sent.clone());
        let help = "Mails that are not tried again";
        metrics.register("urr_mails_failed", help, self.failed.clone());
        let help = "Mails without a recipient, or that came too late";
        metrics.register("urr_mails_dropped", help, self.dropped.clone());
        let help = "Mails that are still to be sent";
        metrics.register("urr_mails_waiting", help, self.waiting.clone());
    }

    /// Counts a mail that has ended.
    pub fn count(&self, status: MailStatus, kind: &'static str) {
        let counter = match status {
            MailStatus::Waiting => return,
            MailStatus::Sent => &self.sent,
            MailStatus::Failed => &self.failed,
            MailStatus::Dropped => &self.dropped,
        };
        counter.get_or_create(&[("kind", kind)]).inc();
    }

    pub fn set_waiting(&self, waiting: i64) {
        self.waiting.set(waiting);
    }
}
