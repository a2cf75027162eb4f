//! Ending many reservations: expired holds, and everything that was reserved of a closed sale.
//!
//! A transaction ends a batch of one event under the lock of its sale, so that the sale goes on in
//! between. A reservation that cannot be ended is found by halving and set aside, and a sale that
//! does not answer in time is postponed: neither stops the others.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_storage::{DbResult, StorageError, Tx};

use crate::inventory::store as sales;
use crate::reservations::history::HistoryActor;
use crate::reservations::rules::{ReservationPhase, ReservationRecord};
use crate::reservations::store as transitions;
use crate::reservations::store::overdue;
use crate::reservations::store::overdue::{ClosedSale, Overdue};
use crate::reservations::store::{EndedReservation, ReservationEnding};
use crate::reservations::transition::announce;
use crate::transfers::end_with_reservations;
use crate::{ReservationId, ReservationStatus, SaleStatus, TicketService};

/// Small enough that a sale does not notice the lock, large enough to share a commit.
pub const BATCH_MAX: u32 = 250;
/// While nobody books.
const QUIET_BATCH_MAX: u32 = 1_000;

/// While somebody books, the sweep pauses after each batch for so many times its duration: the sale
/// keeps five sixths of the database.
const PAUSE_FACTOR: u32 = 5;
/// A batch that had to wait for long is not followed by as long a pause.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// A reservation that could not be ended is tried again after this time.
const SET_ASIDE_FOR: Duration = Duration::from_secs(60);
const SET_ASIDE_MAX: usize = 10_000;

/// A sale that did not answer in time is postponed this long, and its batches are smaller until it
/// was not slow for a while.
const PUT_OFF_FOR: Duration = Duration::from_secs(10);
const SLOW_FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

const CLOSED_SALES_AT_ONCE: u32 = 100;

const EVENT_CANCELLED: &str = "EVENT_CANCELLED";
const EVENT_DELETED: &str = "EVENT_DELETED";

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    pub ended: u64,
    /// Reservations that could not be ended.
    pub failed: Vec<Uuid>,
    /// Events that did not answer in time. They are tried again soon.
    pub put_off: Vec<Uuid>,
}

/// Sweeps repeatedly and remembers what it cannot end.
pub struct Sweeper {
    ticket: TicketService,
    set_aside: HashMap<Uuid, Timestamp>,
    slow: HashMap<Uuid, SlowSale>,
    /// How many holds had been asked for when the last batch ended.
    holds_asked: u64,
    /// Whether somebody booked during the last batch, in this process or in another.
    is_sale_busy: bool,
}

/// A sale that did not answer in time.
#[derive(Clone, Copy)]
struct SlowSale {
    until: Timestamp,
    /// How many it is asked to end at once.
    batch_max: usize,
}

/// The result of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchEnd {
    Done,
    /// Another transaction has the lock of the sale.
    Busy,
    PutOff,
}

/// Whether a batch waits for the lock of the sale.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LockWait {
    /// Skips a sale that is locked.
    Skip,
    Wait,
}

/// Reservations of one event that are to end together.
#[derive(Clone)]
struct EndingBatch {
    event_id: Uuid,
    ids: Vec<Uuid>,
    ending: ReservationEnding<'static>,
    /// The event that ends them, if it was not the time.
    cause: Option<Uuid>,
}

impl Sweeper {
    pub fn new(ticket: TicketService) -> Sweeper {
        let holds_asked = ticket.batchers.holds_asked();
        let (set_aside, slow) = (HashMap::new(), HashMap::new());
        Sweeper { ticket, set_aside, slow, holds_asked, is_sale_busy: true }
    }

    fn batch_max(&self) -> u32 {
        if self.is_sale_busy { BATCH_MAX } else { QUIET_BATCH_MAX }
    }

    /// Lets the sale go on after a batch that took so long. `was_locked`: another transaction had
    /// the lock of the sale.
    async fn pause(&mut self, took: Duration, was_locked: bool) {
        let holds_asked = self.ticket.batchers.holds_asked();
        self.is_sale_busy = was_locked || holds_asked != self.holds_asked;
        self.holds_asked = holds_asked;
        if self.is_sale_busy {
            tokio::time::sleep((took * PAUSE_FACTOR).min(PAUSE_MAX)).await;
        }
    }

    /// Ends every hold whose time is over.
    pub async fn expire_overdue(&mut self) -> DbResult<SweepReport> {
        let now = self.forget_old();
        let (mut swept, mut after) = (SweepReport::default(), Overdue::FIRST);
        loop {
            let limit = self.batch_max();
            let list = move |tx: &mut Tx<'_>| overdue::hold_list(tx, now, after, limit);
            let due: Vec<Overdue> = self.ticket.db.read(list).await?;
            let Some(last) = due.last().copied() else { return Ok(swept) };
            after = last;
            let batches = self.batches(due);
            // Unlocked sales first: another process may be at the same event.
            let mut busy = Vec::new();
            for batch in batches {
                if self.end(batch.clone(), LockWait::Skip, &mut swept).await? == BatchEnd::Busy {
                    busy.push(batch);
                }
            }
            for batch in busy {
                self.end(batch, LockWait::Wait, &mut swept).await?;
            }
        }
    }

