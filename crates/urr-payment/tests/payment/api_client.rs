//! The payment service as the gateway sees it.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_payment::PaymentService;
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};

use crate::fixture::World;

/// Calls the routes as the gateway does.
#[derive(Clone)]
pub struct ApiClient(Router);

pub type Answer = (StatusCode, Value);

impl ApiClient {
    pub fn new(world: &World) -> ApiClient {
        ApiClient::to(&world.payments, world)
    }

    pub fn to(payments: &PaymentService, world: &World) -> ApiClient {
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        ApiClient(payments.service(&kit).local_router())
    }

    pub async fn post(&self, user: Option<Uuid>, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &headers(user, UserRole::User), body.to_string()).await
    }

    pub async fn post_as_admin(&self, path: &str, key: &str, body: &Value) -> Answer {
        let mut headers = headers(Some(Uuid::from_u128(77)), UserRole::Admin);
        headers.insert("idempotency-key", key.parse().unwrap());
        self.send(Method::POST, path, &headers, body.to_string()).await
    }

    pub async fn get(&self, user: Option<Uuid>, path: &str) -> Answer {
        self.send(Method::GET, path, &headers(user, UserRole::User), String::new()).await
    }

    pub async fn get_as_admin(&self, path: &str) -> Answer {
        let headers = headers(Some(Uuid::from_u128(77)), UserRole::Admin);
        self.send(Method::GET, path, &headers, String::new()).await
    }

    pub async fn get_as(&self, who: (Uuid, UserRole), path: &str) -> Answer {
        self.send(Method::GET, path, &headers(Some(who.0), who.1), String::new()).await
    }

    pub async fn post_as(&self, who: (Uuid, UserRole), path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &headers(Some(who.0), who.1), body.to_string()).await
    }

    /// As another of our programs asks; with a body it posts.
    pub async fn internal(&self, caller: Caller, path: &str, body: Option<&Value>) -> Value {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let body = Body::from(body.map(Value::to_string).unwrap_or_default());
        let mut request = Request::builder().method(method).uri(path).body(body).unwrap();
        *request.headers_mut() = headers(None, UserRole::User);
        request.extensions_mut().insert(caller);
        let answer = self.0.clone().oneshot(request).await.unwrap();
        let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The text of a file.
    pub async fn file_as(&self, who: (Uuid, UserRole), path: &str) -> (StatusCode, String) {
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        *request.headers_mut() = headers(Some(who.0), who.1);
        request.extensions_mut().insert(Caller::Gateway);
        let answer = self.0.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let bytes = to_bytes(answer.into_body(), 1 << 24).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    pub async fn confirm(&self, user: Uuid, key: &str, order: &str, amount: i64) -> Answer {
        let body = json!({"paymentKey": key, "orderId": order, "amount": amount});
        self.post(Some(user), "/api/payments/confirm", &body).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &HeaderMap,
        body: String,
    ) -> Answer {
        let mut request =
            Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
        *request.headers_mut() = headers.clone();
        request.extensions_mut().insert(Caller::Gateway);
        let answer = self.0.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }
}

pub fn headers(user: Option<Uuid>, role: UserRole) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse().unwrap());
    if let Some(user_id) = user {
        Identity { user_id, email: None, role }.write(&mut headers);
    }
    headers
}
