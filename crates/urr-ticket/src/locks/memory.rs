//! Seat locks in the memory of one process.
//!
//! All locks of an event are in one shard, so that several seats are locked in one step. Rejecting
//! a request reads one map under one mutex.
//!
//! Memory is bounded: once a second a caller removes the expired locks of the next shard, and
//! beyond [`LOCKS_MAX`] no more locks are made, so that the database decides.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use urr_kernel::{Clock, Uuid};
use urr_layout::SeatId;

use crate::locks::{DECIDING_TTL, LockResult};

const SHARDS: usize = 64;
const SWEEP_EVERY_US: i64 = 1_000_000;
/// About a hundred bytes each, so 50 MiB.
const LOCKS_MAX: usize = 1 << 19;

pub(crate) struct MemoryLocks {
    clock: Clock,
    names: RandomState,
    shards: Vec<Mutex<Shard>>,
    /// In all shards, expired locks included.
    count: AtomicUsize,
    count_max: usize,
    next_sweep_at_us: AtomicI64,
    next_sweep_shard: AtomicUsize,
}

type Shard = HashMap<(Uuid, SeatId), SeatLock>;

struct SeatLock {
    holder: Uuid,
    state: LockState,
    over_at_us: i64,
}

#[derive(PartialEq, Eq)]
enum LockState {
    Deciding { attempt: Uuid },
    Kept { token: i64 },
}

impl MemoryLocks {
    pub fn new(clock: Clock) -> MemoryLocks {
        MemoryLocks::with_count_max(clock, LOCKS_MAX)
    }

    fn with_count_max(clock: Clock, count_max: usize) -> MemoryLocks {
        MemoryLocks {
            clock,
            names: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            count: AtomicUsize::new(0),
            count_max,
            next_sweep_at_us: AtomicI64::new(i64::MIN),
            next_sweep_shard: AtomicUsize::new(0),
        }
    }

    pub fn acquire(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        holder: Uuid,
        attempt: Uuid,
    ) -> LockResult {
        let now_us = self.now_us();
        self.sweep_if_due(now_us);
        let mut shard = self.shard_of(event_id);
        for seat_id in seat_ids {
            let lock = shard.get(&(event_id, *seat_id)).filter(|lock| lock.over_at_us > now_us);
            if let Some(lock) = lock.filter(|lock| lock.holder != holder) {
                return LockResult::Refused { seat_id: *seat_id, token: lock.state.token() };
            }
        }
        if !self.has_room(seat_ids.len()) {
            return LockResult::Unknown;
        }
        for seat_id in seat_ids {
            let key = (event_id, *seat_id);
            if shard.get(&key).is_none_or(|lock| lock.over_at_us <= now_us) {
                let over_at_us = after(now_us, DECIDING_TTL);
                self.put(
                    &mut shard,
                    key,
                    SeatLock { holder, state: LockState::Deciding { attempt }, over_at_us },
                );
            }
        }
        LockResult::Acquired
    }

    pub fn confirm(
        &self,
        event_id: Uuid,
        seat_ids: &[SeatId],
        holder: Uuid,
        token: i64,
        ttl: Duration,
    ) {
        let now_us = self.now_us();
        self.sweep_if_due(now_us);
        if !self.has_room(seat_ids.len()) {
            return;
        }
        let mut shard = self.shard_of(event_id);
        for seat_id in seat_ids {
            let key = (event_id, *seat_id);
            let current = shard.get(&key).filter(|lock| lock.over_at_us > now_us);
            let is_stale = current.and_then(|lock| lock.state.token()).is_some_and(|at| at > token);
            if !is_stale {
                let over_at_us = after(now_us, ttl);
                self.put(
                    &mut shard,
                    key,
                    SeatLock { holder, state: LockState::Kept { token }, over_at_us },
                );
            }
        }
    }

    pub fn abandon(&self, event_id: Uuid, seat_ids: &[SeatId], attempt: Uuid) {
        self.remove_marked(event_id, seat_ids, &LockState::Deciding { attempt });
    }

    pub fn release(&self, event_id: Uuid, seat_ids: &[SeatId], token: i64) {
        self.remove_marked(event_id, seat_ids, &LockState::Kept { token });
    }

