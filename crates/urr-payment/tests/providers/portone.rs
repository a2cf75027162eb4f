//! What only PortOne does: its protocol, its codes, and looking before a refusal is believed.

use serde_json::json;
use urr_kernel::{Clock, Secret, Timestamp, Won};
use urr_outbound::Outbound;
use urr_payment::provider::{
    ChargeRequest, InvalidProviderCredential, ListedOrder, ListedState, PORTONE_ENDPOINT,
    PaymentChannel, PortOneClient, PortOneSettings, ProviderListing, ProviderLookup,
    ProviderOutcome, ProviderState,
};

use crate::fake_portone::{CHANNEL_KEY, STORE_ID};
use crate::fake_provider::Fault;
use crate::fixture::{
    KEY, Kind, ORDER, PRICE, WEBHOOK_SECRETS, World, charge, code, connect_portone, giving_back,
};

#[tokio::test]
async fn requests_are_written_as_portone_wants_them() {
    let world = World::new(Kind::PortOne).await;
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    assert!(matches!(world.provider.cancel(&giving_back(2_000)).await, ProviderOutcome::Done(_)));
    let seen = world.fake.seen();
    assert_eq!(seen[0].path, format!("/payments/{ORDER}/confirm"));
    let body = json!({
        "storeId": STORE_ID, "paymentToken": KEY, "totalAmount": PRICE, "currency": "KRW",
    });
    assert_eq!(seen[0].body, body);
    let key = "\"019a8c1e-0000-7000-8000-000000000001:confirm\"";
    assert_eq!(seen[0].headers["idempotency-key"], key);
    assert_eq!(seen[1].path, format!("/payments/{ORDER}"));
    assert_eq!(seen[2].path, format!("/payments/{ORDER}/cancel"));
    let body = json!({
        "storeId": STORE_ID, "amount": 2_000, "currentCancellableAmount": PRICE,
        "reason": "공연 취소",
    });
    assert_eq!(seen[2].body, body);
    assert_eq!(world.provider.store_id(), Some(STORE_ID));
    assert_eq!(world.provider.client_key(), "channel-key-893597d6");
}

/// PortOne tells of a declined card with status 502, and marks the payment as failed.
#[tokio::test]
async fn a_declined_card_is_a_decline_once_the_payment_is_seen_to_be_dead() {
    let world = World::new(Kind::PortOne).await;
    let declined = Fault::Refusal(502, "PG_PROVIDER");
    // Open, it may still be under way.
    assert_eq!(code(&world.confirm_with(declined).await), "PG_PROVIDER");
    world.fake.fail_next_look(Fault::Page(500));
    assert_eq!(code(&world.confirm_with(declined).await), "PG_PROVIDER");
    world.fake.books().of_order(ORDER).unwrap().is_dead = true;
    let outcome = world.confirm_with(declined).await;
    assert_eq!(outcome, ProviderOutcome::Declined { code: "PG_PROVIDER".to_owned() });
}

/// A token may be good for one use. If that one worked, the refusal of the next is no news.
#[tokio::test]
async fn a_used_up_token_of_a_paid_payment_is_not_a_decline() {
    let world = World::new(Kind::PortOne).await;
    let used_up = Fault::Refusal(400, "INVALID_PAYMENT_TOKEN");
    let outcome = world.confirm_with(used_up).await;
    assert_eq!(outcome, ProviderOutcome::Declined { code: "INVALID_PAYMENT_TOKEN".to_owned() });
    assert_eq!(code(&world.confirm_with(Fault::ActThenReset).await), "INTERRUPTED");
    assert_eq!(code(&world.confirm_with(used_up).await), "INVALID_PAYMENT_TOKEN");
    assert_eq!(world.state().await, ProviderState::Paid);
}

/// A successful answer is believed only as far as the payment can be seen.
#[tokio::test]
async fn a_charge_that_cannot_be_seen_is_unknown() {
    let world = World::new(Kind::PortOne).await;
    world.fake.fail_next_look(Fault::Page(500));
    assert_eq!(code(&world.confirm().await), "HTTP_500");
    assert_eq!(world.state().await, ProviderState::Paid);
    world.fake.fail_next_look(Fault::Reset);
    assert_eq!(code(&world.provider.cancel(&giving_back(1_000)).await), "INTERRUPTED");
    assert_eq!(world.payment().await.refunded, Won::new(1_000));
}

/// An earlier attempt that did work would cause it: the amount is checked against what is left.
#[tokio::test]
async fn an_amount_that_no_longer_fits_is_unknown() {
    let world = World::new(Kind::PortOne).await;
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    assert!(matches!(world.provider.cancel(&giving_back(1_000)).await, ProviderOutcome::Done(_)));
    let key = "019a8c1e-0000-7000-8000-00000000000a".to_owned();
    let late = urr_payment::provider::RefundRequest { idempotency_key: key, ..giving_back(1_000) };
    let outcome = world.provider.cancel(&late).await;
    assert_eq!(code(&outcome), "CANCELLABLE_AMOUNT_CONSISTENCY_BROKEN");
    assert_eq!(world.returns(), [1_000]);
}

#[tokio::test]
async fn what_was_not_paid_is_not_given_back() {
    let world = World::new(Kind::PortOne).await;
    let outcome = world.provider.cancel(&giving_back(1_000)).await;
    assert_eq!(outcome, ProviderOutcome::Declined { code: "PAYMENT_NOT_PAID".to_owned() });
}

