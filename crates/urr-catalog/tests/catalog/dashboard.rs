//! The dashboard, with the ticket service and the auth service there, away and slow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use urr_catalog::{CatalogParts, CatalogPeers, CatalogService, CatalogSettings, Operations};
use urr_contracts::clients::{AuthClient, TicketClient};
use urr_contracts::internal::auth::ListUsers;
use urr_contracts::internal::ticket::GetReservationFigures;
use urr_kernel::Uuid;
use urr_service::{Caller, InternalCall, Metrics, RequestLimits, ServiceKit, Upstream, UserRole};

use crate::contract;
use crate::fixture::{Answer, SECOND, World};

const BUYER: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0c01);
const MINA: Uuid = Uuid::from_u128(0x0198_0000_0000_7000_8000_0000_0000_0b01);

/// What the peers answer, and what they were asked.
#[derive(Clone, Default)]
struct FakePeers(Arc<Mutex<PeerState>>);

#[derive(Default)]
struct PeerState {
    tickets_away: bool,
    names_away: bool,
    /// The organisers whose figures were asked for.
    asked: Vec<Option<String>>,
    asked_names: usize,
}

impl FakePeers {
    fn catalog(&self, world: &World) -> CatalogService {
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let router = Router::new()
            .route(GetReservationFigures::SPEC.path, get(figures))
            .route(ListUsers::SPEC.path, post(names))
            .with_state(self.clone());
        let upstream = |name| Upstream::local(Caller::Catalog, name, router.clone(), &kit);
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

    fn set(&self, change: impl FnOnce(&mut PeerState)) {
        change(&mut self.0.lock().unwrap());
    }
}

async fn figures(
    State(peers): State<FakePeers>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let mut state = peers.0.lock().unwrap();
    state.asked.push(query.get("organiserId").cloned());
    if state.tickets_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({
        "totalReservations": 7, "totalRevenue": 700_000, "todayReservations": 2,
        "recentReservations": [{
            "id": Uuid::from_u128(5), "userId": BUYER, "reservationNumber": "R-7ZQ0",
            "eventTitle": "한강의 밤", "totalAmount": 100_000, "status": "confirmed",
            "createdAt": "2026-11-15T00:00:00Z",
        }],
    }))
    .into_response()
}

async fn names(State(peers): State<FakePeers>) -> Response {
    let mut state = peers.0.lock().unwrap();
    state.asked_names += 1;
    if state.names_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    Json(json!({ "users": [{
        "id": BUYER, "email": "mina@example.com", "name": "미나", "role": "user",
        "language": "ko", "emailVerified": true,
    }]}))
    .into_response()
}

async fn look(world: &World, catalog: &CatalogService, who: Uuid, role: UserRole) -> Answer {
    let call = world.call_on(catalog, Method::GET, "/api/admin/dashboard");
    let answer = call.by_person(who, role).send().await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer
}

fn sums(answer: &Answer) -> [&Value; 3] {
    ["totalReservations", "totalRevenue", "todayReservations"]
        .map(|name| &answer.body["stats"][name])
}

contract! {
    async fn an_administrator_sees_reservations_with_the_names_of_buyers(world: World) {
        let peers = FakePeers::default();
        let catalog = peers.catalog(&world);
        let seen = look(&world, &catalog, MINA, UserRole::Admin).await;
        assert_eq!(sums(&seen), [&json!(7), &json!(700_000), &json!(2)]);
        assert_eq!(seen.body["reservationsAvailable"], true);
        assert_eq!(seen.body["recentReservations"], json!([{
            "id": Uuid::from_u128(5), "userId": BUYER, "reservationNumber": "R-7ZQ0",
            "eventTitle": "한강의 밤", "totalAmount": 100_000, "status": "confirmed",
            "createdAt": "2026-11-15T00:00:00Z", "userName": "미나",
            "userEmail": "mina@example.com",
        }]));
        // Looks within a few seconds share a question: it is a sum over all reservations.
        look(&world, &catalog, MINA, UserRole::Admin).await;
        assert_eq!(peers.0.lock().unwrap().asked, [None]);
        world.clock.advance(6 * SECOND);
        look(&world, &catalog, MINA, UserRole::Admin).await;
        assert_eq!(peers.0.lock().unwrap().asked, [None, None]);
    }

    async fn an_organiser_sees_their_own_events_and_no_names(world: World) {
        let peers = FakePeers::default();
        let catalog = peers.catalog(&world);
        let venue = world.venue("강변 극장").await;
        let body = world.standing(&venue);
        world.create_event(&body).await;
        let own = world.call(Method::POST, "/api/admin/events").by_person(MINA, UserRole::Organiser);
        own.json(&body).send().await.id("event");
        // What an administrator saw before is not what an organiser sees.
        let all = look(&world, &catalog, MINA, UserRole::Admin).await;
        assert_eq!(all.body["stats"]["totalEvents"], 2);
        let seen = look(&world, &catalog, MINA, UserRole::Organiser).await;
        assert_eq!(seen.body["stats"]["totalEvents"], 1);
        assert_eq!(seen.body["stats"]["notReady"], 1);
        assert_eq!(seen.body["recentReservations"][0]["userName"], Value::Null);
        assert_eq!(seen.body["recentReservations"][0]["userEmail"], Value::Null);
        let state = peers.0.lock().unwrap();
        assert_eq!(state.asked, [None, Some(MINA.to_string())]);
        assert_eq!(state.asked_names, 1, "for the administrator");
    }

    async fn while_the_ticket_service_is_away_nothing_is_said_about_reservations(world: World) {
        let peers = FakePeers::default();
        let catalog = peers.catalog(&world);
        peers.set(|state| state.tickets_away = true);
        let seen = look(&world, &catalog, MINA, UserRole::Admin).await;
        assert_eq!(sums(&seen), [&Value::Null; 3], "not 0, which would be a figure");
        assert_eq!(seen.body["reservationsAvailable"], false);
        assert_eq!(seen.body["recentReservations"], Value::Null);
        assert_eq!(seen.body["stats"]["totalEvents"], 0, "the rest is shown");
        // The failure is not kept.
        peers.set(|state| state.tickets_away = false);
        let seen = look(&world, &catalog, MINA, UserRole::Admin).await;
        assert_eq!(seen.body["reservationsAvailable"], true);
    }

    async fn while_the_auth_service_is_away_reservations_are_shown_without_names(world: World) {
        let peers = FakePeers::default();
        let catalog = peers.catalog(&world);
        peers.set(|state| state.names_away = true);
        let seen = look(&world, &catalog, MINA, UserRole::Admin).await;
        assert_eq!(seen.body["recentReservations"][0]["userName"], Value::Null);
        assert_eq!(seen.body["recentReservations"][0]["totalAmount"], 100_000);
    }

    async fn support_and_door_staff_see_no_dashboard(world: World) {
        for role in [UserRole::Support, UserRole::Staff, UserRole::User] {
            let call = world.call(Method::GET, "/api/admin/dashboard").by_user(role);
            assert_eq!(call.send().await.refusal(), (403, "ROLE_REQUIRED"), "{role}");
        }
    }
}
