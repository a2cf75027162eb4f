//! Lists of events, and what administrators see at a glance.

use axum::http::{Method, StatusCode};
use serde_json::json;
use urr_service::Caller;
use urr_test::engines::writings;

use crate::contract;
use crate::fixture::{DAY, HOUR, World};

/// Five events: titles, days until the sale opens, days until they happen.
async fn programme(world: &World) -> String {
    let venue = world.venue("강변 극장").await;
    let hall = world.hall(&venue).await;
    let artist = world.artist("한강 밴드").await;
    for (title, opens, closes, starts) in
        [("C", 3, 20, 30), ("A", 1, 20, 50), ("E", 2, 20, 40), ("B", 5, 20, 35), ("D", 4, 20, 60)]
    {
        let mut body = world.seated(&hall);
        body["title"] = json!(title);
        body["saleStartsAt"] = json!(world.after(opens * DAY));
        body["saleEndsAt"] = json!(world.after(closes * DAY));
        body["startsAt"] = json!(world.after(starts * DAY));
        if ["A", "B"].contains(&title) {
            body["artistId"] = json!(artist);
        }
        world.create_event(&body).await;
    }
    artist
}

contract! {
    async fn a_list_is_sorted_filtered_and_cut_into_pages(world: World) {
        let artist = programme(&world).await;
        assert_eq!(world.titles("").await, ["A", "E", "C", "D", "B"]);
        assert_eq!(world.titles("?sort=saleStart").await, ["A", "E", "C", "D", "B"]);
        assert_eq!(world.titles("?sort=date").await, ["C", "B", "E", "A", "D"]);
        assert_eq!(world.titles("?sort=title").await, ["A", "B", "C", "D", "E"]);
        assert_eq!(world.titles("?sort=newest").await, ["D", "B", "E", "A", "C"]);
        assert_eq!(world.titles("?sort=title&page=2&limit=2").await, ["C", "D"]);
        assert_eq!(world.titles(&format!("?artistId={artist}")).await, ["A", "B"]);
        let (from, to) = (world.after(35 * DAY), world.after(50 * DAY));
        assert_eq!(world.titles(&format!("?sort=date&from={from}&to={to}")).await, ["B", "E"]);
        assert_eq!(world.titles("?from=9999-12-30T00:00:00Z").await, [""; 0]);
        assert_eq!(world.titles("?from=-009000-01-02T00:00:00Z&limit=1").await, ["A"]);
        for query in ["?sort=price", "?status=sold_out", "?artistId=7", "?from=soon", "?page=x"] {
            let refused = world.get(&format!("/api/events{query}")).await;
            assert_eq!(refused.refusal(), (400, "INVALID_QUERY"), "{query}");
        }
    }

    /// P-9: a limit without a bound would be a way to ask for everything at once.
    async fn p_9_pages_are_bounded(world: World) {
        programme(&world).await;
        for (query, limit, page) in [
            ("?limit=1000000", 100, 1),
            ("?limit=0", 1, 1),
            ("?limit=-5&page=-5", 1, 1),
            ("?limit=9223372036854775807", 100, 1),
            ("?page=9223372036854775807", 20, u32::MAX),
        ] {
            let list = world.get(&format!("/api/events{query}")).await;
            assert_eq!(list.status, StatusCode::OK, "{query}");
            assert_eq!(list.body["pagination"]["limit"], limit, "{query}");
            assert_eq!(list.body["pagination"]["page"], page, "{query}");
            assert_eq!(list.body["pagination"]["total"], 5, "{query}");
        }
    }

    /// P-11: nobody who looks makes the database write: no counter of views, no last visit.
    async fn p_11_reading_writes_nothing(world: World) {
        let artist = programme(&world).await;
        let list = world.get("/api/events").await;
        let event = list.body["events"][0]["id"].as_str().unwrap();
        let before = writings(&world.db).await;
        for _ in 0..3 {
            for path in [
                "/api/events".to_owned(),
                "/api/events?q=a&sort=title".to_owned(),
                format!("/api/events/{event}"),
                "/api/artists".to_owned(),
                format!("/api/artists/{artist}"),
                "/api/admin/events".to_owned(),
                "/api/admin/dashboard".to_owned(),
            ] {
                let read = world.call(Method::GET, &path).by_admin().send().await;
                assert_eq!(read.status, StatusCode::OK, "{path}: {}", read.body);
            }
            // What was kept in memory is too old.
            world.clock.advance(HOUR);
        }
        assert_eq!(writings(&world.db).await, before);
        // The control: who changes something is seen.
        world.artist("새 밴드").await;
        assert_ne!(writings(&world.db).await, before);
    }

    /// Readers see the status of this moment, whenever the job last ran.
    async fn the_status_is_that_of_the_moment(world: World) {
        programme(&world).await;
        assert_eq!(world.titles("?status=on_sale").await, [""; 0]);
        assert_eq!(world.titles("?status=upcoming").await, ["A", "E", "C", "D", "B"]);
        world.clock.advance(2 * DAY);
        assert_eq!(world.titles("?status=on_sale").await, ["A", "E"]);
        assert_eq!(world.titles("?status=upcoming").await, ["C", "D", "B"]);
        let list = world.get("/api/events").await;
        assert_eq!(list.body["events"][0]["status"], "on_sale");
        assert_eq!(list.body["events"][2]["status"], "upcoming");
        let id = list.body["events"][4]["id"].as_str().unwrap().to_owned();
        world.post(&format!("/api/admin/events/{id}/cancel"), &json!({})).await;
        world.clock.advance(30 * DAY);
        assert_eq!(world.titles("?status=ended").await, ["A", "E", "C", "D"]);
        assert_eq!(world.titles("?status=cancelled").await, ["B"]);
    }

    async fn administrators_see_everything_and_figures(world: World) {
        programme(&world).await;
        let list = world.get("/api/events?sort=title").await;
        let id = |index: usize| list.body["events"][index]["id"].as_str().unwrap().to_owned();
        world.delete(&format!("/api/admin/events/{}", id(0))).await;
        world.post(&format!("/api/admin/events/{}/cancel", id(1)), &json!({})).await;
        world.clock.advance(2 * DAY + HOUR);
        let admin = |query: &str| {
            let path = format!("/api/admin/events{query}");
            world.call(Method::GET, &path).by_admin().send()
        };
        let titles = async |query: &str| -> Vec<String> {
            let answer = admin(query).await;
            let events = answer.body["events"].as_array().unwrap().iter();
            events.map(|event| event["title"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(titles("").await, ["D", "B", "E", "C"], "the newest first");
        assert_eq!(titles("?includeDeleted=true").await, ["D", "B", "E", "A", "C"]);
        assert_eq!(titles("?status=on_sale").await, ["E"]);
        assert_eq!(titles("?q=b").await, ["B"]);
        let all = admin("?includeDeleted=true").await;
        let deleted = &all.body["events"][3];
        assert!(deleted["deletedAt"].is_string() && deleted["revision"] == 2, "{deleted}");
        let dashboard = world.call(Method::GET, "/api/admin/dashboard").by_admin().send().await;
        assert_eq!(dashboard.body["stats"], json!({
            "totalEvents": 4, "upcoming": 2, "onSale": 1, "ended": 0, "cancelled": 1,
            "notReady": 3, "deleted": 1, "artists": 1, "venues": 1, "halls": 1, "images": 0,
            "totalReservations": null, "totalRevenue": null, "todayReservations": null,
        }));
    }

    /// F-9: what a client does wrong is the client's fault.
    async fn f_9_a_bad_address_is_not_our_failure(world: World) {
        for (path, refusal) in [
            ("/api/events/7", (400, "INVALID_PATH")),
            ("/api/events/0198b7a0-0000-7000-8000-000000000000", (404, "EVENT_NOT_FOUND")),
            ("/api/artists/0198b7a0-0000-7000-8000-000000000000", (404, "ARTIST_NOT_FOUND")),
            ("/api/image/x", (404, "IMAGE_NOT_FOUND")),
            ("/api/image/%00", (400, "INVALID_PATH")),
            ("/api/events?q=%00", (400, "INVALID_QUERY")),
            ("/api/nothing", (404, "NOT_FOUND")),
        ] {
            assert_eq!(world.get(path).await.refusal(), refusal, "{path}");
        }
        let wrong = world.call(Method::PATCH, "/api/events").send().await;
        assert_eq!(wrong.refusal(), (405, "METHOD_NOT_ALLOWED"));
    }

    async fn other_services_ask_what_an_event_is(world: World) {
        let id = world.some_event().await;
        let path = format!("/internal/catalog/events/{id}");
        let told = world.call(Method::GET, &path).caller(Caller::Queue).send().await;
        let event = &told.body["event"];
        assert_eq!((&event["title"], &event["status"]), (&json!("한강의 밤"), &json!("upcoming")));
        assert_eq!(event["saleStartsAt"], world.after(DAY));
        assert_eq!(event["inventoryReady"], false);
        world.clock.advance(DAY);
        let told = world.call(Method::GET, &path).caller(Caller::Queue).send().await;
        assert_eq!(told.body["event"]["status"], "on_sale");
        let stranger = world.call(Method::GET, &path).no_caller().send().await;
        assert!(stranger.status.is_client_error(), "{}", stranger.status);
        let unknown = "/internal/catalog/events/0198b7a0-0000-7000-8000-000000000000";
        let unknown = world.call(Method::GET, unknown).caller(Caller::Queue).send().await;
        assert_eq!(unknown.refusal(), (404, "EVENT_NOT_FOUND"));
    }
}
