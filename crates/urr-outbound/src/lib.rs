//! The HTTP client for services of third parties: identity and payment providers, bot checks.
//!
//! Invariants:
//! - Everyone is called over HTTPS, and the certificate is checked against the roots of the web.
//!   Plain HTTP goes to a loopback address only, where tests and the sandbox live, and to servers
//!   of the operator's own.
//! - A redirect is an answer like any other. Following one could carry a secret elsewhere.
//! - Every call has a time limit, and every answer a size limit.
//! - An error tells whether the other side may have acted.
//!
//! Deliberately absent: retries. Only the caller knows whether a call may be repeated.

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longer answers are an error.
pub const BODY_BYTES_MAX: usize = 1_000_000;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(20);
const POOL_IDLE_PER_HOST_MAX: usize = 32;

/// The client for services of others. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Outbound {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    plain: Plain,
}

/// Where plain HTTP may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plain {
    Loopback,
    Anywhere,
}

#[derive(Clone, Debug)]
pub struct OutboundRequest {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// From the first step to the last byte of the answer.
    pub timeout: Duration,
}

/// An answer, whatever its status.
#[derive(Clone, Debug)]
pub struct OutboundResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer. The texts name no address: addresses can hold secrets.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The address is invalid, or may not be called.
    #[error("the address may not be called: {0}")]
    RefusedAddress(&'static str),
    /// No connection came about, so surely nothing was sent.
    #[error("the service cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// No answer in time. The service may have acted.
    #[error("the service did not answer in time")]
    Timeout,
    /// The connection broke. The service may have acted.
    #[error("the connection to the service broke")]
    Interrupted(#[source] Box<dyn Error + Send + Sync>),
    /// The service has acted, and its answer is too long to be read.
    #[error("the answer is longer than {BODY_BYTES_MAX} bytes")]
    TooLarge,
}

impl OutboundError {
    /// Whether the service surely never saw the request.
    pub fn is_unsent(&self) -> bool {
        match self {
            OutboundError::RefusedAddress(_) | OutboundError::Unreachable(_) => true,
            OutboundError::Timeout | OutboundError::Interrupted(_) | OutboundError::TooLarge => {
                false
            }
        }
    }
}

impl Default for Outbound {
    fn default() -> Outbound {
        Outbound::new()
    }
}

impl Outbound {
    pub fn new() -> Outbound {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Outbound::trusting(roots)
    }

    fn trusting(roots: RootCertStore) -> Outbound {
        let provider = rustls::crypto::ring::default_provider();
        let tls = ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Outbound::with_tls(tls)
    }

    fn with_tls(tls: ClientConfig) -> Outbound {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls);
        let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(POOL_IDLE_PER_HOST_MAX)
            .build(connector);
        Outbound { client, plain: Plain::Loopback }
    }

    /// For our own processes, whose certificates our own authority may have signed.
    pub fn to_own_processes(tls: ClientConfig) -> Outbound {
        Outbound { plain: Plain::Anywhere, ..Outbound::with_tls(tls) }
    }

    /// For a server that the operator runs and names, as they do with the databases: it may be
    /// called over plain HTTP.
    pub fn to_own_servers() -> Outbound {
        Outbound { plain: Plain::Anywhere, ..Outbound::new() }
    }

    pub async fn send(&self, request: OutboundRequest) -> Result<OutboundResponse, OutboundError> {
        let OutboundRequest { method, url, headers, body, timeout } = request;
        let uri = parse_address(&url, self.plain)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let agent = HeaderValue::from_static("urr");
        request.headers_mut().entry(USER_AGENT).or_insert(agent);
        let call = tokio::time::timeout(timeout, self.exchange(request));
        call.await.unwrap_or(Err(OutboundError::Timeout))
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<OutboundResponse, OutboundError> {
        let response =
            self.client.request(request).await.map_err(|error| match error.is_connect() {
                true => OutboundError::Unreachable(error.into()),
                false => OutboundError::Interrupted(error.into()),
            })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|error| {
            match error.is::<LengthLimitError>() {
                true => OutboundError::TooLarge,
                false => OutboundError::Interrupted(error),
            }
        })?;
        let body = body.to_bytes();
        Ok(OutboundResponse { status: head.status, headers: head.headers, body })
    }

    /// Asks for JSON. [`OutboundResponse::json`] reads it.
    pub async fn get_json(
        &self,
        url: &str,
        headers: HeaderMap,
        timeout: Duration,
    ) -> Result<OutboundResponse, OutboundError> {
        self.send_expecting_json(Method::GET, url, headers, Bytes::new(), timeout).await
    }

    /// Sends a form, and expects JSON.
    pub async fn post_form(
        &self,
        url: &str,
        mut headers: HeaderMap,
        fields: &[(&str, &str)],
        timeout: Duration,
    ) -> Result<OutboundResponse, OutboundError> {
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
        let body = Bytes::from(encode_form(fields));
        self.send_expecting_json(Method::POST, url, headers, body, timeout).await
    }

    /// Sends JSON, and expects JSON.
    pub async fn post_json(
        &self,
        url: &str,
        mut headers: HeaderMap,
        body: &impl Serialize,
        timeout: Duration,
    ) -> Result<OutboundResponse, OutboundError> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = serde_json::to_vec(body).expect("what is sent can be written as JSON");
        self.send_expecting_json(Method::POST, url, headers, body.into(), timeout).await
    }

    async fn send_expecting_json(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<OutboundResponse, OutboundError> {
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        let url = url.to_owned();
        self.send(OutboundRequest { method, url, headers, body, timeout }).await
    }
}

impl OutboundResponse {
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }
}

/// The text of a form, which is also that of a query.
pub fn encode_form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

fn parse_address(url: &str, plain: Plain) -> Result<Uri, OutboundError> {
    let refuse = OutboundError::RefusedAddress;
    let uri: Uri = url.parse().map_err(|_| refuse("it is not an absolute URL"))?;
    let authority = uri.authority().ok_or_else(|| refuse("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(refuse("it holds a name or a password"));
    }
    let is_https = uri.scheme() == Some(&Scheme::HTTPS);
    let is_http = uri.scheme() == Some(&Scheme::HTTP);
    let may_be_plain = plain == Plain::Anywhere || is_loopback(authority.host());
    match is_https || (is_http && may_be_plain) {
        true => Ok(uri),
        false => Err(refuse("it is not HTTPS, and not on this machine")),
    }
}

/// Only addresses that cannot mean another machine: names could resolve to anything.
fn is_loopback(host: &str) -> bool {
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || literal.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;
