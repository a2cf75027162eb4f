//! The internal calls about reservations: payments cancel and reconcile them, mails describe them.

use urr_contracts::internal::ticket::{
    Acknowledged, CancelReservation, GetReservationSummary, ListPaidReservations,
    PaidReservationPage, PayableAnswer, ReleaseHold, ReservationSummary, ReservationSummaryAnswer,
};
use urr_kernel::CallContext;
use urr_service::ApiError;

use crate::payables::reservation_view;
use crate::reservations::http::admin::parse_reason;
use crate::{
    AdminCancel, FeeMode, ReservationId, ReservationKind, ReservationRecord, TicketService,
};

const PAID_PER_PAGE: u32 = 200;

/// Every reservation that was ever paid, in the order of ids, for reconciliation.
pub async fn list_paid_reservations(
    ticket: TicketService,
    call: ListPaidReservations,
    _: CallContext,
) -> Result<PaidReservationPage, ApiError> {
    let (records, more) = ticket.list_paid(call.after.map(ReservationId), PAID_PER_PAGE).await?;
    let now = ticket.clock.now();
    let reservations = records.into_iter().map(|record| reservation_view(record, now)).collect();
    Ok(PaidReservationPage { reservations, more })
}

/// Cancels for a user who asks for a refund where they paid. The refund is decided and announced
/// here; the payment service follows the announcement, so that there is one way only.
pub async fn cancel_reservation(
    ticket: TicketService,
    call: CancelReservation,
    context: CallContext,
) -> Result<PayableAnswer, ApiError> {
    let id = ReservationId(call.id);
    let record = match (call.user_id, call.admin_id) {
        (Some(user_id), None) => ticket.cancel_reservation(id, user_id, context).await?,
        (None, Some(admin_id)) => {
            let (reason, payment_id) = (parse_reason(&call.reason)?, call.payment_id);
            let by = AdminCancel { admin_id, reason, fee: FeeMode::Waived, payment_id };
            ticket.cancel_as_admin(id, by, context).await?
        }
        _ => {
            let sentence = "Either the owner or an administrator cancels.";
            return Err(ApiError::bad_request("INVALID_CANCELLER", sentence));
        }
    };
    let payable = reservation_view(record, ticket.clock.now());
    Ok(PayableAnswer { payable })
}

/// Releases a hold whose payments were declined too often.
pub async fn release_hold(
    ticket: TicketService,
    ReleaseHold { id, user_id, fencing_token }: ReleaseHold,
    context: CallContext,
) -> Result<Acknowledged, ApiError> {
    ticket.release_hold(ReservationId(id), user_id, Some(fencing_token), context).await?;
    Ok(Acknowledged {})
}

pub async fn get_reservation_summary(
    ticket: TicketService,
    call: GetReservationSummary,
    _: CallContext,
) -> Result<ReservationSummaryAnswer, ApiError> {
    let id = ReservationId(call.id);
    let details = ticket.reservation_details(id).await?;
    let guest_email = match details.record.kind {
        ReservationKind::Complimentary => ticket.find_guest_email(id).await?,
        ReservationKind::Online | ReservationKind::BoxOffice => None,
    };
    let places = details.places();
    let ReservationRecord { reservation, event_title, venue_name, starts_at, .. } = details.record;
    let reservation = ReservationSummary {
        reservation_number: reservation.number,
        event_id: reservation.event_id,
        event_title,
        venue_name,
        event_starts_at: starts_at,
        places,
        quantity: reservation.quantity,
    };
    Ok(ReservationSummaryAnswer { reservation, guest_email })
}
