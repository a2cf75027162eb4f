//! Forged, foreign, replayed and altered: many ways to a ticket, none of which leads there.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_payment::provider::TestCard;
use urr_service::UserRole;

use crate::api_client::{ApiClient, headers};
use crate::contract;
use crate::fake_ticket_service::FakePayable;
use crate::fixture::World;

/// A thief with a hold and an order of their own, and a victim who has paid.
struct Scene {
    api: ApiClient,
    thief: FakePayable,
    order_id: String,
    /// Of the thief's own order, as the checkout gives it.
    key: String,
    victim: FakePayable,
    victim_order: String,
    victim_key: String,
    /// A victim who is at the checkout.
    waiting: FakePayable,
    waiting_order: String,
    waiting_key: String,
    vectors: usize,
}

impl Scene {
    async fn new(world: &World) -> Scene {
        let (victim, paid) = world.pay(TestCard::Approve).await;
        let (thief, waiting) = (world.hold(), world.hold());
        let order = world.order(&thief).await;
        let key = world.approval(&order, TestCard::Approve).await.approval.payment_key;
        let theirs = world.order(&waiting).await;
        let waiting_key = world.approval(&theirs, TestCard::Approve).await.approval.payment_key;
        Scene {
            api: ApiClient::new(world),
            thief,
            order_id: order.order_id,
            key,
            victim,
            victim_order: paid.order_id,
            victim_key: paid.payment_key.unwrap(),
            waiting,
            waiting_order: theirs.order_id,
            waiting_key,
            vectors: 0,
        }
    }

    /// One attempt, that must be refused.
    async fn refused(&mut self, user: Option<Uuid>, path: &str, body: Value) {
        self.vectors += 1;
        let (status, answer) = self.api.post(user, path, &body).await;
        assert!(status.is_client_error(), "{path} {body}: {status} {answer}");
    }

    async fn confirm(&mut self, user: Uuid, key: &str, order: &str, amount: Value) {
        let body = json!({"paymentKey": key, "orderId": order, "amount": amount});
        self.refused(Some(user), "/api/payments/confirm", body).await;
    }
}

fn amounts() -> Vec<Value> {
    vec![
        json!(0),
        json!(1),
        json!(-102_000),
        json!(101_999),
        json!(102_001),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(102_000.5),
        json!("102000"),
        json!(null),
        json!([102_000]),
        json!(1e300),
    ]
}

