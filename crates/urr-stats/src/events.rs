//! What the statistics learn from events.
//!
//! Only the fields that are counted are read, as this crate's own types: who publishes may add
//! others. Whatever the order in which messages of different keys come, the facts end up the same.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use urr_bus::{HandleError, Handled, HandlerContext};
use urr_kernel::{Event, Timestamp, Uuid, Won};
use urr_layout::Layout;
use urr_storage::{Tx, storable};

use crate::day_in_korea;
use crate::domain::{
    Deed, DeedKind, Heard, QueueHour, Reservation, Terms, User, hour_in_korea, note_once,
};
use crate::rebuild::{Progress, Stage};
use crate::store::catalog::{self, EventCopy, TicketTypeCopy};
use crate::store::facts;
use crate::store::figures::progress_lock;
use crate::store::queues;

/// The name of the statistics among the consumers.
pub const GROUP: &str = "stats-service-group";

/// The topics that are counted.
pub const TOPICS: &[&str] = &[
    "catalog-events",
    "inventory-events",
    "membership-events",
    "payment-events",
    "queue-events",
    "reservation-events",
    "transfer-events",
    "user-events",
];

/// Learns what an event tells, on the day it happened.
pub fn handle(
    tx: &mut Tx<'_>,
    event: &Event,
    _context: &HandlerContext,
) -> Result<Handled, HandleError> {
    learn(tx, event)?;
    Ok(Handled::Done)
}

/// A second time has no second effect.
pub(crate) fn learn(tx: &mut Tx<'_>, event: &Event) -> Result<(), HandleError> {
    let at = storable(event.time);
    match event.event_type.as_str() {
        // Nothing that happened, and there are many of them.
        "ADMISSION_NEAR" => return Ok(()),
        "QUEUE_OBSERVED" => return learn_queue(tx, &data(event)?, at),
        _ => {}
    }
    let progress = progress_lock(tx)?;
    let heard = Heard { id: event.id, day: day_in_korea(at), event_type: event.event_type.clone() };
    progress.learn(tx, Stage::Heard, event.id, &heard, Heard::count)?;
    match event.event_type.as_str() {
        "EVENT_CREATED" | "EVENT_UPDATED" => learn_event(tx, &data(event)?),
        "EVENT_CANCELLED" => learn_end(tx, &data(event)?, "cancelled"),
        "EVENT_DELETED" => learn_end(tx, &data(event)?, "deleted"),
        "TICKET_TYPE_CHANGED" => learn_ticket_type(tx, &data(event)?),
        "USER_REGISTERED" => learn_user(tx, &progress, data::<UserData>(event)?.user_id, |user| {
            note_once(&mut user.registered_at, at);
        }),
        "USER_DELETED" => learn_user(tx, &progress, data::<UserData>(event)?.user_id, |user| {
            note_once(&mut user.deleted_at, at);
        }),
        "RESERVATION_CREATED"
        | "RESERVATION_CHANGED"
        | "RESERVATION_CONFIRMED"
        | "RESERVATION_CANCELLED"
        | "RESERVATION_EXPIRED" => learn_reservation(tx, &progress, event, at),
        "PAYMENT_CONFIRMED" => learn_deed(tx, &progress, &charge(data(event)?, at)),
        "PAYMENT_REFUNDED" => learn_deed(tx, &progress, &refund(data(event)?, at)),
        "TRANSFER_COMPLETED" => learn_deed(tx, &progress, &transfer(&data(event)?, at)),
        "MEMBERSHIP_ACTIVATED" => {
            learn_deed(tx, &progress, &membership(&data(event)?, event.id, at))
        }
        // It is counted among the activity and says nothing else that we count.
        _ => Ok(()),
    }
}

