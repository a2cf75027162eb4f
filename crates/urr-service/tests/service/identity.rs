//! Whom a service believes: its own programs by credential, the gateway about users, nobody else.

use axum::body::Body;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::{CallContext, Secret, Uuid};
use urr_service::{Caller, Identity, InternalCredentials, UserRole};

use crate::fixture::{
    Ping, ShowContext, TRANSPORTS, TestService, context, get_request, once, raw, request,
    status_and_body,
};

fn mina(role: UserRole) -> Identity {
    Identity { user_id: Uuid::from_u128(5), email: Some("민아@예매.kr".to_owned()), role }
}

fn as_mina(path: &str, role: UserRole) -> axum::extract::Request {
    let mut request = get_request(path);
    mina(role).write(request.headers_mut());
    request
}

#[tokio::test]
async fn the_gateway_says_who_the_user_is() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let gateway = fixture.upstream(transport, Caller::Gateway).await;
        let call =
            async |request| status_and_body(gateway.call(request, &context(), once()).await).await;
        let (status, me) = call(as_mina("/me", UserRole::User)).await;
        assert_eq!((status, &me["email"]), (200, &json!("민아@예매.kr")));
        assert_eq!(call(as_mina("/admin", UserRole::Admin)).await.0, 200);
        let (status, body) = call(as_mina("/admin", UserRole::User)).await;
        assert_eq!((status, &body["code"]), (403, &json!("ADMIN_REQUIRED")));
        for path in ["/me", "/admin"] {
            let (status, body) = call(get_request(path)).await;
            assert_eq!((status, &body["code"]), (401, &json!("AUTHENTICATION_REQUIRED")));
        }
    }
}

#[tokio::test]
async fn identity_headers_of_another_service_are_refused() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let payment = fixture.upstream(transport, Caller::Payment).await;
        let forged = payment.call(as_mina("/me", UserRole::Admin), &context(), once()).await;
        let (status, body) = status_and_body(forged).await;
        assert_eq!((status, &body["code"]), (403, &json!("UNTRUSTED_IDENTITY")), "{transport:?}");
        let counted = r#"urr_http_errors_total{service="fixture",code="UNTRUSTED_IDENTITY"} 1"#;
        assert!(fixture.kit.metrics.text().contains(counted));
    }
}

#[tokio::test]
async fn identity_headers_from_nobody_are_refused_on_both_doors() {
    let fixture = TestService::open();
    let local = fixture.service.local_router();
    let response = local.oneshot(as_mina("/me", UserRole::Admin)).await.unwrap();
    let (status, body) = status_and_body(Ok(response)).await;
    assert_eq!((status, &body["code"]), (403, &json!("UNTRUSTED_IDENTITY")));
    let answer = from_network(&fixture, "/me", &[("x-user-id", &Uuid::nil().to_string())]).await;
    assert_eq!(answer, (403, json!("UNTRUSTED_IDENTITY")));
}

/// Calls with exactly these headers over a connection.
async fn from_network(fixture: &TestService, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let mut text = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let answer = raw(fixture.listen().await, &(text + "\r\n")).await;
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    (status, body["code"].clone())
}

#[tokio::test]
async fn internal_addresses_know_their_caller_and_refuse_strangers() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let queue = fixture.upstream(transport, Caller::Queue).await;
        let ping = queue.ask(&Ping {}, &context()).await.unwrap();
        assert_eq!(ping, json!({"caller": "queue"}));
    }
    let fixture = TestService::open();
    let stranger = from_network(&fixture, "/internal/ping", &[]).await;
    assert_eq!(stranger, (401, json!("INTERNAL_CREDENTIAL_REQUIRED")));
}

