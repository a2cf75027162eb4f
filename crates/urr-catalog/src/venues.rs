//! Venues and their halls: adding, changing and removing them.

pub mod hall_http;
pub mod http;
pub mod model;
pub mod store;

use urr_service::Page;
use urr_service::admin_log::{self, AdminAction};
use urr_storage::StorageError;

use crate::events::rename::TooManyEvents;
use crate::{AdminActor, CatalogService, Hall, HallId, HallSummary, SeatTemplate, Venue, VenueId};

#[derive(Clone, Debug)]
pub struct NewVenue {
    pub name: String,
    pub address: String,
    pub description: String,
}

#[derive(Clone, Debug, Default)]
pub struct VenueChange {
    pub name: Option<String>,
    pub address: Option<String>,
    pub description: Option<String>,
}

#[derive(Clone, Debug)]
pub struct NewHall {
    pub name: String,
    pub description: String,
    pub template: SeatTemplate,
}

#[derive(Clone, Debug, Default)]
pub struct HallChange {
    pub name: Option<String>,
    pub description: Option<String>,
    /// Allowed only while no event uses the hall.
    pub template: Option<SeatTemplate>,
}

#[derive(Debug, thiserror::Error)]
pub enum VenueError {
    #[error("there is no such venue")]
    VenueNotFound,
    #[error("there is no such hall")]
    HallNotFound,
    #[error("the name is taken")]
    NameTaken,
    #[error("it has halls or events")]
    VenueInUse,
    #[error("an event uses it")]
    HallInUse,
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
        let (id, created_at) = (VenueId(self.ids.next_id()), self.clock.now());
        let logged = self.admin_action(&actor, "VENUE_CREATED", "venue", id, &name);
        let venue = Venue { id, name, address, description, created_at };
        self.change(move |tx| {
            if !store::venue_insert(tx, &venue)? {
                return Err(VenueError::NameTaken);
            }
            admin_log::insert(tx, &logged)?;
            Ok(venue.clone())
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
        let logged = self.admin_action(&actor, "VENUE_UPDATED", "venue", id, "");
        let (name_change, now) = (self.name_change(&actor), self.clock.now());
        self.change(move |tx| {
            let old = store::venue_find(tx, id)?.ok_or(VenueError::VenueNotFound)?;
            let change = change.clone();
            let venue = Venue {
                name: change.name.unwrap_or_else(|| old.name.clone()),
                address: change.address.unwrap_or_else(|| old.address.clone()),
                description: change.description.unwrap_or_else(|| old.description.clone()),
                ..old
            };
            let is_renamed = venue.name != old.name;
            if is_renamed && store::venue_find_by_name(tx, &venue.name)?.is_some() {
                return Err(VenueError::NameTaken);
            }
            store::venue_update(tx, &venue, now)?;
            if is_renamed || venue.address != old.address {
                name_change.announce::<VenueError>(tx, None, Some(id))?;
            }
            let summary = venue.name.clone();
            admin_log::insert(tx, &AdminAction { summary, ..logged.clone() })?;
            Ok(venue)
        })
        .await
    }

    /// Deletes a venue that has neither halls nor events.
    pub async fn delete_venue(&self, id: VenueId, actor: AdminActor) -> Result<(), VenueError> {
        let logged = self.admin_action(&actor, "VENUE_DELETED", "venue", id, "");
        self.change(move |tx| {
            let venue = store::venue_find(tx, id)?.ok_or(VenueError::VenueNotFound)?;
            if store::venue_is_used(tx, id)? {
                return Err(VenueError::VenueInUse);
            }
            store::venue_delete(tx, id)?;
            let summary = venue.name;
            admin_log::insert(tx, &AdminAction { summary, ..logged.clone() })?;
            Ok(())
        })
        .await
    }

    pub async fn list_venues(&self, page: Page) -> Result<(Vec<Venue>, u64), StorageError> {
        self.db.read(move |tx| Ok((store::venue_list(tx, page)?, store::venue_count(tx)?))).await
    }

    /// A venue with its halls.
    pub async fn get_venue(
        &self,
        id: VenueId,
    ) -> Result<Option<(Venue, Vec<HallSummary>)>, StorageError> {
        self.db
            .read(move |tx| {
                let Some(venue) = store::venue_find(tx, id)? else { return Ok(None) };
                Ok(Some((venue, store::hall_list_of_venue(tx, id)?)))
            })
            .await
    }

    pub async fn create_hall(
        &self,
        venue_id: VenueId,
        new: NewHall,
        actor: AdminActor,
    ) -> Result<Hall, VenueError> {
        let NewHall { name, description, template } = new;
        let (id, created_at) = (HallId(self.ids.next_id()), self.clock.now());
        let logged = self.admin_action(&actor, "HALL_CREATED", "hall", id, &name);
        let hall = Hall { id, venue_id, name, description, template, created_at };
        self.change(move |tx| {
            store::venue_find(tx, venue_id)?.ok_or(VenueError::VenueNotFound)?;
            if !store::hall_insert(tx, &hall)? {
                return Err(VenueError::NameTaken);
            }
            admin_log::insert(tx, &logged)?;
            Ok(hall.clone())
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
        let logged = self.admin_action(&actor, "HALL_UPDATED", "hall", id, "");
        let now = self.clock.now();
        self.change(move |tx| {
            let old = store::hall_find(tx, id)?.ok_or(VenueError::HallNotFound)?;
            let change = change.clone();
            let hall = Hall {
                name: change.name.unwrap_or_else(|| old.name.clone()),
                description: change.description.unwrap_or_else(|| old.description.clone()),
                template: change.template.unwrap_or_else(|| old.template.clone()),
                ..old
            };
            if hall.template.layout() != old.template.layout() && store::hall_is_used(tx, id)? {
                return Err(VenueError::HallInUse);
            }
            if store::hall_name_is_taken(tx, &hall)? {
                return Err(VenueError::NameTaken);
            }
            store::hall_update(tx, &hall, now)?;
            let summary = hall.name.clone();
            admin_log::insert(tx, &AdminAction { summary, ..logged.clone() })?;
            Ok(hall)
        })
        .await
    }

    /// Deletes a hall that no event uses.
    pub async fn delete_hall(&self, id: HallId, actor: AdminActor) -> Result<(), VenueError> {
        let logged = self.admin_action(&actor, "HALL_DELETED", "hall", id, "");
        self.change(move |tx| {
            let hall = store::hall_find(tx, id)?.ok_or(VenueError::HallNotFound)?;
            if store::hall_is_used(tx, id)? {
                return Err(VenueError::HallInUse);
            }
            store::hall_delete(tx, id)?;
            let summary = hall.name;
            admin_log::insert(tx, &AdminAction { summary, ..logged.clone() })?;
            Ok(())
        })
        .await
    }

    pub async fn get_hall(&self, id: HallId) -> Result<Option<Hall>, StorageError> {
        self.db.read(move |tx| store::hall_find(tx, id)).await
    }

    pub async fn list_halls(&self, page: Page) -> Result<(Vec<Hall>, u64), StorageError> {
        self.db.read(move |tx| Ok((store::hall_list(tx, page)?, store::hall_count(tx)?))).await
    }
}
