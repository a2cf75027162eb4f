//! The payment window of the sandbox.

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::any;
use serde_json::{Value, json};

use crate::fixture::{Answer, FILES, TestPages};

const COOKIE: (&str, &str) = ("cookie", "access_token=mine");
const WINDOW: &str = "/sandbox/pay?orderId=ORD_7&successUrl=/ok%3Fa%3D1&failUrl=/no";

/// Knows one order of one user and one card.
async fn payments(request: Request) -> axum::response::Response {
    let refuse = |status: StatusCode, code: &str| {
        (status, axum::Json(json!({ "error": "No.", "code": code, "traceId": null })))
    };
    if request.headers().get("cookie").is_none_or(|cookie| cookie != COOKIE.1) {
        return refuse(StatusCode::UNAUTHORIZED, "AUTHENTICATION_REQUIRED").into_response();
    }
    if request.uri().path() == "/api/payments/order/ORD_7" {
        let order = json!({ "orderName": "밤 <b>", "amount": 102_000, "status": "pending" });
        return axum::Json(json!({ "payment": order })).into_response();
    }
    if request.uri().path() != "/api/payments/sandbox/keys" {
        return refuse(StatusCode::NOT_FOUND, "PAYMENT_NOT_FOUND").into_response();
    }
    let body = axum::body::to_bytes(request.into_body(), 1_000).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (body["orderId"].as_str(), body["card"].as_str()) {
        (Some("ORD_7"), Some("approve")) => {
            let key = json!({ "paymentKey": "sandbox_a b", "orderId": "ORD_7", "amount": 102_000 });
            axum::Json(key).into_response()
        }
        (Some("ORD_7"), _) => {
            refuse(StatusCode::BAD_REQUEST, "INVALID_PAYMENT_METHOD").into_response()
        }
        _ => refuse(StatusCode::NOT_FOUND, "PAYMENT_NOT_FOUND").into_response(),
    }
}

fn pages() -> TestPages {
    TestPages::new(FILES, Router::new().route("/api/{*path}", any(payments)))
}

async fn choose(form: &'static str) -> Answer {
    pages().send_form("/sandbox/pay", &[COOKIE], form).await
}

#[tokio::test]
async fn the_window_shows_the_order_and_the_test_cards() {
    let page = pages().send(Method::GET, WINDOW, &[COOKIE]).await;
    assert_eq!((page.status, page.header("cache-control")), (200, "no-store"));
    for part in ["밤 &#60;b&#62;", "102,000", "ORD_7", "value=\"/ok?a=1\"", "value=\"charge-500\""]
    {
        assert!(page.body.contains(part), "{part} is not in {}", page.body);
    }
    assert!(page.header("content-security-policy").contains("form-action 'self'"));
}

#[tokio::test]
async fn a_card_leads_back_with_the_key_and_giving_up_with_a_code() {
    let paid = choose("orderId=ORD_7&card=approve&successUrl=/ok%3Fa%3D1&failUrl=/no").await;
    let target = "/ok?a=1&paymentKey=sandbox_a+b&orderId=ORD_7&amount=102000";
    assert_eq!((paid.status, paid.header("location")), (303, target));
    let absolute = choose("orderId=ORD_7&card=approve&successUrl=http://urr.kr/ok&failUrl=/no");
    assert!(absolute.await.header("location").starts_with("/ok?paymentKey="));
    let given_up = choose("orderId=ORD_7&successUrl=/ok&failUrl=/no").await;
    assert_eq!(given_up.status, 303);
    assert!(given_up.header("location").starts_with("/no?code=PAY_PROCESS_CANCELED&message="));
}

#[tokio::test]
async fn foreign_addresses_unknown_cards_and_orders_of_others_are_refused() {
    for (form, status) in [
        ("orderId=ORD_7&card=approve&successUrl=https://evil.kr/&failUrl=/no", 400),
        ("orderId=ORD_7&card=approve&successUrl=//evil.kr/&failUrl=/no", 400),
        ("orderId=ORD_7&card=&successUrl=/ok&failUrl=https://evil.kr/", 400),
        ("orderId=ORD_7&card=approve&successUrl=/ok", 400),
        ("orderId=ORD_7&card=platinum&successUrl=/ok&failUrl=/no", 400),
        ("orderId=ORD_8&card=approve&successUrl=/ok&failUrl=/no", 404),
    ] {
        let answer = choose(form).await;
        assert_eq!((answer.status, answer.header("location")), (status, ""), "{form}");
    }
    for (path, status) in [
        ("/sandbox/pay?orderId=ORD_7&successUrl=https://evil.kr/&failUrl=/no", 400),
        ("/sandbox/pay?orderId=ORD_8&successUrl=/ok&failUrl=/no", 404),
        ("/sandbox/pay?orderId=../../auth/me&successUrl=/ok&failUrl=/no", 404),
        ("/sandbox/pay", 400),
    ] {
        let page = pages().send(Method::GET, path, &[COOKIE]).await;
        assert_eq!(page.status, status, "{path}");
        assert!(!page.body.contains("<form"), "{path}");
    }
}

#[tokio::test]
async fn a_buyer_who_is_not_logged_in_comes_back_to_the_window() {
    let page = pages().page(WINDOW).await;
    assert_eq!(page.status, 401);
    let way = "href=\"/login?return=%2Fsandbox%2Fpay%3ForderId%3DORD_7";
    assert!(page.body.contains(way), "{}", page.body);
}

#[tokio::test]
async fn a_shop_with_a_real_provider_has_no_window() {
    let api = Router::new().route("/api/{*path}", any(payments));
    let pages = TestPages::without_sandbox(FILES, api);
    assert_eq!(pages.send(Method::GET, WINDOW, &[COOKIE]).await.status, 404);
    let form = "orderId=ORD_7&card=approve&successUrl=/ok&failUrl=/no";
    let answer = pages.send_form("/sandbox/pay", &[COOKIE], form).await;
    assert_eq!((answer.status, answer.header("location")), (404, ""));
}
