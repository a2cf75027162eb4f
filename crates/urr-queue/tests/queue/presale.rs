//! Members come earlier.

use serde_json::json;

use crate::contract;
use crate::fixture::{Fan, HOUR, MINUTE, SECOND, World};

fn members(world: &World) -> [Fan; 4] {
    let fans = [world.fan(), world.fan(), world.fan(), world.fan()];
    for (fan, tier) in fans.iter().zip(["diamond", "gold", "silver"]) {
        world.office.set_tier(fan.id, tier);
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
        assert_eq!(world.office.calls().0, 1);
        // They become a member of a higher tier meanwhile.
        world.office.set_tier(silver.id, "diamond");
        world.clock.advance(59 * SECOND);
        silver.check(event).await.refused(403, "PRESALE_MEMBERS_ONLY");
        world.clock.advance(SECOND);
        silver.check(event).await.ok();
        assert_eq!(world.office.calls().0, 2);
        gold.check(event).await.ok();
        diamond.check(event).await.ok();
        assert_eq!(world.office.calls().0, 4);
    }

    async fn who_has_a_place_keeps_it_without_another_question(world: World) {
        let event = world.event_with(json!({"hasPresale": true})).await;
        let [diamond, ..] = members(&world);
        diamond.check(event).await.ok();
        assert_eq!(world.office.calls().0, 1);
        world.clock.advance(5 * MINUTE);
        world.office.be_silent(true);
        assert_eq!(diamond.check(event).await.ok()["status"], json!("active"));
        assert_eq!(world.office.calls().0, 1);
    }

    async fn nobody_is_let_into_a_presale_on_a_guess(world: World) {
        let event = world.event_with(json!({"hasPresale": true})).await;
        let [diamond, ..] = members(&world);
        world.office.be_silent(true);
        let answer = diamond.check(event).await;
        answer.refused(503, "QUEUE_UNAVAILABLE");
        assert!(answer.headers.contains_key("retry-after"));
        world.office.be_silent(false);
        world.clock.advance(MINUTE);
        diamond.check(event).await.ok();
    }

    async fn without_a_ticket_office_a_presale_lets_nobody_in_and_a_sale_everybody(world: World) {
        let lonely = world.another(urr_queue::Settings::default());
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
        assert_eq!(world.office.calls().0, 0);
    }

    async fn what_holds_for_everybody_is_said_without_asking_for_a_tier(world: World) {
        let starts_at = world.clock.now() + 3 * HOUR;
        let facts = json!({"hasPresale": true, "saleStartsAt": starts_at});
        let event = world.event_with(facts).await;
        world.fan().check(event).await.refused(409, "QUEUE_NOT_OPEN");
        assert_eq!(world.office.calls().0, 0);
    }
}
