//! Counting everything again comes to the same counters.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use tempfile::TempDir;
use urr_bus::{Bus, BusMessage, TopicSpec};
use urr_kernel::DomainEvent;
use urr_service::UserRole;
use urr_stats::{RebuildError, TOPICS};

use crate::contract;
use crate::fixture::{
    Booking, DAY, HOUR, MINUTE, World, copy_of, event_created, membership_activated, now,
    transfer_completed, user_registered,
};

/// A bus with the topics of the statistics.
pub async fn bus(world: &World) -> (TempDir, Bus) {
    let folder = tempfile::tempdir().unwrap();
    let bus = Bus::open_embedded(&folder.path().join("bus.db"), &world.clock).unwrap();
    let topics: Vec<TopicSpec> = TOPICS.iter().map(|topic| TopicSpec::new(*topic)).collect();
    bus.ensure_topics(&topics).await.unwrap();
    (folder, bus)
}

fn topic_of(event: &DomainEvent) -> &'static str {
    let (subject, _) = event.event_type.split_once('_').unwrap();
    match subject {
        "EVENT" => "catalog-events",
        "TICKET" => "inventory-events",
        "MEMBERSHIP" => "membership-events",
        "PAYMENT" => "payment-events",
        "RESERVATION" => "reservation-events",
        "TRANSFER" => "transfer-events",
        "USER" => "user-events",
        other => panic!("no topic for {other}"),
    }
}

pub async fn publish(bus: &Bus, events: &[DomainEvent]) {
    let message = |event: &DomainEvent| {
        let key = event.data["reservationId"].as_str().unwrap_or_default().to_owned();
        BusMessage::new(topic_of(event), key, event.to_bytes())
    };
    for result in bus.publish(events.iter().map(message).collect()).await {
        result.unwrap();
    }
}

fn history() -> Vec<DomainEvent> {
    let mut events = vec![event_created(50, "한강의 밤"), user_registered(1, now() - 9 * DAY)];
    for number in 1..=20 {
        let at = now() - 8 * DAY + u32::try_from(number).unwrap() * 7 * HOUR;
        let booking = Booking { seats: vec![4], ..Booking::new(number, 50) };
        events.extend(booking.sold(at));
        if number % 3 == 0 {
            events.push(booking.cancelled(at + HOUR, 80_000));
            events.push(booking.refunded(at + HOUR, "card", 80_000, "cancelled"));
        }
    }
    events.push(transfer_completed(700, 9, now()));
    events.push(membership_activated(600, 601, now()));
    events.push(copy_of(&events[2], DAY));
    events
}

/// A few facts of each kind, and what is announced later: new ones with ids before and after, and what
/// changes one that is known.
fn early_and_late() -> (Vec<DomainEvent>, Vec<DomainEvent>) {
    let known = Booking::new(5_000, 50);
    let mut early = known.sold(now() - 2 * DAY);
    early.push(user_registered(5, now() - DAY));
    early.push(transfer_completed(700, 9, now()));
    early.push(membership_activated(600, 601, now()));
    let mut late = vec![
        known.cancelled(now(), 70_000),
        known.refunded(now(), "card", 70_000, "cancelled"),
        user_registered(1, now()),
        user_registered(9, now()),
    ];
    late.extend(Booking { seats: vec![6], ..Booking::new(3, 51) }.sold(now()));
    late.extend(Booking { seats: vec![7], ..Booking::new(9_000, 50) }.sold(now()));
    (early, late)
}

