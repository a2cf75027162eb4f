//! The members of an artist, for those who organise the artist's events.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Context, CursorPage, Errors, EventReader, EventScope, Json, Query};
use urr_storage::{StorageError, Tx};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::store;
use crate::reservations::buyers::{Buyer, Buyers};
use crate::{Membership, TicketService};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new().routes(routes!(list_members))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct MemberFilter {
    artist_id: Uuid,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MemberListView {
    members: Vec<MemberView>,
    /// The `cursor` of the next page; null at the end.
    next_cursor: Option<Uuid>,
    /// Whether the auth service has answered. If not, every `user` is null.
    buyers_available: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MemberView {
    id: Uuid,
    user_id: Uuid,
    /// Null if the account was deleted or the auth service is away.
    user: Option<Buyer>,
    /// `pending` (never paid), `active` or `expired`.
    #[schema(example = "active")]
    status: &'static str,
    /// By its points: `silver`, `gold` or `diamond`.
    #[schema(example = "gold")]
    tier: &'static str,
    #[schema(example = 620)]
    points: i64,
    /// They do not count yet.
    pending_points: i64,
    /// When it was paid for the first time.
    joined_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
}

impl MemberView {
    fn new(membership: &Membership, users: Option<&Buyers>, now: Timestamp) -> MemberView {
        MemberView {
            id: membership.id.0,
            user_id: membership.user_id,
            user: users.and_then(|users| users.get(&membership.user_id)).cloned(),
            status: membership.status(now).as_str(),
            tier: membership.tier.as_str(),
            points: membership.points,
            pending_points: membership.pending_points,
            joined_at: membership.joined_at,
            expires_at: membership.joined_at.map(|_| membership.expires_at),
        }
    }
}

/// Lists the members of an artist with their points, newest first.
///
/// For support, administrators, and organisers who have an event of the artist. Errors: 403
/// `NOT_YOUR_ARTIST`.
#[utoipa::path(
    get, path = "/api/admin/memberships", tag = "admin", params(CursorPage, MemberFilter),
    responses((status = 200, body = MemberListView), Errors<401, 403>),
)]
async fn list_members(
    State(ticket): State<TicketService>,
    EventReader(reader): EventReader,
    Context(context): Context,
    page: CursorPage,
    Query(MemberFilter { artist_id }): Query<MemberFilter>,
) -> Result<Json<MemberListView>, ApiError> {
    let scope = reader.event_scope();
    let read = move |tx: &mut Tx<'_>| {
        if !is_artist_in_scope(tx, artist_id, scope)? {
            return Ok(None);
        }
        store::membership_page_of_artist(tx, artist_id, page).map(Some)
    };
    let found: Result<Option<Vec<Membership>>, StorageError> = ticket.db.read(read).await;
    let Some(found) = found? else { return Err(not_your_artist()) };
    let (members, next_cursor) = page.split(found, |one| one.id.0);
    let user_ids = members.iter().map(|member| member.user_id).collect();
    let users = ticket.find_buyers(user_ids, scope, &context).await;
    let now = ticket.clock.now();
    let view = |member: &Membership| MemberView::new(member, users.as_ref(), now);
    Ok(Json(MemberListView {
        members: members.iter().map(view).collect(),
        next_cursor,
        buyers_available: users.is_some(),
    }))
}

fn is_artist_in_scope(
    tx: &mut Tx<'_>,
    artist_id: Uuid,
    scope: EventScope,
) -> Result<bool, StorageError> {
    match scope.organiser_id() {
        None => Ok(true),
        Some(organiser_id) => store::organiser_has_artist(tx, organiser_id, artist_id),
    }
}

fn not_your_artist() -> ApiError {
    ApiError::forbidden("NOT_YOUR_ARTIST", "Only organisers of this artist may do that.")
}
