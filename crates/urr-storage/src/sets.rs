//! Sets: writes of one kind that are done by the same statements.
//!
//! On PostgreSQL a statement costs a round trip, so writes of a batch that can be done by one
//! statement for all of them are a set. If a set fails, it is undone and each member is tried alone.
//! On SQLite, where a statement costs no round trip, every set has one member.

use crate::{DbResult, StorageError, Tx};

/// A write that can be done for many at once.
pub trait SetWrite: Sized + Send + 'static {
    type Answer: Send + 'static;
    type Error: From<StorageError> + Send + 'static;

    /// What it is about. Writes about the same are done one after the other.
    fn subject(&self) -> String;

    /// Does what the members ask for and returns the result of each, in their order. A member that
    /// is refused must not have written anything. The ids and times come from the members: it may
    /// run more than once.
    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Result<Self::Answer, Self::Error>>>;
}
