//! Reports and moderation over HTTP.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Context, CursorPage, Errors, EventReader, Json, Path, Query};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{ModeratedReport, NewReport, ReportReason};
use crate::comments::CommentId;
use crate::posts::{PostId, PostStatus};
use crate::text::parse_note;
use crate::{CommunityActor, CommunityService};

pub fn routes() -> OpenApiRouter<CommunityService> {
    OpenApiRouter::new()
        .routes(routes!(report_post))
        .routes(routes!(report_comment))
        .routes(routes!(list_reports))
        .routes(routes!(moderate_post))
        .routes(routes!(moderate_comment))
        .routes(routes!(pin_post))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportBody {
    reason: ReportReason,
    /// May be empty.
    #[serde(default)]
    #[schema(max_length = 500)]
    note: String,
}

impl ReportBody {
    fn parse(self, post_id: PostId, comment_id: Option<CommentId>) -> Result<NewReport, ApiError> {
        let note = parse_note(&self.note)?;
        Ok(NewReport { post_id, comment_id, reason: self.reason, note })
    }
}

/// Reports a post to the moderators.
///
/// For users. A second report of the same user changes nothing. Errors: 400 `INVALID_NOTE` (up to
/// 500 characters); 404 `POST_NOT_FOUND`; 409 `OWN_WRITING`; 429 `TOO_MUCH_WRITTEN`.
#[utoipa::path(
    post, path = "/api/community/posts/{id}/reports", tag = "community",
    params(("id" = Uuid, Path)), request_body = ReportBody,
    responses((status = 204, description = "It is reported."), Errors<401, 403, 404, 409>),
)]
pub async fn report_post(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    Path(id): Path<PostId>,
    Json(body): Json<ReportBody>,
) -> Result<StatusCode, ApiError> {
    community.create_report(body.parse(id, None)?, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reports a comment to the moderators.
///
/// For users. As for a post. Errors: 400 `INVALID_NOTE`; 404 `POST_NOT_FOUND`,
/// `COMMENT_NOT_FOUND`; 409 `OWN_WRITING`; 429 `TOO_MUCH_WRITTEN`.
#[utoipa::path(
    post, path = "/api/community/posts/{id}/comments/{commentId}/reports", tag = "community",
    params(("id" = Uuid, Path), ("commentId" = Uuid, Path)), request_body = ReportBody,
    responses((status = 204, description = "It is reported."), Errors<401, 403, 404, 409>),
)]
pub async fn report_comment(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    Path((id, comment_id)): Path<(PostId, CommentId)>,
    Json(body): Json<ReportBody>,
) -> Result<StatusCode, ApiError> {
    community.create_report(body.parse(id, Some(comment_id))?, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct ReportQuery {
    /// Those that nobody has decided about, unless it says `false`.
    #[param(default = true)]
    open: Option<bool>,
    artist_id: Option<Uuid>,
}

/// What was reported, as moderators see it. Nobody learns who reported it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportView {
    id: Uuid,
    #[schema(value_type = Uuid)]
    post_id: PostId,
    /// Null: the post itself was reported.
    #[schema(value_type = Option<Uuid>)]
    comment_id: Option<CommentId>,
    artist_id: Option<Uuid>,
    reason: ReportReason,
    note: String,
    is_open: bool,
    created_at: Timestamp,
    /// Of the post.
    title: String,
    /// Of the comment, or else of the post.
    content: String,
    /// `visible`, `hidden` or `deleted`.
    #[schema(example = "visible")]
    status: &'static str,
}

impl From<ModeratedReport> for ReportView {
    fn from(report: ModeratedReport) -> ReportView {
        ReportView {
            id: report.id,
            post_id: report.post_id,
            comment_id: report.comment_id,
            artist_id: report.artist_id,
            reason: report.reason,
            note: report.note,
            is_open: report.is_open,
            created_at: report.created_at,
            title: report.title,
            content: report.content,
            status: report.status.as_str(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportListView {
    reports: Vec<ReportView>,
    /// For the next page; null on the last one.
    next_cursor: Option<Uuid>,
}

/// Lists reports, newest first.
///
/// For organisers (of their artists), support and administrators (all). `open=false` lists those
/// that were decided. Errors: 400 `INVALID_QUERY`.
#[utoipa::path(
    get, path = "/api/admin/community/reports", tag = "community",
    params(ReportQuery, CursorPage),
    responses((status = 200, body = ReportListView), Errors<401, 403>),
)]
pub async fn list_reports(
    State(community): State<CommunityService>,
    EventReader(moderator): EventReader,
    context: Context,
    Query(query): Query<ReportQuery>,
    page: CursorPage,
) -> Result<Json<ReportListView>, ApiError> {
    let wanted = (query.open.unwrap_or(true), query.artist_id);
    let actor = CommunityActor::of(&moderator, context);
    let (reports, next_cursor) = community.list_reports(wanted, page, actor).await?;
    let reports = reports.into_iter().map(ReportView::from).collect();
    Ok(Json(ReportListView { reports, next_cursor }))
}

/// Whether others see it.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModeratedStatus {
    Visible,
    Hidden,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModerateBody {
    status: ModeratedStatus,
    /// For the admin log. May be empty.
    #[serde(default)]
    #[schema(max_length = 500)]
    note: String,
}

impl ModerateBody {
    fn parse(self) -> Result<(PostStatus, String), ApiError> {
        let status = match self.status {
            ModeratedStatus::Visible => PostStatus::Visible,
            ModeratedStatus::Hidden => PostStatus::Hidden,
        };
        Ok((status, parse_note(&self.note)?))
    }
}

/// Hides a post or news, or shows it again.
///
/// For organisers of the artist, support and administrators. Its open reports are closed: `visible`
/// for a visible post says that it may stay. Errors: 400 `INVALID_NOTE`; 403 `NOT_YOUR_ARTIST`; 404
/// `POST_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/admin/community/posts/{id}/status", tag = "community",
    params(("id" = Uuid, Path)), request_body = ModerateBody,
    responses((status = 204, description = "It is done."), Errors<401, 403, 404>),
)]
pub async fn moderate_post(
    State(community): State<CommunityService>,
    EventReader(moderator): EventReader,
    context: Context,
    Path(id): Path<PostId>,
    Json(body): Json<ModerateBody>,
) -> Result<StatusCode, ApiError> {
    let actor = CommunityActor::of(&moderator, context);
    community.moderate_post(id, body.parse()?, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Hides a comment, or shows it again.
///
/// For organisers of the artist, support and administrators. As for a post. Errors: 400
/// `INVALID_NOTE`; 403 `NOT_YOUR_ARTIST`; 404 `POST_NOT_FOUND`, `COMMENT_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/admin/community/comments/{id}/status", tag = "community",
    params(("id" = Uuid, Path)), request_body = ModerateBody,
    responses((status = 204, description = "It is done."), Errors<401, 403, 404>),
)]
pub async fn moderate_comment(
    State(community): State<CommunityService>,
    EventReader(moderator): EventReader,
    context: Context,
    Path(id): Path<CommentId>,
    Json(body): Json<ModerateBody>,
) -> Result<StatusCode, ApiError> {
    let actor = CommunityActor::of(&moderator, context);
    community.moderate_comment(id, body.parse()?, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinPostBody {
    pinned: bool,
}

/// Pins a post or news above the others of its board, or takes it down again.
///
/// For organisers of the artist, support and administrators. Errors: 403 `NOT_YOUR_ARTIST`; 404
/// `POST_NOT_FOUND`; 409 `TOO_MANY_PINNED` (five).
#[utoipa::path(
    put, path = "/api/admin/community/posts/{id}/pin", tag = "community",
    params(("id" = Uuid, Path)), request_body = PinPostBody,
    responses((status = 204, description = "It is done."), Errors<401, 403, 404, 409>),
)]
pub async fn pin_post(
    State(community): State<CommunityService>,
    EventReader(moderator): EventReader,
    context: Context,
    Path(id): Path<PostId>,
    Json(body): Json<PinPostBody>,
) -> Result<StatusCode, ApiError> {
    let actor = CommunityActor::of(&moderator, context);
    community.pin_post(id, body.pinned, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}
