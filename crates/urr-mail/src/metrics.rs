//! Metrics of mails.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_service::Metrics;

use crate::domain::mail::MailKind;

type KindCounter = Family<MailKindLabel, Counter>;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MailMetrics {
    sent: KindCounter,
    failed: KindCounter,
    dropped: KindCounter,
    waiting: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MailKindLabel {
    kind: &'static str,
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

    pub fn count_sent(&self, kind: MailKind) {
        count(&self.sent, kind);
    }

    pub fn count_failed(&self, kind: MailKind) {
        count(&self.failed, kind);
    }

    pub fn count_dropped(&self, kind: MailKind) {
        count(&self.dropped, kind);
    }

    pub fn set_waiting(&self, waiting: i64) {
        self.waiting.set(waiting);
    }
}

fn count(counter: &KindCounter, kind: MailKind) {
    counter.get_or_create(&MailKindLabel { kind: kind.as_str() }).inc();
}
