//! The two sagas: a purchase, and the return of money.
//!
//! A payment's row says what is to be done next. Whoever drives it takes one step after the other:
//! a call, then one transaction with everything that follows from the answer. Nothing is kept in
//! memory between two steps, so any process can go on where another has stopped.

mod approve_order;
mod close_refund;
mod create_order;
mod purchase_steps;
mod record_charge;
mod refund_steps;
mod request_refund;
mod runner;
mod start_refund;

pub use approve_order::{ApproveError, ApproveOrder};
pub use close_refund::{CloseError, CloseRefundRequest, RefundClosure};
pub use create_order::{
    CommandContext, CreateError, CreateOrder, CreateResult, OrderRequest, PrepareError,
};
pub use request_refund::{AdminRefundRequest, OwnerCancelRequest, RefundError};
pub(crate) use start_refund::{CancelledPurchase, RefundRejection, start_cancelled_refund};
