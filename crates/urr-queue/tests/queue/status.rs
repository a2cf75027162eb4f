//! Polling one's place.

use std::collections::HashSet;

use serde_json::{Value, json};
use urr_kernel::Uuid;

use crate::contract;
use crate::fixture::{HOUR, MINUTE, SECOND};

fn next_poll_ms(told: &Value) -> u128 {
    std::time::Duration::from_secs_f64(told["nextPoll"].as_f64().unwrap()).as_millis()
}

contract! {
    /// P-7: in the original every poll of someone who was in signed a new token.
    async fn p_7_polls_repeat_the_same_token_for_a_minute(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        fan.check(event).await.ok();
        let first = fan.status(event).await;
        assert_eq!(first.headers["cache-control"], "no-store", "a token is a credential");
        let token = first.ok()["entryToken"].clone();
        world.clock.advance(59 * SECOND);
        assert_eq!(fan.status(event).await.ok()["entryToken"], token);
        fan.poll(event, &first).await.is_unchanged();
        world.clock.advance(SECOND);
        let renewed = fan.poll(event, &first).await;
        assert_ne!(renewed.ok()["entryToken"], token);
        let (old, new) = (world.read_token(&first.ok()), world.read_token(&renewed.ok()));
        assert_eq!(old.id, new.id, "it is the same slot");
        assert_eq!(new.expires_at, world.clock.now() + 10 * MINUTE);
    }

    async fn a_poll_answers_something_only_if_something_is_new(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 3).await;
        let known = fans[2].status(event).await;
        assert_eq!(known.headers["cache-control"], "private, no-cache");
        fans[2].poll(event, &known).await.is_unchanged();
        world.come(event, 5).await;
        fans[2].poll(event, &known).await.is_unchanged();
        fans[1].leave(event).await.ok();
        let moved = fans[2].poll(event, &known).await;
        assert_eq!(moved.ok()["position"], json!(1));
        fans[2].poll(event, &moved).await.is_unchanged();
        world.set_room(event, "message = '곧 시작합니다'").await;
        let told = fans[2].poll(event, &moved).await;
        assert_eq!(told.ok()["message"], json!("곧 시작합니다"));
        fans[0].leave(event).await.ok();
        world.queue.admit(event).await;
        assert_eq!(fans[2].poll(event, &told).await.ok()["status"], json!("active"));
    }

    /// Also while there is no estimate that would change with it.
    async fn a_new_position_is_always_news(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let fans = world.come(event, 2).await;
        let known = fans[1].status(event).await;
        fans[1].poll(event, &known).await.is_unchanged();
        fans[0].leave(event).await.ok();
        assert_eq!(fans[1].poll(event, &known).await.ok()["position"], json!(1));
    }

    async fn who_has_no_place_is_told_so(world: World) {
        let event = world.open_event().await;
        let told = world.fan().status(event).await.ok();
        assert_eq!((&told["status"], &told["queued"]), (&json!("not_in_queue"), &json!(false)));
        assert_eq!(told["message"], json!("Not in queue"));
        world.fan().status(Uuid::from_u128(404)).await.refused(404, "EVENT_NOT_FOUND");
    }

    async fn those_who_wait_for_something_that_has_ended_are_told_so(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 2).await;
        world.hear("EVENT_CANCELLED", json!({"eventId": event, "revision": 2})).await;
        for fan in &fans {
            let told = fan.status(event).await.ok();
            assert_eq!((&told["status"], &told["phase"]), (&json!("ended"), &json!("cancelled")));
            assert_eq!(told["entryToken"], json!(null));
            let heartbeat = fan.post(&format!("/api/queue/heartbeat/{event}")).await.ok();
            assert_eq!(heartbeat["status"], json!("not_in_queue"));
        }
        let now = world.clock.now();
        let event = world.event_with(json!({"saleEndsAt": now + HOUR})).await;
        let fan = &world.come(event, 1).await[0];
        let known = fan.status(event).await;
        world.clock.advance(HOUR);
        let told = fan.poll(event, &known).await.ok();
        assert_eq!((&told["status"], &told["phase"]), (&json!("ended"), &json!("over")));
    }

    async fn polls_are_spread(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let mut pauses = HashSet::new();
        for fan in world.come(event, 40).await {
            let pause = next_poll_ms(&fan.status(event).await.ok());
            assert!((1_000..=1_400).contains(&pause), "{pause} ms at the front of the line");
            pauses.insert(pause);
        }
        assert!(pauses.len() > 20, "those who came together ask together: {pauses:?}");
    }

    async fn those_who_gather_know_when_it_opens(world: World) {
        let opens_at = world.clock.now() + 30 * MINUTE;
        let event = world.event_with(json!({"saleStartsAt": opens_at})).await;
        let fan = &world.come(event, 2).await[1];
        let known = fan.status(event).await;
        let told = known.ok();
        assert_eq!((&told["phase"], &told["opensAt"]), (&json!("gathering"), &json!(opens_at)));
        assert_eq!((&told["position"], &told["text"]), (&json!(2), &json!(null)));
        assert!(told["estimatedWait"].as_u64().unwrap() > 30 * 60);
        world.clock.advance(MINUTE);
        fan.poll(event, &known).await.is_unchanged();
    }

    /// While people gather for a lottery there is no order: who comes early has no better place.
    async fn before_a_draw_nobody_has_a_position(world: World) {
        let opens_at = world.clock.now() + 30 * MINUTE;
        let event = world.event_with(json!({"saleStartsAt": opens_at})).await;
        world.set_room(event, "opening = 'lottery'").await;
        let fan = &world.come(event, 3).await[1];
        let told = fan.status(event).await.ok();
        assert_eq!((&told["position"], &told["number"]), (&json!(null), &json!(2)));
        assert_eq!((&told["peopleAhead"], &told["estimatedWait"]), (&json!(null), &json!(null)));
        assert!(told.as_object().unwrap().contains_key("position"), "it is said that there is none");
        assert_eq!(told["estimatedWaitRange"]["from"], json!(30 * 60));
        assert!(told["text"].as_str().unwrap().contains("drawn"), "{told}");
        world.clock.advance(30 * MINUTE);
        let told = fan.status(event).await.ok();
        assert_eq!((&told["phase"], &told["position"]), (&json!("drawing"), &json!(null)));
        world.queue.admit(event).await;
        assert_eq!(fan.status(event).await.ok()["status"], "queued", "nobody is let in meanwhile");
    }

    async fn sold_out_is_told_at_once_and_nobody_is_let_in(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 2").await;
        let fans = world.come(event, 3).await;
        let known = fans[2].status(event).await;
        assert_eq!(known.ok()["soldOut"], json!(false));
        world.ticket.set_left(event, 0, 1);
        world.queue.refresh_health().await;
        fans[2].poll(event, &known).await.is_unchanged();
        world.ticket.set_left(event, 0, 0);
        world.queue.refresh_health().await;
        let told = fans[2].poll(event, &known).await.ok();
        assert_eq!((&told["soldOut"], &told["estimatedWait"]), (&json!(true), &json!(null)));
        assert!(next_poll_ms(&told) >= 60_000, "{told}");
        fans[0].leave(event).await.ok();
        world.queue.admit(event).await;
        assert_eq!(fans[2].status(event).await.ok()["status"], "queued");
        // Someone gives their seat back.
        world.ticket.set_left(event, 1, 0);
        world.queue.refresh_health().await;
        world.queue.admit(event).await;
        assert_eq!(fans[2].status(event).await.ok()["status"], "active");
    }

    async fn a_silent_office_is_believed_for_five_minutes_that_all_is_sold(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let fan = &world.come(event, 1).await[0];
        world.ticket.set_left(event, 0, 0);
        world.queue.refresh_health().await;
        world.ticket.fail(true);
        world.clock.advance(5 * MINUTE - SECOND);
        world.queue.refresh_health().await;
        assert_eq!(fan.status(event).await.ok()["soldOut"], json!(true));
        world.clock.advance(SECOND);
        world.queue.refresh_health().await;
        assert_eq!(fan.status(event).await.ok()["soldOut"], json!(false));
        assert!(world.metrics.text().contains("urr_queue_ticket_unavailable_total 2"));
    }

    async fn a_heartbeat_says_only_whether_one_is_there(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 2).await;
        let path = format!("/api/queue/heartbeat/{event}");
        let told = [
            (&fans[0], json!({"status": "active", "queued": false})),
            (&fans[1], json!({"status": "queued", "queued": true})),
            (&world.fan(), json!({"status": "not_in_queue", "queued": false})),
        ];
        for (fan, expected) in told {
            assert_eq!(fan.post(&path).await.ok(), expected);
        }
        // It keeps the slot: without it the slot would end after ten minutes.
        world.clock.advance(9 * MINUTE);
        fans[0].post(&path).await.ok();
        world.clock.advance(9 * MINUTE);
        assert_eq!(fans[0].status(event).await.ok()["status"], "active");
    }

    /// Until someone came, an empty room used to forget it, and let them in for nothing.
    async fn that_all_is_sold_stays_known_while_nobody_is_there(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        fan.check(event).await.ok();
        world.ticket.set_left(event, 0, 0);
        world.queue.refresh_health().await;
        fan.leave(event).await.ok();
        let before = world.ticket.asked_for(event);
        for _ in 0..60 {
            world.clock.advance(10 * SECOND);
            world.queue.refresh_health().await;
        }
        let asked = world.ticket.asked_for(event) - before;
        assert!((20..=30).contains(&asked), "it is asked for now and then: {asked}");
        let told = world.fan().check(event).await.ok();
        assert_eq!((&told["status"], &told["soldOut"]), (&json!("queued"), &json!(true)));
        world.ticket.set_left(event, 1, 0);
        world.queue.refresh_health().await;
        world.queue.admit(event).await;
        assert_eq!(world.fan().check(event).await.ok()["status"], "active", "it was denied");
    }

    async fn what_someone_looks_at_is_asked_for_before_they_come(world: World) {
        let (seen, unseen) = (world.open_event().await, world.open_event().await);
        for event in [seen, unseen] {
            world.ticket.set_left(event, 0, 0);
        }
        world.fan().get(&format!("/api/queue/crowd/{seen}"), &[]).await.ok();
        world.queue.refresh_health().await;
        assert_eq!(world.fan().check(seen).await.ok()["status"], "queued");
        assert_eq!(world.fan().check(unseen).await.ok()["status"], "active", "nobody has asked");
    }
}
