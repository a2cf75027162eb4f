//! The scripts. Those of a room begin with the parts they need.

use std::sync::LazyLock;

use urr_redis::Script;

macro_rules! scripts {
    ($($name:ident = $($file:literal)+;)*) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!($file), "\n"),+)));)*
    };
}

scripts! {
    CHECK = "room.lua" "seen.lua" "standing.lua" "ends.lua" "pace.lua" "check.lua";
    LOOK = "room.lua" "seen.lua" "standing.lua" "look.lua";
    LOCATE = "room.lua" "locate.lua";
    HOLDS = "room.lua" "seen.lua" "standing.lua" "holds.lua";
    LEAVE = "room.lua" "seen.lua" "pace.lua" "leave.lua";
    FINISH = "room.lua" "finish.lua";
    ADMIT = "room.lua" "seen.lua" "ends.lua" "pace.lua" "admit.lua";
    SWEEP = "room.lua" "pace.lua" "sweep.lua";
    CLEAR = "room.lua" "clear.lua";
    CROWD = "room.lua" "ends.lua" "pace.lua" "crowd.lua";
    UNLIST = "room.lua" "ends.lua" "unlist.lua";
    ENTRANTS = "entrants.lua";
    RENUMBER = "renumber.lua";
    TAKE = "take.lua";
    LIST = "list.lua";
    PEEK = "peek.lua";
    RESERVE = "reserve.lua";
    RELEASE = "release.lua";
    VERIFY = "verify.lua";
}
