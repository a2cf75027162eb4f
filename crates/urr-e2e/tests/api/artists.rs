//! Artists, and the way of their events into the statistics.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use urr_e2e::TestApp;
use urr_test::eventually;

use crate::on_both_deployments;

async fn create(app: &TestApp, name: &str) -> urr_e2e::TestResponse {
    app.post("/api/admin/artists").as_admin().json(&json!({ "name": name })).send().await
}

async fn names(app: &TestApp, query: &str) -> Vec<String> {
    let list = app.get(&format!("/api/artists{query}")).send().await.json();
    let artists = list["artists"].as_array().unwrap().iter();
    artists.map(|artist| artist["name"].as_str().unwrap().to_owned()).collect()
}

on_both_deployments! {
    /// Everything that the foundation has, in one journey; it is long because a broker is slow to
    /// start.
    async fn an_added_artist_is_shown_and_counted(app: TestApp) {
        let answer = create(&app, " 한강 밴드 ").await;
        assert_eq!(answer.status, StatusCode::CREATED);
        let artist = answer.json()["artist"].clone();
        assert_eq!(artist["name"], "한강 밴드");
        assert_eq!(artist["membershipPrice"], 30_000);
        assert_eq!(artist["createdAt"], "2026-11-15T00:30:00Z");

        let id = artist["id"].as_str().unwrap();
        let found = app.get(&format!("/api/v1/artists/{id}")).send().await;
        assert_eq!(found.json()["artist"], artist);

        let taken = create(&app, "한강 밴드").await;
        assert_eq!(taken.refusal(), (409, "ARTIST_NAME_TAKEN".to_owned()));

        // Half past nine in the morning; fifteen hours later it is tomorrow in Korea.
        app.clock.advance(Duration::from_secs(15 * 3600));
        assert_eq!(create(&app, "달무리").await.status, StatusCode::CREATED);
        let expected = json!([
            { "day": "2026-11-16", "eventType": "ARTIST_CREATED", "total": 1 },
            { "day": "2026-11-15", "eventType": "ARTIST_CREATED", "total": 1 },
        ]);
        eventually("both artists are counted on their days", async || {
            let answer = app.get("/api/stats/activity").as_admin().send().await;
            (answer.json()["activity"] == expected).then_some(())
        }).await;
        let today = app.get("/api/stats/activity?days=1").as_admin().send().await;
        assert_eq!(today.json()["activity"].as_array().map(Vec::len), Some(1));
        app.stop().await;
    }
}

#[tokio::test]
async fn the_list_has_pages_in_the_order_of_names() {
    let app = TestApp::embedded().await;
    for name in ["Delta", "Alpha", "Charlie", "Bravo", "Echo"] {
        assert_eq!(create(&app, name).await.status, StatusCode::CREATED);
    }
    assert_eq!(names(&app, "?page=1&limit=2").await, ["Alpha", "Bravo"]);
    assert_eq!(names(&app, "?page=3&limit=2").await, ["Echo"]);
    assert_eq!(names(&app, "?page=4&limit=2").await, [""; 0]);
    let page = app.get("/api/artists?page=2&limit=2").send().await.json()["pagination"].clone();
    assert_eq!(page, json!({ "page": 2, "limit": 2, "total": 5, "totalPages": 3 }));
    // P-9: a limit without a bound would be a way to ask for everything at once.
    assert_eq!(
        app.get("/api/artists?limit=1000000").send().await.json()["pagination"]["limit"],
        100
    );
    app.stop().await;
}

#[tokio::test]
async fn a_wrong_artist_is_refused_with_its_reason() {
    let app = TestApp::embedded().await;
    let cases: [(Value, &str); 7] = [
        (json!({}), "INVALID_BODY"),
        (json!({ "name": 7 }), "INVALID_BODY"),
        (json!({ "name": "A", "colour": "red" }), "INVALID_BODY"),
        (json!({ "name": "  " }), "INVALID_NAME"),
        (json!({ "name": "가".repeat(101) }), "INVALID_NAME"),
        (json!({ "name": "A", "membershipPrice": -1 }), "INVALID_MEMBERSHIP_PRICE"),
        (json!({ "name": "A", "description": "x".repeat(2_001) }), "INVALID_DESCRIPTION"),
    ];
    for (body, code) in cases {
        let answer = app.post("/api/admin/artists").as_admin().json(&body).send().await;
        assert_eq!(answer.refusal(), (400, code.to_owned()), "{body}");
    }
    assert_eq!(names(&app, "").await, [""; 0], "nothing was stored");
    app.stop().await;
}

#[tokio::test]
async fn a_hundred_at_once_make_one_artist_of_one_name() {
    let app = std::sync::Arc::new(TestApp::embedded().await);
    let attempts: Vec<_> = (0..100)
        .map(|_| {
            let app = std::sync::Arc::clone(&app);
            tokio::spawn(async move { create(&app, "Only").await.status })
        })
        .collect();
    let mut created = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            StatusCode::CREATED => created += 1,
            status => assert_eq!(status, StatusCode::CONFLICT),
        }
    }
    assert_eq!(created, 1);
    // It is published behind all others: by the time it is counted, a second one would be too.
    assert_eq!(create(&app, "Last").await.status, StatusCode::CREATED);
    let total = eventually("the last event is counted", async || {
        let answer = app.get("/api/stats/activity").as_admin().send().await;
        answer.json()["activity"][0]["total"].as_i64().filter(|total| *total > 1)
    })
    .await;
    assert_eq!(total, 2, "one event for each artist");
}