fn data<D: DeserializeOwned>(event: &Event) -> Result<D, HandleError> {
    D::deserialize(&event.data).map_err(|error| {
        let event_type = &event.event_type;
        HandleError::Poison(format!("the data of a {event_type} cannot be counted: {error}"))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventData {
    event_id: Uuid,
    revision: i64,
    title: String,
    kind: String,
    status: String,
    venue_name: String,
    starts_at: Timestamp,
    #[serde(default)]
    layout: Option<Value>,
    #[serde(default)]
    prices: Value,
    #[serde(default)]
    ticket_types: Vec<TicketTypeOrder>,
}

#[derive(Deserialize)]
struct TicketTypeOrder {
    id: Uuid,
    price: Won,
    total: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventEndData {
    event_id: Uuid,
    revision: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TicketTypeData {
    event_id: Uuid,
    ticket_type_id: Uuid,
    price: Won,
    total: u32,
    fence: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UserData {
    user_id: Uuid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReservationData {
    reservation_id: Uuid,
    user_id: Uuid,
    event_id: Uuid,
    total_amount: Won,
    quantity: u32,
    #[serde(default)]
    seat_ids: Vec<u32>,
    #[serde(default)]
    expires_at: Option<Timestamp>,
    #[serde(default)]
    refund_amount: Option<Won>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PaymentData {
    payment_id: Uuid,
    user_id: Uuid,
    #[serde(default)]
    event_id: Option<Uuid>,
    payment_method: String,
    amount: Won,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefundData {
    refund_id: Uuid,
    #[serde(flatten)]
    payment: PaymentData,
    cause: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TransferData {
    transfer_id: Uuid,
    buyer_id: Uuid,
    #[serde(default)]
    event_id: Option<Uuid>,
    total_price: Won,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MembershipData {
    user_id: Uuid,
    /// A membership is renewed under the same id; each time there is another payment.
    #[serde(default)]
    payment_id: Option<Uuid>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueData {
    event_id: Uuid,
    waiting: u32,
    inside: u32,
    joined_total: i64,
    admitted_total: i64,
    left_total: i64,
}

fn learn_queue(tx: &mut Tx<'_>, told: &QueueData, at: Timestamp) -> Result<(), HandleError> {
    let stood = QueueHour {
        waiting_max: told.waiting.into(),
        inside_max: told.inside.into(),
        joined_total: told.joined_total,
        admitted_total: told.admitted_total,
        left_total: told.left_total,
    };
    Ok(queues::queue_note(tx, told.event_id, hour_in_korea(at), &stood)?)
}

fn learn_event(tx: &mut Tx<'_>, event: &EventData) -> Result<(), HandleError> {
    let id = event.event_id;
    let copy = EventCopy {
        id,
        revision: event.revision,
        title: &event.title,
        venue: &event.venue_name,
        kind: &event.kind,
        starts_at: storable(event.starts_at),
        prices: &event.prices,
    };
    catalog::event_update(tx, &copy)?;
    catalog::event_set_status(tx, id, &event.status, event.revision)?;
    if let Some(layout) = &event.layout {
        let seats = Layout::deserialize(layout)
            .map_err(|error| HandleError::Poison(format!("a layout cannot be read: {error}")))?;
        catalog::event_set_layout(tx, id, layout, seats.seat_count())?;
    }
    for TicketTypeOrder { id: kind, price, total } in &event.ticket_types {
        // What was ordered is older than any change of it.
        let (price, total) = (price.amount(), i64::from(*total));
        let kind = TicketTypeCopy { event_id: id, id: *kind, price, total, fence: -1 };
        catalog::ticket_type_write(tx, &kind)?;
    }
    Ok(catalog::event_count_places(tx, id)?)
}

fn learn_end(tx: &mut Tx<'_>, end: &EventEndData, status: &str) -> Result<(), HandleError> {
    Ok(catalog::event_set_status(tx, end.event_id, status, end.revision)?)
}

fn learn_ticket_type(tx: &mut Tx<'_>, changed: &TicketTypeData) -> Result<(), HandleError> {
    let kind = TicketTypeCopy {
        event_id: changed.event_id,
        id: changed.ticket_type_id,
        price: changed.price.amount(),
        total: i64::from(changed.total),
        fence: changed.fence,
    };
    catalog::ticket_type_write(tx, &kind)?;
    Ok(catalog::event_count_places(tx, changed.event_id)?)
}

fn learn_user(
    tx: &mut Tx<'_>,
    progress: &Progress,
    id: Uuid,
    note: impl FnOnce(&mut User),
) -> Result<(), HandleError> {
    let known = facts::user_find(tx, id)?;
    let mut user = known.unwrap_or(User { id, registered_at: None, deleted_at: None });
    note(&mut user);
    Ok(progress.learn(tx, Stage::Users, id, &user, User::count)?)
}

fn learn_reservation(
    tx: &mut Tx<'_>,
    progress: &Progress,
    event: &Event,
    at: Timestamp,
) -> Result<(), HandleError> {
    let told: ReservationData = data(event)?;
    catalog::event_note(tx, told.event_id)?;
    let rank = match event.event_type.as_str() {
        "RESERVATION_CREATED" => 0,
        "RESERVATION_CHANGED" => 1,
        _ => 2,
    };
    let terms = Terms {
        rank,
        at,
        message_id: event.id,
        event_id: told.event_id,
        user_id: told.user_id,
        amount: told.total_amount.amount(),
        quantity: i64::from(told.quantity),
        seat_ids: told.seat_ids,
    };
    let id = told.reservation_id;
    let mut now =
        facts::reservation_find(tx, id)?.unwrap_or_else(|| Reservation::new(id, terms.clone()));
    now.note_terms(terms);
    let is_first = match event.event_type.as_str() {
        "RESERVATION_CREATED" => note_once(&mut now.created_at, at),
        "RESERVATION_CONFIRMED" => note_once(&mut now.confirmed_at, at),
        "RESERVATION_CANCELLED" => note_once(&mut now.cancelled_at, at),
        "RESERVATION_EXPIRED" => note_once(&mut now.expired_at, at),
        // Other seats: the terms say which.
        _ => false,
    };
    match event.event_type.as_str() {
        "RESERVATION_CREATED" if is_first => now.hold_ends_at = told.expires_at.map(storable),
        "RESERVATION_CANCELLED" if is_first => {
            now.refund_amount = told.refund_amount.map_or(0, Won::amount);
        }
        _ => {}
    }
    Ok(progress.learn(tx, Stage::Reservations, id, &now, Reservation::count)?)
}

fn charge(told: PaymentData, at: Timestamp) -> Deed {
    Deed {
        kind: DeedKind::Charge,
        id: told.payment_id,
        at,
        user_id: Some(told.user_id),
        event_id: told.event_id,
        amount: told.amount.amount(),
        method: told.payment_method,
        cause: String::new(),
    }
}

fn refund(told: RefundData, at: Timestamp) -> Deed {
    let (id, cause) = (told.refund_id, told.cause);
    Deed { kind: DeedKind::Refund, id, cause, ..charge(told.payment, at) }
}

fn transfer(told: &TransferData, at: Timestamp) -> Deed {
    Deed {
        kind: DeedKind::Transfer,
        id: told.transfer_id,
        at,
        user_id: Some(told.buyer_id),
        event_id: told.event_id,
        amount: told.total_price.amount(),
        method: String::new(),
        cause: String::new(),
    }
}

fn membership(told: &MembershipData, message_id: Uuid, at: Timestamp) -> Deed {
    Deed {
        kind: DeedKind::Membership,
        id: told.payment_id.unwrap_or(message_id),
        at,
        user_id: Some(told.user_id),
        event_id: None,
        amount: 0,
        method: String::new(),
        cause: String::new(),
    }
}

fn learn_deed(tx: &mut Tx<'_>, progress: &Progress, told: &Deed) -> Result<(), HandleError> {
    if let Some(event_id) = told.event_id {
        catalog::event_note(tx, event_id)?;
    }
    // Of copies the earliest counts.
    let known = facts::Fact::find(told, tx)?;
    let first = known.filter(|known| known.at < told.at).unwrap_or_else(|| told.clone());
    Ok(progress.learn(tx, Stage::of(told.kind), told.id, &first, Deed::count)?)
}
