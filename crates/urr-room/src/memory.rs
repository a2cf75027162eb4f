//! Rooms in the memory of one process, with a journal of every position and slot.
//!
//! Each event has one lock, held briefly: a position is found in logarithmic time. Longer work is
//! split into parts that release the lock in between, or done on a copy ([`draw_task`]). The lock
//! is never held across an await.
//!
//! An answer waits until the journal has it on disk ([`journal`]). When a user was last seen is not
//! journalled: after a restart everybody counts as seen at that moment.
//!
//! A user in the line takes about ninety bytes, one who left takes none.

mod draw_task;
mod fenwick;
mod flow_counters;
pub(crate) mod journal;
mod line;
mod pending_writes;
mod queue_counts;
mod recovery;
mod registry;
mod room;
mod slots;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use hashbrown::DefaultHashBuilder;
use tokio::task::JoinHandle;
use urr_kernel::{IdSource, Timestamp, Uuid};
use urr_storage::{Db, DbResult};

use self::draw_task::DrawNumbers;
use self::journal::Journal;
use self::pending_writes::Durability;
use self::queue_counts::QueueCounts;
use self::registry::RoomRegistry;
use self::room::{DrawnNumbers, MemoryRoom, RoomContext, SweepRequest};
use super::{
    Admission, AdmissionRules, ClearedCounts, Crowd, RoomError, RoomRequest, StatusSnapshot,
    UserLocation, UserStatus,
};

/// Bounds the work under one lock.
const ADMITTED_AT_ONCE_MAX: u32 = 512;
const LOCATED_AT_ONCE_MAX: usize = 512;
const SCANNED_AT_ONCE_MAX: usize = 4_096;

/// The rooms of all events. Clones share them.
#[derive(Clone)]
pub struct MemoryRooms {
    inner: Arc<Inner>,
}

struct Inner {
    rooms: RwLock<RoomRegistry>,
    /// The latest second of any request. It tells which rooms have been empty for long.
    second: AtomicI64,
    queue_counts: QueueCounts,
    journal: Arc<Journal>,
    writer: Mutex<Option<JoinHandle<()>>>,
    ids: IdSource,
    /// The last number of a room in the journal. A cleared room continues under a new number.
    last_room_number: AtomicI64,
    hasher: DefaultHashBuilder,
}

/// What the journal held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoverySummary {
    pub rooms: usize,
    pub waiting: u64,
    pub active: u64,
}

/// The memory of all rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage {
    pub waiting: u64,
    pub bytes: usize,
}

impl MemoryRooms {
    /// Recovers the rooms from the journal and continues it. Everybody counts as seen now.
    ///
    /// The journal belongs to this process alone. A task of the current runtime writes it.
    pub async fn open(
        journal: Db,
        ids: IdSource,
        now: Timestamp,
    ) -> DbResult<(MemoryRooms, RecoverySummary)> {
        let hasher = DefaultHashBuilder::default();
        let queue_counts = QueueCounts::new(hasher.clone());
        let found = recovery::recover(&journal, &hasher, &queue_counts, now).await?;
        let records = Arc::new(Journal::new());
        let writer = tokio::spawn(Arc::clone(&records).run(journal, found.retired_rooms));
        let inner = Inner {
            rooms: RwLock::new(found.registry),
            second: AtomicI64::new(now.as_second()),
            queue_counts,
            journal: records,
            writer: Mutex::new(Some(writer)),
            ids,
            last_room_number: AtomicI64::new(found.last_room_number),
            hasher,
        };
        Ok((MemoryRooms { inner: Arc::new(inner) }, found.recovered))
    }

    /// Writes the last changes and rejects later ones.
    pub async fn close(&self) {
        self.inner.journal.close();
        let writer = lock(&self.inner.writer).take();
        if let Some(writer) = writer {
            writer.await.unwrap_or_else(|error| tracing::error!(%error, "the journal failed"));
        }
    }

    /// Whether the journal can be written. While it cannot, nobody is admitted or joins.
    pub fn is_working(&self) -> bool {
        self.inner.journal.is_working()
    }

    /// Returns when the rooms are closed, or when the journal has failed for good: then the process
    /// should end and be restarted.
    pub async fn run_to_end(&self) {
        self.inner.journal.closed().await;
    }

    pub async fn check(
        &self,
        request: RoomRequest,
        rules: &AdmissionRules,
    ) -> Result<StatusSnapshot, RoomError> {
        let room = match self.find(request.event_id) {
            Some(room) => room,
            None => self.load(request.event_id),
        };
        self.note_time(request.now);
        let context = self.context();
        self.answer(&room, |room| room.check(request, rules, &context)).await
    }

    pub async fn poll(
        &self,
        request: RoomRequest,
        rules: &AdmissionRules,
    ) -> Result<StatusSnapshot, RoomError> {
        let Some(room) = self.find(request.event_id) else { return Ok(EMPTY_ROOM) };
        self.answer(&room, |room| Ok(room.poll(request, rules))).await
    }

