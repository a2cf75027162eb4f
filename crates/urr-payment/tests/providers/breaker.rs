//! A provider that keeps failing is left alone for a while; one that says no is not.

use std::time::Duration;

use urr_payment::provider::{ProviderListing, ProviderLookup, ProviderOutcome};

use crate::fake_provider::Fault;
use crate::fixture::{Kind, ORDER, PATIENCE, charge, code, connect};

/// Consecutive failures that open the breaker.
const FAILURES: usize = 10;
const OPEN_FOR: Duration = Duration::from_secs(10);

both_providers! {
    async fn after_many_failures_nobody_calls_until_some_time_has_passed(world: World) {
        for _ in 0..FAILURES {
            let outcome = world.confirm_with(Fault::Page(503)).await;
            assert_eq!(code(&outcome), "HTTP_503");
        }
        let calls = world.fake.seen().len();
        assert_eq!(code(&world.confirm().await), "CIRCUIT_OPEN");
        assert_eq!(world.find().await, ProviderLookup::Unknown { code: "CIRCUIT_OPEN".to_owned() });
        assert_eq!(world.fake.seen().len(), calls);
        world.clock.advance(OPEN_FOR);
        assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    }

    /// Reconciliation makes many calls, and no user waits for them.
    async fn what_fails_for_the_books_closes_nothing_to_buyers(world: World) {
        let (from, to) = (world.clock.now() - OPEN_FOR, world.clock.now());
        for _ in 0..FAILURES {
            world.fake.fail_next_look(Fault::Page(503));
            let listed = world.provider.list(from, to).await;
            assert_eq!(listed, ProviderListing::Unknown { code: "HTTP_503".to_owned() });
        }
        let open = "CIRCUIT_OPEN".to_owned();
        let found = world.provider.find_for_reconciliation(ORDER, None).await;
        assert_eq!(found, ProviderLookup::Unknown { code: open }, "the control");
        assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    }

    /// M-12: otherwise buyers with bad cards would close the provider to everybody.
    async fn refusals_do_not_open_the_breaker(world: World) {
        let refusal = match world.kind {
            Kind::Toss => Fault::Refusal(500, "UNKNOWN_PAYMENT_ERROR"),
            Kind::PortOne => Fault::Refusal(502, "PG_PROVIDER"),
        };
        let others = [
            Fault::Refusal(403, "REJECT_CARD_PAYMENT"),
            Fault::Refusal(429, "TOO_MANY_REQUESTS"),
        ];
        for _ in 0..2 * FAILURES {
            for fault in [refusal, others[0], refusal, others[1]] {
                let outcome = world.confirm_with(fault).await;
                assert!(!matches!(outcome, ProviderOutcome::Done(_)));
            }
        }
        assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    }

    /// Nobody gets through until somebody has looked at the credential.
    async fn a_credential_that_is_refused_counts_against_the_provider(world: World) {
        let fault = match world.kind {
            Kind::Toss => Fault::Refusal(401, "UNAUTHORIZED_KEY"),
            Kind::PortOne => Fault::Refusal(403, "FORBIDDEN"),
        };
        for _ in 0..FAILURES {
            let outcome = world.confirm_with(fault).await;
            assert!(matches!(outcome, ProviderOutcome::Unknown { .. }), "{outcome:?}");
        }
        let unsent = ProviderOutcome::Unsent { code: "CIRCUIT_OPEN".to_owned() };
        assert_eq!(world.confirm().await, unsent);
    }

    /// What was sent is sent once, whatever comes of it: only its key may be used again, by those
    /// who have asked first.
    async fn what_may_have_arrived_is_not_sent_again(world: World) {
        for fault in [Fault::ActThenReset, Fault::Reset, Fault::Page(503), Fault::ActThenFail] {
            let calls = world.fake.seen().len();
            assert!(matches!(world.confirm_with(fault).await, ProviderOutcome::Unknown { .. }));
            assert_eq!(world.fake.seen().len(), calls + 1, "{fault:?}");
        }
    }

    /// Seen by the breaker, which counts attempts: each of these calls makes two.
    async fn what_surely_was_not_sent_is_tried_once_more(world: World) {
        let nowhere = connect(world.kind, "http://127.0.0.1:9", &world.clock, PATIENCE);
        for _ in 0..FAILURES / 2 {
            assert_eq!(code(&nowhere.confirm(&charge()).await), "UNREACHABLE");
        }
        assert_eq!(code(&nowhere.confirm(&charge()).await), "CIRCUIT_OPEN");
        // The control: as many calls that were sent leave it closed.
        for _ in 0..FAILURES / 2 {
            assert_eq!(code(&world.confirm_with(Fault::Page(503)).await), "HTTP_503");
        }
        assert!(matches!(world.provider.find(ORDER, None).await, ProviderLookup::Payment(_)));
    }
}
