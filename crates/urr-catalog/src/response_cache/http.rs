//! Cached responses over HTTP, with the headers for caches of clients and proxies.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use urr_service::ApiError;

use super::CachedResponse;
use crate::CatalogService;

/// For lists: five seconds of age hurt no reader, and spare us most requests of a crowd.
pub const CACHED_BRIEFLY: HeaderValue = HeaderValue::from_static("public, max-age=5");
/// For one event: clients ask every time, and usually get "not modified".
pub const REVALIDATED: HeaderValue = HeaderValue::from_static("public, no-cache");

impl CatalogService {
    /// The response with this key, from the cache or by `load`; 304 if the client has it already.
    pub(crate) async fn cached<F>(
        &self,
        headers: &HeaderMap,
        cache_control: HeaderValue,
        key: &str,
        load: impl Fn(CatalogService) -> F,
    ) -> Result<Response, ApiError>
    where
        F: Future<Output = Result<CachedResponse, ApiError>> + Send + 'static,
    {
        let cached = self.0.cache.get(key, || load(self.clone())).await?;
        let caching = [(ETAG, cached.etag.header()), (CACHE_CONTROL, cache_control)];
        if cached.etag.matches(headers) {
            return Ok((StatusCode::NOT_MODIFIED, caching).into_response());
        }
        let content = [(CONTENT_TYPE, HeaderValue::from_static(cached.content_type))];
        Ok((content, caching, cached.body.clone()).into_response())
    }
}
