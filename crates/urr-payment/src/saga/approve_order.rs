//! The buyer has agreed: the saga begins.

use urr_kernel::{CallContext, IdempotencyKey, Uuid, Won};
use urr_storage::StorageError;

use super::record_charge::is_paid_otherwise;
use crate::PaymentService;
use crate::domain::payment::{
    Approval, ApprovalDecision, ApprovalRejection, Payment, PaymentStatus, SagaStep,
    decide_approval,
};
use crate::store::payments::{self, CommandAction, TransitionFrom};

/// What the buyer brings back from the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApproveOrder {
    pub order_id: String,
    pub approval: Approval,
    pub key: Option<IdempotencyKey>,
}

/// Why it did not begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApproveError {
    #[error(transparent)]
    Refused(#[from] ApprovalRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

enum BeginResult {
    Now(Payment),
    Before(Payment),
}

impl PaymentService {
    /// Pays an order, and answers how far that came. Whoever asks again for the same waits for the
    /// same; in another process they are told how far it is.
    ///
    /// It goes on to its end only if nobody drops it: [`PaymentService::approve_detached`] sees to that.
    pub async fn approve(
        &self,
        order: ApproveOrder,
        context: &CallContext,
    ) -> Result<Payment, ApproveError> {
        // Whose it is comes first: nobody is kept waiting by, or sees, somebody else's order.
        self.find_own_order(order.approval.user_id, &order.order_id).await?;
        let _guard = self.0.order_locks.lock(&order.order_id).await;
        match self.begin(order, context).await? {
            BeginResult::Now(payment) => Ok(self.run_steps(payment).await?),
            BeginResult::Before(payment) => Ok(payment),
        }
    }

    /// The same in a task of its own: a buyer who goes away stops nothing.
    pub async fn approve_detached(
        &self,
        order: ApproveOrder,
        context: CallContext,
    ) -> Result<Payment, ApproveError> {
        let (payments, order_id) = (self.clone(), order.order_id.clone());
        let user_id = order.approval.user_id;
        let task = tokio::spawn(async move { payments.approve(order, &context).await });
        match tokio::time::timeout(self.0.settings.answer_timeout, task).await {
            Ok(Ok(payment)) => payment,
            Ok(Err(panicked)) => {
                let panicked = StorageError::Panicked(panicked.to_string());
                Err(ApproveError::Storage(panicked))
            }
            Err(_) => self.find_own_order(user_id, &order_id).await,
        }
    }

    async fn find_own_order(&self, user_id: Uuid, order_id: &str) -> Result<Payment, ApproveError> {
        let payment = self.find_order(order_id).await?;
        let payment = payment.filter(|payment| payment.user_id == user_id);
        Ok(payment.ok_or(ApprovalRejection::NotFound)?)
    }

    async fn begin(
        &self,
        order: ApproveOrder,
        context: &CallContext,
    ) -> Result<BeginResult, ApproveError> {
        let (to, now) = (
            self.claimed_transition(PaymentStatus::Approving, Some(SagaStep::Pin)),
            self.0.clock.now(),
        );
        let correlation_id = context.correlation_id;
        let ApproveOrder { order_id, approval, key } = order;
        let key = match key {
            Some(key) => format!("{}:{}", approval.user_id, key.as_str()),
            None => approval.payment_key.clone(),
        };
        let begun = self
            .commit("begun", move |tx| {
                let payment = payments::payment_lock_by_order(tx, &order_id)?;
                let payment = payment.ok_or(ApprovalRejection::NotFound)?;
                let approval = named_by_order(&approval, &payment);
                if decide_approval(&payment, &approval)? == ApprovalDecision::Begun {
                    return Ok(BeginResult::Before(payment));
                }
                match payments::payment_find_rival(tx, &payment)? {
                    None => {}
                    Some(PaymentStatus::Confirmed) => {
                        return Err(ApprovalRejection::AlreadyPaid.into());
                    }
                    Some(_) => return Err(ApprovalRejection::InProgress.into()),
                }
                if !payments::command_insert(tx, &order_id, CommandAction::Approve, &key, now)? {
                    return Ok(BeginResult::Before(payment));
                }
                payments::payment_transition(tx, TransitionFrom::of(&payment), to)?;
                let correlation_id = match payment.cause_event_id {
                    Some(_) => payment.correlation_id,
                    None => correlation_id,
                };
                payments::approval_set(tx, payment.id, &approval.payment_key, correlation_id)?;
                let payment = payments::payment_find(tx, payment.id)?;
                Ok::<_, ApproveError>(BeginResult::Now(
                    payment.expect("payments are never deleted"),
                ))
            })
            .await;
        begun.map_err(|error| match error {
            // Of two orders for one hold, begun at the same moment, one comes second (M-11).
            ApproveError::Storage(error) if is_paid_otherwise(&error) => {
                ApprovalRejection::InProgress.into()
            }
            error => error,
        })
    }
}

/// Where nothing is charged no provider has a name for it: whatever the buyer brings, it is the same.
fn named_by_order(approval: &Approval, payment: &Payment) -> Approval {
    match payment.amount {
        Won::ZERO => Approval { payment_key: payment.order_id.clone(), ..approval.clone() },
        _ => approval.clone(),
    }
}
