//! The cache: one read for a stampede, and no old news.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use axum::http::{Method, StatusCode};
use serde_json::json;
use urr_catalog::{CacheSettings, CatalogService};
use urr_storage::StorageError;
use urr_test::eventually;

use crate::contract;
use crate::fixture::{Answer, Call, DAY, MINUTE, SECOND, World};

const READERS: usize = 1_000;
const NEVER: Duration = Duration::from_secs(100_000);

async fn show(world: &World, catalog: &CatalogService, id: &str) -> Answer {
    let path = format!("/api/events/{id}");
    let shown = world.call_on(catalog, Method::GET, &path).send().await;
    assert_eq!(shown.status, StatusCode::OK);
    shown
}

/// A thousand readers at once, while the database takes its time: how many reads do they cause?
/// They are released when `expected` reads have begun.
async fn stampede(world: &World, catalog: &CatalogService, id: &str, expected: u64) -> u64 {
    // The catalogue's revision is looked at before.
    world.call_on(catalog, Method::GET, "/api/artists").send().await;
    let before = catalog.cache_loads();
    let path = format!("/api/events/{id}");
    let router = world.router(catalog);
    let slow = SlowDatabase::new(world).await;
    let call = |_| tokio::spawn(Call::new(&router, Method::GET, &path).send());
    let readers: Vec<_> = (0..READERS).map(call).collect();
    eventually("the reads have begun", async || {
        (catalog.cache_loads() - before >= expected).then_some(())
    })
    .await;
    slow.release();
    for reader in readers {
        let answer = reader.await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }
    catalog.cache_loads() - before
}

/// Keeps every connection busy until it is released: later reads wait in line.
struct SlowDatabase(Arc<(Mutex<bool>, Condvar)>);

/// The connections that read, of either database.
const READING_CONNECTIONS: usize = 4;

