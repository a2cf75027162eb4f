//! Services over HTTP: what they refuse, whom they believe, how they call each other and how they
//! end. Whatever can be called in two ways, inside the process and over the network, is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "service/errors.rs"]
mod errors;
#[path = "service/serving.rs"]
mod serving;
#[path = "service/shop.rs"]
mod shop;
#[path = "service/trust.rs"]
mod trust;
#[path = "service/upstream.rs"]
mod upstream;