contract! {
    async fn no_altered_amount_pays_for_a_ticket(world: World) {
        let mut scene = Scene::new(&world).await;
        let (user, key, order) = (scene.thief.user_id, scene.key.clone(), scene.order_id.clone());
        for amount in amounts() {
            scene.confirm(user, &key, &order, amount.clone()).await;
            let body = json!({"reservationId": scene.thief.id, "amount": amount});
            scene.refused(Some(user), "/api/payments/prepare", body).await;
        }
        assert_eq!(scene.vectors, 24);
        assert_eq!(world.tickets.get(scene.thief.id).tickets, 0);
        assert_eq!(world.provider_books().await.len(), 1, "only the victim has paid");
        // The control: the right amount works.
        let (status, _) = scene.api.confirm(user, &key, &order, 102_000).await;
        assert_eq!(status, 200);
        world.assert_whole().await;
    }

    /// M-4: any word used to do for a key.
    async fn m_4_no_forged_or_foreign_key_pays_for_a_ticket(world: World) {
        let mut scene = Scene::new(&world).await;
        let user = scene.thief.user_id;
        let forged = [
            "x".to_owned(), String::new(), " ".to_owned(), "sandbox_approve_".to_owned(),
            "sandbox_approve_0".to_owned(), format!("sandbox_approve_{}", "0".repeat(32)),
            "k".repeat(201), "키".to_owned(), "../../confirm".to_owned(), "' or 1=1 --".to_owned(),
            scene.victim_key.clone(), scene.waiting_key.clone(), scene.key.to_uppercase(),
            format!("{}0", scene.key), scene.order_id.clone(),
        ];
        for key in forged {
            // Each attempt ends the order, and a hold has few, so each has one of its own.
            let held = world.hold();
            world.tickets.change(held.id, |held| held.user_id = user);
            let order = world.order(&world.tickets.get(held.id)).await;
            scene.confirm(user, &key, &order.order_id, json!(102_000)).await;
            world.settle_now().await;
            assert_eq!(world.tickets.get(held.id).tickets, 0, "{key:?}");
        }
        assert_eq!(scene.vectors, 15);
        assert_eq!(world.provider_books().await.len(), 1, "only the victim has paid");
        // The one at the checkout can still pay: nobody has used up their key.
        let Scene { api, waiting, waiting_key, waiting_order, .. } = &scene;
        let (status, _) = api.confirm(waiting.user_id, waiting_key, waiting_order, 102_000).await;
        assert_eq!(status, 200);
    }

    async fn no_foreign_order_is_paid_seen_or_cancelled(world: World) {
        let mut scene = Scene::new(&world).await;
        let user = scene.thief.user_id;
        let key = scene.key.clone();
        let orders = [
            scene.victim_order.clone(), scene.waiting_order.clone(), "ORD_0_00000000".to_owned(),
            String::new(), "o".repeat(65), "주문".to_owned(), "%27".to_owned(),
        ];
        for order in orders {
            scene.confirm(user, &key, &order, json!(102_000)).await;
        }
        for key in [scene.victim_key.clone(), scene.waiting_key.clone()] {
            for order in [scene.victim_order.clone(), scene.waiting_order.clone()] {
                scene.confirm(user, &key, &order, json!(102_000)).await;
            }
            scene.refused(Some(user), &format!("/api/payments/{key}/cancel"), json!({})).await;
        }
        for id in [scene.victim.id, scene.waiting.id, world.ids.next_id()] {
            let prepare = json!({"reservationId": id, "amount": 102_000});
            scene.refused(Some(user), "/api/payments/prepare", prepare).await;
            let process = json!({"reservationId": id, "paymentMethod": "approve"});
            scene.refused(Some(user), "/api/payments/process", process).await;
        }
        assert_eq!(scene.vectors, 19);
        let victim = world.tickets.get(scene.victim.id);
        assert_eq!((victim.status, victim.tickets), ("confirmed", 1));
        assert_eq!(world.tickets.get(scene.waiting.id).pinned_by, None);
        assert_eq!(world.tickets.get(scene.thief.id).tickets, 0);
        world.assert_whole().await;
    }

    async fn nothing_is_had_twice_by_saying_it_again(world: World) {
        let mut scene = Scene::new(&world).await;
        let (victim, order, key) =
            (scene.victim.user_id, scene.victim_order.clone(), scene.victim_key.clone());
        // The same again is a success without effect; anything else is refused.
        let (status, _) = scene.api.confirm(victim, &key, &order, 102_000).await;
        assert_eq!(status, 200);
        let amount = scene.victim.amount;
        let another = world.sandbox.issue_key(TestCard::Approve, &order, amount).await.unwrap();
        scene.confirm(victim, &another, &order, json!(102_000)).await;
        let prepare = json!({"reservationId": scene.victim.id, "amount": 102_000});
        scene.refused(Some(victim), "/api/payments/prepare", prepare).await;
        // M-7: a refunded order does not pay a second time.
        let cancel = format!("/api/payments/{key}/cancel");
        for _ in 0..3 {
            assert_eq!(scene.api.post(Some(victim), &cancel, &json!({})).await.0, 200);
        }
        world.settle().await;
        scene.confirm(victim, &key, &order, json!(102_000)).await;
        scene.confirm(victim, &another, &order, json!(102_000)).await;
        assert_eq!(world.tickets.get(scene.victim.id).tickets, 1);
        let books = world.provider_books().await;
        assert_eq!((books.len(), books[0].refunded), (1, scene.victim.amount), "given back once");
        world.assert_whole().await;
    }

    async fn no_other_kind_or_shape_of_request_pays(world: World) {
        let mut scene = Scene::new(&world).await;
        let user = scene.thief.user_id;
        let (id, other) = (scene.thief.id, scene.victim.id);
        let bodies = [
            json!({"amount": 102_000}),
            json!({"reservationId": id, "amount": 102_000, "paymentType": "gift"}),
            json!({"reservationId": id, "amount": 102_000, "paymentType": "RESERVATION"}),
            json!({"referenceId": id, "amount": 102_000, "paymentType": "membership"}),
            json!({"referenceId": id, "amount": 102_000, "paymentType": "transfer"}),
            json!({"reservationId": id, "referenceId": other, "amount": 102_000}),
            json!({"reservationId": id, "amount": 102_000, "userId": other}),
            json!({"reservationId": id, "amount": 102_000, "status": "confirmed"}),
            json!({"reservationId": id, "amount": 102_000, "currency": "JPY"}),
            json!({"reservationId": "1", "amount": 102_000}),
            json!([]),
        ];
        for body in bodies {
            scene.refused(Some(user), "/api/payments/prepare", body).await;
        }
        let (key, order) = (scene.key.clone(), scene.order_id.clone());
        for extra in ["currency", "userId", "status", "method", "fencingToken"] {
            let mut body = json!({"paymentKey": key, "orderId": order, "amount": 102_000});
            body[extra] = json!("KRW");
            scene.refused(Some(user), "/api/payments/confirm", body).await;
        }
        // Without a login, or with one that the gateway did not give.
        let body = json!({"paymentKey": key, "orderId": order, "amount": 102_000});
        scene.refused(None, "/api/payments/confirm", body).await;
        assert_eq!(scene.vectors, 17);
        assert_eq!(world.tickets.get(id).tickets, 0);
        world.assert_whole().await;
    }

    /// Messages that pretend to be a provider's.
    async fn no_webhook_makes_a_ticket(world: World) {
        let scene = Scene::new(&world).await;
        let message = json!({
            "eventType": "PAYMENT_STATUS_CHANGED",
            "data": {"orderId": scene.order_id, "status": "DONE", "totalAmount": 102_000},
        });
        for provider in ["sandbox", "toss", "portone", "nobody", "..%2Fconfirm"] {
            let path = format!("/api/payments/webhooks/{provider}");
            let headers = headers(None, UserRole::User);
            let sent = scene.api.send(Method::POST, &path, &headers, message.to_string()).await;
            assert_eq!(sent.0, 404, "{provider}: only the sandbox is here, and it sends nothing");
        }
        world.settle_now().await;
        assert_eq!(world.tickets.get(scene.thief.id).tickets, 0);
        assert_eq!(world.number("select count(*) as number from webhooks").await, 0);
    }
}
