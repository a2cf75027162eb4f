//! What the statistics learn from domain events.
//!
//! Facts end up the same whatever the order in which messages of different keys come.

use std::collections::HashSet;

use urr_bus::{HandleError, HandledEvent, HandlerOutcome, decode_event};
use urr_contracts::events::catalog::{
    EventCancelled, EventCreated, EventDeleted, EventSnapshot, EventUpdated,
};
use urr_contracts::events::inventory::{HouseSeatsChanged, TicketTypeChanged};
use urr_contracts::events::membership::MembershipActivated;
use urr_contracts::events::payment::{PaymentConfirmed, PaymentRefunded, PaymentSnapshot};
use urr_contracts::events::queue::{AdmissionNear, QueueObserved};
use urr_contracts::events::reservation::{
    BoxOfficeSold, ComplimentaryIssued, ReservationCancelled, ReservationChanged,
    ReservationConfirmed, ReservationCreated, ReservationExpired, ReservationPartlyCancelled,
    ReservationSnapshot,
};
use urr_contracts::events::transfer::TransferCompleted;
use urr_contracts::events::user::{UserDeleted, UserRegistered, UserRoleChanged};
use urr_kernel::{DomainEvent, EventData, Timestamp, Uuid, Won};
use urr_storage::{Tx, storable_time};

use crate::day_in_korea;
use crate::domain::{
    CountedMessage, QueueHour, ReservationFact, ReservationTerms, Transaction, TransactionKind,
    UserFact, hour_in_korea, keep_earliest, start_of_minute,
};
use crate::rebuild::CountingBatch;
use crate::store::catalog::{self, TicketTypeProjection};
use crate::store::facts::StoredFact;
use crate::store::{live, queues};

/// The consumer group of the statistics.
pub const GROUP: &str = "stats-service-group";

/// The topics that are counted: all.
pub const TOPICS: &[&str] = urr_contracts::events::TOPICS;

