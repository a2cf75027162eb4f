//! Calls between our own programs. A call is a type: its fields are what is asked for, its
//! [`CallSpec`] says where it is served, who may make it and how long it may take.
//!
//! A service registers one handler per call ([`InternalCalls::serve`]), which answers callers in
//! this process with values and callers in other processes at its path. Over the network the fields
//! that the path names are in the path; the others are in the query (GET) or the JSON body (POST).

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequest, FromRequestParts, Query as UrlQuery, RawPathParams, Request};
use axum::http::{Method, Uri};
use axum::routing::{get, post};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use urr_kernel::{CallContext, percent};

use crate::caller::{Internal, check_allowed};
use crate::context::Context;
use crate::extract::{query_refused, refuse_nul};
use crate::upstream::CallPolicy;
use crate::{ApiError, Caller, Json};

/// How a call travels, and whether it is repeated when it fails on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Get,
    /// A change that may be made twice without harm.
    Post,
    /// A change that is not repeated.
    PostOnce,
}

/// How a call is made.
#[derive(Clone, Copy, Debug)]
pub struct CallSpec {
    /// The name of its type.
    pub name: &'static str,
    pub kind: CallKind,
    /// The path as routers take it. Its parameters are fields of the call.
    pub path: &'static str,
    /// Who may call; everybody else gets 403 `CALLER_NOT_ALLOWED`.
    pub callers: &'static [Caller],
    pub deadline: Duration,
}

impl CallSpec {
    pub fn method(&self) -> Method {
        if self.kind == CallKind::Get { Method::GET } else { Method::POST }
    }

    pub(crate) fn policy(&self) -> CallPolicy {
        match self.kind {
            CallKind::Get | CallKind::Post => CallPolicy::idempotent(self.deadline),
            CallKind::PostOnce => CallPolicy::once(self.deadline),
        }
    }
}

/// A call to one of our services.
pub trait InternalCall: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The service, as a type: a client of it makes no other calls.
    type Service;
    type Answer: Serialize + DeserializeOwned + Send + 'static;
    const SPEC: CallSpec;
}

/// A call as it travels.
pub(crate) struct WireCall {
    pub path: String,
    /// Empty for GET.
    pub body: Vec<u8>,
}

impl WireCall {
    pub fn write<C: InternalCall>(call: &C) -> Result<WireCall, serde_json::Error> {
        let mut fields: Map<String, Value> = serde_json::from_value(serde_json::to_value(call)?)?;
        let segments = C::SPEC.path.split('/').map(|segment| match parameter(segment) {
            Some(name) => plain_text(&fields.remove(name).unwrap_or_default()),
            None => segment.to_owned(),
        });
        let path = segments.collect::<Vec<String>>().join("/");
        if C::SPEC.kind != CallKind::Get {
            return Ok(WireCall { path, body: serde_json::to_vec(&fields)? });
        }
        let given = fields.iter().filter(|(_, value)| !value.is_null());
        let query: Vec<String> =
            given.map(|(name, value)| format!("{name}={}", plain_text(value))).collect();
        let query = if query.is_empty() { query.concat() } else { format!("?{}", query.join("&")) };
        Ok(WireCall { path: path + &query, body: Vec::new() })
    }

    async fn read<C: InternalCall>(request: Request) -> Result<C, ApiError> {
        let (mut parts, body) = request.into_parts();
        refuse_nul(Some(parts.uri.path()), "INVALID_PATH")?;
        refuse_nul(parts.uri.query(), "INVALID_QUERY")?;
        let params = RawPathParams::from_request_parts(&mut parts, &()).await;
        let params = params.map_err(ApiError::internal)?;
        if C::SPEC.kind == CallKind::Get {
            let mut query = parts.uri.query().unwrap_or_default().to_owned();
            for (name, value) in &params {
                query = format!("{name}={}&{query}", percent::encode(value));
            }
            let uri: Uri = format!("/?{query}").parse().map_err(ApiError::internal)?;
            let call = UrlQuery::try_from_uri(&uri).map_err(|refused| query_refused(&refused))?;
            return Ok(call.0);
        }
        let request = Request::from_parts(parts, body);
        let Json(mut fields) = Json::<Map<String, Value>>::from_request(request, &()).await?;
        fields.extend(params.iter().map(|(name, value)| (name.to_owned(), Value::from(value))));
        let bytes = serde_json::to_vec(&fields).map_err(ApiError::internal)?;
        Json::read(&bytes).map(|Json(call)| call)
    }
}

/// The name of a parameter in a path.
fn parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => percent::encode(text),
        other => percent::encode(&other.to_string()),
    }
}

type Handler<C> = Arc<
    dyn Fn(C, CallContext) -> BoxFuture<'static, Result<<C as InternalCall>::Answer, ApiError>>
        + Send
        + Sync,
>;

/// The handlers of a service, by the types of their calls.
#[derive(Clone, Default)]
pub(crate) struct CallHandlers(Arc<HashMap<TypeId, Box<dyn Any + Send + Sync>>>);

