//! Ending many reservations: holds whose time is over, and all that was reserved of a closed sale.
//!
//! A transaction ends a batch of one event, under the lock of its sale, so that the sale goes on in
//! between. What cannot be ended is found by halving and set aside: it does not stop the others
//!

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_storage::{StorageError, Tx};

use crate::steps::announce;
use crate::store::overdue::{self, Overdue};
use crate::store::sales;
use crate::store::transitions::{self, Ended, Ending};
use crate::{SaleStatus, Ticket};

/// Few enough that a sale does not feel the lock, many enough to share a commit.
pub const BATCH_MAX: u32 = 250;

/// A batch that had to wait for long is not followed by as long a pause.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// What could not be ended is tried again after this time.
const SET_ASIDE_FOR: Duration = Duration::from_secs(60);
const SET_ASIDE_MAX: usize = 10_000;

const EVENT_CANCELLED: &str = "EVENT_CANCELLED";
const EVENT_DELETED: &str = "EVENT_DELETED";

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub ended: u64,
    /// They could not be ended.
    pub failed: Vec<Uuid>,
}

/// Sweeps again and again, and remembers what it cannot end.
pub struct Sweeper {
    ticket: Ticket,
    set_aside: HashMap<Uuid, Timestamp>,
}

/// Whether a batch waits for its turn at the sale.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Leaves a sale alone at which someone else is busy.
    Skip,
    Wait,
}

/// Reservations of one event that are to end together.
#[derive(Clone)]
struct Batch {
    event_id: Uuid,
    ids: Vec<Uuid>,
    ending: Ending<'static>,
}

impl Sweeper {
    pub fn new(ticket: Ticket) -> Sweeper {
        Sweeper { ticket, set_aside: HashMap::new() }
    }

    /// Ends every hold whose time is over.
    pub async fn expire_overdue(&mut self) -> Result<Swept, StorageError> {
        let now = self.ticket.clock.now();
        self.set_aside.retain(|_, until| *until > now);
        let (mut swept, mut after) = (Swept::default(), Overdue::FIRST);
        loop {
            let list = move |tx: &mut Tx<'_>| overdue::hold_list(tx, now, after, BATCH_MAX);
            let due: Vec<Overdue> = self.ticket.db.read(list).await?;
            let Some(last) = due.last().copied() else { return Ok(swept) };
            after = last;
            let batches = self.batches(due);
            // First where nobody is busy: another process may be at the same event.
            let mut busy = Vec::new();
            for batch in batches {
                if !self.end(batch.clone(), Turn::Skip, &mut swept).await? {
                    busy.push(batch);
                }
            }
            for batch in busy {
                self.end(batch, Turn::Wait, &mut swept).await?;
            }
        }
    }

    fn batches(&self, due: Vec<Overdue>) -> Vec<Batch> {
        let mut by_event: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
        for hold in due.into_iter().filter(|hold| !self.set_aside.contains_key(&hold.id)) {
            by_event.entry(hold.event_id).or_default().push(hold.id);
        }
        let ending = Ending::Expired;
        by_event.into_iter().map(|(event_id, ids)| Batch { event_id, ids, ending }).collect()
    }

    /// Cancels all that is reserved of sales that were closed. A hold that is being paid is left
    /// until its payment is decided.
    pub async fn empty_closed_sales(&mut self) -> Result<Swept, StorageError> {
        let now = self.ticket.clock.now();
        self.set_aside.retain(|_, until| *until > now);
        let mut swept = Swept::default();
        let closed: Vec<(Uuid, SaleStatus)> =
            self.ticket.db.read(overdue::sale_list_to_empty).await?;
        for (event_id, status) in closed {
            let reason = match status {
                SaleStatus::Deleted => EVENT_DELETED,
                SaleStatus::Open | SaleStatus::Cancelled => EVENT_CANCELLED,
            };
            self.empty_sale(event_id, reason, &mut swept).await?;
        }
        Ok(swept)
    }

