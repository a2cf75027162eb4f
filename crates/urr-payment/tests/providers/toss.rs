//! What only Toss does: its protocol and its codes.

use serde_json::json;
use urr_kernel::{Clock, Secret, Timestamp};
use urr_outbound::Outbound;
use urr_payment::provider::{
    InvalidProviderCredential, ListedOrder, ListedState, ProviderListing, ProviderOutcome,
    RefundRequest, TOSS_ENDPOINT, TossClient, TossSettings,
};

use crate::fake_provider::Fault;
use crate::fixture::{KEY, Kind, ORDER, PRICE, World, charge, code, giving_back};

#[tokio::test]
async fn requests_are_written_as_toss_wants_them() {
    let world = World::new(Kind::Toss).await;
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    let long = RefundRequest { reason: "가".repeat(300), ..giving_back(2_000) };
    assert!(matches!(world.provider.cancel(&long).await, ProviderOutcome::Done(_)));
    let seen = world.fake.seen();
    assert_eq!(seen[0].path, "/v1/payments/confirm");
    let body = json!({ "paymentKey": KEY, "orderId": ORDER, "amount": PRICE });
    assert_eq!(seen[0].body, body);
    let key = "019a8c1e-0000-7000-8000-000000000001:confirm";
    assert_eq!(seen[0].headers["idempotency-key"], key);
    assert_eq!(seen[1].path, format!("/v1/payments/{KEY}/cancel"));
    let body = json!({ "cancelReason": "가".repeat(200), "cancelAmount": 2_000 });
    assert_eq!(seen[1].body, body);
    assert_eq!(world.provider.client_key(), "test_ck_docs");
}

#[tokio::test]
async fn a_verdict_on_the_payment_is_a_decline() {
    let world = World::new(Kind::Toss).await;
    for (status, verdict) in [
        (400, "INVALID_REJECT_CARD"),
        (400, "INVALID_CARD_EXPIRATION"),
        (400, "EXCEED_MAX_DAILY_PAYMENT_COUNT"),
        (400, "BELOW_MINIMUM_AMOUNT"),
        (403, "REJECT_CARD_PAYMENT"),
        (403, "REJECT_ACCOUNT_PAYMENT"),
        (403, "NOT_AVAILABLE_PAYMENT"),
        (404, "NOT_FOUND_PAYMENT"),
        (404, "NOT_FOUND_PAYMENT_SESSION"),
    ] {
        let outcome = world.confirm_with(Fault::Refusal(status, verdict)).await;
        assert_eq!(outcome, ProviderOutcome::Declined { code: verdict.to_owned() });
    }
}

/// The control: the same words in a failure of TossClient, and codes that leave it open.
#[tokio::test]
async fn what_leaves_it_open_is_not_a_decline() {
    let world = World::new(Kind::Toss).await;
    for (status, reason) in [
        (400, "ALREADY_PROCESSED_PAYMENT"),
        (400, "PROVIDER_ERROR"),
        (400, "DUPLICATED_ORDER_ID"),
        (409, "IDEMPOTENT_REQUEST_PROCESSING"),
        (403, "FORBIDDEN_CONSECUTIVE_REQUEST"),
        (400, "INVALID_API_KEY"),
        (403, "INCORRECT_BASIC_AUTH_FORMAT"),
        (500, "UNKNOWN_PAYMENT_ERROR"),
        (500, "REJECT_CARD_PAYMENT"),
    ] {
        let outcome = world.confirm_with(Fault::Refusal(status, reason)).await;
        assert_eq!(code(&outcome), reason);
    }
}

