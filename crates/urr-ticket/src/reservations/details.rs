//! Reads of reservations: one's own, and all for administrators.

use std::collections::HashMap;
use std::sync::Arc;

use urr_kernel::Uuid;
use urr_service::Page;
use urr_storage::{BatchKey, DbResult, SetRead, StorageError, Tx};

use crate::reservations::cancel::check_owner;
use crate::reservations::rules::{ReservationRecord, ReservationRejection};
pub use crate::reservations::store::list::ReservationFilter;
use crate::reservations::store::list::{self as listing, StoredTicket};
use crate::reservations::store::{items, records_find_with_flow};
use crate::reservations::transition::TransitionError;
use crate::{
    EventChain, Inventory, ItemSubject, ReservationId, ReservationItem, ReservationStatus,
    TicketService,
};

/// A reservation with its items, tickets and inventory.
#[derive(Clone, Debug)]
pub struct ReservationDetails {
    pub record: ReservationRecord,
    pub items: Vec<ReservationItem>,
    pub tickets: Vec<StoredTicket>,
    /// The inventory of the event, for labels of seats. None: it is not complete.
    pub inventory: Option<Arc<Inventory>>,
}

/// Payment providers reject longer names.
const ORDER_NAME_CHARS_MAX: usize = 100;

impl ReservationDetails {
    /// The name of its order: the event, and how many of what.
    pub fn order_name(&self) -> String {
        let mut counts: Vec<(&str, u32)> = Vec::new();
        for item in &self.items {
            let name = self.item_name(item);
            match counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += item.quantity,
                None => counts.push((name, item.quantity)),
            }
        }
        let counts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {count}매").trim().to_owned())
            .collect();
        shorten_order_name(format!("{} · {}", self.record.event_title, counts.join(", ")))
    }

    /// Labels of seats, and standing tickets with their number.
    pub fn places(&self) -> Vec<String> {
        let place = |item: &ReservationItem| match (item.subject, &self.inventory) {
            (ItemSubject::Seat(seat_id), Some(inventory)) => {
                inventory.layout.place(seat_id).map(|place| place.label())
            }
            (ItemSubject::Seat(_), None) => None,
            (ItemSubject::TicketType(_), _) => {
                let name = item.name.as_deref().unwrap_or_default();
                Some(format!("{name} × {}", item.quantity))
            }
        };
        self.items.iter().filter_map(place).collect()
    }

    /// The seat with its grade, or the name of the ticket type.
    pub fn ticket_place(&self, ticket: &StoredTicket) -> String {
        let seat = self.inventory.as_ref().zip(ticket.seat_id);
        match seat.and_then(|(inventory, seat_id)| inventory.layout.place(seat_id)) {
            Some(place) => format!("{} · {}", place.section.grade, place.label()),
            None => ticket.ticket_type_name.clone().unwrap_or_default(),
        }
    }

    /// The ticket type, or the grade of the seat.
    fn item_name<'a>(&'a self, item: &'a ReservationItem) -> &'a str {
        match (item.subject, &self.inventory) {
            (ItemSubject::Seat(seat_id), Some(inventory)) => {
                inventory.layout.place(seat_id).map_or("", |place| &place.section.grade)
            }
            _ => item.name.as_deref().unwrap_or_default(),
        }
    }
}

pub(crate) fn shorten_order_name(name: String) -> String {
    if name.chars().count() <= ORDER_NAME_CHARS_MAX {
        return name;
    }
    name.chars().take(ORDER_NAME_CHARS_MAX - 1).chain(['…']).collect()
}

/// A reservation as it is stored, with all that belongs to it.
#[derive(Clone, Debug)]
pub(crate) struct StoredReservation {
    pub record: ReservationRecord,
    pub chain: EventChain,
    pub items: Vec<ReservationItem>,
    pub tickets: Vec<StoredTicket>,
}

struct ReservationToRead(ReservationId);

impl SetRead for ReservationToRead {
    type Answer = Option<StoredReservation>;
    type Error = StorageError;

    fn read(tx: &mut Tx<'_>, set: &[&Self]) -> DbResult<Vec<DbResult<Option<StoredReservation>>>> {
        let ids: Vec<Uuid> = set.iter().map(|one| one.0.0).collect();
        let records = records_find_with_flow(tx, &ids)?;
        let items = items::item_list_of(tx, &ids)?;
        // A hold has no tickets yet.
        let has_tickets =
            |record: &ReservationRecord| record.reservation.status != ReservationStatus::Pending;
        let sold: Vec<Uuid> = records
            .iter()
            .filter(|(_, (record, _))| has_tickets(record))
            .map(|(id, _)| *id)
            .collect();
        let tickets = listing::ticket_list_of(tx, &sold)?;
        let find = |id: &Uuid| {
            let (record, chain) = records.get(id).cloned()?;
            let items = items.get(id).cloned().unwrap_or_default();
            let tickets = tickets.get(id).cloned().unwrap_or_default();
            Some(StoredReservation { record, chain, items, tickets })
        };
        Ok(ids.iter().map(|id| Ok(find(id))).collect())
    }
}

impl TicketService {
    /// One's own reservation; another user's is not found.
    pub async fn my_reservation(
        &self,
        id: ReservationId,
        user_id: Uuid,
    ) -> Result<ReservationDetails, TransitionError> {
        let details = self.reservation_details(id).await?;
        check_owner(&details.record, user_id)?;
        Ok(details)
    }

    /// Anybody's reservation.
    pub async fn reservation_details(
        &self,
        id: ReservationId,
    ) -> Result<ReservationDetails, TransitionError> {
        let found = self.read_reservation(id).await?;
        let StoredReservation { record, items, tickets, .. } = found;
        let inventory = self.inventories.get(record.reservation.event_id).await?;
        Ok(ReservationDetails { record, items, tickets, inventory })
    }

    /// A reservation as it is stored, read together with others.
    pub(crate) async fn read_reservation(
        &self,
        id: ReservationId,
    ) -> Result<StoredReservation, TransitionError> {
        let found: DbResult<Option<StoredReservation>> =
            self.db.read_in_set(BatchKey::named("reservations"), ReservationToRead(id)).await;
        Ok(found?.ok_or(ReservationRejection::NotFound)?)
    }

    /// One page of reservations, the newest first, and how many there are.
    pub async fn list_reservations(
        &self,
        filter: ReservationFilter,
        page: Page,
    ) -> DbResult<(Vec<ReservationDetails>, u64)> {
        let read = move |tx: &mut Tx<'_>| {
            let records = listing::record_page(tx, &filter, page)?;
            let ids: Vec<Uuid> = records.iter().map(|record| record.reservation.id.0).collect();
            let items = items::item_list_of(tx, &ids)?;
            Ok::<_, StorageError>((records, items, listing::record_count(tx, &filter)?))
        };
        let (records, items, total) = self.db.read(read).await?;
        Ok((self.with_inventories(records, items).await?, total))
    }

    /// Reservations with their items, without their tickets.
    pub(crate) async fn with_inventories(
        &self,
        records: Vec<ReservationRecord>,
        mut items: HashMap<Uuid, Vec<ReservationItem>>,
    ) -> DbResult<Vec<ReservationDetails>> {
        let mut details = Vec::with_capacity(records.len());
        for record in records {
            let items = items.remove(&record.reservation.id.0).unwrap_or_default();
            let inventory = self.inventories.get(record.reservation.event_id).await?;
            details.push(ReservationDetails { record, items, tickets: Vec::new(), inventory });
        }
        Ok(details)
    }
}
