//! Internal calls: for each its path, its callers, its deadline, and the types of its body and
//! answer.
//!
//! A service mounts `CALL.path` behind `internal_routes(CALL.callers, …)`; a client in
//! [`crate::clients`] makes the call. Public operations are described by OpenAPI, not here.

pub mod auth;
pub mod catalog;
pub mod payment;
pub mod queue;
pub mod ticket;

use std::fmt::Display;
use std::time::Duration;

use urr_service::{CallPolicy, Caller};

/// Every internal call.
pub const CALLS: &[&InternalCall] = &[
    &auth::GET_USER,
    &auth::LIST_USERS,
    &auth::LIST_REVOKED_TOKENS,
    &catalog::GET_EVENT,
    &payment::AUDIT_LEDGER,
    &payment::AUDIT_PROVIDER,
    &payment::AUDIT_TICKETS,
    &queue::CHECK_SLOTS,
    &queue::FINISH_SLOT,
    &queue::LIST_ROOMS,
    &queue::GET_ROOM,
    &queue::CHANGE_ROOM,
    &queue::CLEAR_ROOM,
    &ticket::GET_PAYABLE,
    &ticket::VALIDATE_PAYABLE,
    &ticket::PIN_PAYABLE,
    &ticket::UNPIN_PAYABLE,
    &ticket::CONFIRM_PAYABLE,
    &ticket::MARK_PAYABLE_REFUNDED,
    &ticket::LIST_PAID_RESERVATIONS,
    &ticket::CANCEL_RESERVATION,
    &ticket::GET_RESERVATION_SUMMARY,
    &ticket::GET_SALES_HEALTH,
    &ticket::GET_TIER,
    &ticket::AWARD_POINTS,
    &ticket::RETURN_POINTS,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMethod {
    Get,
    Post,
}

/// A call between our own programs.
#[derive(Clone, Copy, Debug)]
pub struct InternalCall {
    /// The beginning of the names of its golden files.
    pub name: &'static str,
    pub method: CallMethod,
    /// The path as routers take it, for example `/internal/auth/users/{id}`.
    pub path: &'static str,
    /// Who may call; everybody else gets 403 `CALLER_NOT_ALLOWED`.
    pub callers: &'static [Caller],
    pub deadline: Duration,
    is_idempotent: bool,
}

impl InternalCall {
    const fn get(
        name: &'static str,
        path: &'static str,
        callers: &'static [Caller],
        deadline: Duration,
    ) -> InternalCall {
        let method = CallMethod::Get;
        InternalCall { name, method, path, callers, deadline, is_idempotent: true }
    }

    /// A call with a body that may be repeated without harm.
    const fn post(
        name: &'static str,
        path: &'static str,
        callers: &'static [Caller],
        deadline: Duration,
    ) -> InternalCall {
        let method = CallMethod::Post;
        InternalCall { name, method, path, callers, deadline, is_idempotent: true }
    }

    /// The same, but it is not repeated when it fails on the way.
    const fn once(self) -> InternalCall {
        InternalCall { is_idempotent: false, ..self }
    }

    /// The path with its parameters filled in, in their order.
    ///
    /// # Panics
    ///
    /// If there are not as many values as parameters.
    pub fn path_with(&self, values: &[&dyn Display]) -> String {
        let mut values = values.iter();
        let segments = self.path.split('/').map(|segment| match segment.starts_with('{') {
            true => values.next().expect("a value for each parameter").to_string(),
            false => segment.to_owned(),
        });
        let path = segments.collect::<Vec<String>>().join("/");
        assert!(values.next().is_none(), "{} has fewer parameters", self.path);
        path
    }

    pub fn policy(&self) -> CallPolicy {
        match self.is_idempotent {
            true => CallPolicy::idempotent(self.deadline),
            false => CallPolicy::once(self.deadline),
        }
    }
}
