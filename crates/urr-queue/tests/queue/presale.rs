//! Members come earlier.

use futures_util::future::join_all;
use serde_json::json;
use urr_test::eventually;

use crate::contract;
use crate::fixture::{Fan, HOUR, MINUTE, SECOND, World};

fn members(world: &World) -> [Fan; 4] {
    let fans = [world.fan(), world.fan(), world.fan(), world.fan()];
    for (fan, tier) in fans.iter().zip(["diamond", "gold", "silver"]) {
        world.ticket.set_tier(fan.id, tier);
    }
    fans
}

contract! {
    /// B-1: the original told when each tier may come, and let everybody in.
    async fn b_1_each_tier_comes_at_its_time(world: World) {
        let starts_at = world.clock.now() + HOUR;
        let facts = json!({"hasPresale": true, "saleStartsAt": starts_at});
        let event = world.event_with(facts).await;
        let opens = [starts_at, starts_at + HOUR, starts_at + 24 * HOUR, starts_at + 48 * HOUR];
        // Those for whom the pre-sale opens gather an hour before; the others come when it opens for
        // them.
        for (fan, opens_at) in members(&world).iter().zip(opens).skip(1) {
            let refused = fan.check(event).await.refused(403, "PRESALE_MEMBERS_ONLY");
            assert_eq!(refused["opensAt"], json!(opens_at));
        }
        let fans = members(&world);
        assert_eq!(fans[0].check(event).await.ok()["phase"], json!("gathering"));
        let mut now = starts_at - HOUR;
        for (may_come, opens_at) in (1..=4).zip(opens) {
            world.clock.advance((opens_at - SECOND).duration_since(now).try_into().unwrap());
            now = opens_at;
            if may_come > 1 {
                fans[may_come - 1].check(event).await.refused(403, "PRESALE_MEMBERS_ONLY");
            }
            world.clock.advance(SECOND);
            world.queue.admit(event).await;
            for fan in &fans[..may_come] {
                assert_eq!(fan.check(event).await.ok()["status"], json!("active"), "{may_come}");
            }
        }
    }

    async fn a_tier_is_asked_for_once_a_minute(world: World) {
        let event = world.event_with(json!({"hasPresale": true})).await;
        let [diamond, gold, silver, _] = members(&world);
        for _ in 0..3 {
            silver.check(event).await.refused(403, "PRESALE_MEMBERS_ONLY");
        }
        assert_eq!(world.ticket.calls().0, 1);
        // They become a member of a higher tier meanwhile.
        world.ticket.set_tier(silver.id, "diamond");
        world.clock.advance(59 * SECOND);
        silver.check(event).await.refused(403, "PRESALE_MEMBERS_ONLY");
        world.clock.advance(SECOND);
        silver.check(event).await.ok();
        assert_eq!(world.ticket.calls().0, 2);
        gold.check(event).await.ok();
        diamond.check(event).await.ok();
        assert_eq!(world.ticket.calls().0, 4);
    }

    async fn who_has_a_place_keeps_it_without_another_question(world: World) {
        let event = world.event_with(json!({"hasPresale": true})).await;
        let [diamond, ..] = members(&world);
        diamond.check(event).await.ok();
        assert_eq!(world.ticket.calls().0, 1);
        world.clock.advance(5 * MINUTE);
        world.ticket.fail(true);
        assert_eq!(diamond.check(event).await.ok()["status"], json!("active"));
        assert_eq!(world.ticket.calls().0, 1);
    }

    async fn nobody_is_let_into_a_presale_on_a_guess(world: World) {
        let event = world.event_with(json!({"hasPresale": true})).await;
        let [diamond, ..] = members(&world);
        world.ticket.fail(true);
        let answer = diamond.check(event).await;
        answer.refused(503, "QUEUE_UNAVAILABLE");
        assert!(answer.headers.contains_key("retry-after"));
        world.ticket.fail(false);
        world.clock.advance(MINUTE);
        diamond.check(event).await.ok();
    }

    async fn without_a_ticket_office_a_presale_lets_nobody_in_and_a_sale_everybody(world: World) {
        let lonely = world.another(urr_queue::QueueSettings::default());
        let presale = world.event_with(json!({"hasPresale": true})).await;
        let sale = world.open_event().await;
        lonely.load().await.unwrap();
        let [diamond, ..] = members(&world);
        let diamond = world.at(&lonely, &diamond);
        diamond.check(presale).await.refused(503, "QUEUE_UNAVAILABLE");
        diamond.check(sale).await.ok();
    }

    async fn after_the_presale_nobody_is_asked_for_a_tier(world: World) {
        let starts_at = world.clock.now() - 48 * HOUR;
        let facts = json!({"hasPresale": true, "saleStartsAt": starts_at});
        let event = world.event_with(facts).await;
        world.fan().check(event).await.ok();
        assert_eq!(world.ticket.calls().0, 0);
    }

    async fn what_holds_for_everybody_is_said_without_asking_for_a_tier(world: World) {
        let starts_at = world.clock.now() + 3 * HOUR;
        let facts = json!({"hasPresale": true, "saleStartsAt": starts_at});
        let event = world.event_with(facts).await;
        world.fan().check(event).await.refused(409, "SALE_NOT_OPEN");
        assert_eq!(world.ticket.calls().0, 0);
    }

    async fn no_more_tiers_are_asked_for_at_once_than_the_office_can_bear(world: World) {
        let event = world.event_with(json!({"hasPresale": true})).await;
        let gate = world.ticket.hold_tiers();
        let asking: Vec<_> = (0..64).map(|_| world.fan()).collect();
        for fan in &asking {
            world.ticket.set_tier(fan.id, "diamond");
        }
        let asked = join_all(asking.iter().map(|fan| fan.check(event)));
        let too_many = async {
            eventually("all of them are asked for", async || {
                (world.ticket.calls().0 == 64).then_some(())
            })
            .await;
            let answer = world.fan().check(event).await;
            gate.add_permits(1_000);
            answer
        };
        let (asked, too_many) = tokio::join!(asked, too_many);
        too_many.refused(503, "QUEUE_UNAVAILABLE");
        assert!(too_many.headers.contains_key("retry-after"));
        for answer in asked {
            answer.ok();
        }
        world.fan().check(event).await.refused(403, "PRESALE_MEMBERS_ONLY");
    }

    /// A user in line is admitted without asking again, although the ticket service would refuse.
    async fn a_presale_put_before_the_sale_sends_those_home_who_came_before(world: World) {
        let starts_at = world.clock.now() + 30 * MINUTE;
        let event = world.event_with(json!({ "saleStartsAt": starts_at })).await;
        let [diamond, .., public] = members(&world);
        for fan in [&public, &diamond] {
            assert_eq!(fan.check(event).await.ok()["phase"], "gathering");
        }
        let mut facts = world.facts(event, 2);
        facts["saleStartsAt"] = json!(starts_at);
        facts["hasPresale"] = json!(true);
        world.hear("EVENT_UPDATED", facts).await;
        // Nobody is let in before the room is cleared, not even if the sale begins meanwhile.
        world.clock.advance(30 * MINUTE);
        assert_eq!(public.check(event).await.ok()["status"], "queued");
        world.queue.admit(event).await;
        let told = public.status(event).await.ok();
        assert_eq!(told["status"], "not_in_queue");
        assert!(told["message"].as_str().unwrap().contains("members"), "{told}");
        public.check(event).await.refused(403, "PRESALE_MEMBERS_ONLY");
        assert_eq!(diamond.check(event).await.ok()["status"], "active");
        // It is done once.
        world.queue.admit(event).await;
        let other = world.another(urr_queue::QueueSettings::default());
        other.load().await.unwrap();
        other.admit(event).await;
        assert_eq!(diamond.status(event).await.ok()["status"], "active");
    }

    async fn a_change_that_shuts_nobody_out_sends_nobody_home(world: World) {
        let starts_at = world.clock.now() + 30 * MINUTE;
        let presale = json!({"saleStartsAt": starts_at, "hasPresale": true});
        let event = world.event_with(presale).await;
        let [diamond, ..] = members(&world);
        diamond.check(event).await.ok();
        let mut facts = world.facts(event, 2);
        facts["hasPresale"] = json!(true);
        facts["saleStartsAt"] = json!(starts_at + 10 * MINUTE);
        world.hear("EVENT_UPDATED", facts.clone()).await;
        world.queue.admit(event).await;
        assert_eq!(diamond.status(event).await.ok()["position"], json!(1), "it is put off");
        facts["hasPresale"] = json!(false);
        facts["revision"] = json!(3);
        world.hear("EVENT_UPDATED", facts.clone()).await;
        world.queue.admit(event).await;
        assert_eq!(diamond.status(event).await.ok()["position"], json!(1), "everybody may come");
        facts["hasPresale"] = json!(true);
        facts["revision"] = json!(4);
        world.hear("EVENT_UPDATED", facts.clone()).await;
        facts["hasPresale"] = json!(false);
        facts["revision"] = json!(5);
        world.hear("EVENT_UPDATED", facts).await;
        world.queue.admit(event).await;
        assert_eq!(diamond.status(event).await.ok()["position"], json!(1), "it was taken back");
        world.clock.advance(40 * MINUTE);
        world.queue.admit(event).await;
        assert_eq!(diamond.status(event).await.ok()["status"], "active", "the door opens");
    }
}
