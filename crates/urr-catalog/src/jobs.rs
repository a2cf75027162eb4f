//! The jobs: the opening and the end of sales is announced; old keys and unused pictures go.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_contracts::events::catalog::EventUpdated;
use urr_kernel::CallContext;
use urr_service::idempotency::keys_purge;
use urr_service::jobs::run_every;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, StorageError, Tx};

use crate::CatalogService;
use crate::events::rules::EventRecord;
use crate::events::store;
use crate::revision::{catalog_lock, revision_bump};

const EVENTS_PER_TRANSACTION: u32 = 100;
const PURGE_INTERVAL: Duration = Duration::from_hours(1);
const KEYS_PER_PURGE: u32 = 1_000;
const IMAGES_PER_PURGE: u32 = 100;

impl CatalogService {
    /// Announces the status of up to `limit` events that has changed by time. Returns how many.
    /// Several processes may do it at once: each change is announced by one of them.
    pub async fn update_statuses(&self, limit: u32) -> DbResult<usize> {
        let now = self.0.clock.now();
        // Usually nothing is due, and then the lock of the catalogue is not needed.
        let due = self.0.db.read(move |tx| store::event_list_due(tx, now, limit)).await?;
        if due.is_empty() {
            return Ok(0);
        }
        let announcements: Vec<(EventRecord, EventMetadata)> = due
            .into_iter()
            .map(|event| (event, self.event_metadata(CallContext::root(self.0.ids.next_id()))))
            .collect();
        let written = self.0.db.write(move |tx| {
            catalog_lock(tx)?;
            let mut updated = 0;
            for (event, metadata) in &announcements {
                updated += usize::from(update_status(tx, event, metadata)?);
            }
            let revision = if updated > 0 { Some(revision_bump(tx)?) } else { None };
            Ok::<_, StorageError>((updated, revision))
        });
        let (updated, revision) = written.await?;
        if let Some(revision) = revision {
            self.0.cache.note_revision(revision);
        }
        Ok(updated)
    }

    /// Runs the job until it is told to stop.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let interval = self.0.settings.status_interval;
        let statuses = run_every("update_event_statuses", interval, || self.update_all_statuses());
        let keys = run_every("purge_idempotency_keys", PURGE_INTERVAL, || self.purge_keys());
        let images =
            run_every("purge_images", PURGE_INTERVAL, || self.purge_images(IMAGES_PER_PURGE));
        stop.run_until_cancelled(async { tokio::join!(statuses, keys, images) }).await;
    }

    async fn purge_keys(&self) -> DbResult<u64> {
        let now = self.0.clock.now();
        self.0.db.write(move |tx| keys_purge(tx, now, KEYS_PER_PURGE)).await
    }

    async fn update_all_statuses(&self) -> DbResult<()> {
        loop {
            match self.update_statuses(EVENTS_PER_TRANSACTION).await? {
                0 => return Ok(()),
                updated => tracing::info!(updated, "sales opened or ended"),
            }
        }
    }
}

/// `false` if another process has announced the status.
fn update_status(tx: &mut Tx<'_>, event: &EventRecord, metadata: &EventMetadata) -> DbResult<bool> {
    let status = event.status_at(metadata.time);
    if !store::event_set_status(tx, event, status, metadata.time)? {
        return Ok(false);
    }
    let revision = event.revision + 1;
    let announced = EventRecord { announced_status: status, revision, ..event.clone() };
    outbox::append(tx, metadata, &EventUpdated(announced.snapshot()))?;
    Ok(true)
}
