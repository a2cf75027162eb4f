//! The ticket service, as payments see it. Every call can be made again without harm.

use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use urr_kernel::{CallContext, Timestamp, TraceContext, Uuid, Won};
use urr_service::{CallPolicy, Upstream, UpstreamError};

use crate::domain::payment::{PayableKind, PayableRef, Payment};

pub(crate) const DEADLINE: Duration = Duration::from_secs(5);

/// Where tickets are held and given out.
#[derive(Debug, Default)]
pub struct TicketClient(OnceLock<Upstream>);

/// Something that can be paid, as the ticket service has it: a reservation, a transfer or a
/// membership.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payable {
    pub id: Uuid,
    /// What to call it on the way; only of one that can be paid.
    pub order_name: Option<String>,
    /// Of a reservation.
    pub reservation_number: Option<String>,
    /// What a transfer hands over.
    pub reservation_id: Option<Uuid>,
    pub event_id: Option<Uuid>,
    pub total_amount: Won,
    /// Part of the total: the surcharge of a pre-sale.
    #[serde(default)]
    pub booking_fee: Won,
    /// Part of the total: what a transfer costs.
    #[serde(default)]
    pub fee: Won,
    /// Another one is another purchase.
    pub fencing_token: i64,
    pub payment_id: Option<Uuid>,
    pub refund_amount: Option<Won>,
    /// The flow that it began, and the event that last told of it; only of one that can be paid.
    pub correlation_id: Option<Uuid>,
    pub last_event_id: Option<Uuid>,
}

/// A reservation, as the ticket service has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaidReservation {
    pub id: Uuid,
    pub reservation_number: String,
    /// What to call it on the way; only of one that can be paid.
    pub order_name: Option<String>,
    pub user_id: Uuid,
    pub event_id: Uuid,
    pub status: String,
    pub payment_status: String,
    pub total_amount: Won,
    #[serde(default)]
    pub booking_fee: Won,
    pub fencing_token: i64,
    pub pinned_by: Option<Uuid>,
    pub payment_id: Option<Uuid>,
    pub refund_amount: Option<Won>,
    pub updated_at: Option<Timestamp>,
    /// The flow that it began, and the event that last told of it; only of one that can be paid.
    pub correlation_id: Option<Uuid>,
    pub last_event_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct TicketAnswer<T> {
    #[serde(alias = "membership", alias = "transfer")]
    reservation: T,
}

/// Some of the reservations that were ever paid.
#[derive(Debug, Deserialize)]
pub struct PaidPage {
    /// In the order of their ids.
    pub reservations: Vec<PaidReservation>,
    /// Whether there are others behind them.
    pub more: bool,
}

/// Why the ticket service did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum TicketClientError {
    /// It says no, and will say so again.
    #[error("the ticket service says {code}")]
    Refused { code: String, source: UpstreamError },
    /// It may have done it, or may do it later.
    #[error("the ticket service has not answered")]
    NoAnswer(#[source] Option<UpstreamError>),
}

impl TicketClientError {
    fn of(error: UpstreamError) -> TicketClientError {
        // What concerns our own call (our credential, our path) is no word about a reservation.
        let refused = error.refusal().filter(|refusal| {
            let is_about_us = matches!(refusal.status.as_u16(), 401 | 408 | 429)
                || matches!(refusal.code.as_str(), "" | "NOT_FOUND" | "CALLER_NOT_ALLOWED");
            refusal.status.is_client_error() && !is_about_us
        });
        match refused.map(|refusal| refusal.code.clone()) {
            Some(code) => TicketClientError::Refused { code, source: error },
            None => TicketClientError::NoAnswer(Some(error)),
        }
    }
}

type PayableResult = Result<Payable, TicketClientError>;

/// Where the ticket service keeps it.
fn path_of(payable: PayableRef) -> String {
    let kind = match payable.kind {
        PayableKind::Reservation => "reservations",
        PayableKind::Transfer => "transfers",
        PayableKind::Membership => "memberships",
    };
    format!("/internal/ticket/{kind}/{}", payable.id)
}

impl TicketClient {
    /// Tells where it is. Until then it is silent. Only the first one counts.
    pub fn connect(&self, upstream: Upstream) {
        self.0.get_or_init(|| upstream);
    }

    /// What a user wants to pay, if it can be paid now.
    pub async fn validate(
        &self,
        payable: PayableRef,
        user_id: Uuid,
        context: &CallContext,
    ) -> PayableResult {
        let path = format!("{}/validate?userId={user_id}", path_of(payable));
        self.get(&path, context).await
    }

