//! The cache: one read for a stampede, and no old news.

use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use axum::http::{Method, StatusCode};
use serde_json::json;
use urr_catalog::{CacheSettings, Catalog};
use urr_test::eventually;

use crate::contract;
use crate::fixture::{Answer, DAY, MINUTE, SECOND, World, all};

const NEVER: Duration = Duration::from_secs(100_000);

async fn show(world: &World, catalog: &Catalog, id: &str) -> Answer {
    let path = format!("/api/events/{id}");
    let shown = world.call_on(catalog, Method::GET, &path).send().await;
    assert_eq!(shown.status, StatusCode::OK);
    shown
}

/// How many database reads a thousand readers at once cause.
async fn stampede(world: &World, catalog: &Catalog, id: &str) -> u64 {
    let before = catalog.cache_loads();
    let path = format!("/api/events/{id}");
    let calls = (0..1_000).map(|_| world.call_on(catalog, Method::GET, &path).send());
    for answer in all(calls).await {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }
    catalog.cache_loads() - before
}

contract! {
    async fn a_stampede_of_a_thousand_readers_is_one_read(world: World) {
        let id = world.some_event().await;
        assert_eq!(stampede(&world, &world.catalog, &id).await, 1);
        assert_eq!(stampede(&world, &world.catalog, &id).await, 0, "it is kept");
        world.clock.advance(5 * MINUTE);
        assert_eq!(stampede(&world, &world.catalog, &id).await, 1, "for five minutes");
        assert!(world.catalog.cache_checks() >= 1);
    }

    /// The control: without it every reader asks the database.
    async fn without_single_flight_a_stampede_is_many_reads(world: World) {
        let id = world.some_event().await;
        let alone = CacheSettings {
            dangerous_without_single_flight: true,
            ..CacheSettings::default()
        };
        let reads = stampede(&world, &world.replica(alone), &id).await;
        assert!(reads > 1, "{reads}");
    }

    async fn an_answer_is_renewed_before_it_expires_and_nobody_waits(world: World) {
        let id = world.some_event().await;
        let catalog = &world.catalog;
        show(&world, catalog, &id).await;
        let loads = catalog.cache_loads();
        world.clock.advance(3 * MINUTE);
        show(&world, catalog, &id).await;
        assert_eq!(catalog.cache_loads(), loads, "too early");
        world.clock.advance(MINUTE + SECOND);
        show(&world, catalog, &id).await;
        assert_eq!(catalog.cache_loads(), loads + 1, "behind the scenes");
        // The renewed answer lasts beyond the end of the first.
        eventually("the renewed answer is there", async || {
            show(&world, catalog, &id).await;
            (catalog.cache_loads() == loads + 1).then_some(())
        })
        .await;
        world.clock.advance(2 * MINUTE);
        show(&world, catalog, &id).await;
        assert!(catalog.cache_loads() <= loads + 2);
    }

    /// When a sale opens, readers see it at that moment and not five minutes later.
    async fn an_answer_ends_when_the_sale_opens(world: World) {
        let id = world.some_event().await;
        let status = async || {
            let shown = show(&world, &world.catalog, &id).await;
            shown.body["event"]["status"].as_str().unwrap().to_owned()
        };
        world.clock.advance(DAY - 2 * SECOND);
        assert_eq!(status().await, "upcoming");
        assert_eq!(world.titles("?status=on_sale").await, [""; 0]);
        world.clock.advance(SECOND);
        assert_eq!(status().await, "upcoming");
        world.clock.advance(SECOND);
        assert_eq!(status().await, "on_sale");
        assert_eq!(world.titles("?status=on_sale").await, ["한강의 밤"]);
        // Just after the opening answers are kept for a minute only.
        let loads = world.catalog.cache_loads();
        world.clock.advance(61 * SECOND);
        assert_eq!(status().await, "on_sale");
        assert_eq!(world.catalog.cache_loads(), loads + 1);
    }

    async fn our_own_changes_are_seen_at_once(world: World) {
        let id = world.some_event().await;
        let blind = CacheSettings { revision_check_interval: NEVER, ..CacheSettings::default() };
        let catalog = world.replica(blind);
        show(&world, &catalog, &id).await;
        for revision in 1..4 {
            let title = format!("제목 {revision}");
            let body = json!({ "revision": revision, "title": title });
            let path = format!("/api/admin/events/{id}");
            let edited = world.call_on(&catalog, Method::PUT, &path).as_admin().json(&body).send().await;
            assert_eq!(edited.status, StatusCode::OK);
            assert_eq!(show(&world, &catalog, &id).await.body["event"]["title"], json!(title));
        }
    }

    async fn changes_by_other_processes_are_seen_soon(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/admin/events/{id}");
        let reader = world.replica(CacheSettings::default());
        let blind =
            world.replica(CacheSettings { revision_check_interval: NEVER, ..CacheSettings::default() });
        show(&world, &reader, &id).await;
        show(&world, &blind, &id).await;
        let edited = world.put(&path, &json!({ "revision": 1, "title": "새 제목" })).await;
        assert_eq!(edited.status, StatusCode::OK);
        eventually("the other process sees it", async || {
            let shown = show(&world, &reader, &id).await;
            (shown.body["event"]["title"] == "새 제목").then_some(())
        })
        .await;
        // The control: who never looks keeps the old answer.
        assert_eq!(show(&world, &blind, &id).await.body["event"]["title"], "한강의 밤");
        // Many readers within a second look once.
        let checks = reader.cache_checks();
        for _ in 0..50 {
            show(&world, &reader, &id).await;
        }
        assert!(reader.cache_checks() - checks < 25, "{}", reader.cache_checks() - checks);
    }

    async fn a_client_that_knows_the_answer_is_not_sent_it_again(world: World) {
        let id = world.some_event().await;
        let path = format!("/api/events/{id}");
        let shown = world.get(&path).await;
        let etag = shown.header(ETAG).to_owned();
        assert_eq!(shown.header(CACHE_CONTROL), "public, no-cache");
        world.clock.advance(SECOND);
        let again = world.call(Method::GET, &path).header(IF_NONE_MATCH, &etag).send().await;
        assert_eq!((again.status, again.bytes.len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(again.header(ETAG), etag);
        let fresh = world.get(&path).await;
        assert_eq!(fresh.header(ETAG), etag, "the time of the server is not covered");
        assert_eq!(fresh.body["now"], "2026-11-15T00:30:01Z");
        world.put(&format!("/api/admin/events/{id}"), &json!({ "revision": 1, "title": "새" })).await;
        let changed = world.call(Method::GET, &path).header(IF_NONE_MATCH, &etag).send().await;
        assert_eq!(changed.status, StatusCode::OK);
        assert_ne!(changed.header(ETAG), etag);
        let list = world.get("/api/events").await;
        assert_eq!(list.header(CACHE_CONTROL), "public, max-age=5");
        let same = world.call(Method::GET, "/api/events").header(IF_NONE_MATCH, list.header(ETAG));
        assert_eq!(same.send().await.status, StatusCode::NOT_MODIFIED);
    }

    async fn the_cache_is_bounded(world: World) {
        world.some_event().await;
        let small = CacheSettings { entries_max: 20, bytes_max: 1_000_000, ..CacheSettings::default() };
        let catalog = world.replica(small);
        for number in 0..200 {
            let path = format!("/api/events?q=a{number}");
            world.call_on(&catalog, Method::GET, &path).send().await;
            assert!(catalog.cache_size().0 <= 20);
        }
        let light = CacheSettings { bytes_max: 2_000, ..CacheSettings::default() };
        let catalog = world.replica(light);
        for number in 1..50 {
            let path = format!("/api/events?page={number}");
            world.call_on(&catalog, Method::GET, &path).send().await;
            assert!(catalog.cache_size().1 <= 2_000, "{:?}", catalog.cache_size());
        }
        // What is not there is not kept.
        let before = catalog.cache_size().0;
        for number in 0..20_u128 {
            let path = format!("/api/events/{}", urr_kernel::Uuid::from_u128(number));
            let missing = world.call_on(&catalog, Method::GET, &path).send().await;
            assert_eq!(missing.status, StatusCode::NOT_FOUND);
        }
        assert_eq!(catalog.cache_size().0, before);
    }
}
