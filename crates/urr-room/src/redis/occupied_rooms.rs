//! The set of occupied rooms.
//!
//! On a Cluster the set is on another node than the rooms, so no script can change both. A room
//! counts its listings: odd while it is listed. The first user adds `<event>:<listing>` to the set
//! and only then enters with that listing; the listing of an empty room ends before it is removed
//! from the set. So a late removal removes an old listing only, and every occupied room is listed.

use futures_util::{StreamExt, stream};
use urr_kernel::{Timestamp, Uuid};

use super::keys::{ROOMS_IN_USE, RoomKeys};
use super::scripts::{LIST, UNLIST};
use super::{RedisRooms, RoomError};

const ROOMS_AT_ONCE: usize = 16;

impl RedisRooms {
    pub(super) async fn list(&self, event_id: Uuid, listing: i64) -> Result<(), RoomError> {
        let member = format!("{event_id}:{listing}");
        self.run::<()>(&LIST, &[ROOMS_IN_USE], ("SADD", member)).await
    }

    /// The events whose rooms are occupied. Ends the listings of empty rooms. A room that does not
    /// answer counts as occupied, so that it does not block the others.
    pub async fn occupied_events(&self) -> Result<Vec<Uuid>, RoomError> {
        let members: Vec<String> = self.run(&LIST, &[ROOMS_IN_USE], "SMEMBERS").await?;
        let asked = members.into_iter().map(|member| self.event_if_used(member));
        let asked: Vec<_> = stream::iter(asked).buffer_unordered(ROOMS_AT_ONCE).collect().await;
        let mut occupied_events: Vec<Uuid> = asked.into_iter().flatten().collect();
        occupied_events.sort_unstable();
        occupied_events.dedup();
        Ok(occupied_events)
    }

    /// The event of a member of the set, if its room is occupied.
    async fn event_if_used(&self, member: String) -> Option<Uuid> {
        let parsed = member.split_once(':').and_then(|(event, listing)| {
            Some((event.parse::<Uuid>().ok()?, listing.parse::<i64>().ok()?))
        });
        let (event_id, listing) = parsed?;
        let keys = RoomKeys::of(event_id);
        // With the caller's time, which is not known here, expired slots still count.
        let arguments = self.time_of(Timestamp::UNIX_EPOCH);
        let answer: Result<(bool, i64), _> = self.run(&UNLIST, &keys.all(), arguments).await;
        let Ok((is_used, present)) = answer else { return Some(event_id) };
        // A later listing is of a user who is about to enter. A failed removal is repeated next
        // time.
        if listing < present {
            self.run::<()>(&LIST, &[ROOMS_IN_USE], ("SREM", member)).await.ok();
        }
        is_used.then_some(event_id)
    }
}
