//! A transaction on its way through the queue of an engine.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;
use urr_kernel::panic_text;

use crate::{DbResult, StorageError, Tx};

/// A closure waiting for its transaction. An engine runs it, commits or rolls back as it says, and
/// then finishes it, which answers the caller.
pub(crate) trait Job: Send {
    /// Runs the closure and keeps its result. A result of an earlier run is forgotten.
    fn run(&mut self, tx: &mut Tx<'_>) -> TxDecision;

    /// Replaces the result of the last run by a failure.
    fn fail(&mut self, error: StorageError);

    /// Answers the caller: with the result of the last run, or with the failure.
    fn finish(self: Box<Self>, outcome: DbResult<()>);
}

/// What a closure's run asks of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxDecision {
    Commit,
    RollBack,
}

/// Makes a job of a closure, and the place where its result will arrive.
pub(crate) fn job<T, E, F>(body: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T, E>>)
where
    F: Fn(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<StorageError> + Send + 'static,
{
    let (reply, receiver) = oneshot::channel();
    (Box::new(ClosureJob { body, result: None, reply }), receiver)
}

struct ClosureJob<F, T, E> {
    body: F,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Job for ClosureJob<F, T, E>
where
    F: Fn(&mut Tx<'_>) -> Result<T, E> + Send,
    T: Send,
    E: From<StorageError> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> TxDecision {
        // The closure only borrows what it captured, and a panic discards the transaction: nothing
        // half-changed can be seen afterwards.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.body)(tx)));
        let result = match outcome {
            Ok(Ok(_)) if tx.failure().is_some() => Err(StorageError::Aborted.into()),
            Ok(result) => result,
            Err(panic) => Err(StorageError::Panicked(panic_text(&*panic)).into()),
        };
        let decision = if result.is_ok() { TxDecision::Commit } else { TxDecision::RollBack };
        self.result = Some(result);
        decision
    }

    fn fail(&mut self, error: StorageError) {
        self.result = Some(Err(error.into()));
    }

    fn finish(self: Box<Self>, outcome: DbResult<()>) {
        let result = match outcome {
            Ok(()) => self.result.expect("a job is run before it is finished well"),
            Err(error) => Err(error.into()),
        };
        // A caller that has gone away no longer wants the answer; the transaction stands.
        drop(self.reply.send(result));
    }
}
