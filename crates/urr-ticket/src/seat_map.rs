//! Seat maps in memory: a thousand users who look at an event cost one database read.
//!
//! A map is loaded once and then updated with the changes since. Changes of an event are numbered
//! in the order of their commits, so reading the higher numbers misses nothing, whichever process
//! made them.
//!
//! If the numbers go back, the database was restored from a copy: the same number then names two
//! changes. Every map is rebuilt under another epoch, and a client with a version of another epoch
//! gets everything.
//!
//! Invariants: a read sees every change that this process has committed and marked before, and
//! every change of others that is older than the refresh interval. One refresh per event runs at a
//! time. Requests that arrive meanwhile use its result if it is new enough for them, and otherwise
//! share the next one, also if it fails: nobody waits for more than two.
//!
//! Deliberately absent: any decision. A map is a hint; seats are given under the lock of the sale.

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
use urr_service::cache::{Cache, CacheOptions};
use urr_storage::{Db, DbResult, StorageError, Tx};

use crate::TicketTypeStock;
use crate::inventory::cache::InventoryCache;
use crate::inventory::ticket_types::store::ticket_type_list;
use crate::seat_map::entry::{ChangeCounts, LoadFailure, MapEntry};
use crate::seat_map::snapshot::MapEpoch;
pub use crate::seat_map::snapshot::{SeatChange, SeatMapView, SeatSnapshot};
pub use crate::seat_map::statuses::SeatStatus;
pub(crate) use crate::seat_map::statuses::Statuses;
use crate::seat_map::store as map;
use crate::seat_map::stream::StreamPermits;
pub use crate::seat_map::stream::{SeatMapStreamLimit, changes};
use crate::{Inventory, SaleStatus};

/// Of ticket types: their event never changes.
const EVENTS_OF_TYPES: CacheOptions =
    CacheOptions { ttl: Duration::from_hours(24), entries_max: 10_000 };

/// Settings of seat maps.
#[derive(Clone, Debug)]
pub struct SeatMapSettings {
    /// How old a map may be: how late changes of other processes are seen.
    pub refresh_interval: Duration,
    /// When this many maps are cached, the least recently used one is dropped.
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

/// Seat maps by event. Clones share them.
#[derive(Clone)]
pub struct SeatMaps(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    inventories: InventoryCache,
    settings: SeatMapSettings,
    entries: RwLock<HashMap<Uuid, Arc<MapEntry>>>,
    events_of_types: Cache<Uuid, Uuid, StorageError>,
    streams: Arc<StreamPermits>,
    epoch: Mutex<MapEpoch>,
    closing: CancellationToken,
    reads: AtomicU64,
}

/// The inventory of an event at one moment.
#[derive(Debug)]
pub struct InventorySnapshot {
    pub inventory: Arc<Inventory>,
    pub seats: Arc<SeatSnapshot>,
    pub ticket_types: Vec<TicketTypeStock>,
    /// Every change up to this number is included. It may be larger than the version of the seats.
    pub seen: i64,
    status: SaleStatus,
    read_at: Timestamp,
    /// The number of the refresh that read it.
    attempt: u64,
    change_counts: ChangeCounts,
}

impl SeatMaps {
    pub(crate) fn new(
        db: &Db,
        clock: &Clock,
        inventories: &InventoryCache,
        settings: &SeatMapSettings,
    ) -> SeatMaps {
        SeatMaps(Arc::new(Inner {
            db: db.clone(),
            clock: clock.clone(),
            inventories: inventories.clone(),
            entries: RwLock::default(),
            events_of_types: Cache::new(clock.clone(), EVENTS_OF_TYPES),
            streams: Arc::new(StreamPermits::new(
                settings.streams_max,
                settings.streams_per_user_max,
            )),
            epoch: Mutex::new(MapEpoch::FIRST),
            closing: CancellationToken::new(),
            reads: AtomicU64::new(0),
            settings: settings.clone(),
        }))
    }

