//! The demo data.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

use crate::contract;
use crate::fixture::MINUTE;

contract! {
    async fn the_demo_data_show_every_state_and_are_added_once(world: World) {
        world.catalog.seed_demo().await.unwrap();
        let count = async || {
            let tables = ["artists", "venues", "halls", "events", "images", "admin_actions"];
            let mut counts = Vec::new();
            for table in tables {
                let sql: &'static str = match table {
                    "artists" => "select count(*) as n from artists",
                    "venues" => "select count(*) as n from venues",
                    "halls" => "select count(*) as n from halls",
                    "events" => "select count(*) as n from events",
                    "images" => "select count(*) as n from images",
                    _ => "select count(*) as n from admin_actions",
                };
                counts.push(world.number(sql).await);
            }
            (counts, world.announced_types().await.len())
        };
        let first = count().await;
        assert_eq!(first.0[..4], [8, 5, 4, 10]);
        world.clock.advance(MINUTE);
        world.catalog.seed_demo().await.unwrap();
        assert_eq!(count().await, first, "a second time adds nothing");

        let list = world.get("/api/events?limit=100").await;
        let events = list.body["events"].as_array().unwrap();
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for event in events {
            *states.entry(event["status"].as_str().unwrap()).or_default() += 1;
        }
        assert_eq!(states.keys().copied().collect::<Vec<_>>(), ["cancelled", "ended", "on_sale", "upcoming"]);
        let kinds = events.iter().filter(|event| event["kind"] == "standing").count();
        assert_eq!(kinds, 2);
        assert!(events.iter().any(|event| event["hasPresale"] == true));
        world.clock.advance(2 * MINUTE);
        let now = world.get("/api/events?status=on_sale").await;
        assert_eq!(now.body["pagination"]["total"], states["on_sale"] + 1, "one opened meanwhile");
        let largest = "select max(seats_ordered) as n from events";
        assert!(world.number(largest).await >= 50_000);
    }

    async fn the_demo_shows_begin_in_the_evening_and_their_sales_end_before(world: World) {
        // Whatever the time of day at which the data are made.
        world.clock.advance(7 * 60 * MINUTE);
        world.catalog.seed_demo().await.unwrap();
        let list = world.get("/api/events?limit=100").await;
        for event in list.body["events"].as_array().unwrap() {
            let starts_at = event["startsAt"].as_str().unwrap();
            assert!(starts_at.contains("T10:30:00"), "19:30 in Korea: {event}");
            assert!(event["saleEndsAt"].as_str().unwrap() < starts_at, "{event}");
            let opens_at = event["saleStartsAt"].as_str().unwrap();
            assert!(opens_at < event["saleEndsAt"].as_str().unwrap(), "{event}");
        }
    }

    async fn the_demo_posters_are_drawings_that_can_do_nothing(world: World) {
        world.catalog.seed_demo().await.unwrap();
        let list = world.get("/api/events?limit=100").await;
        for event in list.body["events"].as_array().unwrap() {
            let poster = world.get(event["posterImageUrl"].as_str().unwrap()).await;
            assert_eq!(poster.status, StatusCode::OK);
            assert_eq!(poster.header(CONTENT_TYPE), "image/svg+xml");
            let policy = poster.header(CONTENT_SECURITY_POLICY);
            assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"));
            let text = String::from_utf8(poster.bytes.clone()).unwrap();
            assert!(text.starts_with("<svg") && !text.contains("<script"));
        }
    }
}
