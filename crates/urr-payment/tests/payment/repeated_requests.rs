//! Double clicks, repeated keys, and requests that wait for each other.

use std::future::pending;
use std::time::Duration;

use axum::http::Method;
use futures_util::future::join_all;
use serde_json::{Value, json};
use urr_kernel::{Uuid, Won};
use urr_payment::provider::TestCard;
use urr_payment::{
    Approval, ApprovalRejection, ApproveError, ApproveOrder, FaultMoment, FaultPoint, FaultPoints,
    PaymentSettings, PaymentStatus,
};
use urr_service::UserRole;

use crate::api_client::{Answer, ApiClient, headers};
use crate::contract;
use crate::fake_ticket_service::{FakePayable, Fault};
use crate::fixture::settings;

const PROCESS: &str = "/api/payments/process";
const CONFIRM: &str = "/api/payments/confirm";

/// Every caller of this step blocks.
fn hanging_at(name: &'static str) -> FaultPoints {
    let here = FaultPoint { moment: FaultMoment::Before, name };
    FaultPoints::listening(move |point| {
        Box::pin(async move {
            if point == here {
                pending::<()>().await;
            }
        })
    })
}

async fn post_with_key(api: &ApiClient, user: Uuid, path: &str, key: &str, body: &Value) -> Answer {
    let mut headers = headers(Some(user), UserRole::User);
    headers.insert("idempotency-key", key.parse().unwrap());
    api.send(Method::POST, path, &headers, body.to_string()).await
}

fn process_body(held: &FakePayable, method: &str) -> Value {
    json!({"paymentMethod": method, "reservationId": held.id})
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.0.as_u16(), answer.1["code"].as_str().unwrap_or_default())
}

