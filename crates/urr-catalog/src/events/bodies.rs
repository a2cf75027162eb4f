//! The request bodies of events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use urr_kernel::{CancelPolicy, TicketTypeDraft, Timestamp, Uuid, Won};
use urr_service::ApiError;
use urr_service::idempotency::KeyedRequest;
use utoipa::ToSchema;

use crate::events::rules::{
    DESCRIPTION_CHARS_MAX, REASON_CHARS_MAX, SEATS_PER_USER_LIMIT, TITLE_CHARS_MAX,
};
use crate::events::terms::{
    AgeRating, CancelPolicyTable, Casting, EventTerms, NOTICES_CHARS_MAX, Performer, RunningMinutes,
};
use crate::text::{parse_image_url, parse_line, parse_paragraphs};
use crate::{
    ArtistChoice, ArtistId, CatalogSettings, EventChange, EventLocation, HallId, InvalidPrices,
    NewEvent, Schedule, TicketType, VenueId,
};

const ARTIST_NAME_CHARS_MAX: usize = 100;

/// A seated event has `hallId` and `prices`; a standing event has `venueId` and `ticketTypes`.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateEventBody {
    #[schema(max_length = 200, example = "한강의 밤")]
    title: String,
    #[serde(default)]
    #[schema(max_length = 5_000)]
    description: String,
    venue_id: Option<Uuid>,
    hall_id: Option<Uuid>,
    artist_id: Option<Uuid>,
    /// Instead of `artistId`: the exact name of an artist.
    #[schema(max_length = 100)]
    artist_name: Option<String>,
    starts_at: Timestamp,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
    /// Whether members of the artist may buy before others.
    #[serde(default)]
    has_presale: bool,
    /// The default is a setting, usually 4.
    #[schema(minimum = 1, maximum = 10)]
    seats_per_user_max: Option<u32>,
    /// Whether only persons with a checked identity may buy; then `seatsPerUserMax` holds for the
    /// person, across accounts.
    #[serde(default)]
    requires_identity: bool,
    /// Whether one may leave and come in again with the same ticket.
    #[serde(default)]
    allows_reentry: bool,
    /// Whose event it is; the creator by default. Only administrators may name somebody else.
    organiser_id: Option<Uuid>,
    /// Begins with `https://` or `/api/image/`.
    #[serde(default)]
    #[schema(max_length = 500)]
    poster_image_url: String,
    /// Cancellation fees of this event; the usual ones if it is not given.
    cancel_policy: Option<CancelPolicyTable>,
    /// `all`, or the age from which on one may watch it.
    #[serde(default)]
    #[schema(value_type = String, example = "12")]
    age_rating: AgeRating,
    /// With the interval.
    #[schema(minimum = 1, maximum = 1_440)]
    running_minutes: Option<u32>,
    /// What visitors must know.
    #[serde(default)]
    #[schema(max_length = 5_000)]
    notices: String,
    /// Who performs.
    #[serde(default)]
    #[schema(max_items = 100)]
    casting: Vec<Performer>,
    /// Won by grade, for every grade of the hall.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, i64>)]
    prices: BTreeMap<String, Won>,
    /// Of a standing event: 1 to 20.
    #[serde(default)]
    ticket_types: Vec<TicketTypeBody>,
}

#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketTypeBody {
    #[schema(max_length = 100, example = "스탠딩 A")]
    name: String,
    #[serde(default)]
    #[schema(max_length = 500)]
    description: String,
    /// In won.
    #[schema(minimum = 0, maximum = 10_000_000)]
    price: i64,
    #[schema(minimum = 1, maximum = 100_000)]
    total: u32,
}

impl CreateEventBody {
    pub fn parse(
        self,
        request: Option<KeyedRequest>,
        settings: &CatalogSettings,
    ) -> Result<NewEvent, ApiError> {
        Ok(NewEvent {
            id: None,
            title: parse_line("title", &self.title, TITLE_CHARS_MAX)?,
            description: parse_paragraphs("description", &self.description, DESCRIPTION_CHARS_MAX)?,
            location: self.location()?,
            artist: parse_artist(self.artist_id, self.artist_name.as_deref())?.flatten(),
            schedule: Schedule::parse(self.starts_at, self.sale_starts_at, self.sale_ends_at)?,
            has_presale: self.has_presale,
            seats_per_user_max: parse_seats_per_user(
                self.seats_per_user_max.unwrap_or(settings.seats_per_user_max_default),
            )?,
            requires_identity: self.requires_identity,
            allows_reentry: self.allows_reentry,
            organiser_id: self.organiser_id,
            poster_image_url: parse_image_url(&self.poster_image_url)?,
            terms: EventTerms {
                cancel_policy: self.cancel_policy.map(CancelPolicy::try_from).transpose()?,
                age_rating: self.age_rating,
                running_minutes: self.running_minutes.map(RunningMinutes::new).transpose()?,
                notices: parse_paragraphs("notices", &self.notices, NOTICES_CHARS_MAX)?,
                casting: Casting::parse(self.casting)?,
            },
            prices: parse_prices(self.prices)?,
            ticket_types: parse_ticket_types(self.ticket_types)?,
            request,
        })
    }

