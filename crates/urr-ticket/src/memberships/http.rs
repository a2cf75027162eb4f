//! The routes of memberships.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_service::{ApiError, Errors, Json, Page, Paged, Pagination, Path, User};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::memberships::rules::tier_name;
use crate::{
    Benefits, Membership, MembershipError, MembershipRejection, PointEntry, TicketService,
};

pub fn routes() -> OpenApiRouter<TicketService> {
    OpenApiRouter::new()
        .routes(routes!(subscribe_membership))
        .routes(routes!(list_my_memberships))
        .routes(routes!(get_my_membership))
        .routes(routes!(get_membership_benefits))
        .routes(routes!(list_membership_tiers))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SubscribeBody {
    artist_id: Uuid,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SubscribedView {
    /// What a payment of the type `membership` names as its `referenceId`.
    membership_id: Uuid,
    artist_id: Uuid,
    artist_name: String,
    /// Of a year.
    #[schema(value_type = i64, example = 30_000)]
    price: Won,
    /// Always `pending`: it counts from when on it is paid.
    #[schema(example = "pending")]
    status: &'static str,
    /// Whether the year is not the first one.
    is_renewal: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MembershipView {
    id: Uuid,
    artist_id: Uuid,
    artist_name: String,
    /// Of a year, now.
    #[schema(value_type = i64, example = 30_000)]
    membership_price: Won,
    /// `pending` (never paid), `active` or `expired`.
    #[schema(example = "active")]
    status: &'static str,
    /// By its points: `silver`, `gold` or `diamond`.
    #[schema(example = "gold")]
    tier: &'static str,
    /// What counts now: `bronze` if it is not active.
    #[schema(example = "gold")]
    effective_tier: &'static str,
    /// Those that count.
    #[schema(example = 620)]
    points: i64,
    /// Of purchases that can still be cancelled for free. They do not count yet.
    #[schema(example = 100)]
    pending_points: i64,
    /// When it was paid for the first time.
    joined_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    /// From when on the next year can be bought.
    renewable_from: Option<Timestamp>,
    /// Whether a year waits to be paid.
    is_payment_pending: bool,
}

impl MembershipView {
    fn new(membership: &Membership, now: Timestamp) -> MembershipView {
        let artist = membership.artist.as_ref();
        MembershipView {
            id: membership.id.0,
            artist_id: membership.artist_id,
            artist_name: artist.map(|artist| artist.name.clone()).unwrap_or_default(),
            membership_price: artist.map_or(Won::ZERO, |artist| artist.price),
            status: membership.status(now).as_str(),
            tier: membership.tier.as_str(),
            effective_tier: tier_name(membership.effective_tier(now)),
            points: membership.points,
            pending_points: membership.pending_points,
            joined_at: membership.joined_at,
            expires_at: membership.joined_at.map(|_| membership.expires_at),
            renewable_from: membership.renewable_from(),
            is_payment_pending: membership.is_for_sale(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct MembershipListView {
    memberships: Vec<MembershipView>,
    pagination: Pagination,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MyMembershipView {
    /// None: one has never asked for one.
    membership: Option<MembershipView>,
    /// What was given and taken back, the newest first.
    point_history: Vec<PointEntry>,
    pagination: Pagination,
    benefits: Benefits,
}

/// Starts buying a year of an artist's membership, or the next year.
///
/// Pay it with `POST /api/payments/prepare`, type `membership`. A membership can be renewed in its
/// last 30 days; the next year begins when the present one ends. Repeating it before the payment
/// returns the same membership. Errors: 404 `ARTIST_NOT_FOUND`; 409 `ALREADY_MEMBER`.
#[utoipa::path(
    post, path = "/api/memberships/subscribe", tag = "memberships", request_body = SubscribeBody,
    responses((status = 201, body = SubscribedView), Errors<401, 404, 409>),
)]
async fn subscribe_membership(
    State(ticket): State<TicketService>,
    User(user): User,
    Json(body): Json<SubscribeBody>,
) -> Result<(StatusCode, Json<SubscribedView>), ApiError> {
    let membership = ticket.subscribe(user.user_id, body.artist_id).await?;
    let view = SubscribedView {
        membership_id: membership.id.0,
        artist_id: membership.artist_id,
        price: membership.amount(),
        status: "pending",
        is_renewal: membership.joined_at.is_some(),
        artist_name: membership.artist.map(|artist| artist.name).unwrap_or_default(),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Lists the user's memberships, newest first.
///
/// `effectiveTier` is `bronze` while a membership is not active.
#[utoipa::path(
    get, path = "/api/memberships/my", tag = "memberships", params(Page),
    responses((status = 200, body = MembershipListView), Errors<401>),
)]
async fn list_my_memberships(
    State(ticket): State<TicketService>,
    User(user): User,
    page: Page,
) -> Result<Json<MembershipListView>, ApiError> {
    let (memberships, total) = ticket.list_memberships(user.user_id, page).await?;
    let now = ticket.clock.now();
    let views = memberships.iter().map(|membership| MembershipView::new(membership, now)).collect();
    let Paged { items: memberships, pagination } = Paged::new(views, total, page);
    Ok(Json(MembershipListView { memberships, pagination }))
}

/// Returns the user's membership of an artist, with its points.
///
/// `membership` is null without one. Points: 200 for a paid year, 100 for a paid reservation of the
/// artist's event that costs something, returned with a cancellation. Points of a reservation are
/// `pendingPoints` until it cannot be cancelled for free any more. Tiers: `silver` 0, `gold` 500,
/// `diamond` 1,500 points that count.
#[utoipa::path(
    get, path = "/api/memberships/my/{artistId}", tag = "memberships",
    params(("artistId" = Uuid, Path), Page),
    responses((status = 200, body = MyMembershipView), Errors<401>),
)]
async fn get_my_membership(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(artist_id): Path<Uuid>,
    page: Page,
) -> Result<Json<MyMembershipView>, ApiError> {
    let now = ticket.clock.now();
    let found = ticket.my_membership(user.user_id, artist_id, page).await?;
    let (membership, lines, total) = match found {
        Some((membership, lines, total)) => (Some(membership), lines, total),
        None => (None, Vec::new(), 0),
    };
    let tier = membership.as_ref().and_then(|membership| membership.effective_tier(now));
    let Paged { items: point_history, pagination } = Paged::new(lines, total, page);
    let membership = membership.map(|membership| MembershipView::new(&membership, now));
    let benefits = Benefits::of(tier);
    Ok(Json(MyMembershipView { membership, point_history, pagination, benefits }))
}

/// Returns the benefits of the user's tier.
///
/// The tier decides when a user may buy in a pre-sale, the booking fee there (1,000, 2,000 or 3,000
/// won), and the transfer fee.
#[utoipa::path(
    get, path = "/api/memberships/benefits/{artistId}", tag = "memberships",
    params(("artistId" = Uuid, Path)),
    responses((status = 200, body = Benefits), Errors<401>),
)]
async fn get_membership_benefits(
    State(ticket): State<TicketService>,
    User(user): User,
    Path(artist_id): Path<Uuid>,
) -> Result<Json<Benefits>, ApiError> {
    let tier = ticket.tier_with(user.user_id, artist_id).await?;
    Ok(Json(Benefits::of(tier)))
}

#[derive(Serialize, ToSchema)]
struct TierListView {
    /// The highest first; `bronze`, the general public, last.
    tiers: Vec<Benefits>,
}

/// Lists the tiers of memberships: what they take and what they give.
///
/// Public, and the same for every artist. A year's price is the artist's.
#[utoipa::path(
    get, path = "/api/memberships/tiers", tag = "memberships",
    responses((status = 200, body = TierListView)),
)]
async fn list_membership_tiers() -> Json<TierListView> {
    Json(TierListView { tiers: Benefits::of_all_tiers() })
}

