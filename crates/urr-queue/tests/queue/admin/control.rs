//! What a change means to those who wait and to those who are in.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;

use super::{ADMIN, Desk, TestCaller};
use crate::contract;
use crate::fixture::{Fan, SECOND, World};

/// A turn of the admission, in a second of its own.
async fn admit(world: &World, event: Uuid) {
    world.clock.advance(SECOND);
    world.queue.admit(event).await;
}

async fn status(fan: &Fan, event: Uuid) -> String {
    fan.status(event).await.ok()["status"].as_str().unwrap().to_owned()
}

contract! {
    async fn while_it_is_paused_nobody_comes_in_and_nobody_loses_anything(world: World) {
        let event = world.open_event().await;
        let early = world.come(event, 2).await;
        let admin = Desk::of(&world, TestCaller::Admin);
        let told = admin.order(event, "pause", json!({})).await.ok();
        assert_eq!(told["room"]["phase"], "paused");
        let late = world.fan();
        assert_eq!(late.check(event).await.ok()["status"], "queued");
        admit(&world, event).await;
        assert_eq!(status(&late, event).await, "queued");
        assert_eq!(status(&early[0], event).await, "active");
        // Once more changes nothing and says nothing new.
        admin.order(event, "pause", json!({})).await.ok();

        let told = admin.order(event, "resume", json!({})).await.ok();
        assert_eq!(told["room"]["phase"], "open");
        admit(&world, event).await;
        assert_eq!(status(&late, event).await, "active");
        assert_eq!(admin.actions(event).await, ["ROOM_RESUMED", "ROOM_PAUSED"]);
    }

    async fn a_higher_threshold_lets_more_in_and_a_lower_one_throws_nobody_out(world: World) {
        let event = world.open_event().await;
        let admin = Desk::of(&world, TestCaller::Admin);
        admin.patch(event, json!({ "threshold": 2 })).await.ok();
        let fans = world.come(event, 4).await;
        admin.patch(event, json!({ "threshold": 3 })).await.ok();
        admit(&world, event).await;
        assert_eq!(status(&fans[2], event).await, "active");
        assert_eq!(status(&fans[3], event).await, "queued");
        let told = admin.patch(event, json!({ "threshold": 1 })).await.ok()["room"].clone();
        assert_eq!((&told["active"], &told["available"]), (&json!(3), &json!(0)), "{told}");
        admit(&world, event).await;
        assert_eq!(status(&fans[0], event).await, "active");
        assert_eq!(status(&fans[3], event).await, "queued");
    }

    /// in the original a cleared queue left its tokens good.
    async fn clearing_ends_every_place_and_slot_and_has_to_be_meant(world: World) {
        let (event, other) = (world.open_event().await, world.open_event().await);
        let admin = Desk::of(&world, TestCaller::Admin);
        admin.patch(event, json!({ "threshold": 2 })).await.ok();
        let inside = world.fan();
        let slot = world.read_token(&inside.check(event).await.ok()).id;
        let fans = world.come(event, 4).await;
        let elsewhere = world.come(other, 1).await;
        for unmeant in [json!({}), json!({ "confirm": other }), json!({ "confirm": "yes" })] {
            let refused = admin.order(event, "clear", unmeant).await;
            let refused = refused.refused(400, "CONFIRMATION_REQUIRED");
            assert_eq!((&refused["waiting"], &refused["active"]), (&json!(3), &json!(2)));
            assert!(refused["error"].as_str().unwrap().contains(&event.to_string()));
        }
        assert!(world.is_live(event, inside.id, slot).await, "nothing was done");

        let cleared = admin.order(event, "clear", json!({ "confirm": event })).await.ok();
        assert_eq!(cleared, json!({ "eventId": event, "waiting": 3, "active": 2 }));
        assert!(!world.is_live(event, inside.id, slot).await);
        for fan in &fans {
            assert_eq!(status(fan, event).await, "not_in_queue");
        }
        let told = admin.room(event).await;
        assert_eq!((&told["waiting"], &told["active"]), (&json!(0), &json!(0)));
        assert_eq!(told["threshold"], 2, "the wishes stay");
        assert_eq!(status(&elsewhere[0], other).await, "active");
        let line = &admin.log(event).await[0];
        assert_eq!((&line["action"], &line["adminId"]), (&json!("ROOM_CLEARED"), &json!(ADMIN)));
        let outcome = json!({ "outcome": "done", "waiting": 3, "active": 2 });
        assert_eq!(line["details"], outcome);

        // The form that existing tools know.
        world.come(event, 1).await;
        let answer = admin.post(&format!("/api/queue/admin/clear/{event}"), json!({})).await.ok();
        assert_eq!(answer, json!({ "message": "Queue cleared" }));
        assert_eq!(admin.room(event).await["active"], 0);
        assert_eq!(admin.log(event).await.len(), 3);
    }

    /// What was meant is written down before it is done, so that nothing is done unseen.
    async fn without_a_log_nothing_is_cleared(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        let admin = Desk::of(&world, TestCaller::Admin);
        world.close_database().await;
        let answer = admin.order(event, "clear", json!({ "confirm": event })).await;
        assert!(answer.status.is_server_error(), "{:?}", answer.status);
        assert!(world.is_live(event, fan.id, slot).await);
    }

    async fn those_who_wait_read_the_message(world: World) {
        let event = world.open_event().await;
        let admin = Desk::of(&world, TestCaller::Admin);
        admin.patch(event, json!({ "threshold": 1 })).await.ok();
        let fans = world.come(event, 2).await;
        let path = format!("/api/admin/queue/{event}/message");
        let say = |text: String| admin.send(Method::PUT, &path, json!({ "message": text }));
        // Markup is only text.
        let text = "기술 점검으로 10분 쉽니다. <b>죄송합니다</b>";
        say(text.to_owned()).await.ok();
        assert_eq!(fans[1].status(event).await.ok()["message"], text);
        say("가".repeat(500)).await.ok();
        for wrong in ["가".repeat(501), String::new(), "두\n줄".to_owned()] {
            say(wrong).await.refused(400, "INVALID_MESSAGE");
        }
        let told = admin.send(Method::DELETE, &path, Value::Null).await.ok();
        assert_eq!(told["room"]["message"], Value::Null);
        let told = fans[1].status(event).await.ok();
        assert!(!told.to_string().contains('가'), "{told}");
        let actions = admin.actions(event).await;
        assert_eq!(actions[..3], ["MESSAGE_REMOVED", "MESSAGE_SET", "MESSAGE_SET"]);
    }
}
