//! What every crate's tests share: a database on either engine, private copies of the real servers,
//! files that must stay fresh. It does not depend on the program; `urr-e2e` tests that.

pub mod consistency;
pub mod engines;
mod eventually;
pub mod figures;
pub mod sales_history;
pub mod snapshot;

pub use eventually::eventually;
pub use urr_cluster::servers;
