//! Who needs a verified e-mail address.

use axum::http::Method;

use crate::harness::{EVENT, FAN, TestGateway, passed, refused};

const PURCHASES: [&str; 4] =
    ["/api/seats/reserve", "/api/seats/best", "/api/reservations", "/api/payments/prepare"];

async fn outcomes(gateway: &TestGateway, email_verified: bool) -> Vec<String> {
    let (token, entry) =
        (gateway.token_of_address(email_verified), gateway.entry_token(FAN, EVENT));
    let mut outcomes = Vec::new();
    for path in PURCHASES.into_iter().chain(["/api/v1/seats/reserve"]) {
        let request = gateway.request(Method::POST, path).bearer(&token).entry(&entry);
        outcomes.push(format!("{:?}", request.send().await.outcome()));
    }
    outcomes
}

#[tokio::test]
async fn whoever_has_not_verified_the_address_cannot_buy() {
    let gateway = TestGateway::with_settings(|settings| settings.verified_email_to_buy = true);
    let refusal = format!("{:?}", refused(403, "EMAIL_NOT_VERIFIED"));
    assert_eq!(outcomes(&gateway, false).await, vec![refusal; 5]);
    let passed = |outcomes: Vec<String>| outcomes.iter().all(|one| !one.contains("403"));
    assert!(passed(outcomes(&gateway, true).await));
    // The control: without the setting nobody is asked.
    let open = TestGateway::new();
    assert!(passed(outcomes(&open, false).await));
}

#[tokio::test]
async fn alerts_are_for_verified_addresses_since_others_get_no_mail() {
    let gateway = TestGateway::new();
    for (method, email_verified, outcome) in [
        (Method::PUT, false, refused(403, "EMAIL_NOT_VERIFIED")),
        (Method::PUT, true, passed()),
        (Method::DELETE, false, passed()),
    ] {
        let token = gateway.token_of_address(email_verified);
        for alert in ["sale", "seats"] {
            let path = format!("/api/v1/alerts/events/{EVENT}/{alert}");
            let answer = gateway.request(method.clone(), &path).bearer(&token).send().await;
            assert_eq!(answer.outcome(), outcome, "{method} {path} {email_verified}");
        }
    }
}

#[tokio::test]
async fn what_is_no_purchase_needs_no_verified_address() {
    let gateway = TestGateway::with_settings(|settings| settings.verified_email_to_buy = true);
    let token = gateway.token_of_address(false);
    for (method, path) in [
        (Method::GET, "/api/reservations"),
        (Method::POST, "/api/reservations/1/cancel"),
        (Method::POST, "/api/payments/confirm"),
        (Method::POST, "/api/auth/email/verification"),
    ] {
        let answer = gateway.request(method, path).bearer(&token).send().await;
        assert_eq!(answer.outcome(), passed(), "{path}");
    }
}