    /// The current snapshot; none if there is no such event.
    pub async fn load(&self, event_id: Uuid) -> DbResult<Option<Arc<InventorySnapshot>>> {
        let entry = self.entry(event_id);
        let started = entry.begin_read(self.0.clock.now());
        if let Some(view) = entry.current(&started, &self.0.clock, self.0.settings.refresh_interval)
        {
            return Ok(visible(view));
        }
        // Held until the snapshot is published: waiting requests must find it.
        let _refreshing = entry.refreshing.lock().await;
        if let Some(view) = entry.current(&started, &self.0.clock, self.0.settings.refresh_interval)
        {
            return Ok(visible(view));
        }
        match entry.failure_after(&started) {
            Some(LoadFailure::NotFound) => return Ok(None),
            Some(LoadFailure::Failed(error)) => return Err(error),
            None => {}
        }
        let attempt = entry.begin_refresh();
        match self.refresh(event_id, &entry, attempt).await {
            Ok(Some(view)) => {
                entry.publish(Arc::clone(&view));
                Ok(visible(view))
            }
            Ok(None) => {
                entry.publish_failure(attempt, LoadFailure::NotFound);
                self.forget(event_id, &entry);
                Ok(None)
            }
            Err(error) => {
                entry.publish_failure(attempt, LoadFailure::Failed(error.clone()));
                Err(error)
            }
        }
    }

    /// Updates the snapshot of an entry, or reads it for the first time.
    async fn refresh(
        &self,
        event_id: Uuid,
        entry: &MapEntry,
        attempt: u64,
    ) -> DbResult<Option<Arc<InventorySnapshot>>> {
        let (change_counts, read_at, epoch) =
            (entry.change_counts(), self.0.clock.now(), self.epoch());
        let current = entry.view();
        let inventory = match &current {
            Some(view) => Arc::clone(&view.inventory),
            None => match self.0.inventories.get(event_id).await? {
                Some(inventory) => inventory,
                None => return Ok(None),
            },
        };
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let before = current.filter(|view| view.seats.epoch() == epoch);
        let seen = before.as_ref().map(|view| view.seen);
        let read = move |tx: &mut Tx<'_>| {
            let Some(mark) = map::sale_mark(tx, event_id)? else { return Ok(None) };
            if seen == Some(mark.fence) {
                return Ok(Some((mark, None)));
            }
            let seen = seen.filter(|seen| *seen < mark.fence);
            let changes = map::seats_changed(tx, event_id, seen.unwrap_or(0))?;
            Ok(Some((mark, Some((changes, ticket_type_list(tx, event_id)?)))))
        };
        let found: Option<_> = self.0.db.read(read).await?;
        let Some((mark, changed)) = found else { return Ok(None) };
        let blank = |epoch| Arc::new(SeatSnapshot::blank(epoch, inventory.layout.seat_count()));
        let snapshot = match &before {
            Some(view) if view.seen > mark.fence => {
                tracing::warn!(%event_id, seen = view.seen, fence = mark.fence, "the numbers of changes went back");
                blank(self.epoch_after(epoch))
            }
            Some(view) => Arc::clone(&view.seats),
            None => blank(epoch),
        };
        let (snapshot, ticket_types) = match changed {
            Some((changes, types)) if changes.is_empty() => (snapshot, types),
            Some((changes, types)) => (Arc::new(snapshot.after(&changes)), types),
            None => (snapshot, before.map(|view| view.ticket_types.clone()).unwrap_or_default()),
        };
        let (seen, status) = (mark.fence, mark.status);
        Ok(Some(Arc::new(InventorySnapshot {
            inventory,
            seats: snapshot,
            ticket_types,
            seen,
            status,
            read_at,
            attempt,
            change_counts,
        })))
    }

