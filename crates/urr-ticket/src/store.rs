//! The SQL of the ticket office: small functions that take a transaction.

pub mod audit;
pub mod changes;
pub mod check_in;
mod chunks;
pub mod confirmation;
pub mod items;
pub mod listing;
pub mod map;
pub mod memberships;
pub mod news;
pub mod overdue;
pub mod points;
pub mod pulse;
pub mod reserve;
mod reserve_postgres;
pub mod sales;
pub mod stock;
pub mod tiers;
pub mod transfers;
pub mod transitions;