    /// What is paid for, in whatever state.
    pub async fn state(&self, payment: &Payment) -> PayableResult {
        self.get(&path_of(payment.payable), &call_context(payment)).await
    }

    /// A reservation in whatever state; none if there is none.
    pub async fn find(
        &self,
        id: Uuid,
        context: &CallContext,
    ) -> Result<Option<PaidReservation>, TicketClientError> {
        match self.get(&path_of(PayableRef::reservation(id)), context).await {
            Err(TicketClientError::Refused { .. }) => Ok(None),
            told => told.map(Some),
        }
    }

    /// Reservations that were ever paid, a page at a time.
    pub async fn paid(
        &self,
        after: Option<Uuid>,
        context: &CallContext,
    ) -> Result<PaidPage, TicketClientError> {
        let path = match after {
            Some(after) => format!("/internal/ticket/paid?after={after}"),
            None => "/internal/ticket/paid".to_owned(),
        };
        let upstream = self.0.get().ok_or(TicketClientError::NoAnswer(None))?;
        let answer = upstream.get_json(&path, context, CallPolicy::idempotent(DEADLINE)).await;
        answer.map_err(TicketClientError::of)
    }

    pub async fn pin(&self, payment: &Payment) -> PayableResult {
        let body = json!({
            "paymentId": payment.id.0,
            "userId": payment.user_id,
            "fencingToken": payment.fencing_token,
            "amount": payment.amount,
        });
        self.post(payment, "pin", &body).await
    }

    pub async fn unpin(&self, payment: &Payment) -> PayableResult {
        self.post(payment, "unpin", &json!({"paymentId": payment.id.0})).await
    }

    pub async fn confirm(&self, payment: &Payment) -> PayableResult {
        let body = json!({
            "paymentId": payment.id.0,
            "fencingToken": payment.fencing_token,
            "amount": payment.amount,
            "paymentMethod": payment.method,
        });
        self.post(payment, "confirm", &body).await
    }

    /// The money is back: what it has asked for, and what of that really came, if a part had been
    /// given before. With a transfer it marks the reservation that was taken over.
    pub async fn refunded(&self, payment: &Payment, asked: Won, refunded: Won) -> PayableResult {
        let mut body = json!({"paymentId": payment.id.0, "amount": asked});
        if asked != refunded {
            body["returnedAmount"] = json!(refunded);
        }
        self.post(payment, "refunded", &body).await
    }

    /// Cancels a paid reservation. What is to be refunded it announces itself.
    pub async fn cancel(
        &self,
        reservation_id: Uuid,
        payment: &Payment,
        by: &CancelledBy,
        call: &CallContext,
    ) -> PayableResult {
        let body = match by {
            CancelledBy::Owner(user_id) => json!({"userId": user_id}),
            // Of a ticket that was sold on, another payment is the one to go back (M-8).
            CancelledBy::Admin { id, reason } => {
                json!({"adminId": id, "reason": reason, "paymentId": payment.id.0})
            }
        };
        let path = format!("{}/cancel", path_of(PayableRef::reservation(reservation_id)));
        self.send(&path, &body, call).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        context: &CallContext,
    ) -> Result<T, TicketClientError> {
        let upstream = self.0.get().ok_or(TicketClientError::NoAnswer(None))?;
        let answer = upstream.get_json(path, context, CallPolicy::idempotent(DEADLINE)).await;
        answer.map(|TicketAnswer { reservation }| reservation).map_err(TicketClientError::of)
    }

    async fn post(&self, payment: &Payment, step: &str, body: &serde_json::Value) -> PayableResult {
        let path = format!("{}/{step}", path_of(payment.payable));
        self.send(&path, body, &call_context(payment)).await
    }

    async fn send(
        &self,
        path: &str,
        body: &serde_json::Value,
        context: &CallContext,
    ) -> PayableResult {
        let upstream = self.0.get().ok_or(TicketClientError::NoAnswer(None))?;
        let policy = CallPolicy::idempotent(DEADLINE);
        let answer = upstream.post_json(path, body, context, policy).await;
        answer.map(|TicketAnswer { reservation }| reservation).map_err(TicketClientError::of)
    }
}

/// Who cancels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelledBy {
    Owner(Uuid),
    Admin { id: Uuid, reason: String },
}

/// What a payment does belongs to the flow of what is paid for and was caused by it; what follows the
/// charge was caused by that.
pub fn call_context(payment: &Payment) -> CallContext {
    CallContext {
        correlation_id: payment.correlation_id,
        causation_id: payment.confirmed_event_id.or(payment.cause_event_id),
        trace: TraceContext::root(payment.correlation_id),
    }
}
