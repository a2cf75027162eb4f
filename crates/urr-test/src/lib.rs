//! What tests need: the whole system in process, and private copies of the real servers.

#[cfg(feature = "app")]
pub mod app;
pub mod engines;
mod eventually;
pub mod owners;
pub mod servers;
pub mod snapshot;

#[cfg(feature = "app")]
pub use app::{Answer, TestApp};
pub use eventually::eventually;
