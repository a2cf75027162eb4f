//! Copies of events, and what a move means.

use axum::http::Method;
use serde_json::{Value, json};
use urr_catalog::{CatalogParts, CatalogPeers, CatalogService, CatalogSettings, Operations};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_contracts::internal::ticket::{MovePreviewAnswer, PreviewMove};
use urr_kernel::{CallContext, Uuid, Won};
use urr_service::{
    ApiError, Caller, InternalCalls, Metrics, RequestLimits, Service, ServiceKit, Upstream,
    UserRole,
};
use utoipa_axum::router::OpenApiRouter;

use crate::contract;
use crate::fixture::{Answer, DAY, HOUR, World};

const MINA: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0b01);
const JUNHO: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0b02);

async fn ask(world: &World, who: Uuid, method: Method, path: &str, body: &Value) -> Answer {
    world.call(method, path).by_person(who, UserRole::Organiser).json(body).send().await
}

/// An event of an organiser with everything that can be copied.
async fn rich_event(world: &World) -> String {
    let venue = world.venue("강변 극장").await;
    let artist = world.artist("한강 밴드").await;
    let mut body = world.standing(&venue);
    for (field, value) in [
        ("artistId", json!(artist)),
        ("hasPresale", json!(true)),
        ("seatsPerUserMax", json!(2)),
        ("requiresIdentity", json!(true)),
        ("ageRating", json!("12")),
        ("runningMinutes", json!(120)),
        ("notices", json!("우산 반입 금지")),
        ("casting", json!([{ "name": "김우르", "role": "모차르트" }])),
        ("description", json!("밤의 공연")),
        ("posterImageUrl", json!("https://example.com/p.png")),
    ] {
        body[field] = value;
    }
    ask(world, MINA, Method::POST, "/api/admin/events", &body).await.id("event")
}

async fn answer_move(
    _: (),
    call: PreviewMove,
    _: CallContext,
) -> Result<MovePreviewAnswer, ApiError> {
    assert!(!call.event_id.is_nil());
    let refund_max = Won::new(300_000);
    let (reservations, tickets, buyers, free_reservations) = (2, 3, 1, 2);
    Ok(MovePreviewAnswer { reservations, tickets, buyers, free_reservations, refund_max })
}

/// A catalogue that asks a ticket service.
fn with_tickets(world: &World) -> CatalogService {
    let kit = ServiceKit {
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        metrics: Metrics::new(),
        limits: RequestLimits::default(),
    };
    let calls = InternalCalls::new(()).serve(answer_move);
    let service = Service::new("peers", OpenApiRouter::new(), &kit).with_calls(calls);
    let upstream = |name| Upstream::local(Caller::Catalog, name, &service, &kit);
    CatalogService::new(CatalogParts {
        db: world.db.clone(),
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        settings: CatalogSettings::default(),
        peers: Some(CatalogPeers {
            ticket: TicketClient::new(upstream("ticket")),
            auth: AuthClient::new(upstream("auth")),
            operations: Operations::default(),
        }),
    })
}

