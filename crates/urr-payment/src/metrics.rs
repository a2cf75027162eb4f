//! What operators see of payments.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_kernel::Timestamp;
use urr_service::Metrics;

use crate::domain::payment::Payment;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PaymentMetrics {
    moved: Family<TransitionLabels, Counter>,
    alarms: Family<AlarmLabels, Counter>,
    due: Gauge<i64, AtomicI64>,
    stuck: Gauge<i64, AtomicI64>,
    unexplained: Gauge<i64, AtomicI64>,
    differences: Gauge<i64, AtomicI64>,
    checked: Family<AuditLabels, Gauge<i64, AtomicI64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransitionLabels {
    status: &'static str,
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AlarmLabels {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AuditLabels {
    check: String,
}

impl PaymentMetrics {
    pub fn register(&self, metrics: &Metrics) {
        let help = "Steps of payments, by where they led";
        metrics.register("urr_payment_moves", help, self.moved.clone());
        let help = "Payments that somebody has to look at, by why";
        metrics.register("urr_payment_alarms", help, self.alarms.clone());
        let help = "Payments that were due when they were last looked for";
        metrics.register("urr_payments_due", help, self.due.clone());
        let help = "Payments that have had the same thing to do for ten minutes";
        metrics.register("urr_payments_stuck", help, self.stuck.clone());
        let help = "When the books, and each provider's, were last looked through to the end";
        metrics.register("urr_payment_checked_timestamp_seconds", help, self.checked.clone());
        let help = "Payments that the books cannot explain";
        metrics.register("urr_ledger_unexplained", help, self.unexplained.clone());
        let help = "Payments on which a provider's books and ours do not agree";
        metrics.register("urr_provider_differences", help, self.differences.clone());
    }

    pub fn count_transition(&self, payment: &Payment) {
        let step = payment.step.map_or("", |step| step.name());
        self.moved.get_or_create(&TransitionLabels { status: payment.status.name(), step }).inc();
    }

    pub fn count_alarm(&self, code: &'static str) {
        self.alarms.get_or_create(&AlarmLabels { code }).inc();
    }

    pub fn set_due(&self, due: i64) {
        self.due.set(due);
    }

    pub fn set_stuck(&self, stuck: i64) {
        self.stuck.set(stuck);
    }

    pub fn set_audits(&self, done: &[(String, Timestamp)], unexplained: i64, differences: i64) {
        self.unexplained.set(unexplained);
        self.differences.set(differences);
        for (name, at) in done {
            self.checked.get_or_create(&AuditLabels { check: name.clone() }).set(at.as_second());
        }
    }
}
