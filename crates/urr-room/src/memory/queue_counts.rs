//! In how many lines each user waits.

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard};

use hashbrown::{DefaultHashBuilder, HashTable};
use urr_kernel::Uuid;

use super::lock;

const SHARDS: usize = 64;

/// Exact, over all rooms. Lock order: the room first, then a shard.
pub struct QueueCounts {
    hasher: DefaultHashBuilder,
    shards: Box<[Mutex<HashTable<UserQueueCount>>]>,
}

/// Seventeen bytes: an id has no alignment.
struct UserQueueCount {
    user_id: Uuid,
    count: u8,
}

impl QueueCounts {
    pub fn new(hasher: DefaultHashBuilder) -> QueueCounts {
        QueueCounts { hasher, shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Adds a line, unless the user waits in as many as allowed.
    pub fn add(&self, user_id: Uuid, count_max: u32) -> bool {
        let hash = self.hasher.hash_one(user_id);
        let mut shard = self.shard(hash);
        let Some(counted) = shard.find_mut(hash, |counted| counted.user_id == user_id) else {
            if count_max > 0 {
                let counted = UserQueueCount { user_id, count: 1 };
                shard.insert_unique(hash, counted, |other| self.hasher.hash_one(other.user_id));
            }
            return count_max > 0;
        };
        let is_free = u32::from(counted.count) < count_max.min(u32::from(u8::MAX));
        counted.count += u8::from(is_free);
        is_free
    }

    /// Adds a line that was recovered, whatever the limit is now.
    pub fn restore(&self, user_id: Uuid) {
        self.add(user_id, u32::MAX);
    }

    pub fn remove(&self, user_id: Uuid) {
        let hash = self.hasher.hash_one(user_id);
        let mut shard = self.shard(hash);
        let found = shard.find_entry(hash, |counted| counted.user_id == user_id);
        let mut counted = found.unwrap_or_else(|_| panic!("who waits is counted"));
        counted.get_mut().count -= 1;
        if counted.get().count > 0 {
            return;
        }
        counted.remove();
        if shard.len() < shard.capacity() / 8 {
            let room = 2 * shard.len();
            shard.shrink_to(room, |other| self.hasher.hash_one(other.user_id));
        }
    }

    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).allocation_size()).sum()
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, HashTable<UserQueueCount>> {
        lock(&self.shards[(hash >> 40) as usize % SHARDS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_waits_in_no_more_lines_than_allowed() {
        let queue_counts = QueueCounts::new(DefaultHashBuilder::default());
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(!queue_counts.add(one, 0));
        assert!((0..3).all(|_| queue_counts.add(one, 3)));
        assert!(!queue_counts.add(one, 3));
        assert!(queue_counts.add(other, 3), "everybody is counted alone");
        queue_counts.remove(one);
        assert!(queue_counts.add(one, 3));
        assert!(!queue_counts.add(one, 2), "a limit that was lowered");
    }

    #[test]
    fn those_who_left_every_line_take_no_memory() {
        let queue_counts = QueueCounts::new(DefaultHashBuilder::default());
        let all = || (0..100_000).map(Uuid::from_u128);
        assert!(all().all(|user_id| queue_counts.add(user_id, 1)));
        let full = queue_counts.bytes();
        assert!(full < 100_000 * 40, "{full}");
        all().for_each(|user_id| queue_counts.remove(user_id));
        assert!(queue_counts.bytes() < full / 100, "{}", queue_counts.bytes());
    }
}
