//! Taking one step after the other.

use std::time::Duration;

use urr_kernel::Timestamp;
use urr_storage::{StorageError, Tx};

use crate::PaymentService;
use crate::domain::charge::{ORDER_MISMATCH, PARTLY_RETURNED};
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep, retry_delay};
use crate::provider;
use crate::store::payments::{self, TransitionFrom, TransitionTo};

/// How long after an unclear answer the provider is asked for the first time.
const FIRST_QUERY_AFTER: Duration = Duration::from_secs(1);

/// What came of a step.
pub(super) enum StepOutcome {
    Continue(Payment),
    /// It has to wait, or somebody else has moved it.
    Stop(Payment),
}

impl PaymentService {
    /// Takes the steps of a payment until there is none, or one has to wait. The caller has claimed
    /// it.
    pub(super) async fn run_steps(&self, mut payment: Payment) -> Result<Payment, StorageError> {
        let mut before = None;
        while let Some(step) = payment.step {
            let next = match step {
                SagaStep::Pin => self.step_pin(&payment).await?,
                SagaStep::Charge if before == Some(SagaStep::Pin) => {
                    self.step_charge(&payment).await?
                }
                // Somebody else was about to send it, and nobody knows whether they did.
                SagaStep::Charge => {
                    self.advance(&payment, "charge abandoned", QUERY, |_| Ok(())).await?
                }
                SagaStep::Query => self.step_query(&payment).await?,
                SagaStep::Deliver => self.step_deliver(&payment).await?,
                SagaStep::Unpin => self.step_unpin(&payment).await?,
                SagaStep::Refund => self.step_refund(&payment).await?,
                SagaStep::Report => self.step_report(&payment).await?,
            };
            before = Some(step);
            payment = match next {
                StepOutcome::Continue(payment) => payment,
                StepOutcome::Stop(payment) => return Ok(payment),
            };
        }
        Ok(payment)
    }

    /// Claims a payment that has something to do and drives it. None: nothing, or somebody else
    /// does.
    pub async fn resume(&self, id: PaymentId) -> Result<Option<Payment>, StorageError> {
        let (now, claim) = (self.0.clock.now(), self.0.timeouts.claim_ttl);
        match self.commit("claim", move |tx| payments::payment_claim(tx, id, now, claim)).await? {
            Some(payment) => self.run_steps(payment).await.map(Some),
            None => Ok(None),
        }
    }

    /// Moves a payment, with everything that this means, in one transaction.
    pub(super) async fn advance(
        &self,
        payment: &Payment,
        name: &'static str,
        (status, step): (PaymentStatus, Option<SagaStep>),
        effect: impl Fn(&mut Tx<'_>) -> Result<(), StorageError> + Send + 'static,
    ) -> Result<StepOutcome, StorageError> {
        let from = TransitionFrom::of(payment);
        let to = self.claimed_transition(status, step);
        let next = self
            .commit(name, move |tx| {
                let is_moved = payments::payment_transition(tx, from, to)?;
                if is_moved {
                    effect(tx)?;
                }
                let payment = payments::payment_find(tx, from.id)?;
                let payment = payment.expect("payments are never deleted");
                Ok::<_, StorageError>(if is_moved {
                    StepOutcome::Continue(payment)
                } else {
                    StepOutcome::Stop(payment)
                })
            })
            .await?;
        if let StepOutcome::Continue(payment) = &next {
            self.0.metrics.count_transition(payment);
            tracing::debug!(payment = %payment.id, status = status.name(), name, "payment moved");
        }
        Ok(next)
    }

    /// A move to a step that the mover takes as well.
    pub(super) fn claimed_transition(
        &self,
        status: PaymentStatus,
        step: Option<SagaStep>,
    ) -> TransitionTo {
        let now = self.0.clock.now();
        TransitionTo {
            status,
            step,
            claimed_until: Some(now + self.0.timeouts.claim_ttl),
            attempt_at: now,
            now,
        }
    }

    /// Nobody knows whether the provider has charged: it is asked in a moment.
    pub(super) async fn query_soon(
        &self,
        payment: &Payment,
        effect: impl Fn(&mut Tx<'_>) -> Result<(), StorageError> + Send + 'static,
    ) -> Result<StepOutcome, StorageError> {
        let (from, now) = (TransitionFrom::of(payment), self.0.clock.now());
        let (status, step) = QUERY;
        let attempt_at = now + FIRST_QUERY_AFTER;
        let to = TransitionTo { status, step, claimed_until: None, attempt_at, now };
        let payment: Option<Payment> = self
            .commit("charge unclear", move |tx| {
                if payments::payment_transition(tx, from, to)? {
                    effect(tx)?;
                }
                payments::payment_find(tx, from.id)
            })
            .await?;
        let payment = payment.expect("payments are never deleted");
        self.0.metrics.count_transition(&payment);
        Ok(StepOutcome::Stop(payment))
    }

    /// A step came to nothing for now.
    pub(super) async fn retry_later(
        &self,
        payment: &Payment,
        code: Option<&str>,
    ) -> Result<StepOutcome, StorageError> {
        self.retry_later_with(payment, "wait", code, |_| Ok(())).await
    }

    /// The same, with something to write down.
    pub(super) async fn retry_later_with(
        &self,
        payment: &Payment,
        name: &'static str,
        code: Option<&str>,
        effect: impl Fn(&mut Tx<'_>) -> Result<(), StorageError> + Send + 'static,
    ) -> Result<StepOutcome, StorageError> {
        if let Some(code) = code {
            self.raise_alarm(payment, code);
        }
        let (from, code) = (TransitionFrom::of(payment), code.map(str::to_owned));
        let attempt_at: Timestamp = self.0.clock.now() + retry_delay(payment.attempts);
        let payment: Option<Payment> = self
            .commit(name, move |tx| {
                effect(tx)?;
                payments::payment_retry_at(tx, from, attempt_at, code.as_deref())?;
                payments::payment_find(tx, from.id)
            })
            .await?;
        Ok(StepOutcome::Stop(payment.expect("payments are never deleted")))
    }

    /// Raises the alarm if a code of the provider is one that does not pass by itself.
    pub(super) fn raise_alarm(&self, payment: &Payment, code: &str) {
        let alarm = match code {
            ORDER_MISMATCH => ORDER_MISMATCH,
            PARTLY_RETURNED => PARTLY_RETURNED,
            provider::MISMATCH => provider::MISMATCH,
            code if provider::is_about_credential(code) => CREDENTIAL_REFUSED,
            _ => return,
        };
        self.0.metrics.count_alarm(alarm);
        let order = &payment.order_id;
        tracing::error!(order, code, "the provider says what it should not: somebody has to look");
    }
}

/// The provider does not let us in.
const CREDENTIAL_REFUSED: &str = "CREDENTIAL_REFUSED";

const QUERY: (PaymentStatus, Option<SagaStep>) = (PaymentStatus::Unknown, Some(SagaStep::Query));
