//! The internal calls of the community: points for posts and comments.

use axum::extract::State;
use axum::routing::post;
use urr_contracts::internal::ticket::{
    AWARD_POINTS, AwardPointsAnswer, AwardPointsBody, RETURN_POINTS, ReturnPointsAnswer,
    ReturnPointsBody,
};
use urr_service::{ApiError, Json, internal_routes};
use utoipa_axum::router::OpenApiRouter;

use crate::{PointAction, PointRecipients, TicketService};

/// They are not part of the public description.
pub fn routes() -> OpenApiRouter<TicketService> {
    let routes = OpenApiRouter::new()
        .route(AWARD_POINTS.path, post(award_points))
        .route(RETURN_POINTS.path, post(return_points));
    internal_routes(AWARD_POINTS.callers, routes)
}

fn parse_action(name: &str) -> Result<PointAction, ApiError> {
    PointAction::parse_of_community(name).ok_or_else(|| {
        let sentence = "Points are for COMMUNITY_POST, COMMUNITY_COMMENT and NEWS_CREATION.";
        ApiError::bad_request("INVALID_ACTION", sentence)
    })
}

/// The number of points follows from the action.
async fn award_points(
    State(ticket): State<TicketService>,
    Json(body): Json<AwardPointsBody>,
) -> Result<Json<AwardPointsAnswer>, ApiError> {
    let action = parse_action(&body.action_type)?;
    let members = PointRecipients { user_id: body.user_id, artist_id: body.artist_id };
    let memberships = ticket.award_points(members, action, body.reference_id).await?;
    Ok(Json(AwardPointsAnswer { points: action.points(), memberships }))
}

/// The post or comment that was rewarded was deleted.
async fn return_points(
    State(ticket): State<TicketService>,
    Json(body): Json<ReturnPointsBody>,
) -> Result<Json<ReturnPointsAnswer>, ApiError> {
    let action = parse_action(&body.action_type)?;
    ticket.revoke_points(action, body.reference_id).await?;
    Ok(Json(ReturnPointsAnswer { ok: true }))
}
