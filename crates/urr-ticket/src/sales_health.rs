//! How sales and bookings are doing: what the waiting room asks every second.

pub(crate) mod booking_stats;
pub(crate) mod http;
pub(crate) mod store;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use urr_kernel::Uuid;
use urr_storage::{StorageError, Tx};

use crate::inventory::store as sales;
use crate::memberships::tiers::{Fan, tier_list};
pub use crate::sales_health::booking_stats::{BookingStats, BookingSummary};
use crate::sales_health::store as pulse;
use crate::sales_health::store::StockTotals;
use crate::{InventoryKind, InventorySnapshot, TicketService, Tier};

/// So many sales are looked at side by side.
const READS_AT_ONCE: usize = 8;
/// More sums than this and they are added up anew.
const SUMS_MAX: usize = 1_000;

/// How many seats or tickets of an event there are, and how many of them can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaleSupply {
    pub available: u32,
    /// Not available now, but perhaps in a moment.
    pub held: u32,
    pub total: u32,
}

/// Sums of the stock of standing events, by the number of the change they were made after. Clones
/// share them.
#[derive(Clone, Default)]
pub(crate) struct StockTotalsCache(Arc<Mutex<HashMap<Uuid, (i64, StockTotals)>>>);

impl StockTotalsCache {
    fn get(&self, event_id: Uuid, seen: i64) -> Option<StockTotals> {
        let sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sums.get(&event_id).filter(|(known, _)| *known == seen).map(|(_, sum)| *sum)
    }

    fn insert(&self, event_id: Uuid, seen: i64, sum: StockTotals) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sums.len() >= SUMS_MAX && !sums.contains_key(&event_id) {
            sums.clear();
        }
        sums.insert(event_id, (seen, sum));
    }
}

impl TicketService {
    /// What can be had of these events; those that are not known are left out. It costs no more of
    /// the database than people who look at the events.
    pub async fn sale_supplies(
        &self,
        event_ids: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, SaleSupply)>, StorageError> {
        let reads = stream::iter(event_ids).map(async |event_id| {
            let sale_supply = match self.maps.load(event_id).await? {
                Some(view) => Some((event_id, self.sale_supply(&view).await?)),
                None => None,
            };
            Ok(sale_supply)
        });
        let reads = reads.buffer_unordered(READS_AT_ONCE);
        reads.try_filter_map(async |sale_supply| Ok(sale_supply)).try_collect().await
    }

    async fn sale_supply(&self, view: &InventorySnapshot) -> Result<SaleSupply, StorageError> {
        let event_id = view.inventory.event_id;
        match view.inventory.kind {
            InventoryKind::Seated => {
                let statuses = view.snapshot.statuses();
                let (held, sold) = statuses.taken();
                let total = statuses.count();
                Ok(SaleSupply { available: total - held - sold, held, total })
            }
            InventoryKind::Standing => {
                let sum = match self.stock_totals.get(event_id, view.seen) {
                    Some(sum) => sum,
                    None => {
                        let sum =
                            self.db.read(move |tx| pulse::stock_totals_load(tx, event_id)).await?;
                        // It may be of a later change: then the next look adds up once more.
                        self.stock_totals.insert(event_id, view.seen, sum);
                        sum
                    }
                };
                let StockTotals { available, held, total } = sum;
                Ok(SaleSupply { available, held, total })
            }
        }
    }

    /// How the bookings of this process went lately.
    pub fn booking_summary(&self) -> BookingSummary {
        self.booking_stats.summary()
    }

    /// A fan's standing with the artist of an event; none is the general public.
    pub async fn tier_of(
        &self,
        event_id: Uuid,
        user_id: Uuid,
    ) -> Result<Option<Tier>, StorageError> {
        let now = self.clock.now();
        let find = move |tx: &mut Tx<'_>| {
            let policy = sales::policy_find(tx, event_id)?;
            let Some(artist_id) = policy.and_then(|policy| policy.artist_id) else {
                return Ok(None);
            };
            let fan = Fan { user_id, artist_id };
            Ok(tier_list(tx, &[fan], now)?.get(&fan).copied())
        };
        self.db.read(find).await
    }
}
