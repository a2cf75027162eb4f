//! The figures of reservations, for the dashboard of the catalog.

use std::time::Duration;

use urr_contracts::internal::ticket::{
    GetReservationFigures, RecentReservation, ReservationFigures,
};
use urr_kernel::{CallContext, Timestamp, Uuid, start_of_korean_day};
use urr_service::{ApiError, Page};
use urr_storage::{DbResult, StorageError, Tx};

use crate::payables::reservation_status;
use crate::reservations::store::list::record_page;
use crate::reservations::store::sums::{figures_load, sums_store, unsummed_list};
use crate::{ReservationFilter, ReservationRecord, TicketService};

/// How many of the last reservations are shown.
const RECENT: i64 = 10;

pub async fn get_reservation_figures(
    ticket: TicketService,
    call: GetReservationFigures,
    _: CallContext,
) -> Result<ReservationFigures, ApiError> {
    let now = ticket.clock.now();
    let filter =
        ReservationFilter { organiser_id: call.organiser_id, ..ReservationFilter::default() };
    let read = move |tx: &mut Tx<'_>| {
        let sums = figures_load(tx, filter.organiser_id, start_of_korean_day(now), now)?;
        let recent = record_page(tx, &filter, Page::new(1, RECENT))?;
        Ok::<_, StorageError>(ReservationFigures {
            total_reservations: sums.total,
            total_revenue: sums.revenue,
            today_reservations: sums.today,
            recent_reservations: recent.into_iter().map(|record| view(record, now)).collect(),
        })
    };
    Ok(ticket.db.read(read).await?)
}

/// After its start an event hardly changes.
const OVER_AFTER: Duration = Duration::from_hours(24);
const EVENTS_AT_ONCE: u32 = 20;

impl TicketService {
    /// Stores the sums of events that are over. Returns how many.
    pub async fn sum_past_events(&self) -> DbResult<u64> {
        let over_at = self.clock.now() - OVER_AFTER;
        let list = move |tx: &mut Tx<'_>| unsummed_list(tx, over_at, EVENTS_AT_ONCE);
        let events: Vec<Uuid> = self.db.read(list).await?;
        for event_id in &events {
            let event_id = *event_id;
            self.db.write(move |tx: &mut Tx<'_>| sums_store(tx, event_id)).await?;
        }
        Ok(u64::try_from(events.len()).expect("it is small"))
    }
}

fn view(record: ReservationRecord, now: Timestamp) -> RecentReservation {
    let status = reservation_status(record.status(now));
    let ReservationRecord { reservation, event_title, .. } = record;
    RecentReservation {
        id: reservation.id.0,
        user_id: reservation.user_id,
        reservation_number: reservation.number,
        event_title,
        total_amount: reservation.total_amount,
        status,
        created_at: reservation.created_at,
    }
}
