//! The books as operators see them, and the ticket service's books beside ours: each case breaks one
//! thing by hand.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::Won;
use urr_payment::provider::TestCard;
use urr_payment::{CompareError, TicketComparison, TicketDifference};
use urr_service::{Caller, Metrics, RequestLimits, ServiceKit};
use urr_storage::StorageError;

use crate::contract;
use crate::fake_ticket_service::Fault;
use crate::fixture::{PRICE, World};

/// Longer than a payment may take.
const LONG: Duration = Duration::from_secs(11 * 60);

async fn run(world: &World, sql: &'static str) {
    let done: Result<u64, StorageError> = world.db.write(move |tx| tx.execute(sql, &[])).await;
    assert!(done.unwrap() > 0, "{sql}");
}

/// All stretches together.
async fn compare(world: &World) -> TicketComparison {
    let mut all =
        TicketComparison { reservations: 0, payments: 0, differences: Vec::new(), next: None };
    loop {
        let page = world.payments.reconcile_tickets(all.next, &world.context()).await.unwrap();
        all.reservations += page.reservations;
        all.payments += page.payments;
        all.differences.extend(page.differences);
        all.next = page.next;
        if all.next.is_none() {
            return all;
        }
    }
}

async fn ask(world: &World, caller: Caller, path: &str) -> (u16, Value) {
    let kit = ServiceKit {
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    let router: Router = world.payments.service(&kit).local_router();
    let mut request = Request::builder().uri(path).body(Body::empty()).unwrap();
    request.extensions_mut().insert(caller);
    let answer = router.oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

contract! {
    async fn the_auth_service_alone_gets_all_payments_of_a_user(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        let (_, other) = world.pay(TestCard::Approve).await;
        let path = format!("/internal/payment/records/{}", payment.user_id);
        let (status, answer) = ask(&world, Caller::Auth, &path).await;
        assert_eq!(status, 200, "{answer}");
        let payments = &answer["records"]["payments"];
        assert_eq!(payments.as_array().unwrap().len(), 1, "{answer}");
        assert_eq!(payments[0]["orderId"], payment.order_id);
        assert_eq!(payments[0]["status"], "confirmed");
        assert_eq!(answer["records"]["truncated"], json!([]));
        assert!(!answer.to_string().contains(&other.order_id), "nothing of others");
        for caller in [Caller::Gateway, Caller::Mail, Caller::Operator] {
            assert_eq!(ask(&world, caller, &path).await.0, 403, "{caller}");
        }
    }

    async fn tickets_and_payments_that_agree_have_no_differences(world: World) {
        for _ in 0..5 {
            world.pay(TestCard::Approve).await;
        }
        let (held, _) = world.pay(TestCard::Approve).await;
        world.tickets.cancel(held.id);
        world.settle().await;
        world.pay(TestCard::TimeOut).await;
        world.hold();
        let found = compare(&world).await;
        assert_eq!((found.reservations, found.differences), (6, vec![]));
        assert!(world.tickets.calls("paid") >= 3, "it was told in pages");
    }

    async fn a_ticket_that_nobody_paid_for_is_named(world: World) {
        world.pay(TestCard::Approve).await;
        let held = world.hold();
        let forged = world.ids.next_id();
        world.tickets.change(held.id, |held| {
            (held.status, held.payment_id) = ("confirmed", Some(forged));
        });
        let (reservation_id, payment_id, amount) = (held.id, Some(forged), PRICE);
        let unpaid = TicketDifference::Unpaid { reservation_id, payment_id, amount };
        assert_eq!(compare(&world).await.differences, [unpaid]);
    }

    async fn a_payment_without_its_ticket_is_named(world: World) {
        world.pay(TestCard::Approve).await;
        let (held, payment) = world.pay(TestCard::Approve).await;
        world.pay(TestCard::Approve).await;
        // As if the ticket service had been restored from a backup.
        world.tickets.change(held.id, |held| {
            (held.status, held.payment_id) = ("expired", None);
        });
        let (reservation_id, payment_id, amount) = (held.id, payment.id.0, PRICE);
        let no_ticket = TicketDifference::NoTicket { reservation_id, payment_id, amount };
        assert_eq!(compare(&world).await.differences, [no_ticket]);
    }

    async fn a_cancellation_that_is_never_heard_of_is_named_after_a_while(world: World) {
        let (held, payment) = world.pay(TestCard::Approve).await;
        world.tickets.cancel(held.id);
        assert_eq!(compare(&world).await.differences, [], "it is on its way");
        world.clock.advance(LONG);
        let (reservation_id, payment_id, amount) = (held.id, payment.id.0, PRICE);
        let no_ticket = TicketDifference::NoTicket { reservation_id, payment_id, amount };
        assert_eq!(compare(&world).await.differences, [no_ticket]);
    }

    async fn a_ticket_service_that_does_not_answer_is_not_one_that_agrees(world: World) {
        world.pay(TestCard::Approve).await;
        world.tickets.fail("paid", [Fault::Silent; 9]);
        let compared = world.payments.reconcile_tickets(None, &world.context()).await;
        assert!(matches!(compared, Err(CompareError::Tickets(_))), "{compared:?}");
    }

    async fn operators_read_the_proof_and_nobody_else_does(world: World) {
        world.pay(TestCard::Approve).await;
        let (held, _) = world.pay(TestCard::Approve).await;
        world.tickets.cancel(held.id);
        world.settle().await;
        world.clock.advance(Duration::from_secs(1));
        let since = "/internal/payment/audit/provider?since=2026-12-01T00:00:00Z";
        for path in ["/internal/payment/audit/ledger", since, "/internal/payment/audit/tickets"] {
            for caller in [Caller::Gateway, Caller::Ticket, Caller::Payment] {
                let (status, answer) = ask(&world, caller, path).await;
                assert_eq!((status, &answer["code"]), (403, &json!("CALLER_NOT_ALLOWED")));
            }
        }
        let (_, books) = ask(&world, Caller::Operator, "/internal/payment/audit/ledger").await;
        let sums = ["charged", "refunded", "sold", "cancelled", "undelivered", "owed"];
        let sums = sums.map(|name| books[name].as_i64().unwrap());
        assert_eq!(sums, [204_000, 102_000, 204_000, 102_000, 0, 0]);
        assert_eq!((&books["unexplained"], &books["stuck"]), (&json!([]), &json!([])));
        let (_, provider) = ask(&world, Caller::Operator, since).await;
        assert_eq!((&provider["compared"], &provider["differences"]), (&json!(2), &json!([])));
        let (_, tickets) = ask(&world, Caller::Operator, "/internal/payment/audit/tickets").await;
        assert_eq!((&tickets["reservations"], &tickets["next"]), (&json!(2), &Value::Null));
    }

    async fn operators_are_told_which_payment_is_wrong_and_which_is_stuck(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        run(&world, "update payments set charged_amount = charged_amount + 5").await;
        world.tickets.fail("confirm", [Fault::Silent; 200]);
        let (_, stuck) = world.pay(TestCard::Approve).await;
        world.clock.advance(LONG);
        world.payments.resolve_due().await.unwrap();
        let (_, books) = ask(&world, Caller::Operator, "/internal/payment/audit/ledger").await;
        let found = &books["unexplained"][0];
        assert_eq!(found["paymentId"], json!(payment.id.0));
        let sentence = found["sentence"].as_str().unwrap();
        assert!(sentence.contains("5원 more at the provider than the ledger"), "{sentence}");
        assert_eq!(books["stuck"].as_array().unwrap().len(), 1, "{books}");
        let found = &books["stuck"][0];
        assert_eq!((&found["paymentId"], &found["amount"]), (&json!(stuck.id.0), &json!(102_000)));
        let sentence = found["sentence"].as_str().unwrap();
        assert!(sentence.contains("confirmed, at the step deliver since 2026-12-01T12:00:"), "{sentence}");
        assert_eq!(books["undelivered"], json!(Won::new(102_000)));
        // Control: with its end nothing is left to say of it.
        world.tickets.fail("confirm", []);
        world.settle().await;
        let (_, books) = ask(&world, Caller::Operator, "/internal/payment/audit/ledger").await;
        assert_eq!(books["stuck"], json!([]));
    }

    async fn a_provider_that_does_not_answer_is_not_one_that_agrees(world: World) {
        world.pay(TestCard::Approve).await;
        world.sandbox.set_down(true);
        let path = "/internal/payment/audit/provider?since=2026-12-01T00:00:00Z";
        let (status, answer) = ask(&world, Caller::Operator, path).await;
        assert_eq!((status, &answer["code"]), (503, &json!("PROVIDER_SILENT")));
        let (status, _) = ask(&world, Caller::Operator, "/internal/payment/audit/provider").await;
        assert_eq!(status, 400);
    }
}
