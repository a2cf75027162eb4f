//! A return that the provider does not make: somebody settles it otherwise.

use urr_kernel::Uuid;
use urr_service::admin_audit::{self, AdminAction};
use urr_storage::StorageError;

use super::refund_steps::{advance_after_refund, append_refund_event};
use crate::PaymentService;
use crate::domain::ledger::Posting;
use crate::domain::payment::{Payment, PaymentId, PaymentStatus, SagaStep};
use crate::domain::refund::{Refund, RefundId, RefundStatus};
use crate::store::ledger::{self, EntryOf};
use crate::store::{payments, refunds};

/// How a return ends that the provider does not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundClosure {
    /// The buyer has the money, by other means.
    PaidOtherwise,
    /// It is not given after all. Only what nobody was entitled to can be withdrawn.
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

/// What an administrator has done about a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseRefundRequest {
    pub admin_id: Uuid,
    pub refund_id: RefundId,
    pub closing: RefundClosure,
    pub reason: String,
}

/// Why a return stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    #[error("there is no such refund")]
    NotFound,
    /// It would be given twice.
    #[error("nobody knows whether the provider has given it back")]
    Unclear,
    #[error("the provider has not refused it")]
    NotDeclined,
    #[error("it has come to another end")]
    Over,
    #[error("somebody is entitled to it")]
    Owed,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Whether a return may be closed. False: it is.
fn decide_closing(refund: &Refund, closing: RefundClosure) -> Result<bool, CloseError> {
    if closing == RefundClosure::Withdrawn && !refund.cause.is_goodwill() {
        return Err(CloseError::Owed);
    }
    match refund.status {
        status if status == closing.status() => Ok(false),
        RefundStatus::Requested if refund.declines > 0 => Ok(true),
        RefundStatus::Requested => Err(CloseError::NotDeclined),
        RefundStatus::Unknown => Err(CloseError::Unclear),
        RefundStatus::Done | RefundStatus::Closed | RefundStatus::Withdrawn => {
            Err(CloseError::Over)
        }
    }
}

impl PaymentService {
    /// Settles a return that the provider has declined, with what that means for the books.
    pub async fn close_refund(
        &self,
        id: PaymentId,
        close: CloseRefundRequest,
    ) -> Result<Payment, CloseError> {
        let (entry_id, action_id, now) =
            (self.0.ids.next_id(), self.0.ids.next_id(), self.0.clock.now());
        let found: Result<Vec<Refund>, StorageError> =
            self.0.db.read(move |tx| refunds::refund_list(tx, id)).await;
        let of_it = found?.into_iter().find(|refund| refund.id == close.refund_id);
        let stamp = self.refund_stamp(&of_it.ok_or(CloseError::NotFound)?);
        let to = self.claimed_transition(PaymentStatus::Refunding, Some(SagaStep::Refund));
        let to = payments::TransitionTo { claimed_until: None, ..to };
        self.commit("refund closed", move |tx| {
            let payment = payments::payment_lock(tx, id)?.ok_or(CloseError::NotFound)?;
            let refunds = refunds::refund_list(tx, id)?;
            let refund = refunds.into_iter().find(|refund| refund.id == close.refund_id);
            let refund = refund.ok_or(CloseError::NotFound)?;
            if !decide_closing(&refund, close.closing)? {
                return Ok(payment);
            }
            refunds::refund_close(tx, refund.id, close.closing.status(), now)?;
            let posting = match close.closing {
                RefundClosure::PaidOtherwise => Posting::close(refund.amount),
                RefundClosure::Withdrawn => {
                    Posting::withdraw(&ledger::refund_lines(tx, refund.id)?)
                }
            };
            let refund_id = Some(refund.id);
            let of = EntryOf { id: entry_id, payment_id: id, refund_id, now };
            ledger::entry_insert(tx, of, &posting)?;
            if close.closing == RefundClosure::PaidOtherwise {
                append_refund_event(tx, &refund, &stamp, now)?;
            }
            admin_audit::action_insert(
                tx,
                &AdminAction {
                    id: action_id,
                    admin_id: close.admin_id,
                    action: close.closing.action(),
                    resource_type: "refund",
                    resource_id: refund.id.0,
                    summary: format!("{}: {}", refund.amount, close.reason),
                    now,
                },
            )?;
            advance_after_refund(tx, &payment, to)?;
            let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
            Ok::<_, CloseError>(payment)
        })
        .await
    }
}
