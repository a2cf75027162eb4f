//! The two sagas: a purchase, and the return of money.
//!
//! A payment's row says what is to be done next. Whoever drives it takes one step after the other:
//! a call, then one transaction with everything that follows from the answer. Nothing is kept in
//! memory between two steps, so any process can go on where another has stopped.

mod asking;
mod begin;
mod close;
mod drive;
mod prepare;
mod purchase;
mod refund;
mod request;
mod settle;

pub use asking::{AdminRefund, OwnerCancel, RefundError};
pub use begin::{ApproveError, ApproveOrder};
pub use close::{CloseError, CloseRefund, Closing};
pub use prepare::{CreateError, CreateOrder, Created, MessageContext, OrderRequest, PrepareError};
pub(crate) use request::{NotRefundable, Undone, undone_request};
