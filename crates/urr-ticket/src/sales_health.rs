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
pub use crate::sales_health::booking_stats::{BookingFigures, Bookings};
use crate::sales_health::store as pulse;
use crate::sales_health::store::StockSum;
use crate::{EventView, Kind, Ticket, Tier};

/// So many sales are looked at side by side.
const LOOKS_AT_ONCE: usize = 8;
/// More sums than this and they are added up anew.
const SUMS_MAX: usize = 1_000;

/// How many seats or tickets of an event there are, and how many of them can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    pub available: u32,
    /// Not available now, but perhaps in a moment.
    pub held: u32,
    pub total: u32,
}

/// Sums of the stock of standing events, by the number of the change they were made after. Clones
/// share them.
#[derive(Clone, Default)]
pub(crate) struct StockSums(Arc<Mutex<HashMap<Uuid, (i64, StockSum)>>>);

impl StockSums {
    fn get(&self, event_id: Uuid, seen: i64) -> Option<StockSum> {
        let sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sums.get(&event_id).filter(|(known, _)| *known == seen).map(|(_, sum)| *sum)
    }

    fn keep(&self, event_id: Uuid, seen: i64, sum: StockSum) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sums.len() >= SUMS_MAX && !sums.contains_key(&event_id) {
            sums.clear();
        }
        sums.insert(event_id, (seen, sum));
    }
}

impl Ticket {
    /// What can be had of these events; those that are not known are left out. It costs no more of
    /// the database than people who look at the events.
    pub async fn supplies(
        &self,
        event_ids: Vec<Uuid>,
    ) -> Result<Vec<(Uuid, Supply)>, StorageError> {
        let looks = stream::iter(event_ids).map(async |event_id| {
            let supply = match self.maps.look(event_id).await? {
                Some(view) => Some((event_id, self.supply(&view).await?)),
                None => None,
            };
            Ok(supply)
        });
        let looks = looks.buffer_unordered(LOOKS_AT_ONCE);
        looks.try_filter_map(async |supply| Ok(supply)).try_collect().await
    }

    async fn supply(&self, view: &EventView) -> Result<Supply, StorageError> {
        let event_id = view.inventory.event_id;
        match view.inventory.kind {
            Kind::Seated => {
                let statuses = view.picture.statuses();
                let (held, sold) = statuses.taken();
                let total = statuses.count();
                Ok(Supply { available: total - held - sold, held, total })
            }
            Kind::Standing => {
                let sum = match self.stock_sums.get(event_id, view.seen) {
                    Some(sum) => sum,
                    None => {
                        let sum = self.db.read(move |tx| pulse::stock_sum(tx, event_id)).await?;
                        // It may be of a later change: then the next look adds up once more.
                        self.stock_sums.keep(event_id, view.seen, sum);
                        sum
                    }
                };
                let StockSum { available, held, total } = sum;
                Ok(Supply { available, held, total })
            }
        }
    }

    /// How the bookings of this process went lately.
    pub fn booking_figures(&self) -> BookingFigures {
        self.bookings.figures()
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
