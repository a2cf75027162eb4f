//! Rooms in the memory of one process, with every place and slot in a journal.
//!
//! Each event has one lock, held for a moment: a position is found in steps that grow with the
//! digits of the crowd's size. Whatever would take longer is done in parts, others having their
//! turn in between, or beside the room ([`drawing`]). The lock is never held while anything is
//! awaited.
//!
//! An answer is given when the journal has on disk what it says ([`journal`]). When someone was
//! last seen is not written down: after a restart everybody counts as seen at that moment.
//!
//! Memory stays bounded: a person in line takes about ninety bytes, one who left takes none.

mod drawing;
mod journal;
mod known;
mod line;
mod locating;
mod marks;
mod pace;
mod queues;
mod recovery;
mod room;
mod slots;
mod sums;
mod unwritten;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};

use hashbrown::DefaultHashBuilder;
use tokio::task::JoinHandle;
use urr_kernel::{IdSource, Timestamp, Uuid};
use urr_storage::{Db, StorageError};

use self::drawing::Draw;
use self::journal::Journal;
use self::known::Known;
use self::queues::Queues;
use self::room::{Drawn, Room, Surroundings, Sweep, Told};
use super::{Admitted, Ask, Cleared, Crowd, RoomError, Rules, Seen, Standing};

/// So many are let in, looked at or copied while a lock is held once.
const ADMITTED_AT_ONCE_MAX: u32 = 512;
const LOOKED_AT_ONCE_MAX: usize = 4_096;

/// The rooms of all events. Clones share them.
#[derive(Clone)]
pub struct MemoryRooms {
    shared: Arc<Shared>,
}

struct Shared {
    rooms: RwLock<Known>,
    /// The second that was told last: which rooms have been empty for long.
    second: AtomicI64,
    queues: Queues,
    journal: Arc<Journal>,
    writer: Mutex<Option<JoinHandle<()>>>,
    ids: IdSource,
    /// For the journal, where a room that was cleared goes on under a new one.
    last_room_number: AtomicI64,
    hasher: DefaultHashBuilder,
}

/// What was found in the journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    pub rooms: usize,
    pub waiting: u64,
    pub active: u64,
}

/// What the rooms take in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    pub waiting: u64,
    pub bytes: usize,
}

impl MemoryRooms {
    /// Reads the journal and goes on with it. Everybody counts as seen now.
    ///
    /// The journal belongs to this process alone; it is written by a task of the present runtime.
    pub async fn open(
        journal: Db,
        ids: IdSource,
        now: Timestamp,
    ) -> Result<(MemoryRooms, Recovered), StorageError> {
        let hasher = DefaultHashBuilder::default();
        let queues = Queues::new(hasher.clone());
        let found = recovery::recover(&journal, &hasher, &queues, now).await?;
        let records = Arc::new(Journal::new());
        let writer = tokio::spawn(Arc::clone(&records).run(journal, found.left_rooms));
        let shared = Shared {
            rooms: RwLock::new(found.known),
            second: AtomicI64::new(now.as_second()),
            queues,
            journal: records,
            writer: Mutex::new(Some(writer)),
            ids,
            last_room_number: AtomicI64::new(found.last_room_number),
            hasher,
        };
        Ok((MemoryRooms { shared: Arc::new(shared) }, found.recovered))
    }

    /// Writes the last changes down. Later ones are refused.
    pub async fn close(&self) {
        self.shared.journal.close();
        let writer = lock(&self.shared.writer).take();
        if let Some(writer) = writer {
            writer.await.unwrap_or_else(|error| tracing::error!(%error, "the journal had failed"));
        }
    }

    /// Whether what happens is written down. While it is not, nobody is let in or lined up.
    pub fn is_working(&self) -> bool {
        self.shared.journal.is_working()
    }

    /// Returns when the rooms are closed, or when they can never be written down again: then the
    /// process should end, since only a new one helps.
    pub async fn run_to_end(&self) {
        self.shared.journal.ended().await;
    }

    pub async fn check(&self, ask: Ask, rules: &Rules) -> Result<Seen, RoomError> {
        let room = match self.find(ask.event_id) {
            Some(room) => room,
            None => self.wake(ask.event_id),
        };
        self.note_time(ask.now);
        let around = self.surroundings();
        let (told, batch) = self.tell(&room, |room| room.check(ask, rules, &around));
        self.shared.journal.wait(batch).await?;
        told.map(|told| told.seen)
    }

