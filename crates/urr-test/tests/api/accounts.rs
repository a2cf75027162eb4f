//! Accounts through the door: from the first login to the last logout.

use axum::http::StatusCode;
use serde_json::{Value, json};
use urr_test::{Answer, TestApp, eventually};

use crate::on_both_forms;

const PASSWORD: &str = "a long enough secret";

fn registration(email: &str) -> Value {
    json!({
        "email": email,
        "password": PASSWORD,
        "name": "김팬",
        "phone": "010-1234-5678",
        "terms": [
            { "type": "SERVICE", "agreed": true, "version": "1" },
            { "type": "PRIVACY", "agreed": true, "version": "1" },
        ],
    })
}

async fn register(app: &TestApp, email: &str) -> Answer {
    app.post("/api/auth/register").json(&registration(email)).send().await
}

async fn login(app: &TestApp, email: &str, password: &str) -> Answer {
    let body = json!({ "email": email, "password": password });
    app.post("/api/auth/login").json(&body).send().await
}

/// The value of a cookie that an answer sets.
fn cookie(answer: &Answer, name: &str) -> String {
    let set = answer.headers.get_all("set-cookie").iter();
    let found = set.filter_map(|value| value.to_str().unwrap().split(';').next());
    let prefix = format!("{name}=");
    found.filter_map(|pair| pair.strip_prefix(&prefix)).next().unwrap().to_owned()
}

async fn me(app: &TestApp, access_token: &str) -> Answer {
    app.get("/api/auth/me").header("cookie", &format!("access_token={access_token}")).send().await
}

on_both_forms! {
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

        // D-20: with the session end its live access tokens, at once and at this very door.
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
        app.request(axum::http::Method::DELETE, "/api/auth/me")
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
        .request(axum::http::Method::PUT, &format!("/api/auth/admin/users/{id}/role"))
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
