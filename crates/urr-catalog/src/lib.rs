//! The catalogue: artists, and with time venues and events.
//!
//! It is the only writer of its schema `event_service`. Other services learn of changes through
//! `catalog-events`.
//!
//! Invariants: an artist's name is unique; a change and its event are committed together.

mod demo;
mod domain;
mod events;
mod http;
mod store;

use urr_kernel::{CallContext, Clock, IdSource, Won};
use urr_service::{Page, Service, ServiceKit};
use urr_storage::outbox::{self, Stamp};
use urr_storage::{Db, Schema, StorageError, migrations};
use utoipa::openapi::OpenApi;

pub use domain::artist::{Artist, ArtistId, ArtistName, InvalidArtistName};
pub use events::ArtistCreated;

/// The tables of the catalogue.
pub const SCHEMA: Schema = Schema {
    name: "event_service",
    migrations: migrations![1 "artists" => "../migrations/0001_artists.sql"],
};

const SOURCE: &str = "urr/catalog";

/// The catalogue with one method per operation. Clones share it.
#[derive(Clone)]
pub struct Catalog {
    db: Db,
    clock: Clock,
    ids: IdSource,
}

/// What a new artist is made of.
#[derive(Clone, Debug)]
pub struct NewArtist {
    pub name: ArtistName,
    pub description: String,
    pub membership_price: Won,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateArtistError {
    #[error("an artist with this name exists already")]
    NameTaken,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What the service answers to, for a process that does not run it.
pub fn openapi() -> OpenApi {
    http::routes().into_openapi()
}

impl Catalog {
    pub fn new(db: Db, clock: Clock, ids: IdSource) -> Catalog {
        Catalog { db, clock, ids }
    }

    /// The catalogue as a service on the network or within the process.
    pub fn service(&self, kit: &ServiceKit) -> Service {
        Service::new("catalog", http::routes().with_state(self.clone()), kit)
    }

    /// Adds an artist and announces it; one transaction.
    pub async fn create_artist(
        &self,
        new: NewArtist,
        context: CallContext,
    ) -> Result<Artist, CreateArtistError> {
        let now = self.clock.now();
        let artist = Artist {
            id: ArtistId(self.ids.next_id()),
            name: new.name,
            description: new.description,
            membership_price: new.membership_price,
            created_at: now,
        };
        let stamp = Stamp { event_id: self.ids.next_id(), source: SOURCE, time: now, context };
        self.db
            .write(move |tx| {
                if !store::artist_insert(tx, &artist)? {
                    return Err(CreateArtistError::NameTaken);
                }
                outbox::append(tx, &stamp, &ArtistCreated::from(&artist))?;
                Ok(artist.clone())
            })
            .await
    }

    /// One page of the artists by name, and how many there are.
    pub async fn list_artists(&self, page: Page) -> Result<(Vec<Artist>, u64), StorageError> {
        self.db.read(move |tx| Ok((store::artist_list(tx, page)?, store::artist_count(tx)?))).await
    }

    pub async fn get_artist(&self, id: ArtistId) -> Result<Option<Artist>, StorageError> {
        self.db.read(move |tx| store::artist_find(tx, id)).await
    }
}
