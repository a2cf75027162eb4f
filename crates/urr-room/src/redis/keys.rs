//! The names of keys. Those of an event share its hash tag, so that a script has them together.

use urr_kernel::Uuid;
use urr_redis::hash_tag;

/// The events whose room has anybody in it.
pub(super) const ROOMS_IN_USE: &str = "queue:active-events";

/// Users are spread over so many hashes. With a million of them each is so small that Redis packs it:
/// a user costs about 42 bytes there, and 150 in a key of their own.
const USER_HASHES: u128 = 1 << 14;

/// The keys of an event's room, in the order that the scripts expect.
pub(super) struct RoomKeys([String; 6]);

impl RoomKeys {
    pub fn of(event_id: Uuid) -> RoomKeys {
        let tag = hash_tag(&event_id.to_string());
        let names = ["queue", "active", "seen", "slots", "room", "pace"];
        RoomKeys(names.map(|name| format!("{tag}:{name}")))
    }

    pub fn queue(&self) -> &str {
        &self.0[0]
    }

    pub fn all(&self) -> [&str; 6] {
        self.0.each_ref().map(String::as_str)
    }

    /// All and one more.
    pub fn all_and<'a>(&'a self, more: &'a str) -> [&'a str; 7] {
        let [queue, active, seen, slots, room, pace] = self.all();
        [queue, active, seen, slots, room, pace, more]
    }
}

/// Where a line that was cleared is put.
pub(super) fn cleared_line(event_id: Uuid, clearing: Uuid) -> String {
    format!("{}:cleared:{clearing}", hash_tag(&event_id.to_string()))
}

/// Says up to when what a user has reserved is void.
pub(super) fn void_mark(event_id: Uuid, user_id: Uuid) -> String {
    format!("{}:void:{user_id}", hash_tag(&event_id.to_string()))
}

/// The hash that tells for which events a user waits.
pub(super) fn user_hash(user_id: Uuid) -> String {
    // Ids grow with time; their ends are random.
    let number = user_id.as_u128() % USER_HASHES;
    format!("queue:users:{}", hash_tag(&number.to_string()))
}