    pub async fn look(&self, ask: Ask, rules: &Rules) -> Result<Seen, RoomError> {
        let Some(room) = self.find(ask.event_id) else { return Ok(NOBODY) };
        let (told, batch) = self.tell(&room, |room| Ok(room.look(ask, rules)));
        self.shared.journal.wait(batch).await?;
        told.map(|told| told.seen)
    }

    pub async fn holds_slot(
        &self,
        ask: Ask,
        slot_id: Uuid,
        rules: &Rules,
    ) -> Result<bool, RoomError> {
        let Some(room) = self.find(ask.event_id) else { return Ok(false) };
        let journal = &self.shared.journal;
        let (holds, batch) = {
            let mut room = lock(&room);
            let (holds, basis) = room.holds(ask, slot_id, rules);
            room.hand_over(journal);
            (holds, room.batch_of(basis, journal.durable()))
        };
        journal.wait(batch).await?;
        Ok(holds)
    }

    pub async fn leave(&self, ask: Ask) -> Result<bool, RoomError> {
        self.change(ask.event_id, |room| room.leave(ask, &self.shared.queues)).await
    }

    pub async fn finish(&self, ask: Ask, bought_at: Timestamp) -> Result<bool, RoomError> {
        self.change(ask.event_id, |room| room.finish(ask, bought_at)).await
    }

    pub async fn admit(
        &self,
        event_id: Uuid,
        rules: &Rules,
        now: Timestamp,
    ) -> Result<Vec<Admitted>, RoomError> {
        self.note_time(now);
        let around = self.surroundings();
        let mut all = Vec::new();
        loop {
            let some = self
                .change(event_id, |room| room.admit(rules, now, ADMITTED_AT_ONCE_MAX, &around))
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
            let sweep = Sweep {
                unseen_since,
                now,
                count_max: count_max - count,
                looked_at_max: LOOKED_AT_ONCE_MAX,
            };
            let queues = &self.shared.queues;
            let swept =
                self.change(event_id, |room| Some(room.sweep(&sweep, last, queues))).await?;
            let Some(swept) = swept else { return Ok(0) };
            count += swept.count;
            last = swept.last;
            if last.is_none() || count == count_max {
                return Ok(count);
            }
            tokio::task::yield_now().await;
        }
    }

    pub async fn clear(&self, event_id: Uuid, now: Timestamp) -> Result<Cleared, RoomError> {
        let number = self.next_room_number();
        let shared = Arc::clone(&self.shared);
        let cleared = self.change(event_id, |room| {
            let (cleared, line) = room.clear(now, number);
            // A task of its own: it must be done to the end, whoever stops waiting for it.
            let uncounted = tokio::task::spawn_blocking(move || {
                line.behind(None).for_each(|entry| shared.queues.remove(entry.user_id));
            });
            Some((cleared, uncounted))
        });
        let Some((cleared, uncounted)) = cleared.await? else { return Ok(Cleared::default()) };
        uncounted.await.map_err(|_| RoomError::Unavailable)?;
        Ok(cleared)
    }

