//! The figures of reservations, for the dashboard of the catalog.

use urr_contracts::internal::ticket::{
    GetReservationFigures, RecentReservation, ReservationFigures,
};
use urr_kernel::{CallContext, Timestamp, start_of_korean_day};
use urr_service::{ApiError, Page};
use urr_storage::{StorageError, Tx};

use crate::payables::reservation_status;
use crate::reservations::store::list::{figures_load, record_page};
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
        let sums = figures_load(tx, &filter, start_of_korean_day(now), now)?;
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
