//! Images over HTTP.

use axum::extract::multipart::{MultipartError, MultipartRejection};
use axum::extract::{Multipart, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use urr_service::{ApiError, Context, ETag, Errors, Json, Path, User, UserRole};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::response_cache::CachedResponse;
use crate::{AdminActor, CatalogService, IMAGE_BYTES_MAX, Image, ImageId, ImageOwner};

pub fn routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(get_image))
}

/// The route whose bodies may be larger than usual.
pub fn upload_routes() -> OpenApiRouter<CatalogService> {
    OpenApiRouter::new().routes(routes!(upload_image))
}

/// The limit of an upload: the image and the form around it.
pub const UPLOAD_BYTES_MAX: usize = IMAGE_BYTES_MAX + 64 * 1024;

const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// An image that is opened as a page may run nothing. The styles are those of our own drawings.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
);
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const INLINE: HeaderValue = HeaderValue::from_static("inline");

#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the form in the interface description")]
struct UploadImageForm {
    /// PNG, JPEG, WebP or GIF; at most 5 MB.
    #[schema(value_type = String, format = Binary)]
    image: Vec<u8>,
}

#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it describes an answer that is not JSON")]
struct ImageBytes(Vec<u8>);

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageView {
    /// The SHA-256 of its bytes.
    id: String,
    /// For `posterImageUrl`, `imageUrl` and the `images` of a post.
    #[schema(
        example = "/api/image/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    )]
    url: String,
    content_type: &'static str,
    width: u32,
    height: u32,
    bytes: usize,
}

impl From<Image> for ImageView {
    fn from(image: Image) -> ImageView {
        ImageView {
            url: image.id.url(),
            id: image.id.as_str().to_owned(),
            content_type: image.kind.as_str(),
            width: image.width,
            height: image.height,
            bytes: image.bytes.len(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct ImageDetailView {
    image: ImageView,
}

/// Stores an image.
///
/// For users. A form (`multipart/form-data`) with the field `image`: PNG, JPEG, WebP or GIF, up to
/// 5 MiB and 12,000 pixels a side. The same image is stored once. Organisers and administrators use
/// the `url` of the response as `imageUrl` or `posterImageUrl`. What others upload is for their
/// posts, 20 pictures an hour; it is deleted when no post shows it, at the earliest after a day.
///
/// Errors: 400 `INVALID_FORM`, `INVALID_IMAGE`; 413 `IMAGE_TOO_LARGE`; 415 `NOT_AN_IMAGE`; 429
/// `TOO_MANY_UPLOADS`.
#[utoipa::path(
    post, path = "/api/image/upload", tag = "images",
    request_body(content = UploadImageForm, content_type = "multipart/form-data"),
    responses((status = 201, body = ImageDetailView), Errors<401, 403>),
)]
pub async fn upload_image(
    State(catalog): State<CatalogService>,
    User(user): User,
    Context(context): Context,
    form: Result<Multipart, MultipartRejection>,
) -> Result<(StatusCode, Json<ImageDetailView>), ApiError> {
    let bytes = read_image_field(form).await?;
    let owner = match user.role {
        UserRole::Organiser | UserRole::Admin => ImageOwner::Organiser,
        UserRole::User | UserRole::Staff | UserRole::Support => ImageOwner::Fan,
    };
    let actor = AdminActor { admin_id: user.user_id, scope: user.event_scope(), context };
    let image = catalog.upload_image(bytes, owner, actor).await?;
    Ok((StatusCode::CREATED, Json(ImageDetailView { image: image.into() })))
}

/// The content of the field `image` of a form.
async fn read_image_field(form: Result<Multipart, MultipartRejection>) -> Result<Bytes, ApiError> {
    let mut form = form.map_err(|_| {
        ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            "The body must be a form: Content-Type: multipart/form-data with a boundary.",
        )
    })?;
    while let Some(field) = form.next_field().await.map_err(invalid_form)? {
        if field.name() == Some("image") {
            return field.bytes().await.map_err(invalid_form);
        }
    }
    Err(ApiError::bad_request("INVALID_FORM", "The form has no field \"image\"."))
}

fn invalid_form(error: MultipartError) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "BODY_TOO_LARGE",
            "The body of the request is too large.",
        ),
        _ => ApiError::bad_request("INVALID_FORM", "The form is damaged.").caused_by(error),
    }
}

fn image_not_found() -> ApiError {
    ApiError::not_found("IMAGE_NOT_FOUND", "There is no image with this id.")
}

/// Returns an image.
///
/// Public. An image never changes, so caches may keep it for a year. Errors: 404 `IMAGE_NOT_FOUND`.
#[utoipa::path(
    get, path = "/api/image/{id}", tag = "images", params(("id" = String, Path)),
    responses(
        (status = 200, description = "The image.", content(
            (ImageBytes = "image/png"), (ImageBytes = "image/jpeg"), (ImageBytes = "image/webp"),
            (ImageBytes = "image/gif"), (ImageBytes = "image/svg+xml"),
        )),
        (status = 304, description = "The client has the current version."),
        Errors<404>,
    ),
)]
pub async fn get_image(
    State(catalog): State<CatalogService>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id = ImageId::parse(&id).ok_or_else(image_not_found)?;
    let load = || load_image(catalog.clone(), id.clone());
    let cached = catalog.0.cache.get(&format!("image {}", id.as_str()), load).await?;
    let etag = ETag::of_version(id.as_str());
    let caching =
        [(ETAG, etag.header()), (CACHE_CONTROL, IMMUTABLE), (X_CONTENT_TYPE_OPTIONS, NOSNIFF)];
    if etag.matches(&headers) {
        return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
    }
    let content = [
        (CONTENT_TYPE, HeaderValue::from_static(cached.content_type)),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CONTENT_DISPOSITION, INLINE),
    ];
    Ok((caching, content, cached.body.clone()).into_response())
}

async fn load_image(catalog: CatalogService, id: ImageId) -> Result<CachedResponse, ApiError> {
    let image = catalog.get_image(id).await?.ok_or_else(image_not_found)?;
    Ok(catalog.0.cache.constant(image.bytes, image.kind.as_str()))
}