    /// Forgets old failures. Returns the time.
    fn forget_old(&mut self) -> Timestamp {
        let now = self.ticket.clock.now();
        self.set_aside.retain(|_, until| *until > now);
        self.slow.retain(|_, slow| slow.until + SLOW_FORGOTTEN_AFTER > now);
        now
    }

    fn batches(&self, due: Vec<Overdue>) -> Vec<EndingBatch> {
        let mut by_event: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
        for hold in due.into_iter().filter(|hold| !self.set_aside.contains_key(&hold.id)) {
            by_event.entry(hold.event_id).or_default().push(hold.id);
        }
        by_event.into_iter().map(|(event_id, ids)| EndingBatch::expired(event_id, ids)).collect()
    }

    /// Cancels the reservations of closed sales: all of them, or only the holds if the event has
    /// begun. A pinned hold waits for its payment.
    pub async fn empty_closed_sales(&mut self) -> DbResult<SweepReport> {
        let now = self.forget_old();
        let (mut swept, mut after) = (SweepReport::default(), Uuid::nil());
        loop {
            let list = move |tx: &mut Tx<'_>| {
                overdue::sale_list_to_empty(tx, now, after, CLOSED_SALES_AT_ONCE)
            };
            let closed: Vec<ClosedSale> = self.ticket.db.read(list).await?;
            let Some(last) = closed.last() else { return Ok(swept) };
            after = last.event_id;
            for sale in closed {
                match self.empty_sale(sale, &mut swept).await {
                    Ok(()) => {}
                    Err(error) if is_everyones(&error) => return Err(error),
                    Err(error) => self.put_off(sale.event_id, &error, &mut swept),
                }
            }
        }
    }

    async fn empty_sale(&mut self, sale: ClosedSale, swept: &mut SweepReport) -> DbResult<()> {
        let event_id = sale.event_id;
        let reason = match sale.status {
            SaleStatus::Deleted => EVENT_DELETED,
            SaleStatus::Open | SaleStatus::Cancelled => EVENT_CANCELLED,
        };
        let ending = match sale.took_place {
            true => ReservationEnding::Withdrawn { reason },
            false => ReservationEnding::Cancelled { reason, refund: None },
        };
        let mut after = Uuid::nil();
        loop {
            if self.is_put_off(event_id) {
                return Ok(());
            }
            let limit = self.batch_max();
            let list = move |tx: &mut Tx<'_>| overdue::live_list(tx, &sale, after, limit);
            let mut ids: Vec<Uuid> = self.ticket.db.read(list).await?;
            let Some(last) = ids.last().copied() else { break };
            after = last;
            ids.retain(|id| !self.set_aside.contains_key(id));
            let batch = EndingBatch { event_id, ids, ending, cause: sale.closed_by };
            self.end(batch, LockWait::Wait, swept).await?;
        }
        let now = self.ticket.clock.now();
        self.ticket.db.write(move |tx| overdue::sale_mark_emptied(tx, &sale, now)).await
    }

    /// Ends a batch. A failing batch is halved until the cause is alone.
    async fn end(
        &mut self,
        batch: EndingBatch,
        mut lock_wait: LockWait,
        swept: &mut SweepReport,
    ) -> DbResult<BatchEnd> {
        let event_id = batch.event_id;
        if self.is_put_off(event_id) {
            return Ok(BatchEnd::PutOff);
        }
        let batch_max = self.slow.get(&event_id).map_or(usize::MAX, |slow| slow.batch_max);
        // Nobody books what is closed: its lock is waited for without a look.
        let was_locked = lock_wait == LockWait::Wait && batch.ending == ReservationEnding::Expired;
        let (mut waiting, begun) = (batch.split(batch_max), Instant::now());
        while let Some(mut batch) = waiting.pop() {
            match self.ticket.end_batch(batch.clone(), lock_wait).await {
                Ok(None) => return Ok(BatchEnd::Busy),
                Ok(Some(ended)) => swept.ended += ended,
                Err(error) if is_everyones(&error) => return Err(error),
                Err(error @ (StorageError::Timeout | StorageError::Contention)) => {
                    self.put_off(event_id, &error, swept);
                    return Ok(BatchEnd::PutOff);
                }
                Err(error) if batch.ids.len() == 1 => {
                    tracing::error!(%error, reservation = %batch.ids[0], "a reservation could not be ended");
                    self.ticket.metrics.count_failed();
                    self.set_aside(batch.ids[0]);
                    swept.failed.push(batch.ids[0]);
                }
                Err(_) => {
                    let ids = batch.ids.split_off(batch.ids.len() / 2);
                    waiting.extend([EndingBatch { ids, ..batch.clone() }, batch]);
                }
            }
            // A batch that has begun is finished.
            lock_wait = LockWait::Wait;
        }
        self.pause(begun.elapsed(), was_locked).await;
        Ok(BatchEnd::Done)
    }

    fn is_put_off(&self, event_id: Uuid) -> bool {
        let now = self.ticket.clock.now();
        self.slow.get(&event_id).is_some_and(|slow| slow.until > now)
    }

    /// Postpones a sale. Its lock may be held for long, or its batches may take too long: so they
    /// are smaller from then on.
    fn put_off(&mut self, event_id: Uuid, error: &StorageError, swept: &mut SweepReport) {
        tracing::warn!(%error, %event_id, "a sale did not answer in time and is postponed");
        let until = self.ticket.clock.now() + PUT_OFF_FOR;
        let before = self.slow.get(&event_id).map_or(BATCH_MAX as usize, |slow| slow.batch_max);
        self.slow.insert(event_id, SlowSale { until, batch_max: (before / 2).max(1) });
        swept.put_off.push(event_id);
    }

    fn set_aside(&mut self, id: Uuid) {
        if self.set_aside.len() >= SET_ASIDE_MAX {
            self.set_aside.clear();
        }
        self.set_aside.insert(id, self.ticket.clock.now() + SET_ASIDE_FOR);
    }
}

