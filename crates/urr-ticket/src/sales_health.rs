//! Sales health: what is left of sales and how booking goes. Waiting rooms ask for it every second.

pub(crate) mod booking_stats;
pub(crate) mod http;
pub(crate) mod shared_bookings;

use std::collections::HashMap;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use urr_contracts::internal::ticket::{EventAvailability, GradeSeats, SaleBoard};
use urr_kernel::{Uuid, Won};
use urr_service::cache::{Cache, CacheOptions};
use urr_storage::{DbResult, Row, StorageError, Tx, params};

use crate::inventory::store::policy_find;
use crate::memberships::tiers::tier_find;
use crate::{InventoryKind, InventorySnapshot, SeatStatus, TicketService, TicketTypeStock, Tier};

/// This many sales are read concurrently.
const READS_AT_ONCE: usize = 8;

/// The availability of standing events, by event and the number of the change that it was read
/// after. It may include a later change: then it is read once more for that one.
pub(crate) type StandingTotals = Cache<(Uuid, i64), EventAvailability, StorageError>;

pub(crate) const STANDING_TOTALS: CacheOptions =
    CacheOptions { ttl: Duration::from_hours(1), entries_max: 1_000 };

impl TicketService {
    /// What is left of these events; unknown events are left out. It costs the database no more than
    /// users who look at the events.
    pub async fn list_availability(
        &self,
        event_ids: Vec<Uuid>,
    ) -> DbResult<HashMap<Uuid, EventAvailability>> {
        let reads = stream::iter(event_ids).map(async |event_id| {
            Ok(match self.maps.load(event_id).await? {
                Some(snapshot) => Some((event_id, self.availability(&snapshot).await?)),
                None => None,
            })
        });
        let reads = reads.buffer_unordered(READS_AT_ONCE);
        reads.try_filter_map(async |availability| Ok(availability)).try_collect().await
    }

    async fn availability(&self, snapshot: &InventorySnapshot) -> DbResult<EventAvailability> {
        let event_id = snapshot.inventory.event_id;
        match snapshot.inventory.kind {
            InventoryKind::Seated => {
                let statuses = snapshot.seats.statuses();
                let (held, taken) = statuses.taken();
                let total = statuses.count();
                Ok(EventAvailability { available: total - taken, held, total })
            }
            InventoryKind::Standing => {
                let db = self.db.clone();
                let load =
                    || async move { db.read(move |tx| standing_availability(tx, event_id)).await };
                self.standing_totals.get_or_load((event_id, snapshot.seen), load).await
            }
        }
    }

    /// What is sold of an event, by grade; none if there is no such sale.
    pub async fn sale_board(&self, event_id: Uuid) -> DbResult<Option<SaleBoard>> {
        let Some(snapshot) = self.maps.load(event_id).await? else { return Ok(None) };
        let availability = self.availability(&snapshot).await?;
        let grades = match snapshot.inventory.kind {
            InventoryKind::Seated => seated_grades(&snapshot),
            InventoryKind::Standing => standing_grades(&snapshot),
        };
        Ok(Some(SaleBoard { availability, booking: self.booking_health(), grades }))
    }

    /// The tier of a user with the artist of an event; none is the general public.
    pub async fn tier_of(&self, event_id: Uuid, user_id: Uuid) -> DbResult<Option<Tier>> {
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

fn seated_grades(snapshot: &InventorySnapshot) -> Vec<GradeSeats> {
    let (inventory, statuses) = (&snapshot.inventory, snapshot.seats.statuses());
    let grade = |name: &str| GradeSeats {
        name: name.to_owned(),
        price: inventory.prices.get(name).copied().unwrap_or(Won::ZERO),
        total: 0,
        available: 0,
        held: Some(0),
        blocked: Some(0),
    };
    let mut grades: Vec<GradeSeats> = inventory.layout.grades().into_iter().map(grade).collect();
    let mut seat_id = 0;
    for section in &inventory.layout.sections {
        let grade = grades.iter_mut().find(|grade| grade.name == section.grade);
        let grade = grade.expect("the layout names its grades");
        let end = seat_id + section.seat_count();
        grade.total += section.seat_count();
        for id in seat_id..end {
            match statuses.get(id) {
                Some(SeatStatus::Available) => grade.available += 1,
                Some(SeatStatus::Held) => *grade.held.get_or_insert(0) += 1,
                Some(SeatStatus::Blocked) => *grade.blocked.get_or_insert(0) += 1,
                Some(SeatStatus::Sold) | None => {}
            }
        }
        seat_id = end;
    }
    grades
}

fn standing_grades(snapshot: &InventorySnapshot) -> Vec<GradeSeats> {
    let grade = |stock: &TicketTypeStock| GradeSeats {
        name: stock.name.clone(),
        price: stock.price,
        total: stock.total,
        available: stock.available,
        held: None,
        blocked: None,
    };
    snapshot.ticket_types.iter().map(grade).collect()
}

/// The tickets of all types of an event. One statement, so that all three numbers are of one moment:
/// between two statements a hold could be released, and the event would look sold out.
fn standing_availability(tx: &mut Tx<'_>, event_id: Uuid) -> DbResult<EventAvailability> {
    let number = |row: &Row<'_>, column: &str| -> DbResult<u32> {
        let number: i64 = row.get(column)?;
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    };
    tx.query_one(
        "select \
         (select coalesce(sum(available), 0) from ticket_types where event_id = $1) as available, \
         (select coalesce(sum(quantity), 0) from reservations \
             where event_id = $1 and status = 'pending') as held, \
         (select coalesce(sum(total), 0) from ticket_types where event_id = $1) as total",
        params![event_id],
        |row| {
            Ok(EventAvailability {
                available: number(row, "available")?,
                held: number(row, "held")?,
                total: number(row, "total")?,
            })
        },
    )
}
