//! Venues and halls.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::contract;

contract! {
    async fn a_venue_is_added_changed_and_removed(world: World) {
        let id = world.venue("강변 극장").await;
        let taken = json!({ "name": "강변 극장", "address": "x" });
        assert_eq!(world.post("/api/admin/venues", &taken).await.refusal(), (409, "NAME_TAKEN"));
        let path = format!("/api/admin/venues/{id}");
        let changed = world.put(&path, &json!({ "description": "작은 극장" })).await;
        assert_eq!(changed.body["venue"]["description"], "작은 극장");
        world.venue("가람 극장").await;
        assert_eq!(world.put(&path, &json!({ "name": "가람 극장" })).await.refusal(), (409, "NAME_TAKEN"));
        let list = world.get("/api/venues?limit=1").await;
        assert_eq!(list.body["venues"][0]["name"], "가람 극장");
        assert_eq!(list.body["pagination"]["total"], 2);
        assert_eq!(world.delete(&path).await.status, StatusCode::NO_CONTENT);
        assert_eq!(world.delete(&path).await.refusal(), (404, "VENUE_NOT_FOUND"));
        assert_eq!(world.get(&format!("/api/venues/{id}")).await.refusal(), (404, "VENUE_NOT_FOUND"));
        for body in [json!({ "name": "" , "address": "x" }), json!({ "name": "x", "address": " " })] {
            assert_eq!(world.post("/api/admin/venues", &body).await.refusal(), (400, "INVALID_TEXT"));
        }
    }

    async fn what_is_used_is_not_removed(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let path = format!("/api/admin/venues/{venue}");
        assert_eq!(world.delete(&path).await.refusal(), (409, "VENUE_IN_USE"));
        let event = world.create_event(&world.seated(&hall)).await;
        let hall_path = format!("/api/admin/halls/{hall}");
        assert_eq!(world.delete(&hall_path).await.refusal(), (409, "HALL_IN_USE"));
        let other = json!({ "grid": { "rows": 1, "seatsPerRow": 1, "gradeMapping": [
            { "grade": "A", "fromRow": 1, "toRow": 1 } ] } });
        assert_eq!(world.put(&hall_path, &other).await.refusal(), (409, "HALL_IN_USE"));
        assert_eq!(world.put(&hall_path, &json!({ "name": "새 이름" })).await.status, StatusCode::OK);
        // Even a deleted event was made of it.
        world.delete(&format!("/api/admin/events/{event}")).await;
        assert_eq!(world.delete(&hall_path).await.refusal(), (409, "HALL_IN_USE"));
        // The control: an unused one can be changed and removed.
        let spare = world.post(&format!("{path}/halls"), &json!({ "name": "연습실", "grid": {
            "rows": 2, "seatsPerRow": 2, "gradeMapping": [{ "grade": "A", "fromRow": 1, "toRow": 2 }],
        }})).await.id("hall");
        let spare = format!("/api/admin/halls/{spare}");
        let changed = world.put(&spare, &other).await;
        assert_eq!(changed.body["hall"]["totalSeats"], 1);
        assert_eq!(world.delete(&spare).await.status, StatusCode::NO_CONTENT);
        let hall = world.call(Method::GET, &spare).by_admin().send().await;
        assert_eq!(hall.refusal(), (404, "HALL_NOT_FOUND"));
    }

    async fn a_hall_is_a_grid_or_a_drawn_layout(world: World) {
        let venue = world.venue("강변 오페라하우스").await;
        let path = format!("/api/admin/venues/{venue}/halls");
        let layout = json!({ "sections": [
            { "name": "1층", "grade": "VIP", "x": -100, "y": 700, "angleDegrees": 25,
              "curveRadius": 900, "seatPitch": 55, "rowPitch": 95, "rows": [
                { "label": "1", "seats": 10, "accessible": [1, 2], "restrictedView": [10] },
                { "label": "2", "seats": 12, "firstNumber": 101 } ] },
        ]});
        let drawn = world.post(&path, &json!({ "name": "대극장", "layout": layout })).await;
        let hall = &drawn.body["hall"];
        assert_eq!(drawn.status, StatusCode::CREATED, "{}", drawn.body);
        assert_eq!((&hall["totalSeats"], &hall["grades"]), (&json!(22), &json!(["VIP"])));
        assert_eq!(hall["layoutConfig"]["sections"][0]["rows"][0]["accessible"], json!([1, 2]));
        assert_eq!(hall["grid"], Value::Null);
        world.hall(&venue).await;
        let layouts = world.call(Method::GET, "/api/admin/seat-layouts").by_admin().send().await;
        let layouts = layouts.body["layouts"].as_array().unwrap().clone();
        assert_eq!(layouts.len(), 2);
        assert_eq!((&layouts[0]["name"], &layouts[0]["totalSeats"]), (&json!("대극장"), &json!(22)));
        assert_eq!(layouts[0]["layoutConfig"], hall["layoutConfig"]);
        assert_eq!(layouts[1]["grid"]["seatsPerRow"], 4);
        let shown = world.get(&format!("/api/venues/{venue}")).await;
        assert_eq!(shown.body["halls"].as_array().map(Vec::len), Some(2));
        assert_eq!(shown.body["halls"][0]["layoutConfig"], Value::Null, "too much for a page");
    }

    async fn a_wrong_hall_is_refused_with_its_reason(world: World) {
        let venue = world.venue("강변 극장").await;
        let path = format!("/api/admin/venues/{venue}/halls");
        let grid = json!({ "rows": 2, "seatsPerRow": 2, "gradeMapping": [
            { "grade": "A", "fromRow": 1, "toRow": 2 } ] });
        let gap = json!({ "rows": 3, "seatsPerRow": 2, "gradeMapping": [
            { "grade": "A", "fromRow": 1, "toRow": 2 } ] });
        let huge = json!({ "rows": 5_000, "seatsPerRow": 500, "gradeMapping": [
            { "grade": "A", "fromRow": 1, "toRow": 5_000 } ] });
        for (body, code) in [
            (json!({ "name": "A" }), "INVALID_LAYOUT"),
            (json!({ "name": "A", "grid": gap }), "INVALID_LAYOUT"),
            (json!({ "name": "A", "grid": huge }), "INVALID_LAYOUT"),
            (json!({ "name": "A", "layout": { "sections": [] } }), "INVALID_LAYOUT"),
            (json!({ "name": "A", "grid": grid, "layout": { "sections": [] } }), "INVALID_LAYOUT"),
            (json!({ "name": "A", "grid": { "rows": -1 } }), "INVALID_BODY"),
            (json!({ "name": " ", "grid": grid }), "INVALID_TEXT"),
        ] {
            assert_eq!(world.post(&path, &body).await.refusal(), (400, code), "{body}");
        }
        world.hall(&venue).await;
        let twin = json!({ "name": "소극장", "grid": grid });
        assert_eq!(world.post(&path, &twin).await.refusal(), (409, "NAME_TAKEN"));
        let nowhere = "/api/admin/venues/0198b7a0-0000-7000-8000-000000000000/halls";
        assert_eq!(world.post(nowhere, &twin).await.refusal(), (404, "VENUE_NOT_FOUND"));
    }
}
