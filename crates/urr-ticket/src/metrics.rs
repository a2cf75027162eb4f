//! What operators see of the ticket office.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_service::Metrics;

use crate::Status;
use crate::audit::Audit;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    ended: Family<Ending, Counter>,
    failed: Counter,
    differences: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ending {
    ending: &'static str,
}

impl Figures {
    pub fn register(&self, metrics: &Metrics) {
        let ended = self.ended.clone();
        metrics.register("urr_reservations_ended", "Reservations that ended, by how", ended);
        let failed = self.failed.clone();
        let help = "Reservations that should have been ended and could not be";
        metrics.register("urr_reservations_not_ended", help, failed);
        let differences = self.differences.clone();
        let help = "Seats, reservations, stock or tickets that do not agree";
        metrics.register("urr_reservation_audit_differences", help, differences);
    }

    pub fn count_ended(&self, ending: Status, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.ended.get_or_create(&Ending { ending: ending.name() }).inc_by(count);
    }

    pub fn count_failed(&self) {
        self.failed.inc();
    }

    pub fn note_audit(&self, audit: &Audit) {
        self.differences.set(i64::try_from(audit.differences.len()).unwrap_or(i64::MAX));
        for difference in &audit.differences {
            tracing::error!(?difference, "reservations and seats do not agree");
        }
    }
}
