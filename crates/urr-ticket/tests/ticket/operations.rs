//! Holds, payments and calls, as the tests need them.

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::Value;
use tower::ServiceExt;
use urr_kernel::{Uuid, Won};
use urr_layout::SeatId;
use urr_service::{Caller, Identity, Metrics, RequestLimits, ServiceKit, UserRole};
use urr_ticket::{
    CompletedPayment, PaymentClaim, RequestedItems, RequestedTickets, ReservationId,
    ReservationRecord, ReserveRequest, ReturnedMoney, SweepReport, Sweeper, TransitionError,
};

use crate::fixture::World;

/// Who makes a call.
#[derive(Clone, Copy)]
pub enum CallerIdentity {
    User(Uuid),
    Admin(Uuid),
    Service(Caller),
    Nobody,
}

/// A payment that was made, and what it paid for.
pub struct PaidReservation {
    pub record: ReservationRecord,
    pub payment_id: Uuid,
}

impl PaidReservation {
    pub fn id(&self) -> ReservationId {
        self.record.reservation.id
    }
}

/// Every expected field is there with its value.
#[track_caller]
pub fn assert_fields(found: &Value, expected: &Value) {
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(found.get(field), Some(value), "{field} of {found}");
    }
}

/// Every event's data names its type and its flow.
#[track_caller]
pub fn without_envelope(mut data: Value) -> Value {
    let fields = data.as_object_mut().unwrap();
    assert!(fields.remove("type").is_some() && fields.remove("sagaId").is_some());
    data
}

impl World {
    pub async fn hold(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        seat_ids: &[SeatId],
    ) -> ReservationRecord {
        let requested = RequestedItems::of_seats(seat_ids.to_vec()).unwrap();
        self.reserve(event_id, user_id, requested).await
    }

    pub async fn hold_tickets(
        &self,
        event_id: Uuid,
        type_id: Uuid,
        quantity: u32,
    ) -> ReservationRecord {
        let lines = vec![RequestedTickets { ticket_type_id: type_id, quantity }];
        self.reserve(event_id, self.ids.next_id(), RequestedItems::of_tickets(lines).unwrap()).await
    }

    async fn reserve(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        requested: RequestedItems,
    ) -> ReservationRecord {
        let request = ReserveRequest { user_id, event_id, requested, key: None };
        let hold = self.ticket.reserve(request, self.context()).await.unwrap();
        self.ticket.find_reservation(hold.reservation.id).await.unwrap()
    }

    /// A claim of a new payment that fits the hold.
    pub fn claim(&self, record: &ReservationRecord) -> PaymentClaim {
        PaymentClaim {
            payment_id: self.ids.next_id(),
            fencing_token: record.reservation.fence,
            amount: record.reservation.total_amount,
        }
    }

    pub async fn pin(&self, record: &ReservationRecord) -> PaymentClaim {
        let claim = self.claim(record);
        let reservation = &record.reservation;
        self.ticket.pin_hold(reservation.id, reservation.user_id, claim, 1, None).await.unwrap();
        claim
    }

    pub async fn confirm(
        &self,
        id: ReservationId,
        claim: PaymentClaim,
    ) -> Result<ReservationRecord, TransitionError> {
        let made = CompletedPayment { claim, method: "card".to_owned() };
        self.ticket.confirm_reservation(id, made, self.context(), None).await?;
        Ok(self.find(id).await)
    }

    /// Pins and confirms.
    pub async fn pay(&self, record: &ReservationRecord) -> PaidReservation {
        let claim = self.pin(record).await;
        let record = self.confirm(record.reservation.id, claim).await.unwrap();
        PaidReservation { record, payment_id: claim.payment_id }
    }

    pub async fn find(&self, id: ReservationId) -> ReservationRecord {
        self.ticket.find_reservation(id).await.unwrap()
    }

    pub async fn refund(
        &self,
        paid: &PaidReservation,
        amount: i64,
    ) -> Result<ReservationRecord, TransitionError> {
        let money = ReturnedMoney::whole(Won::new(amount));
        self.ticket.mark_refunded(paid.id(), paid.payment_id, money).await?;
        Ok(self.find(paid.id()).await)
    }

    /// One sweep for holds whose time is over.
    pub async fn sweep(&self) -> SweepReport {
        Sweeper::new(self.ticket.clone()).expire_overdue().await.unwrap()
    }

    /// The data of all events of a type that were announced, in order, without what is in the
    /// envelope too.
    pub async fn announced(&self, event_type: &str) -> Vec<Value> {
        let bodies =
            self.rows("select body from outbox order by seq", |row| row.get::<String>("body"));
        let events = bodies.await.into_iter().map(|body| serde_json::from_str(&body).unwrap());
        let events = events.filter(|event: &Value| event["type"] == event_type);
        events.map(|event| without_envelope(event["data"].clone())).collect()
    }

    /// Seats and stock and all the rest agree.
    pub async fn assert_agrees(&self) {
        let audit = self.ticket.audit().await.unwrap();
        assert_eq!(audit.differences, [], "seats and reservations must agree");
    }

    /// Calls the service as the gateway or another service does.
    pub async fn call(
        &self,
        who: CallerIdentity,
        method: Method,
        path: &str,
        body: Value,
    ) -> (u16, Value) {
        let kit = ServiceKit {
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let content = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = Request::builder().method(method).uri(path);
        let mut request = request.header("content-type", "application/json").body(content).unwrap();
        let (caller, identity) = match who {
            CallerIdentity::User(user_id) => (Caller::Gateway, Some((user_id, UserRole::User))),
            CallerIdentity::Admin(user_id) => (Caller::Gateway, Some((user_id, UserRole::Admin))),
            CallerIdentity::Service(caller) => (caller, None),
            CallerIdentity::Nobody => (Caller::Gateway, None),
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
