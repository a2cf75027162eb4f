//! Telling the statistics once a minute how the rooms stand.
//!
//! What is told are sums since the room was opened. So a minute that nobody told, or that is told
//! late, makes no later figure wrong.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, outbox};

use crate::Queue;
use crate::events::QueueObserved;
use crate::store::observations::observation_take;
use urr_room::Crowd;

const MINUTE: Duration = Duration::from_secs(60);

impl QueueService {
    /// Tells of the rooms with people, and of those that had some the last time.
    pub async fn publish_stats(&self) {
        let now = self.0.clock.now();
        let with_people = self.events_with_people().await.into_iter();
        // Of what it has not heard of, it cannot tell.
        let is_known = |event_id: &Uuid| self.0.event_index.get(*event_id).is_some();
        let with_people: BTreeSet<Uuid> = with_people.filter(is_known).collect();
        let before = {
            let mut observed = self.0.observed.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *observed, with_people.clone())
        };
        for event_id in with_people.union(&before) {
            match self.count_errors(self.0.crowds.get(*event_id, now).await) {
                Ok(crowd) => self.tell(*event_id, &crowd.crowd, now).await,
                Err(error) => tracing::warn!(%event_id, %error, "a room was not observed"),
            }
        }
    }

    async fn tell(&self, event_id: Uuid, crowd: &Crowd, now: Timestamp) {
        let observed = QueueObserved {
            event_id,
            waiting: crowd.waiting,
            inside: crowd.active,
            joined_total: crowd.last_number,
            admitted_total: crowd.admitted_total,
            left_total: crowd.left_total,
        };
        let (stamp, minute) = (self.stamp(now), start_of_minute(now));
        let told = self.0.db.write(move |tx: &mut Tx<'_>| {
            if observation_take(tx, event_id, minute)? {
                outbox::append(tx, &stamp, &observed)?;
            }
            Ok::<_, StorageError>(())
        });
        if let Err(error) = told.await {
            tracing::warn!(%event_id, %error, "the statistics were not told of a room; tried again");
        }
    }
}

fn start_of_minute(now: Timestamp) -> Timestamp {
    let into = now.as_second().rem_euclid(60).unsigned_abs();
    let fraction = Duration::from_nanos(now.subsec_nanosecond().unsigned_abs().into());
    now - (Duration::from_secs(into) + fraction).min(MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_begins_where_its_seconds_do() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let begins = |text| start_of_minute(at(text));
        assert_eq!(begins("2026-11-15T00:30:59.999Z"), at("2026-11-15T00:30:00Z"));
        assert_eq!(begins("2026-11-15T00:31:00Z"), at("2026-11-15T00:31:00Z"));
    }
}
