//! Artists: what is known of one, and adding and changing them.

pub mod http;
pub mod store;

use std::fmt;

use urr_contracts::events::catalog::{ArtistCreated, ArtistUpdated};
use urr_kernel::{Timestamp, UnfitText, Won, define_id, one_line};
use urr_service::Page;
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{StorageError, outbox, storable_id};

use crate::events::rename::TooManyEvents;
use crate::events::rules::EventRecord;
use crate::events::store::event_list_of_artist;
use crate::revision::revision_load;
use crate::{AdminActor, CatalogService};

define_id!(
    /// Which artist.
    ArtistId
);
storable_id!(ArtistId);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artist {
    pub id: ArtistId,
    pub name: ArtistName,
    pub description: String,
    /// Empty if there is none.
    pub image_url: String,
    /// The price of a year's fan membership.
    pub membership_price: Won,
    pub created_at: Timestamp,
}

impl Artist {
    fn created(&self) -> ArtistCreated {
        ArtistCreated {
            artist_id: self.id.0,
            name: self.name.to_string(),
            membership_price: self.membership_price,
        }
    }

    fn updated(&self) -> ArtistUpdated {
        let ArtistCreated { artist_id, name, membership_price } = self.created();
        ArtistUpdated { artist_id, name, membership_price }
    }
}

/// A name that is trimmed, not empty, of bounded length and without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtistName(String);

pub const NAME_CHARS_MAX: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The name {0}.")]
pub struct InvalidArtistName(UnfitText);

impl ArtistName {
    pub fn parse(text: &str) -> Result<ArtistName, InvalidArtistName> {
        let name = one_line(text, NAME_CHARS_MAX).map_err(InvalidArtistName)?;
        Ok(ArtistName(name.to_owned()))
    }

    /// A name from the database, which was checked before it was stored.
    fn stored(name: String) -> ArtistName {
        ArtistName(name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ArtistName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const UPCOMING_EVENTS_MAX: u32 = 50;

#[derive(Clone, Debug)]
pub struct NewArtist {
    pub name: ArtistName,
    pub description: String,
    /// Empty if there is none.
    pub image_url: String,
    pub membership_price: Won,
}

/// The fields to change. `None` keeps the present value.
#[derive(Clone, Debug, Default)]
pub struct ArtistChange {
    pub name: Option<ArtistName>,
    pub description: Option<String>,
    pub image_url: Option<String>,
    pub membership_price: Option<Won>,
}

#[derive(Debug, thiserror::Error)]
pub enum ArtistError {
    #[error("there is no such artist")]
    NotFound,
    #[error("an artist with this name exists already")]
    NameTaken,
    #[error(transparent)]
    TooManyEvents(#[from] TooManyEvents),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// An artist with their coming events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtistDetail {
    pub artist: Artist,
    /// In the order of their dates.
    pub upcoming: Vec<EventRecord>,
    pub revision: i64,
    pub now: Timestamp,
}

impl CatalogService {
    /// Adds an artist and announces it in one transaction.
    pub async fn create_artist(
        &self,
        new: NewArtist,
        actor: AdminActor,
    ) -> Result<Artist, ArtistError> {
        let artist = Artist {
            id: ArtistId(self.ids.next_id()),
            name: new.name,
            description: new.description,
            image_url: new.image_url,
            membership_price: new.membership_price,
            created_at: self.clock.now(),
        };
        let metadata = self.event_metadata(actor.context);
        let logged =
            self.admin_action(&actor, "ARTIST_CREATED", "artist", artist.id, artist.name.as_str());
        self.change(move |tx| {
            if !store::artist_insert(tx, &artist)? {
                return Err(ArtistError::NameTaken);
            }
            admin_log::insert(tx, &logged)?;
            outbox::append(tx, &metadata, &artist.created())?;
            Ok(artist.clone())
        })
        .await
    }

    /// Changes an artist. After a new name, their events are found by it.
    pub async fn edit_artist(
        &self,
        id: ArtistId,
        change: ArtistChange,
        actor: AdminActor,
    ) -> Result<Artist, ArtistError> {
        let (metadata, name_change) =
            (self.event_metadata(actor.context), self.name_change(&actor));
        let logged = self.admin_action(&actor, "ARTIST_UPDATED", "artist", id, "");
        self.change(move |tx| {
            let Some(old) = store::artist_find(tx, id)? else {
                return Err(ArtistError::NotFound);
            };
            let change = change.clone();
            let artist = Artist {
                name: change.name.unwrap_or_else(|| old.name.clone()),
                description: change.description.unwrap_or(old.description),
                image_url: change.image_url.unwrap_or(old.image_url),
                membership_price: change.membership_price.unwrap_or(old.membership_price),
                ..old
            };
            let is_renamed = artist.name != old.name;
            if is_renamed && store::artist_find_by_name(tx, artist.name.as_str())?.is_some() {
                return Err(ArtistError::NameTaken);
            }
            store::artist_update(tx, &artist)?;
            if is_renamed {
                name_change.announce::<ArtistError>(tx, Some(id), None)?;
            }
            let summary = artist.name.to_string();
            admin_log::insert(tx, &AdminAction { summary, ..logged.clone() })?;
            outbox::append(tx, &metadata, &artist.updated())?;
            Ok(artist)
        })
        .await
    }

    /// One page of the artists by name, their total, and the revision of the catalogue.
    pub async fn list_artists(&self, page: Page) -> Result<(Vec<Artist>, u64, i64), StorageError> {
        self.db
            .read(move |tx| {
                let artists = store::artist_list(tx, page)?;
                Ok((artists, store::artist_count(tx)?, revision_load(tx)?))
            })
            .await
    }

    pub async fn get_artist(&self, id: ArtistId) -> Result<Option<ArtistDetail>, StorageError> {
        let now = self.clock.now();
        self.db
            .read(move |tx| {
                let Some(artist) = store::artist_find(tx, id)? else { return Ok(None) };
                let upcoming = event_list_of_artist(tx, id, now, UPCOMING_EVENTS_MAX)?;
                let revision = revision_load(tx)?;
                Ok(Some(ArtistDetail { artist, upcoming, revision, now }))
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_trimmed_and_keeps_its_letters() {
        assert_eq!(ArtistName::parse("  한강 밴드 ").unwrap().as_str(), "한강 밴드");
    }

    #[test]
    fn names_that_cannot_be_shown_are_refused() {
        let long = "가".repeat(NAME_CHARS_MAX);
        assert!(ArtistName::parse(&long).is_ok());
        for (text, reason) in [
            (format!("{long}나").as_str(), "The name is longer than 100 characters."),
            (" \t ", "The name is empty."),
            ("a\0b", "The name has characters that cannot be shown."),
        ] {
            assert_eq!(ArtistName::parse(text).unwrap_err().to_string(), reason);
        }
    }
}
