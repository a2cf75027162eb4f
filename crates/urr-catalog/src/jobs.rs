//! What has to be done from time to time: announcing that sales open and end.

use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use urr_kernel::{CallContext, Uuid};
use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use crate::events::rules::EventRecord;
use crate::events::store;
use crate::messages::{EventFacts, EventUpdated};
use crate::revision::{catalog_lock, revision_bump};
use crate::{CatalogService, SOURCE};

const BATCH: u32 = 100;

impl CatalogService {
    /// Announces the status of so many events at most whose times have come. Returns how many.
    /// Several processes may do it at once: each change is announced by one of them.
    pub async fn update_statuses(&self, limit: u32) -> Result<usize, StorageError> {
        let now = self.clock.now();
        // Usually nothing is due, and nobody needs to wait for the lock of the catalogue.
        let due = self.db.read(move |tx| store::event_list_due(tx, now, limit)).await?;
        if due.is_empty() {
            return Ok(0);
        }
        let stamps: Vec<(EventRecord, Stamp)> = due
            .into_iter()
            .map(|event| {
                let context = CallContext::root(self.ids.next_id());
                let event_id: Uuid = self.ids.next_id();
                (event, Stamp { event_id, source: SOURCE, time: now, context })
            })
            .collect();
        let (updated, revision) = self
            .db
            .write(move |tx| {
                catalog_lock(tx)?;
                let mut updated = 0;
                for (event, stamp) in &stamps {
                    updated += usize::from(update_status(tx, event, stamp)?);
                }
                let revision = if updated > 0 { Some(revision_bump(tx)?) } else { None };
                Ok::<_, StorageError>((updated, revision))
            })
            .await?;
        if let Some(revision) = revision {
            self.cache.note_revision(revision);
        }
        Ok(updated)
    }

    /// Does what has to be done from time to time, until it is told to stop.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let mut tick = interval(self.settings.status_interval);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            while !stop.is_cancelled() {
                match self.update_statuses(BATCH).await {
                    Ok(0) => break,
                    Ok(updated) => tracing::info!(updated, "events opened or ended"),
                    Err(error) => {
                        tracing::warn!(%error, "the status of events is announced later");
                        break;
                    }
                }
            }
        }
    }
}

/// `false`: somebody else was faster.
fn update_status(
    tx: &mut Tx<'_>,
    event: &EventRecord,
    stamp: &Stamp,
) -> Result<bool, StorageError> {
    let status = event.status_at(stamp.time);
    if !store::event_set_status(tx, event, status, stamp.time)? {
        return Ok(false);
    }
    let announced =
        EventRecord { announced_status: status, revision: event.revision + 1, ..event.clone() };
    outbox::append(tx, stamp, &EventUpdated(EventFacts::from(&announced)))?;
    Ok(true)
}
