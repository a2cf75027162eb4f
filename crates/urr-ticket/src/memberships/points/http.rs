//! The internal calls of the community: points for posts and comments.

use urr_contracts::internal::ticket::{
    AwardPoints, AwardPointsAnswer, ReturnPoints, ReturnPointsAnswer,
};
use urr_kernel::CallContext;
use urr_service::ApiError;

use crate::{PointAction, PointRecipients, TicketService};

fn parse_action(name: &str) -> Result<PointAction, ApiError> {
    PointAction::parse_of_community(name).ok_or_else(|| {
        let sentence = "Points are for COMMUNITY_POST, COMMUNITY_COMMENT and NEWS_CREATION.";
        ApiError::bad_request("INVALID_ACTION", sentence)
    })
}

/// The number of points follows from the action.
pub async fn award_points(
    ticket: TicketService,
    call: AwardPoints,
    _: CallContext,
) -> Result<AwardPointsAnswer, ApiError> {
    let action = parse_action(&call.action_type)?;
    let members = PointRecipients { user_id: call.user_id, artist_id: call.artist_id };
    let memberships = ticket.award_points(members, action, call.reference_id).await?;
    Ok(AwardPointsAnswer { points: action.points(), memberships })
}

/// The post or comment that was rewarded was deleted.
pub async fn return_points(
    ticket: TicketService,
    call: ReturnPoints,
    _: CallContext,
) -> Result<ReturnPointsAnswer, ApiError> {
    let action = parse_action(&call.action_type)?;
    ticket.revoke_points(action, call.reference_id).await?;
    Ok(ReturnPointsAnswer { ok: true })
}
