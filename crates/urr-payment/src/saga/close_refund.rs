//! Closes a refund that the provider has declined.

use urr_kernel::Uuid;
use urr_service::admin_log::{self, AdminAction};
use urr_storage::StorageError;

use super::refund_steps::{advance_after_refund, append_refund_event};
use crate::PaymentService;
use crate::domain::ledger::Posting;
use crate::domain::payment::{PaymentId, PaymentStatus, SagaStep};
use crate::domain::refund::{Refund, RefundId, RefundStatus};
use crate::store::ledger::{self, EntryOf};
use crate::store::transitions::TransitionTo;
use crate::store::{payments, refunds};

/// How a refund ends that the provider does not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundClosure {
    /// The buyer got the money by other means.
    PaidOtherwise,
    /// The refund is withdrawn, which is possible only if nobody is entitled to it.
    Withdrawn,
}

impl RefundClosure {
    fn status(self) -> RefundStatus {
        match self {
            RefundClosure::PaidOtherwise => RefundStatus::Closed,
            RefundClosure::Withdrawn => RefundStatus::Withdrawn,
        }
    }

    fn action(self) -> &'static str {
        match self {
            RefundClosure::PaidOtherwise => "REFUND_PAID_OTHERWISE",
            RefundClosure::Withdrawn => "REFUND_WITHDRAWN",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseRefundRequest {
    pub admin_id: Uuid,
    pub refund_id: RefundId,
    pub closure: RefundClosure,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    #[error("there is no such refund")]
    NotFound,
    /// The buyer might get the money twice.
    #[error("it is not known whether the provider has refunded")]
    Unclear,
    #[error("the provider has not declined it")]
    NotDeclined,
    #[error("the refund has ended in another way")]
    Over,
    #[error("the buyer is entitled to it")]
    Owed,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Whether a refund is to be closed; false if it is already.
fn decide_closure(refund: &Refund, closure: RefundClosure) -> Result<bool, CloseError> {
    if closure == RefundClosure::Withdrawn && !refund.origin.is_goodwill() {
        return Err(CloseError::Owed);
    }
    match refund.status {
        status if status == closure.status() => Ok(false),
        RefundStatus::Requested if refund.declines > 0 => Ok(true),
        RefundStatus::Requested => Err(CloseError::NotDeclined),
        RefundStatus::Unknown => Err(CloseError::Unclear),
        RefundStatus::Done | RefundStatus::Closed | RefundStatus::Withdrawn => {
            Err(CloseError::Over)
        }
    }
}

impl PaymentService {
    /// Closes a declined refund, with its ledger entry.
    pub async fn close_refund(
        &self,
        id: PaymentId,
        request: CloseRefundRequest,
    ) -> Result<(), CloseError> {
        let [entry_id, action_id] = [(); 2].map(|()| self.0.ids.next_id());
        let (now, refund_id) = (self.0.clock.now(), request.refund_id);
        let found = self.list_refunds(id).await?.into_iter().find(|refund| refund.id == refund_id);
        let stamp = self.refund_stamp(&found.ok_or(CloseError::NotFound)?);
        let to = self.claimed_transition(PaymentStatus::Refunding, Some(SagaStep::Refund));
        let to = TransitionTo { claimed_until: None, ..to };
        self.commit("refund closed", move |tx| {
            let payment = payments::payment_lock(tx, id)?.ok_or(CloseError::NotFound)?;
            let mut refunds = refunds::refund_list(tx, id)?.into_iter();
            let refund = refunds.find(|refund| refund.id == refund_id);
            let refund = refund.ok_or(CloseError::NotFound)?;
            if !decide_closure(&refund, request.closure)? {
                return Ok(());
            }
            refunds::refund_close(tx, refund.id, request.closure.status(), now)?;
            let posting = match request.closure {
                RefundClosure::PaidOtherwise => Posting::close(refund.amount),
                RefundClosure::Withdrawn => {
                    Posting::withdraw(&ledger::refund_lines(tx, refund.id)?)
                }
            };
            let of = EntryOf { now, ..EntryOf::refund(entry_id, &refund) };
            ledger::entry_insert(tx, of, &posting)?;
            if request.closure == RefundClosure::PaidOtherwise {
                append_refund_event(tx, &refund, &stamp, now)?;
            }
            let action = AdminAction {
                id: action_id,
                admin_id: Some(request.admin_id),
                action: request.closure.action().into(),
                resource_type: "refund".into(),
                resource_id: refund.id.to_string(),
                summary: format!("{}: {}", refund.amount, request.reason),
                details: None,
                created_at: now,
            };
            admin_log::insert(tx, &action)?;
            Ok::<_, CloseError>(advance_after_refund(tx, &payment, to)?)
        })
        .await
    }
}
