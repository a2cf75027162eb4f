//! Messages of a provider: hints to look, bounded, each once.

use axum::http::{HeaderMap, Method};
use serde_json::json;
use urr_kernel::{Secret, Won};
use urr_outbound::Outbound;
use urr_payment::provider::{CALL_TIMEOUT, Card, Provider, Toss, TossSettings};
use urr_payment::{Faults, Payment, PaymentParts, Payments, Settings, Status, Step};
use urr_service::Role;
use urr_storage::StorageError;

use crate::contract;
use crate::door::{Answer, Door, headers};
use crate::fixture::World;

/// The same tables, in a process that also knows Toss. Nobody is there to be asked.
fn with_toss(world: &World) -> Payments {
    let settings = TossSettings {
        secret_key: Secret::new("test_sk_of_nobody"),
        client_key: "test_ck_of_nobody".to_owned(),
        endpoint: "http://127.0.0.1:9".to_owned(),
        timeout: CALL_TIMEOUT,
    };
    let toss = Toss::new(settings, Outbound::new(), world.clock.clone()).unwrap();
    let sandbox = Provider::Sandbox(world.sandbox.clone());
    Payments::new(PaymentParts {
        db: world.db.clone(),
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: Settings::default(),
        providers: vec![sandbox, Provider::Toss(toss)],
        faults: Faults::default(),
    })
}

async fn run(world: &World, sql: &'static str) {
    let done: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}

/// A payment of Toss that was given up.
async fn given_up(world: &World) -> Payment {
    let (_, payment) = world.pay(Card::TimeOut).await;
    world.settle().await;
    run(world, "update payments set provider = 'toss'").await;
    payment
}

async fn tell(door: &Door, order_id: &str, message_id: &str) -> Answer {
    let message = json!({
        "eventType": "PAYMENT_STATUS_CHANGED",
        "data": {"orderId": order_id, "status": "DONE", "totalAmount": 1},
    });
    let mut headers: HeaderMap = headers(None, Role::User);
    headers.insert("tosspayments-webhook-transmission-id", message_id.parse().unwrap());
    door.send(Method::POST, "/api/payments/webhooks/toss", &headers, message.to_string()).await
}

async fn messages(world: &World) -> i64 {
    world.number("select count(*) as number from webhooks").await
}

contract! {
    async fn a_message_about_a_payment_that_was_given_up_causes_a_look_and_no_more(world: World) {
        let payment = given_up(&world).await;
        let door = Door::to(&with_toss(&world), &world);
        assert_eq!(tell(&door, &payment.order_id, "m1").await.0, 200);
        let looked_at = world.find(payment.id).await;
        assert_eq!((looked_at.status, looked_at.step), (Status::Failed, Some(Step::Query)));
        assert_eq!(looked_at.charged, Won::ZERO, "whatever the message says");
    }

    async fn a_message_that_is_sent_again_is_one_message(world: World) {
        let payment = given_up(&world).await;
        let door = Door::to(&with_toss(&world), &world);
        assert_eq!(tell(&door, &payment.order_id, "m1").await.0, 200);
        run(&world, "update payments set step = null").await;
        for _ in 0..3 {
            assert_eq!(tell(&door, &payment.order_id, "m1").await.0, 200);
        }
        assert_eq!((messages(&world).await, world.find(payment.id).await.step), (1, None));
    }

    async fn what_strangers_send_leaves_few_traces(world: World) {
        let payment = given_up(&world).await;
        let (_, sandbox) = world.pay(Card::Approve).await;
        let door = Door::to(&with_toss(&world), &world);
        for order in ["ORD_0_00000000", sandbox.order_id.as_str()] {
            assert_eq!(tell(&door, order, "m1").await.0, 200, "{order}");
        }
        assert_eq!(messages(&world).await, 0, "nothing of Toss, nothing is kept");
        for number in 0..60 {
            let message_id = format!("m{number}");
            assert_eq!(tell(&door, &payment.order_id, &message_id).await.0, 200);
        }
        assert_eq!(messages(&world).await, 50);
        let large = "x".repeat(64 * 1024 + 1);
        let headers = headers(None, Role::User);
        let path = "/api/payments/webhooks/toss";
        assert_eq!(door.send(Method::POST, path, &headers, large).await.0, 413);
        assert_eq!(door.send(Method::POST, path, &headers, "{".to_owned()).await.0, 400);
    }

    /// The look must not become a charge: the buyer was told that it failed.
    async fn a_look_at_what_was_given_up_never_charges(world: World) {
        let (held, payment) = world.pay(Card::TimeOut).await;
        world.settle().await;
        let attempts = "select count(*) as number from attempts";
        let before = world.number(attempts).await;
        run(&world, "update payments set step = 'query', next_look_at = created_at").await;
        world.settle().await;
        assert_eq!(world.number(attempts).await, before);
        assert_eq!(world.find(payment.id).await.status, Status::Failed);
        assert_eq!(world.office.get(held.id).tickets, 0);
        world.assert_whole().await;
    }

    /// A provider that is gone from the configuration ends nothing.
    async fn without_its_provider_a_payment_waits(world: World) {
        let (_, payment) = world.pay(Card::ChargeThenTimeOut).await;
        run(&world, "update payments set provider = 'gone'").await;
        for _ in 0..10 {
            world.clock.advance(std::time::Duration::from_secs(301));
            world.payments.resolve_due().await.unwrap();
        }
        let waiting = world.find(payment.id).await;
        assert_eq!(waiting.status, Status::Unknown);
        assert_eq!(waiting.failure_code.as_deref(), Some("PROVIDER_GONE"));
        run(&world, "update payments set provider = 'sandbox'").await;
        world.settle().await;
        assert_eq!(world.find(payment.id).await.status, Status::Confirmed);
        world.assert_whole().await;
    }
}
