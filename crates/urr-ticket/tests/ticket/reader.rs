//! A client that reads from the ticket service over HTTP, through the gateway.

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use futures_util::StreamExt;
use serde_json::Value;
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};
use urr_ticket::TicketService;

use crate::fixture::World;

#[derive(Clone)]
pub struct HttpReader {
    router: Router,
    identity: Option<Identity>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_slice(&self.bytes).unwrap()
    }

    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
        body
    }

    pub fn tag(&self) -> &str {
        self.headers["etag"].to_str().unwrap()
    }
}

impl HttpReader {
    pub fn new(world: &World) -> HttpReader {
        HttpReader::of(&world.ticket, world)
    }

    pub fn of(ticket: &TicketService, world: &World) -> HttpReader {
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        HttpReader { router: ticket.service(&kit).local_router(), identity: None }
    }

    /// The same, logged in.
    pub fn logged_in(&self, user_id: Uuid, role: UserRole) -> HttpReader {
        let identity = Some(Identity { user_id, email: None, role });
        HttpReader { router: self.router.clone(), identity }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&'static str, &str)]) -> Answer {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// With an idempotency key.
    pub async fn post_once(&self, path: &str, body: &Value, key: &str) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.header("idempotency-key", key);
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// Without a body.
    pub async fn request(&self, method: Method, path: &str) -> Answer {
        let request = Request::builder().method(method).uri(path);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// The events of a stream as they come.
    pub async fn follow(&self, path: &str, headers: &[(&'static str, &str)]) -> Events {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.call(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { stream: response.into_body().into_data_stream(), read: String::new() }
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.call(request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = axum::body::to_bytes(response.into_body(), 10_000_000).await.unwrap().to_vec();
        Answer { status, headers, bytes }
    }

    async fn call(&self, mut request: Request<Body>) -> axum::response::Response {
        request.extensions_mut().insert(Caller::Gateway);
        if let Some(identity) = &self.identity {
            identity.write(request.headers_mut());
        }
        self.router.clone().oneshot(request).await.unwrap()
    }
}

pub struct Events {
    stream: BodyDataStream,
    read: String,
}

impl Events {
    /// The id and the data of the next event; none if the stream has ended.
    pub async fn next(&mut self) -> Option<(i64, Value)> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_else(|| panic!("no {name} in {event:?}")).trim()
                };
                // A line that begins with a colon is only a sign of life.
                let read = (!event.starts_with(':')).then(|| {
                    (field("id:").parse().unwrap(), serde_json::from_str(field("data:")).unwrap())
                });
                self.read = rest.to_owned();
                if read.is_some() {
                    return read;
                }
                continue;
            }
            let bytes = self.stream.next().await?.unwrap();
            self.read.push_str(str::from_utf8(&bytes).unwrap());
        }
    }
}
