//! What is learnt from the catalogue and from the ticket service.

use serde_json::{Value, json};
use urr_bus::{HandleError, HandlerOutcome};
use urr_kernel::Uuid;
use urr_queue::{RoomEventStatus, consumer};

use crate::contract;
use crate::fixture::{HOUR, World};

/// One news of an event.
type EventUpdate = (&'static str, Value);

fn updates_of(world: &World, event_id: Uuid) -> Vec<EventUpdate> {
    let with = |revision, title: &str| {
        let mut facts = world.facts(event_id, revision);
        facts["title"] = json!(title);
        facts["saleEndsAt"] = json!(world.clock.now() + u32::try_from(revision).unwrap() * HOUR);
        facts
    };
    vec![
        ("EVENT_CREATED", with(1, "첫 제목")),
        ("EVENT_UPDATED", with(2, "둘째 제목")),
        ("EVENT_UPDATED", with(3, "셋째 제목")),
        ("EVENT_CANCELLED", json!({"eventId": event_id, "revision": 4, "reason": "비"})),
    ]
}

/// All orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    let insert = |order: Vec<usize>| {
        (0..count).map(move |at| {
            let mut order = order.clone();
            order.insert(at, count - 1);
            order
        })
    };
    shorter.into_iter().flat_map(insert).collect()
}

async fn row(world: &World, event_id: Uuid) -> (i64, String, String) {
    let sql = "select revision, title, status from rooms where event_id = $1";
    let read = world.db.read(move |tx| {
        tx.query_one(sql, urr_storage::params![event_id], |row| {
            Ok((row.get("revision")?, row.get("title")?, row.get("status")?))
        })
    });
    read.await.unwrap_or_else(|error: urr_storage::StorageError| panic!("{error}"))
}

async fn slot_ends(world: &World) -> i64 {
    let count = world
        .db
        .read(|tx| tx.query_one("select count(*) as n from slot_ends", &[], |row| row.get("n")));
    count.await.unwrap_or_else(|error: urr_storage::StorageError| panic!("{error}"))
}

contract! {
    async fn the_order_in_which_news_arrive_does_not_matter_nor_how_often(world: World) {
        for order in orders(4) {
            let event_id = world.ids.next_id();
            let updates = updates_of(&world, event_id);
            for index in order.iter().chain(&order[..2]) {
                let (event_type, data) = &updates[*index];
                let handled = world.deliver(event_type, data.clone()).await;
                assert_eq!(handled, Ok(HandlerOutcome::Done), "{order:?}");
            }
            let expected = (3, "셋째 제목".to_owned(), RoomEventStatus::Cancelled.as_str().to_owned());
            assert_eq!(row(&world, event_id).await, expected, "{order:?}");
        }
    }

    async fn an_event_of_which_only_the_end_was_heard_is_not_there(world: World) {
        let event_id = world.ids.next_id();
        let data = json!({"eventId": event_id, "revision": 2, "isOver": false});
        world.hear("EVENT_DELETED", data).await;
        world.fan().check(event_id).await.refused(409, "ROOM_NOT_READY");
        world.clock.advance(HOUR);
        world.fan().check(event_id).await.refused(404, "EVENT_NOT_FOUND");
        world.hear("EVENT_CREATED", world.facts(event_id, 1)).await;
        world.fan().check(event_id).await.refused(404, "EVENT_NOT_FOUND");
    }

    async fn an_edit_changes_nothing_of_what_the_organiser_wishes(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1, message = '안녕'").await;
        world.hear("EVENT_UPDATED", world.facts(event, 2)).await;
        world.come(event, 1).await;
        let told = world.fan().check(event).await.ok();
        assert_eq!((&told["threshold"], &told["message"]), (&json!(1), &json!("안녕")));
    }

    async fn other_processes_learn_what_one_has_heard(world: World) {
        let other = world.another(urr_queue::QueueSettings::default());
        other.load().await.unwrap();
        let event = world.open_event().await;
        let fan = world.at(&other, &world.fan());
        fan.check(event).await.refused(409, "ROOM_NOT_READY");
        other.load().await.unwrap();
        fan.check(event).await.ok();
    }

    async fn what_makes_no_sense_becomes_a_dead_letter(world: World) {
        let event_id = world.ids.next_id();
        let facts = |field: &str, value: Value| {
            let mut facts = world.facts(event_id, 1);
            facts[field] = value;
            facts
        };
        let now = world.clock.now();
        for data in [
            json!({}),
            facts("eventId", json!("no id")),
            facts("revision", json!(0)),
            facts("saleStartsAt", json!("soon")),
            facts("saleEndsAt", json!(now - 2 * HOUR)),
        ] {
            let handled = world.deliver("EVENT_CREATED", data.clone()).await;
            assert!(matches!(handled, Err(HandleError::Poison(_))), "{data}: {handled:?}");
        }
        let handled = world.deliver("EVENT_CREATED", world.facts(event_id, 1)).await;
        assert_eq!(handled, Ok(HandlerOutcome::Done), "the control");
    }

    async fn a_purchase_that_was_heard_of_ends_the_turn(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        let bought = world.purchase(event, fan.id);
        for ignored in ["RESERVATION_CREATED", "RESERVATION_CANCELLED", "RESERVATION_EXPIRED"] {
            assert_eq!(world.deliver(ignored, bought.clone()).await, Ok(HandlerOutcome::Ignored));
        }
        world.queue.end_bought_slots().await.unwrap();
        assert!(world.is_live(event, fan.id, slot).await);
        for _ in 0..2 {
            world.hear("RESERVATION_CONFIRMED", bought.clone()).await;
        }
        assert_eq!(slot_ends(&world).await, 1);
        world.queue.end_bought_slots().await.unwrap();
        assert!(!world.is_live(event, fan.id, slot).await);
        assert_eq!(slot_ends(&world).await, 0);
    }

    async fn news_of_an_old_purchase_does_not_end_a_newer_turn(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let bought = world.purchase(event, fan.id);
        world.hear("RESERVATION_CONFIRMED", bought).await;
        world.clock.advance(HOUR / 60);
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        world.queue.end_bought_slots().await.unwrap();
        assert!(world.is_live(event, fan.id, slot).await);
        assert_eq!(slot_ends(&world).await, 0);
    }

    async fn many_purchases_are_ended_in_one_go(world: World) {
        let event = world.open_event().await;
        for _ in 0..1_100 {
            let bought = world.purchase(event, world.ids.next_id());
            let handled = world.deliver("RESERVATION_CONFIRMED", bought).await;
            assert_eq!(handled, Ok(HandlerOutcome::Done));
        }
        world.queue.end_bought_slots().await.unwrap();
        assert_eq!(slot_ends(&world).await, 0);
    }
}

#[test]
fn it_listens_under_its_own_name() {
    assert_eq!(consumer::GROUP, "queue-service-group");
    assert_eq!(consumer::TOPICS, ["catalog-events", "reservation-events"]);
}
