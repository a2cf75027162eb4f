//! The routes of transfers. Buying is a payment.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Context, Errors, Json, Page, Paged, Pagination, Path, Query, User};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::reserve::http::{HeldSeatView, HeldTicketsView, item_views};
use crate::{
    ReservationId, TicketService, TransferDetails, TransferError, TransferFilter, TransferId,
    TransferRejection,
};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(create_transfer, list_transfers))
        .routes(routes!(list_my_transfers))
        .routes(routes!(get_transfer))
        .routes(routes!(cancel_transfer))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateTransferBody {
    reservation_id: Uuid,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TransferView {
    /// What a payment of the type `transfer` names as its `referenceId`.
    id: Uuid,
    /// `listed`, `completed` or `cancelled`.
    #[schema(example = "listed")]
    status: &'static str,
    /// Why it was cancelled: `CANCELLED_BY_SELLER`, `EVENT_STARTED`, `EVENT_CANCELLED`,
    /// `TICKET_USED` and others.
    #[schema(example = "EVENT_STARTED")]
    end_reason: Option<String>,
    /// A payment is under way: no other user can buy it, and it cannot be cancelled.
    is_being_paid: bool,
    /// Whether one sells it oneself.
    is_mine: bool,
    /// Only of one that one sells oneself, or has bought.
    reservation_id: Option<Uuid>,
    /// What the seller had paid, and gets back when it is sold.
    #[schema(value_type = i64, example = 150_000)]
    original_price: Won,
    #[schema(example = 10)]
    transfer_fee_percent: u8,
    /// Of the original price, rounded down to a whole won.
    #[schema(value_type = i64, example = 15_000)]
    transfer_fee: Won,
    /// What the buyer pays.
    #[schema(value_type = i64, example = 165_000)]
    total_price: Won,
    event_id: Uuid,
    event_title: String,
    venue_name: String,
    event_starts_at: Timestamp,
    /// Whose members only can buy it. None: everybody can.
    artist_id: Option<Uuid>,
    artist_name: Option<String>,
    quantity: u32,
    seats: Vec<HeldSeatView>,
    items: Vec<HeldTicketsView>,
    created_at: Timestamp,
    completed_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
struct TransferAnswerView {
    transfer: TransferView,
}

#[derive(Serialize, ToSchema)]
struct TransferListView {
    transfers: Vec<TransferView>,
    pagination: Pagination,
}

impl TransferView {
    fn new(details: &TransferDetails, viewer_id: Uuid) -> TransferView {
        let (shown, transfer) = (&details.shown, &details.shown.transfer);
        let (seats, items) = item_views(&details.items, details.inventory.as_deref());
        let is_mine = transfer.seller_id == viewer_id;
        let has_bought = transfer.payment_id.is_some() && transfer.buyer_id == Some(viewer_id);
        TransferView {
            id: transfer.id.0,
            status: transfer.status.as_str(),
            end_reason: transfer.end_reason.clone(),
            is_being_paid: transfer.pinned_by.is_some(),
            is_mine,
            reservation_id: (is_mine || has_bought).then_some(transfer.reservation_id.0),
            original_price: transfer.price.original,
            transfer_fee_percent: transfer.price.fee_percent,
            transfer_fee: transfer.price.fee,
            total_price: transfer.price.total(),
            event_id: transfer.event_id,
            event_title: shown.event_title.clone(),
            venue_name: shown.venue_name.clone(),
            event_starts_at: shown.starts_at,
            artist_id: shown.artist_id,
            artist_name: shown.artist_name.clone(),
            quantity: shown.quantity,
            seats,
            items,
            created_at: transfer.created_at,
            completed_at: transfer.completed_at,
        }
    }
}

/// Lists the user's paid reservation for sale.
///
/// The price is what the seller paid; the buyer also pays the fee (10 %, or 5 % for a gold or
/// diamond seller). Possible until the event starts. Of an artist's event only members sell and
/// buy. A sale refunds the seller in full and issues new tickets.
///
/// Errors: 403 `MEMBERSHIP_REQUIRED`; 404 `RESERVATION_NOT_FOUND`; 409 `TRANSFER_LISTED`,
/// `TICKET_IS_PERSONAL` (the event requires a checked identity), `RESERVATION_NOT_CONFIRMED`, `EVENT_STARTED`, `EVENT_CANCELLED`, `ALREADY_CHECKED_IN`.
#[utoipa::path(
    post, path = "/api/transfers", tag = "transfers", request_body = CreateTransferBody,
    responses((status = 201, body = TransferAnswerView), Errors<401, 403, 404, 409>),
)]
async fn create_transfer(
    State(ticket): State<TicketService>,
    User(user): User,
    Json(body): Json<CreateTransferBody>,
) -> Result<(StatusCode, Json<TransferAnswerView>), ApiError> {
    let id = ReservationId(body.reservation_id);
    let listed = ticket.list_for_transfer(id, user.user_id).await?;
    let answer = answer(&ticket, listed.id, user.user_id).await?;
    Ok((StatusCode::CREATED, answer))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct ListedFilter {
    artist_id: Option<Uuid>,
    event_id: Option<Uuid>,
}

/// Lists what can be bought, newest first.
///
/// Buy with `POST /api/payments/prepare`, type `transfer`, and the `totalPrice`. Errors of buying:
/// 403 `MEMBERSHIP_REQUIRED`; 409 `OWN_TRANSFER`, `SEAT_LIMIT`, `TRANSFER_CANCELLED`.
#[utoipa::path(
    get, path = "/api/transfers", tag = "transfers", params(Page, ListedFilter),
    responses((status = 200, body = TransferListView), Errors<401>),
)]
async fn list_transfers(
    State(ticket): State<TicketService>,
    User(user): User,
    page: Page,
    Query(filter): Query<ListedFilter>,
) -> Result<Json<TransferListView>, ApiError> {
    let (ListedFilter { artist_id, event_id }, now) = (filter, ticket.clock.now());
    let filter = TransferFilter::Listed { artist_id, event_id, now };
    list(&ticket, filter, user.user_id, page).await
}

