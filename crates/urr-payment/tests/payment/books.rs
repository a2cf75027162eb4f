//! Whatever happens to purchases, in whatever order, every won is explained at the end.

use std::time::Duration;

use urr_kernel::Won;
use urr_payment::provider::TestCard;
use urr_payment::{AdminRefundRequest, PaymentStatus};

use crate::contract;
use crate::fake_ticket_service::{FakePayable, Fault};
use crate::fixture::World;

const HISTORIES: u64 = 12;
const STEPS: usize = 14;

/// Repeatable choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        // Numbers of Knuth's linear congruential generator; the high bits are good.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Cards whose refunds never end would keep a history from its end.
fn cards() -> Vec<TestCard> {
    let mut cards = TestCard::ALL.to_vec();
    cards.retain(|card| !matches!(card, TestCard::RefundDeclined | TestCard::PartDeclined));
    cards
}

/// Somebody pays a hold, by one card after the other, while things go wrong.
async fn pay(world: &World, choices: &mut Choices, held: &FakePayable) {
    // Some have cards that are all declined.
    let is_unlucky = choices.below(6) == 0;
    for _ in 0..if is_unlucky { 7 } else { 1 + choices.below(5) } {
        world.sandbox.set_down(choices.below(6) == 0);
        match choices.below(9) {
            0 | 1 => {
                let steps = ["pin", "unpin", "confirm", "release", "refunded"];
                let fault = choices.of(&[Fault::Silent, Fault::Dies]);
                world.tickets.fail(choices.of(&steps), [fault]);
            }
            2 => {
                let fault = Fault::Refuses("SEAT_LOST");
                world.tickets.fail(choices.of(&["pin", "confirm"]), [fault]);
            }
            _ => {}
        }
        // It may be paid, given up or being paid by now.
        if let Ok(order) = world.order_of(held, held.user_id).await {
            let card = if is_unlucky { TestCard::Decline } else { choices.of(&cards()) };
            let approval = world.approval(&order, card).await;
            drop(world.approve(&approval).await);
        }
        world.clock.advance(Duration::from_secs(u64::try_from(choices.below(40)).unwrap()));
        drop(world.payments.resolve_due().await);
    }
    world.sandbox.set_down(false);
}

/// The owner cancels what is paid, or an administrator gives back a part.
async fn give_back(world: &World, choices: &mut Choices, held: &FakePayable) {
    let payments = world.payments.list_by_payable(held.id).await.unwrap();
    let paid = payments.iter().find(|payment| payment.status == PaymentStatus::Confirmed);
    let is_delivered = world.tickets.get(held.id).status == "confirmed";
    let Some(paid) = paid.filter(|paid| is_delivered && paid.step.is_none()) else { return };
    if choices.below(3) == 0 {
        let refund = AdminRefundRequest {
            admin_id: world.ids.next_id(),
            amount: Some(Won::new(5_000)),
            reason: "a kindness".to_owned(),
            key: world.ids.next_id().to_string(),
            refund_max: None,
        };
        world.payments.refund_as_admin(paid.id, refund, &world.context()).await.unwrap();
        return;
    }
    let fee = Won::new(choices.of(&[0, 1_000, 32_000]));
    world.tickets.change(held.id, |held| held.cancel_fee = fee);
    world.tickets.cancel(held.id);
}

contract! {
    async fn every_history_of_purchases_ends_with_whole_books(world: World) {
        let (mut declined, mut reversed, mut given_up) = (0, 0, 0);
        for seed in 0..HISTORIES {
            let mut choices = Choices(seed);
            let mut holds = Vec::new();
            for _ in 0..STEPS {
                match choices.below(3) {
                    0 | 1 => {
                        let held = world.hold();
                        pay(&world, &mut choices, &held).await;
                        holds.push(held);
                    }
                    _ if holds.is_empty() => {}
                    _ => {
                        let held = holds[choices.below(holds.len())].clone();
                        give_back(&world, &mut choices, &held).await;
                    }
                }
            }
            for step in ["pin", "unpin", "confirm", "release", "refunded"] {
                world.tickets.fail(step, []);
            }
            world.settle().await;
            world.assert_whole().await;
        }
        for payment in world.query("select status, failure_code from payments", |row| {
            Ok((row.get::<String>("status")?, row.get::<Option<String>>("failure_code")?))
        }).await {
            match (payment.0.as_str(), payment.1.as_deref()) {
                ("failed", Some("REJECT_CARD_PAYMENT")) => declined += 1,
                ("refunded", Some("TEST_CHANNEL" | "AMOUNT_MISMATCH")) => reversed += 1,
                _ => {}
            }
        }
        given_up += world.tickets.calls("release");
        assert!(declined > 5 && reversed > 5, "the histories hardly try anything: {declined} {reversed}");
        assert!(given_up > 0, "no hold was given up");
    }
}
