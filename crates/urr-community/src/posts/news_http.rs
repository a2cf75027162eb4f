//! News over HTTP: what those who speak for an artist publish. They are posts without comments.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::{ApiError, Context, CursorPage, Errors, Json, MaybeUser, Organiser, Path, Query};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::{
    EditPostBody, PostPageView, PostQuery, PostSummaryView, PostView, keyed, reader_of,
};
use super::{NewPost, PostError, PostId, PostKind};
use crate::text::{PostImage, PostText};
use crate::{CommunityActor, CommunityService};

pub fn routes() -> OpenApiRouter<CommunityService> {
    OpenApiRouter::new()
        .routes(routes!(list_news))
        .routes(routes!(get_news))
        .routes(routes!(create_news))
        .routes(routes!(edit_news))
        .routes(routes!(delete_news))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewsListView {
    /// The pinned news of the artist, at most five, on the first page only.
    pinned: Vec<PostSummaryView>,
    news: Vec<PostSummaryView>,
    /// For the next page; null on the last one.
    next_cursor: Option<Uuid>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct NewsDetailView {
    news: PostView,
}

fn news_refused(error: PostError) -> ApiError {
    match error {
        PostError::NotFound => {
            ApiError::not_found("NEWS_NOT_FOUND", "There is no news with this id.")
        }
        error => error.into(),
    }
}

/// Lists news, newest first.
///
/// Public. With `artistId` those of one artist. Errors: 400 `INVALID_QUERY`.
#[utoipa::path(
    get, path = "/api/news", tag = "community", params(PostQuery, CursorPage),
    responses((status = 200, body = NewsListView)),
)]
pub async fn list_news(
    State(community): State<CommunityService>,
    MaybeUser(reader): MaybeUser,
    context: Context,
    Query(query): Query<PostQuery>,
    page: CursorPage,
) -> Result<Json<NewsListView>, ApiError> {
    let filter = query.parse(PostKind::News)?;
    let PostPageView { pinned, posts, next_cursor } =
        community.post_page(filter, page, reader_of(reader), context).await?;
    Ok(Json(NewsListView { pinned, news: posts, next_cursor }))
}

/// Returns news.
///
/// Public. Errors: 404 `NEWS_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/news/{id}", tag = "community", params(("id" = Uuid, Path)),
    responses((status = 200, body = NewsDetailView), Errors<404>),
)]
pub async fn get_news(
    State(community): State<CommunityService>,
    MaybeUser(reader): MaybeUser,
    context: Context,
    Path(id): Path<PostId>,
) -> Result<Json<NewsDetailView>, ApiError> {
    let news = community.get_post(PostKind::News, id).await.map_err(news_refused)?;
    let news = community.post_view(news, reader_of(reader), context).await;
    Ok(Json(NewsDetailView { news }))
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateNewsBody {
    /// Null: news about everything, by administrators only.
    #[serde(default)]
    artist_id: Option<Uuid>,
    #[schema(max_length = 100, example = "앙코르 공연 안내")]
    title: String,
    /// Plain text.
    #[schema(max_length = 5_000, example = "12월 24일 공연이 추가되었습니다.")]
    content: String,
    /// Up to four.
    #[serde(default)]
    images: Vec<PostImage>,
}

/// Publishes news.
///
/// For organisers who have an event of the artist, and administrators. `Idempotency-Key` makes a
/// retry harmless. Errors: as for a post; 403 `NOT_YOUR_ARTIST`.
#[utoipa::path(
    post, path = "/api/news", tag = "community", request_body = CreateNewsBody,
    responses((status = 201, body = NewsDetailView), Errors<401, 403, 404, 422>),
)]
pub async fn create_news(
    State(community): State<CommunityService>,
    Organiser(organiser): Organiser,
    context: Context,
    headers: HeaderMap,
    Json(body): Json<CreateNewsBody>,
) -> Result<(StatusCode, Json<NewsDetailView>), ApiError> {
    let actor = CommunityActor::of(&organiser, context);
    let request = keyed(&headers, actor, "create_news", &body)?;
    let text = PostText::parse(&body.title, &body.content, body.images)?;
    let new = NewPost { kind: PostKind::News, artist_id: body.artist_id, text, request };
    let news = community.create_post(new, actor).await.map_err(news_refused)?;
    let news = community.post_view(news, Some(actor.user_id), Context(actor.context)).await;
    Ok((StatusCode::CREATED, Json(NewsDetailView { news })))
}

/// Changes news.
///
/// For organisers who have an event of the artist, and administrators. Errors: as for publishing;
/// 404 `NEWS_NOT_FOUND`.
#[utoipa::path(
    put, path = "/api/news/{id}", tag = "community", params(("id" = Uuid, Path)),
    request_body = EditPostBody,
    responses((status = 200, body = NewsDetailView), Errors<401, 403, 404>),
)]
pub async fn edit_news(
    State(community): State<CommunityService>,
    Organiser(organiser): Organiser,
    context: Context,
    Path(id): Path<PostId>,
    Json(body): Json<EditPostBody>,
) -> Result<Json<NewsDetailView>, ApiError> {
    let actor = CommunityActor::of(&organiser, context);
    let news = community.edit_post((PostKind::News, id), body.parse()?, actor).await;
    let news = news.map_err(news_refused)?;
    let news = community.post_view(news, Some(actor.user_id), Context(actor.context)).await;
    Ok(Json(NewsDetailView { news }))
}

/// Deletes news.
///
/// For organisers who have an event of the artist, and administrators. Errors: 403
/// `NOT_YOUR_ARTIST`; 404 `NEWS_NOT_FOUND`.
#[utoipa::path(
    delete, path = "/api/news/{id}", tag = "community", params(("id" = Uuid, Path)),
    responses((status = 204, description = "It is deleted."), Errors<401, 403, 404>),
)]
pub async fn delete_news(
    State(community): State<CommunityService>,
    Organiser(organiser): Organiser,
    context: Context,
    Path(id): Path<PostId>,
) -> Result<StatusCode, ApiError> {
    let actor = CommunityActor::of(&organiser, context);
    community.delete_post((PostKind::News, id), actor).await.map_err(news_refused)?;
    Ok(StatusCode::NO_CONTENT)
}
