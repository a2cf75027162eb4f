//! Cancels single tickets of a paid reservation: fee and refund by ticket, seats freed one by one.
//!
//! The reservation stays confirmed with the tickets that are left. Cancelling the last of them is
//! cancelling the reservation.

use urr_contracts::events::reservation::ReservationPartlyCancelled;
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_layout::SeatId;
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{Tx, outbox};

use crate::alerts::store::gates_note_return;
use crate::reservations::cancel::{
    AdminCancel, CANCELLED_BY_OWNER, CancelEnd, check_owner, end_one,
};
use crate::reservations::history::store::history_insert;
use crate::reservations::history::{HistoryActor, HistoryDetails, HistoryEntry, HistoryKind};
use crate::reservations::model::seat_ids;
use crate::reservations::refund::rules::{FeeMode, refund_of_tickets};
use crate::reservations::refund::{RefundTerms, owners_fee};
use crate::reservations::rules::{
    CancelActor, ReservationRecord, ReservationRejection, decide_cancel_tickets,
};
use crate::reservations::store as transitions;
use crate::reservations::store::EndedReservation;
use crate::reservations::store::list::{StoredTicket, ticket_list_lock};
use crate::reservations::store::tickets::{self, TicketCancellation};
use crate::reservations::transition::{
    PreparedEvents, TransitionCheck, TransitionError, check_transition, reload,
};
use crate::transfers::store::active_listing_find;
use crate::{ReservationId, ReservationKind, TicketService};

/// Tickets that shall be cancelled, by their numbers: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelTickets {
    pub ticket_numbers: Vec<String>,
    pub by: TicketCanceller,
}

/// Who cancels tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketCanceller {
    Owner(Uuid),
    Admin(AdminCancel),
}

/// What came of it.
enum CancelledTickets {
    /// They were cancelled before.
    Nothing(ReservationRecord),
    Part(ReservationRecord, Vec<SeatId>),
    /// They were the last ones.
    Whole(ReservationRecord, Vec<EndedReservation>),
}

impl TicketCanceller {
    fn actor(&self) -> CancelActor {
        match self {
            TicketCanceller::Owner(_) => CancelActor::Owner,
            TicketCanceller::Admin(_) => CancelActor::Admin,
        }
    }

    fn history_actor(&self) -> HistoryActor {
        match self {
            TicketCanceller::Owner(user_id) => HistoryActor::Owner(*user_id),
            TicketCanceller::Admin(by) => HistoryActor::Admin(by.admin_id),
        }
    }

    fn check(&self, record: &ReservationRecord) -> Result<(), ReservationRejection> {
        match self {
            TicketCanceller::Owner(user_id) => check_owner(record, *user_id),
            TicketCanceller::Admin(_) => Ok(()),
        }
    }

    fn reason(&self) -> &str {
        match self {
            TicketCanceller::Owner(_) => CANCELLED_BY_OWNER,
            TicketCanceller::Admin(by) => &by.reason,
        }
    }

    fn fee(&self, record: &ReservationRecord) -> FeeMode {
        match self {
            TicketCanceller::Owner(_) => owners_fee(record),
            TicketCanceller::Admin(by) => by.fee,
        }
    }
}

impl TicketService {
    /// Cancels these tickets of a paid reservation. Those that were cancelled before stay so.
    pub async fn cancel_tickets(
        &self,
        id: ReservationId,
        request: CancelTickets,
        context: CallContext,
    ) -> Result<ReservationRecord, TransitionError> {
        let (prepared, now) = (self.prepare_events(2, context), self.clock.now());
        let action = match &request.by {
            TicketCanceller::Owner(_) => None,
            TicketCanceller::Admin(by) => {
                Some(self.admin_action(by.admin_id, "TICKETS_CANCELLED", "reservation", id.0))
            }
        };
        let cancelled =
            self.db.write(move |tx| cancel(tx, id, &request, action.as_ref(), &prepared, now));
        match cancelled.await? {
            CancelledTickets::Nothing(record) => Ok(record),
            CancelledTickets::Whole(record, ended) => self.after_end((record, ended)).await,
            CancelledTickets::Part(record, seats) => {
                let (event_id, fence) = (record.reservation.event_id, record.reservation.fence);
                if !seats.is_empty() {
                    self.locks.release(event_id, &seats, fence).await;
                }
                self.seats_changed(event_id);
                Ok(record)
            }
        }
    }
}

