//! Begins the purchase saga of an order that its buyer has confirmed.

use std::time::Duration;

use urr_kernel::{CallContext, IdempotencyKey, Timestamp, Uuid, Won};
use urr_service::idempotency::{KeyClaim, KeyedRequest, keys_claim, keys_find};
use urr_storage::{DbResult, SetWrite, StorageError, Tx};

use super::record_charge::is_paid_otherwise;
use crate::PaymentService;
use crate::domain::payment::{
    Approval, ApprovalDecision, ApprovalRejection, Payment, PaymentStatus, SagaStep,
    decide_approval,
};
use crate::keyed_mutex::KeyedMutexGuard;
use crate::store::payments::{self, CommandAction};
use crate::store::provider_calls::ProviderCall;
use crate::store::purchase_sets::{self, MovedPayment, OrderCommand, PayableHistory};
use crate::store::transitions::TransitionTo;

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
        let pay = async move { payments.approve(order, &context).await };
        self.run_detached(user_id, &order_id, pay).await
    }

    /// Runs a payment in a task of its own. If that takes too long, the present state is returned.
    pub(super) async fn run_detached(
        &self,
        user_id: Uuid,
        order_id: &str,
        pay: impl Future<Output = Result<Payment, ApproveError>> + Send + 'static,
    ) -> Result<Payment, ApproveError> {
        let task = tokio::spawn(pay);
        match tokio::time::timeout(self.0.settings.answer_timeout, task).await {
            Ok(Ok(payment)) => payment,
            Ok(Err(panicked)) => {
                Err(ApproveError::Storage(StorageError::Panicked(panicked.to_string())))
            }
            Err(_) => self.find_own_order(user_id, order_id).await,
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
    pub(super) async fn lock_order(&self, user_id: Uuid, order_id: &str) -> KeyedMutexGuard<'_> {
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
        let begin = OrderToBegin {
            to: self.claimed_transition(PaymentStatus::Approving, Some(SagaStep::Pin)),
            context: *context,
            call_id: self.0.ids.next_id(),
            declines_max: self.0.settings.declines_per_hold_max,
            order,
        };
        self.commit_in_set("begun", begin).await.map_err(|error| match error {
            // Of two orders for one hold that begin at the same moment, one comes second (M-11).
            ApproveError::Storage(error) if is_paid_otherwise(&error) => {
                ApprovalRejection::InProgress.into()
            }
            error => error,
        })
    }
}

/// An order that its buyer has confirmed.
struct OrderToBegin {
    order: ApproveOrder,
    to: TransitionTo,
    context: CallContext,
    call_id: Uuid,
    declines_max: u32,
}

/// A payment that begins, or one that began before.
type Begun = Result<BeginResult, ApproveError>;

impl OrderToBegin {
    /// The key under which the order is approved once.
    fn command_key(&self) -> String {
        let approval = &self.order.approval;
        match &self.order.key {
            Some(key) => format!("{}:{}", approval.user_id, key.as_str()),
            None => approval.payment_key.clone(),
        }
    }

    fn decide(&self, claim: Option<KeyClaim>, payment: Option<Payment>) -> Begun {
        if claim == Some(KeyClaim::Reused) {
            return Err(ApproveError::KeyReused);
        }
        let payment = payment.ok_or(ApprovalRejection::NotFound)?;
        let approval = with_order_key(&self.order.approval, &payment);
        Ok(match decide_approval(&payment, &approval)? {
            ApprovalDecision::Begin => BeginResult::Now(payment),
            ApprovalDecision::Begun => BeginResult::Before(payment),
        })
    }

    fn check_history(&self, history: &PayableHistory) -> Result<(), ApproveError> {
        check_rival(history.rival)?;
        match history.declines >= self.declines_max {
            true => Err(ApprovalRejection::TooManyDeclines.into()),
            false => Ok(()),
        }
    }

    fn begin(&self, payment: Payment) -> Payment {
        let approval = with_order_key(&self.order.approval, &payment);
        payment.begun(&self.to, approval.payment_key, &self.context)
    }
}

impl Payment {
    /// The payment as it is when it has begun. From then on only the provider knows whether it was
    /// asked to charge.
    pub(super) fn begun(
        self,
        to: &TransitionTo,
        payment_key: String,
        context: &CallContext,
    ) -> Payment {
        let correlation_id = match self.cause_event_id {
            Some(_) => self.correlation_id,
            None => context.correlation_id,
        };
        Payment {
            status: to.status,
            step: to.step,
            attempts: 0,
            wait_code: None,
            failure_code: None,
            updated_at: to.now,
            payment_key: Some(payment_key),
            correlation_id,
            traceparent: Some(context.trace.to_string()),
            charge_sent_at: self.charge_sent_at.or(Some(to.now)),
            last_charge_at: Some(to.now),
            ..self
        }
    }
}

