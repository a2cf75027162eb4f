//! Complimentary tickets: a confirmed reservation that costs nothing and has no payment.
//!
//! They are for an account, or for a guest without one: then the reservation belongs to nobody who
//! can log in, and what the organiser wrote about the guest is stored with it. Limits per buyer do
//! not apply, and the tickets do not count towards them.

use std::sync::Arc;

use urr_contracts::events::reservation::ComplimentaryIssued;
use urr_contracts::internal::auth::{AccountSummary, FindUsers, ListUsers};
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::EventScope;
use urr_service::admin_log::{self, AdminAction};
use urr_service::idempotency::KeyedRequest;
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{DbResult, Tx};

use super::guests::{GuestKeys, HouseGuest};
use super::issue::{
    AgreedTerms, NewHouseReservation, items_of, new_reservation, reservation_write, take_places,
};
use super::{
    BlockRequest, HouseItem, HousePlaces, HouseSeatsError, announce, block, complete, is_repeated,
    lock_open_sale, log, store,
};
use crate::reservations::cancel::{CancelEnd, end_one};
use crate::reservations::history::HistoryActor;
use crate::reservations::model::seat_ids;
use crate::reservations::refund::rules::FeeMode;
use crate::reservations::rules::{CancelActor, ReservationRejection, decide_cancel};
use crate::reservations::store as transitions;
use crate::reservations::store::{EndedReservation, items};
use crate::reservations::transition::{PreparedEvents, TransitionCheck, check_transition};
use crate::{
    Inventory, ItemSubject, ReservationId, ReservationItem, ReservationKind, ReservationRecord,
    TicketService,
};

/// A request to give tickets away.
#[derive(Clone, Debug)]
pub struct ComplimentaryRequest {
    pub event_id: Uuid,
    /// Free or blocked.
    pub places: HousePlaces,
    pub reason: String,
    /// Whose account gets them. Without it, that of the guest's address, if there is one.
    pub user_id: Option<Uuid>,
    pub guest: HouseGuest,
    pub organiser_id: Uuid,
    pub key: Option<KeyedRequest>,
}

/// A request to revoke complimentary tickets.
#[derive(Clone, Debug)]
pub struct RevokeRequest {
    pub event_id: Uuid,
    pub reservation_id: ReservationId,
    /// Whether their places are blocked again, or free.
    pub is_blocked_again: bool,
    pub reason: String,
    pub organiser_id: Uuid,
}

impl TicketService {
    /// Gives tickets away: all of them, or nothing.
    pub async fn issue_complimentary(
        &self,
        request: ComplimentaryRequest,
        context: CallContext,
    ) -> Result<ReservationId, HouseSeatsError> {
        let event_id = request.event_id;
        let inventory = self.inventories.get(event_id).await?;
        let inventory = inventory.ok_or(HouseSeatsError::EventNotFound)?;
        let account_id = self.find_guest_account(&request, &context).await?;
        let id = ReservationId(self.ids.next_id());
        let action =
            self.admin_action(request.organiser_id, "COMPLIMENTARY_ISSUED", "reservation", id.0);
        let issue = ComplimentaryIssue {
            ids: (id, account_id.unwrap_or_else(|| self.ids.next_id())),
            // An account has its own name and address.
            guest: account_id.is_none().then(|| request.guest.clone()),
            guest_keys: self.guest_keys.clone(),
            inventory,
            request,
            usual_policy: Arc::clone(&self.settings.cancel_policy),
            events: self.prepare_events(2, context),
        };
        let ids = self.ids.clone();
        let issued = self.db.write(move |tx| {
            let request = &issue.request;
            if let Some(id) = is_repeated(tx, request.key.as_ref(), action.created_at)? {
                return Ok(ReservationId(id));
            }
            issue.write(tx, &|_| ids.next_id(), action.created_at)?;
            log(tx, &action, &request.places, &request.reason)?;
            complete(tx, request.key.as_ref(), id.0)?;
            Ok::<_, HouseSeatsError>(id)
        });
        issued.await.inspect(|_| self.maps.mark_taken(event_id))
    }

    /// The account that gets the tickets, if it is one.
    async fn find_guest_account(
        &self,
        request: &ComplimentaryRequest,
        context: &CallContext,
    ) -> Result<Option<Uuid>, HouseSeatsError> {
        let Some(peers) = self.peers.as_ref() else { return Ok(request.user_id) };
        if let Some(user_id) = request.user_id {
            let found = self.find_accounts(vec![user_id], EventScope::All, context).await;
            let found = found.ok_or(HouseSeatsError::UsersUnavailable)?;
            return match found.contains_key(&user_id) {
                true => Ok(Some(user_id)),
                false => Err(HouseSeatsError::UserNotFound),
            };
        }
        let Some(email) = request.guest.email.clone() else { return Ok(None) };
        let found = peers.auth.call(FindUsers { text: email.clone() }, context).await;
        let unavailable = |error| {
            tracing::warn!(%error, "a guest cannot be looked up");
            HouseSeatsError::UsersUnavailable
        };
        let user_ids = found.map_err(unavailable)?.user_ids;
        if user_ids.is_empty() {
            return Ok(None);
        }
        // A name can look like an address, and an address can be claimed by somebody else.
        let users = peers.auth.call(ListUsers { user_ids }, context).await.map_err(unavailable)?;
        let is_theirs =
            |user: &&AccountSummary| user.email_verified && user.email.eq_ignore_ascii_case(&email);
        Ok(users.users.iter().find(is_theirs).map(|user| user.id))
    }