contract! {
    async fn a_copy_is_the_same_in_everything_but_its_times(world: World) {
        let id = rich_event(&world).await;
        let path = format!("/api/admin/events/{id}");
        let original = ask(&world, MINA, Method::GET, &path, &json!({})).await.body["event"].clone();
        let body = json!({ "startsAt": world.after(60 * DAY), "title": "두 번째 밤" });
        let copied = ask(&world, MINA, Method::POST, &format!("{path}/copy"), &body).await;
        assert_eq!(copied.status, 201, "{}", copied.body);
        let copy = &copied.body["event"];
        for (field, value) in original.as_object().unwrap() {
            match field.as_str() {
                "id" | "createdAt" | "updatedAt" | "revision" => assert!(copy.get(field).is_some()),
                "title" => assert_eq!(copy[field], "두 번째 밤"),
                "startsAt" => assert_eq!(copy[field], json!(world.after(60 * DAY))),
                "saleStartsAt" => assert_eq!(copy[field], json!(world.after(31 * DAY))),
                "saleEndsAt" => assert_eq!(copy[field], json!(world.after(50 * DAY))),
                "preSaleSchedule" => assert_ne!(copy[field], *value),
                "ticketTypes" => {
                    let plain = |types: &Value| -> Vec<Value> {
                        types.as_array().unwrap().iter().map(|one| json!([
                            one["name"], one["price"], one["total"], one["description"]])).collect()
                    };
                    assert_eq!(plain(&copy[field]), plain(value));
                    assert_ne!(copy[field][0]["id"], value[0]["id"], "tickets of its own");
                }
                _ => assert_eq!(copy[field], *value, "{field}"),
            }
        }
        assert_ne!(copy["id"], original["id"]);
        let announced = world.announced_types().await;
        assert_eq!(announced, ["ARTIST_CREATED", "EVENT_CREATED", "EVENT_CREATED"]);
    }

    async fn a_copy_is_made_once_per_key_and_by_its_organiser(world: World) {
        let id = rich_event(&world).await;
        let path = format!("/api/admin/events/{id}/copy");
        let body = json!({ "startsAt": world.after(60 * DAY) });
        let keyed = async |who: Uuid, body: &Value| {
            let call = world.call(Method::POST, &path).by_person(who, UserRole::Organiser);
            call.header("idempotency-key", "copy-1").json(body).send().await
        };
        let first = keyed(MINA, &body).await.id("event");
        assert_eq!(keyed(MINA, &body).await.id("event"), first);
        let other = json!({ "startsAt": world.after(61 * DAY) });
        assert_eq!(keyed(MINA, &other).await.refusal(), (422, "IDEMPOTENCY_KEY_REUSED"));
        assert_eq!(keyed(JUNHO, &body).await.refusal(), (403, "NOT_YOUR_EVENT"));
        assert_eq!(world.number("select count(*) as n from events").await, 2);
        // An administrator's copy belongs to the organiser.
        let copied = world.post(&path, &body).await;
        assert_eq!(copied.body["event"]["organiserId"], json!(MINA), "{}", copied.body);
        let soon = json!({ "startsAt": world.after(10 * DAY) });
        assert_eq!(world.post(&path, &soon).await.refusal(), (400, "SALE_IN_PAST"));
        let past = json!({ "startsAt": "2021-01-01T00:00:00Z" });
        assert_eq!(world.post(&path, &past).await.refusal(), (400, "SALE_IN_PAST"));
        let unknown = format!("/api/admin/events/{MINA}/copy");
        assert_eq!(world.post(&unknown, &body).await.refusal(), (404, "EVENT_NOT_FOUND"));
        // The control: what is over or cancelled can be copied.
        world.post(&format!("/api/admin/events/{id}/cancel"), &json!({})).await;
        assert_eq!(world.post(&path, &body).await.status, 201);
    }

    async fn a_preview_says_who_is_told_and_what_is_in_the_way(world: World) {
        let venue = world.venue("강변 극장").await;
        let hall = world.hall(&venue).await;
        let mut body = world.seated(&hall);
        let id = ask(&world, MINA, Method::POST, "/api/admin/events", &body).await.id("event");
        body["startsAt"] = json!(world.after(40 * DAY));
        body["title"] = json!("다른 밤");
        let rival = ask(&world, JUNHO, Method::POST, "/api/admin/events", &body).await.id("event");
        let preview = async |who: Uuid, starts_at: String| {
            let path = format!("/api/admin/events/{id}/move-preview?startsAt={starts_at}");
            let call = world.call_on(&with_tickets(&world), Method::GET, &path);
            call.by_person(who, UserRole::Organiser).send().await
        };
        let near = preview(MINA, world.after(40 * DAY + 3 * HOUR)).await;
        assert_eq!(near.status, 200, "{}", near.body);
        assert_eq!(near.body["tickets"]["refundMax"], 300_000);
        let conflicts = near.body["conflicts"].as_array().unwrap();
        assert_eq!((conflicts.len(), &conflicts[0]["eventId"]), (1, &json!(rival)), "{}", near.body);
        assert_eq!(conflicts[0]["reason"], "place");
        let far = preview(MINA, world.after(35 * DAY)).await;
        assert_eq!(far.body["conflicts"], json!([]));
        assert_eq!(preview(JUNHO, world.after(35 * DAY)).await.refusal(), (403, "NOT_YOUR_EVENT"));
        // What an edit refuses is refused.
        let before_sale_ends = preview(MINA, world.after(2 * DAY)).await;
        assert_eq!(before_sale_ends.refusal(), (400, "INVALID_SCHEDULE"));
        // Without the ticket service the rest is shown.
        let path = format!("/api/admin/events/{id}/move-preview?startsAt={}", world.after(35 * DAY));
        let alone = world.call(Method::GET, &path).by_person(MINA, UserRole::Organiser).send().await;
        assert_eq!((alone.status.as_u16(), &alone.body["tickets"]), (200, &Value::Null));
        let seen = world.call(Method::GET, &format!("/api/admin/events/{id}")).by_admin().send().await;
        assert_eq!(seen.body["event"]["revision"], 1, "nothing is changed");
    }
}
