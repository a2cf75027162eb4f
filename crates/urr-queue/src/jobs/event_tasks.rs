//! Work on many events at once, each in its own task.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::task::{Id, JoinSet};
use urr_kernel::Uuid;

use crate::QueueService;

/// The running tasks of one job. An event has at most one. Dropping it aborts them.
#[derive(Default)]
pub struct EventTasks(Mutex<RunningTasks>);

#[derive(Default)]
struct RunningTasks {
    tasks: JoinSet<()>,
    events: HashMap<Id, Uuid>,
}

impl EventTasks {
    /// Starts a task for each event whose previous task has ended.
    pub fn spawn_each<W, F>(
        &self,
        queue: &QueueService,
        events: impl IntoIterator<Item = Uuid>,
        work: W,
    ) where
        W: Fn(QueueService, Uuid) -> F,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for event_id in events {
            running.spawn(event_id, work(queue.clone(), event_id));
        }
    }
}

impl RunningTasks {
    fn spawn(&mut self, event_id: Uuid, task: impl Future<Output = ()> + Send + 'static) {
        self.remove_ended();
        if !self.events.values().any(|busy| *busy == event_id) {
            let task = self.tasks.spawn(task);
            self.events.insert(task.id(), event_id);
        }
    }

    fn remove_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            let task = match ended {
                Ok((task, ())) => task,
                Err(error) => {
                    tracing::error!(%error, "a task of an event panicked");
                    error.id()
                }
            };
            self.events.remove(&task);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Waits until a task ends and returns its event.
    async fn next_ended(tasks: &mut RunningTasks) -> Uuid {
        let ended = tasks.tasks.join_next_with_id().await.expect("a task is running");
        let task = ended.map_or_else(|error| error.id(), |(task, ())| task);
        tasks.events.remove(&task).expect("it was begun")
    }

    /// P-6: in the original one scheduler did everything, and a slow clean-up delayed all admissions.
    #[tokio::test]
    async fn p_6_a_slow_event_has_no_second_task_and_delays_no_other() {
        let mut tasks = RunningTasks::default();
        let [slow, quick] = [1, 2].map(Uuid::from_u128);
        let (gate, slow_runs) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
        for _ in 0..3 {
            let (gate, count) = (Arc::clone(&gate), Arc::clone(&slow_runs));
            tasks.spawn(slow, async move {
                count.fetch_add(1, Ordering::SeqCst);
                gate.acquire().await.expect("it is never closed").forget();
            });
            tasks.spawn(quick, async {});
            assert_eq!(next_ended(&mut tasks).await, quick);
        }
        gate.add_permits(1);
        assert_eq!(next_ended(&mut tasks).await, slow);
        assert_eq!(slow_runs.load(Ordering::SeqCst), 1);
        tasks.spawn(slow, async {});
        assert_eq!(next_ended(&mut tasks).await, slow, "its next task starts after the first");
    }

    #[tokio::test]
    async fn an_event_whose_task_panicked_gets_another() {
        let mut tasks = RunningTasks::default();
        let event_id = Uuid::from_u128(1);
        tasks.spawn(event_id, async { panic!("a task that panics") });
        while !tasks.events.is_empty() {
            tokio::task::yield_now().await;
            tasks.remove_ended();
        }
        tasks.spawn(event_id, async {});
        assert_eq!(next_ended(&mut tasks).await, event_id);
    }
}
