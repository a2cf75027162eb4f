//! The names of keys. Those of an event share a hash tag, so that one script can use them.

use urr_kernel::Uuid;
use urr_redis::hash_tag;

/// The events whose rooms are occupied.
pub(crate) const ROOMS_IN_USE: &str = "queue:active-events";

/// Users are spread over this many hashes. With a million users each is so small that Redis packs
/// it: a user costs about 42 bytes, and 150 in a key of their own.
const USER_HASHES: u128 = 1 << 14;

/// The keys of an event's room, in the order that the scripts expect.
pub(crate) struct RoomKeys([String; 6]);

impl RoomKeys {
    pub fn of(event_id: Uuid) -> RoomKeys {
        let tag = hash_tag(&event_id.to_string());
        let names = ["queue", "active", "seen", "slots", "room", "pace"];
        RoomKeys(names.map(|name| format!("{tag}:{name}")))
    }

    pub fn queue(&self) -> &str {
        &self.0[0]
    }

    pub fn slot_log(&self) -> String {
        format!("{}:log", self.0[4])
    }

    pub fn all(&self) -> [&str; 6] {
        self.0.each_ref().map(String::as_str)
    }

    /// All keys and one more.
    pub fn all_and<'a>(&'a self, more: &'a str) -> [&'a str; 7] {
        let [queue, active, seen, slots, room, pace] = self.all();
        [queue, active, seen, slots, room, pace, more]
    }
}

/// The key of a cleared line.
pub(crate) fn cleared_line(event_id: Uuid, clearing: Uuid) -> String {
    format!("{}:cleared:{clearing}", hash_tag(&event_id.to_string()))
}

/// Holds up to when a user's reservations are void.
pub(crate) fn void_mark(event_id: Uuid, user_id: Uuid) -> String {
    format!("{}:void:{user_id}", hash_tag(&event_id.to_string()))
}

/// The hash of the events for which a user waits.
pub(crate) fn user_hash(user_id: Uuid) -> String {
    // Ids begin with the time; their ends are random.
    let number = user_id.as_u128() % USER_HASHES;
    format!("queue:users:{}", hash_tag(&number.to_string()))
}
