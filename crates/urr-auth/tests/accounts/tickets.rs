//! The ticket service, as far as accounts call it. It fails on demand.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use urr_auth::UserId;
use urr_contracts::clients::TicketClient;
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
    asked: usize,
}

impl FakeTickets {
    pub fn client(&self, clock: &Clock, ids: &IdSource) -> TicketClient {
        let kit = ServiceKit {
            clock: clock.clone(),
            ids: ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let router =
            Router::new().route(GetHoldings::SPEC.path, get(holdings)).with_state(self.clone());
        TicketClient::new(Upstream::local(Caller::Auth, "ticket", router, &kit))
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
