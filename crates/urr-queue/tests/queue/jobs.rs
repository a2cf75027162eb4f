//! What is done from time to time.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use urr_queue::QueueSettings;
use urr_storage::StorageError;
use urr_test::eventually;

use crate::contract;
use crate::fixture::{Fan, HOUR, MINUTE, SECOND};

async fn active(fans: &[Fan], event: urr_kernel::Uuid) -> Vec<bool> {
    let mut active = Vec::new();
    for fan in fans {
        active.push(fan.status(event).await.ok()["status"] == "active");
    }
    active
}

contract! {
    async fn those_in_front_are_let_in_first_and_no_more_than_may(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 2").await;
        let fans = world.come(event, 6).await;
        fans[0].leave(event).await.ok();
        fans[1].leave(event).await.ok();
        world.clock.advance(SECOND);
        world.queue.admit(event).await;
        world.queue.admit(event).await;
        assert_eq!(active(&fans[2..], event).await, [true, true, false, false]);
        let text = world.metrics.text();
        assert!(text.contains("urr_queue_admitted_total{path=\"direct\"} 2"), "{text}");
        assert!(text.contains("urr_queue_admitted_total{path=\"from_line\"} 2"), "{text}");
    }

    /// in the original every replica let in a hundred a second.
    async fn r_8_several_processes_together_let_in_no_more_than_one(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true, admitted_per_second_max = 5").await;
        let fans = world.come(event, 30).await;
        world.set_room(event, "is_paused = false").await;
        let others = [world.another(QueueSettings::default()), world.another(QueueSettings::default())];
        for other in &others {
            other.load().await.unwrap();
        }
        for second in 1..=3 {
            let turns = others.iter().chain([&world.queue]).cycle().take(9);
            join_all(turns.map(|queue| queue.admit(event))).await;
            let let_in = active(&fans, event).await;
            let expected: Vec<bool> = (0..30).map(|index| index < 5 * second).collect();
            assert_eq!(let_in, expected);
            world.clock.advance(SECOND);
        }
    }

    async fn those_who_are_not_seen_for_ten_minutes_lose_their_place(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let fans = world.come(event, 3).await;
        world.clock.advance(4 * MINUTE);
        world.queue.sweep(event).await;
        world.clock.advance(2 * MINUTE);
        fans[1].status(event).await.ok();
        world.clock.advance(2 * MINUTE);
        world.queue.sweep(event).await;
        world.clock.advance(2 * MINUTE - SECOND);
        world.queue.sweep(event).await;
        let heartbeat = fans[2].post(&format!("/api/queue/heartbeat/{event}")).await.ok();
        assert_eq!(heartbeat["queued"], json!(true), "there is a second left");
        world.clock.advance(SECOND);
        world.queue.sweep(event).await;
        assert_eq!(fans[1].status(event).await.ok()["position"], json!(1));
        assert_eq!(fans[2].status(event).await.ok()["position"], json!(2));
        assert_eq!(fans[0].status(event).await.ok()["status"], "not_in_queue");
        assert!(world.metrics.text().contains("urr_queue_dropped_total 1\n"));
    }

    async fn a_room_is_emptied_when_its_sale_is_over_or_its_event_cancelled(world: World) {
        let ends_at = world.clock.now() + HOUR;
        let over = world.event_with(json!({"saleEndsAt": ends_at})).await;
        let cancelled = world.open_event().await;
        let going_on = world.open_event().await;
        for event in [over, cancelled, going_on] {
            world.set_room(event, "is_paused = true").await;
            world.come(event, 2).await;
        }
        world.hear("EVENT_CANCELLED", json!({"eventId": cancelled, "revision": 2})).await;
        let waiting = async || {
            let mut all = Vec::new();
            for event in [over, cancelled, going_on] {
                world.queue.admit(event).await;
                all.push(world.rooms.crowd(event, world.clock.now()).await.unwrap().waiting);
            }
            all
        };
        assert_eq!(waiting().await, [2, 0, 2]);
        world.clock.advance(HOUR);
        assert_eq!(waiting().await, [2, 0, 2], "another clock may be behind");
        world.clock.advance(10 * SECOND);
        assert_eq!(waiting().await, [0, 0, 2]);
    }

    async fn events_that_are_not_known_are_left_alone(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let fan = &world.come(event, 1).await[0];
        let stranger = world.another(QueueSettings::default());
        world.clock.advance(HOUR);
        stranger.admit(event).await;
        stranger.sweep(event).await;
        assert_eq!(fan.status(event).await.ok()["position"], json!(1));
    }

    async fn one_call_tells_what_is_left_of_all_events_and_none_is_made_for_empty_rooms(
        world: World
    ) {
        world.queue.refresh_health().await;
        let before = world.ticket.calls().1;
        let events = [world.open_event().await, world.open_event().await];
        for event in events {
            world.set_room(event, "is_paused = true").await;
            world.come(event, 3).await;
            world.ticket.set_left(event, 0, 0);
        }
        world.queue.refresh_health().await;
        assert_eq!(world.ticket.calls().1, before + 1);
        for event in events {
            assert_eq!(world.fan().check(event).await.ok()["soldOut"], json!(true));
            let line = format!("urr_queue_waiting{{event=\"{event}\"}} 3\n");
            assert!(world.metrics.text().contains(&line));
        }
        world.set_room(events[0], "is_paused = false").await;
        world.ticket.set_left(events[0], 5, 0);
        world.clock.advance(SECOND);
        world.queue.refresh_health().await;
        let text = world.metrics.text();
        let wait = |event| format!("urr_queue_estimated_wait_seconds{{event=\"{event}\"}}");
        assert!(text.contains(&wait(events[0])), "{text}");
        assert!(!text.contains(&wait(events[1])), "nobody is let in there: {text}");
    }

    /// The whole: who waits is let in, who has bought makes room, and a change of the organiser is
    /// followed, without anybody asking for it.
    async fn the_jobs_run_by_themselves_until_they_are_told_to_stop(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 2).await;
        let stop = CancellationToken::new();
        let (queue, stopped) = (world.queue.clone(), stop.clone());
        let jobs = tokio::spawn(async move { queue.run_jobs(stopped).await });
        let bought = world.purchase(event, fans[0].id);
        world.clock.advance(SECOND);
        world.deliver("RESERVATION_CONFIRMED", bought).await.unwrap();
        eventually("the next one is let in", async || {
            (fans[1].status(event).await.ok()["status"] == "active").then_some(())
        })
        .await;
        stop.cancel();
        jobs.await.unwrap();
    }

    /// It would not hear of a pause. Those who come are lined up, and others may let them in.
    async fn a_process_that_cannot_read_its_database_lets_nobody_in(world: World) {
        let event = world.open_event().await;
        world.close_database().await;
        assert!(world.queue.load().await.is_err());
        world.clock.advance(15 * SECOND - Duration::from_millis(1));
        assert_eq!(world.fan().check(event).await.ok()["status"], "active", "it may be a moment");
        world.clock.advance(Duration::from_millis(1));
        assert!(world.queue.load().await.is_err());
        let fan = world.fan();
        let told = fan.check(event).await.ok();
        assert_eq!((&told["status"], &told["position"]), (&json!("queued"), &json!(1)));
        world.clock.advance(SECOND);
        world.queue.admit(event).await;
        assert_eq!(fan.status(event).await.ok()["position"], json!(1));
    }

    async fn a_process_that_reads_again_lets_people_in_again(world: World) {
        let event = world.open_event().await;
        let change = async |sql: &'static str| {
            let changed = world.db.write(move |tx| tx.execute(sql, &[])).await;
            changed.unwrap_or_else(|error: StorageError| panic!("{error}"));
        };
        change("delete from rooms_revision").await;
        assert!(world.queue.load().await.is_err());
        world.clock.advance(MINUTE);
        let fan = world.fan();
        assert_eq!(fan.check(event).await.ok()["status"], "queued");
        change("insert into rooms_revision (id, revision) values (1, 1000)").await;
        world.queue.load().await.unwrap();
        world.queue.admit(event).await;
        assert_eq!(fan.status(event).await.ok()["status"], "active");
    }

    /// All processes share the rooms: one that has missed something must not send everybody home.
    async fn a_room_is_emptied_only_if_the_database_says_so_too(world: World) {
        let ends_at = world.clock.now() + HOUR;
        let event = world.event_with(json!({ "saleEndsAt": ends_at })).await;
        world.set_room(event, "is_paused = true").await;
        world.come(event, 2).await;
        let outdated = world.another(QueueSettings::default());
        outdated.load().await.unwrap();
        // The sale goes on for longer.
        world.hear("EVENT_UPDATED", world.facts(event, 2)).await;
        world.clock.advance(HOUR + 10 * SECOND);
        outdated.admit(event).await;
        let waiting = async || {
            world.rooms.crowd(event, world.clock.now()).await.unwrap().waiting
        };
        assert_eq!(waiting().await, 2);
        let mut facts = world.facts(event, 3);
        facts["saleEndsAt"] = json!(world.clock.now());
        world.hear("EVENT_UPDATED", facts).await;
        world.clock.advance(10 * SECOND);
        let blind = world.another(QueueSettings::default());
        blind.load().await.unwrap();
        world.close_database().await;
        blind.admit(event).await;
        assert_eq!(waiting().await, 2, "it cannot be asked");
    }

    async fn events_that_ended_long_ago_are_not_kept_in_mind_and_their_rooms_emptied(world: World) {
        let ends_at = world.clock.now() + HOUR;
        let event = world.event_with(json!({ "saleEndsAt": ends_at })).await;
        world.set_room(event, "is_paused = true").await;
        let fan = &world.come(event, 1).await[0];
        world.clock.advance(25 * HOUR - SECOND);
        // Any change makes all of it be read again.
        world.open_event().await;
        assert_eq!(fan.status(event).await.ok()["status"], "ended");
        world.clock.advance(SECOND);
        world.open_event().await;
        fan.status(event).await.refused(404, "EVENT_NOT_FOUND");
        assert_eq!(world.rooms.crowd(event, world.clock.now()).await.unwrap().waiting, 1);
        world.queue.admit(event).await;
        assert_eq!(world.rooms.crowd(event, world.clock.now()).await.unwrap().waiting, 0);
    }

    async fn more_events_than_fit_one_question_are_asked_for_in_several(world: World) {
        let mut events: Vec<_> = (0..2_500).map(|_| world.ids.next_id()).collect();
        let known = [world.open_event().await, world.open_event().await];
        events.insert(0, known[0]);
        events.push(known[1]);
        for event in known {
            world.ticket.set_left(event, 0, 0);
        }
        world.queue.refresh_sales_health(&events).await;
        assert_eq!(world.ticket.calls().1, 3);
        for event in known {
            let told = world.fan().check(event).await.ok();
            assert_eq!(told["soldOut"], json!(true));
        }
    }
}
