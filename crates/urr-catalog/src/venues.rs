//! Venues and their halls: adding, changing and removing them.

pub mod http;
pub mod model;
pub mod store;

use urr_service::Page;
use urr_storage::{DbResult, StorageError, Tx};

use crate::events::rename::TooManyEvents;
use crate::text::InvalidText;
use crate::{
    AdminActor, CatalogService, Hall, HallChange, HallId, HallSummary, InvalidTemplate, NewHall,
    NewVenue, SeatTemplate, Venue, VenueChange, VenueId,
};

#[derive(Debug, thiserror::Error)]
pub enum VenueError {
    #[error("There is no venue with this id.")]
    VenueNotFound,
    #[error("There is no hall with this id.")]
    HallNotFound,
    #[error("Another one has this name already.")]
    NameTaken,
    #[error("The venue has halls or events and cannot be deleted.")]
    VenueInUse,
    #[error("Events use this hall. Its seats cannot change, and it cannot be deleted.")]
    HallInUse,
    #[error("Someone else has changed the hall. Its revision is {revision} now.")]
    Stale { revision: i64 },
    #[error(transparent)]
    Text(#[from] InvalidText),
    #[error(transparent)]
    Template(#[from] InvalidTemplate),
    #[error(transparent)]
    TooManyEvents(#[from] TooManyEvents),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl CatalogService {
    pub async fn create_venue(
        &self,
        new: NewVenue,
        actor: AdminActor,
    ) -> Result<Venue, VenueError> {
        let NewVenue { name, address, description } = new;
        let (id, created_at) = (VenueId(self.0.ids.next_id()), self.0.clock.now());
        let venue = Venue { id, name, address, description, created_at }.checked()?;
        self.admin_change(actor, ("VENUE_CREATED", "venue", id), move |tx| {
            match store::venue_insert(tx, &venue)? {
                true => Ok((venue.clone(), Some(venue.name.clone()))),
                false => Err(VenueError::NameTaken),
            }
        })
        .await
    }

    /// Changes a venue. Its events are then found by the new name and address.
    pub async fn edit_venue(
        &self,
        id: VenueId,
        change: VenueChange,
        actor: AdminActor,
    ) -> Result<Venue, VenueError> {
        let (name_change, now) = (self.name_change(&actor), self.0.clock.now());
        self.admin_change(actor, ("VENUE_UPDATED", "venue", id), move |tx| {
            let old = store::venue_find(tx, id)?.ok_or(VenueError::VenueNotFound)?;
            let VenueChange { name, address, description } = change.clone();
            let venue = Venue {
                name: name.unwrap_or_else(|| old.name.clone()),
                address: address.unwrap_or_else(|| old.address.clone()),
                description: description.unwrap_or_else(|| old.description.clone()),
                ..old
            };
            let venue = venue.checked()?;
            let is_renamed = venue.name != old.name;
            if is_renamed && store::venue_find_by_name(tx, &venue.name)?.is_some() {
                return Err(VenueError::NameTaken);
            }
            store::venue_update(tx, &venue, now)?;
            if is_renamed || venue.address != old.address {
                name_change.announce::<VenueError>(tx, None, Some(id))?;
            }
            Ok((venue.clone(), Some(venue.name)))
        })
        .await
    }

    /// Deletes a venue that has neither halls nor events.
    pub async fn delete_venue(&self, id: VenueId, actor: AdminActor) -> Result<(), VenueError> {
        self.admin_change(actor, ("VENUE_DELETED", "venue", id), move |tx| {
            let venue = store::venue_find(tx, id)?.ok_or(VenueError::VenueNotFound)?;
            if store::venue_is_used(tx, id)? {
                return Err(VenueError::VenueInUse);
            }
            store::venue_delete(tx, id)?;
            Ok(((), Some(venue.name)))
        })
        .await
    }

    pub async fn list_venues(&self, page: Page) -> DbResult<(Vec<Venue>, u64)> {
        self.0.db.read(move |tx| Ok((store::venue_list(tx, page)?, store::venue_count(tx)?))).await
    }

    /// A venue with its halls.
    pub async fn get_venue(&self, id: VenueId) -> Result<(Venue, Vec<HallSummary>), VenueError> {
        let find = move |tx: &mut Tx<'_>| {
            let venue = store::venue_find(tx, id)?.ok_or(VenueError::VenueNotFound)?;
            Ok((venue, store::hall_list_of_venue(tx, id)?))
        };
        self.0.db.read(find).await
    }

    pub async fn create_hall(
        &self,
        venue_id: VenueId,
        new: NewHall,
        actor: AdminActor,
    ) -> Result<Hall, VenueError> {
        let NewHall { name, description, grid, layout } = new;
        let template = SeatTemplate::parse(grid, layout)?.ok_or(InvalidTemplate::Missing)?;
        let (id, created_at) = (HallId(self.0.ids.next_id()), self.0.clock.now());
        let (seats_total, grades) = (0, Vec::new());
        let summary =
            HallSummary { id, venue_id, name, description, seats_total, grades, created_at };
        let hall = Hall { summary, template, revision: 1, events_total: 0 }.checked()?;
        self.admin_change(actor, ("HALL_CREATED", "hall", id), move |tx| {
            store::venue_find(tx, venue_id)?.ok_or(VenueError::VenueNotFound)?;
            match store::hall_insert(tx, &hall)? {
                true => Ok((hall.clone(), Some(hall.summary.name.clone()))),
                false => Err(VenueError::NameTaken),
            }
        })
        .await
    }

    /// Changes a hall. Its seats cannot change once an event uses them.
    pub async fn edit_hall(
        &self,
        id: HallId,
        change: HallChange,
        actor: AdminActor,
    ) -> Result<Hall, VenueError> {
        let HallChange { name, description, grid, layout, revision } = change;
        let (template, now) = (SeatTemplate::parse(grid, layout)?, self.0.clock.now());
        self.admin_change(actor, ("HALL_UPDATED", "hall", id), move |tx| {
            let mut hall = store::hall_find(tx, id)?.ok_or(VenueError::HallNotFound)?;
            if revision.is_some_and(|edited| edited != hall.revision) {
                return Err(VenueError::Stale { revision: hall.revision });
            }
            hall.revision += 1;
            if let Some(template) = &template {
                if template.layout != hall.template.layout && hall.events_total > 0 {
                    return Err(VenueError::HallInUse);
                }
                hall.template = template.clone();
            }
            hall.summary.name = name.clone().unwrap_or(hall.summary.name);
            hall.summary.description = description.clone().unwrap_or(hall.summary.description);
            let hall = hall.checked()?;
            if store::hall_name_is_taken(tx, &hall.summary)? {
                return Err(VenueError::NameTaken);
            }
            store::hall_update(tx, &hall, now)?;
            Ok((hall.clone(), Some(hall.summary.name)))
        })
        .await
    }

    /// Deletes a hall that no event uses.
    pub async fn delete_hall(&self, id: HallId, actor: AdminActor) -> Result<(), VenueError> {
        self.admin_change(actor, ("HALL_DELETED", "hall", id), move |tx| {
            let hall = store::hall_find(tx, id)?.ok_or(VenueError::HallNotFound)?;
            if store::hall_is_used(tx, id)? {
                return Err(VenueError::HallInUse);
            }
            store::hall_delete(tx, id)?;
            Ok(((), Some(hall.summary.name)))
        })
        .await
    }

    pub async fn get_hall(&self, id: HallId) -> Result<Hall, VenueError> {
        let find = move |tx: &mut Tx<'_>| store::hall_find(tx, id)?.ok_or(VenueError::HallNotFound);
        self.0.db.read(find).await
    }

    pub async fn list_halls(&self, page: Page) -> DbResult<(Vec<Hall>, u64)> {
        self.0.db.read(move |tx| Ok((store::hall_list(tx, page)?, store::hall_count(tx)?))).await
    }
}