    fn remove_marked(&self, event_id: Uuid, seat_ids: &[SeatId], state: &LockState) {
        let mut shard = self.shard_of(event_id);
        for seat_id in seat_ids {
            let key = (event_id, *seat_id);
            if shard.get(&key).is_some_and(|lock| lock.state == *state) {
                shard.remove(&key);
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    fn put(&self, shard: &mut Shard, key: (Uuid, SeatId), lock: SeatLock) {
        if shard.insert(key, lock).is_none() {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn has_room(&self, more: usize) -> bool {
        self.count.load(Ordering::Relaxed) + more <= self.count_max
    }

    /// Removes expired locks from one shard, at most once a second.
    fn sweep_if_due(&self, now_us: i64) {
        let due_at_us = self.next_sweep_at_us.load(Ordering::Relaxed);
        let next_at_us = now_us + SWEEP_EVERY_US;
        // A clock that was set back must not put the next sweep off for hours.
        let is_due = now_us >= due_at_us || due_at_us > next_at_us;
        let (order, next) = (Ordering::Relaxed, &self.next_sweep_at_us);
        if !is_due || next.compare_exchange(due_at_us, next_at_us, order, order).is_err() {
            return;
        }
        let number = self.next_sweep_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut shard = lock(&self.shards[number]);
        let before = shard.len();
        shard.retain(|_, lock| lock.over_at_us > now_us);
        self.count.fetch_sub(before - shard.len(), Ordering::Relaxed);
        if shard.len() < shard.capacity() / 8 {
            let room = 2 * shard.len();
            shard.shrink_to(room);
        }
    }

    fn now_us(&self) -> i64 {
        self.clock.now().as_microsecond()
    }

    fn shard_of(&self, event_id: Uuid) -> MutexGuard<'_, Shard> {
        let hash = self.names.hash_one(event_id) % (SHARDS as u64);
        lock(&self.shards[usize::try_from(hash).expect("it is below the number of shards")])
    }
}

impl LockState {
    fn token(&self) -> Option<i64> {
        match self {
            LockState::Deciding { .. } => None,
            LockState::Kept { token } => Some(*token),
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().expect("nothing panics while it holds this lock")
}

fn after(now_us: i64, ttl: Duration) -> i64 {
    now_us.saturating_add(i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use urr_kernel::Timestamp;

    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn locks(memory: &MemoryLocks) -> usize {
        let kept = memory.shards.iter().map(|shard| lock(shard).len()).sum();
        assert_eq!(memory.count.load(Ordering::Relaxed), kept, "the count is true");
        kept
    }

    #[test]
    fn locks_that_are_over_are_removed_while_others_come() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let memory = MemoryLocks::new(clock.clone());
        for number in 0..20_000 {
            // A hundred new locks a second, each over after ten.
            clock.advance(Duration::from_millis(10));
            let taken = memory.acquire(
                id(number % 300),
                &[u32::try_from(number).unwrap()],
                id(1),
                id(number),
            );
            assert_eq!(taken, LockResult::Acquired);
        }
        // Live locks, and those that expired since the last round through the shards.
        let kept = locks(&memory);
        assert!((1_000..100 * (10 + SHARDS + 1)).contains(&kept), "{kept}");
        memory.abandon(id(19_999 % 300), &[19_999], id(19_999));
        assert_eq!(locks(&memory), kept - 1);
    }

    #[test]
    fn a_full_memory_asks_the_database_until_there_is_room() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let memory = MemoryLocks::with_count_max(clock.clone(), 3);
        assert_eq!(memory.acquire(id(1), &[0, 1], id(1), id(1)), LockResult::Acquired);
        assert_eq!(memory.acquire(id(1), &[2, 3], id(2), id(2)), LockResult::Unknown);
        memory.confirm(id(1), &[2, 3], id(2), 7, Duration::from_secs(60));
        assert_eq!(locks(&memory), 2, "all or none");
        let refused = LockResult::Refused { seat_id: 1, token: None };
        assert_eq!(
            memory.acquire(id(1), &[1, 2, 3], id(2), id(3)),
            refused,
            "what stands is known"
        );
        for _ in 0..=SHARDS {
            clock.advance(DECIDING_TTL);
            memory.sweep_if_due(memory.now_us());
        }
        assert_eq!(memory.acquire(id(1), &[1, 2, 3], id(2), id(4)), LockResult::Acquired);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_the_sweeping() {
        let clock = Clock::manual("2026-12-01T00:00:00Z".parse().unwrap());
        let memory = MemoryLocks::new(clock);
        let day_us = 86_400_000_000;
        memory.sweep_if_due(day_us);
        memory.sweep_if_due(0);
        assert_eq!(memory.next_sweep_at_us.load(Ordering::Relaxed), SWEEP_EVERY_US);
    }
}