    async fn empty_sale(
        &mut self,
        event_id: Uuid,
        reason: &'static str,
        swept: &mut Swept,
    ) -> Result<(), StorageError> {
        let ending = Ending::Cancelled { reason };
        let mut after = Uuid::nil();
        loop {
            let list = move |tx: &mut Tx<'_>| overdue::live_list(tx, event_id, after, BATCH_MAX);
            let mut ids: Vec<Uuid> = self.ticket.db.read(list).await?;
            let Some(last) = ids.last().copied() else { break };
            after = last;
            ids.retain(|id| !self.set_aside.contains_key(id));
            self.end(Batch { event_id, ids, ending }, Turn::Wait, swept).await?;
        }
        let now = self.ticket.clock.now();
        self.ticket.db.write(move |tx| overdue::sale_mark_emptied(tx, event_id, now)).await
    }

    /// Ends a batch; one that fails is halved until what is to blame is alone. `false`: the sale
    /// was busy.
    async fn end(
        &mut self,
        batch: Batch,
        mut turn: Turn,
        swept: &mut Swept,
    ) -> Result<bool, StorageError> {
        let mut waiting = vec![batch];
        let begun = Instant::now();
        while let Some(mut batch) = waiting.pop().filter(|batch| !batch.ids.is_empty()) {
            match self.ticket.end_batch(batch.clone(), turn).await {
                Ok(None) => return Ok(false),
                Ok(Some(ended)) => swept.ended += ended,
                Err(error) if error.is_retryable() || error == StorageError::Closed => {
                    return Err(error);
                }
                Err(error) if batch.ids.len() == 1 => {
                    tracing::error!(%error, reservation = %batch.ids[0], "it could not be ended");
                    self.ticket.figures.count_failed();
                    self.set_aside(batch.ids[0]);
                    swept.failed.push(batch.ids[0]);
                }
                Err(_) => {
                    // What was begun is finished.
                    turn = Turn::Wait;
                    let ids = batch.ids.split_off(batch.ids.len() / 2);
                    waiting.extend([Batch { ids, ..batch.clone() }, batch]);
                }
            }
        }
        // The sale has at least as much of the database's time as the sweep.
        tokio::time::sleep(begun.elapsed().min(PAUSE_MAX)).await;
        Ok(true)
    }

    fn set_aside(&mut self, id: Uuid) {
        if self.set_aside.len() >= SET_ASIDE_MAX {
            self.set_aside.clear();
        }
        self.set_aside.insert(id, self.ticket.clock.now() + SET_ASIDE_FOR);
    }
}

impl Ticket {
    /// Ends those of the batch that still can end so. None: the sale was busy.
    async fn end_batch(&self, batch: Batch, turn: Turn) -> Result<Option<u64>, StorageError> {
        let context = CallContext::root(self.ids.next_id());
        let status = batch.ending.status();
        let (stamps, now) = (self.stamps(batch.ids.len(), context), self.clock.now());
        let ended = self.db.write(move |tx| {
            let Batch { event_id, ids, ending } = &batch;
            if turn == Turn::Skip && !overdue::sale_is_free(tx, *event_id)? {
                return Ok(None);
            }
            let Some(sale) = sales::sale_lock(tx, *event_id, 1)? else {
                return Ok(Some(Vec::new()));
            };
            let ended = transitions::reservations_end(tx, sale.fence, ids, *ending, now)?;
            announce(tx, &ended, *ending, &stamps)?;
            Ok::<_, StorageError>(Some(ended))
        });
        let ended: Option<Vec<Ended>> = ended.await?;
        let Some(ended) = ended else { return Ok(None) };
        self.give_back(&ended).await;
        self.figures.count_ended(status, ended.len());
        Ok(Some(u64::try_from(ended.len()).unwrap_or(u64::MAX)))
    }
}
