//! Giving back: partly, wholly, and when the answer is lost.

use urr_kernel::Won;
use urr_payment::provider::{ProviderOutcome, ProviderPayment, ProviderState, RefundRequest};

use crate::fake_provider::Fault;
use crate::fixture::{Kind, PRICE, World, code, giving_back};

async fn give_back(world: &World, what: &RefundRequest) -> ProviderOutcome<ProviderPayment> {
    world.provider.cancel(what).await
}

async fn charged(world: &World) {
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
}

both_providers! {
    async fn a_part_is_given_back_and_then_the_rest(world: World) {
        charged(&world).await;
        let ProviderOutcome::Done(payment) = give_back(&world, &giving_back(32_000)).await else {
            panic!("nothing stands in the way");
        };
        assert_eq!((payment.state, payment.refunded.amount()), (ProviderState::Paid, 32_000));
        let rest = RefundRequest {
            amount: Won::new(100_000),
            remaining: Won::new(100_000),
            idempotency_key: "019a8c1e-0000-7000-8000-000000000003".to_owned(),
            ..giving_back(0)
        };
        let ProviderOutcome::Done(payment) = give_back(&world, &rest).await else {
            panic!("nothing stands in the way");
        };
        assert_eq!((payment.state, payment.refunded.amount()), (ProviderState::Refunded, PRICE));
        assert_eq!(payment.amount.amount(), PRICE);
        assert_eq!(world.returns(), [32_000, 100_000]);
    }

    async fn the_same_key_twice_gives_back_once(world: World) {
        charged(&world).await;
        let first = give_back(&world, &giving_back(32_000)).await;
        assert!(matches!(first, ProviderOutcome::Done(_)));
        assert_eq!(give_back(&world, &giving_back(32_000)).await, first);
        assert_eq!(world.returns(), [32_000]);
    }

    async fn a_lost_answer_is_unknown_looking_tells_and_the_same_key_settles_it(world: World) {
        charged(&world).await;
        for (fault, expected) in [
            (Fault::ActThenSilence, "TIMEOUT"),
            (Fault::ActThenFail, "FAILED_INTERNAL_SYSTEM_PROCESSING"),
            (Fault::ActThenReset, "INTERRUPTED"),
            (Fault::ActThenHugeBody, "UNREADABLE"),
            (Fault::ActThenGarbage, "UNREADABLE"),
        ] {
            let outcome = world.give_back_with(fault, &giving_back(32_000)).await;
            assert_eq!(code(&outcome), expected);
            assert_eq!(world.payment().await.refunded, Won::new(32_000));
        }
        let outcome = give_back(&world, &giving_back(32_000)).await;
        assert!(matches!(outcome, ProviderOutcome::Done(_)), "{outcome:?}");
        assert_eq!(world.returns(), [32_000]);
    }

    async fn less_given_back_than_asked_for_is_unknown_and_looking_tells_how_much(world: World) {
        charged(&world).await;
        let outcome = world.give_back_with(Fault::OtherAmount(-1), &giving_back(32_000)).await;
        assert_eq!(code(&outcome), "MISMATCH");
        assert_eq!(world.payment().await.refunded, Won::new(31_999));
    }

    /// The control of a lost answer: here looking tells that nothing was given back.
    async fn a_request_that_never_arrived_is_unknown_too(world: World) {
        charged(&world).await;
        for fault in [
            Fault::Reset,
            Fault::Refusal(401, "UNAUTHORIZED_KEY"),
            Fault::Refusal(429, "TOO_MANY_REQUESTS"),
            Fault::Refusal(400, "SOMETHING_NEW"),
            Fault::Refusal(500, "NOT_CANCELABLE_PAYMENT"),
            Fault::Refusal(500, "PAYMENT_NOT_PAID"),
            Fault::Page(404),
        ] {
            let outcome = world.give_back_with(fault, &giving_back(32_000)).await;
            assert!(matches!(outcome, ProviderOutcome::Unknown { .. }), "{fault:?}: {outcome:?}");
            assert_eq!(world.payment().await.refunded, Won::ZERO);
        }
        assert!(world.returns().is_empty());
    }

    /// A repeated key repeats the failure; only another key is a new request.
    async fn a_failure_is_repeated_by_key_and_another_key_is_another_question(world: World) {
        charged(&world).await;
        let failure = Fault::RefusalForGood(500, "FAILED_REFUND_PROCESS");
        let first = world.give_back_with(failure, &giving_back(32_000)).await;
        assert_eq!(code(&first), "FAILED_REFUND_PROCESS");
        assert_eq!(give_back(&world, &giving_back(32_000)).await, first);
        let key = "019a8c1e-0000-7000-8000-000000000002:1".to_owned();
        let again = RefundRequest { idempotency_key: key, ..giving_back(32_000) };
        assert!(matches!(give_back(&world, &again).await, ProviderOutcome::Done(_)));
        assert_eq!(world.returns(), [32_000]);
    }

    /// With another key it could be a second return: only looking tells.
    async fn everything_given_back_before_is_unknown(world: World) {
        charged(&world).await;
        assert!(matches!(give_back(&world, &giving_back(PRICE)).await, ProviderOutcome::Done(_)));
        let key = "019a8c1e-0000-7000-8000-000000000004".to_owned();
        let again = RefundRequest { idempotency_key: key, ..giving_back(PRICE) };
        let outcome = give_back(&world, &again).await;
        let expected = match world.kind {
            Kind::Toss => "ALREADY_CANCELED_PAYMENT",
            Kind::PortOne => "PAYMENT_ALREADY_CANCELLED",
        };
        assert_eq!(code(&outcome), expected);
        assert_eq!(world.state().await, ProviderState::Refunded);
        assert_eq!(world.returns(), [PRICE]);
    }

    async fn what_was_never_charged_is_not_given_back(world: World) {
        let nobody = RefundRequest {
            order_id: "ORD_of_nobody".to_owned(),
            payment_key: "of_nobody".to_owned(),
            ..giving_back(1)
        };
        let outcome = give_back(&world, &nobody).await;
        assert!(matches!(outcome, ProviderOutcome::Declined { .. }), "{outcome:?}");
        assert!(world.returns().is_empty());
    }
}
