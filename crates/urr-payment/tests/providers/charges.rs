//! Charging: whatever happens on the way, the outcome is the right one of three, and looking tells
//! the truth.

use urr_payment::provider::{ChargeRequest, ProviderLookup, ProviderOutcome, ProviderState};

use crate::fake_provider::{Account, Fault};
use crate::fixture::{KEY, Kind, ORDER, PATIENCE, PRICE, charge, code, connect};

both_providers! {
    async fn a_charge_is_made_and_told(world: World) {
        let ProviderOutcome::Done(payment) = world.confirm().await else {
            panic!("nothing stands in the way");
        };
        assert_eq!((payment.order_id.as_str(), payment.payment_key.as_str()), (ORDER, KEY));
        assert_eq!((payment.amount.amount(), payment.currency.as_str()), (PRICE, "KRW"));
        assert_eq!((payment.state, payment.refunded.amount()), (ProviderState::Paid, 0));
        assert_eq!(payment.approved_at, Some("2026-12-01T12:00:00Z".parse().unwrap()));
        assert!(payment.receipt_url.is_some());
        assert_eq!(world.payment().await, payment);
        assert_eq!(world.charges(), [PRICE]);
    }

    async fn before_it_is_confirmed_a_payment_is_open_and_an_order_of_nobody_is_nothing(
        world: World
    ) {
        assert_eq!(world.state().await, ProviderState::Open);
        assert_eq!(world.provider.find("ORD_of_nobody", None).await, ProviderLookup::NotFound);
        world.fake.books().of_order(ORDER).unwrap().is_dead = true;
        assert_eq!(world.state().await, ProviderState::Dead);
    }

    /// The heart of the matter: the money is gone, and the answer with it.
    async fn charged_then_timed_out_is_unknown_and_looking_finds_it_paid(world: World) {
        let outcome = world.confirm_with(Fault::ActThenSilence).await;
        assert_eq!(code(&outcome), "TIMEOUT");
        assert_eq!(world.state().await, ProviderState::Paid);
        assert_eq!(world.charges(), [PRICE]);
    }

    async fn charged_then_failed_is_unknown_and_looking_finds_it_paid(world: World) {
        let outcome = world.confirm_with(Fault::ActThenFail).await;
        assert_eq!(code(&outcome), "FAILED_INTERNAL_SYSTEM_PROCESSING");
        assert_eq!(world.state().await, ProviderState::Paid);
        assert_eq!(world.charges(), [PRICE]);
    }

    async fn charged_then_reset_is_unknown_and_looking_finds_it_paid(world: World) {
        let outcome = world.confirm_with(Fault::ActThenReset).await;
        assert_eq!(code(&outcome), "INTERRUPTED");
        assert_eq!(world.state().await, ProviderState::Paid);
        assert_eq!(world.charges(), [PRICE]);
    }

    async fn an_answer_that_is_too_long_is_unknown_and_looking_finds_it_paid(world: World) {
        let outcome = world.confirm_with(Fault::ActThenHugeBody).await;
        assert_eq!(code(&outcome), "UNREADABLE");
        assert_eq!(world.state().await, ProviderState::Paid);
    }

    /// Toss tells of the charge in the answer. PortOne is asked for it anyway.
    async fn garbage_is_believed_by_nobody(world: World) {
        let outcome = world.confirm_with(Fault::ActThenGarbage).await;
        match world.kind {
            Kind::Toss => assert_eq!(code(&outcome), "UNREADABLE"),
            Kind::PortOne => assert!(matches!(outcome, ProviderOutcome::Done(_)), "{outcome:?}"),
        }
        assert_eq!(world.state().await, ProviderState::Paid);
    }

    async fn a_page_that_says_all_is_well_is_no_charge(world: World) {
        let outcome = world.confirm_with(Fault::Page(200)).await;
        assert!(matches!(outcome, ProviderOutcome::Unknown { .. }), "{outcome:?}");
        assert_eq!(world.state().await, ProviderState::Open);
        assert!(world.charges().is_empty());
    }

    async fn silence_and_a_reset_before_the_charge_are_unknown_as_well(world: World) {
        for (fault, expected) in [(Fault::Silence, "TIMEOUT"), (Fault::Reset, "INTERRUPTED")] {
            let outcome = world.confirm_with(fault).await;
            assert_eq!(code(&outcome), expected);
            assert_eq!(world.state().await, ProviderState::Open);
        }
        assert!(world.charges().is_empty());
        // The same key goes on where nothing was done.
        assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
        assert_eq!(world.charges(), [PRICE]);
    }

    async fn a_slow_answer_is_waited_for(world: World) {
        world.fake.fail_next_change(Fault::Slow);
        let provider = world.provider.clone();
        let confirming = tokio::spawn(async move { provider.confirm(&charge()).await });
        world.fake.arrival().await;
        world.fake.release();
        assert!(matches!(confirming.await.unwrap(), ProviderOutcome::Done(_)));
    }

    async fn the_same_key_twice_is_one_charge_with_one_answer(world: World) {
        let first = world.confirm().await;
        assert!(matches!(first, ProviderOutcome::Done(_)));
        assert_eq!(world.confirm().await, first);
        assert_eq!(world.charges(), [PRICE]);
    }

    /// The answer says that it was done, not by whom and for how much.
    async fn a_duplicate_with_another_key_is_unknown_and_looking_finds_it_paid(world: World) {
        assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
        let key = "019a8c1e-0000-7000-8000-000000000009:confirm".to_owned();
        let again = ChargeRequest { idempotency_key: key, ..charge() };
        let outcome = world.provider.confirm(&again).await;
        let expected = match world.kind {
            Kind::Toss => "ALREADY_PROCESSED_PAYMENT",
            Kind::PortOne => "ALREADY_PAID",
        };
        assert_eq!(code(&outcome), expected);
        assert_eq!(world.state().await, ProviderState::Paid);
        assert_eq!(world.charges(), [PRICE]);
    }

    async fn another_amount_than_asked_for_is_unknown_and_looking_tells_which(world: World) {
        let outcome = world.confirm_with(Fault::OtherAmount(-1_000)).await;
        assert_eq!(code(&outcome), "MISMATCH");
        let payment = world.payment().await;
        assert_eq!(payment.state, ProviderState::Paid);
        assert_eq!(payment.amount.amount(), PRICE - 1_000);
    }

    async fn more_than_asked_for_is_no_less_wrong(world: World) {
        let outcome = world.confirm_with(Fault::OtherAmount(1)).await;
        assert_eq!(code(&outcome), "MISMATCH");
        assert_eq!(world.payment().await.amount.amount(), PRICE + 1);
    }

    /// P3: order, key and currency count as much as the amount. Toss tells them in the answer,
    /// PortOne when it is asked.
    async fn an_answer_about_something_else_is_unknown(world: World) {
        let order = match world.kind {
            Kind::Toss => "orderId",
            Kind::PortOne => "id",
        };
        let mut fields = vec![(order, "ORD_of_somebody_else"), ("currency", "USD")];
        if world.kind == Kind::Toss {
            fields.push(("paymentKey", "of_somebody_else"));
        }
        for (field, other) in fields {
            match world.kind {
                Kind::Toss => world.fake.fail_next_change(Fault::Says(field, other)),
                Kind::PortOne => world.fake.fail_next_look(Fault::Says(field, other)),
            }
            assert_eq!(code(&world.confirm().await), "MISMATCH", "{field}");
        }
        world.fake.fail_next_look(Fault::Says(order, "ORD_of_somebody_else"));
        assert_eq!(world.find().await, ProviderLookup::Unknown { code: "MISMATCH".to_owned() });
        assert_eq!(world.state().await, ProviderState::Paid);
    }

    async fn a_state_that_nobody_has_heard_of_is_unknown(world: World) {
        world.fake.fail_next_look(Fault::Says("status", "HALF_PAID"));
        assert_eq!(world.find().await, ProviderLookup::Unknown { code: "UNREADABLE".to_owned() });
    }

    async fn a_code_that_nobody_has_heard_of_is_unknown(world: World) {
        for status in [400, 402, 403, 404, 409, 422] {
            let outcome = world.confirm_with(Fault::Refusal(status, "SOMETHING_NEW")).await;
            assert_eq!(code(&outcome), "SOMETHING_NEW", "{status}");
        }
        assert_eq!(world.state().await, ProviderState::Open);
    }

    /// Neither says anything about this payment.
    async fn a_wrong_credential_and_too_many_requests_are_unknown(world: World) {
        for fault in [
            Fault::Refusal(401, "UNAUTHORIZED_KEY"),
            Fault::Refusal(401, "UNAUTHORIZED"),
            Fault::Refusal(403, "FORBIDDEN_REQUEST"),
            Fault::Refusal(403, "FORBIDDEN"),
            Fault::Refusal(429, "TOO_MANY_REQUESTS"),
            Fault::Page(401),
            Fault::Page(429),
        ] {
            let outcome = world.confirm_with(fault).await;
            assert!(matches!(outcome, ProviderOutcome::Unknown { .. }), "{fault:?}: {outcome:?}");
        }
        assert_eq!(world.state().await, ProviderState::Open);
        assert!(world.charges().is_empty());
    }

    async fn a_page_of_somebody_on_the_way_is_unknown(world: World) {
        for status in [301, 400, 404, 500, 502, 503, 504] {
            let outcome = world.confirm_with(Fault::Page(status)).await;
            assert_eq!(code(&outcome), format!("HTTP_{status}"));
        }
        assert!(world.charges().is_empty());
    }

    async fn an_altered_amount_order_or_key_is_declined_and_moves_nothing(world: World) {
        world.agree("ORD_019a8c1e_0002", "tviva20261201token0002");
        let amount = urr_kernel::Won::new(100);
        for (number, altered) in [
            ChargeRequest { amount, ..charge() },
            ChargeRequest { order_id: "ORD_019a8c1e_0002".to_owned(), ..charge() },
            ChargeRequest { payment_key: "forged".to_owned(), ..charge() },
        ]
        .into_iter()
        .enumerate()
        {
            let key = format!("{}-{number}", charge().idempotency_key);
            let altered = ChargeRequest { idempotency_key: key, ..altered };
            let outcome = world.provider.confirm(&altered).await;
            assert!(matches!(outcome, ProviderOutcome::Declined { .. }), "{altered:?}: {outcome:?}");
        }
        assert!(world.fake.books().sales.iter().all(|sale| sale.charges.is_empty()));
    }

    async fn looking_in_vain_is_unknown_and_never_nothing(world: World) {
        for fault in [
            Fault::Silence,
            Fault::Reset,
            Fault::Refusal(500, "FAILED_INTERNAL_SYSTEM_PROCESSING"),
            Fault::Refusal(401, "UNAUTHORIZED_KEY"),
            Fault::Refusal(429, "TOO_MANY_REQUESTS"),
            Fault::Refusal(404, "NOT_FOUND"),
            Fault::Page(404),
            Fault::Page(200),
            Fault::ActThenGarbage,
            Fault::ActThenHugeBody,
        ] {
            let found = world.find_with(fault).await;
            assert!(matches!(found, ProviderLookup::Unknown { .. }), "{fault:?}: {found:?}");
        }
        assert_eq!(world.state().await, ProviderState::Open);
    }

    /// Money that may come later, or never.
    async fn an_account_to_pay_into_is_no_charge_and_can_be_closed(world: World) {
        world.fake.books().of_order(ORDER).unwrap().account = Account::Wanted;
        let ProviderOutcome::Done(payment) = world.confirm().await else {
            panic!("the account is there");
        };
        assert_eq!((payment.state, payment.refunded.amount()), (ProviderState::Deposit, 0));
        assert_eq!(world.state().await, ProviderState::Deposit);
        let key = "019a8c1e-0000-7000-8000-000000000001:call-off:0".to_owned();
        let close_deposit = ChargeRequest { idempotency_key: key, ..charge() };
        let closed = world.provider.close_deposit(&close_deposit).await;
        assert!(matches!(closed, ProviderOutcome::Done(_)), "{closed:?}");
        assert_eq!(world.state().await, ProviderState::Dead);
        assert!(world.charges().is_empty());
    }

    /// The charge was made, and only what is said of it afterwards is lost. What the provider calls
    /// it is kept.
    async fn what_was_sent_is_never_said_to_be_unsent(world: World) {
        let outcome = match world.kind {
            Kind::Toss => world.confirm_with(Fault::ActThenReset).await,
            Kind::PortOne => {
                world.fake.fail_next_look(Fault::Reset);
                world.confirm().await
            }
        };
        assert!(matches!(outcome, ProviderOutcome::Unknown { .. }), "{outcome:?}");
        let payment = world.payment().await;
        let own_name = match world.kind {
            Kind::Toss => KEY,
            Kind::PortOne => "tx-ORD_019a8c1e_0001",
        };
        assert_eq!((payment.payment_key.as_str(), payment.provider_key()), (KEY, own_name));
    }

    /// Nothing was sent this time. What was sent before, nobody here knows.
    async fn a_provider_that_cannot_be_reached_is_unknown(world: World) {
        let nowhere = connect(world.kind, "http://127.0.0.1:9", &world.clock, PATIENCE);
        let unsent = ProviderOutcome::Unsent { code: "UNREACHABLE".to_owned() };
        assert_eq!(nowhere.confirm(&charge()).await, unsent);
        let found = nowhere.find(ORDER, None).await;
        assert_eq!(found, ProviderLookup::Unknown { code: "UNREACHABLE".to_owned() });
    }
}
