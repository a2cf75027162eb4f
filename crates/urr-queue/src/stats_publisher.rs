//! Publishes the statistics of the rooms once a minute.
//!
//! The numbers are totals since the opening of the room, so that a minute that is missing or late
//! makes no later number wrong.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;

use urr_contracts::events::queue::QueueObserved;
use urr_kernel::{Timestamp, Uuid};
use urr_room::Crowd;
use urr_storage::{StorageError, Tx, outbox};

use crate::QueueService;
use crate::store::observations::observation_take;

const MINUTE: Duration = Duration::from_secs(60);

impl QueueService {
    /// Publishes the rooms that are occupied or were so the last time.
    pub async fn publish_stats(&self) {
        let now = self.0.clock.now();
        let mut occupied: BTreeSet<Uuid> = self.occupied_events().await.into_iter().collect();
        occupied.retain(|event_id| self.0.event_index.get(*event_id).is_some());
        let before = {
            let mut observed = self.0.observed.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *observed, occupied.clone())
        };
        for event_id in occupied.union(&before) {
            match self.count_errors(self.0.crowds.get(*event_id, now).await) {
                Ok(crowd) => self.publish(*event_id, &crowd.crowd, now).await,
                Err(error) => tracing::warn!(%event_id, %error, "a room was not observed"),
            }
        }
    }

    async fn publish(&self, event_id: Uuid, crowd: &Crowd, now: Timestamp) {
        let observed = QueueObserved {
            event_id,
            waiting: crowd.waiting,
            inside: crowd.active,
            joined_total: u64::try_from(crowd.last_number).unwrap_or(0),
            admitted_total: crowd.admitted_total,
            left_total: crowd.left_total,
        };
        let (stamp, minute) = (self.stamp(now), start_of_minute(now));
        let published = self.0.db.write(move |tx: &mut Tx<'_>| {
            if observation_take(tx, event_id, minute)? {
                outbox::append(tx, &stamp, &observed)?;
            }
            Ok::<_, StorageError>(())
        });
        if let Err(error) = published.await {
            tracing::warn!(%event_id, %error, "statistics were not published; it will be retried");
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
