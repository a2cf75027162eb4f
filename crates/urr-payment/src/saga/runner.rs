//! Runs the steps of a payment, and moves it from one to the next.

use std::time::Duration;

use urr_storage::{DbResult, StorageError, Tx};

use crate::PaymentService;
use crate::domain::charge_outcome::{ORDER_MISMATCH, PARTLY_RETURNED};
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep, retry_delay};
use crate::provider;
use crate::store::payments;
use crate::store::transitions::{self, TransitionFrom, TransitionTo};

/// When the provider is queried for the first time after an unclear answer.
const FIRST_QUERY_AFTER: Duration = Duration::from_secs(1);
/// The alarm when the provider refuses our credential.
const CREDENTIAL_REFUSED: &str = "CREDENTIAL_REFUSED";

const QUERY: (PaymentStatus, Option<SagaStep>) = (PaymentStatus::Unknown, Some(SagaStep::Query));

/// The result of a step.
pub(super) enum StepOutcome {
    Continue(Payment),
    /// The payment has to wait, or another process has moved it.
    Stop(Payment),
}

impl PaymentService {
    /// Runs a payment that this process has just begun: the hold is pinned and the charge is sent
    /// without a commit in between, because that the charge may be sent was committed before.
    pub(super) async fn run_begun(&self, payment: Payment) -> DbResult<Payment> {
        match self.pin_and_charge(&payment).await? {
            StepOutcome::Continue(payment) => self.run_steps(payment).await,
            StepOutcome::Stop(payment) => Ok(payment),
        }
    }

    /// Runs the steps of a payment until none is left or one has to wait. The caller has claimed the
    /// payment.
    pub(super) async fn run_steps(&self, mut payment: Payment) -> DbResult<Payment> {
        let mut before = None;
        while let Some(step) = payment.step {
            let outcome = match step {
                SagaStep::Charge if before == Some(SagaStep::Pin) => {
                    self.step_charge(&payment).await?
                }
                SagaStep::Pin if payment.charge_sent_at.is_none() => {
                    self.step_pin(&payment).await?
                }
                // Another process was about to send the charge, and may have sent it.
                SagaStep::Pin | SagaStep::Charge => {
                    self.advance(&payment, "charge abandoned", QUERY, |_, _| Ok(())).await?
                }
                SagaStep::Query => self.step_query(&payment).await?,
                SagaStep::Deliver => self.step_deliver(&payment).await?,
                SagaStep::Unpin => self.step_unpin(&payment).await?,
                SagaStep::Refund => self.step_refund(&payment).await?,
                SagaStep::Report => self.step_report(&payment).await?,
            };
            before = Some(step);
            payment = match outcome {
                StepOutcome::Continue(payment) => payment,
                StepOutcome::Stop(payment) => return Ok(payment),
            };
        }
        Ok(payment)
    }

    /// Claims a payment that has a step to do, and runs it. None if there is no step, or another
    /// process has the claim.
    pub async fn resume(&self, id: PaymentId) -> DbResult<Option<Payment>> {
        let (now, ttl) = (self.0.clock.now(), self.0.timeouts.claim_ttl);
        let claim = self.commit("claim", move |tx| transitions::payment_claim(tx, id, now, ttl));
        match claim.await? {
            Some(payment) => self.run_steps(payment).await.map(Some),
            None => Ok(None),
        }
    }

    /// Moves a payment to a step that this process takes as well, with all effects in the same
    /// transaction.
    pub(super) async fn advance(
        &self,
        payment: &Payment,
        name: &'static str,
        (status, step): (PaymentStatus, Option<SagaStep>),
        effect: impl Fn(&mut Tx<'_>, &mut Payment) -> DbResult<()> + Send + 'static,
    ) -> DbResult<StepOutcome> {
        let to = self.claimed_transition(status, step);
        self.transition(payment, name, to, effect).await
    }

    /// The charge is unclear: the provider is queried in a moment.
    pub(super) async fn query_soon(
        &self,
        payment: &Payment,
        effect: impl Fn(&mut Tx<'_>, &mut Payment) -> DbResult<()> + Send + 'static,
    ) -> DbResult<StepOutcome> {
        let (now, (status, step)) = (self.0.clock.now(), QUERY);
        let attempt_at = now + FIRST_QUERY_AFTER;
        let to = TransitionTo { status, step, claimed_until: None, attempt_at, now };
        self.transition(payment, "charge unclear", to, effect).await
    }

    async fn transition(
        &self,
        payment: &Payment,
        name: &'static str,
        to: TransitionTo,
        effect: impl Fn(&mut Tx<'_>, &mut Payment) -> DbResult<()> + Send + 'static,
    ) -> DbResult<StepOutcome> {
        let from = TransitionFrom::of(payment);
        let moved = self.commit(name, move |tx| {
            let Some(mut payment) = transitions::payment_transition(tx, from, to)? else {
                return Ok::<_, StorageError>((false, payments::payment_get(tx, from.id)?));
            };
            effect(tx, &mut payment)?;
            Ok((true, payment))
        });
        let (is_moved, payment) = moved.await?;
        if is_moved {
            self.0.metrics.count_transition(&payment);
            tracing::debug!(payment = %payment.id, status = %to.status, name, "payment moved");
        }
        match is_moved && to.claimed_until.is_some() {
            true => Ok(StepOutcome::Continue(payment)),
            false => Ok(StepOutcome::Stop(payment)),
        }
    }

    /// A transition to a step that this process takes as well.
    pub(super) fn claimed_transition(
        &self,
        status: PaymentStatus,
        step: Option<SagaStep>,
    ) -> TransitionTo {
        let now = self.0.clock.now();
        let claimed_until = Some(now + self.0.timeouts.claim_ttl);
        TransitionTo { status, step, claimed_until, attempt_at: now, now }
    }

    /// The step had no result: it is tried again later.
    pub(super) async fn retry_later(
        &self,
        payment: &Payment,
        code: Option<&str>,
    ) -> DbResult<StepOutcome> {
        self.retry_later_with(payment, "wait", code, |_, _| Ok(())).await
    }

    /// The same, with something to write.
    pub(super) async fn retry_later_with(
        &self,
        payment: &Payment,
        name: &'static str,
        code: Option<&str>,
        effect: impl Fn(&mut Tx<'_>, &mut Payment) -> DbResult<()> + Send + 'static,
    ) -> DbResult<StepOutcome> {
        if let Some(code) = code {
            self.raise_alarm(payment, code);
        }
        let (from, code) = (TransitionFrom::of(payment), code.map(str::to_owned));
        let attempt_at = self.0.clock.now() + retry_delay(payment.attempts);
        let waiting = self.commit(name, move |tx| {
            let mut payment = transitions::payment_retry_at(tx, from, attempt_at, code.as_deref())?;
            effect(tx, &mut payment)?;
            Ok::<_, StorageError>(payment)
        });
        Ok(StepOutcome::Stop(waiting.await?))
    }

    /// Counts and logs a code of the provider that does not go away by itself.
    pub(super) fn raise_alarm(&self, payment: &Payment, code: &str) {
        let alarm = match code {
            ORDER_MISMATCH => ORDER_MISMATCH,
            PARTLY_RETURNED => PARTLY_RETURNED,
            provider::MISMATCH => provider::MISMATCH,
            provider::STORE_MISMATCH => provider::STORE_MISMATCH,
            code if provider::is_about_credential(code) => CREDENTIAL_REFUSED,
            _ => return,
        };
        self.0.metrics.count_alarm(alarm);
        let order = &payment.order_id;
        tracing::error!(order, code, "the provider's answer needs an operator's attention");
    }
}
