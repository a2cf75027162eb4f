//! How pages ask the API: as the client itself would.

use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderValue, Method, StatusCode, Uri, header};
use serde::de::DeserializeOwned;
use tower::ServiceExt as _;
use urr_service::{CallMetadata, ErrorBody};

use crate::language::PageLanguage;

/// No answer that a page reads is near this size.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The API as the gateway serves it, without the way over the network.
#[derive(Clone)]
pub struct PageApi(Router);

/// Why a page has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiRefusal {
    pub status: StatusCode,
    /// Empty if the answer is not an error of ours.
    pub code: String,
}

/// Who asks: the client with its cookies, or nobody in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    Client,
    Anybody,
}

impl PageApi {
    /// `api` answers `/api/…` and expects what the request layer adds to a request.
    pub fn new(api: Router) -> PageApi {
        PageApi(api)
    }

    /// Asks on behalf of a client's request.
    pub async fn call<T: DeserializeOwned>(
        &self,
        request: ApiRequest<'_>,
    ) -> Result<T, ApiRefusal> {
        let response = match self.0.clone().oneshot(request.build()?).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        let unreadable = |_| ApiRefusal { status, code: String::new() };
        let body = to_bytes(response.into_body(), ANSWER_BYTES_MAX).await;
        let body = body.map_err(|_| ApiRefusal { status, code: String::new() })?;
        if !status.is_success() {
            let error: ErrorBody = serde_json::from_slice(&body).map_err(unreadable)?;
            return Err(ApiRefusal { status, code: error.code });
        }
        // An empty answer (204) is read as nothing.
        let body: &[u8] = if body.is_empty() { b"null" } else { &body };
        serde_json::from_slice(body).map_err(unreadable)
    }
}

/// A request to the API that a page makes.
pub struct ApiRequest<'a> {
    pub method: Method,
    pub path: String,
    pub body: Option<serde_json::Value>,
    pub client: &'a Parts,
    pub asker: Asker,
    pub language: PageLanguage,
}

impl ApiRequest<'_> {
    /// What the client sent for the page and not for the API is left out.
    fn build(self) -> Result<Request, ApiRefusal> {
        let invalid = |_| ApiRefusal { status: StatusCode::NOT_FOUND, code: String::new() };
        let body = self.body.map(|body| body.to_string());
        let mut request = Request::new(body.clone().map_or_else(Body::empty, Body::from));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse::<Uri>().map_err(invalid)?;
        copy_extensions(&self.client.extensions, request.extensions_mut());
        let mut headers = self.client.headers.clone();
        for name in [
            header::CONTENT_LENGTH,
            header::CONTENT_TYPE,
            header::TRANSFER_ENCODING,
            header::ACCEPT_ENCODING,
            header::IF_NONE_MATCH,
            header::IF_MODIFIED_SINCE,
            header::RANGE,
            header::EXPECT,
        ] {
            headers.remove(name);
        }
        if self.asker == Asker::Anybody {
            headers.remove(header::COOKIE);
            headers.remove(header::AUTHORIZATION);
        }
        if body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(self.language.tag()));
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Copies what the gateway reads. The parameters of the page's path stay behind: they would mix with
/// those of the API's path.
fn copy_extensions(from: &Extensions, to: &mut Extensions) {
    copy_extension::<CallMetadata>(from, to);
    copy_extension::<ConnectInfo<SocketAddr>>(from, to);
}

fn copy_extension<T: Clone + Send + Sync + 'static>(from: &Extensions, to: &mut Extensions) {
    if let Some(value) = from.get::<T>() {
        to.insert(value.clone());
    }
}
