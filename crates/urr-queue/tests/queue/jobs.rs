//! What is done from time to time.

use futures_util::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use urr_queue::Settings;
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
        world.wish(event, "threshold = 2").await;
        let fans = world.come(event, 6).await;
        fans[0].leave(event).await.ok();
        fans[1].leave(event).await.ok();
        world.clock.advance(SECOND);
        world.queue.admit(event).await;
        world.queue.admit(event).await;
        assert_eq!(active(&fans[2..], event).await, [true, true, false, false]);
        let text = world.metrics.text();
        assert!(text.contains("urr_queue_admitted_total{way=\"at_once\"} 2"), "{text}");
        assert!(text.contains("urr_queue_admitted_total{way=\"from_line\"} 2"), "{text}");
    }

    /// in the original every replica let in a hundred a second.
    async fn r_8_several_processes_together_let_in_no_more_than_one(world: World) {
        let event = world.open_event().await;
        world.wish(event, "is_paused = true, admitted_per_second_max = 5").await;
        let fans = world.come(event, 30).await;
        world.wish(event, "is_paused = false").await;
        let others = [world.another(Settings::default()), world.another(Settings::default())];
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
        world.wish(event, "is_paused = true").await;
        let fans = world.come(event, 3).await;
        world.clock.advance(6 * MINUTE);
        fans[1].status(event).await.ok();
        world.clock.advance(4 * MINUTE - SECOND);
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
            world.wish(event, "is_paused = true").await;
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
        world.wish(event, "is_paused = true").await;
        let fan = &world.come(event, 1).await[0];
        let stranger = world.another(Settings::default());
        world.clock.advance(HOUR);
        stranger.admit(event).await;
        stranger.sweep(event).await;
        assert_eq!(fan.status(event).await.ok()["position"], json!(1));
    }

    async fn one_call_tells_what_is_left_of_all_events_and_none_is_made_for_empty_rooms(
        world: World
    ) {
        world.queue.look_around().await;
        let before = world.office.calls().1;
        let events = [world.open_event().await, world.open_event().await];
        for event in events {
            world.wish(event, "is_paused = true").await;
            world.come(event, 3).await;
            world.office.set_left(event, 0, 0);
        }
        world.queue.look_around().await;
        assert_eq!(world.office.calls().1, before + 1);
        for event in events {
            assert_eq!(world.fan().check(event).await.ok()["soldOut"], json!(true));
            let line = format!("urr_queue_waiting{{event=\"{event}\"}} 3\n");
            assert!(world.metrics.text().contains(&line));
        }
        world.wish(events[0], "is_paused = false").await;
        world.office.set_left(events[0], 5, 0);
        world.clock.advance(SECOND);
        world.queue.look_around().await;
        let text = world.metrics.text();
        let wait = |event| format!("urr_queue_estimated_wait_seconds{{event=\"{event}\"}}");
        assert!(text.contains(&wait(events[0])), "{text}");
        assert!(!text.contains(&wait(events[1])), "nobody is let in there: {text}");
    }

    /// The whole: who waits is let in, who has bought makes room, and a change of the organiser is
    /// followed, without anybody asking for it.
    async fn the_jobs_run_by_themselves_until_they_are_told_to_stop(world: World) {
        let event = world.open_event().await;
        world.wish(event, "threshold = 1").await;
        let fans = world.come(event, 2).await;
        let stop = CancellationToken::new();
        let (queue, stopped) = (world.queue.clone(), stop.clone());
        let jobs = tokio::spawn(async move { queue.run_jobs(stopped).await });
        let bought = json!({
            "reservationId": world.ids.next_id(), "userId": fans[0].id, "eventId": event,
        });
        world.clock.advance(SECOND);
        world.deliver("RESERVATION_CONFIRMED", bought).await.unwrap();
        eventually("the next one is let in", async || {
            (fans[1].status(event).await.ok()["status"] == "active").then_some(())
        })
        .await;
        stop.cancel();
        jobs.await.unwrap();
    }
}
