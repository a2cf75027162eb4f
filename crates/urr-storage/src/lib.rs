//! Storage: one SQL text, two engines.
//!
//! A service talks to its own tables through [`Db`]. A transaction is a synchronous closure that is
//! given to the storage and awaited: `db.write(|tx| …).await`. It never sees a network, a clock or
//! another await; it is handed the time and the ids it needs. It may run more than once (after a
//! deadlock, a serialisation failure, or when a neighbour in its commit group broke the
//! transaction), so it must not have effects outside `tx`.
//!
//! SQL is written once, in PostgreSQL's words; [`dialect`] translates the few that SQLite lacks.
//!
//! Invariants:
//! - A reply is sent after the commit, never before. What was acknowledged survives `kill -9`.
//! - A closure that fails, panics or runs out of time leaves no trace and does not disturb others.
//! - A full queue is refused at once with [`StorageError::Overloaded`].
//!
//! Deliberately absent: a trait for the database, nested transactions, and any way to begin or
//! commit by hand.

mod batches;
mod db;
pub mod dialect;
mod engine;
mod error;
pub mod inbox;
mod job;
pub mod migrate;
pub mod outbox;
mod postgres;
mod row;
mod row_difference;
mod sets;
mod sqlite;
#[cfg(feature = "simulation")]
mod stepped;
pub mod transfer;
mod tx;
mod typed_columns;
mod value;

pub use batches::BatchKey;
pub use db::{Db, DbStats, PostgresOptions, SqliteOptions};
pub use error::{ConstraintKind, DbResult, StorageError};
pub use migrate::{Migration, Schema};
pub use postgres::{
    PostgresProtection, ServiceRole, postgres_protection, provision, reach_postgres,
};
pub use row::{FromColumn, Row};
pub use row_difference::RowDifference;
pub use sets::{SetRead, SetWrite};
pub use sqlite::{SqliteCut, check_sqlite};
#[cfg(feature = "simulation")]
pub use stepped::{PendingStep, StepFault, StepQueue, StepReport, SteppedDatabase};
pub use tx::Tx;
pub use value::{TIME_MAX, TIME_MIN, ToValue, Value, storable_time};