#[tokio::test]
async fn a_wrong_credential_is_refused_whatever_the_address() {
    let fixture = TestService::open();
    let elsewhere = InternalCredentials::from_root(&Secret::new("another root"));
    let address = fixture.listen().await;
    let payment = fixture.credentials.for_call(Caller::Payment, "fixture");
    for secret in [elsewhere.for_call(Caller::Gateway, "fixture"), payment, Secret::new("guess")] {
        let forger = fixture.upstream_at(address, Caller::Gateway, secret);
        for path in ["/internal/ping", "/scripted", "/nowhere"] {
            let answer = forger.call(get_request(path), &context(), once()).await;
            let (status, body) = status_and_body(answer).await;
            assert_eq!((status, &body["code"]), (403, &json!("INVALID_CREDENTIAL")));
        }
    }
    assert_eq!(fixture.state.hits(), 0, "no handler has run");
}

#[tokio::test]
async fn a_credential_in_a_request_that_is_passed_on_proves_nothing() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let stolen = fixture.credentials.for_call(Caller::Gateway, "fixture");
        let stolen = [("x-urr-caller", "gateway"), ("x-urr-credential", stolen.expose())];
        let payment = fixture.upstream(transport, Caller::Payment).await;
        let replayed = request("GET", "/internal/ping", &stolen, Body::empty());
        let (_, body) = status_and_body(payment.call(replayed, &context(), once()).await).await;
        assert_eq!(body, json!({"caller": "payment"}));
        let replayed = request("GET", "/context", &stolen, Body::empty());
        let (_, body) = status_and_body(payment.call(replayed, &context(), once()).await).await;
        assert!(!body["headers"].to_string().contains("x-urr-c"), "{body}");
    }
    // Where only calls inside the process are expected, headers cannot make a caller at all.
    let fixture = TestService::open();
    let real = fixture.credentials.for_call(Caller::Gateway, "fixture");
    let headers = [("x-urr-caller", "gateway"), ("x-urr-credential", real.expose())];
    let replayed = request("GET", "/internal/ping", &headers, Body::empty());
    let response = fixture.service.local_router().oneshot(replayed).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(from_network(&fixture, "/internal/ping", &headers).await.0, 200, "negative control");
}

#[tokio::test]
async fn the_flow_is_carried_on_and_no_handler_sees_a_credential() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let payment = fixture.upstream(transport, Caller::Payment).await;
        let cause = Uuid::from_u128(77);
        let sent = CallContext { causation_id: Some(cause), ..context() };
        let got = payment.ask(&ShowContext {}, &sent).await.unwrap();
        assert_eq!(got["correlationId"], json!(sent.correlation_id));
        assert_eq!(got["causationId"], json!(cause));
        assert_eq!(got["traceId"], json!(sent.trace.trace_id()));
        let headers = got["headers"].to_string();
        assert!(!headers.contains("x-urr-c"), "{headers}");
    }
}

#[tokio::test]
async fn a_stranger_cannot_say_what_caused_a_call() {
    let fixture = TestService::open();
    let id = Uuid::from_u128(9).to_string();
    let claim = request("GET", "/context", &[("x-causation-id", &id)], Body::empty());
    let response = fixture.service.local_router().oneshot(claim).await.unwrap();
    let (_, got) = status_and_body(Ok(response)).await;
    assert_eq!(got["causationId"], Value::Null);
}

/// What a client's request says of its context goes no further than the one who passes it on.
#[tokio::test]
async fn the_caller_and_not_the_request_says_what_it_belongs_to() {
    for transport in TRANSPORTS {
        let fixture = TestService::open();
        let gateway = fixture.upstream(transport, Caller::Gateway).await;
        let id = Uuid::from_u128(9).to_string();
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let claims = [
            ("x-causation-id", id.as_str()),
            ("x-correlation-id", &id),
            ("x-request-id", &id),
            ("traceparent", trace),
            ("x-urr-deadline-ms", "0"),
        ];
        let claim = request("GET", "/context", &claims, Body::empty());
        let (status, got) = status_and_body(gateway.call(claim, &context(), once()).await).await;
        assert_eq!(status, 200, "{transport:?}: the deadline is the caller's");
        assert_eq!(got["causationId"], Value::Null, "{transport:?}");
        assert_eq!(got["correlationId"], json!(context().correlation_id), "{transport:?}");
        assert_eq!(got["traceId"], json!(context().trace.trace_id()), "{transport:?}");
    }
}
