//! Taking one step after the other.

use std::time::Duration;

use urr_kernel::Timestamp;
use urr_storage::{StorageError, Tx};

use crate::Payments;
use crate::domain::charge::{ORDER_MISMATCH, PARTLY_RETURNED};
use crate::domain::payment::{Payment, PaymentId, Status, Step, back_off};
use crate::provider;
use crate::store::payments::{self, From, To};

/// How long after an unclear answer the provider is asked for the first time.
const FIRST_QUERY_AFTER: Duration = Duration::from_secs(1);

/// What came of a step.
pub(super) enum Next {
    Go(Payment),
    /// It has to wait, or somebody else has moved it.
    Stop(Payment),
}

impl Payments {
    /// Takes the steps of a payment until there is none, or one has to wait. The caller has claimed
    /// it.
    pub(super) async fn drive(&self, mut payment: Payment) -> Result<Payment, StorageError> {
        let mut before = None;
        while let Some(step) = payment.step {
            let next = match step {
                Step::Pin => self.take_pin(&payment).await?,
                Step::Charge if before == Some(Step::Pin) => self.take_charge(&payment).await?,
                // Somebody else was about to send it, and nobody knows whether they did.
                Step::Charge => self.go(&payment, "charge abandoned", QUERY, |_| Ok(())).await?,
                Step::Query => self.take_query(&payment).await?,
                Step::Deliver => self.take_deliver(&payment).await?,
                Step::Unpin => self.take_unpin(&payment).await?,
                Step::Refund => self.take_refund(&payment).await?,
                Step::Tell => self.take_tell(&payment).await?,
            };
            before = Some(step);
            payment = match next {
                Next::Go(payment) => payment,
                Next::Stop(payment) => return Ok(payment),
            };
        }
        Ok(payment)
    }

    /// Claims a payment that has something to do and drives it. None: nothing, or somebody else
    /// does.
    pub async fn resume(&self, id: PaymentId) -> Result<Option<Payment>, StorageError> {
        let (now, claim) = (self.0.clock.now(), self.0.patience.claim);
        let claim = self.0.db.write(move |tx| payments::payment_claim(tx, id, now, claim));
        match self.0.faults.around("claim", claim).await? {
            Some(payment) => self.drive(payment).await.map(Some),
            None => Ok(None),
        }
    }

    /// Moves a payment, with everything that this means, in one transaction.
    pub(super) async fn go(
        &self,
        payment: &Payment,
        name: &'static str,
        (status, step): (Status, Option<Step>),
        effect: impl Fn(&mut Tx<'_>) -> Result<(), StorageError> + Send + 'static,
    ) -> Result<Next, StorageError> {
        let from = From::of(payment);
        let to = self.claimed(status, step);
        let moved = self.0.db.write(move |tx| {
            let is_moved = payments::payment_move(tx, from, to)?;
            if is_moved {
                effect(tx)?;
            }
            let payment = payments::payment_find(tx, from.id)?;
            let payment = payment.expect("payments are never deleted");
            Ok::<_, StorageError>(if is_moved { Next::Go(payment) } else { Next::Stop(payment) })
        });
        let next = self.0.faults.around(name, moved).await?;
        if let Next::Go(payment) = &next {
            self.0.figures.count_moved(payment);
            tracing::debug!(payment = %payment.id, status = status.name(), name, "payment moved");
        }
        Ok(next)
    }

    /// A move to a step that the mover takes as well.
    pub(super) fn claimed(&self, status: Status, step: Option<Step>) -> To {
        let now = self.0.clock.now();
        To { status, step, claimed_until: Some(now + self.0.patience.claim), look_at: now, now }
    }

    /// Nobody knows whether the provider has charged: it is asked in a moment.
    pub(super) async fn doubt(
        &self,
        payment: &Payment,
        effect: impl Fn(&mut Tx<'_>) -> Result<(), StorageError> + Send + 'static,
    ) -> Result<Next, StorageError> {
        let (from, now) = (From::of(payment), self.0.clock.now());
        let (status, step) = QUERY;
        let look_at = now + FIRST_QUERY_AFTER;
        let to = To { status, step, claimed_until: None, look_at, now };
        let moved = self.0.db.write(move |tx| {
            if payments::payment_move(tx, from, to)? {
                effect(tx)?;
            }
            payments::payment_find(tx, from.id)
        });
        let payment: Option<Payment> = self.0.faults.around("charge unclear", moved).await?;
        let payment = payment.expect("payments are never deleted");
        self.0.figures.count_moved(&payment);
        Ok(Next::Stop(payment))
    }

    /// A step came to nothing for now.
    pub(super) async fn wait(
        &self,
        payment: &Payment,
        code: Option<&str>,
    ) -> Result<Next, StorageError> {
        self.wait_with(payment, "wait", code, |_| Ok(())).await
    }

    /// The same, with something to write down.
    pub(super) async fn wait_with(
        &self,
        payment: &Payment,
        name: &'static str,
        code: Option<&str>,
        effect: impl Fn(&mut Tx<'_>) -> Result<(), StorageError> + Send + 'static,
    ) -> Result<Next, StorageError> {
        if let Some(code) = code {
            self.sound(payment, code);
        }
        let (from, code) = (From::of(payment), code.map(str::to_owned));
        let look_at: Timestamp = self.0.clock.now() + back_off(payment.looks);
        let waiting = self.0.db.write(move |tx| {
            effect(tx)?;
            payments::payment_wait(tx, from, look_at, code.as_deref())?;
            payments::payment_find(tx, from.id)
        });
        let payment: Option<Payment> = self.0.faults.around(name, waiting).await?;
        Ok(Next::Stop(payment.expect("payments are never deleted")))
    }

    /// Raises the alarm if a code of the provider is one that does not pass by itself.
    pub(super) fn sound(&self, payment: &Payment, code: &str) {
        let alarm = match code {
            ORDER_MISMATCH => ORDER_MISMATCH,
            PARTLY_RETURNED => PARTLY_RETURNED,
            provider::MISMATCH => provider::MISMATCH,
            code if provider::is_about_credential(code) => CREDENTIAL_REFUSED,
            _ => return,
        };
        self.0.figures.count_alarm(alarm);
        let order = &payment.order_id;
        tracing::error!(order, code, "the provider says what it should not: somebody has to look");
    }
}

/// The provider does not let us in.
const CREDENTIAL_REFUSED: &str = "CREDENTIAL_REFUSED";

const QUERY: (Status, Option<Step>) = (Status::Unknown, Some(Step::Query));
