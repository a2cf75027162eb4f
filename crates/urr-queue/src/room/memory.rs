//! Rooms in memory.

use urr_kernel::{Timestamp, Uuid};

use super::{Admitted, Ask, Cleared, Crowd, RoomError, Rules, Seen};

#[derive(Clone)]
pub struct MemoryRooms;

#[expect(clippy::unused_async, reason = "not built yet")]
impl MemoryRooms {
    pub async fn check(&self, _ask: Ask, _rules: &Rules) -> Result<Seen, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn look(&self, _ask: Ask, _rules: &Rules) -> Result<Seen, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn leave(&self, _ask: Ask) -> Result<bool, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn finish(&self, _ask: Ask, _bought_at: Timestamp) -> Result<bool, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn holds_slot(
        &self,
        _ask: Ask,
        _slot_id: Uuid,
        _rules: &Rules,
    ) -> Result<bool, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn admit(
        &self,
        _event_id: Uuid,
        _rules: &Rules,
        _now: Timestamp,
    ) -> Result<Vec<Admitted>, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn sweep(
        &self,
        _event_id: Uuid,
        _unseen_since: Timestamp,
        _count_max: u32,
        _now: Timestamp,
    ) -> Result<u32, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn clear(&self, _event_id: Uuid, _now: Timestamp) -> Result<Cleared, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn crowd(&self, _event_id: Uuid, _now: Timestamp) -> Result<Crowd, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn events(&self) -> Result<Vec<Uuid>, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn entrants(&self, _event_id: Uuid, _last: i64) -> Result<Vec<Uuid>, RoomError> {
        Err(RoomError::Unavailable)
    }
    pub async fn renumber(&self, _event_id: Uuid, _drawn: &[(Uuid, i64)]) -> Result<(), RoomError> {
        Err(RoomError::Unavailable)
    }
}