/// Lets a future go so many steps; what it gives if it ends by then.
async fn poll_times<F: Future>(mut future: Pin<&mut F>, steps: usize) -> Option<F::Output> {
    let mut taken = 0;
    poll_fn(|context| {
        if taken == steps {
            return Poll::Ready(None);
        }
        taken += 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

contract! {
    async fn a_rebuild_comes_to_the_counters_that_were_there(world: World) {
        let (_folder, bus) = bus(&world).await;
        let events = history();
        publish(&bus, &events).await;
        publish(&bus, &events[..5]).await;
        world.consume_all(&events).await;
        let before = world.counters().await;
        let rebuilt = world.stats.rebuild(&bus).await.unwrap();
        assert_eq!(rebuilt.messages, u64::try_from(events.len()).unwrap() + 5);
        assert_eq!(rebuilt.unreadable, 0);
        assert_eq!(world.counters().await, before);
        bus.close().await;
    }

    /// What an operator calls it for: counters that are wrong, or a database that is empty.
    async fn a_rebuild_repairs_counters_and_finds_messages_that_were_never_counted(world: World) {
        let (_folder, bus) = bus(&world).await;
        let events = history();
        publish(&bus, &events).await;
        world.consume_all(&events).await;
        let right = world.counters().await;
        world.run(&[
            "update hour_counters set charged = charged + 1",
            "delete from event_counters",
            "update activity set total = 7",
        ]).await;
        assert_ne!(world.counters().await, right, "the control: they are wrong");
        world.stats.rebuild(&bus).await.unwrap();
        assert_eq!(world.counters().await, right);

        world.delete_everything().await;
        assert!(world.counters().await.is_empty());
        world.stats.rebuild(&bus).await.unwrap();
        assert_eq!(world.counters().await, right);
        assert_eq!(world.event(50).await["title"], "한강의 밤");
        bus.close().await;
    }

    /// A topic keeps its messages for a week; the counters are of years.
    async fn a_rebuild_loses_nothing_that_the_bus_has_forgotten(world: World) {
        let (_folder, bus) = bus(&world).await;
        let events = history();
        publish(&bus, &events[events.len() / 2..]).await;
        world.consume_all(&events).await;
        let before = world.counters().await;
        world.stats.rebuild(&bus).await.unwrap();
        assert_eq!(world.counters().await, before);
        bus.close().await;
    }

    async fn a_message_that_cannot_be_read_does_not_stop_a_rebuild(world: World) {
        let (_folder, bus) = bus(&world).await;
        publish(&bus, &history()).await;
        let mut broken = Booking::new(90, 50).created(now());
        broken.data["totalAmount"] = "much".into();
        publish(&bus, &[broken]).await;
        let garbage = BusMessage::new("payment-events", "k", b"\xff".to_vec());
        bus.publish_one(garbage).await.unwrap();
        let rebuilt = world.stats.rebuild(&bus).await.unwrap();
        assert_eq!(rebuilt.unreadable, 2);
        assert_eq!(world.data("overview").await["totalReservations"], 20);
        bus.close().await;
    }

    /// Sales go on while an operator counts again: at every place where it can stand, what is announced
    /// is neither lost nor counted twice.
    async fn a_message_during_a_rebuild_is_counted_once(world: World) {
        let (_folder, bus) = bus(&world).await;
        let (events, late) = early_and_late();
        world.consume_all(&events).await;
        world.consume_all(&late).await;
        let right = world.counters().await;
        let mut places = 0;
        loop {
            world.delete_everything().await;
            world.consume_all(&events).await;
            let mut rebuilding = pin!(world.stats.rebuild(&bus));
            if poll_times(rebuilding.as_mut(), places).await.is_some() {
                break;
            }
            world.consume_all(&late).await;
            rebuilding.await.unwrap();
            assert_eq!(world.counters().await, right, "after {places} steps");
            places += 1;
        }
        assert!(places > 14, "a step for each kind of facts at least: {places}");
        bus.close().await;
    }

    async fn a_rebuild_that_was_broken_off_is_begun_anew(world: World) {
        let (_folder, bus) = bus(&world).await;
        let (events, late) = early_and_late();
        world.consume_all(&events).await;
        world.consume_all(&late).await;
        let right = world.counters().await;
        let mut wrong = 0;
        for steps in [8, 12, 16, 20, 24, 28] {
            world.delete_everything().await;
            world.consume_all(&events).await;
            {
                let rebuilding = pin!(world.stats.rebuild(&bus));
                assert!(poll_times(rebuilding, steps).await.is_none_or(|done| done.is_ok()));
            }
            world.consume_all(&late).await;
            wrong += usize::from(world.counters().await != right);
            world.stats.rebuild(&bus).await.unwrap();
            assert_eq!(world.counters().await, right, "after {steps} steps");
        }
        assert!(wrong > 0, "the control: some were broken off in the middle");
        bus.close().await;
    }

    async fn incomplete_counters_say_so_until_they_are_complete(world: World) {
        let (_folder, bus) = bus(&world).await;
        let events = history();
        world.consume_all(&events).await;
        let is_rebuilding = async || {
            let (_, overview) = world.get_as(Some(UserRole::Admin), "overview").await;
            let (_, activity) = world.get_as(Some(UserRole::Admin), "activity").await;
            assert_eq!(overview["rebuilding"], activity["rebuilding"]);
            overview["rebuilding"].as_bool().unwrap()
        };
        assert!(!is_rebuilding().await);
        let right = world.data("overview").await;
        let mut steps = 0;
        // Broken off as soon as there is something to be seen of it.
        while !is_rebuilding().await {
            steps += 1;
            let rebuilding = pin!(world.stats.rebuild(&bus));
            assert!(poll_times(rebuilding, steps).await.is_none(), "it was over unseen");
        }
        world.stats.rebuild(&bus).await.unwrap();
        assert!(!is_rebuilding().await);
        assert_eq!(world.data("overview").await, right);
        bus.close().await;
    }

    async fn two_rebuilds_at_once_do_not_count_twice(world: World) {
        let (_folder, bus) = bus(&world).await;
        let events = history();
        publish(&bus, &events).await;
        world.consume_all(&events).await;
        let right = world.counters().await;
        let one = || {
            let (stats, bus) = (world.stats.clone(), bus.clone());
            tokio::spawn(async move { stats.rebuild(&bus).await })
        };
        let (first, second) = (one(), one());
        let outcomes = [first.await.unwrap(), second.await.unwrap()];
        for outcome in &outcomes {
            assert!(matches!(outcome, Ok(_) | Err(RebuildError::Overtaken)), "{outcome:?}");
        }
        assert!(outcomes.iter().any(Result::is_ok));
        assert_eq!(world.counters().await, right);
        world.consume_all(&Booking::new(300, 50).sold(now() + MINUTE)).await;
        assert_ne!(world.counters().await, right, "and it goes on counting");
        bus.close().await;
    }
}
