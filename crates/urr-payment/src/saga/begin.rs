//! The buyer has agreed: the saga begins.

use urr_kernel::{CallContext, IdempotencyKey};
use urr_storage::{StorageError, Tx};

use crate::Payments;
use crate::domain::payment::{
    Approval, Approving, NotApproved, Payment, Status, Step, decide_approval,
};
use crate::store::payments::{self, Action, From};

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
    Refused(#[from] NotApproved),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

enum Begun {
    Now(Payment),
    Before(Payment),
}

impl Payments {
    /// Pays an order, and answers how far that came. Whoever asks again for the same waits for the
    /// same; in another process they are told how far it is.
    ///
    /// It goes on to its end only if nobody drops it: [`Payments::approve_detached`] sees to that.
    pub async fn approve(
        &self,
        order: ApproveOrder,
        context: &CallContext,
    ) -> Result<Payment, ApproveError> {
        let _turn = self.0.turns.wait(&order.order_id).await;
        match self.begin(order, context).await? {
            Begun::Now(payment) => Ok(self.drive(payment).await?),
            Begun::Before(payment) => Ok(payment),
        }
    }

    /// The same in a task of its own: a buyer who goes away stops nothing.
    pub async fn approve_detached(
        &self,
        order: ApproveOrder,
        context: CallContext,
    ) -> Result<Payment, ApproveError> {
        let (payments, order_id) = (self.clone(), order.order_id.clone());
        let task = tokio::spawn(async move { payments.approve(order, &context).await });
        match tokio::time::timeout(self.0.settings.answer_within, task).await {
            Ok(Ok(payment)) => payment,
            Ok(Err(panicked)) => {
                let panicked = StorageError::Panicked(panicked.to_string());
                Err(ApproveError::Storage(panicked))
            }
            Err(_) => {
                let find = move |tx: &mut Tx<'_>| payments::payment_of_order(tx, &order_id);
                let payment: Result<Option<Payment>, StorageError> = self.0.db.read(find).await;
                Ok(payment?.ok_or(NotApproved::NotFound)?)
            }
        }
    }

    async fn begin(
        &self,
        order: ApproveOrder,
        context: &CallContext,
    ) -> Result<Begun, ApproveError> {
        let (to, now) = (self.claimed(Status::Approving, Some(Step::Pin)), self.0.clock.now());
        let correlation_id = context.correlation_id;
        let ApproveOrder { order_id, approval, key } = order;
        let key = match key {
            Some(key) => format!("{}:{}", approval.user_id, key.as_str()),
            None => approval.payment_key.clone(),
        };
        let begun = self.0.db.write(move |tx| {
            let payment = payments::payment_of_order_lock(tx, &order_id)?;
            let payment = payment.ok_or(NotApproved::NotFound)?;
            if decide_approval(&payment, &approval)? == Approving::Begun {
                return Ok(Begun::Before(payment));
            }
            match payments::payment_rival(tx, &payment)? {
                None => {}
                Some(Status::Confirmed) => return Err(NotApproved::AlreadyPaid.into()),
                Some(_) => return Err(NotApproved::InProgress.into()),
            }
            if !payments::command_insert(tx, &order_id, Action::Approve, &key, now)? {
                return Ok(Begun::Before(payment));
            }
            payments::payment_move(tx, From::of(&payment), to)?;
            payments::approval_set(tx, payment.id, &approval.payment_key, correlation_id)?;
            let payment = payments::payment_find(tx, payment.id)?;
            Ok::<_, ApproveError>(Begun::Now(payment.expect("payments are never deleted")))
        });
        let begun = self.0.faults.around("begun", begun).await;
        begun.map_err(|error| match error {
            // Of two orders for one hold, begun at the same moment, one comes second (M-11).
            ApproveError::Storage(error) if error.violates("payments_one_charge") => {
                NotApproved::InProgress.into()
            }
            error => error,
        })
    }
}
