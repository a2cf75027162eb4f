//! Following one's place.

use serde_json::json;
use urr_queue::QueueSettings;
use urr_room::{AdmissionRules, AdmissionState, RoomRequest};

use crate::contract;
use crate::fixture::MINUTE;

contract! {
    async fn a_stream_tells_what_is_new_until_there_is_nothing_to_follow(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 3).await;
        let mut places = fans[2].follow(event, "").await;
        assert_eq!(places.next().await.unwrap()["position"], json!(2));
        fans[1].leave(event).await.ok();
        let moved = places.next().await.unwrap();
        assert_eq!((&moved["status"], &moved["position"]), (&json!("queued"), &json!(1)));
        fans[0].leave(event).await.ok();
        world.queue.admit(event).await;
        let admitted = places.next().await.unwrap();
        assert_eq!(admitted["status"], json!("active"));
        assert_eq!(world.read_token(&admitted).claims.user_id, fans[2].id);
        fans[2].leave(event).await.ok();
        assert_eq!(places.next().await.unwrap()["status"], json!("not_in_queue"));
        assert_eq!(places.next().await, None);
    }

    async fn a_stream_is_silent_while_nothing_is_new(world: World) {
        let (quiet, lively) = (world.open_event().await, world.open_event().await);
        let fan = world.fan();
        for event in [quiet, lively] {
            world.set_room(event, "is_paused = true").await;
            fan.check(event).await.ok();
        }
        let (mut still, mut moving) = (fan.follow(quiet, "").await, fan.follow(lively, "").await);
        still.next().await.unwrap();
        moving.next().await.unwrap();
        for message in ["하나", "둘", "셋"] {
            world.set_room(lively, &format!("message = '{message}'")).await;
            tokio::select! {
                told = still.next() => panic!("nothing is new: {told:?}"),
                told = moving.next() => assert_eq!(told.unwrap()["message"], json!(message)),
            }
        }
    }

    /// A user on the stream counts as seen: no polls are needed.
    async fn a_stream_keeps_the_place(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let fans = world.come(event, 2).await;
        let mut places = fans[0].follow(event, "").await;
        places.next().await.unwrap();
        for _ in 0..2 {
            world.clock.advance(4 * MINUTE);
            world.queue.sweep(event).await;
        }
        // Its next look is told because of this.
        world.set_room(event, "message = '잠시만요'").await;
        assert_eq!(places.next().await.unwrap()["message"], json!("잠시만요"));
        world.clock.advance(3 * MINUTE);
        world.queue.sweep(event).await;
        assert_eq!(fans[1].status(event).await.ok()["status"], "not_in_queue");
        assert_eq!(fans[0].status(event).await.ok()["position"], json!(1));
    }

    async fn only_the_first_follow_unless_they_ask_for_it(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        let rules = AdmissionRules {
            admission: AdmissionState::Closed,
            threshold: 1,
            admitted_per_second_max: 1,
            slot_ttl: MINUTE,
            slot_max: MINUTE,
            waiting_max: 10_000,
            queues_per_user_max: 3,
        };
        for _ in 0..999 {
            let (user_id, now) = (world.ids.next_id(), world.clock.now());
            world.rooms.check(RoomRequest { event_id: event, user_id, now }, &rules).await.unwrap();
        }
        let fans = world.come(event, 2).await;
        assert_eq!(fans[0].status(event).await.ok()["position"], json!(1_000));
        fans[0].follow(event, "").await.next().await.unwrap();
        let path = format!("/api/queue/stream/{event}");
        let refused = fans[1].get(&path, &[]).await.refused(409, "STREAM_NOT_YET");
        assert_eq!(refused["nextPoll"], json!(5));
        let place = fans[1].follow(event, "?anyway=true").await.next().await.unwrap();
        assert_eq!(place["position"], json!(1_001));
    }

    async fn nobody_follows_too_many_and_not_too_many_follow(world: World) {
        let event = world.open_event().await;
        let small = world.another(QueueSettings { streams_max: 4, ..QueueSettings::default() });
        small.load().await.unwrap();
        let fans = [world.at(&small, &world.fan()), world.at(&small, &world.fan())];
        for fan in &fans {
            fan.check(event).await.ok();
        }
        let path = format!("/api/queue/stream/{event}");
        let mut followed = Vec::new();
        for _ in 0..3 {
            followed.push(fans[0].follow(event, "").await);
        }
        fans[0].get(&path, &[]).await.refused(429, "STREAM_LIMIT");
        followed.push(fans[1].follow(event, "").await);
        let answer = fans[1].get(&path, &[]).await;
        answer.refused(503, "TOO_MANY_STREAMS");
        assert!(answer.headers.contains_key("retry-after"));
        followed.remove(0);
        fans[1].follow(event, "").await.next().await.unwrap();
    }

    async fn who_has_no_place_has_nothing_to_follow(world: World) {
        let event = world.open_event().await;
        let (fan, path) = (world.fan(), format!("/api/queue/stream/{event}"));
        fan.get(&path, &[]).await.refused(409, "NOT_IN_QUEUE");
        world.hear("EVENT_CANCELLED", json!({"eventId": event, "revision": 2})).await;
        fan.get(&path, &[]).await.refused(409, "EVENT_CANCELLED");
    }

    async fn a_process_that_ends_closes_its_streams_at_once(world: World) {
        let event = world.open_event().await;
        let fan = &world.come(event, 1).await[0];
        let mut places = fan.follow(event, "").await;
        places.next().await.unwrap();
        assert!(world.metrics.text().contains("\nurr_queue_streams 1\n"));
        world.queue.close_streams();
        assert_eq!(places.next().await, None);
        assert!(world.metrics.text().contains("\nurr_queue_streams 0\n"));
    }

    /// Or else those far behind would take the streams of those who are about to be let in.
    async fn those_far_behind_take_at_most_half_of_the_streams(world: World) {
        let opens_at = world.clock.now() + 30 * MINUTE;
        let lottery = world.event_with(json!({ "saleStartsAt": opens_at })).await;
        // Before a draw nobody is among the first.
        world.set_room(lottery, "opening = 'lottery'").await;
        let open = world.open_event().await;
        let small = world.another(QueueSettings { streams_max: 4, ..QueueSettings::default() });
        small.load().await.unwrap();
        let mut followed = Vec::new();
        for _ in 0..2 {
            let fan = world.at(&small, &world.fan());
            fan.check(lottery).await.ok();
            followed.push(fan.follow(lottery, "?anyway=true").await);
        }
        let far = world.at(&small, &world.fan());
        far.check(lottery).await.ok();
        let path = format!("/api/queue/stream/{lottery}?anyway=true");
        far.get(&path, &[]).await.refused(503, "TOO_MANY_STREAMS");
        let near = world.at(&small, &world.fan());
        near.check(open).await.ok();
        near.follow(open, "").await.next().await.unwrap();
        followed.remove(0);
        far.follow(lottery, "?anyway=true").await.next().await.unwrap();
    }
}
