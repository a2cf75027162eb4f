//! Accounts through the gateway: from the first login to the last logout.

use axum::http::{Method, StatusCode};
use serde_json::json;
use urr_auth::BotCheckPurpose;
use urr_e2e::{TestApp, TestResponse};
use urr_service::UserRole;
use urr_test::eventually;

use crate::on_both_deployments;

const PASSWORD: &str = "a long enough secret";

async fn register(app: &TestApp, email: &str) -> TestResponse {
    app.register(email, PASSWORD).await
}

async fn login(app: &TestApp, email: &str, password: &str) -> TestResponse {
    let body = json!({ "email": email, "password": password });
    app.post("/api/auth/login").json(&body).send().await
}

/// The value of a cookie that an answer sets.
fn cookie(answer: &TestResponse, name: &str) -> String {
    let set = answer.headers.get_all("set-cookie").iter();
    let found = set.filter_map(|value| value.to_str().unwrap().split(';').next());
    let prefix = format!("{name}=");
    found.filter_map(|pair| pair.strip_prefix(&prefix)).next().unwrap().to_owned()
}

async fn me(app: &TestApp, access_token: &str) -> TestResponse {
    app.get("/api/auth/me").header("cookie", &format!("access_token={access_token}")).send().await
}

on_both_deployments! {
    async fn someone_registers_comes_back_and_leaves(app: TestApp) {
        let registered = register(&app, "Fan@Example.com").await;
        assert_eq!(registered.status, StatusCode::CREATED, "{}", registered.json());
        let access = cookie(&registered, "access_token");
        assert_eq!(me(&app, &access).await.json()["user"]["name"], "김팬");

        let again = register(&app, "fan@example.com").await;
        assert_eq!(again.refusal().0, 409, "an address has one account");
        let wrong = login(&app, "fan@example.com", "not the password").await;
        assert_eq!(wrong.refusal(), (401, "INVALID_CREDENTIALS".to_owned()));

        let logged_in = login(&app, "fan@example.com", PASSWORD).await;
        assert_eq!(logged_in.status, StatusCode::OK, "{}", logged_in.json());
        let (access, refresh) =
            (cookie(&logged_in, "access_token"), cookie(&logged_in, "refresh_token"));

        // D-1: the refresh works by the cookie, under both names of the path.
        let refreshed = app
            .post("/api/v1/auth/refresh")
            .header("cookie", &format!("refresh_token={refresh}"))
            .header("sec-fetch-site", "same-origin")
            .send()
            .await;
        assert_eq!(refreshed.status, StatusCode::OK, "{}", refreshed.json());
        let (second, refresh) =
            (cookie(&refreshed, "access_token"), cookie(&refreshed, "refresh_token"));

        // D-20: with the session end its live access tokens, at once at this gateway.
        let logout = app
            .post("/api/auth/logout")
            .header("cookie", &format!("access_token={second}; refresh_token={refresh}"))
            .header("sec-fetch-site", "same-origin")
            .send()
            .await;
        assert_eq!(logout.status, StatusCode::OK);
        for token in [&access, &second] {
            assert_eq!(me(&app, token).await.refusal(), (401, "TOKEN_REVOKED".to_owned()));
        }
        eventually("the registration is counted", async || {
            let activity = app.get("/api/stats/activity").as_admin().send().await.json();
            let events = activity["activity"].as_array().unwrap().clone();
            events.iter().any(|event| event["eventType"] == "USER_REGISTERED").then_some(())
        })
        .await;
        app.stop().await;
    }
}

/// The bot check is on by default.
#[tokio::test]
async fn who_shows_no_work_does_not_register_and_who_guesses_has_to_work() {
    let app = TestApp::embedded().await;
    let body = json!({
        "email": "fan@example.com", "password": PASSWORD, "name": "Fan",
        "terms": [
            { "type": "SERVICE", "agreed": true, "version": "2026-11" },
            { "type": "PRIVACY", "agreed": true, "version": "2026-11" },
        ],
    });
    let refused = app.post("/api/auth/register").json(&body).send().await;
    assert_eq!(refused.refusal(), (403, "PROOF_REQUIRED".to_owned()));
    // Control: the same with the proof.
    let proof = app.proof(BotCheckPurpose::Register).await;
    let call = app.post("/api/auth/register").header("x-proof-of-work", &proof);
    assert_eq!(call.json(&body).send().await.status, StatusCode::CREATED);

    for _ in 0..3 {
        let wrong = login(&app, "fan@example.com", "not the password").await;
        assert_eq!(wrong.refusal(), (401, "INVALID_CREDENTIALS".to_owned()));
    }
    let asked = login(&app, "fan@example.com", PASSWORD).await;
    assert_eq!(asked.refusal(), (403, "PROOF_REQUIRED".to_owned()));
    let proof = app.proof(BotCheckPurpose::Login).await;
    let body = json!({ "email": "fan@example.com", "password": PASSWORD });
    let call = app.post("/api/auth/login").header("x-proof-of-work", &proof);
    assert_eq!(call.json(&body).send().await.status, StatusCode::OK);
    app.stop().await;
}

