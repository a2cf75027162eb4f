//! What the ticket service says about seats, and when an event can be booked.

use serde_json::{Value, json};
use urr_bus::{HandleError, HandlerContext, HandlerOutcome};
use urr_catalog::{CacheSettings, GROUP, handle};
use urr_contracts::events::inventory::InventoryReady;
use urr_kernel::{CallContext, DomainEvent, Uuid};
use urr_storage::StorageError;

use crate::contract;
use crate::fixture::World;

fn ready(world: &World, id: &str, seats: u32, ticket_types: u32, total: i64) -> DomainEvent {
    let event_id: Uuid = id.parse().unwrap();
    let data = InventoryReady { event_id, revision: 1, seats, ticket_types, total };
    let context = CallContext::root(world.ids.next_id());
    DomainEvent::new(world.ids.next_id(), "urr/ticket", world.clock.now(), &context, &data)
}

pub async fn deliver(world: &World, event: DomainEvent) -> HandlerOutcome {
    let context = HandlerContext::new(GROUP, &event, world.clock.now());
    let handled = world.db.write(move |tx| match handle(tx, &event, &context) {
        Ok(handled) => Ok(handled),
        Err(HandleError::Storage(error)) => Err(error),
        Err(HandleError::Poison(reason) | HandleError::NotYet(reason)) => panic!("{reason}"),
    });
    handled.await.unwrap_or_else(|error: StorageError| panic!("{error}"))
}

/// As the ticket service publishes it.
fn ticket_type(world: &World, event_id: &str, id: &str, fence: i64, other: &Value) -> DomainEvent {
    let mut data = json!({ "eventId": event_id, "ticketTypeId": id, "name": "C",
        "description": "", "price": 60_000, "total": 10, "fence": fence });
    for (field, value) in other.as_object().unwrap() {
        data[field] = value.clone();
    }
    let mut event = ready(world, event_id, 0, 0, 0);
    event.event_type = "TICKET_TYPE_CHANGED".to_owned();
    event.data = data;
    event
}

/// What the ticket service publishes about a membership.
pub fn membership_event(world: &World, event_type: &str, data: Value) -> DomainEvent {
    let mut event = ready(world, &Uuid::nil().to_string(), 0, 0, 0);
    event.event_type = event_type.to_owned();
    event.data = data;
    event
}

/// The event's page as a process shows it that learns of changes by the catalogue's revision.
async fn page(world: &World, id: &str) -> Value {
    let replica = world.replica(CacheSettings::default());
    let path = format!("/api/events/{id}");
    let shown = world.call_on(&replica, axum::http::Method::GET, &path).send().await;
    shown.body["event"].clone()
}