#[tokio::test]
async fn a_verdict_on_the_return_is_a_decline() {
    let world = World::new(Kind::Toss).await;
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    for (status, verdict) in [
        (403, "NOT_CANCELABLE_PAYMENT"),
        (403, "EXCEED_MAX_REFUND_DUE"),
        (403, "NOT_ALLOWED_PARTIAL_REFUND"),
        (400, "REFUND_REJECTED"),
    ] {
        let refusal = Fault::Refusal(status, verdict);
        let outcome = world.give_back_with(refusal, &giving_back(1_000)).await;
        assert_eq!(outcome, ProviderOutcome::Declined { code: verdict.to_owned() });
    }
    for (status, reason) in [
        (400, "NOT_MATCHES_REFUNDABLE_AMOUNT"),
        (400, "ALREADY_REFUND_PAYMENT"),
        (500, "FAILED_REFUND_PROCESS"),
        (500, "FAILED_PARTIAL_REFUND"),
    ] {
        let refusal = Fault::Refusal(status, reason);
        assert_eq!(code(&world.give_back_with(refusal, &giving_back(1_000)).await), reason);
    }
}

/// 401 for real: the stand-in compares the whole header.
#[tokio::test]
async fn a_key_of_somebody_else_moves_nothing() {
    let world = World::new(Kind::Toss).await;
    let stranger = settings("test_sk_other", &world.endpoint);
    let stranger = TossClient::new(stranger, Outbound::new(), Clock::System).unwrap();
    assert_eq!(code(&stranger.confirm(&charge()).await), "UNAUTHORIZED_KEY");
    assert!(world.charges().is_empty());
}

#[test]
fn a_key_that_cannot_be_sent_is_refused_at_the_start() {
    for key in ["", "\u{feff}", "test sk", "test_sk_\u{1}"] {
        let toss = TossClient::new(settings(key, TOSS_ENDPOINT), Outbound::new(), Clock::System);
        assert_eq!(toss.err(), Some(InvalidProviderCredential), "{key:?}");
    }
    let marked = settings("\u{feff}test_sk_a\n", TOSS_ENDPOINT);
    assert!(TossClient::new(marked, Outbound::new(), Clock::System).is_ok());
}

#[tokio::test]
async fn transactions_of_a_span_are_listed_with_what_they_tell() {
    let world = World::new(Kind::Toss).await;
    world.agree("ORD_never_charged", "never");
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    let (from, to): (Timestamp, Timestamp) =
        ("2026-12-01T00:00:00Z".parse().unwrap(), "2026-12-02T00:00:00Z".parse().unwrap());
    let one =
        |state| ProviderListing::Orders(vec![ListedOrder { order_id: ORDER.to_owned(), state }]);
    let charged = ListedState::Charged(world.payment().await.amount);
    assert_eq!(world.provider.list(from, to).await, one(charged), "the list says it all");
    assert!(matches!(world.provider.cancel(&giving_back(2_000)).await, ProviderOutcome::Done(_)));
    assert_eq!(world.provider.list(from, to).await, one(ListedState::Unclear));
    let asked = world.fake.seen().into_iter().find(|seen| seen.path == "/v1/transactions");
    let span = json!(["2026-12-01T09:00:00", "2026-12-02T09:00:00", null, 1_000]);
    assert_eq!(asked.unwrap().body, span);
    {
        let mut books = world.fake.books();
        let sale = books.of_order(ORDER).unwrap();
        sale.returns.extend([1; 1_500]);
    }
    assert_eq!(world.provider.list(from, to).await, one(ListedState::Unclear));
    let pages = world.fake.seen().into_iter().filter(|seen| seen.path == "/v1/transactions");
    assert_eq!(pages.last().unwrap().body[2], format!("{KEY}-999"));
    world.fake.fail_next_look(Fault::Page(502));
    let listed = world.provider.list(from, to).await;
    assert_eq!(listed, ProviderListing::Unknown { code: "HTTP_502".to_owned() });
}

fn settings(key: &str, endpoint: &str) -> TossSettings {
    TossSettings {
        secret_key: Secret::new(key),
        client_key: String::new(),
        endpoint: endpoint.to_owned(),
        timeout: std::time::Duration::from_secs(10),
    }
}
