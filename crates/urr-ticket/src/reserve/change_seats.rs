//! Changes the seats of a hold: all of them in one step, or nothing.
//!
//! The expiry stays the same, so that seats cannot be kept by changing them. The hold gets a new
//! fencing token, and the old one is stale from then on.

pub(crate) mod rules;

use std::sync::Arc;
use std::time::Duration;

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{Tx, outbox};

use crate::alerts::store::{GatePass, gates_load, gates_note_return};
use crate::inventory::store as sales;
use crate::reservations::cancel::check_owner;
use crate::reservations::history::store::history_insert;
use crate::reservations::history::{HistoryActor, HistoryDetails, HistoryEntry, HistoryKind};
use crate::reservations::model::seat_ids;
use crate::reservations::rules::{ReservationRecord, ReservationRejection, decide_change};
use crate::reservations::store as transitions;
use crate::reservations::store::items;
use crate::reservations::transition::{PreparedEvents, reload};
use crate::reserve::change_seats::rules::{SeatSwap, SeatSwapRequest, decide_swap};
use crate::reserve::rules::{HoldRejection, RequestedItems};
use crate::reserve::{check_requested, persons, store};
use crate::{Inventory, ItemSubject, ReservationId, ReservationItem, ReserveError, TicketService};
use urr_contracts::events::reservation::ReservationChanged;

/// A request for other seats: at least one, each once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSeats {
    pub user_id: Uuid,
    pub seat_ids: Vec<SeatId>,
    /// If it is stale, nothing is changed. None: any version is overwritten.
    pub fencing_token: Option<i64>,
}

/// A changed hold and the seats that it gave back.
struct ChangedHold {
    record: ReservationRecord,
    /// The seats given back and the token they were locked with; none if nothing changed.
    dropped: Option<(Vec<SeatId>, i64)>,
}

impl TicketService {
    /// Changes the seats of one's own hold.
    pub async fn change_seats(
        &self,
        id: ReservationId,
        request: ChangeSeats,
        context: CallContext,
    ) -> Result<ReservationRecord, ReserveError> {
        let now = self.clock.now();
        let record = self.find_reservation(id).await?;
        request.check(&record, now)?;
        let event_id = record.reservation.event_id;
        let inventory =
            self.inventories.get(event_id).await?.ok_or(ReservationRejection::NotFound)?;
        check_requested(&inventory, &RequestedItems::Seats(request.seat_ids.clone()))?;
        let prepared = self.prepare_events(1, context);
        let (wanted, user_id) = (request.seat_ids.clone(), request.user_id);
        let gate_max = self.settings.alerts.exclusive_max;
        let change = SeatChangeCommand { id, request, inventory, gate_max, now };
        let changed = self.db.write(move |tx| change.run(tx, &prepared));
        let ChangedHold { record, dropped } = changed.await?;
        if let Some((dropped, old_token)) = dropped {
            let (token, ttl) = (record.reservation.fence, self.settings.lock_ttl);
            self.locks.release(event_id, &dropped, old_token).await;
            self.locks.confirm(event_id, &wanted, user_id, token, ttl).await;
            self.seats_changed(event_id);
        }
        Ok(record)
    }
}

impl ChangeSeats {
    /// Whether the seats of this hold may be changed at all.
    fn check(
        &self,
        record: &ReservationRecord,
        now: Timestamp,
    ) -> Result<(), ReservationRejection> {
        check_owner(record, self.user_id)?;
        decide_change(record, self.fencing_token, now)
    }
}

struct SeatChangeCommand {
    id: ReservationId,
    request: ChangeSeats,
    inventory: Arc<Inventory>,
    /// How long returned seats are for fans who were told.
    gate_max: Duration,
    now: Timestamp,
}