    pub async fn holds_slot(
        &self,
        request: RoomRequest,
        slot_id: Uuid,
        rules: &AdmissionRules,
    ) -> Result<bool, RoomError> {
        let Some(room) = self.find(request.event_id) else { return Ok(false) };
        self.answer(&room, |room| Ok(room.holds(request, slot_id, rules))).await
    }

    pub async fn locate(
        &self,
        event_id: Uuid,
        users: &[Uuid],
        now: Timestamp,
    ) -> Result<Vec<UserLocation>, RoomError> {
        let Some(room) = self.find(event_id) else {
            return Ok(vec![UserLocation::Absent; users.len()]);
        };
        let journal = &self.inner.journal;
        let mut all = Vec::with_capacity(users.len());
        for some in users.chunks(LOCATED_AT_ONCE_MAX) {
            {
                let mut room = lock(&room);
                all.extend(room.locate(some, now));
                room.append_changes(journal);
            }
            tokio::task::yield_now().await;
        }
        // That a user has left must be on disk too: after a crash they might wait again.
        journal.wait(journal.newest_batch()).await?;
        Ok(all)
    }

    pub async fn leave(&self, request: RoomRequest) -> Result<bool, RoomError> {
        self.change(request.event_id, |room| room.leave(request, &self.inner.queue_counts)).await
    }

    pub async fn finish(
        &self,
        request: RoomRequest,
        bought_at: Timestamp,
    ) -> Result<bool, RoomError> {
        self.change(request.event_id, |room| room.finish(request, bought_at)).await
    }

    pub async fn admit(
        &self,
        event_id: Uuid,
        rules: &AdmissionRules,
        now: Timestamp,
    ) -> Result<Vec<Admission>, RoomError> {
        self.note_time(now);
        let context = self.context();
        let mut all = Vec::new();
        loop {
            let some = self
                .change(event_id, |room| room.admit(rules, now, ADMITTED_AT_ONCE_MAX, &context))
                .await?;
            let is_done = some.len() < ADMITTED_AT_ONCE_MAX as usize;
            all.extend(some);
            if is_done {
                return Ok(all);
            }
        }
    }

    pub async fn sweep(
        &self,
        event_id: Uuid,
        unseen_since: Timestamp,
        count_max: u32,
        now: Timestamp,
    ) -> Result<u32, RoomError> {
        let (mut count, mut last) = (0, None);
        loop {
            let sweep = SweepRequest {
                unseen_since,
                now,
                count_max: count_max - count,
                scanned_max: SCANNED_AT_ONCE_MAX,
            };
            let queue_counts = &self.inner.queue_counts;
            let swept =
                self.change(event_id, |room| Some(room.sweep(&sweep, last, queue_counts))).await?;
            let Some(swept) = swept else { return Ok(0) };
            count += swept.count;
            last = swept.last;
            if last.is_none() || count == count_max {
                return Ok(count);
            }
            tokio::task::yield_now().await;
        }
    }

    pub async fn clear(&self, event_id: Uuid, now: Timestamp) -> Result<ClearedCounts, RoomError> {
        let number = self.next_room_number();
        let inner = Arc::clone(&self.inner);
        let cleared = self.change(event_id, |room| {
            let (cleared, line) = room.clear(now, number);
            // A separate task, because it must finish even if the caller is cancelled.
            let uncounted = tokio::task::spawn_blocking(move || {
                line.behind(None).for_each(|entry| inner.queue_counts.remove(entry.user_id));
            });
            Some((cleared, uncounted))
        });
        let Some((cleared, uncounted)) = cleared.await? else {
            return Ok(ClearedCounts::default());
        };
        uncounted.await.map_err(|_| RoomError::Unavailable)?;
        Ok(cleared)
    }

    pub async fn crowd(&self, event_id: Uuid, now: Timestamp) -> Result<Crowd, RoomError> {
        let Some(room) = self.find(event_id) else {
            let pace = flow_counters::PaceHistory::new().pace(0, 0);
            let rooms = self.inner.rooms.read().expect(NO_PANIC);
            return Ok(match rooms.dormant(event_id) {
                None => Crowd { pace, ..Crowd::default() },
                Some(totals) => Crowd {
                    last_number: totals.last_number,
                    admitted_total: totals.admitted,
                    left_total: totals.left,
                    pace,
                    ..Crowd::default()
                },
            });
        };
        let journal = &self.inner.journal;
        let mut room = lock(&room);
        let crowd = room.crowd(now, journal.durable());
        room.append_changes(journal);
        Ok(crowd)
    }

    pub async fn occupied_events(&self) -> Result<Vec<Uuid>, RoomError> {
        let (occupied, empty): (Vec<_>, Vec<_>) = {
            let rooms = self.inner.rooms.read().expect(NO_PANIC);
            let asked =
                rooms.loaded().map(|(event_id, room)| (*event_id, lock(room).is_occupied()));
            asked.partition(|(_, is_occupied)| *is_occupied)
        };
        let event_ids = |asked: Vec<(Uuid, bool)>| asked.into_iter().map(|(event_id, _)| event_id);
        if !empty.is_empty() {
            let empty: Vec<Uuid> = event_ids(empty).collect();
            let (second, durable) = (&self.inner.second, self.inner.journal.durable());
            let mut rooms = self.inner.rooms.write().expect(NO_PANIC);
            rooms.unload(&empty, second.load(Ordering::Relaxed), durable);
        }
        Ok(event_ids(occupied).collect())
    }

