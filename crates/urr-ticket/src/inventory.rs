//! What is sold: sales, their inventory, ticket types, and how they follow the catalogue.

pub(crate) mod cache;
pub(crate) mod http;
pub(crate) mod projection;
pub(crate) mod rules;
pub mod store;
pub mod ticket_types;
