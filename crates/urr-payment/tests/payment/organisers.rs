//! Organisers see and refund payments for their own events, support up to a limit.

use serde_json::{Value, json};
use urr_bus::HandlerOutcome;
use urr_kernel::{Uuid, Won};
use urr_payment::provider::TestCard;
use urr_payment::{FaultPoints, Payment, PaymentSettings};
use urr_service::UserRole;

use crate::api_client::ApiClient;
use crate::contract;
use crate::fake_ticket_service::FakePayable;
use crate::fixture::{World, settings};

const MINA: (Uuid, UserRole) = (Uuid::from_u128(0xb01), UserRole::Organiser);
const JUNHO: (Uuid, UserRole) = (Uuid::from_u128(0xb02), UserRole::Organiser);
const SUPPORT: (Uuid, UserRole) = (Uuid::from_u128(0xb03), UserRole::Support);

/// The catalog says whose event it is.
async fn announce(world: &World, event_id: Uuid, organiser: Uuid, revision: i64) {
    let data = json!({
        "eventId": event_id, "revision": revision, "title": "한강의 밤", "kind": "standing",
        "status": "on_sale", "venueId": world.ids.next_id(), "venueName": "강변 홀",
        "address": "서울", "startsAt": "2026-12-24T10:00:00Z",
        "saleStartsAt": "2026-12-01T11:00:00Z", "saleEndsAt": "2026-12-23T15:00:00Z",
        "hasPresale": false, "seatsPerUserMax": 4, "organiserId": organiser,
    });
    let kind = if revision == 1 { "EVENT_CREATED" } else { "EVENT_UPDATED" };
    let event = world.event(kind, event_id, &data);
    assert_eq!(world.consume(&event).await, Ok(HandlerOutcome::Done));
}

/// A paid ticket of an organiser's event.
async fn sold(world: &World, organiser: Uuid) -> (FakePayable, Payment) {
    let (held, payment) = world.pay(TestCard::Approve).await;
    announce(world, held.event_id, organiser, 1).await;
    (held, payment)
}

async fn listed(api: &ApiClient, who: (Uuid, UserRole)) -> Vec<Value> {
    let (status, list) = api.get_as(who, "/api/admin/payments").await;
    assert_eq!(status, 200, "{list}");
    let payments = list["payments"].as_array().unwrap();
    assert_eq!(list["pagination"]["total"], payments.len(), "the total counts what is shown");
    payments.iter().map(|payment| payment["id"].clone()).collect()
}

contract! {
    async fn an_organiser_sees_and_refunds_payments_for_their_own_events_only(world: World) {
        let (_, own) = sold(&world, MINA.0).await;
        let (_, other) = sold(&world, JUNHO.0).await;
        let (_, of_nobody) = world.pay(TestCard::Approve).await;
        let api = ApiClient::new(&world);
        assert_eq!(listed(&api, MINA).await, [json!(own.id.0)]);
        assert_eq!(listed(&api, SUPPORT).await.len(), 3);
        let refund = json!({ "amount": 1_000, "reason": "늦은 입장" });
        for (payment, status) in [(&own, 200), (&other, 404), (&of_nobody, 404)] {
            let path = format!("/api/admin/payments/{}", payment.id);
            assert_eq!(api.get_as(MINA, &path).await.0, status);
            let answer = api.post_as(MINA, &format!("{path}/refund"), &refund).await;
            assert_eq!(answer.0, status, "{}", answer.1);
        }
        world.settle().await;
        assert_eq!(world.find(own.id).await.refunded, Won::new(1_000));
        assert_eq!(world.find(other.id).await.refunded, Won::ZERO);
        world.assert_whole().await;
    }

    async fn a_handed_over_event_belongs_to_the_newest_organiser(world: World) {
        let (held, payment) = sold(&world, MINA.0).await;
        let api = ApiClient::new(&world);
        announce(&world, held.event_id, JUNHO.0, 3).await;
        // An older message that comes late changes nothing.
        announce(&world, held.event_id, MINA.0, 2).await;
        assert_eq!(listed(&api, MINA).await, [Value::Null; 0]);
        assert_eq!(listed(&api, JUNHO).await, [json!(payment.id.0)]);
    }

    async fn support_refunds_up_to_a_limit_per_payment(world: World) {
        let (_, payment) = world.pay(TestCard::Approve).await;
        let support_refund_max = Won::new(5_000);
        let limited = PaymentSettings { support_refund_max, ..settings() };
        let service = world.instance_with(FaultPoints::default(), limited);
        let api = ApiClient::to(&service, &world);
        let path = format!("/api/admin/payments/{}/refund", payment.id);
        let part = |amount: i64| json!({ "amount": amount, "reason": "a kindness" });
        assert_eq!(api.post_as(SUPPORT, &path, &part(3_000)).await.0, 200);
        // Two small ones are as much as a large one.
        for body in [part(2_001), json!({ "reason": "everything" })] {
            let (status, refused) = api.post_as(SUPPORT, &path, &body).await;
            let expected = (403, json!("REFUND_ABOVE_LIMIT"), json!(5_000));
            assert_eq!((status.as_u16(), refused["code"].clone(), refused["limit"].clone()), expected);
        }
        assert_eq!(api.post_as(SUPPORT, &path, &part(2_000)).await.0, 200);
        // The control: an administrator has no limit.
        let admin = (SUPPORT.0, UserRole::Admin);
        assert_eq!(api.post_as(admin, &path, &part(10_000)).await.0, 200);
        let close = format!("/api/admin/payments/{}/refunds/{}/close", payment.id, payment.id);
        let (_, refused) = api.post_as(SUPPORT, &close, &json!({ "reason": "x" })).await;
        assert_eq!(refused["code"], "ADMIN_REQUIRED");
        world.settle().await;
        world.assert_whole().await;
    }
}