#[tokio::test]
async fn without_a_key_a_found_payment_is_named_by_its_transaction() {
    let world = World::new(Kind::PortOne).await;
    let ProviderLookup::Payment(payment) = world.provider.find(ORDER, None).await else {
        panic!("the order is known");
    };
    assert_eq!(payment.payment_key, format!("tx-{ORDER}"));
}

#[tokio::test]
#[should_panic(expected = "16 to 256 plain characters")]
async fn a_key_that_portone_would_refuse_is_a_bug_of_ours() {
    let world = World::new(Kind::PortOne).await;
    let short = ChargeRequest { idempotency_key: "short".to_owned(), ..charge() };
    drop(world.provider.confirm(&short).await);
}

#[test]
fn credentials_that_cannot_be_used_are_refused_at_the_start() {
    let refused = |secret: &str, webhooks: &[&str]| {
        let settings = PortOneSettings {
            api_secret: Secret::new(secret),
            store_id: String::new(),
            channel_key: String::new(),
            accepts_test_channel: false,
            webhook_secrets: webhooks.iter().copied().map(Secret::new).collect(),
            endpoint: PORTONE_ENDPOINT.to_owned(),
            timeout: std::time::Duration::from_secs(10),
        };
        PortOneClient::new(settings, Outbound::new(), Clock::System).err()
    };
    let [first, second] = WEBHOOK_SECRETS;
    assert_eq!(refused("secret", &[first, second]), None);
    assert_eq!(refused("", &[]), Some(InvalidProviderCredential));
    for webhooks in [&["whsec_"][..], &["whsec_not base64"], &[first, second, first]] {
        assert_eq!(refused("secret", webhooks), Some(InvalidProviderCredential), "{webhooks:?}");
    }
}

#[tokio::test]
async fn orders_with_events_in_a_span_are_listed_each_once() {
    let world = World::new(Kind::PortOne).await;
    world.agree("ORD_never_charged", "never");
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    world.agree("ORD_other", "other");
    {
        let mut books = world.fake.books();
        books.of_order(ORDER).unwrap().returns.extend([1; 250]);
        books.of_order("ORD_other").unwrap().charges.push(PRICE);
    }
    let (from, to): (Timestamp, Timestamp) =
        ("2026-12-01T00:00:00Z".parse().unwrap(), "2026-12-02T00:00:00Z".parse().unwrap());
    let unclear = |order_id: &str| {
        let state = ListedState::Unclear;
        ListedOrder { order_id: order_id.to_owned(), state }
    };
    let both = ProviderListing::Orders(vec![unclear(ORDER), unclear("ORD_other")]);
    assert_eq!(world.provider.list(from, to).await, both);
    let pages = world.fake.seen().into_iter();
    let pages: Vec<_> = pages.filter(|seen| seen.path == "/payment-events-by-cursor").collect();
    assert_eq!(pages.len(), 3);
    let asked = json!({
        "storeId": STORE_ID, "from": "2026-12-01T00:00:00Z", "until": "2026-12-02T00:00:00Z",
        "size": 100, "cursor": "200",
    });
    assert_eq!(pages[2].body, asked);
    world.fake.fail_next_look(Fault::ActThenGarbage);
    let listed = world.provider.list(from, to).await;
    assert_eq!(listed, ProviderListing::Unknown { code: "UNREADABLE".to_owned() });
}

/// The buyer's browser names the channel when it opens the checkout.
#[tokio::test]
async fn a_payment_tells_whether_it_went_through_our_live_channel() {
    let world = World::new(Kind::PortOne).await;
    let (key, other) = (CHANNEL_KEY, "channel-key-of-another-shop");
    let cases = [
        (("LIVE", key), PaymentChannel::Configured),
        (("TEST", key), PaymentChannel::Test),
        (("LIVE", other), PaymentChannel::Other),
        (("TEST", other), PaymentChannel::Other),
        (("SANDBOX", key), PaymentChannel::Other),
    ];
    for (chosen, channel) in cases {
        world.fake.books().of_order(ORDER).unwrap().channel = chosen;
        assert_eq!(world.payment().await.channel, channel, "{chosen:?}");
    }
    world.fake.fail_next_look(Fault::Says("channel", "none"));
    let unreadable = ProviderLookup::Unknown { code: "UNREADABLE".to_owned() };
    assert_eq!(world.find().await, unreadable);
    // The control: with the guard off, a test channel counts.
    world.fake.books().of_order(ORDER).unwrap().channel = ("TEST", key);
    let lenient = connect_portone(&world.endpoint, &world.clock, true);
    let ProviderLookup::Payment(payment) = lenient.find(ORDER, None).await else {
        panic!("the order is known");
    };
    assert_eq!(payment.channel, PaymentChannel::Configured);
}

/// It is no answer about our order, whatever it says.
#[tokio::test]
async fn a_payment_of_another_store_is_no_answer() {
    let world = World::new(Kind::PortOne).await;
    assert!(matches!(world.confirm().await, ProviderOutcome::Done(_)));
    world.fake.fail_next_look(Fault::Says("storeId", "store-of-somebody-else"));
    let mismatch = ProviderLookup::Unknown { code: "STORE_MISMATCH".to_owned() };
    assert_eq!(world.find().await, mismatch);
}
