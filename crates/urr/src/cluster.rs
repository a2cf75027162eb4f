//! A cluster on this machine: private servers, and several processes of each role behind balancers.
//!
//! One process, the supervisor, starts everything and starts again what ends by itself. Nothing
//! outlives it: the kernel ends its children when it dies. Commands talk to it by a socket in the
//! folder of the cluster.

mod control;
mod member;
mod settings;
mod state;
mod supervisor;

pub use control::{Control, ControlAction, ControlAnswer};
pub use state::{ClusterFolder, ClusterOptions};
pub use supervisor::{RunningCluster, Supervisor};
