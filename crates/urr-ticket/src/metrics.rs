//! The metrics of the ticket service.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_service::Metrics;

use crate::ReservationStatus;
use crate::audit::AuditReport;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct TicketMetrics {
    created: Counter,
    confirmed: Counter,
    ended: Family<EndingLabel, Counter>,
    failed: Counter,
    differences: Gauge<i64, AtomicI64>,
    alerts_told: Family<AlertLabel, Counter>,
    alerts_waiting: Family<AlertLabel, Gauge<i64, AtomicI64>>,
}

/// `sale` or `seat`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AlertLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndingLabel {
    ending: &'static str,
}

impl TicketMetrics {
    pub fn register(&self, metrics: &Metrics) {
        let created = self.created.clone();
        metrics.register("urr_reservations_created", "Holds that were made", created);
        let confirmed = self.confirmed.clone();
        metrics.register("urr_reservations_confirmed", "Reservations that were paid", confirmed);
        let ended = self.ended.clone();
        metrics.register("urr_reservations_ended", "Reservations that ended, by how", ended);
        let failed = self.failed.clone();
        let help = "Reservations that should have been ended and could not be";
        metrics.register("urr_reservations_not_ended", help, failed);
        let differences = self.differences.clone();
        let help = "Seats, reservations, stock or tickets that do not agree";
        metrics.register("urr_reservation_audit_differences", help, differences);
        let told = self.alerts_told.clone();
        metrics.register("urr_alerts_told", "Fans who were told what they asked for", told);
        let waiting = self.alerts_waiting.clone();
        metrics.register("urr_alerts_waiting", "Alerts whose fans are still to be told", waiting);
    }

    pub fn count_created(&self) {
        self.created.inc();
    }

    pub fn count_confirmed(&self) {
        self.confirmed.inc();
    }

    pub fn count_ended(&self, ending: ReservationStatus, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.ended.get_or_create(&EndingLabel { ending: ending.as_str() }).inc_by(count);
    }

    pub fn count_failed(&self) {
        self.failed.inc();
    }

    pub fn count_alerts_told(&self, kind: &'static str, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.alerts_told.get_or_create(&AlertLabel { kind }).inc_by(count);
    }

    pub fn set_alerts_waiting(&self, sales: i64, seats: i64) {
        self.alerts_waiting.get_or_create(&AlertLabel { kind: "sale" }).set(sales);
        self.alerts_waiting.get_or_create(&AlertLabel { kind: "seat" }).set(seats);
    }

    /// The differences that the last audit of this process found.
    pub fn audit_differences(&self) -> u64 {
        self.differences.get().unsigned_abs()
    }

    pub fn record_audit(&self, audit: &AuditReport) {
        self.differences.set(i64::try_from(audit.differences.len()).unwrap_or(i64::MAX));
        for difference in &audit.differences {
            tracing::error!(?difference, "reservations and seats do not agree");
        }
    }
}
