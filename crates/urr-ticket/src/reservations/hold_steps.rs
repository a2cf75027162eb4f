//! Pinning and confirming holds: several at once, each with its own outcome, under the lock of
//! their sale.

use std::collections::{BTreeMap, HashMap};

use urr_contracts::events::reservation::ReservationConfirmed;
use urr_kernel::{CancelPolicy, IdSource, Timestamp, Uuid, Won};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, SetWrite, Tx};

use crate::display_number::display_number;
use crate::inventory::store as sales;
use crate::memberships::points::PointAction;
use crate::memberships::points::store::{PointAward, points_award_ticket};
use crate::reservations::cancel::check_owner;
use crate::reservations::model::seat_ids;
use crate::reservations::payment::CompletedPayment;
use crate::reservations::refund::rules::free_until;
use crate::reservations::refund::{RefundTerms, owners_fee};
use crate::reservations::reschedule::announce_if_moved;
use crate::reservations::rules::{
    PaymentClaim, ReservationRecord, ReservationRejection, Transition, decide_confirm, decide_pin,
};
use crate::reservations::store as transitions;
use crate::reservations::store::confirm as confirmation;
use crate::reservations::store::confirm::{HeldItem, NewTicket, PinnedHold, SoldHold, TicketOf};
use crate::reservations::transition::{PreparedEvents, TransitionError};
use crate::transfers::store::was_sold_by;
use crate::{Reservation, ReservationId, ReservationItem};

/// A step of a hold towards its sale.
pub(crate) enum HoldStep<'a> {
    /// A payment is about to charge.
    Pin { id: ReservationId, user_id: Uuid, claim: PaymentClaim, attempt: i64, now: Timestamp },
    /// A payment was made.
    Confirm(Box<HoldConfirmation<'a>>),
}

/// A confirmation with the ids of its tickets and its event.
pub(crate) struct HoldConfirmation<'a> {
    pub id: ReservationId,
    pub payment: &'a CompletedPayment,
    /// The id of the ticket with this number.
    pub ticket_id: &'a dyn Fn(usize) -> Uuid,
    pub stamp: EventMetadata,
    /// If the event was moved since the hold was made.
    pub moved_stamp: EventMetadata,
    pub now: Timestamp,
}

/// The buyer and the event.
pub(crate) struct Purchase {
    pub event_id: Uuid,
    pub user_id: Uuid,
}

/// A purchase if the hold was sold now; none if it was pinned, or if the step was taken before.
pub(crate) type HoldStepResult = Result<Option<Purchase>, TransitionError>;

type StepDecision = Result<Transition, ReservationRejection>;

impl HoldStep<'_> {
    fn id(&self) -> ReservationId {
        match self {
            HoldStep::Pin { id, .. } => *id,
            HoldStep::Confirm(confirming) => confirming.id,
        }
    }

    fn decide(&self, records: &HashMap<Uuid, ReservationRecord>) -> StepDecision {
        let record = records.get(&self.id().0).ok_or(ReservationRejection::NotFound)?;
        match self {
            HoldStep::Pin { user_id, claim, attempt, now, .. } => {
                check_owner(record, *user_id)?;
                decide_pin(record, claim, *attempt, *now)
            }
            HoldStep::Confirm(confirming) => {
                decide_confirm(record, &confirming.payment.claim, confirming.now)
            }
        }
    }
}

/// A hold that takes its step now. The sale is locked.
struct ReadyHold {
    record: ReservationRecord,
    /// The number of the change.
    fence: i64,
}

/// Takes a step with each of the holds, which are different ones. One that is refused writes
/// nothing.
///
/// It is decided without the lock first: what is rejected or already done takes no lock, so that it
/// does not delay a sale.
pub(crate) fn take_steps(tx: &mut Tx<'_>, steps: &[HoldStep<'_>]) -> DbResult<Vec<HoldStepResult>> {
    let ids: Vec<Uuid> = steps.iter().map(|step| step.id().0).collect();
    let records = transitions::records_find(tx, &ids)?;
    let mut decided: Vec<StepDecision> = steps.iter().map(|step| step.decide(&records)).collect();
    let fences = lock_sales(tx, &ids, &decided, &records)?;
    let mut ready: HashMap<Uuid, ReadyHold> = HashMap::new();
    if !fences.is_empty() {
        let locked: Vec<Uuid> = fences.keys().copied().collect();
        let mut records = transitions::records_find(tx, &locked)?;
        for (step, decided) in steps.iter().zip(&mut decided) {
            let id = step.id().0;
            let Some(&fence) = fences.get(&id) else { continue };
            *decided = step.decide(&records);
            if *decided == Ok(Transition::Apply) {
                let record = records.remove(&id).expect("it was decided about");
                ready.insert(id, ReadyHold { record, fence });
            }
        }
    }
    let mut sold = write_steps(tx, steps, &ready)?;
    let result = |(step, decided): (&HoldStep<'_>, StepDecision)| match (step, decided) {
        (HoldStep::Confirm(confirming), Err(ReservationRejection::Confirmed)) => {
            // The payment has confirmed it, before its owner sold it on.
            match was_sold_by(tx, confirming.id, confirming.payment.claim.payment_id)? {
                true => Ok(Ok(None)),
                false => Ok(Err(ReservationRejection::Confirmed.into())),
            }
        }
        (_, Err(rejection)) => Ok(Err(rejection.into())),
        (_, Ok(_)) => Ok(sold.remove(&step.id().0).unwrap_or(Ok(None))),
    };
    steps.iter().zip(decided).map(result).collect()
}

