//! The internal calls of payments about payables.

use axum::extract::State;
use axum::routing::{get, post};
use urr_contracts::clients::PayableRef;
use urr_contracts::internal::ticket::{
    CONFIRM_PAYABLE, ConfirmPayableBody, GET_PAYABLE, MARK_PAYABLE_REFUNDED, PIN_PAYABLE,
    PayableAnswer, PayableKind, PayableView, PinPayableBody, RefundedPayableBody, UNPIN_PAYABLE,
    UnpinPayableBody, VALIDATE_PAYABLE, ValidatePayableQuery,
};
use urr_kernel::Uuid;
use urr_service::{ApiError, Context, Json, Path, Query, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use crate::payables::PayableError;
use crate::{CompletedPayment, PaymentClaim, ReturnedMoney, TicketService};

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    let routes = OpenApiRouter::new()
        .route(GET_PAYABLE.path, get(get_payable))
        .route(VALIDATE_PAYABLE.path, get(validate_payable))
        .route(PIN_PAYABLE.path, post(pin_payable))
        .route(UNPIN_PAYABLE.path, post(unpin_payable))
        .route(CONFIRM_PAYABLE.path, post(confirm_payable))
        .route(MARK_PAYABLE_REFUNDED.path, post(mark_payable_refunded));
    internal_routes(GET_PAYABLE.callers, routes)
}

type PayablePath = Path<(PayableKind, Uuid)>;
type Answer = Result<Json<PayableAnswer>, ApiError>;

fn answer(payable: PayableView) -> Answer {
    Ok(Json(PayableAnswer { payable }))
}

async fn get_payable(State(ticket): State<TicketService>, Path((kind, id)): PayablePath) -> Answer {
    answer(ticket.get_payable(PayableRef { kind, id }).await?)
}

async fn validate_payable(
    State(ticket): State<TicketService>,
    Path((kind, id)): PayablePath,
    Query(query): Query<ValidatePayableQuery>,
) -> Answer {
    answer(ticket.validate_payable(PayableRef { kind, id }, query.user_id).await?)
}

async fn pin_payable(
    State(ticket): State<TicketService>,
    Path((kind, id)): PayablePath,
    Json(body): Json<PinPayableBody>,
) -> Answer {
    let PinPayableBody { payment_id, user_id, fencing_token, amount } = body;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    answer(ticket.pin_payable(PayableRef { kind, id }, user_id, claim).await?)
}

async fn unpin_payable(
    State(ticket): State<TicketService>,
    Path((kind, id)): PayablePath,
    Json(body): Json<UnpinPayableBody>,
) -> Answer {
    answer(ticket.unpin_payable(PayableRef { kind, id }, body.payment_id).await?)
}

async fn confirm_payable(
    State(ticket): State<TicketService>,
    Context(context): Context,
    Path((kind, id)): PayablePath,
    Json(body): Json<ConfirmPayableBody>,
) -> Answer {
    let ConfirmPayableBody { payment_id, fencing_token, amount, payment_method } = body;
    let claim = PaymentClaim { payment_id, fencing_token, amount };
    let payment = CompletedPayment::new(claim, payment_method.as_deref());
    answer(ticket.confirm_payable(PayableRef { kind, id }, payment, context).await?)
}

async fn mark_payable_refunded(
    State(ticket): State<TicketService>,
    Path((kind, id)): PayablePath,
    Json(body): Json<RefundedPayableBody>,
) -> Answer {
    let RefundedPayableBody { payment_id, amount: requested, returned_amount } = body;
    let money = ReturnedMoney { requested, returned: returned_amount.unwrap_or(requested) };
    answer(ticket.mark_payable_refunded(PayableRef { kind, id }, payment_id, money).await?)
}

impl From<PayableError> for ApiError {
    fn from(error: PayableError) -> ApiError {
        match error {
            PayableError::Reservation(error) => error.into(),
            PayableError::Transfer(error) => error.into(),
            PayableError::Membership(error) => error.into(),
            PayableError::Storage(error) => error.into(),
        }
    }
}
