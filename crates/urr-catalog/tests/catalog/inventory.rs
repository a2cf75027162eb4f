//! What the ticket office says about seats, and when an event can be booked.

use serde_json::json;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_catalog::{CacheSettings, GROUP, InventoryReady, handle};
use urr_kernel::{CallContext, Event, Uuid};
use urr_storage::StorageError;

use crate::contract;
use crate::fixture::World;

fn ready(world: &World, id: &str, seats: i64, ticket_types: i64, total: i64) -> Event {
    let event_id: Uuid = id.parse().unwrap();
    let data = InventoryReady { event_id, revision: 1, seats, ticket_types, total };
    let context = CallContext::root(world.ids.next_id());
    Event::new(world.ids.next_id(), "urr/ticket", world.clock.now(), &context, &data)
}

async fn deliver(world: &World, event: Event) -> Handled {
    let context = HandlerContext::new(GROUP, &event, world.clock.now());
    let handled = world.db.write(move |tx| match handle(tx, &event, &context) {
        Ok(handled) => Ok(handled),
        Err(HandleError::Storage(error)) => Err(error),
        Err(HandleError::Poison(reason)) => panic!("{reason}"),
    });
    handled.await.unwrap_or_else(|error: StorageError| panic!("{error}"))
}

async fn is_ready(world: &World, id: &str) -> bool {
    // As a process sees it that learns of the change by the catalogue's number.
    let always = CacheSettings {
        revision_check_interval: std::time::Duration::ZERO,
        ..CacheSettings::default()
    };
    let replica = world.replica(always);
    let path = format!("/api/events/{id}");
    let shown = world.call_on(&replica, axum::http::Method::GET, &path).send().await;
    shown.body["event"]["inventoryReady"] == true
}

contract! {
    async fn an_event_can_be_booked_once_all_seats_were_counted(world: World) {
        let id = world.some_event().await;
        assert!(!is_ready(&world, &id).await);
        assert_eq!(deliver(&world, ready(&world, &id, 20, 0, 20)).await, Handled::Done);
        assert!(is_ready(&world, &id).await);
        // Delivered again, or counted again after the stock was changed: nothing happens.
        let revision = world.number("select revision as n from catalog_revision").await;
        assert_eq!(deliver(&world, ready(&world, &id, 19, 0, 19)).await, Handled::Done);
        assert!(is_ready(&world, &id).await);
        assert_eq!(world.number("select revision as n from catalog_revision").await, revision);
        assert_eq!(world.number("select revision as n from events").await, 1, "editors go on");
    }

    async fn a_wrong_count_is_not_believed_and_reported(world: World) {
        let id = world.some_event().await;
        for (seats, ticket_types, total) in [(19, 0, 19), (20, 1, 20), (20, 0, 21), (0, 0, 0)] {
            let handled = deliver(&world, ready(&world, &id, seats, ticket_types, total)).await;
            assert!(matches!(handled, Handled::Rejected { .. }), "{handled:?}");
            assert!(!is_ready(&world, &id).await);
        }
        let shown = world.call(axum::http::Method::GET, &format!("/api/admin/events/{id}"));
        let shown = shown.by_admin().send().await;
        let problem = shown.body["event"]["inventoryProblem"].as_str().unwrap();
        assert!(problem.contains("20 seats") && problem.contains("0, 0 and 0"), "{problem}");
        let mended = deliver(&world, ready(&world, &id, 20, 0, 20)).await;
        assert_eq!(mended, Handled::Done);
        assert!(is_ready(&world, &id).await);
        let shown = world.call(axum::http::Method::GET, &format!("/api/admin/events/{id}"));
        assert_eq!(shown.by_admin().send().await.body["event"]["inventoryProblem"], json!(null));
    }

    async fn standing_tickets_are_counted_too(world: World) {
        let venue = world.venue("클럽 네온").await;
        let id = world.create_event(&world.standing(&venue)).await;
        let wrong = deliver(&world, ready(&world, &id, 0, 2, 299)).await;
        assert!(matches!(wrong, Handled::Rejected { .. }), "{wrong:?}");
        assert_eq!(deliver(&world, ready(&world, &id, 0, 2, 300)).await, Handled::Done);
        assert!(is_ready(&world, &id).await);
    }

    async fn what_does_not_concern_us_is_left_alone(world: World) {
        let nobody = "0198b7a0-0000-7000-8000-000000000000";
        let handled = deliver(&world, ready(&world, nobody, 1, 0, 1)).await;
        assert!(matches!(handled, Handled::Rejected { .. }), "{handled:?}");
        let mut other = ready(&world, nobody, 1, 0, 1);
        other.event_type = "INVENTORY_PAINTED".to_owned();
        assert_eq!(deliver(&world, other).await, Handled::Ignored);
    }
}
