//! Sales health: what is left of sales and how booking goes. Waiting rooms ask for it every second.

pub(crate) mod booking_stats;
pub(crate) mod http;
pub(crate) mod store;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use urr_contracts::internal::ticket::EventAvailability;
use urr_kernel::Uuid;
use urr_storage::{StorageError, Tx};

use crate::inventory::store::policy_find;
use crate::memberships::tiers::tier_find;
use crate::{InventoryKind, InventorySnapshot, TicketService, Tier};

/// This many sales are read concurrently.
const READS_AT_ONCE: usize = 8;
/// The cache is emptied when it has this many entries.
const TOTALS_MAX: usize = 1_000;

/// The availability of standing events, each with the number of the change that it was read after.
#[derive(Default)]
pub(crate) struct StandingTotals(Mutex<HashMap<Uuid, (i64, EventAvailability)>>);

impl StandingTotals {
    fn get(&self, event_id: Uuid, seen: i64) -> Option<EventAvailability> {
        let totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        totals.get(&event_id).filter(|(known, _)| *known == seen).map(|(_, total)| *total)
    }

    fn insert(&self, event_id: Uuid, seen: i64, total: EventAvailability) {
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if totals.len() >= TOTALS_MAX && !totals.contains_key(&event_id) {
            totals.clear();
        }
        totals.insert(event_id, (seen, total));
    }
}

impl TicketService {
    /// What is left of these events; unknown events are left out. It costs the database no more than
    /// users who look at the events.
    pub async fn list_availability(
        &self,
        event_ids: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, EventAvailability>, StorageError> {
        let reads = stream::iter(event_ids).map(async |event_id| {
            Ok(match self.maps.load(event_id).await? {
                Some(snapshot) => Some((event_id, self.availability(&snapshot).await?)),
                None => None,
            })
        });
        let reads = reads.buffer_unordered(READS_AT_ONCE);
        reads.try_filter_map(async |availability| Ok(availability)).try_collect().await
    }

    async fn availability(
        &self,
        snapshot: &InventorySnapshot,
    ) -> Result<EventAvailability, StorageError> {
        let event_id = snapshot.inventory.event_id;
        match snapshot.inventory.kind {
            InventoryKind::Seated => {
                let statuses = snapshot.seats.statuses();
                let (held, sold) = statuses.taken();
                let total = statuses.count();
                Ok(EventAvailability { available: total - held - sold, held, total })
            }
            InventoryKind::Standing => {
                if let Some(totals) = self.standing_totals.get(event_id, snapshot.seen) {
                    return Ok(totals);
                }
                let load = move |tx: &mut Tx<'_>| store::standing_availability(tx, event_id);
                let totals = self.db.read(load).await?;
                // They may include a later change: then they are read once more for that one.
                self.standing_totals.insert(event_id, snapshot.seen, totals);
                Ok(totals)
            }
        }
    }

    /// The tier of a user with the artist of an event; none is the general public.
    pub async fn tier_of(
        &self,
        event_id: Uuid,
        user_id: Uuid,
    ) -> Result<Option<Tier>, StorageError> {
        let now = self.clock.now();
        let find = move |tx: &mut Tx<'_>| {
            let policy = policy_find(tx, event_id)?;
            let Some(artist_id) = policy.and_then(|policy| policy.artist_id) else {
                return Ok(None);
            };
            tier_find(tx, artist_id, user_id, now)
        };
        self.db.read(find).await
    }
}
