//! Rooms that come to their end: the sale is over, or those who wait may not buy any more.

use std::time::Duration;

use urr_kernel::{Timestamp, Uuid};
use urr_storage::StorageError;

use crate::status::has_ended;
use crate::store::rooms;
use crate::{EventRoom, RoomPhase, QueueService};
use urr_room::RoomError;

/// The clocks of processes differ: a room is emptied when the sale is over by all of them.
const EMPTIED_AFTER: Duration = Duration::from_secs(10);

/// Why a room was not cleared.
#[derive(Debug, thiserror::Error)]
enum NotCleared {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Room(#[from] RoomError),
}

impl QueueService {
    /// Whether nobody waits any more by the clock of any process.
    pub(crate) fn is_long_over(&self, event: &EventRoom, now: Timestamp) -> bool {
        match event.phase(&self.0.settings, now) {
            RoomPhase::Over => now >= event.sale_ends_at + EMPTIED_AFTER,
            phase => has_ended(phase),
        }
    }

    /// Ends the room of an event that is over. All processes share it, and it cannot be undone: so
    /// what this one remembers is not enough, and the database is asked.
    pub(super) async fn empty(&self, event_id: Uuid, now: Timestamp) {
        match self.0.db.read(move |tx| rooms::room_find(tx, event_id)).await {
            Ok(Some(event)) if self.is_long_over(&event, now) => {}
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%event_id, %error, "a room was not emptied; tried again");
                return;
            }
        }
        match self.count_errors(self.0.rooms.clear(event_id, now).await) {
            Ok(cleared) => {
                let (waiting, active) = (cleared.waiting, cleared.active);
                tracing::info!(%event_id, waiting, active, "the sale is over; the room was emptied");
            }
            Err(error) => tracing::warn!(%event_id, %error, "a room was not emptied; tried again"),
        }
    }

    /// Clears the room of an event whose sale got a pre-sale after people had come: who of them may
    /// still buy is not known here, and nobody must be let in who may not. Whoever may, comes again.
    pub(super) async fn send_home(&self, event_id: Uuid, now: Timestamp) {
        if let Err(error) = self.try_send_home(event_id, now).await {
            tracing::warn!(%event_id, %error, "a room was not cleared for a pre-sale; tried again");
        }
    }

    /// Two processes may clear at the same moment. Then who came in the instant between comes again
    /// once more.
    async fn try_send_home(&self, event_id: Uuid, now: Timestamp) -> Result<(), NotCleared> {
        let read = self.0.db.read(move |tx| {
            let revision = rooms::clearing_find(tx, event_id)?;
            let event = rooms::room_find(tx, event_id)?;
            Ok::<_, StorageError>(revision.zip(event))
        });
        let Some((revision, event)) = read.await? else { return Ok(self.load().await?) };
        // The pre-sale may have been taken back meanwhile.
        if event.is_for_members(now) {
            let cleared = self.count_errors(self.0.rooms.clear(event_id, now).await)?;
            let (waiting, active) = (cleared.waiting, cleared.active);
            if waiting + active > 0 {
                tracing::warn!(%event_id, waiting, active, "a pre-sale was put before the sale: \
                    those who had come must come again");
            }
        }
        self.0.db.write(move |tx| rooms::clearing_finish(tx, event_id, revision)).await?;
        Ok(self.load().await?)
    }
}