impl From<MembershipRejection> for ApiError {
    fn from(refused: MembershipRejection) -> ApiError {
        use MembershipRejection as Refused;
        let sentence = refused.to_string();
        let code = match refused {
            Refused::NotFound => return ApiError::not_found("MEMBERSHIP_NOT_FOUND", sentence),
            Refused::ArtistNotFound => return ApiError::not_found("ARTIST_NOT_FOUND", sentence),
            Refused::AlreadyMember => "ALREADY_MEMBER",
            Refused::NotForSale => "MEMBERSHIP_NOT_FOR_SALE",
            Refused::PaymentInProgress => "MEMBERSHIP_BEING_PAID",
            Refused::NotPinned => "NOT_PINNED",
            Refused::AttemptOver => "PAYMENT_ATTEMPT_OVER",
            Refused::Paid => "MEMBERSHIP_PAID",
            Refused::Refunded => "MEMBERSHIP_REFUNDED",
            Refused::NotRefunding => "NOT_REFUNDING",
            Refused::StaleToken => "STALE_FENCING_TOKEN",
            Refused::WrongAmount => "WRONG_AMOUNT",
        };
        ApiError::conflict(code, sentence)
    }
}

impl From<MembershipError> for ApiError {
    fn from(error: MembershipError) -> ApiError {
        match error {
            MembershipError::Rejected(refused) => refused.into(),
            MembershipError::Storage(error) => error.into(),
        }
    }
}
