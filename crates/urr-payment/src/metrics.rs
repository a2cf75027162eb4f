//! The metrics of the payment service.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;
use urr_kernel::Timestamp;
use urr_service::Metrics;

use crate::domain::payment::{Payment, SagaStep};

/// Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct PaymentMetrics {
    transitions: Family<TransitionLabels, Counter>,
    alarms: Family<AlarmLabels, Counter>,
    /// How often each alarm was raised, and when for the last time.
    last_alarms: Arc<Mutex<BTreeMap<&'static str, (u64, Instant)>>>,
    due: Gauge<i64, AtomicI64>,
    stuck: Gauge<i64, AtomicI64>,
    unexplained: Gauge<i64, AtomicI64>,
    differences: Gauge<i64, AtomicI64>,
    audits: Family<AuditLabels, Gauge<i64, AtomicI64>>,
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
        let help = "Transitions of payments, by the status and step they led to";
        metrics.register("urr_payment_moves", help, self.transitions.clone());
        let help = "Events that need an operator's attention, by code";
        metrics.register("urr_payment_alarms", help, self.alarms.clone());
        let help = "Payments that were due at the last look of the resolver";
        metrics.register("urr_payments_due", help, self.due.clone());
        let help = "Payments that have been at the same step for ten minutes";
        metrics.register("urr_payments_stuck", help, self.stuck.clone());
        let help = "When the ledger, and each provider, was last audited to the end";
        metrics.register("urr_payment_checked_timestamp_seconds", help, self.audits.clone());
        let help = "Payments that the ledger does not explain";
        metrics.register("urr_ledger_unexplained", help, self.unexplained.clone());
        let help = "Orders on which a provider and we differ";
        metrics.register("urr_provider_differences", help, self.differences.clone());
    }

    pub fn count_transition(&self, payment: &Payment) {
        let step = payment.step.map_or("", SagaStep::as_str);
        let labels = TransitionLabels { status: payment.status.as_str(), step };
        self.transitions.get_or_create(&labels).inc();
    }

    pub fn count_alarm(&self, code: &'static str) {
        self.alarms.get_or_create(&AlarmLabels { code }).inc();
        let mut last = self.last_alarms.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = last.entry(code).or_insert((0, Instant::now()));
        *entry = (entry.0 + 1, Instant::now());
    }

    /// The alarms of this process within a time: how often each was raised since the process began,
    /// and how long ago the last time was.
    pub fn recent_alarms(
        &self,
        within: Duration,
    ) -> impl Iterator<Item = (&'static str, u64, Duration)> {
        let last = self.last_alarms.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let ago = |(code, (count, at)): (_, (_, Instant))| (code, count, at.elapsed());
        last.into_iter().map(ago).filter(move |(_, _, ago)| *ago < within)
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
            self.audits.get_or_create(&AuditLabels { check: name.clone() }).set(at.as_second());
        }
    }
}
