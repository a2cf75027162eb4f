//! What payments ask and say, and what mails ask. Nobody else is let in.

use axum::extract::State;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Caller, Context, Internal, Json, Path, Query};
use utoipa_axum::router::OpenApiRouter;

use crate::reservations::http::admin::parse_reason;
use crate::reservations::store::list::ListedReservation;
use crate::{
    AdminCancel, CompletedPayment, EventChain, FeeMode, PaymentClaim, ReservationId,
    ReservationRecord, ReturnedMoney, TicketService,
};

const PAID_PER_PAGE: u32 = 200;

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .route("/internal/ticket/paid", get(list_paid))
        .route("/internal/ticket/reservations/{id}", get(get_state))
        .route("/internal/ticket/reservations/{id}/validate", get(validate))
        .route("/internal/ticket/reservations/{id}/pin", post(pin))
        .route("/internal/ticket/reservations/{id}/unpin", post(unpin))
        .route("/internal/ticket/reservations/{id}/confirm", post(confirm))
        .route("/internal/ticket/reservations/{id}/cancel", post(cancel))
        .route("/internal/ticket/reservations/{id}/refunded", post(refunded))
        .route("/internal/ticket/reservations/{id}/summary", get(summary))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateView {
    id: Uuid,
    reservation_number: String,
    user_id: Uuid,
    event_id: Uuid,
    status: &'static str,
    payment_status: &'static str,
    total_amount: Won,
    booking_fee: Won,
    quantity: u32,
    expires_at: Timestamp,
    fencing_token: i64,
    pinned_by: Option<Uuid>,
    payment_id: Option<Uuid>,
    refund_amount: Option<Won>,
    cancellation_fee: Option<Won>,
    updated_at: Timestamp,
}

#[derive(Serialize)]
struct StateAnswer {
    reservation: StateView,
}

/// A reservation that can be paid, and what to call it on the way.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PayableView {
    #[serde(flatten)]
    state: StateView,
    order_name: String,
    /// The flow that it began, and the event that last told of it.
    correlation_id: Option<Uuid>,
    last_event_id: Option<Uuid>,
}

#[derive(Serialize)]
struct PayableAnswer {
    reservation: PayableView,
}

fn answer(ticket: &TicketService, record: ReservationRecord) -> Json<StateAnswer> {
    Json(StateAnswer { reservation: StateView::new(record, ticket.clock.now()) })
}

impl StateView {
    fn new(record: ReservationRecord, now: Timestamp) -> StateView {
        let status = record.status(now).name();
        let cancellation_fee = record.cancellation_fee();
        let ReservationRecord {
            reservation, quantity, payment_id, refund_amount, updated_at, ..
        } = record;
        StateView {
            id: reservation.id.0,
            reservation_number: reservation.number,
            user_id: reservation.user_id,
            event_id: reservation.event_id,
            status,
            payment_status: reservation.payment_status.name(),
            total_amount: reservation.total_amount,
            booking_fee: reservation.booking_fee,
            quantity,
            expires_at: reservation.expires_at,
            fencing_token: reservation.fence,
            pinned_by: reservation.pinned_by,
            payment_id,
            refund_amount,
            cancellation_fee,
            updated_at,
        }
    }
}

pub(crate) fn only_payments(caller: Internal) -> Result<(), ApiError> {
    match caller.caller() {
        Caller::Payment => Ok(()),
        _ => Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for the payment service.")),
    }
}

