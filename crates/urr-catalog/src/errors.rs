//! The error answers of the catalogue.

use axum::http::StatusCode;
use urr_service::ApiError;
use urr_service::idempotency::key_reused;

use crate::text::{InvalidImageUrl, InvalidText};
use crate::{
    ArtistError, CreateEventError, EditEventError, EditRejection, InvalidArtistName, InvalidImage,
    InvalidPresale, InvalidPrices, InvalidSchedule, InvalidTemplate, InvalidTicketTypes,
    TooManyEvents, UploadError, VenueError,
};

macro_rules! bad_requests {
    ($($invalid:ty => $code:literal;)*) => {$(
        impl From<$invalid> for ApiError {
            fn from(invalid: $invalid) -> ApiError {
                ApiError::bad_request($code, invalid.to_string())
            }
        }
    )*};
}

bad_requests! {
    InvalidText => "INVALID_TEXT";
    InvalidImageUrl => "INVALID_IMAGE_URL";
    InvalidArtistName => "INVALID_NAME";
    InvalidSchedule => "INVALID_SCHEDULE";
    InvalidTemplate => "INVALID_LAYOUT";
    InvalidPrices => "INVALID_PRICES";
    InvalidTicketTypes => "INVALID_TICKET_TYPES";
    InvalidPresale => "INVALID_PRESALE";
}

impl From<InvalidImage> for ApiError {
    fn from(invalid: InvalidImage) -> ApiError {
        let sentence = invalid.to_string();
        match invalid {
            InvalidImage::TooLarge => {
                ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "IMAGE_TOO_LARGE", sentence)
            }
            InvalidImage::UnknownKind => {
                ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "NOT_AN_IMAGE", sentence)
            }
            InvalidImage::Empty | InvalidImage::Damaged => {
                ApiError::bad_request("INVALID_IMAGE", sentence)
            }
        }
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> ApiError {
        match error {
            UploadError::Invalid(invalid) => invalid.into(),
            UploadError::Storage(error) => error.into(),
        }
    }
}

fn too_many_events(error: TooManyEvents) -> ApiError {
    ApiError::conflict("TOO_MANY_EVENTS", format!("The name cannot be changed now: {error}."))
}

pub fn artist_not_found() -> ApiError {
    ApiError::not_found("ARTIST_NOT_FOUND", "There is no artist with this id.")
}

pub fn venue_not_found() -> ApiError {
    ApiError::not_found("VENUE_NOT_FOUND", "There is no venue with this id.")
}

pub fn hall_not_found() -> ApiError {
    ApiError::not_found("HALL_NOT_FOUND", "There is no hall with this id.")
}

pub fn event_not_found() -> ApiError {
    ApiError::not_found("EVENT_NOT_FOUND", "There is no event with this id.")
}

impl From<ArtistError> for ApiError {
    fn from(error: ArtistError) -> ApiError {
        match error {
            ArtistError::NotFound => artist_not_found(),
            ArtistError::NameTaken => {
                ApiError::conflict("ARTIST_NAME_TAKEN", "An artist with this name exists already.")
            }
            ArtistError::TooManyEvents(error) => too_many_events(error),
            ArtistError::Storage(error) => error.into(),
        }
    }
}

impl From<VenueError> for ApiError {
    fn from(error: VenueError) -> ApiError {
        match error {
            VenueError::VenueNotFound => venue_not_found(),
            VenueError::HallNotFound => hall_not_found(),
            VenueError::NameTaken => {
                ApiError::conflict("NAME_TAKEN", "Another one has this name already.")
            }
            VenueError::VenueInUse => ApiError::conflict(
                "VENUE_IN_USE",
                "The venue has halls or events and cannot be deleted.",
            ),
            VenueError::HallInUse => ApiError::conflict(
                "HALL_IN_USE",
                "Events use this hall. Its seats cannot change, and it cannot be deleted.",
            ),
            VenueError::TooManyEvents(error) => too_many_events(error),
            VenueError::Storage(error) => error.into(),
        }
    }
}

impl From<CreateEventError> for ApiError {
    fn from(error: CreateEventError) -> ApiError {
        let unknown = |code, sentence: &'static str| ApiError::bad_request(code, sentence);
        match error {
            CreateEventError::HallNotFound => {
                unknown("UNKNOWN_HALL", "There is no hall with this hallId.")
            }
            CreateEventError::VenueNotFound => {
                unknown("UNKNOWN_VENUE", "There is no venue with this venueId.")
            }
            CreateEventError::VenueMismatch => {
                unknown("UNKNOWN_HALL", "The hall belongs to another venue.")
            }
            CreateEventError::ArtistNotFound => unknown_artist(),
            CreateEventError::Prices(invalid) => invalid.into(),
            CreateEventError::TicketTypes(invalid) => invalid.into(),
            CreateEventError::Presale(invalid) => invalid.into(),
            CreateEventError::KeyReused => key_reused(),
            CreateEventError::Storage(error) => error.into(),
        }
    }
}

fn unknown_artist() -> ApiError {
    ApiError::bad_request("UNKNOWN_ARTIST", "There is no such artist. Please add them first.")
}

impl From<EditEventError> for ApiError {
    fn from(error: EditEventError) -> ApiError {
        match error {
            EditEventError::NotFound => event_not_found(),
            EditEventError::ArtistNotFound => unknown_artist(),
            EditEventError::Rejected(rejection) => rejection.into(),
            EditEventError::NotDeletable => ApiError::conflict(
                "EVENT_NOT_DELETABLE",
                "Tickets may have been sold. Cancel the event first, or wait until it is over.",
            ),
            EditEventError::HasBegun => {
                ApiError::conflict("EVENT_OVER", "The event has begun and cannot be cancelled.")
            }
            EditEventError::Storage(error) => error.into(),
        }
    }
}

impl From<EditRejection> for ApiError {
    fn from(rejection: EditRejection) -> ApiError {
        let sentence = format!("{rejection}.");
        match rejection {
            EditRejection::Stale { revision } => ApiError::conflict(
                "STALE_REVISION",
                "Somebody else changed the event. Please load it again.",
            )
            .with("revision", revision),
            EditRejection::Cancelled => {
                ApiError::conflict("EVENT_CANCELLED", "A cancelled event cannot be changed.")
            }
            EditRejection::InventoryFixed(_) => ApiError::conflict("INVENTORY_FIXED", sentence),
            EditRejection::SaleStarted(_) => ApiError::conflict("SALE_STARTED", sentence),
            EditRejection::Schedule(invalid) => invalid.into(),
            EditRejection::Presale(invalid) => invalid.into(),
        }
    }
}
