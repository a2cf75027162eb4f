//! Demo data for a fresh installation: halls of several shapes, artists, and events of every
//! status.

mod events;
mod halls;
mod poster;
mod view;

use urr_kernel::{CallContext, Uuid};
use urr_service::EventScope;
use urr_storage::{DbResult, StorageError, Tx};

use self::halls::DemoVenue;
use crate::artists::store::artist_find_by_name;
use crate::venues::store::{hall_list_of_venue, venue_find_by_name};
use crate::{
    AdminActor, Artist, ArtistError, CatalogService, CreateEventError, EditEventError, HallSummary,
    NewArtist, NewHall, Venue, VenueError,
};

/// The program itself creates the demo data.
const DEMO_ADMIN: Uuid = Uuid::nil();
const SECTIONS_WITH_VIEW: usize = 12;

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

impl CatalogService {
    /// Adds the demo data. A repetition adds nothing.
    pub async fn seed_demo(&self) -> Result<(), SeedError> {
        let artists: Vec<NewArtist> = serde_json::from_str(include_str!("demo/artists.json"))
            .expect("the demo artists are valid JSON");
        for artist in artists {
            self.seed_artist(artist).await?;
        }
        for venue in halls::demo_venues() {
            self.seed_venue(venue).await?;
        }
        for plan in &events::demo_events() {
            self.seed_event(plan).await?;
        }
        Ok(())
    }

    fn demo_actor(&self) -> AdminActor {
        let context = CallContext::root(self.0.ids.next_id());
        AdminActor { admin_id: DEMO_ADMIN, scope: EventScope::All, context }
    }

    async fn seed_artist(&self, artist: NewArtist) -> Result<(), SeedError> {
        let name = artist.name.clone();
        let find = move |tx: &mut Tx<'_>| artist_find_by_name(tx, &name);
        let known: DbResult<Option<Artist>> = self.0.db.read(find).await;
        if known?.is_some() {
            return Ok(());
        }
        let drawing = poster::draw(&artist.name, "", "");
        let image = self.store_drawing(drawing, poster::SIZE, self.demo_actor()).await?;
        let artist = NewArtist { image_url: image.id.url(), ..artist };
        match self.create_artist(artist, self.demo_actor()).await {
            Ok(_) | Err(ArtistError::NameTaken) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn seed_venue(&self, DemoVenue { venue, hall }: DemoVenue) -> Result<(), SeedError> {
        let name = venue.name.clone();
        match self.create_venue(venue, self.demo_actor()).await {
            Ok(_) | Err(VenueError::NameTaken) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(hall) = hall else { return Ok(()) };
        let (venue, _) = self.demo_venue(name).await?;
        let hall = self.with_views(hall.into()).await?;
        match self.create_hall(venue.id, hall, self.demo_actor()).await {
            Ok(_) | Err(VenueError::NameTaken) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A hall of few sections with a picture of what is seen from each.
    async fn with_views(&self, mut hall: NewHall) -> DbResult<NewHall> {
        let sections = hall.layout.as_mut().map(|layout| &mut layout.sections);
        for section in sections.into_iter().flatten().take(SECTIONS_WITH_VIEW) {
            let drawing = view::draw(section.x, section.y);
            let image = self.store_drawing(drawing, view::SIZE, self.demo_actor()).await?;
            section.view_image_url = Some(image.id.url());
        }
        Ok(hall)
    }

    /// The venue of a demo event with its hall, if it has one.
    async fn demo_venue(&self, name: String) -> Result<(Venue, Option<HallSummary>), SeedError> {
        let found = self.0.db.read(move |tx| {
            let Some(venue) = venue_find_by_name(tx, &name)? else { return Ok(None) };
            let halls = hall_list_of_venue(tx, venue.id)?;
            Ok::<_, StorageError>(Some((venue, halls.into_iter().next())))
        });
        let found = found.await?;
        Ok(found.ok_or(VenueError::VenueNotFound)?)
    }
}
