//! Buckets in memory.
//!
//! A bucket is kept under a keyed hash of its name, so each takes the same few bytes whatever its
//! name is, and nobody can choose names that collide. A bucket that has drained means the same as
//! none; a shard removes those when it has doubled since it last did.
//!
//! Memory is bounded: a full shard makes no new buckets. Names that it does not know then share one
//! bucket per quota and shard. Buckets in use are never removed, so filling the memory with other
//! names does not get anyone rid of a limit; it only makes strangers wait for each other.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::pace::{Pace, Taken};

const SHARDS: usize = 256;
/// At most 34 bytes each, so 34 MiB.
const BUCKETS_MAX: usize = 1 << 20;
const SWEPT_FROM: usize = 64;

/// Many buckets.
pub(crate) struct Memory {
    names: RandomState,
    shards: Vec<Mutex<Shard>>,
    buckets_per_shard_max: usize,
    overflowed: AtomicU64,
}

struct Shard {
    /// When each bucket will be empty.
    buckets: HashMap<u64, i64, BuildHasherDefault<AsItIs>>,
    /// How many buckets there may be before the drained ones are looked for.
    sweep_at: usize,
    /// How many names may yet be turned away before a full shard looks again.
    turn_away: usize,
}

/// The bucket that a request was taken from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(u64);

impl Memory {
    pub fn new() -> Memory {
        Memory::with_buckets_max(BUCKETS_MAX)
    }

    fn with_buckets_max(buckets_max: usize) -> Memory {
        let shard = || Shard { buckets: HashMap::default(), sweep_at: SWEPT_FROM, turn_away: 0 };
        Memory {
            names: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            buckets_per_shard_max: buckets_max.div_ceil(SHARDS),
            overflowed: AtomicU64::new(0),
        }
    }

    pub fn take(&self, bucket: &str, pace: &Pace, now_us: i64) -> (Taken, Place) {
        let place = self.names.hash_one(bucket);
        let mut shard = self.shard(place);
        if let Some(empty_at_us) = shard.buckets.get_mut(&place) {
            let taken = pace.take(Some(*empty_at_us), now_us);
            *empty_at_us = taken.empty_at_us;
            return (taken, Place(place));
        }
        let place = if shard.has_room(self.buckets_per_shard_max, now_us) {
            place
        } else {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            self.overflow_place(place, pace)
        };
        let taken = pace.take(shard.buckets.get(&place).copied(), now_us);
        shard.buckets.insert(place, taken.empty_at_us);
        (taken, Place(place))
    }

    pub fn give_back(&self, place: Place, pace: &Pace, taken: &Taken, now_us: i64) {
        if let Some(empty_at_us) = self.shard(place.0).buckets.get_mut(&place.0) {
            *empty_at_us = pace.give_back(*empty_at_us, taken, now_us);
        }
    }

    /// Notes what was decided elsewhere, so that we can go on from there.
    pub fn follow(&self, bucket: &str, empty_at_us: i64, now_us: i64) {
        let place = self.names.hash_one(bucket);
        let mut shard = self.shard(place);
        if shard.buckets.contains_key(&place) || shard.has_room(self.buckets_per_shard_max, now_us)
        {
            shard.buckets.insert(place, empty_at_us);
        }
    }

    /// How many requests found no bucket of their own because memory was full.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// How many buckets are kept, drained ones included.
    pub fn buckets(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).buckets.len()).sum()
    }

    /// The bucket of strangers, in the same shard: the shard follows from the low bits.
    fn overflow_place(&self, place: u64, pace: &Pace) -> u64 {
        let common = self.names.hash_one((pace.interval_us, pace.tolerance_us));
        (common & !SHARD_BITS) | (place & SHARD_BITS)
    }

    fn shard(&self, place: u64) -> MutexGuard<'_, Shard> {
        let index = usize::try_from(place & SHARD_BITS).expect("few bits");
        lock(&self.shards[index])
    }
}

const SHARD_BITS: u64 = SHARDS as u64 - 1;

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().expect("nothing panics while it holds this lock")
}

