//! What can go wrong in storage, told apart by what the caller can do about it.

use std::fmt;

/// The result of a statement, or of a transaction that nothing but the storage can refuse.
pub type DbResult<T> = Result<T, StorageError>;

/// A failure of the storage. Cloneable, because one failed commit is many callers' answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// A named guard of the schema refused the change. Callers map the name to a rejection.
    #[error("{kind} constraint {name:?} refused the change")]
    Constraint { kind: ConstraintKind, name: String },
    /// The queue in front of the database is full. Nothing was done.
    #[error("the database has too much work queued; try again shortly")]
    Overloaded,
    /// The closure ran longer than it may. It was rolled back.
    #[error("the database work took longer than it may and was undone")]
    Timeout,
    /// Deadlocks or serialisation failures, again after every retry. It was rolled back.
    #[error("the change kept colliding with others and was undone")]
    Contention,
    /// The database cannot be reached, or said that it cannot work now. Nothing was done.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// No space is left for the database. Nothing was done.
    #[error("no space is left on the disk of the database")]
    DiskFull,
    /// The connection broke while the commit was under way: it may or may not have happened.
    #[error("the connection broke during the commit; the outcome is unknown: {0}")]
    OutcomeUnknown(String),
    /// The storage was closed, as it is at shutdown. Nothing was done.
    #[error("the storage is closed")]
    Closed,
    /// The closure panicked. It was rolled back.
    #[error("a database operation panicked: {0}")]
    Panicked(String),
    /// The closure went on after a failed statement. It was rolled back, on both engines alike.
    #[error("a statement of this transaction had failed; the transaction was undone")]
    Aborted,
    /// A column did not hold what the caller asked for: a bug of ours.
    #[error("column {column}: {reason}")]
    Decode { column: String, reason: String },
    /// The database refused the statement: a bug of ours.
    #[error("{message} (in {sql:?})")]
    Statement { message: String, sql: String },
    /// The database is set up in a way that loses data. We do not start on it.
    #[error("{0}")]
    Unsafe(String),
}

/// Which sort of guard a constraint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstraintKind {
    Unique,
    Check,
    /// The name is always `foreign key`: SQLite does not tell which one.
    ForeignKey,
    /// The name is `table.column`.
    NotNull,
}

impl fmt::Display for ConstraintKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConstraintKind::Unique => "unique",
            ConstraintKind::Check => "check",
            ConstraintKind::ForeignKey => "foreign key",
            ConstraintKind::NotNull => "not-null",
        })
    }
}

impl StorageError {
    /// Whether the same operation may succeed later without anyone changing anything.
    ///
    /// `OutcomeUnknown` is not among them: only the caller knows how to ask whether it happened.
    pub fn is_retryable(&self) -> bool {
        use StorageError::{Contention, DiskFull, Overloaded, Timeout, Unavailable};
        matches!(self, Overloaded | Timeout | Contention | Unavailable(_) | DiskFull)
    }

    /// Whether the name of the violated constraint is `name`.
    pub fn violates(&self, name: &str) -> bool {
        matches!(self, StorageError::Constraint { name: violated, .. } if violated == name)
    }
}
