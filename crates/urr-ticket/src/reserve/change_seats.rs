//! Changes the seats of a hold: all of them in one step, or nothing.
//!
//! The expiry stays the same, so that seats cannot be kept by changing them. The hold gets a new
//! fencing token, and the old one is stale from then on.

pub(crate) mod rules;
pub(crate) mod store;

use std::sync::Arc;

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_layout::SeatId;
use urr_storage::{StorageError, Tx, outbox};

use crate::inventory::store as sales;
use crate::reservations::cancel::check_owner;
use crate::reservations::payment::reservation_snapshot;
use crate::reservations::rules::{ReservationRecord, ReservationRejection, decide_change};
use crate::reservations::store as transitions;
use crate::reservations::store::items;
use crate::reservations::store::items::StoredItem;
use crate::reservations::transition::{PreparedEvents, TransitionError};
use crate::reserve::change_seats::rules::{SeatSwap, SeatSwapRequest, decide_swap};
use crate::reserve::change_seats::store as changes;
use crate::reserve::rules::HoldRejection;
use crate::{Inventory, InventoryKind, ReservationId, TicketService};
use urr_contracts::events::reservation::ReservationChanged;

/// A request for other seats: at least one, each once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeSeats {
    pub user_id: Uuid,
    pub seat_ids: Vec<SeatId>,
    /// If it is stale, nothing is changed.
    pub fencing_token: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    NotChangeable(#[from] ReservationRejection),
    #[error("standing tickets have no seats")]
    NotSeated,
    #[error("there are no such seats")]
    SeatsNotFound(Vec<SeatId>),
    #[error(transparent)]
    Rejected(#[from] HoldRejection),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<TransitionError> for ChangeError {
    fn from(error: TransitionError) -> ChangeError {
        match error {
            TransitionError::Rejected(refused) => ChangeError::NotChangeable(refused),
            TransitionError::Storage(error) => ChangeError::Storage(error),
        }
    }
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
    ) -> Result<ReservationRecord, ChangeError> {
        let now = self.clock.now();
        let event_id = self.find_reservation(id).await?.reservation.event_id;
        let inventory =
            self.inventories.get(event_id).await?.ok_or(ReservationRejection::NotFound)?;
        let unknown = |seat_id: &&SeatId| inventory.price(**seat_id).is_none();
        let unknown: Vec<SeatId> = request.seat_ids.iter().filter(unknown).copied().collect();
        let prepared = self.prepare_events(1, context);
        let wanted = request.seat_ids.clone();
        let user_id = request.user_id;
        let changed = self.db.write(move |tx| {
            let change = SeatChangeCommand { id, request: &request, inventory: &inventory, now };
            check_hold(tx, &change)?;
            if inventory.kind == InventoryKind::Standing {
                return Err(ChangeError::NotSeated);
            }
            match unknown.is_empty() {
                true => change.run(tx, &prepared),
                false => Err(ChangeError::SeatsNotFound(unknown.clone())),
            }
        });
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

struct SeatChangeCommand<'a> {
    id: ReservationId,
    request: &'a ChangeSeats,
    inventory: &'a Arc<Inventory>,
    now: Timestamp,
}

/// The hold, if its seats may be changed at all.
fn check_hold(
    tx: &mut Tx<'_>,
    change: &SeatChangeCommand<'_>,
) -> Result<ReservationRecord, ChangeError> {
    let record = transitions::record_find(tx, change.id)?.ok_or(ReservationRejection::NotFound)?;
    check_owner(&record, change.request.user_id)?;
    decide_change(&record, change.request.fencing_token, change.now)?;
    Ok(record)
}

impl SeatChangeCommand<'_> {
    /// Locks, decides, writes, announces. Nothing is written before all is decided.
    fn run(&self, tx: &mut Tx<'_>, prepared: &PreparedEvents) -> Result<ChangedHold, ChangeError> {
        let event_id = self.inventory.event_id;
        let sale = sales::sale_lock_only(tx, event_id)?.ok_or(ReservationRejection::NotFound)?;
        let record = check_hold(tx, self)?;
        let items = items::item_list(tx, self.id)?;
        let held = items::seat_ids(&items);
        let wanted = &self.request.seat_ids;
        let taken = changes::seat_list_taken(tx, event_id, wanted)?;
        let other_quantity = changes::live_quantity_elsewhere(tx, &record.reservation)?;
        let request = SeatSwapRequest { held: &held, wanted, taken: &taken, other_quantity };
        let Some(swap) = decide_swap(&request, &sale.policy, self.now)? else {
            return Ok(ChangedHold { record, dropped: None });
        };
        let fence = sale.fence + 1;
        sales::sale_number(tx, event_id, fence)?;
        let stamp = prepared.stamp_in(transitions::flow_find(tx, self.id)?, 0);
        self.write(tx, &record, &items, &swap, fence)?;
        changes::hold_update(tx, &record.reservation, fence, &stamp)?;
        let new = transitions::record_find(tx, self.id)?.expect("it was changed just now");
        let new_items = items::item_list(tx, self.id)?;
        let event = ReservationChanged {
            reservation: reservation_snapshot(&new, &new_items, stamp.time),
            previous_seat_ids: held,
            previous_total_amount: record.reservation.total_amount,
        };
        outbox::append(tx, &stamp, &event)?;
        Ok(ChangedHold { record: new, dropped: Some((swap.drop, record.reservation.fence)) })
    }

    fn write(
        &self,
        tx: &mut Tx<'_>,
        record: &ReservationRecord,
        items: &[StoredItem],
        swap: &SeatSwap,
        fence: i64,
    ) -> Result<(), ChangeError> {
        let reservation = &record.reservation;
        for &seat_id in &swap.drop {
            if !changes::seat_drop(tx, reservation, seat_id, fence)? {
                return Err(ReservationRejection::SeatLost.into());
            }
        }
        let mut position = items.iter().map(|stored| stored.position).max().unwrap_or(0);
        for &seat_id in &swap.take {
            position = position.checked_add(1).expect("a hold does not live that long");
            let price = self.inventory.price(seat_id).expect("the seats were looked up before");
            if !changes::seat_take(tx, reservation, seat_id, fence)? {
                return Err(HoldRejection::SeatsTaken { seat_ids: vec![seat_id] }.into());
            }
            changes::item_insert(tx, reservation, position, seat_id, price)?;
        }
        Ok(())
    }
}
