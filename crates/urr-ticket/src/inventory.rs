//! Sales and their inventory: seats, ticket types, availability, and the projection of the catalog.

pub(crate) mod cache;
pub(crate) mod http;
pub(crate) mod projection;
pub(crate) mod rules;
pub mod store;
pub mod ticket_types;
