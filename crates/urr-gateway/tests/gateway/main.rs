//! The gateway as its clients see it, in front of services that record what reaches them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access_tokens;
mod browsers;
mod compression;
mod endless_bodies;
mod entry_tokens;
mod forged_tokens;
mod forwarding;
mod harness;
mod metrics;
mod overload;
mod paths;
mod policies;
mod rate_limiter;
mod rates_and_sizes;
mod revocation_feed;
mod smuggling;
mod stream_end;
mod verified_email;
