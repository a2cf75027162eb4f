//! Reservations after they were made: payment, cancellation, expiry, refunds, lists, history.

pub(crate) mod buyers;
pub(crate) mod cancel;
pub(crate) mod cancel_tickets;
pub(crate) mod details;
pub(crate) mod expiry;
pub(crate) mod export;
pub(crate) mod extend;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod hold_steps;
pub(crate) mod http;
pub(crate) mod model;
pub(crate) mod payment;
pub(crate) mod refund;
pub(crate) mod reschedule;
pub(crate) mod resend;
pub(crate) mod rules;
pub(crate) mod search;
pub mod store;
pub(crate) mod transition;
