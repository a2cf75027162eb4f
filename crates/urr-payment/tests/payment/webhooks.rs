//! Messages of a provider: hints to look, bounded, each once.

use std::time::Duration;

use axum::http::{HeaderMap, Method};
use serde_json::json;
use urr_kernel::{Secret, Timestamp, Won};
use urr_outbound::Outbound;
use urr_payment::provider::{
    CALL_TIMEOUT, PortOneClient, PortOneSettings, ProviderClient, TestCard, TossClient,
    TossSettings,
};
use urr_payment::{
    FaultPoints, Payment, PaymentParts, PaymentService, PaymentSettings, PaymentStatus, SagaStep,
};
use urr_service::UserRole;
use urr_storage::StorageError;

use crate::api_client::{Answer, ApiClient, headers};
use crate::contract;
use crate::fixture::{World, ticket_client};

/// The same tables, in a process that also knows Toss. Nobody is there to be asked.
fn with_toss(world: &World) -> PaymentService {
    let settings = TossSettings {
        secret_key: Secret::new("test_sk_of_nobody"),
        client_key: "test_ck_of_nobody".to_owned(),
        endpoint: "http://127.0.0.1:9".to_owned(),
        timeout: CALL_TIMEOUT,
    };
    let toss = TossClient::new(settings, Outbound::new(), world.clock.clone()).unwrap();
    let sandbox = ProviderClient::Sandbox(world.sandbox.clone());
    PaymentService::new(PaymentParts {
        db: world.db.clone(),
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: PaymentSettings::default(),
        providers: vec![sandbox, ProviderClient::Toss(toss)],
        tickets: ticket_client(&world.tickets, &world.clock, &world.ids),
        faults: FaultPoints::default(),
    })
}

/// The same with PortOne.
fn with_portone(world: &World) -> PaymentService {
    let settings = PortOneSettings {
        api_secret: Secret::new("secret_of_nobody"),
        store_id: "store".to_owned(),
        channel_key: "channel".to_owned(),
        accepts_test_channel: false,
        webhook_secrets: vec![Secret::new("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz")],
        endpoint: "http://127.0.0.1:9".to_owned(),
        timeout: CALL_TIMEOUT,
    };
    let portone = PortOneClient::new(settings, Outbound::new(), world.clock.clone()).unwrap();
    PaymentService::new(PaymentParts {
        db: world.db.clone(),
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: PaymentSettings::default(),
        providers: vec![ProviderClient::PortOne(portone)],
        tickets: ticket_client(&world.tickets, &world.clock, &world.ids),
        faults: FaultPoints::default(),
    })
}

async fn run(world: &World, sql: &'static str) {
    let done: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}

/// A payment of Toss that was given up.
async fn given_up(world: &World) -> Payment {
    let (_, payment) = world.pay(TestCard::TimeOut).await;
    world.settle().await;
    run(world, "update payments set provider = 'toss'").await;
    payment
}

async fn tell(api: &ApiClient, order_id: &str, message_id: &str) -> Answer {
    let message = json!({
        "eventType": "PAYMENT_STATUS_CHANGED",
        "data": {"orderId": order_id, "status": "DONE", "totalAmount": 1},
    });
    let mut headers: HeaderMap = headers(None, UserRole::User);
    headers.insert("tosspayments-webhook-transmission-id", message_id.parse().unwrap());
    api.send(Method::POST, "/api/payments/webhooks/toss", &headers, message.to_string()).await
}

async fn messages(world: &World) -> i64 {
    world.number("select count(*) as number from webhooks").await
}

