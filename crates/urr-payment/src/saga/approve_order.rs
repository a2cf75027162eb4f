//! Begins the purchase saga of an order that its buyer has confirmed.

use std::time::Duration;

use urr_kernel::{CallContext, IdempotencyKey, Uuid, Won};
use urr_service::idempotency::{KeyClaim, KeyedRequest, key_claim};
use urr_storage::{DbResult, StorageError};

use super::record_charge::is_paid_otherwise;
use crate::PaymentService;
use crate::domain::payment::{
    Approval, ApprovalDecision, ApprovalRejection, Payment, PaymentStatus, SagaStep,
    decide_approval,
};
use crate::keyed_mutex::KeyedMutexGuard;
use crate::store::payments::{self, CommandAction};
use crate::store::provider_calls::{self, ProviderCall};
use crate::store::transitions::{self, TransitionFrom};

/// For so long a decline counts. It is longer than any hold; whoever pays for a transfer or a
/// membership may try again after it.
pub(super) const DECLINES_COUNTED: Duration = Duration::from_hours(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApproveOrder {
    pub order_id: String,
    pub approval: Approval,
    pub key: Option<IdempotencyKey>,
    /// The request, if its key is claimed in the transaction that begins the payment.
    pub claim: Option<KeyedRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApproveError {
    #[error(transparent)]
    Refused(#[from] ApprovalRejection),
    /// Another request was sent with the same idempotency key.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

enum BeginResult {
    Now(Payment),
    Before(Payment),
}

impl PaymentService {
    /// Pays an order and returns how far that came. A repeated request waits for the first one; in
    /// another process it gets the present state.
    ///
    /// It stops when the caller drops it; [`PaymentService::approve_detached`] does not.
    pub async fn approve(
        &self,
        order: ApproveOrder,
        context: &CallContext,
    ) -> Result<Payment, ApproveError> {
        let _guard = self.lock_order(order.approval.user_id, &order.order_id).await;
        match self.begin(order, context).await? {
            BeginResult::Now(payment) => Ok(self.run_begun(payment).await?),
            BeginResult::Before(payment) => Ok(payment),
        }
    }

    /// The same in a task of its own, which continues when the buyer's request is dropped.
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
                Err(ApproveError::Storage(StorageError::Panicked(panicked.to_string())))
            }
            Err(_) => self.find_own_order(user_id, &order_id).await,
        }
    }

    /// Waits until no request of this process works on the order, within the usual time limit, and
    /// returns the payment.
    pub(crate) async fn wait_for_order(
        &self,
        user_id: Uuid,
        order_id: &str,
    ) -> Result<Payment, ApproveError> {
        let lock = self.lock_order(user_id, order_id);
        drop(tokio::time::timeout(self.0.settings.answer_timeout, lock).await);
        self.find_own_order(user_id, order_id).await
    }

    /// A lock per user and order: nobody can wait for another user's order.
    async fn lock_order(&self, user_id: Uuid, order_id: &str) -> KeyedMutexGuard<'_> {
        self.0.order_locks.lock(&format!("{user_id} {order_id}")).await
    }

    async fn find_own_order(&self, user_id: Uuid, order_id: &str) -> Result<Payment, ApproveError> {
        let payment = self.find_order(order_id).await?;
        let payment = payment.filter(|payment| payment.user_id == user_id);
        Ok(payment.ok_or(ApprovalRejection::NotFound)?)
    }

    /// How often the provider may still decline before the order's hold is given up; none unless the
    /// payment was declined.
    pub(crate) async fn declines_left(&self, payment: &Payment) -> DbResult<Option<u32>> {
        if !payment.is_declined() {
            return Ok(None);
        }
        let (user_id, payable) = (payment.user_id, payment.payable);
        let since = self.0.clock.now() - DECLINES_COUNTED;
        let count = self.read(move |tx| payments::decline_count(tx, user_id, payable, since));
        Ok(Some(self.0.settings.declines_per_hold_max.saturating_sub(count.await?)))
    }

    async fn begin(
        &self,
        order: ApproveOrder,
        context: &CallContext,
    ) -> Result<BeginResult, ApproveError> {
        let to = self.claimed_transition(PaymentStatus::Approving, Some(SagaStep::Pin));
        let (now, context, call_id) = (self.0.clock.now(), *context, self.0.ids.next_id());
        let declines_max = self.0.settings.declines_per_hold_max;
        let ApproveOrder { order_id, approval, key, claim } = order;
        let key = match key {
            Some(key) => format!("{}:{}", approval.user_id, key.as_str()),
            None => approval.payment_key.clone(),
        };
        let begun = self.commit("begun", move |tx| {
            if let Some(request) = &claim
                && key_claim(tx, request, now)? == KeyClaim::Reused
            {
                return Err(ApproveError::KeyReused);
            }
            let payment = payments::payment_lock_by_order(tx, &order_id)?;
            let payment = payment.ok_or(ApprovalRejection::NotFound)?;
            let approval = with_order_key(&approval, &payment);
            if decide_approval(&payment, &approval)? == ApprovalDecision::Begun {
                return Ok(BeginResult::Before(payment));
            }
            let since = now - DECLINES_COUNTED;
            let (rival, declines) = payments::rival_and_declines(tx, &payment, since)?;
            check_rival(rival)?;
            if declines >= declines_max {
                return Err(ApprovalRejection::TooManyDeclines.into());
            }
            if !payments::command_insert(tx, &order_id, CommandAction::Approve, &key, now)? {
                return Ok(BeginResult::Before(payment));
            }
            let moved = transitions::payment_transition(tx, TransitionFrom::of(&payment), to)?;
            let mut payment = moved.expect("the payment is locked");
            let correlation_id = match payment.cause_event_id {
                Some(_) => payment.correlation_id,
                None => context.correlation_id,
            };
            let context = CallContext { correlation_id, ..context };
            payments::approval_set(tx, &mut payment, &approval.payment_key, &context)?;
            // From now on only the provider knows whether it was asked to charge.
            payments::charge_sent(tx, &mut payment, now)?;
            let call = ProviderCall::charge(call_id, payment.id);
            provider_calls::provider_call_insert(tx, &call, now)?;
            Ok(BeginResult::Now(payment))
        });
        begun.await.map_err(|error| match error {
            // Of two orders for one hold that begin at the same moment, one comes second (M-11).
            ApproveError::Storage(error) if is_paid_otherwise(&error) => {
                ApprovalRejection::InProgress.into()
            }
            error => error,
        })
    }
}

/// What another payment of the same payable means for an order.
pub(super) fn check_rival(rival: Option<PaymentStatus>) -> Result<(), ApprovalRejection> {
    match rival {
        None => Ok(()),
        Some(PaymentStatus::Confirmed) => Err(ApprovalRejection::AlreadyPaid),
        Some(_) => Err(ApprovalRejection::InProgress),
    }
}

/// A free order has no key of a provider: whatever the buyer sends, the key is the order's id.
fn with_order_key(approval: &Approval, payment: &Payment) -> Approval {
    match payment.amount {
        Won::ZERO => Approval { payment_key: payment.order_id.clone(), ..approval.clone() },
        _ => approval.clone(),
    }
}
