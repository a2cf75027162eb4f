//! The `urr` program: command line, configuration, composition.
//!
//! Everything is a library so that tests can run the whole system in their own process; `main.rs`
//! only hands over the command line.

mod backup;
mod call_graph;
mod cluster;
pub mod command;
pub mod compose;
pub mod config;
mod data_folder;
mod engines;
mod hops;
mod internal_router;
mod logging;
pub mod openapi;
mod own_authority;
mod own_secrets;
pub mod role;
mod supervisor;
mod text_table;
mod traces;

use mimalloc::MiMalloc;

pub use data_folder::{DataFolder, FolderError};
pub use engines::migrate_storage;

/// Of everything that links this crate, so that tests and benchmarks allocate as the program does.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