/// Locks the sales of the holds that can take their step, and gives each of these holds a number.
fn lock_sales(
    tx: &mut Tx<'_>,
    ids: &[Uuid],
    decided: &[StepDecision],
    records: &HashMap<Uuid, ReservationRecord>,
) -> DbResult<BTreeMap<Uuid, i64>> {
    let mut by_sale: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
    for (id, _) in ids.iter().zip(decided).filter(|(_, one)| **one == Ok(Transition::Apply)) {
        by_sale.entry(records[id].reservation.event_id).or_default().push(*id);
    }
    let mut fences = BTreeMap::new();
    for (event_id, ids) in by_sale {
        let numbers = u32::try_from(ids.len()).expect("a batch is small");
        let sale = sales::sale_lock(tx, event_id, numbers)?;
        let last = sale.expect("a reservation belongs to a sale").fence;
        fences.extend(ids.into_iter().rev().zip((0..=last).rev()));
    }
    Ok(fences)
}

/// Writes what was decided. Returns the outcomes of the confirmations.
fn write_steps(
    tx: &mut Tx<'_>,
    steps: &[HoldStep<'_>],
    ready: &HashMap<Uuid, ReadyHold>,
) -> DbResult<HashMap<Uuid, HoldStepResult>> {
    let (mut pins, mut confirming) = (Vec::new(), Vec::new());
    for step in steps {
        let Some(hold) = ready.get(&step.id().0) else { continue };
        match step {
            HoldStep::Pin { id, claim, now, .. } => {
                pins.push(PinnedHold { id: *id, payment_id: claim.payment_id, now: *now });
            }
            HoldStep::Confirm(confirmation) => confirming.push((confirmation.as_ref(), hold)),
        }
    }
    confirmation::holds_pin(tx, &pins)?;
    match confirming.is_empty() {
        true => Ok(HashMap::new()),
        false => confirm_all(tx, &confirming),
    }
}

type Confirming<'a> = (&'a HoldConfirmation<'a>, &'a ReadyHold);

/// Sells pinned holds, issues the tickets, announces it.
fn confirm_all(
    tx: &mut Tx<'_>,
    confirming: &[Confirming<'_>],
) -> DbResult<HashMap<Uuid, HoldStepResult>> {
    let ids: Vec<Uuid> = confirming.iter().map(|(one, _)| one.id.0).collect();
    let mut held = confirmation::held_items_of(tx, &ids)?;
    let mut outcomes: HashMap<Uuid, HoldStepResult> = HashMap::new();
    let mut sales: Vec<(Confirming<'_>, Vec<ReservationItem>)> = Vec::new();
    for (one, hold) in confirming {
        let items = held.remove(&one.id.0).unwrap_or_default();
        // Only a bug can cause that a seat is not its own. Then nothing may be sold.
        if items.iter().any(HeldItem::is_lost) {
            outcomes.insert(one.id.0, Err(ReservationRejection::SeatLost.into()));
            continue;
        }
        let Reservation { event_id, user_id, .. } = hold.record.reservation;
        outcomes.insert(one.id.0, Ok(Some(Purchase { event_id, user_id })));
        sales.push(((one, hold), items.into_iter().map(|held| held.item).collect()));
    }
    sell_all(tx, &sales)?;
    award_all(tx, &sales)?;
    let fact = |((one, hold), items): &(Confirming<'_>, Vec<ReservationItem>)| {
        let confirmed = ReservationConfirmed {
            reservation: hold.record.reservation.snapshot(seat_ids(items), one.stamp.time),
            payment_id: one.payment.claim.payment_id,
            payment_method: Some(one.payment.method.clone()),
        };
        (one.stamp, confirmed)
    };
    outbox::append_all(tx, &sales.iter().map(fact).collect::<Vec<_>>())?;
    for ((one, hold), _) in &sales {
        announce_if_moved(tx, &hold.record, &one.moved_stamp)?;
    }
    Ok(outcomes)
}

fn sell_all(tx: &mut Tx<'_>, sales: &[(Confirming<'_>, Vec<ReservationItem>)]) -> DbResult<()> {
    let sold = |((one, hold), items): &(Confirming<'_>, Vec<ReservationItem>)| SoldHold {
        id: one.id,
        sale_id: hold.record.reservation.event_id,
        payment_id: one.payment.claim.payment_id,
        payment_method: one.payment.method.clone(),
        seats: seat_ids(items),
        fence: hold.fence,
        event_id: one.stamp.event_id,
        now: one.now,
    };
    confirmation::holds_confirm(tx, &sales.iter().map(sold).collect::<Vec<_>>())?;
    let mut tickets = Vec::new();
    for ((one, hold), items) in sales {
        let reservation = &hold.record.reservation;
        let new = tickets_of(items, one.ticket_id);
        assert_eq!(
            new.len(),
            reservation.quantity as usize,
            "the quantity is the sum of the items"
        );
        tickets.extend(new.into_iter().map(|new| TicketOf { reservation, new, now: one.now }));
    }
    confirmation::tickets_insert(tx, &tickets)
}

