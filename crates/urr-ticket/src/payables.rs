//! What payments call: reservations, transfers and memberships as things that can be paid.

pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod membership_events;
pub(crate) mod membership_http;
pub(crate) mod transfer_events;
pub(crate) mod transfer_http;
