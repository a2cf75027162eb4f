//! Locates users without marking them as seen.

use urr_kernel::{Timestamp, Uuid};

use super::{MemoryRooms, lock};
use crate::{RoomError, UserLocation};

/// Bounds the work under one lock.
const LOCATED_AT_ONCE_MAX: usize = 512;

impl MemoryRooms {
    pub async fn locate(
        &self,
        event_id: Uuid,
        users: &[Uuid],
        now: Timestamp,
    ) -> Result<Vec<UserLocation>, RoomError> {
        let Some(room) = self.find(event_id) else {
            return Ok(vec![UserLocation::Absent; users.len()]);
        };
        let journal = &self.inner.journal;
        let mut all = Vec::with_capacity(users.len());
        for some in users.chunks(LOCATED_AT_ONCE_MAX) {
            {
                let mut room = lock(&room);
                all.extend(room.locate(some, now));
                room.append_changes(journal);
            }
            tokio::task::yield_now().await;
        }
        // That a user has left must be on disk too: after a crash they might wait again.
        journal.wait(journal.newest_batch()).await?;
        Ok(all)
    }
}
