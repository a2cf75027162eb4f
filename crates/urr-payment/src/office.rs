//! The ticket office, as payments see it. Every call can be made again without harm.

use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use urr_kernel::{CallContext, TraceContext, Uuid, Won};
use urr_service::{CallPolicy, Upstream, UpstreamError};

use crate::domain::payment::Payment;

const DEADLINE: Duration = Duration::from_secs(5);

/// Where tickets are held and given out.
#[derive(Debug, Default)]
pub struct Office(OnceLock<Upstream>);

/// A reservation, as the ticket office has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
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
}

#[derive(Deserialize)]
struct Answer {
    reservation: Reservation,
}

/// Why the ticket office did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum OfficeError {
    /// It says no, and will say so again.
    #[error("the ticket office says {code}")]
    Refused { code: String, source: UpstreamError },
    /// It may have done it, or may do it later.
    #[error("the ticket office has not answered")]
    Silent(#[source] Option<UpstreamError>),
}

impl OfficeError {
    fn of(error: UpstreamError) -> OfficeError {
        // What concerns our own call (our credential, our path) is no word about a reservation.
        let refused = error.refusal().filter(|refusal| {
            let concerns_it = matches!(refusal.status.as_u16(), 404 | 409);
            concerns_it && !refusal.code.is_empty() && refusal.code != "NOT_FOUND"
        });
        match refused.map(|refusal| refusal.code.clone()) {
            Some(code) => OfficeError::Refused { code, source: error },
            None => OfficeError::Silent(Some(error)),
        }
    }
}

type Told = Result<Reservation, OfficeError>;

impl Office {
    /// Tells where it is. Until then it is silent. Only the first one counts.
    pub fn connect(&self, upstream: Upstream) {
        self.0.get_or_init(|| upstream);
    }

    /// A user's reservation if it can be paid now.
    pub async fn validate(&self, id: Uuid, user_id: Uuid, context: &CallContext) -> Told {
        let path = format!("/internal/ticket/reservations/{id}/validate?userId={user_id}");
        self.get(&path, context).await
    }

    /// A reservation in whatever state.
    pub async fn state(&self, payment: &Payment) -> Told {
        let path = format!("/internal/ticket/reservations/{}", payment.target.id);
        self.get(&path, &context(payment)).await
    }

    pub async fn pin(&self, payment: &Payment) -> Told {
        let body = json!({
            "paymentId": payment.id.0,
            "userId": payment.user_id,
            "fencingToken": payment.fencing_token,
            "amount": payment.amount,
        });
        self.post(payment, "pin", &body).await
    }

    pub async fn unpin(&self, payment: &Payment) -> Told {
        self.post(payment, "unpin", &json!({"paymentId": payment.id.0})).await
    }

    pub async fn confirm(&self, payment: &Payment) -> Told {
        let body = json!({
            "paymentId": payment.id.0,
            "fencingToken": payment.fencing_token,
            "amount": payment.amount,
            "paymentMethod": payment.method,
        });
        self.post(payment, "confirm", &body).await
    }

    /// The money is back.
    pub async fn refunded(&self, payment: &Payment, amount: Won) -> Told {
        let body = json!({"paymentId": payment.id.0, "amount": amount});
        self.post(payment, "refunded", &body).await
    }

    /// Cancels a paid reservation. What is to be refunded it announces itself.
    pub async fn cancel(&self, payment: &Payment, by: &Canceller, call: &CallContext) -> Told {
        let body = match by {
            Canceller::Owner(user_id) => json!({"userId": user_id}),
            Canceller::Admin { id, reason } => json!({"adminId": id, "reason": reason}),
        };
        let path = format!("/internal/ticket/reservations/{}/cancel", payment.target.id);
        self.send(&path, &body, call).await
    }

    async fn get(&self, path: &str, context: &CallContext) -> Told {
        let upstream = self.0.get().ok_or(OfficeError::Silent(None))?;
        let answer = upstream.get_json(path, context, CallPolicy::idempotent(DEADLINE)).await;
        answer.map(|Answer { reservation }| reservation).map_err(OfficeError::of)
    }

    async fn post(&self, payment: &Payment, step: &str, body: &serde_json::Value) -> Told {
        let path = format!("/internal/ticket/reservations/{}/{step}", payment.target.id);
        self.send(&path, body, &context(payment)).await
    }

    async fn send(&self, path: &str, body: &serde_json::Value, context: &CallContext) -> Told {
        let upstream = self.0.get().ok_or(OfficeError::Silent(None))?;
        let policy = CallPolicy::idempotent(DEADLINE);
        let answer = upstream.post_json(path, body, context, policy).await;
        answer.map(|Answer { reservation }| reservation).map_err(OfficeError::of)
    }
}

/// Who cancels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Canceller {
    Owner(Uuid),
    Admin { id: Uuid, reason: String },
}

/// What a payment does belongs to the flow of its buyer; what follows the charge was caused by it.
pub fn context(payment: &Payment) -> CallContext {
    CallContext {
        correlation_id: payment.correlation_id,
        causation_id: payment.confirmed_event_id,
        trace: TraceContext::root(payment.correlation_id),
    }
}