impl SeatChangeCommand {
    /// Locks, decides, writes, announces. Nothing is written before all is decided.
    fn run(&self, tx: &mut Tx<'_>, prepared: &PreparedEvents) -> Result<ChangedHold, ReserveError> {
        let (event_id, wanted) = (self.inventory.event_id, &self.request.seat_ids);
        let sale = sales::sale_lock_only(tx, event_id)?.ok_or(ReservationRejection::NotFound)?;
        let record = reload(tx, self.id)?;
        self.request.check(&record, self.now)?;
        let items = items::item_list(tx, self.id)?;
        let held = seat_ids(&items);
        let mut taken = Vec::new();
        for &seat_id in wanted {
            if !store::seat_is_free(tx, event_id, seat_id)? {
                taken.push(seat_id);
            }
        }
        let reservation = &record.reservation;
        let live_quantity = transitions::live_quantity(tx, event_id, reservation.user_id)?;
        let live_quantity = live_quantity.max(persons::quantity_with(tx, self.id)?);
        let other_quantity = live_quantity - reservation.quantity;
        let request = SeatSwapRequest { held: &held, wanted, taken: &taken, other_quantity };
        let Some(swap) = decide_swap(&request, &sale.policy, self.now)? else {
            return Ok(ChangedHold { record, dropped: None });
        };
        if sale.has_seat_alerts {
            let pass = GatePass::ForChange;
            let gates = gates_load(tx, event_id, pass, self.gate_max, self.now)?;
            gates.check_seats(reservation.user_id, &self.inventory, &swap.take)?;
        }
        let fence = sale.fence + 1;
        sales::sale_number(tx, event_id, fence)?;
        let stamp = prepared.stamp_in(transitions::flow_find(tx, self.id)?, 0);
        self.write(tx, &record, &items, &swap, fence)?;
        store::hold_update(tx, reservation, fence, &stamp)?;
        let new = reload(tx, self.id)?;
        let event = ReservationChanged {
            reservation: new.reservation.snapshot(wanted.clone(), stamp.time),
            previous_seat_ids: held.clone(),
            previous_total_amount: reservation.total_amount,
        };
        outbox::append(tx, &stamp, &event)?;
        history_insert(tx, stamp.event_id, self.id, &self.history_entry(&held, stamp.time))?;
        gates_note_return(tx, event_id, self.now)?;
        Ok(ChangedHold { dropped: Some((swap.drop, reservation.fence)), record: new })
    }

    fn history_entry(&self, held: &[SeatId], at: Timestamp) -> HistoryEntry {
        HistoryEntry {
            at,
            kind: HistoryKind::SeatsChanged,
            by: HistoryActor::Owner(self.request.user_id),
            amount: None,
            reason: None,
            details: HistoryDetails {
                previous_seats: self.inventory.labels(held),
                seats: self.inventory.labels(&self.request.seat_ids),
                ..HistoryDetails::default()
            },
        }
    }

    fn write(
        &self,
        tx: &mut Tx<'_>,
        record: &ReservationRecord,
        items: &[ReservationItem],
        swap: &SeatSwap,
        fence: i64,
    ) -> Result<(), ReserveError> {
        let reservation = &record.reservation;
        for &seat_id in &swap.drop {
            if !store::seat_drop(tx, reservation, seat_id, fence)? {
                return Err(ReservationRejection::SeatLost.into());
            }
        }
        let last = items.iter().map(|item| item.position).max().unwrap_or(0);
        for (position, &seat_id) in (last + 1..).zip(&swap.take) {
            let unit_price = self.inventory.price(seat_id).expect("the seats were checked before");
            if !store::seat_hold(tx, reservation, seat_id, fence, false)? {
                return Err(HoldRejection::SeatsTaken { seat_ids: vec![seat_id] }.into());
            }
            let subject = ItemSubject::Seat(seat_id);
            let item = ReservationItem { position, subject, quantity: 1, unit_price, name: None };
            store::item_insert(tx, reservation, &item, true)?;
        }
        Ok(())
    }
}