    pub async fn crowd(&self, event_id: Uuid, now: Timestamp) -> Result<Crowd, RoomError> {
        let Some(room) = self.find(event_id) else {
            let pace = pace::Recent::new().pace(0);
            let rooms = self.shared.rooms.read().expect(NO_PANIC);
            return Ok(match rooms.resting(event_id) {
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
        let journal = &self.shared.journal;
        let mut room = lock(&room);
        let crowd = room.crowd(now, journal.durable());
        room.hand_over(journal);
        Ok(crowd)
    }

    pub async fn events(&self) -> Result<Vec<Uuid>, RoomError> {
        let (occupied, empty): (Vec<_>, Vec<_>) = {
            let rooms = self.shared.rooms.read().expect(NO_PANIC);
            let asked = rooms.awake().map(|(event_id, room)| (*event_id, lock(room).is_occupied()));
            asked.partition(|(_, is_occupied)| *is_occupied)
        };
        let event_ids = |asked: Vec<(Uuid, bool)>| asked.into_iter().map(|(event_id, _)| event_id);
        if !empty.is_empty() {
            let empty: Vec<Uuid> = event_ids(empty).collect();
            let (second, durable) = (&self.shared.second, self.shared.journal.durable());
            let mut rooms = self.shared.rooms.write().expect(NO_PANIC);
            rooms.rest(&empty, second.load(Ordering::Relaxed), durable);
        }
        Ok(event_ids(occupied).collect())
    }

    pub async fn entrants(&self, event_id: Uuid, last_number: i64) -> Result<Vec<Uuid>, RoomError> {
        let Some(room) = self.find(event_id) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        let mut last = None;
        loop {
            let some = lock(&room).entrants(last, last_number, LOOKED_AT_ONCE_MAX);
            all.extend(some.iter().map(|(_, user_id)| *user_id));
            last = some.last().copied();
            if some.len() < LOOKED_AT_ONCE_MAX {
                break;
            }
            tokio::task::yield_now().await;
        }
        let batch = self.shared.journal.newest_batch();
        self.shared.journal.wait(batch).await?;
        Ok(all)
    }

    pub async fn renumber(
        &self,
        event_id: Uuid,
        last_number: i64,
        drawn: &[(Uuid, i64)],
    ) -> Result<(), RoomError> {
        let Some(room) = self.find(event_id) else { return Ok(()) };
        let mut numbers = Drawn::with_capacity_and_hasher(drawn.len(), self.shared.hasher.clone());
        numbers.extend(drawn.iter().copied());
        let turn = lock(&room).turn_to_draw();
        let turn = turn.lock_owned().await;
        if !self.shared.journal.is_accepting() {
            return Err(RoomError::Unavailable);
        }
        let draw = Draw { numbers, last_number };
        let drawing = tokio::spawn(drawing::draw(Arc::clone(&self.shared), room, draw, turn));
        drawing.await.map_err(|_| RoomError::Unavailable)?
    }

    /// What the rooms take in memory.
    pub fn footprint(&self) -> Footprint {
        let rooms = self.shared.rooms.read().expect(NO_PANIC);
        let mut footprint = Footprint { waiting: 0, bytes: self.shared.queues.bytes() };
        footprint.bytes += rooms.resting_bytes();
        for (_, room) in rooms.awake() {
            let room = lock(room);
            footprint.waiting += u64::from(room.waiting());
            footprint.bytes += room.bytes();
        }
        footprint
    }

    /// Asks a room about someone. Also returns the batch that has to be on disk before they are
    /// told.
    fn tell(
        &self,
        room: &Mutex<Room>,
        ask: impl FnOnce(&mut Room) -> Result<Told, RoomError>,
    ) -> (Result<Told, RoomError>, u64) {
        let journal = &self.shared.journal;
        let mut room = lock(room);
        let told = ask(&mut room);
        room.hand_over(journal);
        let batch = match &told {
            Ok(told) => room.batch_of(told.basis, journal.durable()),
            Err(_) => 0,
        };
        (told, batch)
    }

    /// Changes a room, if there is one and the journal takes it, and waits until it is on disk.
    async fn change<T: Default>(
        &self,
        event_id: Uuid,
        change: impl FnOnce(&mut Room) -> T,
    ) -> Result<T, RoomError> {
        let Some(room) = self.find(event_id) else { return Ok(T::default()) };
        let journal = &self.shared.journal;
        if !journal.is_accepting() {
            return Err(RoomError::Unavailable);
        }
        let (changed, batch) = {
            let mut room = lock(&room);
            let changed = change(&mut room);
            (changed, room.hand_over(journal))
        };
        journal.wait(batch).await?;
        Ok(changed)
    }

    fn surroundings(&self) -> Surroundings<'_> {
        let Shared { queues, ids, journal, .. } = &*self.shared;
        Surroundings { queues, ids, is_accepting: journal.is_accepting() }
    }

    fn find(&self, event_id: Uuid) -> Option<Arc<Mutex<Room>>> {
        self.shared.rooms.read().expect(NO_PANIC).find(event_id)
    }

    fn wake(&self, event_id: Uuid) -> Arc<Mutex<Room>> {
        let mut rooms = self.shared.rooms.write().expect(NO_PANIC);
        rooms.wake(event_id, || self.next_room_number(), &self.shared.hasher)
    }

    fn note_time(&self, now: Timestamp) {
        let (second, noted) = (now.as_second(), &self.shared.second);
        if noted.load(Ordering::Relaxed) != second {
            noted.store(second, Ordering::Relaxed);
        }
    }

    fn next_room_number(&self) -> i64 {
        self.shared.last_room_number.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.journal.close();
    }
}

const NOBODY: Seen =
    Seen { standing: Standing::Absent, waiting: 0, active: 0, is_just_admitted: false };

const NO_PANIC: &str = "nothing panics while it holds this lock";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(NO_PANIC)
}
