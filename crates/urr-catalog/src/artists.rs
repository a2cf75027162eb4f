//! Artists: what is known of one, and adding and changing them.

pub mod http;
pub mod store;

use serde::{Deserialize, Serialize};
use urr_contracts::events::catalog::{ArtistCreated, ArtistUpdated};
use urr_kernel::{Timestamp, UnfitText, Won, define_id, one_line, paragraphs};
use urr_service::Page;
use urr_storage::{DbResult, StorageError, Tx, outbox, storable_id};
use utoipa::ToSchema;

use crate::events::rename::TooManyEvents;
use crate::events::rules::EventRecord;
use crate::events::store::event_list_of_artist;
use crate::revision::revision_load;
use crate::text::{InvalidImageUrl, empty_as_null, parse_image_url};
use crate::{AdminActor, CatalogService};

define_id!(
    /// Which artist.
    ArtistId
);
storable_id!(ArtistId);

const NAME_CHARS_MAX: usize = 100;
const DESCRIPTION_CHARS_MAX: usize = 2_000;
const MEMBERSHIP_PRICE_DEFAULT_WON: i64 = 30_000;
const MEMBERSHIP_PRICE_MAX_WON: i64 = 10_000_000;
const UPCOMING_EVENTS_MAX: u32 = 50;

/// An artist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArtistView)]
pub struct Artist {
    #[schema(value_type = Uuid)]
    pub id: ArtistId,
    pub name: String,
    pub description: String,
    // Empty if there is none.
    #[serde(serialize_with = "empty_as_null")]
    #[schema(value_type = Option<String>)]
    pub image_url: String,
    /// The price of a year's fan membership, in won.
    #[schema(value_type = i64, example = 30_000)]
    pub membership_price: Won,
    /// Memberships that are paid and not over.
    #[schema(example = 1_200)]
    pub member_count: u64,
    /// Events that were not deleted, past and coming.
    #[schema(example = 7)]
    pub event_count: u64,
    pub created_at: Timestamp,
}

/// What an administrator enters for a new artist.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = CreateArtistBody)]
pub struct NewArtist {
    #[schema(max_length = 100, example = "한강 밴드")]
    pub name: String,
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub description: String,
    /// Begins with `https://` or `/api/image/`.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub image_url: String,
    /// In won; 30,000 if it is not given.
    #[schema(minimum = 0, maximum = 10_000_000)]
    pub membership_price: Option<i64>,
}

