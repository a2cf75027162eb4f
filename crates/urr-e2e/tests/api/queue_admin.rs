//! Administration of waiting rooms through the gateway: permissions, and the effect of a change on
//! the next visitor.

use axum::http::Method;
use serde_json::json;
use urr_e2e::TestApp;
use urr_kernel::Uuid;
use urr_service::UserRole;

use crate::booking::create_event;
use crate::on_both_deployments;

const CHANGES: [(Method, &str); 12] = [
    (Method::GET, "/api/admin/queue"),
    (Method::GET, "/api/admin/queue/log"),
    (Method::GET, "/api/admin/queue/{event}"),
    (Method::PATCH, "/api/admin/queue/{event}"),
    (Method::POST, "/api/admin/queue/{event}/pause"),
    (Method::POST, "/api/admin/queue/{event}/resume"),
    (Method::POST, "/api/admin/queue/{event}/clear"),
    (Method::PUT, "/api/admin/queue/{event}/message"),
    (Method::DELETE, "/api/admin/queue/{event}/message"),
    (Method::GET, "/api/queue/admin/{event}"),
    (Method::POST, "/api/queue/admin/clear/{event}"),
    (Method::POST, "/api/queue/admin/threshold/{event}?threshold=5"),
];

async fn status_of(app: &TestApp, event: Uuid, fan: Uuid) -> String {
    let path = format!("/api/queue/check/{event}");
    let told = app.post(&path).as_person(fan, UserRole::User).send().await.json();
    told["status"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

on_both_deployments! {
    async fn no_fan_runs_a_room(app: TestApp) {
        let event = create_event(&app).await;
        app.await_room(event).await;
        let body = json!({ "confirm": event, "message": "a" });
        for (method, path) in CHANGES {
            let path = path.replace("{event}", &event.to_string());
            let call = |path: &str| app.request(method.clone(), path).json(&body);
            let is_admins = path.ends_with("/log") || path.starts_with("/api/queue/admin");
            let code = if is_admins { "ADMIN_REQUIRED" } else { "ROLE_REQUIRED" };
            let refused = call(&path).send().await.refusal();
            assert_eq!(refused, (401, "AUTHENTICATION_REQUIRED".to_owned()), "{path}");
            let refused = call(&path).as_user(UserRole::User).send().await.refusal();
            assert_eq!(refused, (403, code.to_owned()), "{path}");
            // By its other name, too.
            let versioned = path.replacen("/api/", "/api/v1/", 1);
            let refused = call(&versioned).as_user(UserRole::User).send().await.refusal();
            assert_eq!(refused, (403, code.to_owned()), "{versioned}");
        }
        let internal = format!("/internal/queue/admin/rooms/{event}");
        let hidden = app.post(&internal).as_admin().json(&json!({})).send().await;
        assert_eq!(hidden.refusal(), (404, "NOT_FOUND".to_owned()));
    }

    async fn a_change_decides_about_whoever_comes_next(app: TestApp) {
        let event = create_event(&app).await;
        app.await_room(event).await;
        let path = format!("/api/admin/queue/{event}");
        let change = json!({ "threshold": 1, "message": "잠시만요" });
        let changed = app.request(Method::PATCH, &path).as_admin().json(&change).send().await;
        assert_eq!(changed.status, 200, "{:?}", changed.json());
        let (first, second) = (app.ids.next_id(), app.ids.next_id());
        assert_eq!(status_of(&app, event, first).await, "active");
        assert_eq!(status_of(&app, event, second).await, "queued");
        let room = app.get(&path).as_admin().send().await.json()["room"].clone();
        assert_eq!((&room["active"], &room["waiting"]), (&json!(1), &json!(1)), "{room}");
        let log = app.get("/api/admin/queue/log").as_admin().send().await.json();
        assert_eq!(log["entries"][0]["action"], "ROOM_CHANGED");
        assert_eq!(log["entries"][0]["details"]["threshold"]["after"], 1);
    }
}
