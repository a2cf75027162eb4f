//! The scripts. Those of a room begin with the shared parts that they need.

use std::sync::LazyLock;

use urr_redis::Script;

macro_rules! scripts {
    ($($name:ident = $($file:literal)+;)*) => {
        $(pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!($file), "\n"),+)));)*
    };
}

scripts! {
    CHECK = "room.lua" "slot_log.lua" "last_seen.lua" "status.lua" "expired_slots.lua"
        "flow_counters.lua" "check.lua";
    POLL = "room.lua" "slot_log.lua" "last_seen.lua" "status.lua" "poll.lua";
    LOCATE = "room.lua" "locate.lua";
    HOLDS_SLOT = "room.lua" "slot_log.lua" "last_seen.lua" "status.lua" "holds_slot.lua";
    LEAVE = "room.lua" "slot_log.lua" "last_seen.lua" "flow_counters.lua" "leave.lua";
    FINISH = "room.lua" "slot_log.lua" "finish.lua";
    ADMIT = "room.lua" "slot_log.lua" "last_seen.lua" "expired_slots.lua" "flow_counters.lua"
        "admit.lua";
    SWEEP = "room.lua" "flow_counters.lua" "sweep.lua";
    CLEAR = "room.lua" "slot_log.lua" "clear.lua";
    CROWD = "room.lua" "slot_log.lua" "expired_slots.lua" "flow_counters.lua" "crowd.lua";
    UNLIST = "room.lua" "slot_log.lua" "expired_slots.lua" "unlist.lua";
    ENTRANTS = "entrants.lua";
    RENUMBER = "renumber.lua";
    TAKE_CLEARED = "take_cleared.lua";
    LIST = "list.lua";
    READ_RESERVATIONS = "read_reservations.lua";
    RESERVE = "reserve.lua";
    RELEASE = "release.lua";
    VERIFY = "verify.lua";
    READ_SLOT_LOG = "read_slot_log.lua";
    READ_ROOM = "read_room.lua";
    RESTORE_ROOM = "room.lua" "restore_room.lua";
    RESTORE_LINE = "room.lua" "last_seen.lua" "restore_line.lua";
    RESTORE_SLOTS = "room.lua" "restore_slots.lua";
}
