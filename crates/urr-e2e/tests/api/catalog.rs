//! The catalog through the gateway: from a hall that is drawn to an event that can be booked.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use urr_e2e::{TestApp, TestResponse};
use urr_test::eventually;

use crate::on_both_deployments;

async fn post(app: &TestApp, path: &str, body: &Value) -> TestResponse {
    app.post(path).as_admin().json(body).send().await
}

#[track_caller]
fn id(answer: &TestResponse, what: &str) -> String {
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.json());
    answer.json()[what]["id"].as_str().unwrap().to_owned()
}

/// A venue with a hall of 2 × 3 seats.
async fn hall(app: &TestApp) -> (String, String) {
    let body = json!({ "name": "강변 극장", "address": "서울 마포구 강변로 7" });
    let venue = id(&post(app, "/api/admin/venues", &body).await, "venue");
    let grid = json!({ "rows": 2, "seatsPerRow": 3, "gradeMapping": [
        { "grade": "VIP", "fromRow": 1, "toRow": 1 },
        { "grade": "R", "fromRow": 2, "toRow": 2 },
    ]});
    let path = format!("/api/admin/venues/{venue}/halls");
    let hall = id(&post(app, &path, &json!({ "name": "소극장", "grid": grid })).await, "hall");
    (venue, hall)
}

fn times(body: &mut Value) {
    body["saleStartsAt"] = json!("2026-11-20T11:00:00Z");
    body["saleEndsAt"] = json!("2026-12-10T00:00:00Z");
    body["startsAt"] = json!("2026-12-20T10:00:00Z");
}

async fn await_ready(app: &TestApp, id: &str) -> Value {
    eventually("the tickets were made and counted", async || {
        let event = app.get(&format!("/api/events/{id}")).send().await.json()["event"].clone();
        (event["inventoryReady"] == true).then_some(event)
    })
    .await
}

on_both_deployments! {
    /// F-1, F-2, F-11: the catalog and the ticket service communicate by events; an event is
    /// bookable once all its seats are there and were counted.
    async fn f_2_a_created_event_gets_its_seats_and_is_shown(app: TestApp) {
        let (venue, hall) = hall(&app).await;
        let artist = post(&app, "/api/admin/artists", &json!({ "name": "한강 밴드" })).await;
        let artist = id(&artist, "artist");
        let mut seated = json!({
            "title": "한강의 밤", "hallId": hall, "artistName": "한강 밴드",
            "prices": { "VIP": 150_000, "R": 90_000 },
        });
        times(&mut seated);
        let mut standing = json!({
            "title": "클럽 나이트", "venueId": venue,
            "ticketTypes": [{ "name": "A", "price": 70_000, "total": 100 }],
        });
        times(&mut standing);
        let created = post(&app, "/api/admin/events", &seated).await;
        let seated = id(&created, "event");
        let standing = id(&post(&app, "/api/admin/events", &standing).await, "event");
        let event = await_ready(&app, &seated).await;
        assert_eq!((&event["capacity"], &event["artistId"]), (&json!(6), &json!(artist)));
        assert_eq!(await_ready(&app, &standing).await["capacity"], 100);

        let found = app.get("/api/v1/events?q=%E3%85%8E%E3%84%B1").send().await;
        assert_eq!(found.json()["events"].as_array().map(Vec::len), Some(1), "ㅎㄱ finds 한강");
        assert_eq!(found.headers[CACHE_CONTROL], "public, max-age=5");
        let shown = app.get(&format!("/api/artists/{artist}")).send().await;
        assert_eq!(shown.json()["events"][0]["id"], json!(seated));

        let path = format!("/api/admin/events/{seated}");
        let edit = json!({ "revision": 1, "title": "한강의 낮" });
        let edited = app.request(Method::PUT, &path).as_admin().json(&edit).send().await;
        assert_eq!(edited.status, StatusCode::OK, "{}", edited.json());
        let public = app.get(&format!("/api/events/{seated}")).send().await;
        assert_eq!(public.json()["event"]["title"], "한강의 낮");
        let etag = public.headers[ETAG].to_str().unwrap();
        let same = app.get(&format!("/api/events/{seated}")).header("if-none-match", etag);
        assert_eq!(same.send().await.status, StatusCode::NOT_MODIFIED);

        let cancel = json!({ "reason": "태풍" });
        let cancelled = post(&app, &format!("{path}/cancel"), &cancel).await;
        assert_eq!(cancelled.json()["event"]["status"], "cancelled");
        let deleted = app.request(Method::DELETE, &path).as_admin().send().await;
        assert_eq!(deleted.status, StatusCode::NO_CONTENT);
        let gone = app.get(&format!("/api/events/{seated}")).send().await;
        assert_eq!(gone.refusal(), (404, "EVENT_NOT_FOUND".to_owned()));
        let log = app.get("/api/admin/catalog/log?resourceType=event").as_admin().send().await;
        assert_eq!(log.json()["pagination"]["total"], 5, "{}", log.json());
        app.stop().await;
    }
}

#[tokio::test]
async fn posters_go_through_the_gateway() {
    let app = TestApp::embedded().await;
    let mut content =
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0".to_vec();
    content.resize(200_000, 7);
    content.extend(b"\0\0\0\0IEND\xaeB`\x82");
    let mut form = b"--edge\r\nContent-Disposition: form-data; name=\"image\"\r\n\r\n".to_vec();
    form.extend(&content);
    form.extend(b"\r\n--edge--\r\n");
    let upload = || {
        let call = app.post("/api/image/upload").body(form.clone());
        call.header(CONTENT_TYPE.as_str(), "multipart/form-data; boundary=edge")
    };
    let refused = upload().send().await;
    assert_eq!(refused.refusal(), (401, "AUTHENTICATION_REQUIRED".to_owned()));
    let uploaded = upload().as_admin().send().await;
    assert_eq!(uploaded.status, StatusCode::CREATED, "{}", uploaded.json());
    let url = uploaded.json()["image"]["url"].as_str().unwrap().to_owned();
    let served = app.get(&url).send().await;
    assert_eq!(served.bytes, content);
    assert_eq!(served.headers[CONTENT_TYPE], "image/png");
    assert_eq!(served.headers["x-content-type-options"], "nosniff");
    assert_eq!(served.headers[CACHE_CONTROL], "public, max-age=31536000, immutable");
    assert!(served.headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    app.stop().await;
}

/// Internal routes are not reachable through the gateway.
#[tokio::test]
async fn internal_addresses_do_not_exist_outside() {
    let app = TestApp::embedded().await;
    let path = "/internal/catalog/events/0198b7a0-0000-7000-8000-000000000000";
    assert_eq!(app.get(path).send().await.status, StatusCode::NOT_FOUND);
    app.stop().await;
}
