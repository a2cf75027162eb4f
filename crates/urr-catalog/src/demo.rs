//! Demo data for a fresh installation: halls of several shapes, artists, and events of every
//! status.

mod events;
mod halls;
mod poster;

use urr_kernel::{CallContext, Uuid, Won};
use urr_storage::StorageError;

use crate::artists::store::artist_find_by_name;
use crate::venues::store::{hall_list_of_venue, venue_find_by_name};
use crate::{
    AdminActor, Artist, ArtistName, CatalogService, CreateArtistError, CreateEventError,
    EditEventError, HallSummary, NewArtist, NewHall, NewVenue, Venue, VenueError,
};

/// The program itself creates the demo data.
const DEMO_ADMIN: Uuid = Uuid::nil();

#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    #[error("an artist of the demo data")]
    Artist(#[from] CreateArtistError),
    #[error("a venue of the demo data")]
    Venue(#[from] VenueError),
    #[error("an event of the demo data")]
    Event(#[from] CreateEventError),
    #[error("the cancelled event of the demo data")]
    Cancel(#[from] EditEventError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Name, description, price of a membership.
const ARTISTS: [(&str, &str, i64); 8] = [
    (
        "한강 밴드",
        "강변의 밤을 노래하는 5인조 록 밴드. A five-piece rock band from the riverside.",
        30_000,
    ),
    (
        "달무리",
        "달빛 같은 목소리의 싱어송라이터. A singer-songwriter with a moonlit voice.",
        25_000,
    ),
    ("NEON SPARROW", "네온 신스팝 듀오. A synth-pop duo of neon nights.", 30_000),
    (
        "서울 시티 앙상블",
        "젊은 연주자들의 현악 앙상블. A string ensemble of young players.",
        20_000,
    ),
    ("별빛소년단", "일곱 명의 댄스 그룹. Seven dancers and singers.", 30_000),
    ("Paper Lanterns", "포근한 인디 포크. Warm indie folk from a small room.", 20_000),
    ("정가온", "판소리와 전자음악 사이. Between pansori and electronic music.", 25_000),
    ("극단 여름비", "창작 뮤지컬을 만드는 극단. A company that makes new musicals.", 15_000),
];

impl CatalogService {
    /// Adds the demo data. A repetition adds nothing.
    pub async fn seed_demo(&self) -> Result<(), SeedError> {
        for (name, description, price) in ARTISTS {
            self.seed_artist(name, description, price).await?;
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

    async fn seed_artist(
        &self,
        name: &str,
        description: &str,
        price: i64,
    ) -> Result<(), SeedError> {
        if self.demo_artist(name).await?.is_some() {
            return Ok(());
        }
        let drawing = poster::draw(name, "", "");
        let image = self.store_drawing(drawing, poster::SIZE, self.demo_actor()).await?;
        let artist = NewArtist {
            name: ArtistName::parse(name).expect("the demo names are valid"),
            description: description.to_owned(),
            image_url: image.id.url(),
            membership_price: Won::new(price),
        };
        match self.create_artist(artist, self.demo_actor()).await {
            Ok(_) | Err(CreateArtistError::NameTaken) => Ok(()),
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