impl Shard {
    /// Whether one more bucket may be made. Looking for drained ones takes as long as there are
    /// buckets, so it is done once per so many new names, also when nothing can be removed.
    fn has_room(&mut self, buckets_max: usize, now_us: i64) -> bool {
        if self.buckets.len() < self.sweep_at.min(buckets_max) {
            return true;
        }
        if self.turn_away > 0 {
            self.turn_away -= 1;
            return false;
        }
        self.buckets.retain(|_, empty_at_us| *empty_at_us > now_us);
        self.sweep_at = SWEPT_FROM.max(2 * self.buckets.len());
        if self.buckets.len() < buckets_max / 4 {
            self.buckets.shrink_to(2 * self.buckets.len());
        }
        let has_room = self.buckets.len() < buckets_max;
        self.turn_away = if has_room { 0 } else { buckets_max / 8 };
        has_room
    }
}

/// Places are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only places are hashed");
    }

    fn write_u64(&mut self, place: u64) {
        self.0 = place;
    }

    fn finish(&self) -> u64 {
        // The low bits are the same in a whole shard. The map looks at the lowest and the highest:
        // put them in the middle.
        self.0.rotate_left(32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Quota;

    fn pace(burst: u32) -> Pace {
        Quota { per_minute: 60, burst }.pace().unwrap()
    }

    #[test]
    fn drained_buckets_are_removed_while_others_come() {
        let (memory, pace) = (Memory::new(), pace(1));
        let second_us = 1_000_000;
        for moment in 0..200_000 {
            // A thousand new names a second, each drained after one second.
            assert!(memory.take(&format!("name {moment}"), &pace, moment * 1000).0.allowed);
        }
        let kept = memory.buckets();
        assert!(kept < SHARDS * 2 * SWEPT_FROM, "{kept}");
        assert!(!memory.take("name 199999", &pace, 199_999_000).0.allowed, "used buckets stay");
        assert!(memory.take("name 199999", &pace, 199_999_000 + second_us).0.allowed);
        assert_eq!(memory.overflowed(), 0);
    }

    /// How many of so many new names are let through.
    fn take_new_names(memory: &Memory, pace: &Pace, prefix: &str, count: usize) -> usize {
        let names = (0..count).map(|number| format!("{prefix} {number}"));
        names.filter(|name| memory.take(name, pace, 0).0.allowed).count()
    }

    #[test]
    fn filling_the_memory_gets_nobody_rid_of_a_limit() {
        let (memory, pace) = (Memory::with_buckets_max(8 * SHARDS), pace(3));
        for _ in 0..3 {
            assert!(memory.take("attacker", &pace, 0).0.allowed);
        }
        take_new_names(&memory, &pace, "filler", 50_000);
        assert!(!memory.take("attacker", &pace, 0).0.allowed);
        let bound = 8 * SHARDS + SHARDS;
        assert!(memory.buckets() <= bound, "{} buckets", memory.buckets());
    }

    #[test]
    fn strangers_share_a_bucket_when_memory_is_full() {
        let (memory, pace) = (Memory::with_buckets_max(8 * SHARDS), pace(3));
        take_new_names(&memory, &pace, "filler", 50_000);
        assert!(memory.overflowed() > 40_000);
        // The fillers were strangers too when there was no more room: nothing is left.
        assert_eq!(take_new_names(&memory, &pace, "stranger", 1000), 0);
        let other_quota = Quota { per_minute: 600, burst: 3 }.pace().unwrap();
        let let_through = take_new_names(&memory, &other_quota, "stranger", 50_000);
        assert_eq!(let_through, 3 * SHARDS, "a bucket per quota and shard");

        // The control: with room, each has its own.
        assert_eq!(take_new_names(&Memory::new(), &pace, "stranger", 1000), 1000);
    }

    #[test]
    fn a_full_memory_has_room_again_when_buckets_have_drained() {
        let (memory, pace) = (Memory::with_buckets_max(8 * SHARDS), pace(1));
        take_new_names(&memory, &pace, "filler", 50_000);
        let later_us = 10_000_000;
        let before = memory.overflowed();
        for number in 0..1000 {
            memory.take(&format!("later {number}"), &pace, later_us);
        }
        // Each shard turns at most one more away before it looks again.
        let turned_away = memory.overflowed() - before;
        assert!(turned_away <= SHARDS as u64, "{turned_away}");
    }

    #[test]
    fn what_redis_said_is_where_memory_goes_on() {
        let (memory, pace) = (Memory::new(), pace(3));
        memory.follow("bucket", 2_000_000, 0);
        assert!(memory.take("bucket", &pace, 0).0.allowed, "two of three were taken");
        assert!(!memory.take("bucket", &pace, 0).0.allowed);
    }
}
