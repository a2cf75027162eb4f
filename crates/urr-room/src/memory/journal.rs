//! The journal of the rooms, from which they are recovered after a crash.
//!
//! A room appends its changes under its own lock, so the journal has them in order. One task writes
//! what has gathered in one transaction, a batch, and wakes the requests that wait for it. So the
//! disk always holds a past moment of each room.
//!
//! When writing fails, the task retries the same batch with pauses until it succeeds. From the
//! second failure on, waiting requests fail as unavailable and changes are rejected beforehand. So
//! memory is ahead of the disk by two batches at most, and nothing that was acknowledged is lost.

mod store;

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tracing::{error, info, warn};
use urr_kernel::Uuid;
use urr_storage::{Db, DbResult, StorageError};

pub use store::{
    orphan_room_list, position_first, position_list, room_list, slot_list, slot_log_delete_some,
    slot_log_is_older, slot_log_list, slot_log_list_back, twice_waiting_list,
};

use crate::RoomError;
use crate::slot_log::SlotLogEntry;

/// A log of slots to which nothing was added for so long is deleted at the next start.
pub const LOG_KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// Bounds the pending changes, and the size of a batch except for what is appended in one call.
const RECORDS_MAX: usize = 20_000;
/// How many times a batch yields to the runtime for more records, as long as more arrive.
const GATHERED_AT_MOST: usize = 8;
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Bounds the retries at shutdown.
const TRIES_AT_CLOSE: u32 = 3;

/// A change of a room. `room` is its number in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalRecord {
    LineJoined {
        room: i64,
        arrival: i64,
        user_id: Uuid,
    },
    LineLeft {
        room: i64,
        arrival: i64,
    },
    NumberDrawn {
        room: i64,
        arrival: i64,
        number: i64,
    },
    SlotGiven {
        room: i64,
        user_id: Uuid,
        slot_id: Uuid,
        admitted_at_us: i64,
    },
    SlotEnded {
        room: i64,
        user_id: Uuid,
    },
    /// For the audit. The room of the event had this change of slots.
    SlotLogged {
        event_id: Uuid,
        logged: SlotLogEntry,
    },
    /// The room continues under another number: all its positions and slots have ended.
    RoomRetired {
        room: i64,
    },
}

/// The counters of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomTotals {
    pub room: i64,
    pub event_id: Uuid,
    pub last_number: i64,
    pub admitted: u64,
    pub left: u64,
    /// The last entry of the log of slots.
    pub logged: i64,
}

pub struct Journal {
    pending: Mutex<PendingRecords>,
    /// The number of pending records, readable without the lock.
    pending_length: AtomicUsize,
    /// All batches up to this one are on disk.
    durable: AtomicU64,
    condition: AtomicU8,
    filled: Notify,
    /// By the parity of the batch: while one is written, the next one is filled.
    written: [Notify; 2],
}

struct PendingRecords {
    /// The number of the batch that is being filled; the first is 1.
    batch: u64,
    records: Vec<JournalRecord>,
    totals: HashMap<i64, RoomTotals>,
    /// Full batches that are not being written yet, oldest first.
    full: VecDeque<JournalBatch>,
}

impl PendingRecords {
    fn take(&mut self) -> JournalBatch {
        self.batch += 1;
        let records = std::mem::take(&mut self.records);
        let totals = self.totals.drain().map(|(_, totals)| totals).collect();
        JournalBatch { records, totals }
    }

