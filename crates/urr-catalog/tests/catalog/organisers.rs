//! Organisers are tenants: each has their own events and sees no others.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{Answer, World};

const MINA: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0b01);
const JUNHO: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0b02);

async fn ask(world: &World, who: Uuid, method: Method, path: &str, body: &Value) -> Answer {
    world.call(method, path).by_person(who, UserRole::Organiser).json(body).send().await
}

async fn create(world: &World, who: Uuid, body: &Value) -> String {
    ask(world, who, Method::POST, "/api/admin/events", body).await.id("event")
}

async fn listed(world: &World, who: Uuid, role: UserRole) -> Vec<String> {
    let list = world.call(Method::GET, "/api/admin/events").by_person(who, role).send().await;
    assert_eq!(list.status, 200, "{:?}", list.body);
    let total = list.body["pagination"]["total"].as_u64().unwrap();
    let events = list.body["events"].as_array().unwrap();
    assert_eq!(events.len() as u64, total, "the total counts what is shown");
    events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

contract! {
    async fn an_organiser_sees_and_changes_their_own_events_only(world: World) {
        let venue = world.venue("강변 극장").await;
        let body = world.standing(&venue);
        let own = create(&world, MINA, &body).await;
        let other = create(&world, JUNHO, &body).await;
        assert_eq!(listed(&world, MINA, UserRole::Organiser).await, std::slice::from_ref(&own));
        assert_eq!(listed(&world, JUNHO, UserRole::Organiser).await, std::slice::from_ref(&other));
        assert_eq!(listed(&world, MINA, UserRole::Support).await.len(), 2);
        for (event, status) in [(&own, 200), (&other, 403)] {
            let path = format!("/api/admin/events/{event}");
            let change = json!({ "revision": 1, "title": "새 제목" });
            let seen = ask(&world, MINA, Method::GET, &path, &json!({})).await;
            let edited = ask(&world, MINA, Method::PUT, &path, &change).await;
            let cancel = format!("{path}/cancel");
            let cancelled = ask(&world, MINA, Method::POST, &cancel, &json!({})).await;
            for answer in [&seen, &edited, &cancelled] {
                assert_eq!(answer.status, status, "{:?}", answer.body);
            }
            let deleted = ask(&world, MINA, Method::DELETE, &path, &json!({})).await;
            assert_eq!(deleted.status, if status == 200 { 204 } else { 403 });
            if status == 403 {
                assert_eq!(deleted.refusal(), (403, "NOT_YOUR_EVENT"));
            }
        }
        assert_eq!(world.titles("").await, ["클럽 나이트"], "the other event is as it was");
    }

    async fn an_organiser_reads_what_was_done_to_their_own_events(world: World) {
        let venue = world.venue("강변 극장").await;
        let body = world.standing(&venue);
        let own = create(&world, MINA, &body).await;
        let other = create(&world, JUNHO, &body).await;
        let change = json!({ "revision": 1, "title": "새 제목" });
        let path = format!("/api/admin/events/{own}");
        assert_eq!(ask(&world, MINA, Method::PUT, &path, &change).await.status, 200);
        let log = ask(&world, MINA, Method::GET, &format!("{path}/log"), &json!({})).await;
        let entries = log.body["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 2, "{:?}", log.body);
        assert!(entries.iter().all(|entry| entry["resourceId"] == own.as_str()));
        let elsewhere = format!("/api/admin/events/{other}/log");
        let refused = ask(&world, MINA, Method::GET, &elsewhere, &json!({})).await;
        assert_eq!(refused.refusal(), (403, "NOT_YOUR_EVENT"));
        let all = ask(&world, MINA, Method::GET, "/api/admin/catalog/log", &json!({})).await;
        assert_eq!(all.status, 403, "the log of everything is for administrators");
    }

    async fn only_an_administrator_says_whose_event_it_is(world: World) {
        let venue = world.venue("강변 극장").await;
        let mut body = world.standing(&venue);
        body["organiserId"] = json!(JUNHO);
        let refused = ask(&world, MINA, Method::POST, "/api/admin/events", &body).await;
        assert_eq!(refused.refusal(), (403, "ORGANISER_FIXED"));
        // Their own id may be named, and an administrator may name anybody.
        body["organiserId"] = json!(MINA);
        let own = create(&world, MINA, &body).await;
        let path = format!("/api/admin/events/{own}");
        let give = json!({ "revision": 1, "organiserId": JUNHO });
        let refused = ask(&world, MINA, Method::PUT, &path, &give).await;
        assert_eq!(refused.refusal(), (403, "ORGANISER_FIXED"));
        assert_eq!(world.put(&path, &give).await.status, 200);
        assert_eq!(listed(&world, MINA, UserRole::Organiser).await, [""; 0]);
        assert_eq!(listed(&world, JUNHO, UserRole::Organiser).await, [own]);
        let announced = world.announced().await;
        let owners: Vec<&Value> = announced.iter().map(|event| &event.data["organiserId"]).collect();
        assert_eq!(owners, [&json!(MINA), &json!(JUNHO)]);
    }

    async fn an_organiser_adds_venues_and_halls_and_changes_their_own_halls_only(world: World) {
        let body = json!({ "name": "강변 극장", "address": "서울 한강로 1" });
        let venue = ask(&world, MINA, Method::POST, "/api/admin/venues", &body).await.id("venue");
        let halls = format!("/api/admin/venues/{venue}/halls");
        let hall = |name: &str, rows: u32| {
            let mapping = json!([{ "grade": "A", "fromRow": 1, "toRow": rows }]);
            let grid = json!({ "rows": rows, "seatsPerRow": 2, "gradeMapping": mapping });
            json!({ "name": name, "grid": grid })
        };
        let own = ask(&world, MINA, Method::POST, &halls, &hall("소극장", 2)).await.id("hall");
        let other = ask(&world, JUNHO, Method::POST, &halls, &hall("대극장", 3)).await.id("hall");
        let path = |hall: &str| format!("/api/admin/halls/{hall}");
        for (hall_id, is_own) in [(&own, true), (&other, false)] {
            let seen = ask(&world, MINA, Method::GET, &path(hall_id), &json!({})).await;
            assert_eq!(seen.body["hall"]["editable"], json!(is_own), "everybody reads all halls");
        }
        let edited = ask(&world, MINA, Method::PUT, &path(&own), &hall("새 극장", 4)).await;
        assert_eq!((edited.status.as_u16(), &edited.body["hall"]["totalSeats"]), (200, &json!(8)));
        let refused = ask(&world, MINA, Method::PUT, &path(&other), &hall("새 극장", 4)).await;
        assert_eq!(refused.refusal(), (403, "NOT_YOUR_HALL"));
        let refused = ask(&world, MINA, Method::DELETE, &path(&other), &json!({})).await;
        assert_eq!(refused.refusal(), (403, "NOT_YOUR_HALL"));
        // A venue is shared, so that only administrators change it.
        let venue_path = format!("/api/admin/venues/{venue}");
        let renamed = json!({ "name": "새 이름" });
        let refused = ask(&world, MINA, Method::PUT, &venue_path, &renamed).await;
        assert_eq!(refused.refusal(), (403, "ADMIN_REQUIRED"));
        let listed = ask(&world, JUNHO, Method::GET, "/api/admin/seat-layouts", &json!({})).await;
        let halls = listed.body["layouts"].as_array().unwrap();
        let editable: Vec<_> = halls.iter().map(|hall| (&hall["name"], &hall["editable"])).collect();
        assert_eq!(editable, [(&json!("대극장"), &json!(true)), (&json!("새 극장"), &json!(false))]);
        // The control: an administrator changes and deletes any hall.
        assert_eq!(world.put(&path(&other), &json!({ "name": "중극장" })).await.status, 200);
        assert_eq!(world.delete(&path(&other)).await.status, 204);
        assert_eq!(ask(&world, MINA, Method::DELETE, &path(&own), &json!({})).await.status, 204);
    }

    async fn support_and_door_staff_change_no_event(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        let change = json!({ "revision": 1, "title": "새 제목" });
        for role in [UserRole::Support, UserRole::Staff, UserRole::User] {
            let call = world.call(Method::PUT, &path).by_user(role).json(&change);
            assert_eq!(call.send().await.refusal(), (403, "ROLE_REQUIRED"), "{role}");
        }
        let read = world.call(Method::GET, &path).by_user(UserRole::Support).send().await;
        assert_eq!(read.status, 200);
        let read = world.call(Method::GET, &path).by_user(UserRole::Staff).send().await;
        assert_eq!(read.refusal(), (403, "ROLE_REQUIRED"));
    }
}
