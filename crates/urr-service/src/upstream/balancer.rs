//! The addresses of a service in other processes, and which of them gets a call.
//!
//! Names are resolved to all their addresses, again every few seconds. A call goes to the address
//! with the fewest calls under way. An address that refuses or breaks a connection, or says that it
//! is not ready, is set aside: it is probed, and gets calls only if no other address is left. With a
//! single address there is nothing to choose, and the breaker of the service decides alone.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{self, Ready};
use std::io;
use std::iter;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{StatusCode, Uri, Version};
use axum::response::Response;
use futures_util::future::{BoxFuture, join_all};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tokio_rustls::rustls::ClientConfig;
use urr_tls::{ClientTls, TrustFiles};

use super::error::UpstreamError;
use super::service_url::{ServiceUrl, ServiceUrls};
use super::{ANSWER_BYTES_MAX, in_memory};
use crate::body_limit::is_limit;
use crate::paced_body::is_too_slow;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Shorter than the idle timeout of our servers, and than a stopping one is not ready behind a
/// balancer: a request must not be sent on a connection that the server is closing.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(2);
const POOL_IDLE_PER_HOST_MAX: usize = 256;
/// Shorter than a stopping process is not ready: no calls reach it when it ends.
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const RESOLVE_EVERY: Duration = Duration::from_secs(5);

type Source = Box<dyn Error + Send + Sync>;
type Resolve =
    Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;
type PooledClient = Client<HttpsConnector<HttpConnector<FixedAddress>>, Body>;

/// How this process connects to our other ones.
#[derive(Clone, Debug)]
pub struct HttpClient(ClientConfig);

impl Default for HttpClient {
    fn default() -> HttpClient {
        HttpClient::new()
    }
}

impl HttpClient {
    /// Accepts certificates that browsers accept.
    pub fn new() -> HttpClient {
        let tls = urr_tls::client_config(&ClientTls::trusting(TrustFiles::WebRoots));
        HttpClient::with_tls(tls.expect("the authorities of the web are compiled in"))
    }

    /// The configuration says which servers are accepted at `https` addresses.
    pub fn with_tls(tls: ClientConfig) -> HttpClient {
        HttpClient(tls)
    }

    /// A pool of connections to one address. Certificates are still checked for the host of the URL.
    fn pool(&self, address: SocketAddr) -> PooledClient {
        let mut tcp = HttpConnector::new_with_resolver(FixedAddress(address));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let builder = HttpsConnectorBuilder::new().with_tls_config(self.0.clone());
        let connector = builder.https_or_http().enable_http1().wrap_connector(tcp);
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .pool_max_idle_per_host(POOL_IDLE_PER_HOST_MAX)
            .build(connector)
    }
}

/// Every name has this address.
#[derive(Clone, Debug)]
struct FixedAddress(SocketAddr);

impl tower::Service<Name> for FixedAddress {
    type Response = iter::Once<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<iter::Once<SocketAddr>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _name: Name) -> Self::Future {
        future::ready(Ok(iter::once(self.0)))
    }
}

/// One address of a service, with its connections.
struct Endpoint {
    url: ServiceUrl,
    address: SocketAddr,
    client: PooledClient,
    under_way: AtomicUsize,
    is_aside: AtomicBool,
}

impl Endpoint {
    fn is_aside(&self) -> bool {
        self.is_aside.load(Ordering::Relaxed)
    }

    fn set_aside(&self, target: &str, is_aside: bool) {
        if self.is_aside.swap(is_aside, Ordering::Relaxed) == is_aside {
            return;
        }
        let (url, address) = (&self.url, self.address);
        match is_aside {
            true => tracing::warn!(service = target, %url, %address, "an address is set aside"),
            false => tracing::info!(service = target, %url, %address, "an address is back"),
        }
    }

    async fn send(
        &self,
        target: &'static str,
        mut request: Request,
    ) -> Result<Response, UpstreamError> {
        let mut uri = std::mem::take(request.uri_mut()).into_parts();
        uri.scheme = Some(self.url.scheme.clone());
        uri.authority = Some(self.url.authority.clone());
        *request.uri_mut() = Uri::from_parts(uri)
            .map_err(|source| UpstreamError::Malformed { target, source: source.into() })?;
        *request.version_mut() = Version::HTTP_11;
        let _counted = CallUnderWay::begin(&self.under_way);
        match self.client.request(request).await {
            Ok(response) => {
                let (mut parts, body) = response.into_parts();
                parts.extensions.clear();
                Ok(Response::from_parts(parts, Body::new(body)))
            }
            Err(error) => Err(classify(error, target)),
        }
    }