/// The points of purchases. They count when a purchase cannot be cancelled for free any more; what
/// costs nothing gives none.
fn award_all(tx: &mut Tx<'_>, sales: &[(Confirming<'_>, Vec<ReservationItem>)]) -> DbResult<()> {
    let has_price = |items: &[ReservationItem]| items.iter().any(|it| it.unit_price != Won::ZERO);
    let awarded = sales.iter().filter_map(|((one, hold), items)| {
        let artist_id = hold.record.artist_id.filter(|_| has_price(items))?;
        Some((one, &hold.record, items, artist_id))
    });
    let awarded: Vec<_> = awarded.collect();
    let ids: Vec<Uuid> = awarded.iter().map(|(one, ..)| one.id.0).collect();
    let mut policies = transitions::cancel_policies_find(tx, &ids)?;
    for (one, record, items, artist_id) in awarded {
        let policy: CancelPolicy =
            policies.remove(&one.id.0).expect("every reservation has a policy");
        let terms = RefundTerms { policy, items: items.clone() };
        let settles_at =
            free_until(&terms.policy, &terms.booking(record, owners_fee(record)), one.now);
        let (action, reference_id) = (PointAction::TicketPurchase, one.id.0);
        let award = PointAward { action, reference_id, now: one.now, settles_at };
        points_award_ticket(tx, record.reservation.user_id, artist_id, award)?;
    }
    Ok(())
}

/// One ticket per person: one for a seat, several for a ticket type.
pub(crate) fn tickets_of(
    items: &[ReservationItem],
    ticket_id: &dyn Fn(usize) -> Uuid,
) -> Vec<NewTicket> {
    let units = items.iter().flat_map(|item| {
        let quantity = u16::try_from(item.quantity).expect("limits are small");
        (0..quantity).map(move |unit| (item, unit))
    });
    let ticket = |(number, (item, unit)): (usize, (&ReservationItem, u16))| {
        let (id, position, seat_id) = (ticket_id(number), item.position, item.seat_id());
        NewTicket { id, number: display_number('T', id), position, unit, seat_id }
    };
    units.enumerate().map(ticket).collect()
}

/// A step that the payment service asks for.
pub(crate) enum HoldStepCall {
    Pin {
        id: ReservationId,
        user_id: Uuid,
        claim: PaymentClaim,
        attempt: i64,
        now: Timestamp,
    },
    Confirm {
        id: ReservationId,
        payment: CompletedPayment,
        events: PreparedEvents,
        /// How many ids are needed is seen in the transaction. If it runs twice, the first ones are
        /// not used.
        ids: IdSource,
        now: Timestamp,
    },
}

impl SetWrite for HoldStepCall {
    type Answer = Option<Purchase>;
    type Error = TransitionError;

    fn subject(&self) -> Option<String> {
        let subject = match self {
            HoldStepCall::Pin { id, .. } | HoldStepCall::Confirm { id, .. } => id.to_string(),
        };
        Some(subject)
    }

    fn write(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<HoldStepResult>> {
        let ids = set.iter().find_map(|call| match call {
            HoldStepCall::Confirm { ids, .. } => Some(ids),
            HoldStepCall::Pin { .. } => None,
        });
        let ticket_id = |_: usize| ids.expect("only a confirmation makes tickets").next_id();
        let steps = set.iter().map(|call| match *call {
            &HoldStepCall::Pin { id, user_id, claim, attempt, now } => {
                HoldStep::Pin { id, user_id, claim, attempt, now }
            }
            HoldStepCall::Confirm { id, payment, events, now, .. } => {
                HoldStep::Confirm(Box::new(HoldConfirmation {
                    id: *id,
                    payment,
                    ticket_id: &ticket_id,
                    stamp: events.stamp(0),
                    moved_stamp: events.stamp(1),
                    now: *now,
                }))
            }
        });
        let steps: Vec<HoldStep<'_>> = steps.collect();
        take_steps(tx, &steps)
    }
}