contract! {
    async fn a_message_about_a_payment_that_was_given_up_causes_a_look_and_no_more(world: World) {
        let payment = given_up(&world).await;
        let api = ApiClient::to(&with_toss(&world), &world);
        assert_eq!(tell(&api, &payment.order_id, "m1").await.0, 200);
        let looked_at = world.find(payment.id).await;
        assert_eq!((looked_at.status, looked_at.step), (PaymentStatus::Failed, Some(SagaStep::Query)));
        assert_eq!(looked_at.charged, Won::ZERO, "whatever the message says");
    }

    async fn a_message_that_is_sent_again_is_one_message(world: World) {
        let payment = given_up(&world).await;
        let api = ApiClient::to(&with_toss(&world), &world);
        assert_eq!(tell(&api, &payment.order_id, "m1").await.0, 200);
        run(&world, "update payments set step = null").await;
        for _ in 0..3 {
            assert_eq!(tell(&api, &payment.order_id, "m1").await.0, 200);
        }
        assert_eq!((messages(&world).await, world.find(payment.id).await.step), (1, None));
    }

    async fn what_strangers_send_leaves_few_traces(world: World) {
        let payment = given_up(&world).await;
        let (_, sandbox) = world.pay(TestCard::Approve).await;
        let api = ApiClient::to(&with_toss(&world), &world);
        for order in ["ORD_0_00000000", sandbox.order_id.as_str()] {
            assert_eq!(tell(&api, order, "m1").await.0, 200, "{order}");
        }
        assert_eq!(messages(&world).await, 0, "nothing of TossClient, nothing is kept");
        for number in 0..60 {
            let message_id = format!("m{number}");
            assert_eq!(tell(&api, &payment.order_id, &message_id).await.0, 200);
        }
        assert_eq!(messages(&world).await, 20);
        let large = "x".repeat(64 * 1024 + 1);
        let headers = headers(None, UserRole::User);
        let path = "/api/payments/webhooks/toss";
        assert_eq!(api.send(Method::POST, path, &headers, large).await.0, 413);
        assert_eq!(api.send(Method::POST, path, &headers, "{".to_owned()).await.0, 400);
    }

    async fn fifty_forged_messages_do_not_silence_the_real_one(world: World) {
        let payment = given_up(&world).await;
        let api = ApiClient::to(&with_toss(&world), &world);
        for number in 0..50 {
            tell(&api, &payment.order_id, &format!("forged{number}")).await;
        }
        // All of that was looked into, and nothing was found.
        run(&world, "update payments set step = null").await;
        assert_eq!(tell(&api, &payment.order_id, "real").await.0, 200);
        assert_eq!(world.find(payment.id).await.step, Some(SagaStep::Query));
        // The flood goes on, and there is one look in a minute.
        let look_at = "select next_attempt_at as at from payments";
        let before: Vec<Timestamp> = world.query(look_at, |row| row.get("at")).await;
        assert!(before[0] <= world.clock.now() + Duration::from_secs(60));
        world.clock.advance(Duration::from_secs(30));
        for number in 0..5 {
            tell(&api, &payment.order_id, &format!("more{number}")).await;
        }
        let after: Vec<Timestamp> = world.query(look_at, |row| row.get("at")).await;
        assert_eq!(before, after);
        assert_eq!(messages(&world).await, 20);
        // An hour later the next ones count again.
        world.clock.advance(Duration::from_secs(60 * 60));
        tell(&api, &payment.order_id, "later").await;
        assert_eq!(messages(&world).await, 21);
    }

    async fn messages_and_keys_that_nobody_sends_again_are_forgotten(world: World) {
        let payment = given_up(&world).await;
        let api = ApiClient::to(&with_toss(&world), &world);
        tell(&api, &payment.order_id, "m1").await;
        world.clock.advance(Duration::from_secs(6 * 24 * 60 * 60));
        tell(&api, &payment.order_id, "m2").await;
        assert_eq!(world.payments.delete_old_rows().await, Ok(0));
        world.clock.advance(Duration::from_secs(2 * 24 * 60 * 60));
        assert_eq!(world.payments.delete_old_rows().await, Ok(1));
        assert_eq!(messages(&world).await, 1);
    }

    async fn a_forged_message_of_portone_is_refused_at_the_door(world: World) {
        let (_, payment) = world.pay(TestCard::TimeOut).await;
        world.settle().await;
        run(&world, "update payments set provider = 'portone'").await;
        let api = ApiClient::to(&with_portone(&world), &world);
        let message = json!({
            "type": "Transaction.Paid",
            "timestamp": world.clock.now(),
            "data": {"paymentId": payment.order_id, "transactionId": "t", "storeId": "store"},
        });
        let mut headers = headers(None, UserRole::User);
        let path = "/api/payments/webhooks/portone";
        let refused = async |headers: &HeaderMap| {
            let answer = api.send(Method::POST, path, headers, message.to_string()).await;
            (answer.0.as_u16(), answer.1["code"].as_str().unwrap_or_default().to_owned())
        };
        let invalid = (400, "INVALID_SIGNATURE".to_owned());
        assert_eq!(refused(&headers).await, invalid, "without a signature");
        headers.insert("webhook-id", "w1".parse().unwrap());
        let now = world.clock.now().as_second().to_string();
        headers.insert("webhook-timestamp", now.parse().unwrap());
        headers.insert("webhook-signature", "v1,Zm9yZ2Vk".parse().unwrap());
        assert_eq!(refused(&headers).await, invalid, "with somebody else's");
        assert_eq!((messages(&world).await, world.find(payment.id).await.step), (0, None));
    }

    /// The look must not become a charge: the buyer was told that it failed.
    async fn a_look_at_what_was_given_up_never_charges(world: World) {
        let (held, payment) = world.pay(TestCard::TimeOut).await;
        world.settle().await;
        let attempts = "select count(*) as number from provider_calls";
        let before = world.number(attempts).await;
        run(&world, "update payments set step = 'query', next_attempt_at = created_at").await;
        world.settle().await;
        assert_eq!(world.number(attempts).await, before);
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Failed);
        assert_eq!(world.tickets.get(held.id).tickets, 0);
        world.assert_whole().await;
    }

    /// A provider that is gone from the configuration ends nothing.
    async fn without_its_provider_a_payment_waits(world: World) {
        let (_, payment) = world.pay(TestCard::ChargeThenTimeOut).await;
        run(&world, "update payments set provider = 'gone'").await;
        for _ in 0..10 {
            world.clock.advance(std::time::Duration::from_secs(301));
            world.payments.resolve_due().await.unwrap();
        }
        let waiting = world.find(payment.id).await;
        assert_eq!(waiting.status, PaymentStatus::Unknown);
        assert_eq!(waiting.wait_code.as_deref(), Some("PROVIDER_GONE"));
        run(&world, "update payments set provider = 'sandbox'").await;
        world.settle().await;
        assert_eq!(world.find(payment.id).await.status, PaymentStatus::Confirmed);
        world.assert_whole().await;
    }
}
