//! Buckets in the memory of this process.
//!
//! A bucket is stored under a keyed hash of its name, so every bucket takes the same few bytes and
//! clients cannot choose names that collide. A drained bucket equals a missing one; a shard removes
//! drained buckets when it has doubled in size since the last sweep.
//!
//! Memory is bounded: a full shard creates no new buckets, and unknown names then share one bucket
//! per quota and shard. Buckets in use are never removed, so filling the memory with other names
//! does not reset anybody's limit; it only makes new names share one.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::gcra::{BucketUpdate, Gcra};

const SHARDS: usize = 256;
/// At most 34 bytes each: 34 MiB.
const BUCKETS_MAX: usize = 1 << 20;
const SWEEP_AT_MIN: usize = 64;

pub struct LocalBuckets {
    hasher: RandomState,
    shards: Vec<Mutex<BucketShard>>,
    buckets_per_shard_max: usize,
    overflowed: AtomicU64,
}

struct BucketShard {
    /// The time at which each bucket will be empty, in microseconds.
    buckets: HashMap<u64, i64, BuildHasherDefault<IdentityHasher>>,
    /// The number of buckets at which drained ones are removed.
    sweep_at: usize,
    /// How many new names a full shard refuses before the next sweep.
    refusals_left: usize,
}

/// The hash of the bucket that counted a request.
#[derive(Debug, Clone, Copy)]
pub struct BucketHash(u64);

impl LocalBuckets {
    pub fn new() -> LocalBuckets {
        LocalBuckets::with_buckets_max(BUCKETS_MAX)
    }

    fn with_buckets_max(buckets_max: usize) -> LocalBuckets {
        let shard = || BucketShard {
            buckets: HashMap::default(),
            sweep_at: SWEEP_AT_MIN,
            refusals_left: 0,
        };
        LocalBuckets {
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::new(shard())).collect(),
            buckets_per_shard_max: buckets_max.div_ceil(SHARDS),
            overflowed: AtomicU64::new(0),
        }
    }

    pub fn take(&self, bucket: &str, gcra: &Gcra, now_us: i64) -> (BucketUpdate, BucketHash) {
        let hash = self.hasher.hash_one(bucket);
        let mut shard = self.shard(hash);
        if let Some(empty_at_us) = shard.buckets.get_mut(&hash) {
            let update = gcra.take(Some(*empty_at_us), now_us);
            *empty_at_us = update.empty_at_us;
            return (update, BucketHash(hash));
        }
        let hash = if shard.has_room(self.buckets_per_shard_max, now_us) {
            hash
        } else {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            self.overflow_hash(hash, gcra)
        };
        let update = gcra.take(shard.buckets.get(&hash).copied(), now_us);
        shard.buckets.insert(hash, update.empty_at_us);
        (update, BucketHash(hash))
    }

    pub fn undo(&self, hash: BucketHash, gcra: &Gcra, update: &BucketUpdate, now_us: i64) {
        if let Some(empty_at_us) = self.shard(hash.0).buckets.get_mut(&hash.0) {
            *empty_at_us = gcra.undo(*empty_at_us, update, now_us);
        }
    }

    /// Stores what Redis decided, so that this process can continue from there.
    pub fn copy_from_redis(&self, bucket: &str, empty_at_us: i64, now_us: i64) {
        let hash = self.hasher.hash_one(bucket);
        let mut shard = self.shard(hash);
        if shard.buckets.contains_key(&hash) || shard.has_room(self.buckets_per_shard_max, now_us) {
            shard.buckets.insert(hash, empty_at_us);
        }
    }

    /// How many requests shared a bucket because memory was full.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// How many buckets are stored, drained ones included.
    pub fn buckets(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).buckets.len()).sum()
    }

    /// The shared bucket of a quota, in the same shard, which the low bits select.
    fn overflow_hash(&self, hash: u64, gcra: &Gcra) -> u64 {
        let common = self.hasher.hash_one((gcra.interval_us, gcra.tolerance_us));
        (common & !SHARD_BITS) | (hash & SHARD_BITS)
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, BucketShard> {
        let index = usize::try_from(hash & SHARD_BITS).expect("few bits");
        lock(&self.shards[index])
    }
}

const SHARD_BITS: u64 = SHARDS as u64 - 1;

fn lock(shard: &Mutex<BucketShard>) -> MutexGuard<'_, BucketShard> {
    shard.lock().expect("nothing panics while it holds this lock")
}

