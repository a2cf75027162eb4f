//! Sets: writes or reads of one kind that are done by the same statements.
//!
//! On PostgreSQL a statement costs a round trip, so closures of a batch that can be done by one
//! statement for all of them are a set. If a set fails, it is undone and each member is tried alone.
//! On SQLite, where a statement costs no round trip, every set has one member.

use crate::{DbResult, StorageError, Tx};

/// A write that can be done for many at once.
pub trait SetWrite: Sized + Send + 'static {
    type Answer: Send + 'static;
    type Error: From<StorageError> + Send + 'static;

    /// What it is about, if not two of a set may be about the same: then they are done one after the
    /// other.
    fn subject(&self) -> Option<String> {
        None
    }

    /// Does what the members ask for and returns the result of each, in their order. A member that
    /// is refused must not have written anything. The ids and times come from the members: it may
    /// run more than once.
    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Result<Self::Answer, Self::Error>>>;
}

/// A read that can be done for many at once. Several may ask for the same.
pub trait SetRead: Sized + Send + 'static {
    type Answer: Send + 'static;
    type Error: From<StorageError> + Send + 'static;

    /// The answer of each, in their order.
    fn read(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Result<Self::Answer, Self::Error>>>;
}

/// A read as a member of a set.
pub(crate) struct SetReadMember<R>(pub(crate) R);

impl<R: SetRead> SetWrite for SetReadMember<R> {
    type Answer = R::Answer;
    type Error = R::Error;

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<Result<R::Answer, R::Error>>> {
        R::read(tx, &set.iter().map(|member| &member.0).collect::<Vec<_>>())
    }
}