fn cancel(
    tx: &mut Tx<'_>,
    id: ReservationId,
    request: &CancelTickets,
    action: Option<&AdminAction>,
    prepared: &PreparedEvents,
    now: Timestamp,
) -> Result<CancelledTickets, TransitionError> {
    let by = &request.by;
    let found = check_transition(tx, id, |record| {
        by.check(record)?;
        decide_cancel_tickets(record, by.actor(), now)
    })?;
    let (record, fence) = match found {
        TransitionCheck::AlreadyDone(record) => return Ok(CancelledTickets::Nothing(record)),
        TransitionCheck::Apply(record, fence) => (record, fence),
    };
    if record.kind == ReservationKind::Complimentary {
        return Err(ReservationRejection::Complimentary.into());
    }
    // What is for sale is sold as it was offered (M-8).
    if active_listing_find(tx, id)?.is_some() {
        return Err(ReservationRejection::Listed.into());
    }
    let all = ticket_list_lock(tx, id)?;
    let chosen = choose(&all, &request.ticket_numbers)?;
    if chosen.is_empty() {
        return Ok(CancelledTickets::Nothing(record));
    }
    if let Some(action) = action {
        let numbers: Vec<&str> = chosen.iter().map(|ticket| ticket.number.as_str()).collect();
        let summary =
            format!("{} ({}): {}", record.reservation.number, numbers.join(", "), by.reason());
        admin_log::insert(tx, &AdminAction { summary, ..action.clone() })?;
    }
    if chosen.len() == all.iter().filter(|ticket| ticket.is_valid).count() {
        let (reason, fee) = (by.reason(), by.fee(&record));
        let end = CancelEnd { fence, reason, fee, by: by.history_actor() };
        let (record, ended) = end_one(tx, &record, end, prepared, now)?;
        return Ok(CancelledTickets::Whole(record, ended));
    }
    cancel_part(tx, &record, &chosen, PartCancel { by, fence, prepared, now })
}

/// The named tickets that are still valid. A used one cannot be cancelled.
fn choose(
    all: &[StoredTicket],
    numbers: &[String],
) -> Result<Vec<StoredTicket>, ReservationRejection> {
    let is_named = |ticket: &&StoredTicket| numbers.contains(&ticket.number);
    if !numbers.iter().all(|number| all.iter().any(|ticket| ticket.number == *number)) {
        return Err(ReservationRejection::TicketNotFound);
    }
    let named: Vec<StoredTicket> = all.iter().filter(is_named).cloned().collect();
    match named.iter().any(|ticket| ticket.checked_in_at.is_some()) {
        true => Err(ReservationRejection::CheckedIn),
        false => Ok(named.into_iter().filter(|ticket| ticket.is_valid).collect()),
    }
}

struct PartCancel<'a> {
    by: &'a TicketCanceller,
    fence: i64,
    prepared: &'a PreparedEvents,
    now: Timestamp,
}

/// Cancels some of the tickets: one of them at least stays.
fn cancel_part(
    tx: &mut Tx<'_>,
    record: &ReservationRecord,
    chosen: &[StoredTicket],
    cancel: PartCancel<'_>,
) -> Result<CancelledTickets, TransitionError> {
    let PartCancel { by, fence, prepared, now } = cancel;
    let id = record.reservation.id;
    let agreed = RefundTerms::load(tx, id)?;
    let prices: Vec<Won> = chosen.iter().map(|ticket| ticket.unit_price).collect();
    let booking = agreed.booking(record, by.fee(record));
    let quote = refund_of_tickets(&agreed.policy, &booking, &prices, now);
    let amount = quote.refund.plus(quote.fee).expect("they are the price");
    let stamp = prepared.stamp_in(transitions::flow_find(tx, id)?, 0);
    let cancellation =
        TicketCancellation { chosen, fence, amount, refund: quote.refund, stamp: &stamp };
    if !tickets::tickets_cancel(tx, record, &cancellation)? {
        return Err(ReservationRejection::SeatLost.into());
    }
    gates_note_return(tx, record.reservation.event_id, now)?;
    let left = RefundTerms::load(tx, id)?;
    let new = reload(tx, id)?;
    let mut cancelled_seat_ids: Vec<SeatId> =
        chosen.iter().filter_map(|ticket| ticket.seat_id).collect();
    cancelled_seat_ids.sort_unstable();
    let event = ReservationPartlyCancelled {
        reservation: new.reservation.snapshot(seat_ids(&left.items), stamp.time),
        cancellation_id: stamp.event_id,
        cancelled_seat_ids: cancelled_seat_ids.clone(),
        cancelled_quantity: u32::try_from(chosen.len()).expect("they are few"),
        cancelled_amount: amount,
        refund_amount: quote.refund,
        cancellation_fee: quote.fee,
        reason: by.reason().to_owned(),
        payment_id: record.payment_id.expect("what was sold has a payment"),
    };
    outbox::append(tx, &stamp, &event)?;
    let entry = HistoryEntry {
        at: stamp.time,
        kind: HistoryKind::TicketsCancelled,
        by: by.history_actor(),
        amount: Some(quote.refund),
        reason: Some(by.reason().to_owned()),
        details: HistoryDetails {
            ticket_numbers: chosen.iter().map(|ticket| ticket.number.clone()).collect(),
            ..HistoryDetails::default()
        },
    };
    history_insert(tx, stamp.event_id, id, &entry)?;
    Ok(CancelledTickets::Part(new, cancelled_seat_ids))
}
