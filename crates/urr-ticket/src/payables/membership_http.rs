//! What payments ask and say about memberships, and what the community rewards. Nobody else is let
//! in.

use axum::extract::State;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use urr_kernel::{Uuid, Won};
use urr_service::{ApiError, Caller, Context, Internal, Json, Path, Query};
use utoipa_axum::router::OpenApiRouter;

use crate::payables::http::{
    ConfirmBody, PinBody, RefundedBody, UnpinBody, ValidateQuery, only_payments,
};
use crate::reservations::details::shorten;
use crate::{
    CompletedPayment, Membership, MembershipId, PaymentClaim, PointAction, PointRecipients,
    TermPaymentStatus, TicketService,
};

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .route("/internal/ticket/memberships/{id}", get(get_state))
        .route("/internal/ticket/memberships/{id}/validate", get(validate))
        .route("/internal/ticket/memberships/{id}/pin", post(pin))
        .route("/internal/ticket/memberships/{id}/unpin", post(unpin))
        .route("/internal/ticket/memberships/{id}/confirm", post(confirm))
        .route("/internal/ticket/memberships/{id}/refunded", post(refunded))
        .route("/internal/ticket/memberships/award-points", post(award_points))
        .route("/internal/ticket/memberships/return-points", post(return_points))
}

/// A membership and its last term, or the one that the call was about.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateView {
    id: Uuid,
    /// Only of one that can be paid.
    order_name: Option<String>,
    user_id: Uuid,
    artist_id: Uuid,
    event_id: Option<Uuid>,
    status: &'static str,
    payment_status: &'static str,
    total_amount: Won,
    booking_fee: Won,
    fencing_token: i64,
    pinned_by: Option<Uuid>,
    payment_id: Option<Uuid>,
    refund_amount: Option<Won>,
}

#[derive(Serialize)]
struct StateAnswer {
    membership: StateView,
}

fn answer(ticket: &TicketService, membership: &Membership) -> Json<StateAnswer> {
    let term = membership.term.as_ref();
    let is_refunded = term.is_some_and(|term| term.payment_status == TermPaymentStatus::Refunded);
    let view = StateView {
        id: membership.id.0,
        order_name: None,
        user_id: membership.user_id,
        artist_id: membership.artist_id,
        event_id: None,
        status: membership.status(ticket.clock.now()).name(),
        payment_status: term.map_or(TermPaymentStatus::Unpaid, |term| term.payment_status).name(),
        total_amount: membership.amount(),
        booking_fee: Won::ZERO,
        fencing_token: term.map_or(membership.last_term, |term| term.number),
        pinned_by: term.and_then(|term| term.pinned_by),
        payment_id: term.and_then(|term| term.payment_id),
        refund_amount: is_refunded.then(|| membership.amount()),
    };
    Json(StateAnswer { membership: view })
}

/// A membership in whatever state, for reconciliation.
async fn get_state(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let membership = ticket.find_membership(MembershipId(id)).await?;
    Ok(answer(&ticket, &membership))
}

/// A user's membership if it can be paid now.
async fn validate(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Query(query): Query<ValidateQuery>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let membership = ticket.validate_membership(MembershipId(id), query.user_id).await?;
    let name = membership.artist.as_ref().map_or("", |artist| &artist.name);
    let order_name = shorten(format!("{name} 멤버십 1년"));
    let Json(mut payable) = answer(&ticket, &membership);
    payable.membership.order_name = Some(order_name);
    Ok(Json(payable))
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
    let membership = ticket.pin_membership(MembershipId(id), user_id, claim).await?;
    Ok(answer(&ticket, &membership))
}

async fn unpin(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<UnpinBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let membership = ticket.unpin_membership(MembershipId(id), body.payment_id).await?;
    Ok(answer(&ticket, &membership))
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
    let membership = ticket.activate_membership(MembershipId(id), made, context).await?;
    Ok(answer(&ticket, &membership))
}

async fn refunded(
    State(ticket): State<TicketService>,
    caller: Internal,
    Path(id): Path<Uuid>,
    Json(body): Json<RefundedBody>,
) -> Result<Json<StateAnswer>, ApiError> {
    only_payments(caller)?;
    let (id, RefundedBody { payment_id, amount, .. }) = (MembershipId(id), body);
    let membership = ticket.mark_membership_refunded(id, payment_id, amount).await?;
    Ok(answer(&ticket, &membership))
}

fn only_the_community(caller: Internal) -> Result<(), ApiError> {
    match caller.caller() {
        Caller::Community => Ok(()),
        _ => Err(ApiError::forbidden("CALLER_NOT_ALLOWED", "This is for the community.")),
    }
}

fn parse_action(name: &str) -> Result<PointAction, ApiError> {
    PointAction::parse_of_community(name).ok_or_else(|| {
        let sentence = "Points are for COMMUNITY_POST, COMMUNITY_COMMENT and NEWS_CREATION.";
        ApiError::bad_request("INVALID_ACTION", sentence)
    })
}

/// How many points that is, we decide.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AwardBody {
    user_id: Uuid,
    action_type: String,
    /// The post, comment or news. The same one is rewarded once.
    reference_id: Uuid,
    /// None: in all memberships of the user that count.
    artist_id: Option<Uuid>,
}

#[derive(Serialize)]
struct AwardedView {
    /// Of each membership.
    points: i64,
    /// How many memberships got them: none if there is none, if it was rewarded before, or if it
    /// was too much for a day.
    memberships: u64,
}

async fn award_points(
    State(ticket): State<TicketService>,
    caller: Internal,
    Json(body): Json<AwardBody>,
) -> Result<Json<AwardedView>, ApiError> {
    only_the_community(caller)?;
    let action = parse_action(&body.action_type)?;
    let members = PointRecipients { user_id: body.user_id, artist_id: body.artist_id };
    let memberships = ticket.award_points(members, action, body.reference_id).await?;
    Ok(Json(AwardedView { points: action.points(), memberships }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReturnBody {
    action_type: String,
    reference_id: Uuid,
}

#[derive(Serialize)]
struct ReturnedView {
    ok: bool,
}

/// What was rewarded was deleted.
async fn return_points(
    State(ticket): State<TicketService>,
    caller: Internal,
    Json(body): Json<ReturnBody>,
) -> Result<Json<ReturnedView>, ApiError> {
    only_the_community(caller)?;
    let action = parse_action(&body.action_type)?;
    ticket.revoke_points(action, body.reference_id).await?;
    Ok(Json(ReturnedView { ok: true }))
}