/// What only I may see and change, by either kind of credential.
#[tokio::test]
async fn my_terms_and_identities_are_for_me() {
    let app = TestApp::embedded().await;
    let access = cookie(&register(&app, "fan@example.com").await, "access_token");
    let bearer = format!("Bearer {access}");
    let answers =
        json!({ "terms": [{ "type": "MARKETING", "version": "2026-11", "agreed": true }] });
    let identities = app.get("/api/auth/me/identities");
    assert_eq!(identities.send().await.refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));
    let terms = app.post("/api/auth/terms").json(&answers).send().await;
    assert_eq!(terms.refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));

    let identities = app.get("/api/auth/me/identities").header("authorization", &bearer);
    assert_eq!(identities.send().await.json(), json!({ "identities": [] }));
    let terms = app.post("/api/auth/terms").header("authorization", &bearer).json(&answers);
    assert_eq!(terms.send().await.json(), json!({ "termsOutstanding": [] }));
    let unlink = app.request(Method::DELETE, "/api/auth/me/identities/google");
    let unlink = unlink.header("authorization", &bearer).send().await;
    assert_eq!(unlink.refusal(), (404, "IDENTITY_NOT_LINKED".to_owned()));
    app.stop().await;
}

#[tokio::test]
async fn d_10_who_says_who_they_are_is_not_believed() {
    let app = TestApp::embedded().await;
    let registered = register(&app, "fan@example.com").await.json();
    let id = registered["user"]["id"].as_str().unwrap().to_owned();
    for name in ["x-user-id", "X-User-Id", "x_user_id"] {
        let forged = app.get("/api/auth/me").header(name, &id).header("x-user-role", "admin");
        let answer = forged.send().await;
        assert_eq!(answer.refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()), "{name}");
    }
    let forged =
        app.get("/api/stats/activity").as_user(UserRole::User).header("x-user-role", "admin");
    assert_eq!(forged.send().await.refusal(), (403, "ADMIN_REQUIRED".to_owned()));
    // Control: a login says it.
    let bearer = format!("Bearer {}", registered["token"].as_str().unwrap());
    let me = app.get("/api/auth/me").header("authorization", &bearer).send().await;
    assert_eq!(me.json()["user"]["id"], id);
    app.stop().await;
}

#[tokio::test]
async fn d_13_no_script_can_read_a_cookie_of_ours() {
    let app = TestApp::embedded().await;
    let registered = register(&app, "fan@example.com").await;
    let logged_in = login(&app, "fan@example.com", PASSWORD).await;
    let refresh = format!("refresh_token={}", cookie(&logged_in, "refresh_token"));
    let refreshed = app.post("/api/auth/refresh").header("cookie", &refresh);
    let refreshed = refreshed.header("sec-fetch-site", "same-origin").send().await;
    let mut seen = 0;
    for answer in [registered, logged_in, refreshed] {
        for line in answer.headers.get_all("set-cookie") {
            let line = line.to_str().unwrap();
            assert!(line.contains("; HttpOnly; SameSite=Lax"), "{line}");
            seen += 1;
        }
    }
    assert_eq!(seen, 6, "each gives two");
    app.stop().await;
}

/// A browser on this machine has no HTTPS; everybody else has.
#[tokio::test]
async fn cookies_travel_over_https_only_unless_the_client_is_on_this_machine() {
    let app = TestApp::embedded().await;
    assert_eq!(register(&app, "fan@example.com").await.status, StatusCode::CREATED);
    for (host, is_secure) in [("localhost:3001", false), ("urr.example", true)] {
        let body = json!({ "email": "fan@example.com", "password": PASSWORD });
        let answer = app.post("/api/auth/login").header("host", host).json(&body).send().await;
        assert_eq!(answer.status, StatusCode::OK);
        for cookie in answer.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            assert_eq!(cookie.contains("; Secure"), is_secure, "{host}: {cookie}");
        }
    }
    app.stop().await;
}

#[tokio::test]
async fn d_14_a_foreign_page_cannot_act_with_somebodys_cookie() {
    let app = TestApp::embedded().await;
    let access = cookie(&register(&app, "fan@example.com").await, "access_token");
    let delete = |origin: &str, site: &str| {
        app.request(Method::DELETE, "/api/auth/me")
            .header("cookie", &format!("access_token={access}"))
            .header("origin", origin)
            .header("sec-fetch-site", site)
            .json(&json!({ "password": PASSWORD }))
    };
    let foreign = delete("https://evil.example", "cross-site").send().await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN, "{}", foreign.json());
    assert_eq!(me(&app, &access).await.status, StatusCode::OK, "nothing happened");
    // Control: the same from our own page.
    let own = delete("http://localhost:3000", "same-origin").send().await;
    assert!(own.status.is_success(), "{:?}", own);
    app.stop().await;
}

#[tokio::test]
async fn a_role_change_takes_effect_at_once() {
    let app = TestApp::embedded().await;
    let registered = register(&app, "fan@example.com").await;
    let access = cookie(&registered, "access_token");
    let id = registered.json()["user"]["id"].as_str().unwrap().to_owned();
    let promote = app
        .request(Method::PUT, &format!("/api/auth/admin/users/{id}/role"))
        .as_admin()
        .json(&json!({ "role": "admin" }))
        .send()
        .await;
    assert_eq!(promote.status, StatusCode::OK, "{}", promote.json());
    let old = me(&app, &access).await;
    assert_eq!(old.refusal(), (401, "TOKEN_REVOKED".to_owned()), "the old token said: user");
    let access = cookie(&login(&app, "fan@example.com", PASSWORD).await, "access_token");
    let stats = app
        .get("/api/stats/activity")
        .header("cookie", &format!("access_token={access}"))
        .send()
        .await;
    assert_eq!(stats.status, StatusCode::OK);
    app.stop().await;
}
