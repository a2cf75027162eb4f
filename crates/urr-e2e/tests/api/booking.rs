//! From an organiser's event to a fan's seat, through the gateway and all services.

use std::time::Duration;

use serde_json::{Value, json};
use urr_e2e::{TestApp, TestResponse};
use urr_kernel::Uuid;
use urr_service::UserRole;
use urr_test::eventually;

use crate::on_both_deployments;

/// Caches expire after this time.
const SECOND: Duration = Duration::from_secs(1);

/// An administrator makes a hall of two rows of five seats and an event in it, on sale now.
pub async fn create_event(app: &TestApp) -> Uuid {
    let name = format!("강변 홀 {}", app.ids.next_id());
    let venue = json!({"name": name, "address": "서울 한강로 1"});
    let venue = created(app.post("/api/admin/venues").as_admin().json(&venue).send().await);
    let grades = json!([{"grade": "VIP", "fromRow": 1, "toRow": 1},
                        {"grade": "R", "fromRow": 2, "toRow": 2}]);
    let grid = json!({"rows": 2, "seatsPerRow": 5, "gradeMapping": grades});
    let halls = format!("/api/admin/venues/{}/halls", text(&venue["venue"]["id"]));
    let hall = json!({"name": "대극장", "grid": grid});
    let hall = created(app.post(&halls).as_admin().json(&hall).send().await);
    let event = json!({
        "title": "한강의 밤", "hallId": hall["hall"]["id"],
        "startsAt": "2026-12-24T10:00:00Z",
        "saleStartsAt": "2026-11-14T00:00:00Z", "saleEndsAt": "2026-12-20T00:00:00Z",
        "prices": {"VIP": 150_000, "R": 90_000},
    });
    let event = created(app.post("/api/admin/events").as_admin().json(&event).send().await);
    let id = text(&event["event"]["id"]).parse().unwrap();
    eventually("the ticket office has made the seats", async || {
        app.clock.advance(SECOND);
        let event = app.get(&format!("/api/events/{id}")).send().await.json();
        (event["event"]["inventoryReady"] == true).then_some(())
    })
    .await;
    id
}

pub fn created(answer: TestResponse) -> Value {
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.bytes));
    answer.json()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text")).to_owned()
}

async fn reserve(app: &TestApp, user_id: Uuid, event_id: Uuid, seats: &[u32]) -> TestResponse {
    let body = json!({"eventId": event_id, "seatIds": seats});
    let entry = app.admit(user_id, event_id).await;
    app.post("/api/seats/reserve").as_admitted(user_id, &entry).json(&body).send().await
}

async fn available(app: &TestApp, event_id: Uuid) -> Vec<i64> {
    let answer = app.get(&format!("/api/tickets/event/{event_id}")).send().await.json();
    let grades = answer["grades"].as_array().unwrap().clone();
    grades.iter().map(|grade| grade["available"].as_i64().unwrap()).collect()
}

on_both_deployments! {
    async fn f_2_an_event_becomes_bookable_and_its_seats_are_sold_once(app: TestApp) {
        let event_id = create_event(&app).await;
        let (first, second) = (app.ids.next_id(), app.ids.next_id());
        assert_eq!(available(&app, event_id).await, [5, 5]);

        let held = reserve(&app, first, event_id, &[0, 6]).await;
        assert!(held.status.is_success(), "{held:?}");
        let reservation = held.json()["reservation"].clone();
        assert_eq!(reservation["totalAmount"], 240_000);
        let refused = reserve(&app, second, event_id, &[6, 7]).await;
        assert_eq!(refused.refusal(), (409, "SEAT_TAKEN".into()));
        eventually("the map shows it", async || {
            app.clock.advance(SECOND);
            (available(&app, event_id).await == [4, 4]).then_some(())
        })
        .await;

        let path = format!("/api/reservations/{}", text(&reservation["id"]));
        let mine = app.get(&path).as_person(first, UserRole::User).send().await;
        assert_eq!(mine.json()["reservation"]["status"], "pending");
        let not_theirs = app.get(&path).as_person(second, UserRole::User).send().await;
        assert_eq!(not_theirs.status, 404);

        let cancel = format!("{path}/cancel");
        let cancelled = app.post(&cancel).as_person(first, UserRole::User).send().await;
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
        let free = reserve(&app, second, event_id, &[6, 7]).await;
        assert!(free.status.is_success(), "{free:?}");

        let id = text(&free.json()["reservation"]["id"]);
        let cancel = app.post(&format!("/api/admin/reservations/{id}/cancel")).as_admin();
        assert_eq!(cancel.json(&json!({"reason": "중복"})).send().await.status, 200);
        let log = app.get("/api/admin/reservations/log").as_admin().send().await;
        assert_eq!(log.json()["entries"][0]["resourceId"], id.as_str());
        app.stop().await;
    }

    async fn d_5_nobody_books_without_having_waited_for_this_event(app: TestApp) {
        let event_id = create_event(&app).await;
        let user_id = app.ids.next_id();
        let body = json!({"eventId": event_id, "seatIds": [1]});
        let without = app.post("/api/seats/reserve").as_person(user_id, UserRole::User).json(&body);
        assert_eq!(without.send().await.status, 403);
        let elsewhere = app.forge_entry(user_id, app.ids.next_id(), app.ids.next_id());
        let other = app.post("/api/seats/reserve").as_admitted(user_id, &elsewhere);
        let other = other.json(&body).send().await;
        assert_eq!(other.refusal(), (403, "ENTRY_TOKEN_OTHER_EVENT".into()));
        // The gateway sees it in a path, the ticket service in a body; the answer is the same.
        let map = app.get(&format!("/api/seats/events/{event_id}"));
        let map = map.as_admitted(user_id, &elsewhere).send().await;
        for field in ["error", "code", "redirectTo"] {
            assert_eq!(map.json()[field], other.json()[field], "{field}");
        }
        app.stop().await;
    }
}
