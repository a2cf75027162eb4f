//! The ticket service as the gateway sees it.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};
use urr_ticket::TicketService;

use crate::fixture::World;

/// Calls the ticket service's routes as the gateway does.
#[derive(Clone)]
pub struct GatewayClient {
    router: Router,
}

/// Someone who wants to buy.
#[derive(Clone)]
pub struct Fan {
    pub user_id: Uuid,
}

impl Fan {
    pub fn new(world: &World) -> Fan {
        Fan { user_id: world.ids.next_id() }
    }
}

impl GatewayClient {
    pub fn new(world: &World) -> GatewayClient {
        GatewayClient::to(&world.ticket, world)
    }

    pub fn to(ticket: &TicketService, world: &World) -> GatewayClient {
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        GatewayClient { router: ticket.service(&kit).local_router() }
    }

    pub async fn post(
        &self,
        fan: &Fan,
        entered: Uuid,
        path: &str,
        body: Value,
    ) -> (StatusCode, Value) {
        self.post_as(Some(fan), Some(entered), path, body).await
    }

    pub async fn post_as(
        &self,
        fan: Option<&Fan>,
        entered: Option<Uuid>,
        path: &str,
        body: Value,
    ) -> (StatusCode, Value) {
        self.send(headers(fan, entered), path, &body).await
    }

    pub async fn post_with_key(
        &self,
        fan: &Fan,
        event_id: Uuid,
        path: &str,
        body: Value,
        key: &str,
    ) -> (StatusCode, Value) {
        let mut headers = headers(Some(fan), Some(event_id));
        headers.insert("idempotency-key", key.parse().unwrap());
        self.send(headers, path, &body).await
    }

    pub async fn reserve(
        &self,
        fan: &Fan,
        event_id: Uuid,
        seat_ids: &[u32],
    ) -> (StatusCode, Value) {
        let body = json!({"eventId": event_id, "seatIds": seat_ids});
        self.post(fan, event_id, "/api/seats/reserve", body).await
    }

    pub async fn reserve_with_key(
        &self,
        fan: &Fan,
        event_id: Uuid,
        seat_ids: &[u32],
        key: &str,
    ) -> (StatusCode, Value) {
        let body = json!({"eventId": event_id, "seatIds": seat_ids});
        self.post_with_key(fan, event_id, "/api/seats/reserve", body, key).await
    }

    pub async fn reserve_tickets(
        &self,
        fan: &Fan,
        event_id: Uuid,
        items: Value,
    ) -> (StatusCode, Value) {
        let body = json!({"eventId": event_id, "items": items});
        self.post(fan, event_id, "/api/reservations", body).await
    }

    /// A reservation that must succeed.
    pub async fn must_reserve(&self, fan: &Fan, event_id: Uuid, seat_ids: &[u32]) -> Value {
        let (status, body) = self.reserve(fan, event_id, seat_ids).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["reservation"].clone()
    }

    async fn send(&self, headers: HeaderMap, path: &str, body: &Value) -> (StatusCode, Value) {
        let mut request = Request::post(path)
            .header("content-type", "application/json")
            .extension(Caller::Gateway)
            .body(Body::from(body.to_string()))
            .unwrap();
        request.headers_mut().extend(headers);
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), 1024 * 1024).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }
}

fn headers(fan: Option<&Fan>, entered: Option<Uuid>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(fan) = fan {
        let identity = Identity { user_id: fan.user_id, email: None, role: UserRole::User };
        identity.write(&mut headers);
    }
    if let Some(event_id) = entered {
        headers.insert("x-urr-entry-event", event_id.to_string().parse().unwrap());
    }
    headers
}
