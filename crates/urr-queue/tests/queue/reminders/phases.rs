//! Whose turn is near while people gather, are drawn, wait in vain, or the sale is over.

use urr_queue::draw;

use super::*;
use crate::fixture::draw_seal;

/// An event whose sale begins in half an hour, and those who gather for it and want to be told.
async fn gathering(world: &World, count: usize) -> (Uuid, Vec<Fan>) {
    let opens_at = world.clock.now() + 30 * MINUTE;
    let event = world.event_with(json!({ "saleStartsAt": opens_at })).await;
    let fans = world.come(event, count).await;
    for fan in &fans {
        Fan::is_noted(&fan.ask_reminder(event).await);
    }
    (event, fans)
}

contract! {
    async fn those_who_gather_are_told_three_minutes_before_their_turn(world: World) {
        let (event, fans) = gathering(&world, 3).await;
        world.set_room(event, "admitted_per_second_max = 1").await;
        world.remind(event).await;
        world.clock.advance(27 * MINUTE - 2 * SECOND);
        world.remind(event).await;
        assert_eq!(world.told().await, [], "the sale opens in three minutes, the turn comes later");
        world.remind(event).await;
        assert_eq!(world.told().await, [(fans[0].id, 1)]);
        assert_eq!(world.announced().await[0]["data"]["estimatedWaitSeconds"], json!(180));
        world.remind(event).await;
        assert_eq!(world.told().await.len(), 2);
        world.clock.advance(MINUTE);
        world.remind(event).await;
        assert_eq!(world.kept().await, []);
    }

    async fn while_nobody_is_let_in_nobodys_turn_is_near(world: World) {
        let (paused, _) = world.paused_line(1).await;
        world.remind(paused).await;
        let (sold_out, waiting) = world.slow_line(1).await;
        Fan::is_noted(&waiting[0].ask_reminder(sold_out).await);
        world.ticket.set_left(sold_out, 0, 0);
        world.queue.refresh_health().await;
        world.remind(sold_out).await;
        assert_eq!(world.told().await, []);
        assert_eq!(world.kept().await.len(), 2);
        world.ticket.set_left(sold_out, 5, 0);
        world.queue.refresh_health().await;
        world.set_room(paused, "is_paused = false").await;
        world.remind(paused).await;
        world.remind(sold_out).await;
        assert_eq!(world.told().await.len(), 2, "the control");
    }

    async fn before_a_draw_nobodys_turn_is_near_and_then_the_drawn_ones_is(world: World) {
        let opens_at = world.clock.now() + 30 * MINUTE;
        let event = world.event_with(json!({ "saleStartsAt": opens_at })).await;
        let (secret, now) = (draw::new_secret(), world.clock.now());
        let commit = world.db.write(move |tx| draw::commit(tx, event, &secret, &draw_seal(), now));
        commit.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        let slow = "opening = 'lottery', threshold = 1, admitted_per_second_max = 1";
        world.set_room(event, slow).await;
        let fans = world.come(event, NEAR + 4).await;
        for fan in &fans {
            Fan::is_noted(&fan.ask_reminder(event).await);
        }
        world.clock.advance(30 * MINUTE - 2 * SECOND);
        world.remind(event).await;
        assert_eq!((world.told().await.len(), world.kept().await.len()), (0, NEAR + 4));
        world.clock.advance(SECOND);
        draw::close(&world.queue, event, world.clock.now()).await.unwrap();
        draw::fix_entrants(&world.queue, event, world.clock.now()).await.unwrap();
        draw::order_entrants(&world.queue, event, world.clock.now()).await.unwrap();
        draw::number_entrants(&world.queue, event).await.unwrap();
        draw::finish(&world.queue, event).await.unwrap();
        world.queue.load().await.unwrap();
        world.remind(event).await;
        let mut positions = Vec::new();
        for fan in &fans {
            let status = fan.status(event).await.ok();
            positions.push((status["position"].as_u64().unwrap(), status["number"].as_i64(), fan.id));
        }
        positions.sort_unstable();
        let near = positions[..NEAR].iter().map(|(position, _, id)| (*id, *position));
        let mut near: Vec<_> = near.collect();
        near.sort_unstable();
        assert_eq!(world.told().await, near);
        let far = positions[NEAR..].iter().map(|(_, number, id)| (*id, number.unwrap()));
        let mut far: Vec<_> = far.collect();
        far.sort_unstable();
        assert_eq!(world.kept().await, far, "now their numbers are known");
    }

    async fn nobody_is_told_of_a_sale_that_is_over_or_an_event_that_was_cancelled(world: World) {
        let ends_at = world.clock.now() + HOUR;
        let over = world.event_with(json!({ "saleEndsAt": ends_at })).await;
        let (cancelled, deleted) = (world.open_event().await, world.open_event().await);
        let (going_on, _) = world.paused_line(1).await;
        for event in [over, cancelled, deleted] {
            world.set_room(event, "is_paused = true").await;
            let fan = &world.come(event, 1).await[0];
            Fan::is_noted(&fan.ask_reminder(event).await);
            world.set_room(event, "is_paused = false").await;
        }
        world.hear("EVENT_CANCELLED", json!({"eventId": cancelled, "revision": 2})).await;
        world.hear("EVENT_DELETED", json!({"eventId": deleted, "revision": 2})).await;
        world.clock.advance(HOUR);
        let turns = async || {
            for event in [over, cancelled, deleted, going_on] {
                world.queue.remind(event).await;
            }
            world.kept().await.len()
        };
        assert_eq!(turns().await, 2, "another clock may be behind");
        world.clock.advance(10 * SECOND);
        assert_eq!(turns().await, 1);
        assert_eq!(world.queue.events_with_reminders().await.unwrap(), [going_on]);
        assert_eq!(world.told().await, []);
    }

    /// All processes share the reminders: one that has missed something must not end them.
    async fn reminders_are_ended_only_if_the_database_says_that_the_sale_is_over(world: World) {
        let ends_at = world.clock.now() + HOUR;
        let event = world.event_with(json!({ "saleEndsAt": ends_at })).await;
        world.set_room(event, "is_paused = true").await;
        let fan = &world.come(event, 1).await[0];
        Fan::is_noted(&fan.ask_reminder(event).await);
        let (outdated, stranger) =
            (world.another(QueueSettings::default()), world.another(QueueSettings::default()));
        outdated.load().await.unwrap();
        // The sale goes on for longer.
        world.hear("EVENT_UPDATED", world.facts(event, 2)).await;
        world.clock.advance(HOUR + 10 * SECOND);
        outdated.remind(event).await;
        stranger.remind(event).await;
        assert_eq!(world.kept_users().await, [fan.id]);
    }

    /// A pre-sale was put before the sale: they are about to be sent home.
    async fn those_who_are_to_be_sent_home_are_not_told(world: World) {
        let (event, _) = world.slow_line(1).await;
        let fan = &world.come(event, 1).await[0];
        Fan::is_noted(&fan.ask_reminder(event).await);
        let mut facts = world.facts(event, 2);
        facts["hasPresale"] = json!(true);
        world.hear("EVENT_UPDATED", facts).await;
        world.remind(event).await;
        assert_eq!((world.told().await.len(), world.kept().await.len()), (0, 1));
        world.queue.admit(event).await;
        world.remind(event).await;
        assert_eq!((world.told().await.len(), world.kept().await.len()), (0, 0));
        let (gathered, _) = gathering(&world, 1).await;
        world.clock.advance(28 * MINUTE);
        let mut facts = world.facts(gathered, 2);
        facts["saleStartsAt"] = json!(world.clock.now() + 2 * MINUTE);
        facts["hasPresale"] = json!(true);
        world.hear("EVENT_UPDATED", facts).await;
        world.remind(gathered).await;
        assert_eq!((world.told().await.len(), world.kept().await.len()), (0, 1));
    }
}