contract! {
    async fn nobody_sees_somebody_elses_order_or_waits_for_it(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        let settings = PaymentSettings { answer_timeout: Duration::from_millis(50), ..settings() };
        let payments = world.instance_with(hanging_at("call confirm"), settings);
        let owner = payments.approve_detached(approval.clone(), world.context()).await.unwrap();
        assert_eq!(owner.id, order.id, "the owner is told how far it is");
        urr_test::eventually("the provider is asked", async || {
            (world.find(order.id).await.status == PaymentStatus::Approving).then_some(())
        })
        .await;
        let stranger = Approval { user_id: world.ids.next_id(), ..approval.approval.clone() };
        let stranger = ApproveOrder { approval: stranger, ..approval };
        let not_found = Err(ApproveError::Refused(ApprovalRejection::NotFound));
        let answer = payments.approve_detached(stranger.clone(), world.context()).await;
        assert_eq!(answer, not_found);
        // Without a limit of time: who had to wait for their turn would wait for ever.
        assert_eq!(payments.approve(stranger, &world.context()).await, not_found);
    }

    async fn clicks_at_the_same_moment_are_one_payment(world: World) {
        let api = ApiClient::new(&world);
        for key in [None, Some("one-key")] {
            let held = world.hold();
            let body = process_body(&held, "approve");
            let clicks = (0..8).map(|_| async {
                match key {
                    None => api.post(Some(held.user_id), PROCESS, &body).await,
                    Some(key) => post_with_key(&api, held.user_id, PROCESS, key, &body).await,
                }
            });
            let answers = join_all(clicks).await;
            for answer in &answers {
                assert_eq!(answer.0, 200, "{key:?}: {}", answer.1);
                assert_eq!(answer.1["payment"]["id"], answers[0].1["payment"]["id"]);
            }
            assert_eq!(world.tickets.get(held.id).tickets, 1);
        }
        assert_eq!(world.provider_books().await.len(), 2);
        world.assert_whole().await;
    }

    async fn a_click_in_another_process_is_told_of_the_same_payment(world: World) {
        let apis = [ApiClient::new(&world), ApiClient::to(&world.instance(FaultPoints::default()), &world)];
        let held = world.hold();
        let body = process_body(&held, "approve");
        let clicks = apis.iter().map(|api| api.post(Some(held.user_id), PROCESS, &body));
        let answers = join_all(clicks).await;
        for answer in &answers {
            assert!([200, 202].contains(&answer.0.as_u16()), "{}", answer.1);
            assert_eq!(answer.1["payment"]["id"], answers[0].1["payment"]["id"]);
        }
        world.settle().await;
        assert_eq!(world.provider_books().await.len(), 1);
        world.assert_whole().await;
    }

    async fn the_same_key_gets_the_same_answer_also_if_it_was_no(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let declined = process_body(&held, "decline");
        for _ in 0..2 {
            let answer = post_with_key(&api, held.user_id, PROCESS, "k1", &declined).await;
            assert_eq!(code(&answer), (402, "PAYMENT_DECLINED"));
        }
        assert_eq!(world.number("select count(*) as number from payments").await, 1);
        let answer = post_with_key(&api, held.user_id, PROCESS, "k2", &declined).await;
        assert_eq!(code(&answer), (402, "PAYMENT_DECLINED"));
        assert_eq!(world.number("select count(*) as number from payments").await, 2);
    }

    async fn a_key_belongs_to_one_request(world: World) {
        let (api, held, other) = (ApiClient::new(&world), world.hold(), world.hold());
        let reused = (422, "IDEMPOTENCY_KEY_REUSED");
        let user = held.user_id;
        let order = world.order(&held).await;
        let payment_key =
            world.sandbox.issue_key(TestCard::Approve, &order.order_id, order.amount).await.unwrap();
        let body = json!({"paymentKey": payment_key, "orderId": order.order_id, "amount": 1});
        let answer = post_with_key(&api, user, CONFIRM, "k", &body).await;
        assert_eq!(code(&answer), (400, "AMOUNT_MISMATCH"), "a refused one uses up no key");
        let body = json!({"paymentKey": payment_key, "orderId": order.order_id, "amount": 102_000});
        for _ in 0..2 {
            assert_eq!(post_with_key(&api, user, CONFIRM, "k", &body).await.0, 200);
        }
        let body = json!({"paymentKey": payment_key, "orderId": order.order_id, "amount": 1});
        let answer = post_with_key(&api, user, CONFIRM, "k", &body).await;
        assert_eq!(code(&answer), reused, "confirm");

        let body = process_body(&other, "approve");
        assert_eq!(post_with_key(&api, other.user_id, PROCESS, "k", &body).await.0, 200);
        let body = process_body(&held, "approve");
        let answer = post_with_key(&api, other.user_id, PROCESS, "k", &body).await;
        assert_eq!(code(&answer), reused, "process");
        // Somebody else's key is another one.
        assert_eq!(post_with_key(&api, user, PROCESS, "k", &body).await.0, 200);

        let path = format!("/api/admin/payments/{}/refund", order.id);
        let body = json!({"amount": 5_000, "reason": "늦은 입장"});
        assert_eq!(api.post_as_admin(&path, "k", &body).await.0, 200);
        for other in [json!({"amount": 5_001, "reason": "늦은 입장"}), json!({"reason": "x"})] {
            assert_eq!(code(&api.post_as_admin(&path, "k", &other).await), reused, "refund");
        }
        world.settle().await;
        world.assert_whole().await;
    }

    async fn an_order_that_costs_nothing_is_confirmed_as_often_as_one_likes(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        world.tickets.change(held.id, |held| {
            (held.amount, held.booking_fee) = (Won::ZERO, Won::ZERO);
        });
        let order = world.order(&world.tickets.get(held.id)).await;
        for key in ["free", "free", "whatever"] {
            let (status, paid) = api.confirm(held.user_id, key, &order.order_id, 0).await;
            assert_eq!((status.as_u16(), &paid["success"]), (200, &json!(true)), "{paid}");
        }
        assert_eq!(world.tickets.get(held.id).tickets, 1);
    }

    async fn a_buyer_is_told_what_is_so(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let (_, unknown) =
            api.post(Some(held.user_id), PROCESS, &process_body(&held, "charge-timeout")).await;
        assert_eq!(unknown["status"], "unknown");
        assert!(unknown["payment"]["failureCode"].is_null(), "nothing has failed: {unknown}");
        world.settle().await;
        // The ticket service stays silent: that is no word about the seats.
        world.tickets.fail("pin", [Fault::Silent; 20]);
        let held = world.hold();
        let body = process_body(&held, "approve");
        assert_eq!(post_with_key(&api, held.user_id, PROCESS, "k", &body).await.0, 202);
        world.settle_now().await;
        let answer = post_with_key(&api, held.user_id, PROCESS, "k", &body).await;
        assert_eq!(code(&answer), (503, "SERVICE_UNAVAILABLE"), "{}", answer.1);
        world.tickets.fail("pin", []);
        world.assert_whole().await;
    }

    async fn of_payments_with_one_key_the_one_that_was_paid_is_cancelled(world: World) {
        let (held, paid) = world.pay(TestCard::Approve).await;
        let key = paid.payment_key.clone().unwrap();
        let other = world.hold();
        world.tickets.change(other.id, |other| other.user_id = held.user_id);
        let order = world.order(&world.tickets.get(other.id)).await;
        let api = ApiClient::new(&world);
        // The same key for another order: the provider will not have it.
        let (status, _) = api.confirm(held.user_id, &key, &order.order_id, 102_000).await;
        assert_eq!(status, 402);
        let path = format!("/api/payments/{key}/cancel");
        let body = json!({"cancelReason": "일정이 바뀌었어요"});
        let (status, cancelled) = api.post(Some(held.user_id), &path, &body).await;
        assert_eq!((status.as_u16(), &cancelled["refundAmount"]), (200, &json!(102_000)));
        world.settle().await;
        let (_, seen) = api.get_as_admin(&format!("/api/admin/payments/{}", paid.id)).await;
        assert_eq!(seen["payment"]["status"], "refunded");
        assert_eq!(seen["payment"]["cancelReason"], "일정이 바뀌었어요");
        let (_, mine) = api.post(Some(held.user_id), &path, &json!({})).await;
        assert_eq!(mine["success"], true, "a reason is not needed");
        world.assert_whole().await;
    }

    /// M-12 in full: a refusal with a code is the user's and keeps its status and its code, and
    /// ever so many of them open no breaker.
    async fn m_12_every_refusal_with_a_code_is_passed_on_and_opens_no_breaker(world: World) {
        let api = ApiClient::new(&world);
        let held = world.hold();
        let body = json!({"reservationId": held.id, "amount": 102_000});
        let refusals = [
            (400, "INVALID_USER"),
            (403, "SALE_NOT_OPEN"),
            (404, "RESERVATION_NOT_FOUND"),
            (409, "RESERVATION_EXPIRED"),
            (410, "RESERVATION_GONE"),
            (422, "WRONG_STATE"),
            (429, "TOO_MANY_REQUESTS"),
        ];
        for _ in 0..10 {
            for refusal in refusals {
                world.tickets.fail("validate", [Fault::Refuses(refusal.1)]);
                let answer = api.post(Some(held.user_id), "/api/payments/prepare", &body).await;
                assert_eq!(code(&answer), refusal);
            }
        }
        let (status, _) = api.post(Some(held.user_id), "/api/payments/prepare", &body).await;
        assert_eq!(status, 200, "and it answers still");
    }

    async fn what_an_administrator_gives_back_is_in_the_log_once(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        let api = ApiClient::new(&world);
        let path = format!("/api/admin/payments/{}/refund", payment.id);
        let body = json!({"amount": 5_000, "reason": "늦은 입장"});
        for _ in 0..2 {
            assert_eq!(api.post_as_admin(&path, "k1", &body).await.0, 200);
        }
        let too_much = json!({"amount": 500_000, "reason": "늦은 입장"});
        assert_eq!(api.post_as_admin(&path, "k2", &too_much).await.0, 400);
        let (status, log) = api.get_as_admin("/api/admin/payments/log").await;
        assert_eq!((status.as_u16(), &log["pagination"]["total"]), (200, &json!(1)), "{log}");
        let entry = &log["entries"][0];
        assert_eq!(entry["action"], "GOODWILL_REFUND");
        assert_eq!(entry["resourceId"], json!(payment.id.0));
        assert_eq!(entry["adminId"], json!(Uuid::from_u128(77)));
        assert_eq!(entry["summary"], "5,000원: 늦은 입장");
        world.settle().await;
        let refunded = world.announced().await.pop().unwrap();
        assert_eq!(refunded.data["cause"], "goodwill", "no key of anybody is on the bus");
        let everything = json!({"reason": "공연 중단"});
        assert_eq!(api.post_as_admin(&path, "k3", &everything).await.0, 200);
        let (_, log) = api.get_as_admin("/api/admin/payments/log?action=PAYMENT_CANCELLED").await;
        assert_eq!(log["entries"][0]["summary"], "everything: 공연 중단");
        let (status, _) = api.get(Some(payment.user_id), "/api/admin/payments/log").await;
        assert_eq!(status, 403);
    }
}
