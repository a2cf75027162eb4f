//! Calls of a client to a service in this process, by values, and over HTTP: both give the same
//! answer and the same error.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use serde_json::json;
use urr_contracts::clients::{ClientError, PayableRef, ServiceClient, TicketClient};
use urr_contracts::internal::calls;
use urr_contracts::internal::ticket::{GetPayable, PayableKind};
use urr_kernel::{CallContext, Clock, IdSource, Secret, Timestamp};
use urr_service::{
    ApiError, Caller, HttpClient, InternalCall, InternalCalls, InternalCredentials, Metrics,
    RemoteService, RequestLimits, Service, ServiceKit, Upstream,
};
use utoipa_axum::router::OpenApiRouter;

use crate::golden::id;
use crate::internal::{CallVisitor, visit_calls};

fn kit() -> ServiceKit {
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let ids = IdSource::seeded(clock.clone(), 1);
    ServiceKit { clock, ids, metrics: Metrics::new(), limits: RequestLimits::default() }
}

fn context() -> CallContext {
    CallContext { causation_id: Some(id(98)), ..CallContext::root(id(99)) }
}

/// What a handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Answer,
    Refuse,
    BeBusy,
    Panic,
}

/// Registers every call with a handler that knows the request and behaves as it is told.
struct Registration {
    calls: InternalCalls<()>,
    behaviour: Behaviour,
    contexts: Arc<Mutex<Vec<CallContext>>>,
}

impl CallVisitor for Registration {
    fn visit<C>(&mut self, request: C, answer: C::Answer)
    where
        C: InternalCall + PartialEq + Debug,
        C::Answer: Clone + PartialEq + Debug + Sync,
    {
        let (behaviour, contexts) = (self.behaviour, Arc::clone(&self.contexts));
        let handler = move |(), asked: C, context: CallContext| {
            assert_eq!(asked, request);
            contexts.lock().expect("no test panics with it").push(context);
            let answer = answer.clone();
            async move {
                match behaviour {
                    Behaviour::Answer => Ok(answer),
                    Behaviour::Refuse => {
                        Err(ApiError::conflict("HOLD_EXPIRED", "Gone.").with("after", 300))
                    }
                    Behaviour::BeBusy => {
                        let after = std::time::Duration::from_secs(3);
                        Err(ApiError::unavailable("BUSY", "Later.", after))
                    }
                    Behaviour::Panic => panic!("as it was told"),
                }
            }
        };
        let calls = std::mem::replace(&mut self.calls, InternalCalls::new(()));
        self.calls = calls.serve(handler);
    }
}

/// Makes every call in both ways, and notes the answers.
struct Calling<'a> {
    service: &'a Service,
    address: SocketAddr,
    /// Calls as somebody who may, or as somebody who may not.
    is_allowed: bool,
    outcomes: Vec<tokio::task::JoinHandle<(&'static str, String, String)>>,
}

impl CallVisitor for Calling<'_> {
    fn visit<C>(&mut self, request: C, _answer: C::Answer)
    where
        C: InternalCall + PartialEq + Debug,
        C::Answer: Clone + PartialEq + Debug + Sync,
    {
        let is_wanted = |caller: &Caller| C::SPEC.callers.contains(caller) == self.is_allowed;
        let Some(caller) = Caller::ALL.into_iter().find(is_wanted) else { return };
        let local = Upstream::local(caller, "peer", self.service, &kit());
        let remote = RemoteService {
            urls: format!("http://{}", self.address)
                .parse()
                .expect("a contract that can be served"),
            credential: InternalCredentials::from_root(&Secret::new("root"))
                .for_call(caller, "peer"),
            client: HttpClient::new(),
        };
        let remote = Upstream::remote(caller, "peer", remote, &kit());
        self.outcomes.push(tokio::spawn(async move {
            let [local, remote] = [local, remote].map(ServiceClient::<C::Service>::new);
            let here = local.call(request.clone(), &context()).await;
            let there = remote.call(request, &context()).await;
            (C::SPEC.name, format!("{here:?}"), format!("{there:?}"))
        }));
    }
}