impl SetWrite for OrderToBegin {
    type Answer = BeginResult;
    type Error = ApproveError;

    fn subject(&self) -> Option<String> {
        Some(self.order.order_id.clone())
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Begun>> {
        let Some(now) = set.first().map(|one| one.to.now) else { return Ok(Vec::new()) };
        let mut decided = decide_all(tx, set, now)?;
        claim_keys(tx, set, &mut decided, now)?;
        let commands = beginning(set, &decided).map(|(one, _)| one);
        let commands: Vec<(&str, String)> =
            commands.map(|one| (one.order.order_id.as_str(), one.command_key())).collect();
        let commands: Vec<OrderCommand<'_>> =
            commands.iter().map(|(order_id, key)| (*order_id, key.as_str())).collect();
        let first = purchase_sets::commands_insert(tx, &commands, CommandAction::Approve, now)?;
        for (one, decided) in set.iter().zip(&mut decided) {
            if let Ok(BeginResult::Now(payment)) = decided {
                *decided = Ok(match first.contains(&one.order.order_id) {
                    true => BeginResult::Now(one.begin(payment.clone())),
                    false => BeginResult::Before(payment.clone()),
                });
            }
        }
        let begun: Vec<(&OrderToBegin, &Payment)> = beginning(set, &decided).collect();
        let moved: Vec<MovedPayment<'_>> =
            begun.iter().map(|(one, payment)| (*payment, one.to)).collect();
        purchase_sets::payments_begin(tx, &moved)?;
        let call = |(one, payment): &(&OrderToBegin, &Payment)| {
            ProviderCall::charge(one.call_id, payment.id)
        };
        let calls: Vec<ProviderCall> = begun.iter().map(call).collect();
        purchase_sets::provider_calls_insert(tx, &calls, now)?;
        Ok(decided)
    }
}

/// The members that begin now, with their payments.
fn beginning<'a>(
    set: &'a [&'a OrderToBegin],
    decided: &'a [Begun],
) -> impl Iterator<Item = (&'a OrderToBegin, &'a Payment)> {
    set.iter().zip(decided).filter_map(|(one, decided)| match decided {
        Ok(BeginResult::Now(payment)) => Some((*one, payment)),
        Ok(BeginResult::Before(_)) | Err(_) => None,
    })
}

/// Locks the payments and decides which of them may begin.
fn decide_all(tx: &mut Tx<'_>, set: &[&OrderToBegin], now: Timestamp) -> DbResult<Vec<Begun>> {
    let asked = set.iter().filter_map(|one| one.order.claim.as_ref());
    let mut claims = keys_find(tx, &asked.collect::<Vec<_>>(), now)?.into_iter();
    let order_ids: Vec<&str> = set.iter().map(|one| one.order.order_id.as_str()).collect();
    let mut payments = purchase_sets::payments_lock_by_order(tx, &order_ids)?;
    let decide = |one: &&OrderToBegin| {
        let claim = one.order.claim.as_ref().and_then(|_| claims.next());
        one.decide(claim, payments.remove(&one.order.order_id))
    };
    let mut decided: Vec<Begun> = set.iter().map(decide).collect();
    let starting: Vec<&Payment> = beginning(set, &decided).map(|(_, payment)| payment).collect();
    let histories = purchase_sets::payable_histories(tx, &starting, now - DECLINES_COUNTED)?;
    let mut histories = histories.into_iter();
    for (one, decided) in set.iter().zip(&mut decided) {
        if let Ok(BeginResult::Now(_)) = decided {
            let history = histories.next().expect("every payment has a history");
            if let Err(refused) = one.check_history(&history) {
                *decided = Err(refused);
            }
        }
    }
    Ok(decided)
}

/// Claims the keys of requests that are not refused.
fn claim_keys(
    tx: &mut Tx<'_>,
    set: &[&OrderToBegin],
    decided: &mut [Begun],
    now: Timestamp,
) -> DbResult<()> {
    let accepted = set.iter().zip(decided).filter(|(_, decided)| decided.is_ok());
    let (claims, decided): (Vec<&KeyedRequest>, Vec<&mut Begun>) =
        accepted.filter_map(|(one, decided)| Some((one.order.claim.as_ref()?, decided))).unzip();
    for (claim, decided) in keys_claim(tx, &claims, now)?.into_iter().zip(decided) {
        // Another request has taken the key meanwhile.
        if claim == KeyClaim::Reused {
            *decided = Err(ApproveError::KeyReused);
        }
    }
    Ok(())
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