/// A reservation in whatever state, for reconciliation.
async fn get_state(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let record = ticket.find_reservation(ReservationId(id)).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
struct PaidQuery {
    /// The last reservation of the page before.
    after: Option<Uuid>,
}

#[derive(Serialize)]
struct PaidAnswer {
    reservations: Vec<StateView>,
    /// Whether there are others behind them.
    more: bool,
}

/// Whatever was ever paid, in the order of its ids, a page at a time: for those who compare books.
async fn list_paid(
    State(ticket): State<TicketService>,
    caller: Internal,
    Query(query): Query<PaidQuery>,
) -> Result<Json<PaidAnswer>, ApiError> {
    only_payments(caller)?;
    let page = ticket.list_paid(query.after.map(ReservationId), PAID_PER_PAGE).await?;
    let now = ticket.clock.now();
    let reservations = page.records.into_iter().map(|record| StateView::new(record, now));
    Ok(Json(PaidAnswer { reservations: reservations.collect(), more: page.more }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValidateQuery {
    pub user_id: Uuid,
}

/// A user's reservation if it can be paid now.
async fn validate(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Query(query): Query<ValidateQuery>,
) -> Result<Json<PayableAnswer>, ApiError> {
    only_payments(caller)?;
    let details = ticket.validate_for_payment(ReservationId(id), query.user_id).await?;
    let order_name = details.order_name();
    let state = StateView::new(details.listed.record, ticket.clock.now());
    let EventChain { correlation_id, last_event_id } = ticket.find_flow(ReservationId(id)).await?;
    let reservation = PayableView { state, order_name, correlation_id, last_event_id };
    Ok(Json(PayableAnswer { reservation }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PinBody {
    pub payment_id: Uuid,
    pub user_id: Uuid,
    pub fencing_token: i64,
    pub amount: Won,
}

async fn pin(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<PinBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let PinBody { payment_id, user_id, fencing_token, amount } = body;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let record = ticket.pin_hold(ReservationId(id), user_id, claim).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UnpinBody {
    pub payment_id: Uuid,
}

async fn unpin(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<UnpinBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let record = ticket.unpin_hold(ReservationId(id), body.payment_id).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ConfirmBody {
    pub payment_id: Uuid,
    pub fencing_token: i64,
    pub amount: Won,
    pub payment_method: Option<String>,
}

async fn confirm(
    State(ticket): State<TicketService>,
    caller: Internal,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<ConfirmBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let ConfirmBody { payment_id, fencing_token, amount, payment_method } = body;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let made = CompletedPayment::new(claim, payment_method.as_deref());
    let record = ticket.confirm_reservation(ReservationId(id), made, context).await?;
    Ok(answer(&ticket, record))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RefundedBody {
    pub payment_id: Uuid,
    /// What was asked for.
    pub amount: Won,
    /// What of that came, if it is less.
    pub returned_amount: Option<Won>,
}

async fn refunded(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<RefundedBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let RefundedBody { payment_id, amount: asked, returned_amount } = body;
    let back = ReturnedMoney { asked, returned: returned_amount.unwrap_or(asked) };
    let record = ticket.mark_refunded(ReservationId(id), payment_id, back).await?;
    Ok(answer(&ticket, record))
}

/// Exactly one of them cancels.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CancelBody {
    /// The owner.
    user_id: Option<Uuid>,
    admin_id: Option<Uuid>,
    /// Why an administrator does it.
    #[serde(default)]
    reason: String,
    /// The payment that is to go back by it.
    payment_id: Option<Uuid>,
}

/// Someone asks for their money where they paid. What goes back is decided and announced here; the
/// payment service obeys the announcement, so that there is one way only.
async fn cancel(
    State(ticket): State<TicketService>,
    caller: Internal,
    Context(context): Context,
    Path(id): Path<Uuid>,
    Json(body): Json<CancelBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let id = ReservationId(id);
    let record = match (body.user_id, body.admin_id) {
        (Some(user_id), None) => ticket.cancel_reservation(id, user_id, context).await?,
        (None, Some(admin_id)) => {
            let reason = parse_reason(&body.reason)?;
            let by =
                AdminCancel { admin_id, reason, fee: FeeMode::Waived, payment_id: body.payment_id };
            ticket.cancel_as_admin(id, by, context).await?
        }
        _ => {
            let sentence = "Either the owner or an administrator cancels.";
            return Err(ApiError::bad_request("INVALID_CANCELLER", sentence));
        }
    };
    Ok(answer(&ticket, record))
}

/// What was booked, as people call it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryView {
    reservation_number: String,
    event_id: Uuid,
    event_title: String,
    venue_name: String,
    event_starts_at: Timestamp,
    /// Labels of seats, and standing tickets with their number.
    places: Vec<String>,
    quantity: u32,
}

#[derive(Serialize)]
struct SummaryAnswer {
    reservation: SummaryView,
}

/// What a mail says of a reservation. Only the mail service is let in.
async fn summary(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
) -> Result<Json<SummaryAnswer>, ApiError> {
    if caller.caller() != Caller::Mail {
        return Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for the mail service."));
    }
    let details = ticket.reservation_details(ReservationId(id)).await?;
    let places = details.places();
    let ListedReservation { record, event_title, venue_name } = details.listed;
    Ok(Json(SummaryAnswer {
        reservation: SummaryView {
            reservation_number: record.reservation.number,
            event_id: record.reservation.event_id,
            event_title,
            venue_name,
            event_starts_at: record.starts_at,
            places,
            quantity: record.quantity,
        },
    }))
}