    /// Whether the process there can do its work.
    async fn is_ready(&self, target: &'static str) -> bool {
        let probe = self.get(target, "/health/ready");
        let answer = tokio::time::timeout(PROBE_TIMEOUT, probe).await;
        matches!(answer, Ok(Ok((status, _))) if status != StatusCode::SERVICE_UNAVAILABLE)
    }

    async fn get(
        &self,
        target: &'static str,
        path: &'static str,
    ) -> Result<(StatusCode, Bytes), UpstreamError> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = Uri::from_static(path);
        let response = self.send(target, request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|source| UpstreamError::Interrupted { target, source })?;
        Ok((status, body.to_bytes()))
    }
}

/// Counts a call until its answer begins.
struct CallUnderWay<'a>(&'a AtomicUsize);

impl CallUnderWay<'_> {
    fn begin(count: &AtomicUsize) -> CallUnderWay<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        CallUnderWay(count)
    }
}

impl Drop for CallUnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Endpoints = Arc<[Arc<Endpoint>]>;

/// The addresses of one service, for one of its callers.
pub(crate) struct Balancer {
    target: &'static str,
    urls: Vec<ServiceUrl>,
    client: HttpClient,
    resolve: Resolve,
    /// Empty until names have been resolved for the first time.
    endpoints: RwLock<Endpoints>,
    turn: AtomicUsize,
    looked_at: Mutex<LookedAt>,
    /// Held while names are resolved and addresses are probed.
    looking: AsyncMutex<()>,
}

/// When addresses were last looked at. `None` is long ago.
#[derive(Default)]
struct LookedAt {
    probed: Option<Instant>,
    resolved: Option<Instant>,
}

/// Whether that was so long ago that it is to be done again.
fn is_due(at: Option<Instant>, every: Duration) -> bool {
    at.is_none_or(|at| at.elapsed() >= every)
}

impl fmt::Debug for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balancer").field("urls", &self.urls).finish_non_exhaustive()
    }
}

impl Balancer {
    pub fn new(target: &'static str, urls: ServiceUrls, client: HttpClient) -> Arc<Balancer> {
        Balancer::resolving(
            target,
            urls,
            client,
            Arc::new(|host, port| Box::pin(look_up(host, port))),
        )
    }

    fn resolving(
        target: &'static str,
        ServiceUrls(urls): ServiceUrls,
        client: HttpClient,
        resolve: Resolve,
    ) -> Arc<Balancer> {
        let balancer = Balancer {
            target,
            client,
            resolve,
            endpoints: RwLock::new(Arc::new([])),
            turn: AtomicUsize::new(0),
            looked_at: Mutex::default(),
            looking: AsyncMutex::default(),
            urls,
        };
        let fixed = balancer.urls.iter().map(|url| Some((url.clone(), fixed_address(url)?)));
        if let Some(fixed) = fixed.collect::<Option<Vec<_>>>() {
            balancer.replace(fixed);
        }
        Arc::new(balancer)
    }

    /// Sends a request to one of the addresses. If that cannot be reached, nothing was sent and the
    /// next one gets the request. If the connection breaks, a request that may be repeated goes to one
    /// other address: `repeatable` is its body.
    pub async fn send(
        self: &Arc<Balancer>,
        request: Request,
        repeatable: Option<Bytes>,
    ) -> Result<Response, UpstreamError> {
        let endpoints = self.endpoints_kept_fresh().await?;
        if let [only] = &*endpoints {
            let answer = only.send(self.target, request).await;
            if matches!(answer, Err(UpstreamError::Unreachable { .. })) {
                self.resolve_soon();
            }
            return answer;
        }
        let (parts, body) = request.into_parts();
        let body = ReusableBody::new(body, repeatable.as_ref());
        let (mut tried, mut was_interrupted) = (Vec::new(), false);
        let mut failure: Option<UpstreamError> = None;
        loop {
            let endpoint = self.choose(&endpoints, &tried);
            let request = Request::from_parts(parts.clone(), body.lend());
            let answer = endpoint.send(self.target, request).await;
            let (error, may_repeat) = match answer {
                Err(error @ UpstreamError::Unreachable { .. }) => (error, true),
                Err(error @ UpstreamError::Interrupted { .. }) => {
                    let is_first = !std::mem::replace(&mut was_interrupted, true);
                    (error, is_first && repeatable.is_some())
                }
                answer => return answer,
            };
            endpoint.set_aside(self.target, true);
            tried.push(endpoint);
            let failed = failure.take().filter(says_more_than_unreachable).unwrap_or(error);
            if !may_repeat {
                return Err(failed);
            }
            if tried.len() == endpoints.len() {
                self.resolve_soon();
                return Err(failed);
            }
            failure = Some(failed);
        }
    }

