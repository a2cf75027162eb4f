//! Services over HTTP: what they refuse, whom they believe, how they call each other and how they
//! end. Whatever can be called in two ways, inside the process and over the network, is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "service/balancing.rs"]
mod balancing;
#[path = "service/errors.rs"]
mod errors;
#[path = "service/fixture.rs"]
mod fixture;
#[path = "service/identity.rs"]
mod identity;
#[path = "service/server.rs"]
mod server;
#[path = "service/tls.rs"]
mod tls;
#[path = "service/upstream.rs"]
mod upstream;
#[path = "service/whole_audit.rs"]
mod whole_audit;