impl SlowDatabase {
    async fn new(world: &World) -> SlowDatabase {
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let begun = Arc::new(AtomicUsize::new(0));
        for _ in 0..8 {
            let (db, gate) = (world.db.clone(), Arc::clone(&gate));
            let begun = Arc::clone(&begun);
            tokio::spawn(async move {
                let busy = db.read(move |_| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let (released, changed) = &*gate;
                    let released = released.lock().unwrap();
                    drop(changed.wait_while(released, |released| !*released).unwrap());
                    Ok::<_, StorageError>(())
                });
                busy.await.unwrap();
            });
        }
        // A reader that comes before them would be answered, and the others from the cache.
        eventually("every connection is busy", async || {
            (begun.load(Ordering::SeqCst) >= READING_CONNECTIONS).then_some(())
        })
        .await;
        SlowDatabase(gate)
    }

    fn release(self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

contract! {
    async fn a_stampede_of_a_thousand_readers_is_one_read(world: World) {
        let id = world.some_event().await;
        let blind = CacheSettings { revision_check_interval: NEVER, ..CacheSettings::default() };
        let catalog = world.replica(blind);
        assert_eq!(stampede(&world, &catalog, &id, 1).await, 1);
        assert_eq!(stampede(&world, &catalog, &id, 0).await, 0, "it is kept");
        world.clock.advance(5 * MINUTE);
        assert_eq!(stampede(&world, &catalog, &id, 1).await, 1, "for five minutes");
    }

    /// The control: without it every reader asks the database.
    async fn without_single_flight_a_stampede_is_as_many_reads_as_readers(world: World) {
        let id = world.some_event().await;
        let alone = CacheSettings {
            dangerous_without_single_flight: true,
            revision_check_interval: NEVER,
            ..CacheSettings::default()
        };
        let catalog = world.replica(alone);
        assert_eq!(stampede(&world, &catalog, &id, 1_000).await, 1_000);
    }

    async fn an_answer_is_renewed_before_it_expires_and_nobody_waits(world: World) {
        let id = world.some_event().await;
        let catalog = &world.catalog;
        let title = async || show(&world, catalog, &id).await.body["event"]["title"].clone();
        assert_eq!(title().await, "한강의 밤");
        // A change that the cache is not told of shows when it reads again.
        let unseen = "update events set title = '몰래 바뀐 제목'";
        let changed = world.db.write(move |tx| tx.execute(unseen, &[])).await;
        assert_eq!(changed, Ok::<_, StorageError>(1));
        let loads = catalog.cache_loads();
        world.clock.advance(3 * MINUTE);
        assert_eq!((title().await, catalog.cache_loads()), (json!("한강의 밤"), loads), "too early");
        world.clock.advance(MINUTE + SECOND);
        assert_eq!(title().await, "한강의 밤", "who causes the reading does not wait for it");
        eventually("it was renewed behind the scenes", async || {
            (title().await == "몰래 바뀐 제목").then_some(())
        })
        .await;
        assert_eq!(catalog.cache_loads(), loads + 1);
        world.clock.advance(3 * MINUTE);
        title().await;
        assert_eq!(catalog.cache_loads(), loads + 1, "it lasts beyond the end of the first");
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
            let edited = world.call_on(&catalog, Method::PUT, &path).by_admin().json(&body).send().await;
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
        // Looking is rare: once in the interval, however many read.
        let often =
            world.replica(CacheSettings { revision_check_interval: Duration::ZERO, ..CacheSettings::default() });
        for _ in 0..20 {
            show(&world, &blind, &id).await;
            show(&world, &often, &id).await;
        }
        assert_eq!((blind.cache_checks(), often.cache_checks()), (1, 20));
    }

    async fn while_one_looks_for_changes_the_others_are_answered_from_memory(world: World) {
        let id = world.some_event().await;
        let always =
            CacheSettings { revision_check_interval: Duration::ZERO, ..CacheSettings::default() };
        let catalog = world.replica(always);
        show(&world, &catalog, &id).await;
        let (path, router) = (format!("/api/events/{id}"), world.router(&catalog));
        let slow = SlowDatabase::new(&world).await;
        let call = |_| tokio::spawn(Call::new(&router, Method::GET, &path).send());
        let readers: Vec<_> = (0..100).map(call).collect();
        eventually("all but the one who looks have their answer", async || {
            let answered = readers.iter().filter(|reader| reader.is_finished()).count();
            (answered >= 99).then_some(())
        })
        .await;
        slow.release();
        for reader in readers {
            assert_eq!(reader.await.unwrap().status, StatusCode::OK);
        }
    }

    async fn those_who_waited_for_the_number_do_not_read_it_again(world: World) {
        let settings = CacheSettings::default();
        let interval = settings.revision_check_interval;
        let catalog = world.replica(settings);
        let router = world.router(&catalog);
        let slow = SlowDatabase::new(&world).await;
        let call = |page| {
            let path = format!("/api/events?page={page}");
            tokio::spawn(Call::new(&router, Method::GET, &path).send())
        };
        let readers: Vec<_> = (1..=20).map(call).collect();
        let begun = std::time::Instant::now();
        eventually("reading took longer than the interval", async || {
            (catalog.cache_checks() == 1 && begun.elapsed() > interval).then_some(())
        })
        .await;
        slow.release();
        for reader in readers {
            assert_eq!(reader.await.unwrap().status, StatusCode::OK);
        }
        assert_eq!(catalog.cache_checks(), 1);
    }

    /// A backup was restored, or a replica took over that was behind: the number is lower than one
    /// that was seen before.
    async fn a_database_that_went_back_is_believed(world: World) {
        let id = world.some_event().await;
        let always =
            CacheSettings { revision_check_interval: Duration::ZERO, ..CacheSettings::default() };
        let catalog = world.replica(always);
        let path = format!("/api/admin/events/{id}");
        world.put(&path, &json!({ "revision": 1, "title": "새 제목" })).await;
        assert_eq!(show(&world, &catalog, &id).await.body["event"]["title"], "새 제목");
        for restore in [
            "update events set title = '복원된 제목', revision = 1",
            "update catalog_revision set revision = 2",
        ] {
            let restored = world.db.write(move |tx| tx.execute(restore, &[])).await;
            assert_eq!(restored, Ok::<_, StorageError>(1));
        }
        assert_eq!(show(&world, &catalog, &id).await.body["event"]["title"], "복원된 제목");
        let loads = catalog.cache_loads();
        show(&world, &catalog, &id).await;
        assert_eq!(catalog.cache_loads(), loads, "it is kept as before");
        // From there on changes are seen as before, too.
        world.put(&path, &json!({ "revision": 1, "title": "다음 제목" })).await;
        assert_eq!(show(&world, &catalog, &id).await.body["event"]["title"], "다음 제목");
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
        assert_eq!(fresh.header(ETAG), etag);
        // An answer that can be `not modified` contains nothing that changes: no server time.
        assert_eq!(fresh.bytes, shown.bytes);
        assert!(fresh.body["now"].is_null());
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
