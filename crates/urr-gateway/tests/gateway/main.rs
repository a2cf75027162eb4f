//! The gateway as its clients see it, before services that only note what reaches them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod browsers;
mod compression;
mod entry;
mod figures;
mod forge;
mod house;
mod limits;
mod overload;
mod paths;
mod policies;
mod proxying;
mod revoking;
mod smuggling;
mod tokens;
