//! Admission follows the health of booking, where the organiser wishes it (Q13).

use serde_json::json;
use urr_kernel::Uuid;

use crate::contract;
use crate::fixture::{SECOND, World};

/// An event with many in line, of whom ten may come in a second.
async fn sale(world: &World) -> Uuid {
    let event = world.open_event().await;
    world.set_room(event, "is_paused = true, admitted_per_second_max = 10").await;
    world.come(event, 60).await;
    world.set_room(event, "is_paused = false").await;
    event
}

/// How many are let in during the next second.
async fn let_in(world: &World, event: Uuid) -> u64 {
    world.clock.advance(SECOND);
    let before = admitted_total(world, event).await;
    world.queue.refresh_health().await;
    world.queue.admit(event).await;
    admitted_total(world, event).await - before
}

async fn admitted_total(world: &World, event: Uuid) -> u64 {
    world.rooms.crowd(event, world.clock.now()).await.unwrap().admitted_total
}

contract! {
    async fn fewer_are_let_in_while_booking_fails_and_more_when_it_is_well(world: World) {
        let event = sale(&world).await;
        world.set_room(event, "has_autopilot = true").await;
        world.ticket.set_booking(json!({"answered": 500, "failed": 0, "p95Micros": 20_000}));
        assert_eq!(let_in(&world, event).await, 10);
        world.ticket.set_booking(json!({"answered": 400, "failed": 100, "p95Micros": 20_000}));
        assert_eq!(let_in(&world, event).await, 7);
        world.ticket.set_booking(json!({"answered": 500, "failed": 0, "p95Micros": 20_000}));
        let mut rates = Vec::new();
        for _ in 0..4 {
            rates.push(let_in(&world, event).await);
        }
        assert_eq!(rates, [7, 7, 7, 7], "little by little: a sixtieth of ten in a second");
        for _ in 0..20 {
            world.queue.refresh_health().await;
        }
        assert_eq!(let_in(&world, event).await, 10);
    }

    async fn an_office_that_is_silent_changes_nothing_for_ten_seconds(world: World) {
        let event = sale(&world).await;
        world.set_room(event, "has_autopilot = true").await;
        assert_eq!(let_in(&world, event).await, 10);
        world.ticket.fail(true);
        // What it said last is no news: it is not taken for another second of the same.
        world.ticket.set_booking(json!({"answered": 400, "failed": 100, "p95Micros": 20_000}));
        for _ in 0..10 {
            world.clock.advance(SECOND);
            world.queue.refresh_health().await;
        }
        assert_eq!(let_in(&world, event).await, 10);
        world.clock.advance(SECOND);
        assert_eq!(let_in(&world, event).await, 7);
    }

    /// The control: without the wish nothing is changed.
    async fn without_the_wish_the_rate_stays(world: World) {
        let event = sale(&world).await;
        world.ticket.set_booking(json!({"answered": 400, "failed": 100, "p95Micros": 20_000}));
        assert_eq!(let_in(&world, event).await, 10);
        assert_eq!(let_in(&world, event).await, 10);
    }
}