    /// Takes complimentary tickets back. A repetition changes nothing.
    pub async fn revoke_complimentary(
        &self,
        request: RevokeRequest,
        context: CallContext,
    ) -> Result<ReservationRecord, HouseSeatsError> {
        let (prepared, id) = (self.prepare_events(3, context), request.reservation_id);
        let action =
            self.admin_action(request.organiser_id, "COMPLIMENTARY_REVOKED", "reservation", id.0);
        let revoked = self.db.write(move |tx| revoke(tx, &request, &action, &prepared));
        Ok(self.after_end(revoked.await?).await?)
    }
}

/// Tickets that are about to be given away.
struct ComplimentaryIssue {
    /// The reservation and its owner.
    ids: (ReservationId, Uuid),
    /// None: the owner has an account.
    guest: Option<HouseGuest>,
    guest_keys: GuestKeys,
    inventory: Arc<Inventory>,
    request: ComplimentaryRequest,
    usual_policy: Arc<urr_kernel::CancelPolicy>,
    events: PreparedEvents,
}

impl ComplimentaryIssue {
    fn write(
        &self,
        tx: &mut Tx<'_>,
        ticket_id: &dyn Fn(usize) -> Uuid,
        now: Timestamp,
    ) -> Result<(), HouseSeatsError> {
        let (request, event_id) = (&self.request, self.request.event_id);
        let sale = lock_open_sale(tx, event_id)?;
        let items = items_of(tx, &self.inventory, &request.places, true)?;
        let reservation = new_reservation(self.ids, event_id, &items, sale.fence, now);
        let blocked = store::blocked_count(tx, event_id)?;
        take_places(tx, &reservation, &request.places)?;
        let new = NewHouseReservation {
            reservation: &reservation,
            kind: ReservationKind::Complimentary,
            payment: None,
            issued_by: request.organiser_id,
            reason: Some(&request.reason),
            receipt_number: None,
        };
        let agreed = AgreedTerms { sale: &sale, usual_policy: &self.usual_policy };
        let stamp = self.events.stamp(0);
        reservation_write(tx, &new, &items, &agreed, (&stamp, ticket_id))?;
        if let Some(guest) = &self.guest {
            let sealed = self.guest_keys.seal(reservation.id, guest);
            store::guests::guest_insert(tx, reservation.id, &sealed)?;
        }
        let snapshot = reservation.snapshot(seat_ids(&items), stamp.time);
        outbox::append(tx, &stamp, &ComplimentaryIssued { reservation: snapshot })?;
        announce_if_less(tx, event_id, (blocked, sale.fence), &self.events.stamp(1))?;
        Ok(())
    }
}

/// Announces the number of blocked places if some of them were taken.
pub(crate) fn announce_if_less(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    (blocked_before, fence): (u32, i64),
    stamp: &EventMetadata,
) -> DbResult<()> {
    match store::blocked_count(tx, event_id)? == blocked_before {
        true => Ok(()),
        false => announce(tx, event_id, fence, stamp),
    }
}

fn revoke(
    tx: &mut Tx<'_>,
    request: &RevokeRequest,
    action: &AdminAction,
    prepared: &PreparedEvents,
) -> Result<(ReservationRecord, Vec<EndedReservation>), HouseSeatsError> {
    let (id, now) = (request.reservation_id, action.created_at);
    let found = check_transition(tx, id, |record| {
        if record.reservation.event_id != request.event_id {
            return Err(ReservationRejection::NotFound);
        }
        if record.kind != ReservationKind::Complimentary {
            return Err(ReservationRejection::NotComplimentary);
        }
        decide_cancel(record, CancelActor::Admin, now)
    })?;
    let (record, fence) = match found {
        TransitionCheck::AlreadyDone(record) => return Ok((record, Vec::new())),
        TransitionCheck::Apply(record, fence) => (record, fence),
    };
    if transitions::ticket_was_used(tx, id)? {
        return Err(ReservationRejection::CheckedIn.into());
    }
    let items = items::item_list(tx, id)?;
    let summary = format!("{}: {}", record.reservation.number, request.reason);
    admin_log::insert(tx, &AdminAction { summary, ..action.clone() })?;
    let by = HistoryActor::Admin(request.organiser_id);
    let end = CancelEnd { fence, reason: &request.reason, fee: FeeMode::Waived, by };
    let ended = end_one(tx, &record, end, prepared, now)?;
    if request.is_blocked_again {
        let again = BlockRequest {
            event_id: request.event_id,
            places: places_of(&items),
            reason: request.reason.clone(),
            organiser_id: request.organiser_id,
            key: None,
        };
        block(tx, &again, fence, now)?;
        // The second event would be about a listing, which there is none of.
        announce(tx, request.event_id, fence, &prepared.stamp(2))?;
    }
    Ok(ended)
}

fn places_of(items: &[ReservationItem]) -> HousePlaces {
    let mut places = HousePlaces { seat_ids: seat_ids(items), ..HousePlaces::default() };
    for item in items {
        if let ItemSubject::TicketType(type_id) = item.subject {
            let item = HouseItem { quantity: item.quantity, from_blocked: false };
            places.items.insert(type_id, item);
        }
    }
    places
}