/// Handles the events of a transaction.
pub fn handle(
    tx: &mut Tx<'_>,
    events: &[HandledEvent<'_>],
) -> Result<Vec<HandlerOutcome>, HandleError> {
    handle_all(tx, &events.iter().map(|(event, _)| *event).collect::<Vec<_>>())?;
    Ok(vec![HandlerOutcome::Done; events.len()])
}

/// Counts events, each on the day on which it happened. A repeated event has no second effect.
pub fn handle_all(tx: &mut Tx<'_>, events: &[&DomainEvent]) -> Result<(), HandleError> {
    let mut counted = Vec::new();
    for event in events {
        match event.event_type.as_str() {
            // Reminders are many and nothing is counted of them.
            AdmissionNear::TYPE => {}
            QueueObserved::TYPE => {
                apply_queue(tx, &decode_event(event)?, storable_time(event.time))?;
            }
            _ => counted.push(*event),
        }
    }
    if counted.is_empty() {
        return Ok(());
    }
    let message = |event: &&DomainEvent| CountedMessage {
        id: event.id,
        day: day_in_korea(storable_time(event.time)),
        event_type: event.event_type.clone(),
    };
    let messages: Vec<CountedMessage> = counted.iter().map(message).collect();
    let mut counting = CountingBatch::begin(tx)?;
    counting.add_messages(tx, &messages)?;
    let ids = |name: &str, is_of: fn(&str) -> bool| -> HashSet<Uuid> {
        let events = counted.iter().filter(|event| is_of(&event.event_type));
        events.filter_map(|event| event.data[name].as_str()?.parse().ok()).collect()
    };
    let reservation_ids = ids("reservationId", |name| name.starts_with("RESERVATION_"));
    counting.load(
        tx,
        &reservation_ids,
        &ids("paymentId", |name| name == PaymentConfirmed::TYPE),
    )?;
    for event in counted {
        apply_event(tx, &mut counting, event)?;
    }
    Ok(counting.finish(tx)?)
}

fn apply_event(
    tx: &mut Tx<'_>,
    counting: &mut CountingBatch,
    event: &DomainEvent,
) -> Result<(), HandleError> {
    let at = storable_time(event.time);
    match event.event_type.as_str() {
        EventCreated::TYPE => apply_snapshot(tx, &decode_event::<EventCreated>(event)?.0),
        EventUpdated::TYPE => apply_snapshot(tx, &decode_event::<EventUpdated>(event)?.0),
        EventCancelled::TYPE => {
            let EventCancelled { event_id, revision, .. } = decode_event(event)?;
            Ok(catalog::event_set_status(tx, event_id, "cancelled", revision)?)
        }
        EventDeleted::TYPE => {
            let EventDeleted { event_id, revision, .. } = decode_event(event)?;
            Ok(catalog::event_set_status(tx, event_id, "deleted", revision)?)
        }
        TicketTypeChanged::TYPE => apply_ticket_type(tx, &decode_event(event)?),
        HouseSeatsChanged::TYPE => {
            let HouseSeatsChanged { event_id, blocked, fence } = decode_event(event)?;
            Ok(catalog::event_set_blocked(tx, event_id, blocked, fence)?)
        }
        UserRegistered::TYPE => {
            let UserRegistered { user_id, role } = decode_event(event)?;
            apply_user(tx, counting, user_id, |user| {
                keep_earliest(&mut user.registered_at, at);
                if let Some(role) = role {
                    user.set_role(role, at);
                }
            })
        }
        UserRoleChanged::TYPE => {
            let UserRoleChanged { user_id, role } = decode_event(event)?;
            apply_user(tx, counting, user_id, |user| user.set_role(role, at))
        }
        UserDeleted::TYPE => {
            let UserDeleted { user_id } = decode_event(event)?;
            apply_user(tx, counting, user_id, |user| {
                keep_earliest(&mut user.deleted_at, at);
            })
        }
        ReservationPartlyCancelled::TYPE => {
            apply_transaction(tx, counting, &part_cancellation(&decode_event(event)?, at))?;
            apply_reservation(tx, counting, event, at)
        }
        _ => match transaction(event, at)? {
            Some(transaction) => apply_transaction(tx, counting, &transaction),
            None => apply_reservation(tx, counting, event, at),
        },
    }
}

fn apply_queue(
    tx: &mut Tx<'_>,
    observed: &QueueObserved,
    at: Timestamp,
) -> Result<(), HandleError> {
    live::queue_minute_insert(tx, start_of_minute(at), observed)?;
    let total = |total: u64| i64::try_from(total).unwrap_or(i64::MAX);
    let hour = QueueHour {
        waiting_max: observed.waiting.into(),
        inside_max: observed.inside.into(),
        joined_total: total(observed.joined_total),
        admitted_total: total(observed.admitted_total),
        left_total: total(observed.left_total),
    };
    Ok(queues::queue_hour_update(tx, observed.event_id, hour_in_korea(at), &hour)?)
}

fn apply_snapshot(tx: &mut Tx<'_>, event: &EventSnapshot) -> Result<(), HandleError> {
    let id = event.event_id;
    catalog::event_update(tx, event)?;
    catalog::event_set_status(tx, id, event.status.as_str(), event.revision)?;
    if let Some(layout) = &event.layout {
        let seats = layout.seat_count();
        let layout = serde_json::to_value(layout).expect("a layout is plain JSON");
        catalog::event_set_layout(tx, id, &layout, seats)?;
    }
    for ordered in &event.ticket_types {
        let ticket_type = TicketTypeProjection {
            event_id: id,
            id: ordered.id,
            price: ordered.price.amount(),
            total: i64::from(ordered.total),
            // Any later change is newer.
            fence: -1,
        };
        catalog::ticket_type_update(tx, &ticket_type)?;
    }
    Ok(catalog::event_count_places(tx, id)?)
}

fn apply_ticket_type(tx: &mut Tx<'_>, changed: &TicketTypeChanged) -> Result<(), HandleError> {
    let ticket_type = TicketTypeProjection {
        event_id: changed.event_id,
        id: changed.ticket_type_id,
        price: changed.price.amount(),
        total: i64::from(changed.total),
        fence: changed.fence,
    };
    catalog::ticket_type_update(tx, &ticket_type)?;
    Ok(catalog::event_count_places(tx, changed.event_id)?)
}

fn apply_user(
    tx: &mut Tx<'_>,
    counting: &mut CountingBatch,
    id: Uuid,
    change: impl FnOnce(&mut UserFact),
) -> Result<(), HandleError> {
    let stored = UserFact::find(tx, id)?;
    let mut user = stored.clone().unwrap_or(UserFact::new(id));
    change(&mut user);
    Ok(counting.replace(tx, stored.as_ref(), &user)?)
}

/// Below it, by the tickets that are left: partly cancelled ones.
const RANK_CANCELLED: u8 = 100;

/// What an event of a reservation says, whatever its type.
struct ReservationNotice {
    reservation: ReservationSnapshot,
    expires_at: Option<Timestamp>,
    refund_amount: Won,
}

impl ReservationNotice {
    /// None for an event of another topic, which is only counted as activity.
    fn read(event: &DomainEvent) -> Result<Option<ReservationNotice>, HandleError> {
        let (mut expires_at, mut refund_amount) = (None, Won::ZERO);
        let reservation = match event.event_type.as_str() {
            ReservationCreated::TYPE => {
                let created: ReservationCreated = decode_event(event)?;
                expires_at = Some(storable_time(created.expires_at));
                created.reservation
            }
            ReservationChanged::TYPE => decode_event::<ReservationChanged>(event)?.reservation,
            ReservationConfirmed::TYPE => decode_event::<ReservationConfirmed>(event)?.reservation,
            BoxOfficeSold::TYPE => decode_event::<BoxOfficeSold>(event)?.reservation,
            ComplimentaryIssued::TYPE => decode_event::<ComplimentaryIssued>(event)?.reservation,
            ReservationPartlyCancelled::TYPE => {
                decode_event::<ReservationPartlyCancelled>(event)?.reservation
            }
            ReservationCancelled::TYPE => {
                let cancelled: ReservationCancelled = decode_event(event)?;
                refund_amount = cancelled.refund_amount;
                cancelled.reservation
            }
            ReservationExpired::TYPE => decode_event::<ReservationExpired>(event)?.reservation,
            _ => return Ok(None),
        };
        Ok(Some(ReservationNotice { reservation, expires_at, refund_amount }))
    }

    fn terms(&self, event: &DomainEvent, at: Timestamp) -> ReservationTerms {
        let reservation = &self.reservation;
        ReservationTerms {
            rank: match event.event_type.as_str() {
                ReservationCreated::TYPE => 0,
                ReservationChanged::TYPE => 1,
                ReservationPartlyCancelled::TYPE => {
                    let left = u8::try_from(reservation.quantity).unwrap_or(u8::MAX);
                    RANK_CANCELLED.saturating_sub(left).max(3)
                }
                ReservationCancelled::TYPE => RANK_CANCELLED,
                _ => 2,
            },
            at,
            message_id: event.id,
            event_id: reservation.event_id,
            user_id: reservation.user_id,
            amount: reservation.total_amount.amount(),
            quantity: i64::from(reservation.quantity),
            seat_ids: reservation.seat_ids.clone(),
        }
    }
}

fn apply_reservation(
    tx: &mut Tx<'_>,
    counting: &mut CountingBatch,
    event: &DomainEvent,
    at: Timestamp,
) -> Result<(), HandleError> {
    let Some(notice) = ReservationNotice::read(event)? else { return Ok(()) };
    let terms = notice.terms(event, at);
    counting.insert_event(tx, terms.event_id)?;
    let id = notice.reservation.reservation_id;
    let stored = counting.find_reservation(tx, id)?;
    let mut fact = stored.clone().unwrap_or_else(|| ReservationFact::new(id, terms.clone()));
    fact.update_terms(terms);
    let event_type = event.event_type.as_str();
    let is_first = match event_type {
        ReservationCreated::TYPE => keep_earliest(&mut fact.created_at, at),
        ReservationConfirmed::TYPE => keep_earliest(&mut fact.confirmed_at, at),
        // They are sold or given away at once.
        BoxOfficeSold::TYPE | ComplimentaryIssued::TYPE => {
            keep_earliest(&mut fact.created_at, at);
            keep_earliest(&mut fact.confirmed_at, at)
        }
        ReservationCancelled::TYPE => keep_earliest(&mut fact.cancelled_at, at),
        ReservationExpired::TYPE => keep_earliest(&mut fact.expired_at, at),
        // Only the terms of a changed reservation are different.
        _ => false,
    };
    match event_type {
        ReservationCreated::TYPE if is_first => fact.hold_ends_at = notice.expires_at,
        ReservationCancelled::TYPE if is_first => {
            fact.refund_amount = notice.refund_amount.amount();
        }
        _ => {}
    }
    counting.replace_reservation(stored.as_ref(), fact);
    Ok(())
}

/// The transaction that an event reports, if it reports one.
fn transaction(event: &DomainEvent, at: Timestamp) -> Result<Option<Transaction>, HandleError> {
    Ok(Some(match event.event_type.as_str() {
        PaymentConfirmed::TYPE => {
            let PaymentConfirmed { payment, amount, .. } = decode_event(event)?;
            charge(payment, amount, at)
        }
        PaymentRefunded::TYPE => {
            let refunded: PaymentRefunded = decode_event(event)?;
            Transaction {
                kind: TransactionKind::Refund,
                id: refunded.refund_id,
                cause: refunded.cause.as_str().to_owned(),
                ..charge(refunded.payment, refunded.amount, at)
            }
        }
        TransferCompleted::TYPE => {
            let completed: TransferCompleted = decode_event(event)?;
            Transaction {
                user_id: Some(completed.buyer_id),
                event_id: Some(completed.event_id),
                amount: completed.total_price.amount(),
                ..Transaction::new(TransactionKind::Transfer, completed.transfer_id, at)
            }
        }
        MembershipActivated::TYPE => {
            let activated: MembershipActivated = decode_event(event)?;
            Transaction {
                user_id: Some(activated.user_id),
                ..Transaction::new(TransactionKind::Membership, activated.payment_id, at)
            }
        }
        _ => return Ok(None),
    }))
}

/// The refund that the cancellation of some tickets announced.
fn part_cancellation(cancelled: &ReservationPartlyCancelled, at: Timestamp) -> Transaction {
    Transaction {
        user_id: Some(cancelled.reservation.user_id),
        event_id: Some(cancelled.reservation.event_id),
        amount: cancelled.refund_amount.amount(),
        ..Transaction::new(TransactionKind::PartCancellation, cancelled.cancellation_id, at)
    }
}

fn charge(payment: PaymentSnapshot, amount: Won, at: Timestamp) -> Transaction {
    Transaction {
        user_id: Some(payment.user_id),
        event_id: payment.event_id,
        amount: amount.amount(),
        method: payment.payment_method.unwrap_or_default(),
        ..Transaction::new(TransactionKind::Charge, payment.payment_id, at)
    }
}

fn apply_transaction(
    tx: &mut Tx<'_>,
    counting: &mut CountingBatch,
    transaction: &Transaction,
) -> Result<(), HandleError> {
    if let Some(event_id) = transaction.event_id {
        counting.insert_event(tx, event_id)?;
    }
    // Of several copies the earliest counts.
    let stored = counting.find_transaction(tx, transaction)?;
    let earlier = stored.clone().filter(|stored| stored.at < transaction.at);
    let first = earlier.unwrap_or_else(|| transaction.clone());
    Ok(counting.replace_transaction(tx, stored.as_ref(), first)?)
}
