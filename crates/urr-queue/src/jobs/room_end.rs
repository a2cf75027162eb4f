//! Rooms that end: the sale is over, or the users who wait may not buy any more.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::StorageError;

use super::JobError;
use crate::store::rooms;
use crate::{EventRoom, QueueService, RoomPhase};

/// The clocks of processes differ: a room is cleared when the sale has ended by all of them.
const CLEARED_AFTER: Duration = Duration::from_secs(10);

impl QueueService {
    /// Whether the sale has ended by the clock of every process.
    pub(crate) fn is_long_over(&self, event: &EventRoom, now: Timestamp) -> bool {
        match event.phase(&self.0.settings, now) {
            RoomPhase::Over => now >= event.sale_ends_at + CLEARED_AFTER,
            phase => phase.has_ended(),
        }
    }

    /// Clears the room of an event whose sale has ended.
    pub(super) async fn clear_ended(&self, event_id: Uuid, now: Timestamp) {
        if let Err(error) = self.try_clear_ended(event_id, now).await {
            tracing::warn!(%event_id, %error, "an ended room was not cleared; it will be retried");
        }
    }

    /// All processes share the room and clearing cannot be undone, so the database decides and not
    /// what this process has in memory.
    async fn try_clear_ended(&self, event_id: Uuid, now: Timestamp) -> Result<(), JobError> {
        let event = self.0.db.read(move |tx| rooms::room_find(tx, event_id)).await?;
        if event.is_some_and(|event| self.is_long_over(&event, now)) {
            let cleared = self.count_errors(self.0.rooms.clear(event_id, now).await)?;
            let (waiting, active) = (cleared.waiting, cleared.active);
            tracing::info!(%event_id, waiting, active, "the sale has ended; its room was cleared");
        }
        Ok(())
    }

    /// Clears the room of an event that got a pre-sale after users had joined. Their tiers are not
    /// known here, and nobody may be admitted who may not buy. Members join again.
    pub(super) async fn clear_for_presale(&self, event_id: Uuid, now: Timestamp) {
        if let Err(error) = self.try_clear_for_presale(event_id, now).await {
            tracing::warn!(%event_id, %error, "a room was not cleared for a pre-sale; it will be retried");
        }
    }

    /// Two processes may clear at the same moment. A user who joins between the two joins again.
    async fn try_clear_for_presale(&self, event_id: Uuid, now: Timestamp) -> Result<(), JobError> {
        let read = self.0.db.read(move |tx| {
            let revision = rooms::clearing_find(tx, event_id)?;
            let event = rooms::room_find(tx, event_id)?;
            Ok::<_, StorageError>(revision.zip(event))
        });
        let Some((revision, event)) = read.await? else { return Ok(self.load().await?) };
        // The pre-sale may have been removed meanwhile.
        if event.is_for_members(now) {
            let cleared = self.count_errors(self.0.rooms.clear(event_id, now).await)?;
            let (waiting, active) = (cleared.waiting, cleared.active);
            if waiting + active > 0 {
                tracing::warn!(%event_id, waiting, active, "a room was cleared for a pre-sale");
            }
        }
        self.0.db.write(move |tx| rooms::clearing_finish(tx, event_id, revision)).await?;
        Ok(self.load().await?)
    }
}
