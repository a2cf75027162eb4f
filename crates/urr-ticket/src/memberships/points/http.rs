//! The internal calls of the community: points for posts and comments.

use axum::extract::State;
use axum::routing::post;
use serde::{Deserialize, Serialize};
use urr_contracts::internal::ticket::{AWARD_POINTS, RETURN_POINTS};
use urr_kernel::Uuid;
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
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AwardPointsBody {
    user_id: Uuid,
    action_type: String,
    /// The post, comment or news article. Each is rewarded once.
    reference_id: Uuid,
    /// Null: in all active memberships of the user.
    artist_id: Option<Uuid>,
}

#[derive(Serialize)]
struct AwardedPointsView {
    /// The points of each membership.
    points: i64,
    /// How many memberships got them: 0 if the user has none, if the action was rewarded before, or
    /// if the limit of the day is reached.
    memberships: u64,
}

async fn award_points(
    State(ticket): State<TicketService>,
    Json(body): Json<AwardPointsBody>,
) -> Result<Json<AwardedPointsView>, ApiError> {
    let action = parse_action(&body.action_type)?;
    let members = PointRecipients { user_id: body.user_id, artist_id: body.artist_id };
    let memberships = ticket.award_points(members, action, body.reference_id).await?;
    Ok(Json(AwardedPointsView { points: action.points(), memberships }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReturnPointsBody {
    action_type: String,
    reference_id: Uuid,
}

#[derive(Serialize)]
struct ReturnedPointsView {
    ok: bool,
}

/// The post or comment that was rewarded was deleted.
async fn return_points(
    State(ticket): State<TicketService>,
    Json(body): Json<ReturnPointsBody>,
) -> Result<Json<ReturnedPointsView>, ApiError> {
    let action = parse_action(&body.action_type)?;
    ticket.revoke_points(action, body.reference_id).await?;
    Ok(Json(ReturnedPointsView { ok: true }))
}
