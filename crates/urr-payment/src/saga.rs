//! The two sagas of a payment: the purchase and the refund.
//!
//! A payment's row names its next step. A step is one outside call, then one transaction with
//! everything that follows from the answer. Nothing is kept in memory between two steps, so any
//! process can resume where another has stopped.

mod approve_order;
mod box_office;
mod close_refund;
mod create_order;
mod pay_new_order;
mod purchase_steps;
mod record_charge;
mod refund_steps;
mod request_refund;
mod runner;
mod start_refund;

pub use approve_order::{ApproveError, ApproveOrder};
pub(crate) use box_office::{record_sale, refund_handed_over};
pub use close_refund::{CloseError, CloseRefundRequest, RefundClosure};
pub use create_order::{
    CommandContext, CreateError, CreateOrder, CreateResult, OrderRequest, PrepareError,
};
pub(crate) use purchase_steps::TICKETS_UNAVAILABLE;
pub use request_refund::{AdminRefundRequest, OwnerCancelRequest, RefundError};
pub(crate) use start_refund::{CancelledPurchase, RefundRejection, start_cancelled_refund};
