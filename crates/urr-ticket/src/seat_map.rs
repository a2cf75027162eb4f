//! Seat maps in memory: a thousand people who look at an event are one look at the database.
//!
//! A map is loaded once and then brought up to date with what changed since. Changes of an event
//! are numbered in the order of their commits, so asking for the later numbers misses nothing,
//! whichever process made them.
//!
//! If the numbers go back, the database was restored from a copy: the same number then names two
//! changes. Every map is drawn anew under another epoch, and who knows a version of another epoch
//! is told everything.
//!
//! Invariants: a look sees every change that this process has committed and marked before, and
//! every change of others that is older than the refresh interval. One reader per event is at the
//! database at a time. Those who come meanwhile take its answer if it is new enough for them, and
//! otherwise share the next one, also if it is a failure: nobody waits for more than two.
//!
//! Deliberately absent: any decision. What a map says is a hint; seats are given under the lock of
//! the sale.

pub(crate) mod entry;
pub(crate) mod http;
pub(crate) mod snapshot;
pub(crate) mod statuses;
pub(crate) mod store;
pub(crate) mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_kernel::{Clock, Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{Db, StorageError};

use crate::inventory::cache::Inventories;
use crate::seat_map::entry::{Marks, Nothing, Slot};
use crate::seat_map::snapshot::Epoch;
pub use crate::seat_map::snapshot::{Picture, SeatChange, SeatMapView};
pub use crate::seat_map::statuses::SeatStatus;
pub(crate) use crate::seat_map::statuses::Statuses;
use crate::seat_map::store as map;
use crate::seat_map::store::TicketTypeStock;
use crate::seat_map::stream::Places;
pub use crate::seat_map::stream::{TooManyStreams, changes};
use crate::{Inventory, SaleStatus};

/// More ticket types than this and their events are looked up anew.
const TICKET_TYPES_MAX: usize = 10_000;

/// How maps are kept.
#[derive(Clone, Debug)]
pub struct SeatMapSettings {
    /// How old a map may be that is shown: how late changes of other processes are seen.
    pub refresh_interval: Duration,
    /// More events than this and the map that was not looked at for longest is forgotten.
    pub events_max: usize,
    /// How many clients may follow the changes of maps at the same time.
    pub streams_max: usize,
    /// How many of them may be one user's.
    pub streams_per_user_max: usize,
    /// A stream ends after this time; its client then asks again.
    pub stream_lifetime: Duration,
}

impl Default for SeatMapSettings {
    fn default() -> SeatMapSettings {
        SeatMapSettings {
            refresh_interval: Duration::from_millis(300),
            events_max: 200,
            streams_max: 4_000,
            streams_per_user_max: 3,
            stream_lifetime: Duration::from_secs(600),
        }
    }
}

/// The maps of the events that are looked at. Clones share them.
#[derive(Clone)]
pub struct SeatMaps(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    inventories: Inventories,
    settings: SeatMapSettings,
    slots: RwLock<HashMap<Uuid, Arc<Slot>>>,
    events_of_types: RwLock<HashMap<Uuid, Uuid>>,
    streams: Arc<Places>,
    epoch: Mutex<Epoch>,
    closing: CancellationToken,
    reads: AtomicU64,
}

/// An event as it was at one moment.
#[derive(Debug)]
pub struct EventView {
    pub inventory: Arc<Inventory>,
    pub picture: Arc<Picture>,
    pub ticket_types: Vec<TicketTypeStock>,
    /// Every change up to this number is in here. It may be larger than the picture's version.
    pub seen: i64,
    status: SaleStatus,
    drawn_at: Timestamp,
    /// The number of the attempt that drew it.
    attempt: u64,
    marks: Marks,
}

impl SeatMaps {
    pub(crate) fn new(
        db: &Db,
        clock: &Clock,
        inventories: &Inventories,
        settings: &SeatMapSettings,
    ) -> SeatMaps {
        SeatMaps(Arc::new(Inner {
            db: db.clone(),
            clock: clock.clone(),
            inventories: inventories.clone(),
            slots: RwLock::default(),
            events_of_types: RwLock::default(),
            streams: Arc::new(Places::new(settings.streams_max, settings.streams_per_user_max)),
            epoch: Mutex::new(Epoch::FIRST),
            closing: CancellationToken::new(),
            reads: AtomicU64::new(0),
            settings: settings.clone(),
        }))
    }

    /// The event as it is now; none if there is no such event, or no longer.
    pub async fn look(&self, event_id: Uuid) -> Result<Option<Arc<EventView>>, StorageError> {
        let slot = self.slot(event_id);
        let arrived = slot.arrive(self.0.clock.now());
        if let Some(view) = slot.fresh(&arrived, &self.0.clock, self.0.settings.refresh_interval) {
            return Ok(shown(view));
        }
        // Held until the view is shown: whoever waited for it must find it.
        let _flight = slot.flight.lock().await;
        if let Some(view) = slot.fresh(&arrived, &self.0.clock, self.0.settings.refresh_interval) {
            return Ok(shown(view));
        }
        match slot.nothing_after(&arrived) {
            Some(Nothing::Gone) => return Ok(None),
            Some(Nothing::Failed(error)) => return Err(error),
            None => {}
        }
        let attempt = slot.begin();
        match self.draw(event_id, &slot, attempt).await {
            Ok(Some(view)) => {
                slot.show(Arc::clone(&view));
                Ok(shown(view))
            }
            Ok(None) => {
                slot.show_nothing(attempt, Nothing::Gone);
                self.forget(event_id, &slot);
                Ok(None)
            }
            Err(error) => {
                slot.show_nothing(attempt, Nothing::Failed(error.clone()));
                Err(error)
            }
        }
    }

    /// Brings the map of a slot up to date, or draws it for the first time.
    async fn draw(
        &self,
        event_id: Uuid,
        slot: &Slot,
        attempt: u64,
    ) -> Result<Option<Arc<EventView>>, StorageError> {
        let (marks, drawn_at, epoch) = (slot.marks(), self.0.clock.now(), self.epoch());
        let shown = slot.view();
        let inventory = match &shown {
            Some(view) => Arc::clone(&view.inventory),
            None => match self.0.inventories.get(event_id).await? {
                Some(inventory) => inventory,
                None => return Ok(None),
            },
        };
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let before = shown.filter(|view| view.picture.epoch() == epoch);
        let seen = before.as_ref().map(|view| view.seen);
        let read = move |tx: &mut urr_storage::Tx<'_>| {
            let Some(mark) = map::sale_mark(tx, event_id)? else { return Ok(None) };
            if seen == Some(mark.fence) {
                return Ok(Some((mark, None)));
            }
            let seen = seen.filter(|seen| *seen < mark.fence);
            let changes = map::seats_changed(tx, event_id, seen.unwrap_or(0))?;
            Ok(Some((mark, Some((changes, map::ticket_types_list(tx, event_id)?)))))
        };
        let found: Option<_> = self.0.db.read(read).await?;
        let Some((mark, news)) = found else { return Ok(None) };
        let blank = |epoch| Arc::new(Picture::blank(epoch, inventory.layout.seat_count()));
        let picture = match &before {
            Some(view) if view.seen > mark.fence => {
                tracing::warn!(%event_id, known = view.seen, fence = mark.fence, "numbers went back");
                blank(self.epoch_after(epoch))
            }
            Some(view) => Arc::clone(&view.picture),
            None => blank(epoch),
        };
        let (picture, ticket_types) = match news {
            Some((changes, types)) if changes.is_empty() => (picture, types),
            Some((changes, types)) => (Arc::new(picture.after(&changes)), types),
            None => (picture, before.map(|view| view.ticket_types.clone()).unwrap_or_default()),
        };
        let (seen, status) = (mark.fence, mark.status);
        Ok(Some(Arc::new(EventView {
            inventory,
            picture,
            ticket_types,
            seen,
            status,
            drawn_at,
            attempt,
            marks,
        })))
    }

    fn epoch(&self) -> Epoch {
        *self.0.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins another epoch, unless the map of another event did: a database is restored as a whole.
    fn epoch_after(&self, ended: Epoch) -> Epoch {
        let mut epoch = self.0.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if *epoch == ended {
            *epoch = ended.next(self.0.clock.now());
        }
        *epoch
    }

    /// The event of a ticket type, as it is now.
    pub async fn look_for_type(
        &self,
        ticket_type_id: Uuid,
    ) -> Result<Option<Arc<EventView>>, StorageError> {
        let known = &self.0.events_of_types;
        let event_id =
            known.read().unwrap_or_else(PoisonError::into_inner).get(&ticket_type_id).copied();
        let event_id = match event_id {
            Some(event_id) => event_id,
            None => {
                let find =
                    move |tx: &mut urr_storage::Tx<'_>| map::ticket_type_event(tx, ticket_type_id);
                let Some(event_id) = self.0.db.read(find).await? else { return Ok(None) };
                let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
                if known.len() >= TICKET_TYPES_MAX {
                    known.clear();
                }
                known.insert(ticket_type_id, event_id);
                event_id
            }
        };
        self.look(event_id).await
    }

    /// To be called after a commit that changed something of the event: the next look sees it.
    pub fn mark_dirty(&self, event_id: Uuid) {
        if let Some(slot) = self.known(event_id) {
            slot.mark(true);
        }
    }

    /// The same after a commit that only took seats: hints that others are taken stay good.
    pub fn mark_taken(&self, event_id: Uuid) {
        if let Some(slot) = self.known(event_id) {
            slot.mark(false);
        }
    }

    /// One of these seats that is taken, as far as is known without asking: to turn the crowd away.
    ///
    /// It says nothing if nobody looked lately, or if a seat was freed since.
    pub fn taken_hint(&self, event_id: Uuid, seat_ids: &[SeatId]) -> Option<SeatId> {
        let slot = self.known(event_id)?;
        let view = slot.view()?;
        let age_max = self.0.settings.refresh_interval;
        let is_recent = view.age(self.0.clock.now()).is_some_and(|age| age < age_max);
        if !is_recent || view.marks.freed < slot.marks().freed {
            return None;
        }
        let is_taken = |id: &SeatId| {
            let status = view.picture.statuses().get(*id);
            status.is_some_and(|status| status != SeatStatus::Available)
        };
        seat_ids.iter().copied().find(is_taken)
    }

    /// Whether a seat is known to have been free after the change with this number: a lock that
    /// carries the number is then left over.
    pub fn is_free_at(&self, event_id: Uuid, seat_id: SeatId, fence: i64) -> bool {
        let view = self.known(event_id).and_then(|slot| slot.view());
        view.is_some_and(|view| view.seen >= fence && view.picture.statuses().is_available(seat_id))
    }

    /// How often the database was read to draw a map.
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// How many events are in memory.
    pub fn events(&self) -> usize {
        self.0.slots.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Ends all streams and refuses new ones: a stream would outlast the shutdown's grace.
    pub fn close_streams(&self) {
        self.0.closing.cancel();
    }

    fn known(&self, event_id: Uuid) -> Option<Arc<Slot>> {
        self.0.slots.read().unwrap_or_else(PoisonError::into_inner).get(&event_id).cloned()
    }

    /// The place of an event in memory, made if need be.
    fn slot(&self, event_id: Uuid) -> Arc<Slot> {
        if let Some(slot) = self.known(event_id) {
            return slot;
        }
        let mut slots = self.0.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= self.0.settings.events_max && !slots.contains_key(&event_id) {
            let oldest = slots.iter().min_by_key(|(_, slot)| slot.looked_at());
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                slots.remove(&oldest);
            }
        }
        Arc::clone(slots.entry(event_id).or_insert_with(|| Arc::new(Slot::new())))
    }

    /// An event that does not exist takes no place.
    fn forget(&self, event_id: Uuid, slot: &Arc<Slot>) {
        let mut slots = self.0.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.get(&event_id).is_some_and(|present| Arc::ptr_eq(present, slot)) {
            slots.remove(&event_id);
        }
    }
}

impl EventView {
    /// None if the clock went back.
    fn age(&self, now: Timestamp) -> Option<Duration> {
        Duration::try_from(now.duration_since(self.drawn_at)).ok()
    }
}

/// What was deleted is not shown.
fn shown(view: Arc<EventView>) -> Option<Arc<EventView>> {
    (view.status != SaleStatus::Deleted).then_some(view)
}
