//! The contract of the payment service: the same cases on SQLite and on PostgreSQL, with the
//! sandbox's durable books and a ticket service that fails when it is told to.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod api_client;
mod attacks;
mod audit;
mod books;
mod box_office;
mod checkout;
mod concurrency;
mod crash_matrix;
mod create_order;
mod declined_refunds;
mod declines;
mod fake_ticket_service;
mod fixture;
mod http;
mod ledger;
mod memberships_and_transfers;
mod organisers;
mod periodic_audit;
mod provider_away;
mod provider_reconciliation;
mod purchase;
mod refunds;
mod repeated_requests;
mod resolver;
mod settlement;
mod test_channel;
mod unknown_outcomes;
mod webhooks;

#[path = "../providers/fake_portone.rs"]
mod fake_portone;
#[path = "../providers/fake_provider.rs"]
#[expect(dead_code, reason = "the providers' own tests use all of it")]
mod fake_provider;
#[path = "../providers/fake_toss.rs"]
mod fake_toss;
