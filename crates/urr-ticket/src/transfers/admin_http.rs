//! All transfers, for those who look after the events.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Context, CursorPage, Errors, EventReader, Json, Query};
use urr_storage::{StorageError, Tx};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::store::{self, AdminTransferFilter, TransferSummary};
use crate::reservations::buyers::{Buyer, Buyers};
use crate::{TicketService, TransferStatus};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(list_all_transfers))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct TransferQuery {
    event_id: Option<Uuid>,
    /// `listed`, `completed` or `cancelled`.
    #[param(example = "completed")]
    status: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AdminTransferListView {
    transfers: Vec<AdminTransferView>,
    /// The `cursor` of the next page; null at the end.
    next_cursor: Option<Uuid>,
    /// Whether the auth service has answered. If not, nobody has a name.
    buyers_available: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AdminTransferView {
    id: Uuid,
    reservation_id: Uuid,
    event_id: Uuid,
    event_title: String,
    #[schema(example = "completed")]
    status: &'static str,
    /// Why it was cancelled.
    end_reason: Option<String>,
    is_being_paid: bool,
    quantity: u32,
    seller_id: Uuid,
    seller: Option<Buyer>,
    /// Who buys it: of one that is being paid, or was sold.
    buyer_id: Option<Uuid>,
    buyer: Option<Buyer>,
    #[schema(value_type = i64)]
    original_price: Won,
    #[schema(value_type = i64)]
    transfer_fee: Won,
    #[schema(value_type = i64)]
    total_price: Won,
    created_at: Timestamp,
    completed_at: Option<Timestamp>,
}

impl AdminTransferView {
    fn new(summary: TransferSummary, users: Option<&Buyers>) -> AdminTransferView {
        let TransferSummary { transfer, quantity, event_title, .. } = summary;
        let user = |id: Uuid| users.and_then(|users| users.get(&id)).cloned();
        AdminTransferView {
            id: transfer.id.0,
            reservation_id: transfer.reservation_id.0,
            event_id: transfer.event_id,
            event_title,
            status: transfer.status.as_str(),
            end_reason: transfer.end_reason,
            is_being_paid: transfer.pinned_by.is_some(),
            quantity,
            seller_id: transfer.seller_id,
            seller: user(transfer.seller_id),
            buyer_id: transfer.buyer_id,
            buyer: transfer.buyer_id.and_then(user),
            original_price: transfer.price.original,
            transfer_fee: transfer.price.fee,
            total_price: transfer.price.total(),
            created_at: transfer.created_at,
            completed_at: transfer.completed_at,
        }
    }
}

/// Lists transfers, newest first.
///
/// For organisers (of their own events), support and administrators (all). Errors: 400
/// `INVALID_STATUS`.
#[utoipa::path(
    get, path = "/api/admin/transfers", tag = "admin", params(CursorPage, TransferQuery),
    responses((status = 200, body = AdminTransferListView), Errors<401, 403>),
)]
async fn list_all_transfers(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    page: CursorPage,
    Query(query): Query<TransferQuery>,
) -> Result<Json<AdminTransferListView>, ApiError> {
    let scope = reader.event_scope();
    let filter = AdminTransferFilter {
        event_id: query.event_id,
        status: parse_status(query.status.as_deref())?,
        organiser_id: scope.organiser_id(),
    };
    let read = move |tx: &mut Tx<'_>| store::transfer_page_after(tx, &filter, page);
    let found: Result<Vec<TransferSummary>, StorageError> = ticket.db.read(read).await;
    let (found, next_cursor) = page.split(found?, |one| one.transfer.id.0);
    let sellers = found.iter().map(|one| one.transfer.seller_id);
    let buyers = found.iter().filter_map(|one| one.transfer.buyer_id);
    let user_ids: Vec<Uuid> = sellers.chain(buyers).collect();
    let users = ticket.find_buyers(user_ids, scope, &context).await;
    let view = |one| AdminTransferView::new(one, users.as_ref());
    Ok(Json(AdminTransferListView {
        transfers: found.into_iter().map(view).collect(),
        next_cursor,
        buyers_available: users.is_some(),
    }))
}

fn parse_status(name: Option<&str>) -> Result<Option<TransferStatus>, ApiError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    name.parse().map(Some).map_err(|_| {
        let sentence = "The status must be listed, completed or cancelled.";
        ApiError::bad_request("INVALID_STATUS", sentence)
    })
}