async fn is_ready(world: &World, id: &str) -> bool {
    // As a process sees it that learns of the change by the catalogue's revision.
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
        assert_eq!(deliver(&world, ready(&world, &id, 20, 0, 20)).await, HandlerOutcome::Done);
        assert!(is_ready(&world, &id).await);
        // Delivered again, or counted again after the stock was changed: nothing happens.
        let revision = world.number("select revision as n from catalog_revision").await;
        assert_eq!(deliver(&world, ready(&world, &id, 19, 0, 19)).await, HandlerOutcome::Done);
        assert!(is_ready(&world, &id).await);
        assert_eq!(world.number("select revision as n from catalog_revision").await, revision);
        assert_eq!(world.number("select revision as n from events").await, 1, "editors go on");
    }

    async fn a_wrong_count_is_not_believed_and_reported(world: World) {
        let id = world.some_event().await;
        for (seats, ticket_types, total) in [(19, 0, 19), (20, 1, 20), (20, 0, 21), (0, 0, 0)] {
            let handled = deliver(&world, ready(&world, &id, seats, ticket_types, total)).await;
            assert!(matches!(handled, HandlerOutcome::Rejected { .. }), "{handled:?}");
            assert!(!is_ready(&world, &id).await);
        }
        let shown = world.call(axum::http::Method::GET, &format!("/api/admin/events/{id}"));
        let shown = shown.by_admin().send().await;
        let problem = shown.body["event"]["inventoryProblem"].as_str().unwrap();
        assert!(problem.contains("20 seats") && problem.contains("0, 0 and 0"), "{problem}");
        let mended = deliver(&world, ready(&world, &id, 20, 0, 20)).await;
        assert_eq!(mended, HandlerOutcome::Done);
        assert!(is_ready(&world, &id).await);
        let shown = world.call(axum::http::Method::GET, &format!("/api/admin/events/{id}"));
        assert_eq!(shown.by_admin().send().await.body["event"]["inventoryProblem"], json!(null));
    }

    async fn standing_tickets_are_counted_too(world: World) {
        let venue = world.venue("클럽 네온").await;
        let id = world.create_event(&world.standing(&venue)).await;
        let wrong = deliver(&world, ready(&world, &id, 0, 2, 299)).await;
        assert!(matches!(wrong, HandlerOutcome::Rejected { .. }), "{wrong:?}");
        assert_eq!(deliver(&world, ready(&world, &id, 0, 2, 300)).await, HandlerOutcome::Done);
        assert!(is_ready(&world, &id).await);
    }

    /// Administrators add and change types of tickets at the ticket service; the page follows.
    async fn tickets_are_shown_as_they_are_sold(world: World) {
        let venue = world.venue("클럽 네온").await;
        let id = world.create_event(&world.standing(&venue)).await;
        let first = page(&world, &id).await["ticketTypes"][0]["id"].as_str().unwrap().to_owned();
        let new = "0198b7a0-0000-7000-8000-0000000000cc";
        let figures = async || {
            let event = page(&world, &id).await;
            let types = event["ticketTypes"].as_array().unwrap().iter();
            let names: Vec<String> =
                types.map(|kind| kind["name"].as_str().unwrap().to_owned()).collect();
            (names.join(" "), event["minPrice"].clone(), event["maxPrice"].clone(), event["capacity"].clone())
        };
        let expected = |names: &str, min, max, capacity| {
            (names.to_owned(), json!(min), json!(max), json!(capacity))
        };
        assert_eq!(figures().await, expected("A B", 50_000, 70_000, 300));
        let cheap = json!({ "price": 10_000, "description": "뒤쪽" });
        let cheap = ticket_type(&world, &id, new, 3, &cheap);
        assert_eq!(deliver(&world, cheap.clone()).await, HandlerOutcome::Done);
        assert_eq!(figures().await, expected("A B C", 10_000, 70_000, 310));
        assert_eq!(page(&world, &id).await["ticketTypes"][2]["description"], "뒤쪽");
        let dear = json!({ "name": "A+", "price": 200_000, "total": 50 });
        let dear = ticket_type(&world, &id, &first, 5, &dear);
        assert_eq!(deliver(&world, dear).await, HandlerOutcome::Done);
        assert_eq!(figures().await, expected("A+ B C", 10_000, 200_000, 260));
        // Late, or again: what is newer stays, and nobody's cache is emptied for it.
        let revision = world.number("select revision as n from catalog_revision").await;
        let late = ticket_type(&world, &id, &first, 4, &json!({ "name": "late" }));
        assert_eq!(deliver(&world, late).await, HandlerOutcome::Done);
        assert_eq!(deliver(&world, cheap).await, HandlerOutcome::Done);
        assert_eq!(figures().await, expected("A+ B C", 10_000, 200_000, 260));
        assert_eq!(world.number("select revision as n from catalog_revision").await, revision);
        assert_eq!(world.number("select revision as n from events").await, 1, "editors go on");
        // What was ordered is still what was ordered.
        assert_eq!(deliver(&world, ready(&world, &id, 0, 2, 300)).await, HandlerOutcome::Done);
        assert!(is_ready(&world, &id).await);
    }

    async fn tickets_that_cannot_be_are_not_shown(world: World) {
        let seated = world.some_event().await;
        let venue = world.venue("클럽 네온").await;
        let standing = world.create_event(&world.standing(&venue)).await;
        let nobody = "0198b7a0-0000-7000-8000-000000000000";
        for event_id in [seated.as_str(), nobody] {
            let handled = deliver(&world, ticket_type(&world, event_id, nobody, 1, &json!({}))).await;
            assert!(matches!(handled, HandlerOutcome::Rejected { .. }), "{handled:?}");
        }
        let free = ticket_type(&world, &standing, nobody, 1, &json!({ "price": -1 }));
        let context = HandlerContext::new(GROUP, &free, world.clock.now());
        let poison = world.db.write(move |tx| Ok::<_, StorageError>(handle(tx, &free, &context)));
        assert!(matches!(poison.await, Ok(Err(HandleError::Poison(_)))));
        assert_eq!(world.number("select count(*) as n from event_ticket_types").await, 2);
    }

    async fn what_does_not_concern_us_is_left_alone(world: World) {
        let nobody = "0198b7a0-0000-7000-8000-000000000000";
        let handled = deliver(&world, ready(&world, nobody, 1, 0, 1)).await;
        assert!(matches!(handled, HandlerOutcome::Rejected { .. }), "{handled:?}");
        let mut other = ready(&world, nobody, 1, 0, 1);
        other.event_type = "INVENTORY_PAINTED".to_owned();
        assert_eq!(deliver(&world, other).await, HandlerOutcome::Ignored);
    }
}
