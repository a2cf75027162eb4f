//! Views of payments and refunds.

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::Pagination;
use utoipa::ToSchema;

use crate::domain::payment::{Payment, PaymentStatus, SagaStep};
use crate::domain::refund::Refund;

/// A payment, as its buyer sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaymentView {
    id: Uuid,
    #[schema(example = "ORD_1796126400000_9F3C2A7B")]
    order_id: String,
    order_name: String,
    payment_key: Option<String>,
    #[schema(value_type = i64)]
    amount: Won,
    #[schema(example = "KRW")]
    currency: String,
    method: Option<String>,
    /// `pending`, `approving`, `confirmed`, `failed`, `unknown`, `refunding` or `refunded`.
    status: &'static str,
    /// Whether nothing more happens by itself. If not, get it again in a moment.
    is_settled: bool,
    /// Why it failed or is refunded.
    failure_code: Option<String>,
    approved_at: Option<Timestamp>,
    receipt_url: Option<String>,
    #[schema(value_type = i64)]
    refunded_amount: Won,
    /// `reservation`, `transfer` or `membership`.
    payment_type: &'static str,
    reference_id: Uuid,
    reservation_id: Option<Uuid>,
    event_id: Option<Uuid>,
    provider: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl PaymentView {
    pub fn new(payment: &Payment) -> PaymentView {
        PaymentView {
            id: payment.id.0,
            order_id: payment.order_id.clone(),
            order_name: payment.order_name.clone(),
            payment_key: payment.payment_key.clone(),
            amount: payment.amount,
            currency: payment.currency.clone(),
            method: payment.method.clone(),
            status: payment.status.as_str(),
            is_settled: payment.is_settled(),
            failure_code: payment.failure_code.clone().filter(|_| has_failed(payment)),
            approved_at: payment.approved_at,
            receipt_url: payment.receipt_url.clone(),
            refunded_amount: payment.refunded,
            payment_type: payment.payable.kind.as_str(),
            reference_id: payment.payable.id,
            reservation_id: payment.reservation(),
            event_id: payment.event_id,
            provider: payment.provider.clone(),
            created_at: payment.created_at,
            updated_at: payment.updated_at,
        }
    }
}

/// While the outcome is open, nothing has failed.
fn has_failed(payment: &Payment) -> bool {
    matches!(
        payment.status,
        PaymentStatus::Failed | PaymentStatus::Refunding | PaymentStatus::Refunded
    )
}

#[derive(Serialize, ToSchema)]
pub struct PaymentAnswerView {
    pub payment: PaymentView,
}

#[derive(Serialize, ToSchema)]
pub struct PaymentListView {
    pub payments: Vec<PaymentView>,
    pub pagination: Pagination,
}

/// A refund of a payment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundView {
    id: Uuid,
    /// For example `cancelled`, `not_confirmable`, `duplicate` or `goodwill`.
    cause: &'static str,
    #[schema(value_type = i64)]
    amount: Won,
    /// The cancellation fee.
    #[schema(value_type = i64)]
    fee: Won,
    reason: String,
    requested_by: Option<Uuid>,
    /// `requested`, `unknown`, `done`, `closed` (paid by other means) or `withdrawn`.
    status: &'static str,
    /// How often the provider has declined.
    declines: u32,
    created_at: Timestamp,
    done_at: Option<Timestamp>,
}

impl RefundView {
    fn new(refund: &Refund) -> RefundView {
        RefundView {
            id: refund.id.0,
            cause: refund.origin.cause().as_str(),
            amount: refund.amount,
            fee: refund.fee,
            reason: refund.reason.clone(),
            requested_by: refund.requested_by,
            status: refund.status.as_str(),
            declines: refund.declines,
            created_at: refund.created_at,
            done_at: refund.done_at,
        }
    }
}

/// A payment, as an administrator sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminPaymentView {
    #[serde(flatten)]
    payment: PaymentView,
    user_id: Uuid,
    /// The next step of the saga.
    step: Option<&'static str>,
    /// What the provider charged.
    #[schema(value_type = i64)]
    charged_amount: Won,
    /// The code of the last attempt that had no result.
    wait_code: Option<String>,
    /// Why the buyer cancelled, in their own words.
    cancel_reason: Option<String>,
}

impl AdminPaymentView {
    pub fn new(payment: &Payment) -> AdminPaymentView {
        AdminPaymentView {
            payment: PaymentView::new(payment),
            user_id: payment.user_id,
            step: payment.step.map(SagaStep::as_str),
            charged_amount: payment.charged,
            wait_code: payment.wait_code.clone(),
            cancel_reason: payment.cancel_reason.clone(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AdminPaymentAnswerView {
    pub payment: AdminPaymentView,
    pub refunds: Vec<RefundView>,
}

impl AdminPaymentAnswerView {
    pub fn new(payment: &Payment, refunds: &[Refund]) -> AdminPaymentAnswerView {
        AdminPaymentAnswerView {
            payment: AdminPaymentView::new(payment),
            refunds: refunds.iter().map(RefundView::new).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct AdminPaymentListView {
    pub payments: Vec<AdminPaymentView>,
    pub pagination: Pagination,
}
