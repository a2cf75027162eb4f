//! Nobody knows whether the money was taken: it is found out, never assumed.

use urr_payment::provider::Card;
use urr_payment::{Cause, Status, Step};

use crate::contract;
use crate::fixture::PRICE;

contract! {
    async fn a_charge_whose_answer_was_lost_is_found_and_not_made_again(world: World) {
        for card in [Card::ChargeThenTimeOut, Card::ChargeThenFail, Card::Duplicate] {
            let (held, payment) = world.pay(card).await;
            assert_eq!(payment.status, Status::Unknown, "{card:?}");
            assert_eq!(payment.step, Some(Step::Query), "{card:?}");
            assert_eq!(held.pinned_by, Some(payment.id.0), "the seat waits for the truth");
            world.settle().await;
            assert_eq!(world.find(payment.id).await.status, Status::Confirmed, "{card:?}");
            assert_eq!(world.office.get(held.id).tickets, 1);
        }
        assert_eq!(world.provider_books().await.len(), 3);
        world.assert_whole().await;
    }

    async fn a_charge_that_never_arrived_is_made_again_by_the_same_key(world: World) {
        let (held, payment) = world.pay(Card::Stumble).await;
        assert_eq!(payment.status, Status::Unknown);
        world.settle().await;
        assert_eq!(world.find(payment.id).await.status, Status::Confirmed);
        assert_eq!(world.office.get(held.id).tickets, 1);
        world.assert_whole().await;
    }

    async fn a_charge_that_never_comes_about_fails_after_several_looks(world: World) {
        for card in [Card::TimeOut, Card::UnknownCode] {
            let (held, payment) = world.pay(card).await;
            assert_eq!(payment.status, Status::Unknown, "{card:?}");
            world.settle().await;
            assert_eq!(world.find(payment.id).await.status, Status::Failed, "{card:?}");
            assert_eq!(world.office.get(held.id).pinned_by, None);
        }
        assert!(world.provider_books().await.is_empty());
        world.assert_whole().await;
    }

    /// P3: one won less was taken than was ordered.
    async fn what_is_not_the_amount_of_the_order_goes_back_whole(world: World) {
        let (held, payment) = world.pay(Card::WrongAmount).await;
        world.settle().await;
        let payment = world.find(payment.id).await;
        assert_eq!(payment.status, Status::Refunded);
        assert_eq!(payment.charged, payment.refunded);
        assert_ne!(payment.charged, PRICE);
        let refunds = world.payments.list_refunds(payment.id).await.unwrap();
        let causes: Vec<&Cause> = refunds.iter().map(|refund| &refund.cause).collect();
        assert_eq!(causes, [&Cause::Mismatch]);
        assert_eq!(world.office.get(held.id).tickets, 0);
        assert!(world.announced().await.is_empty(), "nobody was told that it was paid");
        world.assert_whole().await;
    }

    async fn a_provider_that_is_away_ends_nothing(world: World) {
        world.sandbox.set_down(true);
        let (held, payment) = world.pay(Card::Approve).await;
        for _ in 0..20 {
            world.clock.advance(std::time::Duration::from_secs(301));
            world.payments.resolve_due().await.unwrap();
        }
        let waiting = world.find(payment.id).await;
        assert_eq!(waiting.status, Status::Unknown, "silence is never a no");
        assert_eq!(world.office.get(held.id).pinned_by, Some(payment.id.0));
        world.sandbox.set_down(false);
        world.settle().await;
        // It was never charged, and that is certain only now.
        assert_eq!(world.find(payment.id).await.status, Status::Failed);
        world.assert_whole().await;
    }
}
