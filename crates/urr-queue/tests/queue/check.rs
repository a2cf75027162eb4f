//! Asking for a place.

use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use serde_json::json;
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_queue::QueueSettings;
use urr_service::Caller;

use crate::contract;
use crate::fixture::{Answer, HOUR, MINUTE, SECOND};

const ENDPOINTS: [(&str, &str); 5] = [
    ("POST", "/api/queue/check"),
    ("GET", "/api/queue/status"),
    ("POST", "/api/queue/heartbeat"),
    ("GET", "/api/queue/stream"),
    ("POST", "/api/queue/leave"),
];

contract! {
    async fn who_finds_room_is_let_in_with_a_token_of_their_own(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let told = fan.check(event).await.ok();
        assert_eq!((&told["status"], &told["queued"]), (&json!("active"), &json!(false)));
        assert_eq!((&told["currentUsers"], &told["threshold"]), (&json!(1), &json!(1_000)));
        assert_eq!(told["eventInfo"], json!({"title": "한강의 밤", "artist": "물결"}));
        let now = world.clock.now();
        assert_eq!(told["slotEndsAt"], json!(now + 10 * MINUTE));
        assert_eq!(told["slotLastEnd"], json!(now + 30 * MINUTE));
        let token = world.read_token(&told);
        assert_eq!((token.subject.clone(), token.claims.user_id), (event.to_string(), fan.id));
        assert_eq!(token.expires_at, now + 10 * MINUTE);
        assert!(world.is_live(event, fan.id, token.id).await, "it names the slot");
    }

    async fn who_finds_it_full_gets_a_place_in_line(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        world.come(event, 1).await;
        let told = world.fan().check(event).await.ok();
        assert_eq!((&told["status"], &told["queued"]), (&json!("queued"), &json!(true)));
        assert_eq!((&told["position"], &told["number"]), (&json!(1), &json!(1)));
        assert_eq!((&told["peopleAhead"], &told["peopleBehind"]), (&json!(0), &json!(0)));
        assert_eq!((&told["currentUsers"], &told["queueSize"]), (&json!(1), &json!(1)));
        assert_eq!((&told["threshold"], &told["phase"]), (&json!(1), &json!("open")));
        assert_eq!((&told["soldOut"], &told["entryToken"]), (&json!(false), &json!(null)));
        let wait = (&told["estimatedWait"], &told["estimatedWaitRange"]);
        assert_eq!(wait, (&json!(null), &json!(null)), "nobody has left the room");
        let next = world.fan().check(event).await.ok();
        assert_eq!((&next["position"], &next["peopleAhead"]), (&json!(2), &json!(1)));
    }

    async fn asking_again_changes_nothing(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let (inside, waiting) = (world.fan(), world.fan());
        let first = inside.check(event).await.ok();
        assert_eq!(inside.check(event).await.ok()["entryToken"], first["entryToken"]);
        let first = waiting.check(event).await.ok();
        world.come(event, 2).await;
        let again = waiting.check(event).await.ok();
        assert_eq!((&again["number"], &again["position"]), (&first["number"], &json!(1)));
        assert_eq!(again["queueSize"], json!(3));
    }

    /// D-4: the original took the place from a parameter.
    async fn d_4_nothing_that_is_sent_decides_the_place(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        world.come(event, 3).await;
        let (fan, path) = (world.fan(), format!("/api/queue/check/{event}?vwrPosition=0&position=1"));
        let request = Request::post(path)
            .header("content-type", "application/json")
            .header("x-vwr-position", "0")
            .header("x-forwarded-for", "10.0.0.1")
            .body(Body::from(json!({"vwrPosition": 0, "position": 1, "number": -5}).to_string()));
        let told = fan.send(request.unwrap()).await.ok();
        assert_eq!((&told["position"], &told["number"]), (&json!(3), &json!(3)));
    }

    /// D-9: in the original anybody could collect as many places as they liked.
    async fn d_9_nobody_without_an_account_has_a_place_and_nobody_has_two(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        world.come(event, 1).await;
        for (method, path) in ENDPOINTS {
            let request = Request::builder().method(method).uri(format!("{path}/{event}"));
            let mut request = request.body(Body::empty()).unwrap();
            request.extensions_mut().insert(Caller::Gateway);
            let answer = world.router.clone().oneshot(request).await.unwrap();
            Answer::of(answer).await.refused(401, "AUTHENTICATION_REQUIRED");
        }
        let fan = world.fan();
        for _ in 0..5 {
            assert_eq!(fan.check(event).await.ok()["queueSize"], json!(1));
        }
    }

    /// D-13: a token in a cookie can be read by every script of the page.
    async fn d_13_no_answer_sets_a_cookie(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        for (method, path) in ENDPOINTS.into_iter().filter(|(_, path)| !path.ends_with("stream")) {
            let request = Request::builder().method(method).uri(format!("{path}/{event}"));
            let answer = fan.send(request.body(Body::empty()).unwrap()).await;
            answer.ok();
            assert!(!answer.headers.contains_key("set-cookie"), "{path}");
            assert!(answer.headers.contains_key("x-request-id"), "headers are seen here");
        }
    }

    /// P-1: in the original every check asked the catalogue, and Redis up to six times.
    async fn p_1_a_check_or_poll_makes_no_statement_and_calls_nobody(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        world.come(event, 1).await;
        let fan = world.fan();
        world.close_database().await;
        assert!(world.queue.load().await.is_err(), "a statement would fail");
        fan.check(event).await.ok();
        fan.status(event).await.ok();
        fan.post(&format!("/api/queue/heartbeat/{event}")).await.ok();
        fan.get(&format!("/api/queue/crowd/{event}"), &[]).await.ok();
        fan.leave(event).await.ok();
        assert_eq!(world.ticket.calls(), (0, 0));
    }

    /// Event ids begin with their time, so a new one whose room is not projected yet is told apart
    /// from one that never was.
    async fn an_event_that_was_just_created_is_not_ready_and_an_old_or_forged_id_is_unknown(world: World) {
        let fan = world.fan();
        let event = world.ids.next_id();
        let refused = fan.check(event).await;
        assert_eq!(refused.headers["retry-after"], "1");
        refused.refused(409, "ROOM_NOT_READY");
        let crowd = fan.get(&format!("/api/queue/crowd/{event}"), &[]).await;
        assert!(crowd.status == 204 && crowd.bytes.is_empty(), "no document yet, and no error");
        for path in ["status", "stream", "draw"] {
            let path = format!("/api/queue/{path}/{event}");
            fan.get(&path, &[]).await.refused(409, "ROOM_NOT_READY");
        }
        world.clock.advance(MINUTE);
        fan.check(event).await.refused(409, "ROOM_NOT_READY");
        world.hear("EVENT_CREATED", world.facts(event, 1)).await;
        fan.check(event).await.ok();

        let never = world.ids.next_id();
        world.clock.advance(MINUTE + SECOND);
        fan.check(never).await.refused(404, "EVENT_NOT_FOUND");
        fan.get(&format!("/api/queue/draw/{never}"), &[]).await.refused(404, "EVENT_NOT_FOUND");
        let now = world.ids.next_id().as_u128();
        let other_version = Uuid::from_u128(now & !(0xf << 76) | 4 << 76);
        let from_the_future = Uuid::from_u128(now + (61_000 << 80));
        for forged in [other_version, from_the_future] {
            fan.check(forged).await.refused(404, "EVENT_NOT_FOUND");
        }
    }

    async fn events_without_a_sale_are_refused(world: World) {
        let fan = world.fan();
        fan.check(Uuid::from_u128(404)).await.refused(404, "EVENT_NOT_FOUND");
        let now = world.clock.now();
        let early = json!({"saleStartsAt": now + 2 * HOUR});
        let early = world.event_with(early).await;
        let refused = fan.check(early).await.refused(409, "SALE_NOT_OPEN");
        assert_eq!(refused["opensAt"], json!(now + HOUR), "people gather an hour before");
        let over = json!({"saleStartsAt": now - 2 * HOUR, "saleEndsAt": now});
        let over = world.event_with(over).await;
        fan.check(over).await.refused(409, "SALE_ENDED");
        let cancelled = world.open_event().await;
        world.hear("EVENT_CANCELLED", json!({"eventId": cancelled, "revision": 2})).await;
        fan.check(cancelled).await.refused(409, "EVENT_CANCELLED");
        let deleted = world.open_event().await;
        let data = json!({"eventId": deleted, "revision": 2, "isOver": false});
        world.hear("EVENT_DELETED", data).await;
        fan.check(deleted).await.refused(404, "EVENT_NOT_FOUND");
        let path = "/api/queue/check/not-an-id";
        assert_eq!(fan.post(path).await.status.as_u16(), 400);
    }

    async fn the_sale_begins_and_ends_at_its_very_moments(world: World) {
        let now = world.clock.now();
        let times = json!({"saleStartsAt": now + HOUR, "saleEndsAt": now + 2 * HOUR});
        let event = world.event_with(times).await;
        let fan = world.fan();
        let told = fan.check(event).await.ok();
        assert_eq!((&told["status"], &told["phase"]), (&json!("queued"), &json!("gathering")));
        world.clock.advance(HOUR - SECOND);
        world.queue.admit(event).await;
        assert_eq!(fan.check(event).await.ok()["status"], "queued");
        world.clock.advance(SECOND);
        world.queue.admit(event).await;
        assert_eq!(fan.check(event).await.ok()["status"], "active");
        world.clock.advance(HOUR - SECOND);
        assert_eq!(world.fan().check(event).await.ok()["status"], "active");
        world.clock.advance(SECOND);
        world.fan().check(event).await.refused(409, "SALE_ENDED");
    }

    async fn nobody_waits_for_more_events_than_they_may(world: World) {
        let fan = world.fan();
        let mut events = Vec::new();
        for _ in 0..4 {
            let event = world.open_event().await;
            world.set_room(event, "is_paused = true").await;
            events.push(event);
        }
        for event in &events[..3] {
            fan.check(*event).await.ok();
        }
        fan.check(events[3]).await.refused(409, "TOO_MANY_QUEUES");
        fan.check(events[0]).await.ok();
        fan.leave(events[0]).await.ok();
        fan.check(events[3]).await.ok();
    }

    async fn a_full_room_says_when_to_come_back(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let small = world.another(QueueSettings { waiting_max: 2, ..QueueSettings::default() });
        small.load().await.unwrap();
        for _ in 0..2 {
            world.at(&small, &world.fan()).check(event).await.ok();
        }
        let answer = world.at(&small, &world.fan()).check(event).await;
        answer.refused(503, "QUEUE_FULL");
        assert_eq!(answer.headers["retry-after"], "30");
    }

    async fn a_process_that_has_read_nothing_yet_refuses_nobody_for_good(world: World) {
        let event = world.open_event().await;
        let fresh = world.another(QueueSettings::default());
        let fan = world.at(&fresh, &world.fan());
        let answer = fan.check(event).await;
        answer.refused(503, "QUEUE_UNAVAILABLE");
        assert!(answer.headers.contains_key("retry-after"));
        fresh.load().await.unwrap();
        fan.check(event).await.ok();
        fan.check(Uuid::from_u128(404)).await.refused(404, "EVENT_NOT_FOUND");
    }

    async fn nobody_is_let_in_while_it_is_paused(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let fan = world.fan();
        let told = fan.check(event).await.ok();
        assert_eq!((&told["status"], &told["phase"]), (&json!("queued"), &json!("paused")));
        assert_eq!(told["estimatedWait"], json!(null), "nobody knows");
        assert!(told["text"].as_str().unwrap().contains("kept"), "{told}");
        world.queue.admit(event).await;
        assert_eq!(fan.status(event).await.ok()["status"], "queued");
        world.set_room(event, "is_paused = false").await;
        world.queue.admit(event).await;
        assert_eq!(fan.status(event).await.ok()["status"], "active");
    }

    /// in the original a burst of first checks all got in.
    async fn r_1_a_burst_lets_in_no_more_than_may_be_in(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 20").await;
        let fans: Vec<_> = (0..300).map(|_| world.fan()).collect();
        let told = join_all(fans.iter().map(|fan| fan.check(event))).await;
        let active = told.iter().filter(|told| told.ok()["status"] == "active").count();
        assert_eq!(active, 20);
        let mut positions: Vec<u64> =
            told.iter().filter_map(|told| told.ok()["position"].as_u64()).collect();
        positions.sort_unstable();
        assert_eq!(positions, (1..=280).collect::<Vec<u64>>());
    }

    /// A sale that is put off sends nobody home who has come.
    async fn who_has_a_place_keeps_it_when_the_sale_is_put_off(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let fan = &world.come(event, 1).await[0];
        let mut facts = world.facts(event, 2);
        facts["saleStartsAt"] = json!(world.clock.now() + 3 * HOUR);
        world.hear("EVENT_UPDATED", facts).await;
        let told = fan.check(event).await.ok();
        assert_eq!((&told["position"], &told["phase"]), (&json!(1), &json!("gathering")));
        world.fan().check(event).await.refused(409, "SALE_NOT_OPEN");
    }
}
