//! What holds for every route.

use axum::http::{Method, StatusCode};
use urr_e2e::TestApp;
use urr_service::UserRole;
use urr_test::snapshot;

#[tokio::test]
async fn nobody_is_an_admin_by_saying_so() {
    let app = TestApp::embedded().await;
    for path in ["/api/stats/activity", "/api/v1/stats/activity"] {
        let forged = app
            .get(path)
            .header("x-user-id", "0198b2f0-0000-7000-8000-000000000001")
            .header("X-User-Role", "admin")
            .header("x-urr-caller", "gateway")
            .header("x-urr-credential", "guessed");
        assert_eq!(forged.send().await.refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));
    }
    let fan = app.get("/api/stats/activity").as_user(UserRole::User).send().await;
    assert_eq!(fan.refusal(), (403, "ADMIN_REQUIRED".to_owned()));
    // Control: an admin may.
    assert_eq!(app.get("/api/stats/activity").as_admin().send().await.status, StatusCode::OK);
    app.stop().await;
}

/// F-9: a client's mistake is a 4xx with our body, never a 500.
#[tokio::test]
async fn f_9_a_clients_mistake_is_told_as_such() {
    let app = TestApp::embedded().await;
    let unknown = "/api/artists/0198b2f0-0000-7000-8000-000000000001";
    let cases = [
        (app.get("/api/nothing"), 404, "NOT_FOUND"),
        (app.get("/nothing"), 404, "NOT_FOUND"),
        (app.get("/internal/catalog"), 404, "NOT_FOUND"),
        (app.get("/api/artists/not-a-uuid"), 400, "INVALID_PATH"),
        (app.get(unknown), 404, "ARTIST_NOT_FOUND"),
        (app.get("/api/artists?page=many"), 400, "INVALID_QUERY"),
        (app.request(Method::DELETE, "/api/artists"), 405, "METHOD_NOT_ALLOWED"),
        (app.post("/api/admin/artists").as_admin().body("{"), 415, "UNSUPPORTED_MEDIA_TYPE"),
        (
            app.post("/api/admin/artists")
                .as_admin()
                .header("content-type", "application/json")
                .body("{\"name\":"),
            400,
            "INVALID_JSON",
        ),
        (
            app.post("/api/admin/artists")
                .as_admin()
                .header("content-type", "application/json")
                .body(vec![b' '; 2 * 1024 * 1024]),
            413,
            "BODY_TOO_LARGE",
        ),
    ];
    for (call, status, code) in cases {
        let answer = call.send().await;
        assert_eq!(answer.refusal(), (status, code.to_owned()));
        let body = answer.json();
        assert!(body["error"].as_str().is_some_and(|sentence| sentence.ends_with('.')), "{body}");
        assert_eq!(body["traceId"].as_str().map(str::len), Some(32), "{body}");
        assert!(answer.headers.contains_key("x-request-id"));
    }
    app.stop().await;
}

#[tokio::test]
async fn the_trace_of_the_caller_is_carried_on() {
    let app = TestApp::embedded().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let answer = app
        .get("/api/artists/not-a-uuid")
        .header("traceparent", &format!("00-{trace}-00f067aa0ba902b7-01"))
        .send()
        .await;
    assert_eq!(answer.json()["traceId"], trace);
    app.stop().await;
}

#[tokio::test]
async fn health_tells_of_every_storage() {
    let app = TestApp::embedded().await;
    let health = app.get("/health").send().await;
    assert_eq!(health.status, StatusCode::OK);
    let expected = serde_json::json!({
        "service": "gateway",
        "status": "ok",
        "dependencies": {
            "auth": "ok", "catalog": "ok", "community": "ok", "mail": "ok", "payment": "ok",
            "queue": "ok", "revoked-tokens": "ok", "stats": "ok", "ticket": "ok", "waiting-rooms": "ok",
        },
    });
    assert_eq!(health.json(), expected);
    app.stop().await;
}

#[tokio::test]
async fn metrics_name_routes_and_never_ids() {
    let app = TestApp::embedded().await;
    let id = "0198b2f0-0000-7000-8000-000000000001";
    app.get(&format!("/api/artists/{id}")).send().await;
    assert_eq!(app.get("/metrics").send().await.status, 404, "they are not for the public");
    let metrics = app.metrics();
    assert!(metrics.contains(r#"route="/api/artists/{id}",status="404"} 1"#), "{metrics}");
    assert!(metrics.contains(r#"urr_storage_commits_total{service="catalog"}"#), "{metrics}");
    let passed_on = r#"service="gateway",method="GET",route="/api/artists/**",status="404"} 1"#;
    assert!(metrics.contains(passed_on), "{metrics}");
    for name in ["urr_gateway_breaker{", "urr_gateway_permits{", "urr_auth_passwords_waiting 0"] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    assert!(!metrics.contains(id));
    app.stop().await;
}

/// The description of the interface is read before it changes.
#[tokio::test]
async fn the_openapi_document_is_the_one_in_the_repository() {
    let app = TestApp::embedded().await;
    let document = app.get("/docs/openapi.json").send().await.json();
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    snapshot::assert_fresh("docs/openapi.json", &text);
    app.stop().await;
}