    pub async fn entrants(&self, event_id: Uuid, last_number: i64) -> Result<Vec<Uuid>, RoomError> {
        let Some(room) = self.find(event_id) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        let mut last = None;
        loop {
            let some = lock(&room).entrants(last, last_number, SCANNED_AT_ONCE_MAX);
            all.extend(some.iter().map(|(_, user_id)| *user_id));
            last = some.last().copied();
            if some.len() < SCANNED_AT_ONCE_MAX {
                break;
            }
            tokio::task::yield_now().await;
        }
        let batch = self.inner.journal.newest_batch();
        self.inner.journal.wait(batch).await?;
        Ok(all)
    }

    pub async fn renumber(
        &self,
        event_id: Uuid,
        last_number: i64,
        drawn: &[(Uuid, i64)],
    ) -> Result<(), RoomError> {
        let Some(room) = self.find(event_id) else { return Ok(()) };
        let mut numbers =
            DrawnNumbers::with_capacity_and_hasher(drawn.len(), self.inner.hasher.clone());
        numbers.extend(drawn.iter().copied());
        let guard = lock(&room).draw_lock();
        let guard = guard.lock_owned().await;
        if !self.inner.journal.is_accepting() {
            return Err(RoomError::Unavailable);
        }
        let draw = DrawNumbers { numbers, last_number };
        let draw_task = tokio::spawn(draw_task::draw(Arc::clone(&self.inner), room, draw, guard));
        draw_task.await.map_err(|_| RoomError::Unavailable)?
    }

    /// The memory of all rooms.
    pub fn memory_usage(&self) -> MemoryUsage {
        let rooms = self.inner.rooms.read().expect(NO_PANIC);
        let mut memory_usage = MemoryUsage { waiting: 0, bytes: self.inner.queue_counts.bytes() };
        memory_usage.bytes += rooms.dormant_bytes();
        for (_, room) in rooms.loaded() {
            let room = lock(room);
            memory_usage.waiting += u64::from(room.waiting());
            memory_usage.bytes += room.bytes();
        }
        memory_usage
    }

    /// Runs a request under the lock, and waits until the change on which its answer depends is on
    /// disk.
    async fn answer<T>(
        &self,
        room: &Mutex<MemoryRoom>,
        request: impl FnOnce(&mut MemoryRoom) -> Result<(T, Durability), RoomError>,
    ) -> Result<T, RoomError> {
        let journal = &self.inner.journal;
        let (answer, batch) = {
            let mut room = lock(room);
            let answer = request(&mut room);
            room.append_changes(journal);
            let (answer, durability) = answer?;
            (answer, room.batch_of(durability, journal.durable()))
        };
        journal.wait(batch).await?;
        Ok(answer)
    }

    /// Changes a room, if it exists and the journal accepts it, and waits until the change is on
    /// disk.
    async fn change<T: Default>(
        &self,
        event_id: Uuid,
        change: impl FnOnce(&mut MemoryRoom) -> T,
    ) -> Result<T, RoomError> {
        let Some(room) = self.find(event_id) else { return Ok(T::default()) };
        let journal = &self.inner.journal;
        if !journal.is_accepting() {
            return Err(RoomError::Unavailable);
        }
        let (changed, batch) = {
            let mut room = lock(&room);
            let changed = change(&mut room);
            (changed, room.append_changes(journal))
        };
        journal.wait(batch).await?;
        Ok(changed)
    }

    fn context(&self) -> RoomContext<'_> {
        let Inner { queue_counts, ids, journal, .. } = &*self.inner;
        RoomContext { queue_counts, ids, is_accepting: journal.is_accepting() }
    }

    fn find(&self, event_id: Uuid) -> Option<Arc<Mutex<MemoryRoom>>> {
        self.inner.rooms.read().expect(NO_PANIC).find(event_id)
    }

    fn load(&self, event_id: Uuid) -> Arc<Mutex<MemoryRoom>> {
        let mut rooms = self.inner.rooms.write().expect(NO_PANIC);
        rooms.load(event_id, || self.next_room_number(), &self.inner.hasher)
    }

    fn note_time(&self, now: Timestamp) {
        let (second, noted) = (now.as_second(), &self.inner.second);
        if noted.load(Ordering::Relaxed) != second {
            noted.store(second, Ordering::Relaxed);
        }
    }

    fn next_room_number(&self) -> i64 {
        self.inner.last_room_number.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.journal.close();
    }
}

const EMPTY_ROOM: StatusSnapshot =
    StatusSnapshot { status: UserStatus::Absent, waiting: 0, active: 0, is_just_admitted: false };

const NO_PANIC: &str = "nothing panics while it holds this lock";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(NO_PANIC)
}
