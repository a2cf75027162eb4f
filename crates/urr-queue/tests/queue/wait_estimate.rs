//! How long people are told that they will wait (Q4).

use serde_json::{Value, json};
use urr_kernel::Uuid;

use crate::contract;
use crate::fixture::{Fan, MINUTE, SECOND};

/// What someone is told: the wait and its range.
async fn told(fan: &Fan, event: Uuid) -> (u64, u64, u64) {
    let status = fan.status(event).await.ok();
    let range = &status["estimatedWaitRange"];
    let seconds = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{status}"));
    (seconds(&status["estimatedWait"]), seconds(&range["from"]), seconds(&range["to"]))
}

contract! {
    /// In the original it was position ÷ 50 with a floor of five seconds, whatever was set; its
    /// documents said thirty seconds for each in front.
    async fn before_anybody_was_let_in_it_is_the_position_by_the_rate_that_was_set(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true, admitted_per_second_max = 4").await;
        let fans = world.come(event, 30).await;
        assert_eq!(fans[0].status(event).await.ok()["estimatedWait"], Value::Null, "who knows");
        world.set_room(event, "is_paused = false").await;
        for (fan, seconds) in [(0, 1), (3, 1), (4, 2), (29, 8)] {
            let (wait, from, to) = told(&fans[fan], event).await;
            assert_eq!(wait, seconds);
            assert!(from <= wait && wait <= to, "{from} to {to}");
        }
    }

    /// Somebody was told "1 second" for as long as nobody went, and others up to two days.
    async fn in_a_full_room_from_which_nobody_goes_no_moment_is_promised(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 2").await;
        let fans = world.come(event, 9).await;
        for _ in 0..10 {
            world.clock.advance(SECOND);
            let told = fans[8].status(event).await.ok();
            let wait = (&told["estimatedWait"], &told["estimatedWaitRange"]);
            assert_eq!(wait, (&Value::Null, &Value::Null), "it is still being calculated");
        }
        // The control: when some have gone, there is something to calculate with.
        for fan in &fans[..6] {
            fan.leave(event).await.ok();
            world.clock.advance(SECOND);
            world.queue.admit(event).await;
        }
        assert_eq!(fans[7].status(event).await.ok()["status"], json!("active"));
        world.clock.advance(SECOND);
        let (wait, from, to) = told(&fans[8], event).await;
        assert!(from <= wait && wait <= to, "{from} to {to}");
    }

    /// The sale is open for a day when the crowd comes: the day says nothing about the crowd.
    async fn an_idle_day_does_not_make_the_wait_longer(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 10, admitted_per_second_max = 1").await;
        world.clock.advance(24 * 60 * MINUTE);
        let fans = world.come(event, 60).await;
        for fan in &fans[..30] {
            world.clock.advance(SECOND);
            world.queue.admit(event).await;
            // Each uses the slot for a second.
            fan.leave(event).await.ok();
        }
        let (wait, _, to) = told(&fans[59], event).await;
        assert!((20..=45).contains(&wait), "{wait}");
        assert!(to < 120, "{to}");
    }

    /// While people gather the time until the sale comes on top.
    async fn before_the_sale_nobody_waits_for_less_than_until_it_begins(world: World) {
        let opens_at = world.clock.now() + 10 * MINUTE;
        let event = world.event_with(json!({ "saleStartsAt": opens_at })).await;
        world.set_room(event, "admitted_per_second_max = 1").await;
        let fans = world.come(event, 30).await;
        let (wait, from, _) = told(&fans[29], event).await;
        assert_eq!(wait, 630);
        assert!(from >= 600, "{from}");
    }

    async fn when_slots_are_given_back_the_measured_movement_counts(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 2").await;
        let fans = world.come(event, 200).await;
        for fan in &fans[..40] {
            // One in a second gives their slot back, and the next comes in.
            fan.leave(event).await.ok();
            world.clock.advance(SECOND);
            world.queue.admit(event).await;
        }
        world.clock.advance(SECOND);
        assert_eq!(fans[199].status(event).await.ok()["position"], json!(158));
        let (wait, from, to) = told(&fans[199], event).await;
        // One in a second, for 40 seconds: the idle seconds before say nothing.
        assert!((150..=170).contains(&wait), "{wait}");
        assert!(from < 150 && to > 170 && to < 600, "{from} to {to}");
        let (near, ..) = told(&fans[50], event).await;
        assert!(near < 20, "{near}");
    }
}