/// Fields that are left out keep their value.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = EditArtistBody)]
pub struct ArtistChange {
    #[schema(max_length = 100)]
    name: Option<String>,
    #[schema(max_length = 2_000)]
    description: Option<String>,
    /// An empty text removes it.
    #[schema(max_length = 500)]
    image_url: Option<String>,
    #[schema(minimum = 0, maximum = 10_000_000)]
    membership_price: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArtist {
    #[error("The name {0}.")]
    Name(UnfitText),
    #[error("The description {0}.")]
    Description(UnfitText),
    #[error(transparent)]
    ImageUrl(#[from] InvalidImageUrl),
    #[error("The price must be from 0 to {MEMBERSHIP_PRICE_MAX_WON} won.")]
    MembershipPrice,
}

impl Artist {
    /// Checks and trims what an administrator entered.
    fn checked(self) -> Result<Artist, InvalidArtist> {
        let name = one_line(&self.name, NAME_CHARS_MAX).map_err(InvalidArtist::Name)?.to_owned();
        let description = paragraphs(&self.description, DESCRIPTION_CHARS_MAX);
        let description = description.map_err(InvalidArtist::Description)?.to_owned();
        let image_url = parse_image_url(&self.image_url)?;
        match (0..=MEMBERSHIP_PRICE_MAX_WON).contains(&self.membership_price.amount()) {
            true => Ok(Artist { name, description, image_url, ..self }),
            false => Err(InvalidArtist::MembershipPrice),
        }
    }

    fn created(&self) -> ArtistCreated {
        ArtistCreated {
            artist_id: self.id.0,
            name: self.name.clone(),
            membership_price: self.membership_price,
        }
    }

    fn updated(&self) -> ArtistUpdated {
        let ArtistCreated { artist_id, name, membership_price } = self.created();
        ArtistUpdated { artist_id, name, membership_price }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ArtistError {
    #[error("There is no artist with this id.")]
    NotFound,
    #[error("An artist with this name exists already.")]
    NameTaken,
    #[error(transparent)]
    Invalid(#[from] InvalidArtist),
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
        let NewArtist { name, description, image_url, membership_price } = new;
        let (id, created_at) = (ArtistId(self.0.ids.next_id()), self.0.clock.now());
        let membership_price = Won::new(membership_price.unwrap_or(MEMBERSHIP_PRICE_DEFAULT_WON));
        let artist = Artist {
            id,
            name,
            description,
            image_url,
            membership_price,
            member_count: 0,
            event_count: 0,
            created_at,
        };
        let artist = artist.checked()?;
        let metadata = self.event_metadata(actor.context);
        self.admin_change(actor, ("ARTIST_CREATED", "artist", id), move |tx| {
            if !store::artist_insert(tx, &artist)? {
                return Err(ArtistError::NameTaken);
            }
            outbox::append(tx, &metadata, &artist.created())?;
            Ok((artist.clone(), Some(artist.name.clone())))
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
        let metadata = self.event_metadata(actor.context);
        let name_change = self.name_change(&actor);
        self.admin_change(actor, ("ARTIST_UPDATED", "artist", id), move |tx| {
            let old = store::artist_find(tx, id)?.ok_or(ArtistError::NotFound)?;
            let (old_name, change) = (old.name.clone(), change.clone());
            let artist = Artist {
                name: change.name.unwrap_or(old.name),
                description: change.description.unwrap_or(old.description),
                image_url: change.image_url.unwrap_or(old.image_url),
                membership_price: change.membership_price.map_or(old.membership_price, Won::new),
                ..old
            };
            let artist = artist.checked()?;
            let is_renamed = artist.name != old_name;
            if is_renamed && store::artist_find_by_name(tx, &artist.name)?.is_some() {
                return Err(ArtistError::NameTaken);
            }
            store::artist_update(tx, &artist)?;
            if is_renamed {
                name_change.announce::<ArtistError>(tx, Some(id), None)?;
            }
            outbox::append(tx, &metadata, &artist.updated())?;
            Ok((artist.clone(), Some(artist.name)))
        })
        .await
    }

    /// One page of the artists by name, their total, and the revision of the catalogue.
    pub async fn list_artists(&self, page: Page) -> DbResult<(Vec<Artist>, u64, i64)> {
        let list = move |tx: &mut Tx<'_>| {
            let artists = store::artist_list(tx, page)?;
            Ok((artists, store::artist_count(tx)?, revision_load(tx)?))
        };
        self.0.db.read(list).await
    }

    pub async fn get_artist(&self, id: ArtistId) -> Result<ArtistDetail, ArtistError> {
        let now = self.0.clock.now();
        let found = self.0.db.read(move |tx| {
            let artist = store::artist_find(tx, id)?.ok_or(ArtistError::NotFound)?;
            let upcoming = event_list_of_artist(tx, id, now, UPCOMING_EVENTS_MAX)?;
            let revision = revision_load(tx)?;
            Ok(ArtistDetail { artist, upcoming, revision, now })
        });
        found.await
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;

    fn checked_name(name: &str) -> Result<String, InvalidArtist> {
        let artist = Artist {
            id: ArtistId(Uuid::nil()),
            name: name.to_owned(),
            description: String::new(),
            image_url: String::new(),
            membership_price: Won::ZERO,
            member_count: 0,
            event_count: 0,
            created_at: Timestamp::UNIX_EPOCH,
        };
        artist.checked().map(|artist| artist.name)
    }

    #[test]
    fn a_name_is_trimmed_and_keeps_its_letters() {
        assert_eq!(checked_name("  한강 밴드 "), Ok("한강 밴드".to_owned()));
    }

    #[test]
    fn names_that_cannot_be_shown_are_refused() {
        let long = "가".repeat(NAME_CHARS_MAX);
        assert!(checked_name(&long).is_ok());
        for (text, reason) in [
            (format!("{long}나").as_str(), "The name is longer than 100 characters."),
            (" \t ", "The name is empty."),
            ("a\0b", "The name has characters that cannot be shown."),
        ] {
            assert_eq!(checked_name(text).unwrap_err().to_string(), reason);
        }
    }
}
