//! The auth and ticket services, as far as mails call them. They fail on demand.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use urr_contracts::internal::auth::{GetAccountLink, ListUsers};
use urr_contracts::internal::ticket::{GetReservationSummary, GetTicketDocument};
use urr_kernel::Uuid;
use urr_service::InternalCall;

/// Clones share them.
#[derive(Clone, Default)]
pub struct Peers(Arc<Mutex<PeerState>>);

#[derive(Default)]
struct PeerState {
    users: HashMap<Uuid, (String, String)>,
    /// Users who have not verified their address.
    unverified: HashSet<Uuid>,
    /// The links in force with their secrets.
    links: HashMap<Uuid, String>,
    reservations: HashMap<Uuid, Value>,
    /// The addresses of guests by their reservations.
    guests: HashMap<Uuid, String>,
    auth_is_unavailable: bool,
    ticket_is_unavailable: bool,
    /// Only documents: the rest of the ticket service answers.
    documents_are_unavailable: bool,
    /// Reservations that belong to somebody else now.
    sold_on: HashSet<Uuid>,
    /// The users and languages that documents were asked for.
    documents: Vec<(Uuid, String)>,
    /// How many ids came with each call.
    asked: Vec<usize>,
    summaries: usize,
}

impl Peers {
    pub fn register(&self, id: Uuid, address: &str, language: &str) {
        let user = (address.to_owned(), language.to_owned());
        self.0.lock().unwrap().users.insert(id, user);
    }

    pub fn set_verified(&self, id: Uuid, is_verified: bool) {
        let mut state = self.0.lock().unwrap();
        match is_verified {
            true => state.unverified.remove(&id),
            false => state.unverified.insert(id),
        };
    }

    pub fn issue_link(&self, id: Uuid, token: &str) {
        self.0.lock().unwrap().links.insert(id, token.to_owned());
    }

    pub fn void_link(&self, id: Uuid) {
        self.0.lock().unwrap().links.remove(&id);
    }

    pub fn forget(&self, id: Uuid) {
        self.0.lock().unwrap().users.remove(&id);
    }

    pub fn book(&self, id: Uuid, event_id: Uuid) {
        let summary = json!({
            "reservationNumber": "R-7ZQ0-M4KD-91XA", "eventId": event_id,
            "eventTitle": "한강의 밤", "venueName": "강변 홀",
            "eventStartsAt": "2026-12-24T10:30:00Z",
            "places": ["1층 A-12-7", "1층 A-12-8"], "quantity": 2,
        });
        self.0.lock().unwrap().reservations.insert(id, summary);
    }

    /// The reservation of a guest without an account.
    pub fn invite(&self, reservation_id: Uuid, address: &str) {
        self.0.lock().unwrap().guests.insert(reservation_id, address.to_owned());
    }

    pub fn erase_guest(&self, reservation_id: Uuid) {
        self.0.lock().unwrap().guests.remove(&reservation_id);
    }

    pub fn auth_unavailable(&self, away: bool) {
        self.0.lock().unwrap().auth_is_unavailable = away;
    }

    pub fn ticket_unavailable(&self, away: bool) {
        self.0.lock().unwrap().ticket_is_unavailable = away;
    }

    pub fn documents_unavailable(&self, away: bool) {
        self.0.lock().unwrap().documents_are_unavailable = away;
    }

    pub fn sell_on(&self, reservation_id: Uuid) {
        self.0.lock().unwrap().sold_on.insert(reservation_id);
    }

    pub fn documents(&self) -> Vec<(Uuid, String)> {
        self.0.lock().unwrap().documents.clone()
    }

    pub fn asked(&self) -> Vec<usize> {
        self.0.lock().unwrap().asked.clone()
    }

    pub fn summaries(&self) -> usize {
        self.0.lock().unwrap().summaries
    }

    pub fn router(&self) -> Router {
        Router::new()
            .route(ListUsers::SPEC.path, post(users))
            .route(GetAccountLink::SPEC.path, get(link))
            .route(GetReservationSummary::SPEC.path, get(summary))
            .route(GetTicketDocument::SPEC.path, get(document))
            .with_state(self.clone())
    }
}

async fn users(State(peers): State<Peers>, Json(body): Json<Value>) -> Response {
    let mut state = peers.0.lock().unwrap();
    if state.auth_is_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let ids: Vec<Uuid> = serde_json::from_value(body["userIds"].clone()).unwrap();
    state.asked.push(ids.len());
    let users: Vec<Value> = ids
        .iter()
        .filter_map(|id| state.users.get(id).map(|user| (id, user)))
        .map(|(id, (address, language))| {
            json!({
                "id": id, "email": address, "name": "Mina", "role": "user", "language": language,
                "emailVerified": !state.unverified.contains(id),
            })
        })
        .collect();
    axum::Json(json!({"users": users})).into_response()
}

async fn link(State(peers): State<Peers>, Path(id): Path<Uuid>) -> Response {
    let state = peers.0.lock().unwrap();
    if state.auth_is_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    match state.links.get(&id) {
        Some(token) => {
            let answer = json!({"token": token, "expiresAt": "2026-12-01T12:30:00Z"});
            axum::Json(answer).into_response()
        }
        None => {
            let refusal = json!({"error": "Unknown.", "code": "LINK_NOT_FOUND"});
            (StatusCode::NOT_FOUND, axum::Json(refusal)).into_response()
        }
    }
}

async fn summary(State(peers): State<Peers>, Path(id): Path<Uuid>) -> Response {
    let mut state = peers.0.lock().unwrap();
    state.summaries += 1;
    if state.ticket_is_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    match state.reservations.get(&id) {
        Some(summary) => {
            let guest = state.guests.get(&id);
            axum::Json(json!({"reservation": summary, "guestEmail": guest})).into_response()
        }
        None => {
            let refusal = json!({"error": "Unknown.", "code": "RESERVATION_NOT_FOUND"});
            (StatusCode::NOT_FOUND, axum::Json(refusal)).into_response()
        }
    }
}

/// The text that a document has instead of pages.
pub const DOCUMENT: &str = "%PDF-1.7 tickets";

async fn document(
    State(peers): State<Peers>,
    Path(id): Path<Uuid>,
    Query(asked): Query<HashMap<String, String>>,
) -> Response {
    let mut state = peers.0.lock().unwrap();
    if state.ticket_is_unavailable || state.documents_are_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    state.documents.push((asked["userId"].parse().unwrap(), asked["language"].clone()));
    if !state.reservations.contains_key(&id) || state.sold_on.contains(&id) {
        let refusal = json!({"error": "Unknown.", "code": "RESERVATION_NOT_FOUND"});
        return (StatusCode::NOT_FOUND, axum::Json(refusal)).into_response();
    }
    let answer = json!({"fileName": "tickets-R-1.pdf", "pdf": STANDARD.encode(DOCUMENT)});
    axum::Json(answer).into_response()
}
