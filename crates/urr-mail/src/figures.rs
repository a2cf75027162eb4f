//! What operators see of mails.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_service::Metrics;

use crate::domain::mail::Kind;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    sent: Family<Label, Counter>,
    failed: Family<Label, Counter>,
    dropped: Family<Label, Counter>,
    waiting: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    kind: &'static str,
}

impl Figures {
    pub fn register(&self, metrics: &Metrics) {
        metrics.register("urr_mails_sent", "Mails that the sender has taken", self.sent.clone());
        let help = "Mails that nobody tries to send any more";
        metrics.register("urr_mails_failed", help, self.failed.clone());
        let help = "Mails that nobody was there for, or that came too late";
        metrics.register("urr_mails_dropped", help, self.dropped.clone());
        let help = "Mails that are still to be sent";
        metrics.register("urr_mails_waiting", help, self.waiting.clone());
    }

    pub fn count_sent(&self, kind: Kind) {
        self.sent.get_or_create(&label(kind)).inc();
    }

    pub fn count_failed(&self, kind: Kind) {
        self.failed.get_or_create(&label(kind)).inc();
    }

    pub fn count_dropped(&self, kind: Kind) {
        self.dropped.get_or_create(&label(kind)).inc();
    }

    pub fn note_waiting(&self, waiting: i64) {
        self.waiting.set(waiting);
    }
}

fn label(kind: Kind) -> Label {
    Label { kind: kind.name() }
}
