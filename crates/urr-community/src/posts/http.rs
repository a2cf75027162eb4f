//! Posts over HTTP.

use std::collections::HashMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::idempotency::{KeyedRequest, fingerprint, header_key};
use urr_service::{
    ApiError, Context, CursorPage, Errors, Identity, Json, MaybeUser, Path, Query, parse_search,
};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{NewPost, Post, PostFilter, PostId, PostKind, PostSummary};
use crate::text::{PostImage, PostText};
use crate::{CommunityActor, CommunityService};

pub fn routes() -> OpenApiRouter<CommunityService> {
    OpenApiRouter::new()
        .routes(routes!(list_posts))
        .routes(routes!(get_post))
        .routes(routes!(create_post))
        .routes(routes!(edit_post))
        .routes(routes!(delete_post))
}

/// A post or news in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostSummaryView {
    #[schema(value_type = Uuid)]
    id: PostId,
    /// Null: news about everything.
    artist_id: Option<Uuid>,
    artist_name: Option<String>,
    /// The first and last letter of the author's name. Null for news, and when the account was
    /// closed or the name is not known at the moment.
    #[schema(example = "김*아")]
    author_name: Option<String>,
    /// Whether the one who asks has written it.
    is_mine: bool,
    title: String,
    is_pinned: bool,
    /// Some seconds old.
    views: i64,
    comment_count: i64,
    created_at: Timestamp,
    /// Null if it was never changed.
    edited_at: Option<Timestamp>,
}

/// A whole post or news.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostView {
    #[serde(flatten)]
    summary: PostSummaryView,
    /// Plain text with line breaks. It may look like markup and is none.
    content: String,
    #[schema(example = json!([]))]
    images: Vec<PostImage>,
}

impl PostSummaryView {
    pub fn new(
        post: PostSummary,
        names: &HashMap<Uuid, String>,
        reader: Option<Uuid>,
    ) -> PostSummaryView {
        let author_id = post.named_author();
        PostSummaryView {
            id: post.id,
            artist_id: post.artist_id,
            artist_name: post.artist_name,
            author_name: author_id.and_then(|id| names.get(&id).cloned()),
            is_mine: reader.is_some() && author_id == reader,
            title: post.title,
            is_pinned: post.is_pinned,
            views: post.views,
            comment_count: post.comment_count,
            created_at: post.created_at,
            edited_at: post.edited_at,
        }
    }
}

impl CommunityService {
    pub(super) async fn post_view(
        &self,
        post: Post,
        reader: Option<Uuid>,
        context: Context,
    ) -> PostView {
        let names = self.0.names.find(vec![post.summary.named_author()], &context.0).await;
        let summary = PostSummaryView::new(post.summary, &names, reader);
        PostView { summary, content: post.content, images: post.images }
    }

    pub(super) async fn post_page(
        &self,
        filter: PostFilter,
        page: CursorPage,
        reader: Option<Uuid>,
        context: Context,
    ) -> Result<PostPageView, ApiError> {
        let listed = self.list_posts(filter, page).await?;
        let all = listed.pinned.iter().chain(&listed.posts);
        let authors = all.map(PostSummary::named_author).collect();
        let names = self.0.names.find(authors, &context.0).await;
        let views = |posts: Vec<PostSummary>| {
            posts.into_iter().map(|post| PostSummaryView::new(post, &names, reader)).collect()
        };
        let (pinned, posts) = (views(listed.pinned), views(listed.posts));
        Ok(PostPageView { pinned, posts, next_cursor: listed.next_cursor })
    }
}

