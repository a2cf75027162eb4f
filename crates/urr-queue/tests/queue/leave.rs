//! Leaving the line or the sale.

use serde_json::json;
use urr_kernel::Uuid;

use crate::contract;
use crate::fixture::MINUTE;

contract! {
    async fn who_leaves_the_line_makes_room_for_those_behind(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 4).await;
        let left = fans[2].leave(event).await.ok();
        assert_eq!(left, json!({"message": "Left queue", "left": true}));
        assert_eq!(fans[3].status(event).await.ok()["position"], json!(2));
        assert_eq!(fans[2].status(event).await.ok()["status"], json!("not_in_queue"));
        assert_eq!(fans[2].leave(event).await.ok()["left"], json!(false), "once more is no harm");
    }

    async fn who_leaves_comes_back_behind_the_others(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 4).await;
        fans[1].leave(event).await.ok();
        let again = fans[1].check(event).await.ok();
        assert_eq!((&again["position"], &again["number"]), (&json!(3), &json!(4)));
    }

    /// in the original the token went on working after its owner had left.
    async fn r_2_a_slot_that_was_left_is_dead_and_so_is_its_token(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let first = world.read_token(&fan.check(event).await.ok()).id;
        assert!(world.is_live(event, fan.id, first).await);
        fan.leave(event).await.ok();
        assert!(!world.is_live(event, fan.id, first).await);
        let second = world.read_token(&fan.check(event).await.ok()).id;
        assert_ne!(first, second);
        assert!(world.is_live(event, fan.id, second).await);
        assert!(!world.is_live(event, fan.id, first).await, "an older token stays dead");
    }

    /// in the original polling kept a slot alive for ever.
    async fn r_2_a_slot_ends_unless_its_owner_is_seen_and_at_last_whatever_they_do(world: World) {
        let event = world.open_event().await;
        let (silent, busy) = (world.fan(), world.fan());
        let silent_slot = world.read_token(&silent.check(event).await.ok()).id;
        let busy_slot = world.read_token(&busy.check(event).await.ok()).id;
        for _ in 0..5 {
            world.clock.advance(5 * MINUTE);
            busy.status(event).await.ok();
        }
        assert!(!world.is_live(event, silent.id, silent_slot).await);
        assert!(world.is_live(event, busy.id, busy_slot).await);
        let told = busy.status(event).await.ok();
        assert_eq!(told["slotEndsAt"], told["slotLastEnd"], "it slides no farther");
        let token = world.read_token(&told);
        assert_eq!(token.expires_at, world.clock.now() + 5 * MINUTE, "nor does the token");
        world.clock.advance(5 * MINUTE);
        assert!(!world.is_live(event, busy.id, busy_slot).await);
        assert_eq!(busy.status(event).await.ok()["status"], json!("not_in_queue"));
    }

    async fn there_is_nothing_to_leave_at_an_event_that_is_not_known(world: World) {
        world.fan().leave(Uuid::from_u128(404)).await.refused(404, "EVENT_NOT_FOUND");
    }

    /// A user who waits for as many events as allowed can list them.
    async fn everybody_can_see_their_own_lines_and_nobody_elses(world: World) {
        let (waiting, inside, other) =
            (world.open_event().await, world.open_event().await, world.open_event().await);
        world.set_room(waiting, "is_paused = true").await;
        world.come(waiting, 1).await;
        world.come(other, 1).await;
        let fan = world.fan();
        fan.check(waiting).await.ok();
        fan.check(inside).await.ok();
        let mine = async || {
            let answer = fan.get("/api/queue/mine", &[]).await.ok();
            let mut mine = answer.as_array().unwrap().clone();
            mine.sort_by_key(|place| place["status"].as_str().unwrap().to_owned());
            mine
        };
        let title = "한강의 밤";
        let active = json!({
            "eventId": inside, "title": title, "status": "active", "position": null,
        });
        let queued = json!({
            "eventId": waiting, "title": title, "status": "queued", "position": 2,
        });
        assert_eq!(mine().await, [active.clone(), queued]);
        fan.leave(waiting).await.ok();
        assert_eq!(mine().await, std::slice::from_ref(&active));
        // Also when nobody has come for long: then the jobs know who is there.
        world.clock.advance(3 * MINUTE);
        assert_eq!(mine().await, [] as [serde_json::Value; 0]);
        world.queue.refresh_health().await;
        assert_eq!(mine().await, [active]);
    }
}
