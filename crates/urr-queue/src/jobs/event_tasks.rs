//! Work on many events at once, each at its own speed.

use std::collections::HashMap;
use std::future::Future;

use tokio::task::{Id, JoinSet};
use urr_kernel::Uuid;

/// The turns that are under way. An event whose last turn is not over has no other. Dropped, it ends
/// them.
#[derive(Default)]
pub struct EventTasks {
    under_way: JoinSet<()>,
    events: HashMap<Id, Uuid>,
}

impl EventTasks {
    pub fn begin(&mut self, event_id: Uuid, turn: impl Future<Output = ()> + Send + 'static) {
        self.tidy();
        if !self.events.values().any(|busy| *busy == event_id) {
            let task = self.under_way.spawn(turn);
            self.events.insert(task.id(), event_id);
        }
    }

    /// Forgets the turns that are over.
    fn tidy(&mut self) {
        while let Some(ended) = self.under_way.try_join_next_with_id() {
            let task = match ended {
                Ok((task, ())) => task,
                Err(error) => {
                    tracing::error!(%error, "work on a room broke off");
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

    /// Waits until a turn is over, and says whose it was.
    async fn next_ended(turns: &mut EventTasks) -> Uuid {
        let ended = turns.under_way.join_next_with_id().await.expect("a turn is under way");
        let task = ended.map_or_else(|error| error.id(), |(task, ())| task);
        turns.events.remove(&task).expect("it was begun")
    }

    /// P-6: in the original one scheduler did everything, and a slow clean-up delayed all admissions.
    #[tokio::test]
    async fn p_6_a_slow_event_has_no_second_turn_and_delays_no_other() {
        let mut turns = EventTasks::default();
        let [slow, quick] = [1, 2].map(Uuid::from_u128);
        let (gate, slow_turns) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
        for _ in 0..3 {
            let (gate, count) = (Arc::clone(&gate), Arc::clone(&slow_turns));
            turns.begin(slow, async move {
                count.fetch_add(1, Ordering::SeqCst);
                gate.acquire().await.expect("it is never closed").forget();
            });
            turns.begin(quick, async {});
            assert_eq!(next_ended(&mut turns).await, quick);
        }
        gate.add_permits(1);
        assert_eq!(next_ended(&mut turns).await, slow);
        assert_eq!(slow_turns.load(Ordering::SeqCst), 1);
        turns.begin(slow, async {});
        assert_eq!(next_ended(&mut turns).await, slow, "its next turn comes after the first");
    }

    #[tokio::test]
    async fn an_event_whose_turn_broke_off_gets_another() {
        let mut turns = EventTasks::default();
        let event_id = Uuid::from_u128(1);
        turns.begin(event_id, async { panic!("a turn that breaks off") });
        while !turns.events.is_empty() {
            tokio::task::yield_now().await;
            turns.tidy();
        }
        turns.begin(event_id, async {});
        assert_eq!(next_ended(&mut turns).await, event_id);
    }
}