    fn length(&self) -> usize {
        self.records.len() + self.full.iter().map(|batch| batch.records.len()).sum::<usize>()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum JournalState {
    Working,
    /// The last attempt to write failed.
    Failing,
    /// Pending records are written; new ones are rejected.
    Closing,
    Closed,
}

impl Journal {
    pub fn new() -> Journal {
        let (records, totals, full) = (Vec::new(), HashMap::new(), VecDeque::new());
        Journal {
            pending: Mutex::new(PendingRecords { batch: 1, records, totals, full }),
            pending_length: AtomicUsize::new(0),
            durable: AtomicU64::new(0),
            condition: AtomicU8::new(JournalState::Working as u8),
            filled: Notify::new(),
            written: [Notify::new(), Notify::new()],
        }
    }

    /// Whether changes are accepted. Check it before making one.
    pub fn is_accepting(&self) -> bool {
        self.is(JournalState::Working) && self.pending_length.load(Ordering::Relaxed) < RECORDS_MAX
    }

    pub fn is_working(&self) -> bool {
        self.is(JournalState::Working)
    }

    /// Returns when the journal is closed, for whatever reason.
    pub async fn closed(&self) {
        loop {
            let mut written = pin!(self.written[0].notified());
            written.as_mut().enable();
            if self.is(JournalState::Closed) {
                return;
            }
            written.await;
        }
    }

    /// All batches up to this one are on disk.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Appends changes that were made and returns the number of their batch. It never fails: slots
    /// expire also while the journal cannot be written.
    pub fn append(
        &self,
        records: impl IntoIterator<Item = JournalRecord>,
        totals: Option<RoomTotals>,
    ) -> u64 {
        let mut pending = self.pending();
        let was_empty = pending.length() == 0;
        if pending.records.len() >= RECORDS_MAX {
            let full = pending.take();
            pending.full.push_back(full);
        }
        for record in records {
            pending.records.push(record);
            if let JournalRecord::RoomRetired { room } = record {
                pending.totals.remove(&room);
            }
        }
        if let Some(totals) = totals {
            pending.totals.insert(totals.room, totals);
        }
        self.pending_length.store(pending.length(), Ordering::Relaxed);
        let batch = pending.batch;
        drop(pending);
        if was_empty {
            self.filled.notify_one();
        }
        batch
    }

    /// The newest batch that is not empty.
    pub fn newest_batch(&self) -> u64 {
        let pending = self.pending();
        if pending.records.is_empty() { pending.batch - 1 } else { pending.batch }
    }

    /// Returns when the batch is on disk, or fails if that is not known.
    pub async fn wait(&self, batch: u64) -> Result<(), RoomError> {
        while self.durable() < batch {
            let mut written = pin!(self.written[parity(batch)].notified());
            written.as_mut().enable();
            if self.durable() >= batch {
                break;
            }
            if self.is(JournalState::Failing) || self.is(JournalState::Closed) {
                return Err(RoomError::Unavailable);
            }
            written.await;
        }
        Ok(())
    }

    /// Lets [`Journal::run`] write the last batch and return.
    pub fn close(&self) {
        self.set(JournalState::Closing);
        self.filled.notify_one();
    }

    /// Writes batches until the journal is closed. The positions of `retired_rooms` are deleted.
    pub async fn run(self: Arc<Journal>, db: Db, mut retired_rooms: Vec<i64>) {
        let _closed = ClosedWhenDropped(&self);
        loop {
            self.gather().await;
            if let Some((number, batch)) = self.take() {
                retired_rooms.extend(batch.retired_rooms());
                if self.write(&db, batch).await.is_err() {
                    return;
                }
                self.durable.store(number, Ordering::Release);
                self.written[parity(number)].notify_waiters();
            } else if self.is(JournalState::Closing) {
                return;
            } else if retired_rooms.is_empty() {
                self.filled.notified().await;
                continue;
            }
            remove_some(&db, &mut retired_rooms).await;
        }
    }

    /// Waits for requests that were just woken and will append again: a batch costs the same with
    /// one record as with many.
    async fn gather(&self) {
        let mut length = 0;
        for _ in 0..GATHERED_AT_MOST {
            tokio::task::yield_now().await;
            let before =
                std::mem::replace(&mut length, self.pending_length.load(Ordering::Relaxed));
            if length == before {
                return;
            }
        }
    }

    /// Takes the next batch, if there is one.
    fn take(&self) -> Option<(u64, JournalBatch)> {
        let mut pending = self.pending();
        let full = u64::try_from(pending.full.len()).expect("memory holds no more");
        let number = pending.batch - full;
        let batch = match pending.full.pop_front() {
            Some(batch) => batch,
            None if pending.records.is_empty() => return None,
            None => pending.take(),
        };
        self.pending_length.store(pending.length(), Ordering::Relaxed);
        Some((number, batch))
    }

    /// Retries until it succeeds. An error means that the journal has failed for good.
    async fn write(&self, db: &Db, batch: JournalBatch) -> DbResult<()> {
        let (batch, mut pause, mut tries) = (Arc::new(batch), PAUSE_MIN, 0);
        loop {
            let body = Arc::clone(&batch);
            let Err(error) = db.write(move |tx| body.write(tx)).await else { break };
            tries += 1;
            let is_last = self.is(JournalState::Closing) && tries >= TRIES_AT_CLOSE;
            if is_last || error == StorageError::Closed {
                let records = batch.records.len();
                error!(%error, records, "the last changes of the waiting rooms were not written");
                return Err(error);
            }
            warn!(%error, tries, "the journal of the waiting rooms cannot be written");
            // A single failure may be chance and is not reported to users.
            if tries > 1 {
                self.change(JournalState::Working, JournalState::Failing);
                self.written.iter().for_each(Notify::notify_waiters);
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(PAUSE_MAX);
        }
        if tries > 0 {
            info!(tries, "the journal of the waiting rooms is written again");
            self.change(JournalState::Failing, JournalState::Working);
        }
        Ok(())
    }

    fn pending(&self) -> MutexGuard<'_, PendingRecords> {
        self.pending.lock().expect("nothing panics while it holds this lock")
    }

    fn is(&self, condition: JournalState) -> bool {
        self.condition.load(Ordering::Acquire) == condition as u8
    }

    fn set(&self, condition: JournalState) {
        self.condition.store(condition as u8, Ordering::Release);
    }

    /// Changes the state only from `from`.
    fn change(&self, from: JournalState, to: JournalState) {
        let (order, from, to) = (Ordering::AcqRel, from as u8, to as u8);
        self.condition.compare_exchange(from, to, order, Ordering::Acquire).ok();
    }
}

fn parity(batch: u64) -> usize {
    usize::from(batch % 2 == 1)
}

/// Wakes all waiting requests, however the task ends.
struct ClosedWhenDropped<'a>(&'a Journal);

impl Drop for ClosedWhenDropped<'_> {
    fn drop(&mut self) {
        if !self.0.is(JournalState::Closing) {
            error!("the journal of the waiting rooms has ended; nobody is admitted or joins");
        }
        self.0.set(JournalState::Closed);
        self.0.written.iter().for_each(Notify::notify_waiters);
    }
}

