//! Paying over HTTP: who is told what.

use axum::http::Method;
use futures_util::FutureExt;
use serde_json::json;
use urr_payment::provider::TestCard;
use urr_service::UserRole;
use urr_storage::StorageError;

use crate::api_client::{ApiClient, headers};
use crate::contract;
use crate::fake_ticket_service::Fault;

contract! {
    async fn a_buyer_prepares_confirms_and_looks(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let user = Some(held.user_id);
        let body = json!({"reservationId": held.id, "amount": 102_000});
        let (status, order) = api.post(user, "/api/payments/prepare", &body).await;
        assert_eq!(status, 200, "{order}");
        assert_eq!((&order["amount"], &order["provider"]), (&json!(102_000), &json!("sandbox")));
        let order_id = order["orderId"].as_str().unwrap();
        assert!(order_id.starts_with("ORD_") && order["clientKey"].is_string(), "{order}");
        let key = world.sandbox.issue_key(TestCard::Approve, order_id, held.amount).await.unwrap();
        let (status, paid) = api.confirm(held.user_id, &key, order_id, 102_000).await;
        assert_eq!((status.as_u16(), &paid["success"]), (200, &json!(true)), "{paid}");
        let (status, again) = api.confirm(held.user_id, &key, order_id, 102_000).await;
        assert_eq!((status.as_u16(), again), (200, paid.clone()), "a second click says the same");
        let (status, found) = api.get(user, &format!("/api/payments/order/{order_id}")).await;
        assert_eq!((status.as_u16(), &found["payment"]), (200, &paid["payment"]));
        let (_, mine) = api.get(user, "/api/payments/user/me").await;
        assert_eq!((&mine["payments"][0], &mine["pagination"]["total"]),
            (&paid["payment"], &json!(1)));
        let stranger = Some(world.ids.next_id());
        let path = format!("/api/payments/order/{order_id}");
        let (status, refused) = api.get(stranger, &path).await;
        assert_eq!((status.as_u16(), &refused["code"]), (404, &json!("PAYMENT_NOT_FOUND")));
        let (_, theirs) = api.get(stranger, "/api/payments/user/me").await;
        assert_eq!(theirs["pagination"]["total"], 0);
        world.assert_whole().await;
    }

    async fn the_window_of_the_sandbox_gives_a_key_for_ones_own_order(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let user = Some(held.user_id);
        let body = json!({"reservationId": held.id, "amount": 102_000});
        let (_, order) = api.post(user, "/api/payments/prepare", &body).await;
        let order_id = order["orderId"].as_str().unwrap();
        let ask = async |user, order_id: &str, card: &str| {
            let body = json!({"orderId": order_id, "card": card});
            let (status, answer) = api.post(user, "/api/payments/sandbox/keys", &body).await;
            (status.as_u16(), answer)
        };
        for (user, order_id, card, expected) in [
            (user, order_id, "platinum", (400, "INVALID_PAYMENT_METHOD")),
            (user, "ORD_0", "approve", (404, "PAYMENT_NOT_FOUND")),
            (Some(world.ids.next_id()), order_id, "approve", (404, "PAYMENT_NOT_FOUND")),
            (None, order_id, "approve", (401, "AUTHENTICATION_REQUIRED")),
        ] {
            let (status, refused) = ask(user, order_id, card).await;
            assert_eq!((status, refused["code"].as_str().unwrap()), expected, "{card}");
        }
        let (status, agreed) = ask(user, order_id, "approve").await;
        assert_eq!((status, &agreed["amount"]), (200, &json!(102_000)), "{agreed}");
        assert_eq!(agreed["orderId"], order_id);
        let key = agreed["paymentKey"].as_str().unwrap();
        let (status, paid) = api.confirm(held.user_id, key, order_id, 102_000).await;
        assert_eq!((status.as_u16(), &paid["success"]), (200, &json!(true)), "{paid}");
        let (status, over) = ask(user, order_id, "approve").await;
        assert_eq!((status, &over["code"]), (409, &json!("ORDER_OVER")));
        world.assert_whole().await;
    }

    async fn each_end_of_a_payment_has_its_answer(world: World) {
        let api = ApiClient::new(&world);
        let pay = async |card: &str| {
            let held = world.hold();
            let body = json!({"paymentMethod": card, "reservationId": held.id});
            api.post(Some(held.user_id), "/api/payments/process", &body).await
        };
        let (status, paid) = pay("approve").await;
        assert_eq!((status.as_u16(), &paid["payment"]["status"]), (200, &json!("confirmed")));
        let (status, declined) = pay("decline").await;
        assert_eq!((status.as_u16(), &declined["code"]), (402, &json!("PAYMENT_DECLINED")));
        assert!(declined["providerCode"].is_string(), "{declined}");
        let (status, unknown) = pay("charge-timeout").await;
        assert_eq!((status.as_u16(), &unknown["status"]), (202, &json!("unknown")));
        world.tickets.fail("pin", [Fault::Refuses("RESERVATION_EXPIRED")]);
        let (status, over) = pay("approve").await;
        assert_eq!((status.as_u16(), &over["code"]), (409, &json!("RESERVATION_EXPIRED")));
        world.tickets.fail("confirm", [Fault::Refuses("SEAT_LOST")]);
        let (status, refunded) = pay("approve").await;
        assert_eq!((status.as_u16(), &refunded["code"]), (409, &json!("PAYMENT_RETURNED")));
        world.tickets.fail("confirm", [Fault::Silent]);
        let (status, waiting) = pay("approve").await;
        // M-3: no ticket, no success.
        assert_eq!((status.as_u16(), &waiting["success"]), (202, &json!(false)));
        world.settle().await;
        world.assert_whole().await;
    }

    /// M-12: the ticket service's refusals are the user's, and do not shut out everybody else.
    async fn m_12_what_the_ticket_service_refuses_is_told_and_counts_against_nobody(world: World) {
        let api = ApiClient::new(&world);
        let prepare = async |user, id| {
            let body = json!({"reservationId": id, "amount": 102_000});
            api.post(Some(user), "/api/payments/prepare", &body).await
        };
        for _ in 0..30 {
            let (status, refused) = prepare(world.ids.next_id(), world.ids.next_id()).await;
            assert_eq!((status.as_u16(), &refused["code"]), (404, &json!("RESERVATION_NOT_FOUND")));
        }
        let held = world.hold();
        assert_eq!(prepare(held.user_id, held.id).await.0, 200);
        world.tickets.fail("validate", [Fault::Silent]);
        let (status, refused) = prepare(held.user_id, held.id).await;
        assert_eq!((status.as_u16(), &refused["code"]), (503, &json!("SERVICE_UNAVAILABLE")));
    }

    /// M-7: an order that was prepared is paid, and not another one.
    async fn m_7_a_process_call_pays_the_order_that_was_prepared(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let user = Some(held.user_id);
        let body = json!({"reservationId": held.id, "amount": 102_000});
        let (_, prepared) = api.post(user, "/api/payments/prepare", &body).await;
        let body = json!({"paymentMethod": "approve", "reservationId": held.id});
        let (status, paid) = api.post(user, "/api/payments/process", &body).await;
        assert_eq!((status.as_u16(), &paid["payment"]["orderId"]), (200, &prepared["orderId"]));
        assert_eq!(world.number("select count(*) as number from payments").await, 1);
        world.assert_whole().await;
    }

    async fn a_second_process_call_answers_with_the_first_payment(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        for unknown in ["naver-pay", "Approve", "approve ", ""] {
            let body = json!({"paymentMethod": unknown, "reservationId": held.id});
            let (status, refused) =
                api.post(Some(held.user_id), "/api/payments/process", &body).await;
            let refused = (status.as_u16(), refused["code"].as_str().unwrap());
            assert_eq!(refused, (400, "INVALID_PAYMENT_METHOD"), "{unknown:?}");
        }
        assert!(world.provider_books().await.is_empty(), "an unknown word charges nobody");
        let body = json!({"paymentMethod": "approve", "reservationId": held.id});
        let (status, first) = api.post(Some(held.user_id), "/api/payments/process", &body).await;
        assert_eq!(status, 200, "{first}");
        let (status, second) = api.post(Some(held.user_id), "/api/payments/process", &body).await;
        assert_eq!((status.as_u16(), second), (200, first));
        assert_eq!(world.provider_books().await.len(), 1);
    }

    /// M-5: what was paid by `process` has a key, and can be given back by it.
    async fn m_5_a_buyer_cancels_by_the_key_and_an_administrator_sees_it(world: World) {
        let (api, held) = (ApiClient::new(&world), world.hold());
        let body = json!({"paymentMethod": "approve", "reservationId": held.id});
        let (_, paid) = api.post(Some(held.user_id), "/api/payments/process", &body).await;
        let key = paid["payment"]["paymentKey"].as_str().unwrap();
        let path = format!("/api/payments/{key}/cancel");
        let (status, cancelled) = api.post(Some(held.user_id), &path, &json!({})).await;
        assert_eq!((status.as_u16(), &cancelled["refundAmount"]), (200, &json!(102_000)));
        world.settle().await;
        let id = paid["payment"]["id"].as_str().unwrap();
        let (status, seen) = api.get_as_admin(&format!("/api/admin/payments/{id}")).await;
        assert_eq!((status.as_u16(), &seen["payment"]["status"]), (200, &json!("refunded")));
        assert_eq!(seen["refunds"][0]["cause"], "cancelled");
        let (_, list) = api.get_as_admin("/api/admin/payments?status=refunded").await;
        assert_eq!(list["pagination"]["total"], 1);
        world.assert_whole().await;
    }

    async fn an_administrator_sees_the_last_audit_and_orders_another(world: World) {
        let (api, path) = (ApiClient::new(&world), "/api/admin/payments/audit");
        let none = json!({"last": null, "startedAt": null, "endedAt": null, "runningSince": null});
        let (status, shown) = api.get_as_admin(path).await;
        assert_eq!((status.as_u16(), shown), (200, none));
        let (_, payment) = world.pay(TestCard::Approve).await;
        let (status, ordered) = api.post_as_admin(path, "k1", &json!({})).await;
        assert_eq!(status, 200, "{ordered}");
        let last = &ordered["last"];
        assert_eq!((&last["holds"], &last["charged"]), (&json!(true), &json!(102_000)));
        // Looking at it audits nothing: what is broken now is not seen before the next audit.
        let broken = "update payments set charged_amount = charged_amount + 5";
        let done: Result<u64, StorageError> = world.db.write(|tx| tx.execute(broken, &[])).await;
        assert_eq!(done, Ok(1));
        assert_eq!(api.get_as_admin(path).await.1, ordered);
        let (_, again) = api.post_as_admin(path, "k2", &json!({})).await;
        assert_eq!(again["last"]["holds"], false);
        let named = again["last"]["unexplained"][0].as_str().unwrap();
        assert!(named.contains(&payment.id.to_string()), "{named}");
        let (status, _) = api.post(Some(payment.user_id), path, &json!({})).await;
        assert_eq!(status, 403, "not for users");
    }

    async fn an_administrator_refunds_a_part_once_per_key(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        let api = ApiClient::new(&world);
        let path = format!("/api/admin/payments/{}/refund", payment.id);
        let body = json!({"amount": 5_000, "reason": "늦은 입장"});
        for _ in 0..2 {
            let (status, answer) = api.post_as_admin(&path, "k1", &body).await;
            assert_eq!((status.as_u16(), answer["refunds"].as_array().unwrap().len()), (200, 1));
        }
        let all = json!({"amount": 97_000, "reason": "all"});
        let (status, refused) = api.post_as_admin(&path, "k2", &all).await;
        assert_eq!((status.as_u16(), &refused["code"]), (409, &json!("CANCEL_INSTEAD")));
        let (status, _) = api.post(Some(payment.user_id), &path, &body).await;
        assert_eq!(status, 403, "not for users");
        world.settle().await;
        world.assert_whole().await;
    }

    /// A buyer closes the page while the provider is at it.
    async fn a_client_who_goes_away_stops_nothing(world: World) {
        let held = world.hold();
        let order = world.order(&held).await;
        let approval = world.approval(&order, TestCard::Approve).await;
        let paying = world.payments.approve_detached(approval, world.context());
        // It begins, and nobody waits for the end.
        assert!(paying.now_or_never().is_none());
        urr_test::eventually("the ticket is there", async || {
            (world.tickets.get(held.id).tickets == 1).then_some(())
        })
        .await;
        world.settle().await;
        world.assert_whole().await;
    }

    async fn nobody_and_the_wrong_sort_of_caller_get_nowhere(world: World) {
        let api = ApiClient::new(&world);
        for path in ["prepare", "confirm", "process", "key/cancel"] {
            let (status, _) = api.post(None, &format!("/api/payments/{path}"), &json!({})).await;
            assert_eq!(status, 401, "{path}");
        }
        for path in ["/api/payments/user/me", "/api/payments/order/1", "/api/admin/payments"] {
            assert_eq!(api.get(None, path).await.0, 401, "{path}");
        }
        let user = Some(world.ids.next_id());
        assert_eq!(api.get(user, "/api/admin/payments").await.0, 403);
        let (status, _) = api
            .send(Method::GET, "/internal/payment/audit/ledger", &headers(None, UserRole::User), String::new())
            .await;
        assert_eq!(status, 403, "the gateway is no operator");
    }
}