impl BucketShard {
    /// Whether one more bucket fits. A sweep visits all buckets, so a full shard sweeps only once
    /// per several new names even if nothing can be removed.
    fn has_room(&mut self, buckets_max: usize, now_us: i64) -> bool {
        if self.buckets.len() < self.sweep_at.min(buckets_max) {
            return true;
        }
        if self.refusals_left > 0 {
            self.refusals_left -= 1;
            return false;
        }
        self.buckets.retain(|_, empty_at_us| *empty_at_us > now_us);
        self.sweep_at = SWEEP_AT_MIN.max(2 * self.buckets.len());
        if self.buckets.len() < buckets_max / 4 {
            self.buckets.shrink_to(2 * self.buckets.len());
        }
        let has_room = self.buckets.len() < buckets_max;
        self.refusals_left = if has_room { 0 } else { buckets_max / 8 };
        has_room
    }
}

/// The keys are hashes already.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only hashes are keys");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        // The low bits are the same in a whole shard, and the map uses the lowest and the highest:
        // move them to the middle.
        self.0.rotate_left(32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gcra::Quota;
    use super::*;

    fn gcra(burst: u32) -> Gcra {
        Quota { per_minute: 60, burst }.gcra().unwrap()
    }

    #[test]
    fn drained_buckets_are_removed_as_new_ones_come() {
        let (buckets, gcra) = (LocalBuckets::new(), gcra(1));
        let second_us = 1_000_000;
        for moment in 0..200_000 {
            // A thousand new names a second, each drained after one second.
            assert!(buckets.take(&format!("name {moment}"), &gcra, moment * 1000).0.allowed);
        }
        let kept = buckets.buckets();
        assert!(kept < SHARDS * 2 * SWEEP_AT_MIN, "{kept}");
        assert!(!buckets.take("name 199999", &gcra, 199_999_000).0.allowed, "used buckets stay");
        assert!(buckets.take("name 199999", &gcra, 199_999_000 + second_us).0.allowed);
        assert_eq!(buckets.overflowed(), 0);
    }

    /// How many of `count` new names are allowed.
    fn take_new_names(buckets: &LocalBuckets, gcra: &Gcra, prefix: &str, count: usize) -> usize {
        let names = (0..count).map(|number| format!("{prefix} {number}"));
        names.filter(|name| buckets.take(name, gcra, 0).0.allowed).count()
    }

    #[test]
    fn filling_the_memory_resets_no_limit() {
        let (buckets, gcra) = (LocalBuckets::with_buckets_max(8 * SHARDS), gcra(3));
        for _ in 0..3 {
            assert!(buckets.take("attacker", &gcra, 0).0.allowed);
        }
        take_new_names(&buckets, &gcra, "filler", 50_000);
        assert!(!buckets.take("attacker", &gcra, 0).0.allowed);
        let bound = 8 * SHARDS + SHARDS;
        assert!(buckets.buckets() <= bound, "{} buckets", buckets.buckets());
    }

    #[test]
    fn new_names_share_a_bucket_when_memory_is_full() {
        let (buckets, gcra) = (LocalBuckets::with_buckets_max(8 * SHARDS), gcra(3));
        take_new_names(&buckets, &gcra, "filler", 50_000);
        assert!(buckets.overflowed() > 40_000);
        // The fillers used up the shared buckets when there was no more room.
        assert_eq!(take_new_names(&buckets, &gcra, "new", 1000), 0);
        let other_quota = Quota { per_minute: 600, burst: 3 }.gcra().unwrap();
        let let_through = take_new_names(&buckets, &other_quota, "new", 50_000);
        assert_eq!(let_through, 3 * SHARDS, "a bucket per quota and shard");

        // Control: with room, each name has its own bucket.
        assert_eq!(take_new_names(&LocalBuckets::new(), &gcra, "new", 1000), 1000);
    }

    #[test]
    fn a_full_memory_has_room_again_when_buckets_have_drained() {
        let (buckets, gcra) = (LocalBuckets::with_buckets_max(8 * SHARDS), gcra(1));
        take_new_names(&buckets, &gcra, "filler", 50_000);
        let later_us = 10_000_000;
        let before = buckets.overflowed();
        for number in 0..1000 {
            buckets.take(&format!("later {number}"), &gcra, later_us);
        }
        // Each shard refuses at most one more name before it sweeps.
        let refused = buckets.overflowed() - before;
        assert!(refused <= SHARDS as u64, "{refused}");
    }

    #[test]
    fn local_buckets_continue_where_redis_was() {
        let (buckets, gcra) = (LocalBuckets::new(), gcra(3));
        buckets.copy_from_redis("bucket", 2_000_000, 0);
        assert!(buckets.take("bucket", &gcra, 0).0.allowed, "two of three were update");
        assert!(!buckets.take("bucket", &gcra, 0).0.allowed);
    }
}