/// What is written in one transaction.
struct JournalBatch {
    records: Vec<JournalRecord>,
    totals: Vec<RoomTotals>,
}

impl JournalBatch {
    fn retired_rooms(&self) -> impl Iterator<Item = i64> {
        self.records.iter().filter_map(|record| match record {
            JournalRecord::RoomRetired { room } => Some(*room),
            _ => None,
        })
    }

    fn write(&self, tx: &mut urr_storage::Tx<'_>) -> DbResult<()> {
        self.records.iter().try_for_each(|record| store::record_write(tx, record))?;
        self.totals.iter().try_for_each(|totals| store::room_upsert(tx, totals))
    }
}

/// Deletes some positions of a retired room. After a failure the next start deletes them.
async fn remove_some(db: &Db, retired_rooms: &mut Vec<i64>) {
    let Some(room) = retired_rooms.last().copied() else { return };
    match db.write(move |tx| store::position_delete_some(tx, room)).await {
        Ok(true) => {}
        Ok(false) => drop(retired_rooms.pop()),
        Err(error) => {
            let error: StorageError = error;
            warn!(%error, "the positions of a cleared room will be deleted after the next start");
            retired_rooms.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records are appended also while the journal fails; a batch stays bounded.
    #[test]
    fn a_batch_that_is_full_is_followed_by_the_next() {
        let journal = Journal::new();
        let records = (0..5_000).map(|arrival| JournalRecord::LineLeft { room: 1, arrival });
        let batches: Vec<u64> = (0..9).map(|_| journal.append(records.clone(), None)).collect();
        assert_eq!(batches, [1, 1, 1, 1, 2, 2, 2, 2, 3]);
        assert_eq!(journal.newest_batch(), 3);
        assert!(!journal.is_accepting());
        for (number, length) in [(1, 20_000), (2, 20_000), (3, 5_000)] {
            let (taken, batch) = journal.take().unwrap();
            assert_eq!((taken, batch.records.len()), (number, length));
        }
        assert!(journal.take().is_none() && journal.is_accepting());
        assert_eq!(journal.newest_batch(), 3);
        assert_eq!(journal.append(records, None), 4);
    }
}
