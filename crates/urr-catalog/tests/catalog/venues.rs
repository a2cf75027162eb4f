//! Venues and halls.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use urr_catalog::{CatalogParts, CatalogService, CatalogSettings};
use urr_kernel::Timestamp;
use urr_storage::StorageError;

use crate::contract;
use crate::fixture::{DAY, MINUTE};

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

    async fn two_editors_of_a_hall_do_not_overwrite_each_other(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let path = format!("/api/admin/halls/{hall}");
        let seen = world.call(Method::GET, &path).by_admin().send().await;
        let revision = &seen.body["hall"]["revision"];
        assert_eq!((revision, &seen.body["hall"]["eventCount"]), (&json!(1), &json!(0)));
        let first = world.put(&path, &json!({ "name": "첫째", "revision": revision })).await;
        assert_eq!(first.body["hall"]["revision"], 2);
        let second = world.put(&path, &json!({ "name": "둘째", "revision": revision })).await;
        assert_eq!(second.refusal(), (409, "STALE_REVISION"));
        assert_eq!(second.body["revision"], 2);
        // The control: who saw the change, or does not say what it saw, may change it.
        let again = world.put(&path, &json!({ "name": "둘째", "revision": 2 })).await;
        assert_eq!(again.body["hall"]["name"], "둘째");
        assert_eq!(world.put(&path, &json!({ "name": "셋째" })).await.body["hall"]["revision"], 4);
        world.create_event(&world.seated(&hall)).await;
        let used = world.call(Method::GET, &path).by_admin().send().await;
        assert_eq!(used.body["hall"]["eventCount"], 1);
    }

    /// The page of a venue shows how many seats its halls have, and reads none of them.
    async fn a_venue_is_shown_without_reading_its_layouts(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let broken = "update halls set layout = '{}'";
        let done = world.db.write(move |tx| tx.execute(broken, &[])).await;
        assert_eq!(done, Ok::<_, StorageError>(1));
        let shown = world.get(&format!("/api/venues/{venue}")).await;
        assert_eq!(shown.status, StatusCode::OK);
        let summary = &shown.body["halls"][0];
        assert_eq!((&summary["id"], &summary["totalSeats"]), (&json!(hall), &json!(20)));
        assert_eq!(summary["grades"], json!(["VIP", "R"]));
        // The control: who wants the seats does read them.
        let seats = world.call(Method::GET, &format!("/api/admin/halls/{hall}"));
        assert_eq!(seats.by_admin().send().await.status, StatusCode::INTERNAL_SERVER_ERROR);
    }

    async fn what_is_shown_of_a_hall_follows_its_changes(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        world.clock.advance(MINUTE);
        let other = json!({ "grid": { "rows": 1, "seatsPerRow": 3, "gradeMapping": [
            { "grade": "A", "fromRow": 1, "toRow": 1 } ] } });
        world.put(&format!("/api/admin/halls/{hall}"), &other).await;
        world.put(&format!("/api/admin/venues/{venue}"), &json!({ "description": "새로" })).await;
        let shown = world.get(&format!("/api/venues/{venue}")).await;
        let summary = &shown.body["halls"][0];
        assert_eq!((&summary["totalSeats"], &summary["grades"]), (&json!(3), &json!(["A"])));
        for table in [
            "select updated_at from halls where updated_at > created_at",
            "select updated_at from venues where updated_at > created_at",
        ] {
            let changed = world.rows(table, |row| row.get::<Timestamp>("updated_at")).await;
            assert_eq!(changed, [world.clock.now()], "{table}");
        }
    }

    /// The ticket service prints the name of the venue: it is told of another one.
    async fn a_renamed_venue_is_announced_for_its_events_to_come(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let over = world.create_event(&world.seated(&hall)).await;
        world.clock.advance(30 * DAY);
        let cancelled = world.create_event(&world.seated(&hall)).await;
        world.post(&format!("/api/admin/events/{cancelled}/cancel"), &json!({})).await;
        let coming = world.create_event(&world.seated(&hall)).await;
        world.some_other_event().await;
        let before = world.announced().await.len();
        let path = format!("/api/admin/venues/{venue}");
        world.put(&path, &json!({ "description": "새로 고친 극장" })).await;
        assert_eq!(world.announced().await.len(), before, "that concerns nobody");
        let renamed = world.put(&path, &json!({ "name": "노을 극장", "address": "서울 강서구" })).await;
        assert_eq!(renamed.status, StatusCode::OK, "{}", renamed.body);
        let announced = world.announced().await;
        let news = &announced[before..];
        assert_eq!(news.len(), 1, "neither the one that is over nor the cancelled one: {news:?}");
        assert_eq!((news[0].event_type.as_str(), &news[0].subject), ("EVENT_UPDATED", &coming));
        let data = &news[0].data;
        assert_eq!((&data["venueName"], &data["revision"]), (&json!("노을 극장"), &json!(2)));
        assert_eq!(data["address"], "서울 강서구");
        let stale = json!({ "revision": 1, "title": "x" });
        let refused = world.put(&format!("/api/admin/events/{coming}"), &stale).await;
        assert_eq!(refused.refusal(), (409, "STALE_REVISION"));
        assert_eq!(world.get(&format!("/api/events/{over}")).await.body["event"]["venueName"], "노을 극장");
        assert_eq!(world.titles("?q=%EB%85%B8%EC%9D%84").await.len(), 3, "노을: all are found by it");
    }

    async fn a_renamed_artist_is_announced_for_its_events_and_that_is_bounded(world: World) {
        let venue = world.venue("강변 극장").await;
        let (hall, artist) = (world.hall(&venue).await, world.artist("한강 밴드").await);
        let mut body = world.seated(&hall);
        body["artistId"] = json!(artist);
        world.create_event(&body).await;
        let settings = CatalogSettings { renamed_events_max: 1, ..CatalogSettings::default() };
        let (db, clock, ids) = (world.db.clone(), world.clock.clone(), world.ids.clone());
        let bounded = CatalogService::new(CatalogParts { db, clock, ids, settings, peers: None });
        let rename = |what: String, name: &str| {
            let call = world.call_on(&bounded, Method::PUT, &format!("/api/admin/{what}"));
            call.by_admin().json(&json!({ "name": name })).send()
        };
        assert_eq!(rename(format!("artists/{artist}"), "노을 밴드").await.status, StatusCode::OK);
        let announced = world.announced().await;
        let names: Vec<_> = announced.iter().rev().take(2).map(|event| {
            (event.event_type.as_str(), event.data["artistName"].clone())
        }).collect();
        let updated = ("EVENT_UPDATED", json!("노을 밴드"));
        assert_eq!(names, [("ARTIST_UPDATED", Value::Null), updated]);
        world.create_event(&body).await;
        let before = world.announced().await.len();
        for what in [format!("artists/{artist}"), format!("venues/{venue}")] {
            let refused = rename(what, "너무 많은 공연").await;
            assert_eq!(refused.refusal(), (409, "TOO_MANY_EVENTS"));
        }
        assert_eq!(world.announced().await.len(), before);
        assert_eq!(world.get(&format!("/api/artists/{artist}")).await.body["artist"]["name"], "노을 밴드");
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
