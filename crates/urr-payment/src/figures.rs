//! What operators see of payments.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use urr_service::Metrics;

use crate::domain::payment::Payment;
use crate::ledger::Proof;
use crate::reconcile::Reconciliation;

/// Numbers for Prometheus. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    moved: Family<State, Counter>,
    alarms: Family<Alarm, Counter>,
    due: Gauge<i64, AtomicI64>,
    stuck: Gauge<i64, AtomicI64>,
    unexplained: Gauge<i64, AtomicI64>,
    differences: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    status: &'static str,
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Alarm {
    code: &'static str,
}

impl Figures {
    pub fn register(&self, metrics: &Metrics) {
        let help = "Steps of payments, by where they led";
        metrics.register("urr_payment_moves", help, self.moved.clone());
        let help = "Payments that somebody has to look at, by why";
        metrics.register("urr_payment_alarms", help, self.alarms.clone());
        let help = "Payments that were due when they were last looked for";
        metrics.register("urr_payments_due", help, self.due.clone());
        let help = "Payments that have had the same thing to do for ten minutes";
        metrics.register("urr_payments_stuck", help, self.stuck.clone());
        let help = "What the books cannot explain";
        metrics.register("urr_ledger_unexplained", help, self.unexplained.clone());
        let help = "Payments on which a provider's books and ours do not agree";
        metrics.register("urr_provider_differences", help, self.differences.clone());
    }

    pub fn count_moved(&self, payment: &Payment) {
        let step = payment.step.map_or("", |step| step.name());
        self.moved.get_or_create(&State { status: payment.status.name(), step }).inc();
    }

    pub fn count_alarm(&self, code: &'static str) {
        self.alarms.get_or_create(&Alarm { code }).inc();
    }

    pub fn note_due(&self, due: usize) {
        self.due.set(i64::try_from(due).unwrap_or(i64::MAX));
    }

    pub fn note_stuck(&self, stuck: i64) {
        self.stuck.set(stuck);
    }

    pub fn note_reconciliation(&self, found: &Reconciliation) {
        self.differences.set(i64::try_from(found.differences.len()).unwrap_or(i64::MAX));
        for difference in &found.differences {
            tracing::error!(?difference, "the provider's books say something else");
        }
    }

    pub fn note_proof(&self, proof: &Proof) {
        self.unexplained.set(i64::try_from(proof.unexplained.len()).unwrap_or(i64::MAX));
        for difference in &proof.unexplained {
            tracing::error!(?difference, "the books cannot explain this");
        }
    }
}
