//! Orders that are paid as they are made: the order and the beginning of its payment are one
//! transaction.

use urr_kernel::{CallContext, Uuid};
use urr_storage::{DbResult, SetWrite, Tx};

use super::approve_order::ApproveError;
use super::create_order::{PreparedOrder, orders_find_known};
use super::record_charge::is_paid_otherwise;
use crate::PaymentService;
use crate::domain::payment::{ApprovalRejection, Payment, PaymentStatus, SagaStep};
use crate::store::provider_calls::ProviderCall;
use crate::store::purchase_sets::{self, BegunOrder, NewOrder};
use crate::store::transitions::TransitionTo;

impl PaymentService {
    /// Makes an order and pays it with the provider's key, in a task of its own. If its user has an
    /// order for the same purchase, that one is returned: it is pending, and nothing was done.
    pub async fn pay_new_order(
        &self,
        order: PreparedOrder,
        payment_key: String,
        context: CallContext,
    ) -> Result<Payment, ApproveError> {
        let (user_id, order_id) = (order.fresh.user_id, order.fresh.order_id.clone());
        let payments = self.clone();
        let pay = async move { payments.begin_and_run(order, payment_key, context).await };
        self.run_detached(user_id, &order_id, pay).await
    }

    async fn begin_and_run(
        &self,
        order: PreparedOrder,
        payment_key: String,
        context: CallContext,
    ) -> Result<Payment, ApproveError> {
        let _guard = self.lock_order(order.fresh.user_id, &order.fresh.order_id).await;
        let to = self.claimed_transition(PaymentStatus::Approving, Some(SagaStep::Pin));
        let begun = order.fresh.clone().begun(&to, payment_key, &context);
        let begin = OrderToPay { order, begun, to, call_id: self.0.ids.next_id() };
        match self.commit_in_set("prepared and begun", begin).await {
            Ok(payment) if payment.status == PaymentStatus::Pending => Ok(payment),
            Ok(payment) => Ok(self.run_begun(payment).await?),
            // Of two orders for one payable that begin at the same moment, one comes second (M-11).
            Err(ApproveError::Storage(error)) if is_paid_otherwise(&error) => {
                Err(ApprovalRejection::InProgress.into())
            }
            Err(error) => Err(error),
        }
    }
}

/// A new order whose payment begins.
struct OrderToPay {
    order: PreparedOrder,
    /// The payment as it is from now on.
    begun: Payment,
    to: TransitionTo,
    call_id: Uuid,
}

impl OrderToPay {
    fn approve_key(&self) -> String {
        let payment_key = self.begun.payment_key.as_deref();
        self.order.approve_key(payment_key.expect("a payment that has begun has a key"))
    }
}

impl SetWrite for OrderToPay {
    /// The payment that has begun, or the pending one of the same purchase.
    type Answer = Payment;
    type Error = ApproveError;

    fn subject(&self) -> Option<String> {
        self.order.subject()
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Result<Payment, ApproveError>>> {
        let Some(now) = set.first().map(|one| one.to.now) else { return Ok(Vec::new()) };
        let orders: Vec<&PreparedOrder> = set.iter().map(|one| &one.order).collect();
        let known = orders_find_known(tx, &orders)?;
        let new = set.iter().zip(&known).filter(|(_, known)| matches!(known, Ok(None)));
        let new: Vec<&OrderToPay> = new.map(|(one, _)| *one).collect();
        let order = |one: &&OrderToPay| NewOrder {
            payment: one.begun.clone(),
            key: one.order.create_key(),
            begun: Some(BegunOrder { to: one.to, key: one.approve_key() }),
        };
        purchase_sets::orders_insert(tx, &new.iter().map(order).collect::<Vec<_>>())?;
        let call = |one: &&OrderToPay| ProviderCall::charge(one.call_id, one.begun.id);
        purchase_sets::provider_calls_insert(tx, &new.iter().map(call).collect::<Vec<_>>(), now)?;
        let result = |(one, known): (&&OrderToPay, Result<Option<Payment>, ApprovalRejection>)| {
            Ok(known?.unwrap_or_else(|| one.begun.clone()))
        };
        Ok(set.iter().zip(known).map(result).collect())
    }
}
