//! What the ticket service asks and says.

use axum::Router;
use serde_json::json;
use urr_kernel::Uuid;
use urr_queue::{QueueService, QueueSettings};
use urr_service::{Caller, Metrics, RequestLimits, ServiceKit};

use crate::contract;
use crate::fixture::{HOUR, SECOND, World, call};

const SLOTS: &str = "/internal/queue/slots";
const FINISH: &str = "/internal/queue/finish";

/// Another process, as the ticket service reaches it.
fn router_of(world: &World, queue: &QueueService) -> Router {
    let kit = ServiceKit {
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    queue.service(&kit).local_router()
}

contract! {
    async fn only_the_ticket_office_is_answered(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let slots = json!({ "checks": [] });
        let bought = json!({"eventId": event, "userId": fan.id, "boughtAt": world.clock.now()});
        for caller in Caller::ALL {
            for (path, body) in [(SLOTS, &slots), (FINISH, &bought)] {
                let answer = world.call(caller, path, body).await;
                match caller {
                    Caller::Ticket => drop(answer.ok()),
                    _ => drop(answer.refused(403, "CALLER_NOT_ALLOWED")),
                }
            }
        }
    }

    async fn a_slot_lives_for_its_owner_at_its_event_only(world: World) {
        let (event, other) = (world.open_event().await, world.open_event().await);
        let fan = world.fan();
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        let other_slot = world.read_token(&fan.check(other).await.ok()).id;
        let stranger = world.fan();
        stranger.check(event).await.ok();
        let asks = [
            (event, fan.id, slot, true),
            (event, fan.id, other_slot, false),
            (other, fan.id, slot, false),
            (other, fan.id, other_slot, true),
            (event, stranger.id, slot, false),
            (event, world.fan().id, slot, false),
            (event, fan.id, Uuid::nil(), false),
            (Uuid::from_u128(404), fan.id, slot, false),
        ];
        let request = |(event, user, slot, _): &(Uuid, Uuid, Uuid, bool)| {
            json!({"eventId": event, "userId": user, "slotId": slot})
        };
        let body = json!({"checks": asks.iter().map(request).collect::<Vec<_>>()});
        let told = world.call(Caller::Ticket, SLOTS, &body).await.ok();
        let expected: Vec<bool> = asks.iter().map(|(.., is_live)| *is_live).collect();
        assert_eq!(told, json!({ "live": expected }));
    }

    async fn no_slot_lives_longer_than_its_sale(world: World) {
        let ends_at = world.clock.now() + 300 * SECOND;
        let event = world.event_with(json!({"saleEndsAt": ends_at})).await;
        let fan = world.fan();
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        world.clock.advance(299 * SECOND);
        assert!(world.is_live(event, fan.id, slot).await);
        world.clock.advance(SECOND);
        assert!(!world.is_live(event, fan.id, slot).await);
        let event = world.open_event().await;
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        world.set_room(event, "is_paused = true").await;
        assert!(world.is_live(event, fan.id, slot).await, "who is in may book while it is paused");
        world.hear("EVENT_CANCELLED", json!({"eventId": event, "revision": 2})).await;
        assert!(!world.is_live(event, fan.id, slot).await);
    }

    /// Booking is refused for a moment rather than allowed without a look: but nobody is told that
    /// their turn is over while that is not known.
    async fn a_process_that_has_read_nothing_says_that_it_does_not_know(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        let fresh = world.another(QueueSettings::default());
        let router = router_of(&world, &fresh);
        let request = json!({"eventId": event, "userId": fan.id, "slotId": slot});
        let body = json!({ "checks": [request] });
        let answer = call(&router, Caller::Ticket, SLOTS, &body).await;
        answer.refused(503, "QUEUE_UNAVAILABLE");
        fresh.load().await.unwrap();
        let told = call(&router, Caller::Ticket, SLOTS, &body).await.ok();
        assert_eq!(told, json!({"live": [true]}));
    }

    /// Each process reads the events once a second: one may admit somebody before the other knows
    /// the event.
    async fn a_process_that_has_not_read_a_new_event_reads_it_before_it_judges(world: World) {
        world.open_event().await;
        let late = world.another(QueueSettings::default());
        late.load().await.unwrap();
        let event = world.open_event().await;
        let fan = world.fan();
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        let router = router_of(&world, &late);
        let ask = async |event: Uuid| {
            let request = json!({"eventId": event, "userId": fan.id, "slotId": slot});
            call(&router, Caller::Ticket, SLOTS, &json!({ "checks": [request] })).await
        };
        world.at(&late, &fan).status(event).await.refused(409, "ROOM_NOT_READY");
        assert_eq!(ask(event).await.ok(), json!({"live": [true]}));
        let unheard = world.ids.next_id();
        ask(unheard).await.refused(503, "QUEUE_UNAVAILABLE");
    }

    async fn a_purchase_ends_the_turn_at_once_and_an_old_one_ends_no_newer_turn(world: World) {
        let event = world.open_event().await;
        let fan = world.fan();
        let finish = async |bought_at| {
            let body = json!({"eventId": event, "userId": fan.id, "boughtAt": bought_at});
            world.call(Caller::Ticket, FINISH, &body).await.ok()["ended"].as_bool().unwrap()
        };
        let slot = world.read_token(&fan.check(event).await.ok()).id;
        let before = world.clock.now() - SECOND;
        assert!(!finish(before).await);
        assert!(world.is_live(event, fan.id, slot).await);
        world.clock.advance(SECOND);
        assert!(finish(world.clock.now()).await);
        assert!(!world.is_live(event, fan.id, slot).await);
        assert!(!finish(world.clock.now()).await, "once more ends nothing");
        assert_eq!(fan.status(event).await.ok()["status"], "not_in_queue");
        world.clock.advance(HOUR);
        assert_eq!(fan.check(event).await.ok()["status"], "active", "they may come again");
    }

    async fn there_is_a_limit_to_what_is_asked_at_once(world: World) {
        let request = json!({"eventId": Uuid::nil(), "userId": Uuid::nil(), "slotId": Uuid::nil()});
        let body = json!({"checks": vec![request; 5_001]});
        world.call(Caller::Ticket, SLOTS, &body).await.refused(400, "TOO_MANY_SLOT_CHECKS");
    }
}
