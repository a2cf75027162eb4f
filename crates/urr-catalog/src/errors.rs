//! The error answers of the catalogue.

use axum::http::StatusCode;
use urr_service::ApiError;
use urr_service::idempotency::key_reused;

use crate::events::terms::{InvalidCasting, InvalidPolicyTable, InvalidRunningTime};
use crate::text::{InvalidImageUrl, InvalidText};
use crate::{
    ArtistError, CreateEventError, EditEventError, EditRejection, InvalidArtist, InvalidImage,
    InvalidPresale, InvalidPrices, InvalidSchedule, InvalidTemplate, InvalidTicketTypes,
    OrganiserFixed, StartsInPast, UnknownArtist, UploadError, VenueError,
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
    InvalidSchedule => "INVALID_SCHEDULE";
    InvalidTemplate => "INVALID_LAYOUT";
    InvalidPrices => "INVALID_PRICES";
    InvalidTicketTypes => "INVALID_TICKET_TYPES";
    InvalidPresale => "INVALID_PRESALE";
    UnknownArtist => "UNKNOWN_ARTIST";
    StartsInPast => "EVENT_IN_PAST";
    InvalidPolicyTable => "INVALID_CANCEL_POLICY";
    InvalidRunningTime => "INVALID_RUNNING_TIME";
    InvalidCasting => "INVALID_CASTING";
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
            UploadError::TooMany { retry_after } => {
                ApiError::too_many("TOO_MANY_UPLOADS", error.to_string(), retry_after)
            }
            UploadError::Storage(error) => error.into(),
        }
    }
}

impl From<ArtistError> for ApiError {
    fn from(error: ArtistError) -> ApiError {
        let sentence = error.to_string();
        match error {
            ArtistError::NotFound => ApiError::not_found("ARTIST_NOT_FOUND", sentence),
            ArtistError::NameTaken => ApiError::conflict("ARTIST_NAME_TAKEN", sentence),
            ArtistError::Invalid(invalid) => {
                let code = match invalid {
                    InvalidArtist::Name(_) => "INVALID_NAME",
                    InvalidArtist::Description(_) => "INVALID_DESCRIPTION",
                    InvalidArtist::ImageUrl(invalid) => return invalid.into(),
                    InvalidArtist::MembershipPrice => "INVALID_MEMBERSHIP_PRICE",
                };
                ApiError::bad_request(code, sentence)
            }
            ArtistError::TooManyEvents(_) => ApiError::conflict("TOO_MANY_EVENTS", sentence),
            ArtistError::Storage(error) => error.into(),
        }
    }
}

impl From<VenueError> for ApiError {
    fn from(error: VenueError) -> ApiError {
        let sentence = error.to_string();
        match error {
            VenueError::VenueNotFound => ApiError::not_found("VENUE_NOT_FOUND", sentence),
            VenueError::HallNotFound => ApiError::not_found("HALL_NOT_FOUND", sentence),
            VenueError::NotYourHall => ApiError::forbidden("NOT_YOUR_HALL", sentence),
            VenueError::NameTaken => ApiError::conflict("NAME_TAKEN", sentence),
            VenueError::VenueInUse => ApiError::conflict("VENUE_IN_USE", sentence),
            VenueError::HallInUse => ApiError::conflict("HALL_IN_USE", sentence),
            VenueError::Stale { revision } => {
                ApiError::conflict("STALE_REVISION", sentence).with("revision", revision)
            }
            VenueError::Text(invalid) => invalid.into(),
            VenueError::Template(invalid) => invalid.into(),
            VenueError::TooManyEvents(_) => ApiError::conflict("TOO_MANY_EVENTS", sentence),
            VenueError::Storage(error) => error.into(),
        }
    }
}

impl From<OrganiserFixed> for ApiError {
    fn from(fixed: OrganiserFixed) -> ApiError {
        ApiError::forbidden("ORGANISER_FIXED", fixed.to_string())
    }
}

impl From<CreateEventError> for ApiError {
    fn from(error: CreateEventError) -> ApiError {
        let sentence = error.to_string();
        match error {
            CreateEventError::HallNotFound | CreateEventError::VenueMismatch => {
                ApiError::bad_request("UNKNOWN_HALL", sentence)
            }
            CreateEventError::VenueNotFound => ApiError::bad_request("UNKNOWN_VENUE", sentence),
            CreateEventError::Artist(unknown) => unknown.into(),
            CreateEventError::Prices(invalid) => invalid.into(),
            CreateEventError::TicketTypes(invalid) => invalid.into(),
            CreateEventError::Presale(invalid) => invalid.into(),
            CreateEventError::Organiser(fixed) => fixed.into(),
            CreateEventError::Past(invalid) => invalid.into(),
            CreateEventError::KeyReused => key_reused(),
            CreateEventError::Storage(error) => error.into(),
        }
    }
}

impl From<EditEventError> for ApiError {
    fn from(error: EditEventError) -> ApiError {
        let sentence = error.to_string();
        match error {
            EditEventError::NotFound => ApiError::not_found("EVENT_NOT_FOUND", sentence),
            EditEventError::Artist(unknown) => unknown.into(),
            EditEventError::Rejected(rejection) => rejection.into(),
            EditEventError::NotDeletable => ApiError::conflict("EVENT_NOT_DELETABLE", sentence),
            EditEventError::HasBegun => ApiError::conflict("EVENT_OVER", sentence),
            EditEventError::NotYours(not_yours) => not_yours.into(),
            EditEventError::Organiser(fixed) => fixed.into(),
            EditEventError::Storage(error) => error.into(),
        }
    }
}

impl From<EditRejection> for ApiError {
    fn from(rejection: EditRejection) -> ApiError {
        let sentence = rejection.to_string();
        match rejection {
            EditRejection::Stale { revision } => {
                ApiError::conflict("STALE_REVISION", sentence).with("revision", revision)
            }
            EditRejection::Cancelled => ApiError::conflict("EVENT_CANCELLED", sentence),
            EditRejection::InventoryFixed(_) => ApiError::conflict("INVENTORY_FIXED", sentence),
            EditRejection::SaleStarted(_) => ApiError::conflict("SALE_STARTED", sentence),
            EditRejection::HasBegun => ApiError::conflict("EVENT_BEGUN", sentence),
            EditRejection::Past(invalid) => invalid.into(),
            EditRejection::CancelPolicy(invalid) => invalid.into(),
            EditRejection::RunningTime(invalid) => invalid.into(),
            EditRejection::Casting(invalid) => invalid.into(),
            EditRejection::Schedule(invalid) => invalid.into(),
            EditRejection::Presale(invalid) => invalid.into(),
        }
    }
}
