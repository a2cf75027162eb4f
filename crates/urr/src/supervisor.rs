//! Supervises background tasks: when one of them ends by itself, the process stops.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tracing::error;
use urr_kernel::panic_text;

/// Stops the whole process when a task ends by itself: a process that sells without publishing its
/// events is worse than one that restarts. Clones share their state.
#[derive(Clone, Debug)]
pub struct TaskSupervisor {
    /// Cancelled to stop the process.
    stop: CancellationToken,
    has_failed: Arc<AtomicBool>,
}

impl TaskSupervisor {
    pub fn new(stop: CancellationToken) -> TaskSupervisor {
        TaskSupervisor { stop, has_failed: Arc::default() }
    }

    /// Runs a task that may end only after `stopping` is cancelled.
    pub fn supervise<F>(
        &self,
        name: &'static str,
        stopping: CancellationToken,
        task: F,
    ) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future<Output = ()> + Send,
    {
        let supervisor = self.clone();
        async move {
            let ended = AssertUnwindSafe(task).catch_unwind().await;
            if !stopping.is_cancelled() {
                let reason = match ended {
                    Ok(()) => "ended by itself".to_owned(),
                    Err(panic) => format!("panicked: {}", panic_text(&*panic)),
                };
                error!(task = name, reason, "a background task is gone; the process stops");
                supervisor.has_failed.store(true, Ordering::SeqCst);
                supervisor.stop.cancel();
            }
        }
    }

    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_when_told_is_fine() {
        let (stop, stopping) = (CancellationToken::new(), CancellationToken::new());
        let supervisor = TaskSupervisor::new(stop.clone());
        stopping.cancel();
        supervisor.supervise("a task", stopping, async {}).await;
        assert!(!supervisor.has_failed() && !stop.is_cancelled());
    }

    #[tokio::test]
    async fn a_task_that_ends_or_panics_by_itself_stops_everything() {
        let returns = async {};
        let panics = async { panic!("a bug") };
        let tasks: [futures_util::future::BoxFuture<'static, ()>; 2] =
            [returns.boxed(), panics.boxed()];
        for task in tasks {
            let stop = CancellationToken::new();
            let supervisor = TaskSupervisor::new(stop.clone());
            supervisor.supervise("a task", CancellationToken::new(), task).await;
            assert!(supervisor.has_failed() && stop.is_cancelled());
        }
    }
}
