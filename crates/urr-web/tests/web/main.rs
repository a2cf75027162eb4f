//! The pages over HTTP, with a small site and an API that answers what a test needs.

mod fixture;
mod queue;
mod sandbox;
mod site;
