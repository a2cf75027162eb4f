//! Locates users without marking them as seen.

use urr_kernel::{Timestamp, Uuid};

use super::keys::RoomKeys;
use super::scripts::LOCATE;
use super::{CHUNK, LinePosition, RedisRooms, RoomError};
use crate::UserLocation;

impl RedisRooms {
    pub async fn locate(
        &self,
        event_id: Uuid,
        users: &[Uuid],
        now: Timestamp,
    ) -> Result<Vec<UserLocation>, RoomError> {
        let keys = RoomKeys::of(event_id);
        let mut all = Vec::with_capacity(users.len());
        for some in users.chunks(CHUNK as usize) {
            let ids: Vec<&[u8]> = some.iter().map(|user| &user.as_bytes()[..]).collect();
            let found: Vec<i64> = self.run(&LOCATE, &keys.all(), (self.time_of(now), ids)).await?;
            for one in found.as_chunks::<3>().0 {
                all.push(location(*one)?);
            }
        }
        // An answer of another length is invalid.
        if all.len() == users.len() { Ok(all) } else { Err(RoomError::Unavailable) }
    }
}

fn location([what, number, position]: [i64; 3]) -> Result<UserLocation, RoomError> {
    Ok(match what {
        0 => UserLocation::Absent,
        1 => {
            let position = u32::try_from(position).map_err(|_| RoomError::Unavailable)?;
            UserLocation::Waiting(LinePosition { number, position })
        }
        _ => UserLocation::Active,
    })
}