impl CallHandlers {
    pub fn find<C: InternalCall>(&self) -> Option<&Handler<C>> {
        self.0.get(&TypeId::of::<C>())?.downcast_ref()
    }
}

/// The calls that a service answers.
pub struct InternalCalls<S> {
    state: S,
    routes: Router,
    handlers: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl<S: Clone + Send + Sync + 'static> InternalCalls<S> {
    pub fn new(state: S) -> InternalCalls<S> {
        InternalCalls { state, routes: Router::new(), handlers: HashMap::new() }
    }

    /// Answers a call by `handler`, for callers in this process and over the network.
    pub fn serve<C, F, W>(mut self, handler: F) -> InternalCalls<S>
    where
        C: InternalCall,
        F: Fn(S, C, CallContext) -> W + Send + Sync + 'static,
        W: Future<Output = Result<C::Answer, ApiError>> + Send + 'static,
    {
        let state = self.state.clone();
        let handler: Handler<C> =
            Arc::new(move |call, context| Box::pin(handler(state.clone(), call, context)));
        let served = Arc::clone(&handler);
        let route = async move |caller: Internal, context: Context, request: Request| {
            check_allowed(C::SPEC.callers, caller.caller())?;
            let call = WireCall::read::<C>(request).await?;
            served(call, context.0).await.map(Json)
        };
        let route = if C::SPEC.kind == CallKind::Get { get(route) } else { post(route) };
        self.routes = self.routes.route(C::SPEC.path, route);
        let before = self.handlers.insert(TypeId::of::<C>(), Box::new(handler));
        assert!(before.is_none(), "{} has two handlers", C::SPEC.name);
        self
    }

    pub(crate) fn into_parts(self) -> (Router, CallHandlers) {
        (self.routes, CallHandlers(Arc::new(self.handlers)))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use serde::Deserialize;
    use tower::ServiceExt;

    use super::*;
    use crate::context::CallMetadata;
    use crate::deadline::Deadline;

    #[derive(Clone, Serialize, Deserialize)]
    struct Pin {
        kind: String,
        amount: i64,
    }

    #[derive(Clone, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Find {
        kind: String,
        user_id: u32,
        after: Option<i64>,
    }

    macro_rules! call {
        ($call:ident, $kind:ident, $path:literal) => {
            impl InternalCall for $call {
                type Service = ();
                type Answer = Value;
                const SPEC: CallSpec = CallSpec {
                    name: "call",
                    kind: CallKind::$kind,
                    path: $path,
                    callers: &[Caller::Queue],
                    deadline: Duration::from_secs(1),
                };
            }
        };
    }

    call!(Pin, Post, "/holds/{kind}/pin");
    call!(Find, Get, "/holds/{kind}");

    #[test]
    fn fields_travel_in_the_path_and_in_the_query_or_the_body() {
        let pin = WireCall::write(&Pin { kind: "좌석 1".to_owned(), amount: 7 }).unwrap();
        assert_eq!(pin.path, "/holds/%EC%A2%8C%EC%84%9D%201/pin");
        assert_eq!(pin.body, br#"{"amount":7}"#);
        let find = Find { kind: "a".to_owned(), user_id: 3, after: Some(-1) };
        assert_eq!(WireCall::write(&find).unwrap().path, "/holds/a?after=-1&userId=3");
        let find = WireCall::write(&Find { after: None, ..find }).unwrap();
        assert_eq!((find.path.as_str(), find.body.len()), ("/holds/a?userId=3", 0));
    }

    async fn refused(request: axum::http::request::Builder, body: &'static str) -> String {
        let calls = InternalCalls::new(())
            .serve(async |(), _: Pin, _: CallContext| Ok(Value::Null))
            .serve(async |(), _: Find, _: CallContext| Ok(Value::Null));
        let mut request = request.header("content-type", "application/json");
        let context = CallContext::root(uuid::Uuid::from_u128(1));
        let call = CallMetadata { context, deadline: Deadline::after(Duration::from_secs(1)) };
        request = request.extension(Caller::Queue).extension(call);
        let response = calls.into_parts().0.oneshot(request.body(Body::from(body)).unwrap()).await;
        response
            .unwrap()
            .extensions()
            .get::<ApiError>()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    #[tokio::test]
    async fn a_call_that_cannot_be_read_says_why() {
        let get = |uri: &str| Request::get(uri.to_owned());
        assert_eq!(refused(get("/holds/a?userId=3&after=4"), "").await, "");
        let missing = refused(get("/holds/a?after=4"), "").await;
        assert!(missing.contains("INVALID_QUERY") && missing.contains("userId"), "{missing}");
        let nul = refused(get("/holds/%00?userId=3"), "").await;
        assert!(nul.contains("INVALID_PATH"), "{nul}");
        let post = || Request::post("/holds/a/pin");
        assert_eq!(refused(post(), r#"{"amount":7}"#).await, "");
        assert!(refused(post(), "{").await.contains("INVALID_JSON"));
        let wrong = refused(post(), r#"{"amount":"7"}"#).await;
        assert!(wrong.contains("INVALID_BODY") && wrong.contains("amount"), "{wrong}");
    }
}