/// Lists what the user sells or has sold, newest first.
///
/// `status` is `listed`, `completed` or `cancelled`.
#[utoipa::path(
    get, path = "/api/transfers/my", tag = "transfers", params(Page),
    responses((status = 200, body = TransferListView), Errors<401>),
)]
async fn list_my_transfers(
    State(ticket): State<TicketService>,
    User(user): User,
    page: Page,
) -> Result<Json<TransferListView>, ApiError> {
    list(&ticket, TransferFilter::OfSeller(user.user_id), user.user_id, page).await
}

async fn list(
    ticket: &TicketService,
    filter: TransferFilter,
    viewer_id: Uuid,
    page: Page,
) -> Result<Json<TransferListView>, ApiError> {
    let (details, total) = ticket.list_transfers(filter, page).await?;
    let views = details.iter().map(|details| TransferView::new(details, viewer_id)).collect();
    let Paged { items: transfers, pagination } = Paged::new(views, total, page);
    Ok(Json(TransferListView { transfers, pagination }))
}

/// Returns one transfer in any status.
///
/// `reservationId` is visible to seller and buyer only. Errors: 404 `TRANSFER_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/transfers/{id}", tag = "transfers", params(("id" = Uuid, Path)),
    responses((status = 200, body = TransferAnswerView), Errors<401, 404>),
)]
async fn get_transfer(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(id): Path<Uuid>,
) -> Result<Json<TransferAnswerView>, ApiError> {
    answer(&ticket, TransferId(id), user.user_id).await
}

/// Withdraws the user's listing.
///
/// Repeating it changes nothing. A listing also ends when the event starts or is cancelled, and
/// when one of its tickets is used. Errors: 404 `TRANSFER_NOT_FOUND`; 409 `TRANSFER_BEING_PAID`,
/// `TRANSFER_SOLD`.
#[utoipa::path(
    post, path = "/api/transfers/{id}/cancel", tag = "transfers", params(("id" = Uuid, Path)),
    responses((status = 200, body = TransferAnswerView), Errors<401, 404, 409>),
)]
async fn cancel_transfer(
    State(ticket): State<TicketService>,
    User(user): User,
    Context(context): Context,
    Path(id): Path<Uuid>,
) -> Result<Json<TransferAnswerView>, ApiError> {
    ticket.cancel_transfer(TransferId(id), user.user_id, context).await?;
    answer(&ticket, TransferId(id), user.user_id).await
}

/// The transfer as it is now.
async fn answer(
    ticket: &TicketService,
    id: TransferId,
    viewer_id: Uuid,
) -> Result<Json<TransferAnswerView>, ApiError> {
    let details = ticket.transfer_details(id).await?;
    Ok(Json(TransferAnswerView { transfer: TransferView::new(&details, viewer_id) }))
}

impl From<TransferRejection> for ApiError {
    fn from(refused: TransferRejection) -> ApiError {
        use TransferRejection as Refused;
        let sentence = refused.to_string();
        let code = match refused {
            Refused::NotFound => return ApiError::not_found("TRANSFER_NOT_FOUND", sentence),
            Refused::ReservationNotFound => {
                return ApiError::not_found("RESERVATION_NOT_FOUND", sentence);
            }
            Refused::SellerNotMember | Refused::BuyerNotMember => {
                return ApiError::forbidden("MEMBERSHIP_REQUIRED", sentence);
            }
            Refused::NotConfirmed => "RESERVATION_NOT_CONFIRMED",
            Refused::Personal => "TICKET_IS_PERSONAL",
            Refused::NotForSale => "TICKET_NOT_FOR_SALE",
            Refused::AlreadyListed => "TRANSFER_LISTED",
            Refused::OwnTransfer => "OWN_TRANSFER",
            Refused::SeatLimit => "SEAT_LIMIT",
            Refused::BeingPaid => "TRANSFER_BEING_PAID",
            Refused::NotPinned => "NOT_PINNED",
            Refused::AttemptOver => "PAYMENT_ATTEMPT_OVER",
            Refused::Sold => "TRANSFER_SOLD",
            Refused::Cancelled => "TRANSFER_CANCELLED",
            Refused::EventStarted => "EVENT_STARTED",
            Refused::EventCancelled => "EVENT_CANCELLED",
            Refused::CheckedIn => "ALREADY_CHECKED_IN",
            Refused::NotRefunding => "NOT_REFUNDING",
            Refused::StaleToken => "STALE_FENCING_TOKEN",
            Refused::WrongAmount => "WRONG_AMOUNT",
        };
        ApiError::conflict(code, sentence)
    }
}

impl From<TransferError> for ApiError {
    fn from(error: TransferError) -> ApiError {
        match error {
            TransferError::Rejected(refused) => refused.into(),
            TransferError::Storage(error) => error.into(),
        }
    }
}
