//! The contract of the ticket service: the same cases on SQLite and on PostgreSQL.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod audit;
mod best_seats;
mod cancel;
mod cancel_tickets;
mod change_seats;
mod check_in;
mod closed_sales;
mod confirm;
mod contention;
mod etickets;
mod event_access;
mod expiry;
mod figures;
mod fixture;
mod gateway;
mod holdings;
mod memberships;
mod model;
mod moved_events;
mod my_reservations;
mod operations;
mod payables;
mod persons;
mod points;
mod presale;
mod projection;
mod reader;
mod refunds;
mod reservation_summary;
mod reserve;
mod sale_creation;
mod sales_health;
mod seat_map;
mod settled_points;
mod slots;
mod stalls;
mod standing;
mod statements;
mod ticket_types;
mod transfers;
mod waiting_requests;