    fn location(&self) -> Result<EventLocation, ApiError> {
        let refuse = |sentence: &'static str| Err(ApiError::bad_request("INVALID_PLACE", sentence));
        let (has_prices, has_types) = (!self.prices.is_empty(), !self.ticket_types.is_empty());
        match (self.hall_id, self.venue_id) {
            (None, None) => refuse("The location is missing. Give a hallId or a venueId."),
            (Some(_), _) if has_types => {
                refuse("An event in a hall is seated. Give prices by grade and no ticketTypes.")
            }
            (None, _) if has_prices => refuse(
                "An event without a hall is standing. Give ticketTypes and no prices by grade.",
            ),
            (Some(hall_id), venue_id) => Ok(EventLocation::Hall {
                hall_id: HallId(hall_id),
                venue_id: venue_id.map(VenueId),
            }),
            (None, Some(venue_id)) => Ok(EventLocation::Venue(VenueId(venue_id))),
        }
    }
}

impl EventChange {
    /// Checks and trims what an administrator entered. Returns the artist to look up, too.
    pub fn parse(self) -> Result<(EventChange, Option<Option<ArtistChoice>>), ApiError> {
        let artist = parse_artist(self.artist_id, self.artist_name.as_deref())?;
        let title = self.title.map(|text| parse_line("title", &text, TITLE_CHARS_MAX));
        let description = self
            .description
            .map(|text| parse_paragraphs("description", &text, DESCRIPTION_CHARS_MAX));
        let notices =
            self.notices.map(|text| parse_paragraphs("notices", &text, NOTICES_CHARS_MAX));
        let micros = |time: Option<Timestamp>| time.map(urr_kernel::truncate_to_micros);
        let change = EventChange {
            title: title.transpose()?,
            description: description.transpose()?,
            notices: notices.transpose()?,
            starts_at: micros(self.starts_at),
            sale_starts_at: micros(self.sale_starts_at),
            sale_ends_at: micros(self.sale_ends_at),
            seats_per_user_max: self.seats_per_user_max.map(parse_seats_per_user).transpose()?,
            poster_image_url: self.poster_image_url.map(|url| parse_image_url(&url)).transpose()?,
            prices: self.prices.map(parse_prices).transpose()?,
            ..self
        };
        Ok((change, artist))
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelEventBody {
    /// Shown to the holders of tickets.
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: String,
}

impl CancelEventBody {
    pub fn parse(&self) -> Result<String, ApiError> {
        Ok(parse_paragraphs("reason", &self.reason, REASON_CHARS_MAX)?)
    }
}

/// `None` leaves the artist; `Some(None)` removes it.
#[expect(clippy::option_option, reason = "a change can leave the artist or take them away")]
fn parse_artist(
    id: Option<Uuid>,
    name: Option<&str>,
) -> Result<Option<Option<ArtistChoice>>, ApiError> {
    match (id, name.map(str::trim)) {
        (None, None) => Ok(None),
        (Some(id), None | Some("")) => Ok(Some(Some(ArtistChoice::Id(ArtistId(id))))),
        (None, Some("")) => Ok(Some(None)),
        (None, Some(name)) => {
            let name = parse_line("artist's name", name, ARTIST_NAME_CHARS_MAX)?;
            Ok(Some(Some(ArtistChoice::Name(name))))
        }
        (Some(_), Some(_)) => {
            let sentence = "Give artistId or artistName, not both.";
            Err(ApiError::bad_request("UNKNOWN_ARTIST", sentence))
        }
    }
}

fn parse_seats_per_user(number: u32) -> Result<u32, ApiError> {
    if (1..=SEATS_PER_USER_LIMIT).contains(&number) {
        return Ok(number);
    }
    let sentence = format!("A person may buy 1 to {SEATS_PER_USER_LIMIT} seats.");
    Err(ApiError::bad_request("INVALID_SEATS_PER_USER", sentence))
}

fn parse_prices(prices: BTreeMap<String, Won>) -> Result<BTreeMap<String, Won>, ApiError> {
    match prices.values().all(|price| TicketTypeDraft::is_price(*price)) {
        true => Ok(prices),
        false => Err(InvalidPrices::OutOfRange.into()),
    }
}

fn parse_ticket_types(bodies: Vec<TicketTypeBody>) -> Result<Vec<TicketType>, ApiError> {
    let parse = |body: TicketTypeBody| -> Result<TicketType, ApiError> {
        let TicketTypeBody { name, description, price, total } = body;
        let draft = TicketTypeDraft::parse(&name, &description, price, i64::from(total));
        let draft = draft.map_err(|invalid| {
            ApiError::bad_request("INVALID_TICKET_TYPES", invalid.to_string())
        })?;
        Ok(TicketType {
            id: Uuid::nil(),
            name: draft.name().to_owned(),
            description: draft.description().to_owned(),
            price: draft.price(),
            total: draft.total(),
        })
    };
    bodies.into_iter().map(parse).collect()
}
