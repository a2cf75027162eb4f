//! Which events become mails.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Timestamp, Uuid, Won};
use urr_storage::{Tx, storable};

use crate::domain::facts::Facts;
use crate::domain::mail::{Kind, MailId};
use crate::store::{self, NewMail};

/// The name of the mail service among the consumers.
pub const GROUP: &str = "mail-service-group";

/// The topics that it listens to.
pub const TOPICS: &[&str] =
    &["payment-events", "queue-events", "reservation-events", "transfer-events"];

/// Who waits for a turn has been in, or has given up, by then.
const TURN_NEAR_USEFUL: Duration = Duration::from_secs(30 * 60);

/// What an owner does with a hold they have not paid is nothing to write to them about.
const OWN_REASONS: &[&str] = &["CANCELLED_BY_OWNER", "RELEASED_BY_OWNER"];

/// Writes down the mail that an event calls for. A second time there is one already.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &Event,
    context: &HandlerContext,
) -> Result<Handled, HandleError> {
    let wanted = match event.event_type.as_str() {
        "RESERVATION_CONFIRMED" => Some(purchase(data(event)?)),
        "RESERVATION_CANCELLED" => cancellation(data(event)?),
        "PAYMENT_REFUNDED" => refund(data(event)?),
        "TRANSFER_COMPLETED" => Some(handed_over(&data(event)?)),
        "ADMISSION_NEAR" => Some(turn_near(data(event)?, event)),
        _ => None,
    };
    let Some(wanted) = wanted else { return Ok(Handled::Ignored) };
    let mail = NewMail {
        id: MailId(context.derived_id("mail")),
        kind: wanted.kind,
        subject_id: wanted.subject_id,
        user_id: wanted.user_id,
        facts: wanted.facts,
        useful_until: wanted.useful_until.map(storable),
        now: context.now,
    };
    store::mail_insert(tx, &mail)?;
    Ok(Handled::Done)
}

struct Wanted {
    kind: Kind,
    subject_id: Uuid,
    user_id: Uuid,
    facts: Facts,
    useful_until: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReservationData {
    reservation_id: Uuid,
    reservation_number: String,
    user_id: Uuid,
    event_id: Uuid,
    total_amount: Won,
    quantity: u32,
    #[serde(default)]
    payment_id: Option<Uuid>,
    #[serde(default)]
    payment_method: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    refund_amount: Option<Won>,
    #[serde(default)]
    cancellation_fee: Option<Won>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefundData {
    refund_id: Uuid,
    user_id: Uuid,
    #[serde(default)]
    reservation_id: Option<Uuid>,
    #[serde(default)]
    event_id: Option<Uuid>,
    #[serde(default)]
    payment_method: Option<String>,
    amount: Won,
    #[serde(default)]
    fee: Won,
    #[serde(default)]
    cause: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransferData {
    transfer_id: Uuid,
    reservation_id: Uuid,
    event_id: Uuid,
    buyer_id: Uuid,
    total_price: Won,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnNearData {
    event_id: Uuid,
    user_id: Uuid,
    #[serde(default)]
    event_title: Option<String>,
    #[serde(default)]
    position: Option<i64>,
    #[serde(default)]
    estimated_wait_seconds: Option<i64>,
    #[serde(default)]
    sale_ends_at: Option<Timestamp>,
}

fn data<D: DeserializeOwned>(event: &Event) -> Result<D, HandleError> {
    D::deserialize(&event.data).map_err(|error| {
        let event_type = &event.event_type;
        HandleError::Poison(format!("no mail can be made of a {event_type}: {error}"))
    })
}

impl ReservationData {
    fn facts(&self) -> Facts {
        Facts {
            event_id: Some(self.event_id),
            reservation_id: Some(self.reservation_id),
            reservation_number: Some(self.reservation_number.clone()),
            quantity: Some(self.quantity),
            amount: Some(self.total_amount),
            ..Facts::default()
        }
    }

    fn wanted(&self, kind: Kind, facts: Facts) -> Wanted {
        let (subject_id, user_id) = (self.reservation_id, self.user_id);
        Wanted { kind, subject_id, user_id, facts, useful_until: None }
    }
}

fn purchase(bought: ReservationData) -> Wanted {
    let facts = Facts { method: bought.payment_method.clone(), ..bought.facts() };
    bought.wanted(Kind::Purchase, facts)
}

/// Who bought a ticket from its owner has bought it. The seller is told of their refund.
fn handed_over(sold: &TransferData) -> Wanted {
    let facts = Facts {
        event_id: Some(sold.event_id),
        reservation_id: Some(sold.reservation_id),
        amount: Some(sold.total_price),
        ..Facts::default()
    };
    let (subject_id, user_id) = (sold.transfer_id, sold.buyer_id);
    Wanted { kind: Kind::Purchase, subject_id, user_id, facts, useful_until: None }
}

/// None if nobody needs to be told: it was their own hold, and they had not paid.
fn cancellation(cancelled: ReservationData) -> Option<Wanted> {
    let was_paid = cancelled.payment_id.is_some();
    let is_own = cancelled.reason.as_deref().is_some_and(|code| OWN_REASONS.contains(&code));
    if !was_paid && is_own {
        return None;
    }
    // Of what was never paid there is nothing to say but that it is gone.
    let if_paid = |amount: Option<Won>| amount.filter(|_| was_paid);
    let facts = Facts {
        amount: was_paid.then_some(cancelled.total_amount),
        refund: if_paid(cancelled.refund_amount),
        fee: if_paid(cancelled.cancellation_fee),
        reason: cancelled.reason.clone(),
        ..cancelled.facts()
    };
    Some(cancelled.wanted(Kind::Cancellation, facts))
}

/// None if nothing went back: the mail about the cancellation has said so.
fn refund(refunded: RefundData) -> Option<Wanted> {
    if refunded.amount <= Won::ZERO {
        return None;
    }
    let is_ours = ["cancelled", "not_confirmable", "duplicate", "mismatch", "transferred"];
    let is_ours = is_ours.contains(&refunded.cause.as_str());
    let facts = Facts {
        event_id: refunded.event_id,
        reservation_id: refunded.reservation_id,
        refund: Some(refunded.amount),
        fee: Some(refunded.fee).filter(|fee| *fee > Won::ZERO),
        method: refunded.payment_method,
        reason: Some(if is_ours { refunded.cause } else { refunded.reason }),
        ..Facts::default()
    };
    let (subject_id, user_id) = (refunded.refund_id, refunded.user_id);
    Some(Wanted { kind: Kind::Refund, subject_id, user_id, facts, useful_until: None })
}

/// Somebody may ask to be told more than once, for the same event: it is about the message.
fn turn_near(near: TurnNearData, event: &Event) -> Wanted {
    let useful_until = event.time + TURN_NEAR_USEFUL;
    let useful_until = near.sale_ends_at.map_or(useful_until, |end| end.min(useful_until));
    let position = near.position;
    let facts = Facts {
        event_id: Some(near.event_id),
        event_title: near.event_title,
        position,
        wait_seconds: near.estimated_wait_seconds.filter(|_| position != Some(0)),
        ..Facts::default()
    };
    Wanted {
        kind: Kind::TurnNear,
        subject_id: event.id,
        user_id: near.user_id,
        facts,
        useful_until: Some(useful_until),
    }
}
