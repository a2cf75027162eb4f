//! Demo events of every status, with times relative to now.
//!
//! A time that is a day away or more falls on an hour at which it would be: a concert at 03:08 looks
//! like a mistake. Nearer times are kept to the minute, so that a sale opens while one looks.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use urr_kernel::{Timestamp, Uuid, Won, start_of_korean_day};

use super::{SeedError, poster};
use crate::events::terms::{Casting, EventTerms, Performer, RunningMinutes};
use crate::{
    ArtistChoice, CatalogService, EventId, EventLocation, EventRecord, HallId, NewEvent, Schedule,
    TicketType, VenueId,
};

const DAY_MINUTES: u64 = 24 * 60;
/// Korean times of day, in minutes.
const SHOW_BEGINS: u64 = 19 * 60 + 30;
const SALE_OPENS: u64 = 20 * 60;
const SALE_ENDS: u64 = 17 * 60;

/// Ids that no [`urr_kernel::IdSource`] makes: they are of a time long ago.
const EVENT_ID_FIRST: u128 = 0x0190_0000_0000_7000_8000_0000_0000_0000;

#[derive(Deserialize)]
pub struct DemoEvent {
    /// Makes the fixed id, so that a repetition does not create the event again.
    number: u128,
    title: String,
    description: String,
    artist: Option<String>,
    venue: String,
    sale_starts_in_minutes: i64,
    sale_ends_in_minutes: i64,
    starts_in_minutes: i64,
    has_presale: bool,
    seats_per_user_max: u32,
    #[serde(default)]
    casting: Vec<Performer>,
    is_cancelled: bool,
}

pub fn demo_events() -> Vec<DemoEvent> {
    serde_json::from_str(include_str!("events.json")).expect("the demo events are valid JSON")
}

fn price(grade: &str) -> Won {
    Won::new(match grade {
        "VIP" => 165_000,
        "R" => 132_000,
        "S" => 99_000,
        _ => 66_000,
    })
}

fn ticket_types() -> Vec<TicketType> {
    let ticket_type = |name: &str, description: &str, price, total| TicketType {
        id: Uuid::nil(),
        name: name.to_owned(),
        description: description.to_owned(),
        price: Won::new(price),
        total,
    };
    vec![
        ticket_type("스탠딩 A", "무대 앞 구역. In front of the stage.", 99_000, 200),
        ticket_type("스탠딩 B", "뒤쪽 구역. Behind it.", 77_000, 400),
        ticket_type("얼리버드 Early bird", "수량 한정. Few of them.", 55_000, 50),
    ]
}

fn after(now: Timestamp, minutes: i64, time_of_day: u64) -> Timestamp {
    let distance = Duration::from_mins(minutes.unsigned_abs());
    let time = if minutes < 0 { now - distance } else { now + distance };
    if minutes.unsigned_abs() < DAY_MINUTES {
        return time;
    }
    start_of_korean_day(time) + Duration::from_mins(time_of_day)
}

impl CatalogService {
    pub(super) async fn seed_event(&self, plan: &DemoEvent) -> Result<(), SeedError> {
        let id = EventId(Uuid::from_u128(EVENT_ID_FIRST + plan.number));
        let event = match self.get_event(id).await? {
            Some(existing) => existing.event,
            None => self.create_demo_event(id, plan).await?,
        };
        if plan.is_cancelled && event.deleted_at.is_none() && !event.has_begun(self.0.clock.now()) {
            let reason = "출연자 사정. The performers fell ill.".to_owned();
            self.cancel_event(event.id, reason, self.demo_actor()).await?;
        }
        Ok(())
    }

    async fn create_demo_event(
        &self,
        id: EventId,
        plan: &DemoEvent,
    ) -> Result<EventRecord, SeedError> {
        let (venue, hall) = self.demo_venue(plan.venue.clone()).await?;
        let now = self.0.clock.now();
        let schedule = Schedule::parse(
            after(now, plan.starts_in_minutes, SHOW_BEGINS),
            after(now, plan.sale_starts_in_minutes, SALE_OPENS),
            after(now, plan.sale_ends_in_minutes, SALE_ENDS),
        );
        let artist = plan.artist.as_deref().unwrap_or_default();
        let drawing = poster::draw(&plan.title, artist, &plan.venue);
        let image = self.store_drawing(drawing, poster::SIZE, self.demo_actor()).await?;
        let (location, prices) = match &hall {
            Some(hall) => {
                let grades = hall.grades.iter();
                let prices = grades.map(|grade| (grade.to_owned(), price(grade))).collect();
                (seated(hall.id, venue.id), prices)
            }
            None => (EventLocation::Venue(venue.id), BTreeMap::new()),
        };
        let new = NewEvent {
            id: Some(id),
            title: plan.title.clone(),
            description: plan.description.clone(),
            location,
            artist: plan.artist.clone().map(ArtistChoice::Name),
            schedule: schedule.expect("the demo times are in order"),
            has_presale: plan.has_presale,
            seats_per_user_max: plan.seats_per_user_max,
            requires_identity: false,
            allows_reentry: false,
            organiser_id: None,
            poster_image_url: image.id.url(),
            terms: EventTerms {
                running_minutes: RunningMinutes::new(120).ok(),
                casting: Casting::parse(plan.casting.clone()).expect("the demo names are short"),
                ..EventTerms::default()
            },
            prices,
            ticket_types: if hall.is_some() { Vec::new() } else { ticket_types() },
            request: None,
        };
        Ok(self.create_event(new, self.demo_actor()).await?)
    }
}

fn seated(hall_id: HallId, venue_id: VenueId) -> EventLocation {
    EventLocation::Hall { hall_id, venue_id: Some(venue_id) }
}
