//! The HTTP client of the fans.
//!
//! On a loopback address the connections come from many loopback addresses, because limits per
//! address are meant for the internet and a rehearsal has one machine.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode, Uri};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use urr_kernel::Uuid;

use crate::connections::{ConnectionPool, PooledConnection, SendFailure};

/// A fan gives up after this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
const ENTRY_TOKEN: HeaderName = HeaderName::from_static("x-queue-entry-token");
const PROOF_OF_WORK: HeaderName = HeaderName::from_static("x-proof-of-work");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The system that is rehearsed.
#[derive(Clone, Debug)]
pub struct Site {
    /// Without a slash at the end.
    url: String,
    uri: Uri,
    /// 127.0.0.0/8.
    is_loopback: bool,
    /// Whose certificates are good. None: those of the web.
    tls: Option<ClientConfig>,
}

impl Site {
    pub fn parse(url: &str) -> Result<Site> {
        let url = url.trim_end_matches('/');
        let uri: Uri = url.parse().with_context(|| format!("{url} is no address"))?;
        ensure!(matches!(uri.scheme_str(), Some("http" | "https")), "{url} is not http or https");
        ensure!(uri.path() == "/" || uri.path().is_empty(), "{url} has a path");
        let Some(host) = uri.host() else { bail!("{url} has no host") };
        let address: Option<Ipv4Addr> = host.parse().ok();
        let is_loopback = address.is_some_and(|it| it.is_loopback());
        let url = url.to_owned();
        Ok(Site { url, uri, is_loopback, tls: None })
    }

    /// A site whose certificate another authority signed.
    pub fn trusting(self, tls: ClientConfig) -> Site {
        Site { tls: Some(tls), ..self }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether fans can come to it from many addresses.
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }
}

/// A request of a fan.
#[derive(Clone, Debug)]
pub struct FanRequest {
    pub method: Method,
    pub path: String,
    pub token: Option<String>,
    pub entry_token: Option<String>,
    pub key: Option<Uuid>,
    /// Of work.
    pub proof: Option<String>,
    pub body: Option<Value>,
}

impl FanRequest {
    pub fn get(path: impl Into<String>) -> FanRequest {
        FanRequest::new(Method::GET, path.into())
    }

    pub fn post(path: impl Into<String>) -> FanRequest {
        FanRequest::new(Method::POST, path.into())
    }

    pub fn put(path: impl Into<String>) -> FanRequest {
        FanRequest::new(Method::PUT, path.into())
    }

    fn new(method: Method, path: String) -> FanRequest {
        FanRequest {
            method,
            path,
            token: None,
            entry_token: None,
            key: None,
            proof: None,
            body: None,
        }
    }

    pub fn token(self, token: &str) -> FanRequest {
        FanRequest { token: Some(token.to_owned()), ..self }
    }

    pub fn entry_token(self, token: &str) -> FanRequest {
        FanRequest { entry_token: Some(token.to_owned()), ..self }
    }

    pub fn key(self, key: Uuid) -> FanRequest {
        FanRequest { key: Some(key), ..self }
    }

    pub fn proof(self, proof: String) -> FanRequest {
        FanRequest { proof: Some(proof), ..self }
    }

    pub fn body(self, body: Value) -> FanRequest {
        FanRequest { body: Some(body), ..self }
    }
}

/// An answer of the system.
#[derive(Clone, Debug)]
pub struct FanResponse {
    pub status: StatusCode,
    /// Null if the body is not JSON.
    pub body: Value,
    pub retry_after: Option<Duration>,
}

impl FanResponse {
    /// The code of an error; empty if there is none.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    Timeout,
    Broken,
}

/// An idle connection may have been closed by the site just now; two in a row rarely are.
const UNSENT_TRIES: u32 = 4;

pub struct FanClient {
    site: Site,
    pool: ConnectionPool,
}

impl FanClient {
    /// `connections` is the most that are open at once, and `addresses` is how many addresses requests
    /// come from, if the site is on this machine.
    pub fn new(site: Site, connections: usize, addresses: u16) -> FanClient {
        let tls = site.tls.clone().unwrap_or_else(tls);
        let addresses = site.is_loopback.then_some(addresses);
        let pool = ConnectionPool::new(site.uri.clone(), tls, connections.max(1), addresses);
        FanClient { pool, site }
    }

    /// Sends a request of the fan with this number. It waits for a connection if all of its
    /// address are in use.
    pub async fn send(&self, fan: usize, request: FanRequest) -> Result<FanResponse, NoAnswer> {
        let work = async {
            let request = self.to_http(request).map_err(|_| NoAnswer::Broken)?;
            self.exchange(fan, request).await
        };
        tokio::time::timeout(REQUEST_TIMEOUT, work).await.unwrap_or(Err(NoAnswer::Timeout))
    }

    async fn exchange(
        &self,
        fan: usize,
        mut request: Request<Full<Bytes>>,
    ) -> Result<FanResponse, NoAnswer> {
        for _ in 0..UNSENT_TRIES {
            let connection = self.pool.connection(fan).await;
            let mut connection = connection.map_err(|_| NoAnswer::Broken)?;
            match connection.send(request).await {
                Ok(response) => return read(response, connection).await,
                Err(SendFailure::Unsent(unsent)) => request = *unsent,
                Err(SendFailure::Broken) => return Err(NoAnswer::Broken),
            }
        }
        Err(NoAnswer::Broken)
    }

    fn to_http(&self, request: FanRequest) -> Result<Request<Full<Bytes>>> {
        let host = self.site.uri.authority().context("a site has a host")?.as_str();
        let mut http = Request::builder().method(request.method).uri(request.path);
        http = http.header(HOST, host);
        if let Some(token) = request.token {
            http = http.header("authorization", format!("Bearer {token}"));
        }
        if let Some(token) = request.entry_token {
            http = http.header(ENTRY_TOKEN, token);
        }
        if let Some(proof) = request.proof.filter(|proof| !proof.is_empty()) {
            http = http.header(PROOF_OF_WORK, proof);
        }
        if let Some(key) = request.key {
            http = http.header(IDEMPOTENCY_KEY, key.to_string());
        }
        let body = match request.body {
            Some(body) => {
                http = http.header(CONTENT_TYPE, "application/json");
                Bytes::from(serde_json::to_vec(&body)?)
            }
            None => Bytes::new(),
        };
        Ok(http.body(Full::new(body))?)
    }
}

fn tls() -> ClientConfig {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = rustls::crypto::ring::default_provider();
    ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Reads the answer to its end, and keeps the connection for others.
async fn read(
    response: Response<Incoming>,
    connection: PooledConnection,
) -> Result<FanResponse, NoAnswer> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|_| NoAnswer::Broken)?.to_bytes();
    connection.keep();
    let seconds = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(FanResponse { status: parts.status, body, retry_after })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_an_address_without_a_path() {
        assert!(Site::parse("http://127.0.0.1:3001/").unwrap().is_loopback);
        assert!(!Site::parse("https://tickets.example").unwrap().is_loopback);
        for bad in ["", "127.0.0.1:3001", "ftp://127.0.0.1", "http://127.0.0.1/api"] {
            assert!(Site::parse(bad).is_err(), "{bad}");
        }
    }
}
