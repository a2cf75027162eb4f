//! The ticket, payment and mail services, as far as accounts call them. Each fails on demand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use urr_auth::{AuthPeers, UserId};
use urr_contracts::clients::{CommunityClient, MailClient, PaymentClient, TicketClient};
use urr_contracts::internal::community::GetContributions;
use urr_contracts::internal::mail::GetMailRecords;
use urr_contracts::internal::payment::GetPaymentRecords;
use urr_contracts::internal::ticket::GetHoldings;
use urr_kernel::{Clock, IdSource, Uuid};
use urr_service::{Caller, InternalCall, Metrics, RequestLimits, ServiceKit, Upstream};

/// Clones share them.
#[derive(Clone, Default)]
pub struct FakeTickets(Arc<Mutex<FakeState>>);

#[derive(Default)]
struct FakeState {
    holdings: HashMap<Uuid, Vec<Value>>,
    buyers: Vec<Uuid>,
    is_unavailable: bool,
    payments_away: bool,
    mails_away: bool,
    posts_away: bool,
    asked: usize,
}

impl FakeTickets {
    pub fn peers(&self, clock: &Clock, ids: &IdSource) -> AuthPeers {
        let kit = ServiceKit {
            clock: clock.clone(),
            ids: ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let router = Router::new()
            .route(GetHoldings::SPEC.path, get(holdings))
            .route(GetPaymentRecords::SPEC.path, get(payments))
            .route(GetMailRecords::SPEC.path, get(mails))
            .route(GetContributions::SPEC.path, get(posts))
            .with_state(self.clone());
        let upstream = |name| Upstream::local(Caller::Auth, name, router.clone(), &kit);
        AuthPeers {
            ticket: TicketClient::new(upstream("ticket")),
            payment: PaymentClient::new(upstream("payment")),
            mail: MailClient::new(upstream("mail")),
            community: CommunityClient::new(upstream("community")),
        }
    }

    /// The user has a ticket for an event that is still to come.
    pub fn sell(&self, user_id: UserId, reservation: u128) {
        let id = Uuid::from_u128(reservation);
        let holding = json!({
            "kind": "reservation", "id": id, "title": "한강의 밤", "number": "R-7ZQ0",
            "quantity": 2, "time": "2026-12-24T10:30:00Z",
        });
        let mut state = self.0.lock().unwrap();
        state.holdings.entry(user_id.0).or_default().push(holding);
        state.buyers.push(user_id.0);
    }

    /// The user bought once, and nothing of it is valid any more.
    pub fn sold_long_ago(&self, user_id: UserId) {
        self.0.lock().unwrap().buyers.push(user_id.0);
    }

    pub fn unavailable(&self, is_unavailable: bool) {
        self.0.lock().unwrap().is_unavailable = is_unavailable;
    }

    pub fn payments_away(&self, is_away: bool) {
        self.0.lock().unwrap().payments_away = is_away;
    }

    pub fn posts_away(&self, is_away: bool) {
        self.0.lock().unwrap().posts_away = is_away;
    }

    pub fn mails_away(&self, is_away: bool) {
        self.0.lock().unwrap().mails_away = is_away;
    }

    /// How often they were asked.
    pub fn asked(&self) -> usize {
        self.0.lock().unwrap().asked
    }
}

async fn holdings(State(tickets): State<FakeTickets>, Path(user_id): Path<Uuid>) -> Response {
    let mut state = tickets.0.lock().unwrap();
    state.asked += 1;
    if state.is_unavailable {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let holdings = state.holdings.get(&user_id).cloned().unwrap_or_default();
    let numbers: Vec<&Value> = holdings.iter().map(|holding| &holding["number"]).collect();
    Json(json!({
        "hasBought": state.buyers.contains(&user_id), "records": { "reservations": numbers },
        "holdings": holdings,
    }))
    .into_response()
}

async fn payments(State(tickets): State<FakeTickets>, Path(user_id): Path<Uuid>) -> Response {
    match tickets.0.lock().unwrap().payments_away {
        true => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        false => Json(json!({ "records": { "payments": [{ "of": user_id }] } })).into_response(),
    }
}

async fn posts(State(tickets): State<FakeTickets>, Path(user_id): Path<Uuid>) -> Response {
    match tickets.0.lock().unwrap().posts_away {
        true => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        false => Json(json!({ "records": { "posts": [{ "by": user_id }] } })).into_response(),
    }
}

async fn mails(State(tickets): State<FakeTickets>, Path(user_id): Path<Uuid>) -> Response {
    match tickets.0.lock().unwrap().mails_away {
        true => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        false => Json(json!({ "records": { "mails": [{ "to": user_id }] } })).into_response(),
    }
}