    /// Whether a broken connection says nothing about the service, because another address is ready.
    pub fn has_ready_address(&self) -> bool {
        let endpoints = self.endpoints();
        endpoints.len() > 1 && endpoints.iter().any(|endpoint| !endpoint.is_aside())
    }

    /// The address with the fewest calls under way, of those that were not tried: a ready one if there
    /// is any.
    fn choose<'a>(
        &self,
        endpoints: &'a [Arc<Endpoint>],
        tried: &[&Arc<Endpoint>],
    ) -> &'a Arc<Endpoint> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % endpoints.len();
        let (before, after) = endpoints.split_at(first);
        let in_turn = after.iter().chain(before);
        let was_tried =
            |endpoint: &Arc<Endpoint>| tried.iter().any(|tried| Arc::ptr_eq(tried, endpoint));
        let untried = in_turn.filter(|endpoint| !was_tried(endpoint));
        let load = |endpoint: &&Arc<Endpoint>| {
            (endpoint.is_aside(), endpoint.under_way.load(Ordering::Relaxed))
        };
        untried.min_by_key(load).expect("the caller stops when all were tried")
    }

    fn endpoints(&self) -> Endpoints {
        Arc::clone(&self.endpoints.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known, which is looked at in the background if that was long ago. Only the first call
    /// waits for names.
    async fn endpoints_kept_fresh(self: &Arc<Balancer>) -> Result<Endpoints, UpstreamError> {
        let known = self.endpoints();
        if !known.is_empty() {
            let is_watched = known.len() > 1 || self.has_names();
            if is_watched && self.takes_look() {
                let balancer = Arc::clone(self);
                tokio::spawn(async move { balancer.look().await });
            }
            return Ok(known);
        }
        let _looking = self.looking.lock().await;
        if self.endpoints().is_empty() {
            let resolved = self.resolve_names().await;
            if self.endpoints().is_empty()
                && let Err(source) = resolved
            {
                return Err(UpstreamError::Unreachable { target: self.target, source });
            }
        }
        Ok(self.endpoints())
    }

    fn has_names(&self) -> bool {
        self.urls.iter().any(|url| fixed_address(url).is_none())
    }

    fn looked_at(&self) -> MutexGuard<'_, LookedAt> {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is time for a look, which whoever asks first takes.
    fn takes_look(&self) -> bool {
        let mut looked_at = self.looked_at();
        let is_due = is_due(looked_at.probed, PROBE_EVERY);
        if is_due {
            looked_at.probed = Some(Instant::now());
        }
        is_due
    }

    /// A service that has moved is found by the next call.
    fn resolve_soon(&self) {
        *self.looked_at() = LookedAt::default();
    }

    async fn look(&self) {
        let Ok(_looking) = self.looking.try_lock() else { return };
        let is_due = is_due(self.looked_at().resolved, RESOLVE_EVERY);
        if is_due
            && self.has_names()
            && let Err(error) = self.resolve_names().await
        {
            tracing::warn!(service = self.target, %error, "the name of a service is not resolved");
        }
        let endpoints = self.endpoints();
        if endpoints.len() > 1 {
            let probes = endpoints.iter().map(async |endpoint| {
                let is_ready = endpoint.is_ready(self.target).await;
                endpoint.set_aside(self.target, !is_ready);
            });
            join_all(probes).await;
        }
    }

    /// Finds the addresses of all names. A name that is not known at the moment keeps those that it
    /// had.
    async fn resolve_names(&self) -> Result<(), Source> {
        let known = self.endpoints();
        let mut found = Vec::new();
        let mut problem = None;
        for url in &self.urls {
            let (host, port) = url.host_and_port();
            let resolved = match fixed_address(url) {
                Some(address) => Ok(vec![address]),
                None => (self.resolve)(host.to_owned(), port).await,
            };
            let addresses = resolved.and_then(some_address).unwrap_or_else(|error| {
                problem = Some(error);
                let of_url = known.iter().filter(|endpoint| endpoint.url == *url);
                of_url.map(|endpoint| endpoint.address).collect()
            });
            found.extend(addresses.into_iter().map(|address| (url.clone(), address)));
        }
        self.looked_at().resolved = Some(Instant::now());
        if !found.is_empty() {
            self.replace(found);
        }
        problem.map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// Keeps the connections to addresses that stay.
    fn replace(&self, found: Vec<(ServiceUrl, SocketAddr)>) {
        let known = self.endpoints();
        let mut endpoints: Vec<Arc<Endpoint>> = Vec::new();
        for (url, address) in found {
            let is_same = |one: &&Arc<Endpoint>| one.url == url && one.address == address;
            if endpoints.iter().any(|one| is_same(&one)) {
                continue;
            }
            let endpoint = known.iter().find(is_same).cloned();
            endpoints.push(endpoint.unwrap_or_else(|| Arc::new(self.open(url, address))));
        }
        *self.endpoints.write().unwrap_or_else(PoisonError::into_inner) = endpoints.into();
    }

    fn open(&self, url: ServiceUrl, address: SocketAddr) -> Endpoint {
        Endpoint {
            url,
            address,
            client: self.client.pool(address),
            under_way: AtomicUsize::new(0),
            is_aside: AtomicBool::new(false),
        }
    }
}

/// What every address answers to a `GET`, by its name for people. Addresses that cannot be found are an
/// error of all.
pub async fn get_from_every_address(
    urls: &ServiceUrls,
    client: &HttpClient,
    path: &'static str,
    timeout: Duration,
) -> Result<Vec<(String, Result<Bytes, String>)>, UpstreamError> {
    let balancer = Balancer::new("urr", urls.clone(), client.clone());
    let endpoints = balancer.endpoints_kept_fresh().await?;
    let asked = endpoints.iter().map(async |endpoint| {
        let answer = tokio::time::timeout(timeout, endpoint.get(balancer.target, path)).await;
        let answer = match answer {
            Ok(Ok((status, body))) if status.is_success() => Ok(body),
            Ok(Ok((status, _))) => Err(status.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("nothing within {} s", timeout.as_secs())),
        };
        (format!("{} ({})", endpoint.url, endpoint.address), answer)
    });
    Ok(join_all(asked).await)
}

/// The address of a URL whose host is one.
fn fixed_address(url: &ServiceUrl) -> Option<SocketAddr> {
    let (host, port) = url.host_and_port();
    Some(SocketAddr::new(host.parse::<IpAddr>().ok()?, port))
}

async fn look_up(host: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

fn some_address(found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    match found.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
        false => Ok(found),
    }
}

/// Whether the failure of one address is the one to tell, although another cannot be reached at all:
/// the first may have done what was asked, or have shown a wrong certificate.
fn says_more_than_unreachable(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Interrupted { .. } => true,
        UpstreamError::Unreachable { source, .. } => {
            urr_tls::is_certificate_refused(source.as_ref())
        }
        _ => false,
    }
}

fn classify(error: ClientError, target: &'static str) -> UpstreamError {
    let is_user = |hyper: &hyper::Error| hyper.is_user();
    let from_body = error.source().and_then(|source| source.downcast_ref()).is_some_and(is_user);
    let connect = error.is_connect();
    let (too_large, too_slow) = (is_limit(&error), is_too_slow(&error));
    let source = error.into();
    match () {
        () if too_slow => UpstreamError::RequestStalled { target },
        () if connect => UpstreamError::Unreachable { target, source },
        () if from_body => UpstreamError::RequestBody { target, source, too_large },
        () => UpstreamError::Interrupted { target, source },
    }
}

/// A body that several addresses may get in turn.
enum ReusableBody {
    InMemory(Bytes),
    /// Read once: it can be lent again as long as nothing of it was sent.
    Lent(Arc<Mutex<Body>>),
}

impl ReusableBody {
    fn new(body: Body, in_memory: Option<&Bytes>) -> ReusableBody {
        match in_memory {
            Some(bytes) => ReusableBody::InMemory(bytes.clone()),
            None if body.is_end_stream() => ReusableBody::InMemory(Bytes::new()),
            None => ReusableBody::Lent(Arc::new(Mutex::new(body))),
        }
    }

    fn lend(&self) -> Body {
        match self {
            ReusableBody::InMemory(bytes) => in_memory(bytes),
            ReusableBody::Lent(body) => Body::new(LentBody(Arc::clone(body))),
        }
    }
}

struct LentBody(Arc<Mutex<Body>>);

impl LentBody {
    fn lock(&self) -> MutexGuard<'_, Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for LentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut *self.lock()).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.lock().size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::*;

    type Addresses = Arc<Mutex<Vec<SocketAddr>>>;

    /// A service whose name has these addresses. The ports are those of the addresses, because the URL
    /// has none.
    fn named(addresses: &Addresses) -> Arc<Balancer> {
        let addresses = Arc::clone(addresses);
        let resolve = move |host: String, _port| {
            assert_eq!(host, "service.test");
            let found = addresses.lock().unwrap().clone();
            Box::pin(future::ready(Ok(found))) as BoxFuture<'static, _>
        };
        let urls = "http://service.test".parse().unwrap();
        Balancer::resolving("test", urls, HttpClient::new(), Arc::new(resolve))
    }

    /// A process that answers with its address, and what ends it.
    async fn start() -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async move || address.to_string()));
        let never = CancellationToken::new();
        let running = tokio::spawn(async move {
            crate::serve(listener, router, never, Duration::ZERO).await.unwrap();
        });
        (address, running)
    }

    /// Who answers.
    async fn ask(balancer: &Arc<Balancer>) -> Option<SocketAddr> {
        let response = balancer.send(Request::new(Body::empty()), None).await.ok()?;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Some(str::from_utf8(&body).unwrap().parse().unwrap())
    }

    async fn until_answered_by(balancer: &Arc<Balancer>, address: SocketAddr) {
        let answered = async { while ask(balancer).await != Some(address) {} };
        let soon = tokio::time::timeout(Duration::from_secs(20), answered);
        soon.await.expect("the address is found");
    }

    #[tokio::test]
    async fn a_name_is_all_its_addresses_and_is_resolved_again() {
        let ((first, _), (second, _), (third, _)) = (start().await, start().await, start().await);
        let addresses: Addresses = Arc::new(Mutex::new(vec![first, second]));
        let balancer = named(&addresses);
        let answered = [ask(&balancer).await.unwrap(), ask(&balancer).await.unwrap()];
        assert!(answered.contains(&first) && answered.contains(&second));
        *addresses.lock().unwrap() = vec![second, third];
        until_answered_by(&balancer, third).await;
        for _ in 0..10 {
            assert_ne!(ask(&balancer).await.unwrap(), first, "it no longer has the name");
        }
    }

    #[tokio::test]
    async fn a_service_that_has_moved_is_found_at_once() {
        let ((old, running), (new, _)) = (start().await, start().await);
        let addresses: Addresses = Arc::new(Mutex::new(vec![old]));
        let balancer = named(&addresses);
        assert_eq!(ask(&balancer).await, Some(old));
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        *addresses.lock().unwrap() = vec![new];
        let begun = Instant::now();
        until_answered_by(&balancer, new).await;
        assert!(begun.elapsed() < RESOLVE_EVERY);
    }

    #[tokio::test]
    async fn a_name_that_is_not_known_keeps_its_addresses() {
        let (address, _running) = start().await;
        let addresses: Addresses = Arc::new(Mutex::new(vec![address]));
        let balancer = named(&addresses);
        assert_eq!(ask(&balancer).await, Some(address));
        addresses.lock().unwrap().clear();
        balancer.resolve_names().await.unwrap_err();
        assert_eq!(ask(&balancer).await, Some(address));
    }
}