async fn outcomes(behaviour: Behaviour, is_allowed: bool) -> Vec<String> {
    let contexts = Arc::default();
    let calls = InternalCalls::new(());
    let mut registration = Registration { calls, behaviour, contexts: Arc::clone(&contexts) };
    visit_calls(&mut registration);
    let service = Service::new("peer", OpenApiRouter::new(), &kit()).with_calls(registration.calls);
    let listener =
        tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a contract that can be served");
    let address = listener.local_addr().expect("a contract that can be served");
    let credentials = InternalCredentials::from_root(&Secret::new("root"));
    let router = service.network_router(&credentials);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut calling = Calling { service: &service, address, is_allowed, outcomes: Vec::new() };
    visit_calls(&mut calling);
    let mut outcomes = Vec::new();
    for outcome in calling.outcomes {
        let (name, here, there) = outcome.await.expect("a contract that can be served");
        assert_eq!(here, there, "{name} {behaviour:?}");
        outcomes.push(here);
    }
    for context in contexts.lock().expect("no test panics with it").iter() {
        assert_eq!((context.correlation_id, context.causation_id), (id(99), Some(id(98))));
    }
    outcomes
}

#[tokio::test]
async fn every_call_has_the_same_answer_here_and_over_http() {
    let answers = outcomes(Behaviour::Answer, true).await;
    assert_eq!(answers.len(), calls().count());
    assert!(answers.iter().all(|answer| answer.starts_with("Ok(")), "{answers:?}");
}

#[tokio::test]
async fn every_call_has_the_same_error_here_and_over_http() {
    for (behaviour, code) in [
        (Behaviour::Refuse, "HOLD_EXPIRED"),
        (Behaviour::BeBusy, "BUSY"),
        (Behaviour::Panic, "INTERNAL_ERROR"),
    ] {
        let errors = outcomes(behaviour, true).await;
        assert_eq!(errors.len(), calls().count());
        assert!(errors.iter().all(|error| error.contains(code)), "{errors:?}");
    }
    let strangers = outcomes(Behaviour::Answer, false).await;
    assert!(strangers.len() > 10, "some calls are for everybody");
    assert!(strangers.iter().all(|error| error.contains("CALLER_NOT_ALLOWED")), "{strangers:?}");
}

fn refusing(status: StatusCode, code: &'static str) -> TicketClient {
    let body = json!({ "error": "No.", "code": code });
    let refuse = async move || (status, axum::Json(body));
    let router = Router::new().fallback(refuse);
    TicketClient::new(Upstream::local(Caller::Operator, "peer", router, &kit()))
}

#[tokio::test]
async fn a_refusal_by_the_rules_is_told_from_a_call_that_failed() {
    let payable = PayableRef { kind: PayableKind::Transfer, id: id(40) };
    let get = GetPayable { payable };
    for (status, code) in [
        (StatusCode::CONFLICT, "HOLD_EXPIRED"),
        (StatusCode::NOT_FOUND, "TRANSFER_NOT_FOUND"),
        (StatusCode::FORBIDDEN, "NOT_THE_OWNER"),
    ] {
        let refused = refusing(status, code).call(get, &context()).await.unwrap_err();
        assert_eq!(refused.code(), Some(code), "{refused:?}");
        assert_eq!(refused.is_not_found(), status == StatusCode::NOT_FOUND);
    }
    for (status, code) in [
        (StatusCode::UNAUTHORIZED, "INTERNAL_CREDENTIAL_REQUIRED"),
        (StatusCode::FORBIDDEN, "CALLER_NOT_ALLOWED"),
        (StatusCode::NOT_FOUND, "NOT_FOUND"),
        (StatusCode::NOT_FOUND, ""),
        (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS"),
        (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR"),
    ] {
        let client = refusing(status, code);
        let error = client.call(get, &context()).await.unwrap_err();
        assert!(matches!(error, ClientError::NoAnswer { .. }), "{error:?}");
        assert!(client.find(get, &context()).await.is_err(), "{status} {code}");
    }
    let missing = refusing(StatusCode::NOT_FOUND, "TRANSFER_NOT_FOUND");
    assert_eq!(missing.find(get, &context()).await.unwrap(), None);
}
