//! Demo data for a fresh installation: halls of several shapes, artists, and events of every
//! status.

mod events;
mod halls;
mod poster;

use serde::Deserialize;
use urr_kernel::{CallContext, Uuid, Won};
use urr_storage::StorageError;

use crate::artists::store::artist_find_by_name;
use crate::venues::store::{hall_list_of_venue, venue_find_by_name};
use crate::{
    AdminActor, Artist, ArtistError, ArtistName, CatalogService, CreateEventError, EditEventError,
    HallSummary, NewArtist, NewHall, NewVenue, Venue, VenueError,
};

/// The program itself creates the demo data.
const DEMO_ADMIN: Uuid = Uuid::nil();

#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("an artist of the demo data")]
    Artist(#[from] ArtistError),
    #[error("a venue of the demo data")]
    Venue(#[from] VenueError),
    #[error("an event of the demo data")]
    Event(#[from] CreateEventError),
    #[error("the cancelled event of the demo data")]
    Cancel(#[from] EditEventError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[derive(Deserialize)]
struct DemoArtist {
    name: String,
    description: String,
    membership_price: i64,
}

impl CatalogService {
    /// Adds the demo data. A repetition adds nothing.
    pub async fn seed_demo(&self) -> Result<(), SeedError> {
        let artists: Vec<DemoArtist> = serde_json::from_str(include_str!("demo/artists.json"))
            .expect("the demo artists are valid JSON");
        for artist in artists {
            self.seed_artist(artist).await?;
        }
        for plan in halls::PLANS {
            let venue = self.seed_venue(plan).await?;
            if let Some((name, template)) = plan.hall {
                self.seed_hall(&venue, name, template).await?;
            }
        }
        for plan in &events::demo_events() {
            self.seed_event(plan).await?;
        }
        Ok(())
    }

    fn demo_actor(&self) -> AdminActor {
        AdminActor { admin_id: DEMO_ADMIN, context: CallContext::root(self.ids.next_id()) }
    }

    async fn seed_artist(&self, artist: DemoArtist) -> Result<(), SeedError> {
        let DemoArtist { name, description, membership_price } = artist;
        if self.demo_artist(&name).await?.is_some() {
            return Ok(());
        }
        let drawing = poster::draw(&name, "", "");
        let image = self.store_drawing(drawing, poster::SIZE, self.demo_actor()).await?;
        let artist = NewArtist {
            name: ArtistName::parse(&name).expect("the demo names are valid"),
            description,
            image_url: image.id.url(),
            membership_price: Won::new(membership_price),
        };
        match self.create_artist(artist, self.demo_actor()).await {
            Ok(_) | Err(ArtistError::NameTaken) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn demo_artist(&self, name: &str) -> Result<Option<Artist>, StorageError> {
        let name = name.to_owned();
        self.db.read(move |tx| artist_find_by_name(tx, &name)).await
    }

    async fn seed_venue(&self, plan: &halls::DemoVenue) -> Result<Venue, SeedError> {
        let new = NewVenue {
            name: plan.name.to_owned(),
            address: plan.address.to_owned(),
            description: plan.description.to_owned(),
        };
        match self.create_venue(new, self.demo_actor()).await {
            Ok(venue) => Ok(venue),
            Err(VenueError::NameTaken) => {
                let name = plan.name;
                let find = move |tx: &mut urr_storage::Tx<'_>| venue_find_by_name(tx, name);
                let venue: Option<Venue> = self.db.read(find).await?;
                Ok(venue.ok_or(VenueError::VenueNotFound)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn seed_hall(
        &self,
        venue: &Venue,
        name: &'static str,
        template: halls::MakeTemplate,
    ) -> Result<(), SeedError> {
        let new =
            NewHall { name: name.to_owned(), description: String::new(), template: template() };
        match self.create_hall(venue.id, new, self.demo_actor()).await {
            Ok(_) | Err(VenueError::NameTaken) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The venue of a demo event with its hall, if it has one.
    async fn demo_venue(&self, name: String) -> Result<(Venue, Option<HallSummary>), SeedError> {
        let found = self
            .db
            .read(move |tx| {
                let Some(venue) = venue_find_by_name(tx, &name)? else { return Ok(None) };
                let halls = hall_list_of_venue(tx, venue.id)?;
                Ok::<_, StorageError>(Some((venue, halls.into_iter().next())))
            })
            .await?;
        Ok(found.ok_or(VenueError::VenueNotFound)?)
    }
}
