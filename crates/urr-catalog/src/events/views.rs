//! Views of events.

use std::collections::BTreeMap;

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid, Won};
use utoipa::ToSchema;

use crate::events::terms::EventTermsView;
use crate::{EventRecord, PresaleSchedule, TicketType};

/// An event in a list.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventSummaryView {
    id: Uuid,
    #[schema(example = "한강의 밤")]
    title: String,
    /// `seated` or `standing`.
    #[schema(example = "seated")]
    kind: &'static str,
    /// `upcoming`, `on_sale`, `ended` or `cancelled`.
    #[schema(example = "on_sale")]
    status: &'static str,
    artist_id: Option<Uuid>,
    artist_name: Option<String>,
    venue_id: Uuid,
    venue_name: String,
    address: String,
    starts_at: Timestamp,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
    has_presale: bool,
    poster_image_url: Option<String>,
    /// In won.
    #[schema(value_type = i64)]
    min_price: Won,
    #[schema(value_type = i64)]
    max_price: Won,
    /// Whether it can be booked: its seats and tickets exist.
    inventory_ready: bool,
}

impl EventSummaryView {
    pub fn new(event: EventRecord, now: Timestamp) -> EventSummaryView {
        let status = event.status_at(now).as_str();
        let (artist_id, artist_name) =
            event.artist.map(|artist| (artist.id.0, artist.name)).unzip();
        EventSummaryView {
            id: event.id.0,
            title: event.title,
            kind: event.kind.as_str(),
            status,
            artist_id,
            artist_name,
            venue_id: event.venue.id.0,
            venue_name: event.venue.name,
            address: event.venue.address,
            starts_at: event.schedule.starts_at(),
            sale_starts_at: event.schedule.sale_starts_at(),
            sale_ends_at: event.schedule.sale_ends_at(),
            has_presale: event.has_presale,
            poster_image_url: Some(event.poster_image_url).filter(|url| !url.is_empty()),
            min_price: event.price_min,
            max_price: event.price_max,
            inventory_ready: event.inventory_ready,
        }
    }
}

/// An event with all its fields.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    #[serde(flatten)]
    summary: EventSummaryView,
    description: String,
    hall_id: Option<Uuid>,
    hall_name: Option<String>,
    /// The number of seats or standing tickets.
    capacity: i64,
    seats_per_user_max: u32,
    /// Whether only persons with a checked identity may buy; then the maximum holds for the person.
    requires_identity: bool,
    /// Whether one may leave and come in again with the same ticket.
    allows_reentry: bool,
    /// The price of a seat by grade, in won. Empty for standing events.
    #[schema(value_type = BTreeMap<String, i64>)]
    prices: BTreeMap<String, Won>,
    ticket_types: Vec<TicketType>,
    /// When members and everybody may start to buy, if there is a pre-sale.
    pre_sale_schedule: Option<PresaleSchedule>,
    cancel_reason: Option<String>,
    #[serde(flatten)]
    terms: EventTermsView,
}

impl EventView {
    pub fn new(event: EventRecord, ticket_types: Vec<TicketType>, now: Timestamp) -> EventView {
        let (hall_id, hall_name) = event.hall.clone().map(|hall| (hall.id.0, hall.name)).unzip();
        EventView {
            description: event.description.clone(),
            hall_id,
            hall_name,
            capacity: event.capacity,
            seats_per_user_max: event.seats_per_user_max,
            requires_identity: event.requires_identity,
            allows_reentry: event.allows_reentry,
            prices: event.prices.clone(),
            ticket_types,
            pre_sale_schedule: event.presale_schedule(),
            cancel_reason: Some(event.cancel_reason.clone()).filter(|reason| !reason.is_empty()),
            terms: EventTermsView::from(&event.terms),
            summary: EventSummaryView::new(event, now),
        }
    }
}