/// What a page of posts and one of news have in common.
pub(super) struct PostPageView {
    pub pinned: Vec<PostSummaryView>,
    pub posts: Vec<PostSummaryView>,
    pub next_cursor: Option<Uuid>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostListView {
    /// The pinned posts of the board, at most five, on its first page only.
    pinned: Vec<PostSummaryView>,
    posts: Vec<PostSummaryView>,
    /// For the next page; null on the last one.
    next_cursor: Option<Uuid>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PostDetailView {
    post: PostView,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct PostQuery {
    /// Only the board of this artist.
    pub(super) artist_id: Option<Uuid>,
    /// Words in the title; initial consonants (ㅎㄱ) work too.
    #[param(max_length = 100)]
    pub(super) q: Option<String>,
}

impl PostQuery {
    pub(super) fn parse(self, kind: PostKind) -> Result<PostFilter, ApiError> {
        let search = parse_search(self.q.as_deref())?;
        Ok(PostFilter { kind, artist_id: self.artist_id, search })
    }
}

pub(super) fn reader_of(reader: Option<Identity>) -> Option<Uuid> {
    reader.map(|reader| reader.user_id)
}

/// Lists posts, newest first.
///
/// Public. With `artistId` the board of one artist; its pinned posts are apart. Errors: 400
/// `INVALID_QUERY`.
#[utoipa::path(
    get, path = "/api/community/posts", tag = "community", params(PostQuery, CursorPage),
    responses((status = 200, body = PostListView)),
)]
pub async fn list_posts(
    State(community): State<CommunityService>,
    MaybeUser(reader): MaybeUser,
    context: Context,
    Query(query): Query<PostQuery>,
    page: CursorPage,
) -> Result<Json<PostListView>, ApiError> {
    let filter = query.parse(PostKind::Post)?;
    let PostPageView { pinned, posts, next_cursor } =
        community.post_page(filter, page, reader_of(reader), context).await?;
    Ok(Json(PostListView { pinned, posts, next_cursor }))
}

/// Returns a post.
///
/// Public. A hidden or deleted post is not found. Errors: 404 `POST_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/community/posts/{id}", tag = "community", params(("id" = Uuid, Path)),
    responses((status = 200, body = PostDetailView), Errors<404>),
)]
pub async fn get_post(
    State(community): State<CommunityService>,
    MaybeUser(reader): MaybeUser,
    context: Context,
    Path(id): Path<PostId>,
) -> Result<Json<PostDetailView>, ApiError> {
    let post = community.get_post(PostKind::Post, id).await?;
    let post = community.post_view(post, reader_of(reader), context).await;
    Ok(Json(PostDetailView { post }))
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreatePostBody {
    artist_id: Uuid,
    #[schema(max_length = 100, example = "어제 공연 후기")]
    title: String,
    /// Plain text.
    #[schema(max_length = 5_000, example = "앙코르가 세 곡이었어요.")]
    content: String,
    /// Up to four.
    #[serde(default)]
    images: Vec<PostImage>,
}

/// Publishes a post on the board of an artist.
///
/// For users. It earns 30 points of the membership with this artist, if there is one, up to three
/// times a day; they arrive within seconds and go with the post. `Idempotency-Key` makes a retry
/// harmless. Errors: 400 `INVALID_TITLE` (1 to 100 characters), `INVALID_CONTENT` (1 to 5,000),
/// `INVALID_IMAGE_URL`, `INVALID_ALT_TEXT`; 404 `ARTIST_NOT_FOUND`; 422 `IDEMPOTENCY_KEY_REUSED`; 429
/// `TOO_MUCH_WRITTEN`.
#[utoipa::path(
    post, path = "/api/community/posts", tag = "community", request_body = CreatePostBody,
    responses((status = 201, body = PostDetailView), Errors<401, 403, 404, 422>),
)]
pub async fn create_post(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    headers: HeaderMap,
    Json(body): Json<CreatePostBody>,
) -> Result<(StatusCode, Json<PostDetailView>), ApiError> {
    let request = keyed(&headers, actor, "create_post", &body)?;
    let text = PostText::parse(&body.title, &body.content, body.images)?;
    let new = NewPost { kind: PostKind::Post, artist_id: Some(body.artist_id), text, request };
    let post = community.create_post(new, actor).await?;
    let post = community.post_view(post, Some(actor.user_id), Context(actor.context)).await;
    Ok((StatusCode::CREATED, Json(PostDetailView { post })))
}

/// The request under the key that its client gave it, if any.
pub fn keyed(
    headers: &HeaderMap,
    actor: CommunityActor,
    operation: &'static str,
    body: &impl Serialize,
) -> Result<Option<KeyedRequest>, ApiError> {
    let key = header_key(headers)?;
    Ok(key.map(|key| KeyedRequest {
        user_id: actor.user_id,
        operation,
        key,
        fingerprint: fingerprint(body),
    }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditPostBody {
    #[schema(max_length = 100)]
    pub(super) title: String,
    #[schema(max_length = 5_000)]
    pub(super) content: String,
    #[serde(default)]
    pub(super) images: Vec<PostImage>,
}

impl EditPostBody {
    pub(super) fn parse(self) -> Result<PostText, ApiError> {
        Ok(PostText::parse(&self.title, &self.content, self.images)?)
    }
}

/// Changes a post.
///
/// For its author. Title, text and pictures are replaced. Errors: as for creating; 403
/// `NOT_THE_AUTHOR`; 404 `POST_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/community/posts/{id}", tag = "community", params(("id" = Uuid, Path)),
    request_body = EditPostBody,
    responses((status = 200, body = PostDetailView), Errors<401, 403, 404>),
)]
pub async fn edit_post(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    Path(id): Path<PostId>,
    Json(body): Json<EditPostBody>,
) -> Result<Json<PostDetailView>, ApiError> {
    let post = community.edit_post((PostKind::Post, id), body.parse()?, actor).await?;
    let post = community.post_view(post, Some(actor.user_id), Context(actor.context)).await;
    Ok(Json(PostDetailView { post }))
}

/// Deletes a post and takes its points back.
///
/// For its author, organisers of the artist, support and administrators. Errors: 403
/// `NOT_THE_AUTHOR`, `NOT_YOUR_ARTIST`; 404 `POST_NOT_FOUND`.
#[utoipa::path(
    delete, path = "/api/community/posts/{id}", tag = "community", params(("id" = Uuid, Path)),
    responses((status = 204, description = "It is deleted."), Errors<401, 403, 404>),
)]
pub async fn delete_post(
    State(community): State<CommunityService>,
    actor: CommunityActor,
    Path(id): Path<PostId>,
) -> Result<StatusCode, ApiError> {
    community.delete_post((PostKind::Post, id), actor).await?;
    Ok(StatusCode::NO_CONTENT)
}