impl EndingBatch {
    /// Holds whose time is over.
    fn expired(event_id: Uuid, ids: Vec<Uuid>) -> EndingBatch {
        EndingBatch { event_id, ids, ending: ReservationEnding::Expired, cause: None }
    }

    /// Parts of at most this size; none if it is empty.
    fn split(self, size: usize) -> Vec<EndingBatch> {
        let EndingBatch { event_id, ids, ending, cause } = self;
        let part = |ids: &[Uuid]| EndingBatch { event_id, ids: ids.to_vec(), ending, cause };
        ids.chunks(size).map(part).collect()
    }
}

/// Whether the database itself cannot work now, so that other sales need not be tried.
fn is_everyones(error: &StorageError) -> bool {
    use StorageError::{Closed, DiskFull, Overloaded, Unavailable};
    matches!(error, Closed | DiskFull | Overloaded | Unavailable(_))
}

impl TicketService {
    /// Ends an expired hold that was not swept yet: it blocks its owner's next one. `false`: it has
    /// not expired.
    pub async fn end_if_overdue(&self, id: ReservationId) -> DbResult<bool> {
        let find = move |tx: &mut Tx<'_>| transitions::record_find(tx, id);
        let found: Option<ReservationRecord> = self.db.read(find).await?;
        let Some(record) = found else { return Ok(false) };
        if record.phase(self.clock.now()) != ReservationPhase::Expired {
            return Ok(false);
        }
        if record.reservation.status == ReservationStatus::Pending {
            let (event_id, ids) = (record.reservation.event_id, vec![id.0]);
            self.end_batch(EndingBatch::expired(event_id, ids), LockWait::Wait).await?;
        }
        Ok(true)
    }

    /// Ends those of the batch that still can end so. None: the sale was busy.
    async fn end_batch(&self, batch: EndingBatch, lock_wait: LockWait) -> DbResult<Option<u64>> {
        let context = CallContext::root(self.ids.next_id());
        let context = CallContext { causation_id: batch.cause, ..context };
        let status = batch.ending.status();
        let (prepared, now) = (self.prepare_events(2 * batch.ids.len(), context), self.clock.now());
        let ended = self.db.write(move |tx| {
            let EndingBatch { event_id, ids, ending, .. } = &batch;
            if lock_wait == LockWait::Skip && !overdue::sale_is_free(tx, *event_id)? {
                return Ok(None);
            }
            let Some(sale) = sales::sale_lock(tx, *event_id, 1)? else {
                return Ok(Some(Vec::new()));
            };
            let ended = transitions::reservations_end(tx, sale.fence, ids, *ending, now)?;
            announce(tx, &ended, *ending, HistoryActor::System, &prepared)?;
            end_with_reservations(tx, &ended, *ending, &prepared, now)?;
            Ok::<_, StorageError>(Some(ended))
        });
        let ended: Option<Vec<EndedReservation>> = ended.await?;
        let Some(ended) = ended else { return Ok(None) };
        self.release_seats(&ended).await;
        self.metrics.count_ended(status, ended.len());
        Ok(Some(u64::try_from(ended.len()).unwrap_or(u64::MAX)))
    }
}
