//! Internal calls: for each a type with what is asked for, its answer, its path, its callers and
//! its deadline.
//!
//! A service answers them with [`urr_service::InternalCalls`]; a [`crate::clients::ServiceClient`]
//! makes them. Public operations are described by OpenAPI, not here.

/// Declares the calls to a service in a table: type, answer, kind, path, callers, deadline.
macro_rules! internal_calls {
    (
        $(#[$meta:meta])*
        pub enum $service:ident {
            $($call:ident -> $answer:ty: $kind:ident $path:literal, $callers:expr, $deadline:expr;)*
        }
    ) => {
        $(#[$meta])*
        pub enum $service {}

        pub const CALLS: &[urr_service::CallSpec] = &[
            $(<$call as urr_service::InternalCall>::SPEC),*
        ];

        $(impl urr_service::InternalCall for $call {
            type Service = $service;
            type Answer = $answer;
            const SPEC: urr_service::CallSpec = urr_service::CallSpec {
                name: stringify!($call),
                kind: urr_service::CallKind::$kind,
                path: $path,
                callers: $callers,
                deadline: $deadline,
            };
        })*
    };
}

pub mod auth;
pub mod catalog;
pub mod community;
pub mod mail;
pub mod payment;
pub mod problems;
pub mod queue;
pub mod stats;
pub mod ticket;

use urr_service::CallSpec;

/// Every internal call.
pub fn calls() -> impl Iterator<Item = &'static CallSpec> {
    let all = [
        auth::CALLS,
        catalog::CALLS,
        community::CALLS,
        mail::CALLS,
        payment::CALLS,
        queue::CALLS,
        stats::CALLS,
        ticket::CALLS,
    ];
    all.into_iter().flatten()
}
