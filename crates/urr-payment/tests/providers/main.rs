//! The providers: the sandbox on both databases, Toss and PortOne against servers that speak their
//! protocols and fail in every way that matters.
#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in the functions it shares with others"
)]

#[macro_use]
mod fixture;

mod breaker;
mod charges;
mod fake_portone;
mod fake_provider;
mod fake_toss;
mod portone;
mod refunds;
mod sandbox;
mod toss;
mod webhooks;
