//! A transaction on its way through the queue of an engine.

use std::any::{Any, TypeId};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::oneshot;
use urr_kernel::panic_text;

use crate::sets::SetWrite;
use crate::{DbResult, StorageError, Tx};

/// A closure waiting for its transaction. An engine runs it, commits or rolls back as it says, and
/// then finishes it, which answers the caller.
pub(crate) trait Job: Send {
    /// Runs the closure and keeps its result. A result of an earlier run is forgotten.
    fn run(&mut self, tx: &mut Tx<'_>) -> TxDecision;

    /// Replaces the result of the last run by a failure.
    fn fail(&mut self, error: StorageError);

    /// What the last run asked of the engine.
    fn decision(&self) -> TxDecision;

    /// Answers the caller: with the result of the last run, or with the failure.
    fn finish(self: Box<Self>, outcome: DbResult<()>);

    /// What it is about, if no two of a set may be about the same.
    fn subject(&self) -> Option<String> {
        None
    }

    /// Which others can be one of its set; none if it is alone.
    fn kind(&self) -> Option<TypeId> {
        None
    }

    /// Runs a set of which it is the first: once for all. Otherwise some have no result.
    fn run_set(&mut self, _others: &mut [Box<dyn Job>], _tx: &mut Tx<'_>) -> SetRun {
        SetRun::Failed
    }

    /// Itself, to be found again as one of a set.
    fn as_member(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// What a trace calls it: the path of the closure.
    #[cfg(feature = "simulation")]
    fn name(&self) -> &'static str;
}

/// How the run of a set ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetRun {
    /// Every member has its own result.
    Decided,
    /// All of it must be undone.
    Failed,
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

/// Makes a job of a member of a set.
pub(crate) fn set_job<W: SetWrite>(member: W) -> (Box<dyn Job>, SetReceiver<W>) {
    let (reply, receiver) = oneshot::channel();
    (Box::new(SetJob { member, result: None, reply }), receiver)
}

type SetResult<W> = Result<<W as SetWrite>::Answer, <W as SetWrite>::Error>;
type SetReceiver<W> = oneshot::Receiver<SetResult<W>>;

struct SetJob<W: SetWrite> {
    member: W,
    result: Option<SetResult<W>>,
    reply: oneshot::Sender<SetResult<W>>,
}

/// The result of each member, or what has broken the transaction.
fn write_set<W: SetWrite>(tx: &mut Tx<'_>, set: &[&W]) -> DbResult<Vec<SetResult<W>>> {
    let written = catch_unwind(AssertUnwindSafe(|| W::write(tx, set)));
    let results =
        written.unwrap_or_else(|panic| Err(StorageError::Panicked(panic_text(&*panic))))?;
    match tx.failure() {
        Some(_) => Err(StorageError::Aborted),
        None => {
            assert_eq!(results.len(), set.len(), "every member of a set has a result");
            Ok(results)
        }
    }
}

impl<W: SetWrite> Job for SetJob<W> {
    fn run(&mut self, tx: &mut Tx<'_>) -> TxDecision {
        let result = match write_set(tx, &[&self.member]) {
            Ok(mut results) => results.pop().expect("one member has one result"),
            Err(error) => Err(error.into()),
        };
        self.result = Some(result);
        self.decision()
    }

    fn fail(&mut self, error: StorageError) {
        self.result = Some(Err(error.into()));
    }

    fn decision(&self) -> TxDecision {
        TxDecision::of(self.result.as_ref())
    }

    fn finish(self: Box<Self>, outcome: DbResult<()>) {
        finish(self.result, self.reply, outcome);
    }

    fn subject(&self) -> Option<String> {
        self.member.subject()
    }

    fn kind(&self) -> Option<TypeId> {
        Some(TypeId::of::<W>())
    }

    fn run_set(&mut self, others: &mut [Box<dyn Job>], tx: &mut Tx<'_>) -> SetRun {
        let others = others.iter_mut().map(|other| other.as_member()?.downcast_mut::<SetJob<W>>());
        let Some(mut others) = others.collect::<Option<Vec<_>>>() else { return SetRun::Failed };
        let members = others.iter().map(|other| &other.member);
        let set: Vec<&W> = std::iter::once(&self.member).chain(members).collect();
        let Ok(results) = write_set(tx, &set) else { return SetRun::Failed };
        let mut results = results.into_iter();
        self.result = results.next();
        for (other, result) in others.iter_mut().zip(results) {
            other.result = Some(result);
        }
        SetRun::Decided
    }

    fn as_member(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    #[cfg(feature = "simulation")]
    fn name(&self) -> &'static str {
        std::any::type_name::<W>()
    }
}

impl TxDecision {
    fn of<T, E>(result: Option<&Result<T, E>>) -> TxDecision {
        match result {
            Some(Ok(_)) => TxDecision::Commit,
            Some(Err(_)) | None => TxDecision::RollBack,
        }
    }
}

/// Answers the caller of a job.
fn finish<T, E: From<StorageError>>(
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
    outcome: DbResult<()>,
) {
    let result = match outcome {
        Ok(()) => result.expect("a job is run before it is finished well"),
        Err(error) => Err(error.into()),
    };
    // A caller that has gone away no longer wants the answer; the transaction stands.
    drop(reply.send(result));
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
        self.result = Some(result);
        self.decision()
    }

    fn fail(&mut self, error: StorageError) {
        self.result = Some(Err(error.into()));
    }

    fn decision(&self) -> TxDecision {
        TxDecision::of(self.result.as_ref())
    }

    fn finish(self: Box<Self>, outcome: DbResult<()>) {
        finish(self.result, self.reply, outcome);
    }

    #[cfg(feature = "simulation")]
    fn name(&self) -> &'static str {
        std::any::type_name::<F>()
    }
}
