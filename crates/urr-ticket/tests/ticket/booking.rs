//! Holds, payments and calls, as the tests need them.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::Value;
use tower::ServiceExt;
use urr_kernel::{Uuid, Won};
use urr_layout::SeatId;
use urr_service::{Caller, Identity, Limits, Metrics, Role, ServiceKit};
use urr_ticket::{
    Back, PaymentClaim, PaymentMade, Record, ReservationId, ReserveRequest, StepError, Sweeper,
    Swept, Wanted, WantedTickets,
};

use crate::fixture::World;

/// Who makes a call.
#[derive(Clone, Copy)]
pub enum Who {
    User(Uuid),
    Admin(Uuid),
    Service(Caller),
    Nobody,
}

/// A payment that was made, and what it paid for.
pub struct Paid {
    pub record: Record,
    pub payment_id: Uuid,
}

impl Paid {
    pub fn id(&self) -> ReservationId {
        self.record.reservation.id
    }
}

impl World {
    pub async fn hold(&self, event_id: Uuid, user_id: Uuid, seat_ids: &[SeatId]) -> Record {
        let wanted = Wanted::of_seats(seat_ids.to_vec()).unwrap();
        self.reserve(event_id, user_id, wanted).await
    }

    pub async fn hold_tickets(&self, event_id: Uuid, type_id: Uuid, quantity: u32) -> Record {
        let lines = vec![WantedTickets { ticket_type_id: type_id, quantity }];
        self.reserve(event_id, self.ids.next_id(), Wanted::of_tickets(lines).unwrap()).await
    }

    async fn reserve(&self, event_id: Uuid, user_id: Uuid, wanted: Wanted) -> Record {
        let request = ReserveRequest { user_id, event_id, wanted, key: None };
        let hold = self.ticket.reserve(request, self.context()).await.unwrap();
        self.ticket.find_reservation(hold.reservation.id).await.unwrap()
    }

    /// A claim of a new payment that fits the hold.
    pub fn claim(&self, record: &Record) -> PaymentClaim {
        PaymentClaim {
            payment_id: self.ids.next_id(),
            fencing_token: record.reservation.fence,
            amount: record.reservation.total_amount,
        }
    }

    pub async fn pin(&self, record: &Record) -> PaymentClaim {
        let claim = self.claim(record);
        let reservation = &record.reservation;
        self.ticket.pin_hold(reservation.id, reservation.user_id, claim).await.unwrap();
        claim
    }

    pub async fn confirm(
        &self,
        id: ReservationId,
        claim: PaymentClaim,
    ) -> Result<Record, StepError> {
        let made = PaymentMade { claim, method: "card".to_owned() };
        self.ticket.confirm_reservation(id, made, self.context()).await
    }

    /// Pins and confirms.
    pub async fn pay(&self, record: &Record) -> Paid {
        let claim = self.pin(record).await;
        let record = self.confirm(record.reservation.id, claim).await.unwrap();
        Paid { record, payment_id: claim.payment_id }
    }

    pub async fn find(&self, id: ReservationId) -> Record {
        self.ticket.find_reservation(id).await.unwrap()
    }

    pub async fn refund(&self, paid: &Paid, amount: i64) -> Result<Record, StepError> {
        self.ticket.mark_refunded(paid.id(), paid.payment_id, Back::whole(Won::new(amount))).await
    }

    /// One sweep for holds whose time is over.
    pub async fn sweep(&self) -> Swept {
        Sweeper::new(self.ticket.clone()).expire_overdue().await.unwrap()
    }

    /// The data of all events of a type that were announced, in order.
    pub async fn announced(&self, event_type: &str) -> Vec<Value> {
        let bodies =
            self.rows("select body from outbox order by seq", |row| row.get::<String>("body"));
        let events = bodies.await.into_iter().map(|body| serde_json::from_str(&body).unwrap());
        let events = events.filter(|event: &Value| event["type"] == event_type);
        events.map(|event| event["data"].clone()).collect()
    }

    /// Seats and stock and all the rest agree.
    pub async fn assert_agrees(&self) {
        let audit = self.ticket.audit().await.unwrap();
        assert_eq!(audit.differences, [], "seats and reservations must agree");
    }

    /// Calls the service as the gateway or another service does.
    pub async fn call(&self, who: Who, method: Method, path: &str, body: Value) -> (u16, Value) {
        let kit = ServiceKit {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            metrics: Metrics::new(),
            limits: Limits::default(),
        };
        let content = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = Request::builder().method(method).uri(path);
        let mut request = request.header("content-type", "application/json").body(content).unwrap();
        let (caller, identity) = match who {
            Who::User(user_id) => (Caller::Gateway, Some((user_id, Role::User))),
            Who::Admin(user_id) => (Caller::Gateway, Some((user_id, Role::Admin))),
            Who::Service(caller) => (caller, None),
            Who::Nobody => (Caller::Gateway, None),
        };
        request.extensions_mut().insert(caller);
        if let Some((user_id, role)) = identity {
            Identity { user_id, email: None, role }.write(request.headers_mut());
        }
        let router = self.ticket.service(&kit).local_router();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }
}