    fn epoch(&self) -> MapEpoch {
        *self.0.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins another epoch, unless the map of another event has: a database is restored as a
    /// whole.
    fn epoch_after(&self, ended: MapEpoch) -> MapEpoch {
        let mut epoch = self.0.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if *epoch == ended {
            *epoch = ended.next(self.0.clock.now());
        }
        *epoch
    }

    /// The current snapshot of the event of a ticket type.
    pub async fn load_by_ticket_type(
        &self,
        ticket_type_id: Uuid,
    ) -> DbResult<Option<Arc<InventorySnapshot>>> {
        let event_ids = &self.0.events_of_types;
        let event_id = match event_ids.get(&ticket_type_id) {
            Some(event_id) => event_id,
            None => {
                let find = move |tx: &mut Tx<'_>| map::ticket_type_event(tx, ticket_type_id);
                let Some(event_id) = self.0.db.read(find).await? else { return Ok(None) };
                event_ids.insert(ticket_type_id, event_id);
                event_id
            }
        };
        self.load(event_id).await
    }

    /// To be called after a commit that changed the event: the next read sees it.
    pub fn mark_dirty(&self, event_id: Uuid) {
        if let Some(entry) = self.find_entry(event_id) {
            entry.mark(true);
        }
    }

    /// The same after a commit that only took seats: hints that other seats are taken stay valid.
    pub fn mark_taken(&self, event_id: Uuid) {
        if let Some(entry) = self.find_entry(event_id) {
            entry.mark(false);
        }
    }

    /// One of these seats that is known to be taken, without asking the database: for early
    /// rejections.
    ///
    /// None if the map is not recent or a seat was freed since.
    pub fn taken_hint(&self, event_id: Uuid, seat_ids: &[SeatId]) -> Option<SeatId> {
        let entry = self.find_entry(event_id)?;
        let view = entry.view()?;
        let age_max = self.0.settings.refresh_interval;
        let is_recent = view.age(self.0.clock.now()).is_some_and(|age| age < age_max);
        if !is_recent || view.change_counts.freed < entry.change_counts().freed {
            return None;
        }
        let is_taken = |id: &SeatId| {
            let status = view.seats.statuses().get(*id);
            status.is_some_and(|status| status != SeatStatus::Available)
        };
        seat_ids.iter().copied().find(is_taken)
    }

    /// Whether a seat is known to have been free after the change with this number: a lock with the
    /// number is then left over.
    pub fn is_free_at(&self, event_id: Uuid, seat_id: SeatId, fence: i64) -> bool {
        let view = self.find_entry(event_id).and_then(|entry| entry.view());
        view.is_some_and(|view| view.seen >= fence && view.seats.statuses().is_available(seat_id))
    }

    /// How often the database was read for a map.
    pub fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::Relaxed)
    }

    /// How many events are in memory.
    pub fn events(&self) -> usize {
        self.0.entries.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Ends all streams and rejects new ones: a stream would outlast the shutdown's grace.
    pub fn close_streams(&self) {
        self.0.closing.cancel();
    }

    fn find_entry(&self, event_id: Uuid) -> Option<Arc<MapEntry>> {
        self.0.entries.read().unwrap_or_else(PoisonError::into_inner).get(&event_id).cloned()
    }

    /// The entry of an event, created if need be.
    fn entry(&self, event_id: Uuid) -> Arc<MapEntry> {
        if let Some(entry) = self.find_entry(event_id) {
            return entry;
        }
        let mut entries = self.0.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.0.settings.events_max && !entries.contains_key(&event_id) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.last_read_at());
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                entries.remove(&oldest);
            }
        }
        Arc::clone(entries.entry(event_id).or_insert_with(|| Arc::new(MapEntry::new())))
    }

    /// Drops the entry of an event that does not exist.
    fn forget(&self, event_id: Uuid, entry: &Arc<MapEntry>) {
        let mut entries = self.0.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.get(&event_id).is_some_and(|present| Arc::ptr_eq(present, entry)) {
            entries.remove(&event_id);
        }
    }
}

impl InventorySnapshot {
    /// None if the clock went back.
    fn age(&self, now: Timestamp) -> Option<Duration> {
        Duration::try_from(now.duration_since(self.read_at)).ok()
    }
}

/// A deleted event is not visible.
fn visible(view: Arc<InventorySnapshot>) -> Option<Arc<InventorySnapshot>> {
    (view.status != SaleStatus::Deleted).then_some(view)
}
