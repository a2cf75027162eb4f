//! Comments over HTTP.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{ApiError, Context, CursorPage, Errors, Json, MaybeUser, Path};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Comment, CommentId, NewComment};
use crate::posts::PostId;
use crate::posts::http::keyed;
use crate::text::parse_comment;
use crate::{CommunityActor, CommunityService};

pub fn routes() -> OpenApiRouter<CommunityService> {
    OpenApiRouter::new()
        .routes(routes!(list_comments))
        .routes(routes!(create_comment))
        .routes(routes!(edit_comment, delete_comment))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommentView {
    #[schema(value_type = Uuid)]
    id: CommentId,
    /// As in a post.
    author_name: Option<String>,
    is_mine: bool,
    /// Plain text with line breaks.
    content: String,
    created_at: Timestamp,
    /// Null if it was never changed.
    edited_at: Option<Timestamp>,
}

impl CommentView {
    fn new(comment: Comment, names: &HashMap<Uuid, String>, reader: Option<Uuid>) -> CommentView {
        CommentView {
            id: comment.id,
            author_name: comment.author_id.and_then(|id| names.get(&id).cloned()),
            is_mine: reader.is_some() && comment.author_id == reader,
            content: comment.content,
            created_at: comment.created_at,
            edited_at: comment.edited_at,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommentListView {
    comments: Vec<CommentView>,
    /// For the next page; null on the last one.
    next_cursor: Option<Uuid>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct CommentDetailView {
    comment: CommentView,
}

/// Lists the comments of a post, oldest first.
///
/// Public. Errors: 404 `POST_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/community/posts/{id}/comments", tag = "community",
    params(("id" = Uuid, Path), CursorPage),
    responses((status = 200, body = CommentListView), Errors<404>),
)]
pub async fn list_comments(
    State(community): State<CommunityService>,
    MaybeUser(reader): MaybeUser,
    Context(context): Context,
    Path(id): Path<PostId>,
    page: CursorPage,
) -> Result<Json<CommentListView>, ApiError> {
    let (comments, next_cursor) = community.list_comments(id, page).await?;
    let authors = comments.iter().map(|comment| comment.author_id).collect();
    let names = community.0.names.find(authors, &context).await;
    let reader = reader.map(|reader| reader.user_id);
    let views = comments.into_iter().map(|comment| CommentView::new(comment, &names, reader));
    Ok(Json(CommentListView { comments: views.collect(), next_cursor }))
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCommentBody {
    /// Plain text.
    #[schema(max_length = 1_000, example = "저도 거기 있었어요!")]
    content: String,
}

/// Publishes a comment.
///
/// For users. It earns 10 points of the membership with the artist, up to ten times a day, as a post
/// does. `Idempotency-Key` makes a retry harmless. Errors: 400 `INVALID_CONTENT` (1 to 1,000
/// characters); 404 `POST_NOT_FOUND`; 422 `IDEMPOTENCY_KEY_REUSED`; 429 `TOO_MUCH_WRITTEN`.
#[utoipa::path(
    post, path = "/api/community/posts/{id}/comments", tag = "community",
    params(("id" = Uuid, Path)), request_body = CreateCommentBody,
    responses((status = 201, body = CommentDetailView), Errors<401, 403, 404, 422>),
)]
pub async fn create_comment(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    headers: HeaderMap,
    Path(post_id): Path<PostId>,
    Json(body): Json<CreateCommentBody>,
) -> Result<(StatusCode, Json<CommentDetailView>), ApiError> {
    let request = keyed(&headers, actor, "create_comment", &(post_id, &body))?;
    let new = NewComment { post_id, content: parse_comment(&body.content)?, request };
    let comment = community.create_comment(new, actor).await?;
    let names = community.0.names.find(vec![comment.author_id], &actor.context).await;
    let comment = CommentView::new(comment, &names, Some(actor.user_id));
    Ok((StatusCode::CREATED, Json(CommentDetailView { comment })))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditCommentBody {
    /// Plain text.
    #[schema(max_length = 1_000)]
    content: String,
}

/// Changes a comment.
///
/// For its author. Errors: 400 `INVALID_CONTENT`; 403 `NOT_THE_AUTHOR`; 404 `POST_NOT_FOUND`,
/// `COMMENT_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/community/posts/{id}/comments/{commentId}", tag = "community",
    params(("id" = Uuid, Path), ("commentId" = Uuid, Path)), request_body = EditCommentBody,
    responses((status = 200, body = CommentDetailView), Errors<401, 403, 404>),
)]
pub async fn edit_comment(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    Path(ids): Path<(PostId, CommentId)>,
    Json(body): Json<EditCommentBody>,
) -> Result<Json<CommentDetailView>, ApiError> {
    let content = parse_comment(&body.content)?;
    let comment = community.edit_comment(ids, content, actor).await?;
    let names = community.0.names.find(vec![comment.author_id], &actor.context).await;
    let comment = CommentView::new(comment, &names, Some(actor.user_id));
    Ok(Json(CommentDetailView { comment }))
}

/// Deletes a comment and takes its points back.
///
/// For its author, organisers of the artist, support and administrators. Errors: 403
/// `NOT_THE_AUTHOR`; 404 `POST_NOT_FOUND`, `COMMENT_NOT_FOUND`.
#[utoipa::path(
    delete, path = "/api/community/posts/{id}/comments/{commentId}", tag = "community",
    params(("id" = Uuid, Path), ("commentId" = Uuid, Path)),
    responses((status = 204, description = "It is deleted."), Errors<401, 403, 404>),
)]
pub async fn delete_comment(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    Path(ids): Path<(PostId, CommentId)>,
) -> Result<StatusCode, ApiError> {
    community.delete_comment(ids, actor).await?;
    Ok(StatusCode::NO_CONTENT)
}
