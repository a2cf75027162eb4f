//! Whether a visitor who wants to book has waited (G5).
//!
//! The token says for whom and for which event. The user is compared here (anonymous visitors have
//! been turned away already). The event is compared here where the path names it, and by the
//! ticket service, which is told in `x-urr-entry-event`, where the body does (D-5).
//!
//! Whether the turn is over already, only the waiting room knows: before it books, the ticket
//! service asks it about the slot of the token, which it is told in `x-urr-entry-slot`.

use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use urr_kernel::Uuid;
use urr_service::ApiError;
use urr_service::token::{ENTRY, EntryClaims, read_vouched};

use crate::Gateway;
use crate::routes::Policy;

const ENTRY_TOKEN: HeaderName = HeaderName::from_static("x-queue-entry-token");
const TRUSTED_EDGE: HeaderName = HeaderName::from_static("x-cloudfront-verified");
const ENTRY_EVENT: HeaderName = HeaderName::from_static("x-urr-entry-event");
const ENTRY_SLOT: HeaderName = HeaderName::from_static("x-urr-entry-slot");
/// The configuration allows no longer life.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Paths below it name the event whose seats they show.
const SEATS_OF_EVENT: &str = "/api/seats/events/";

/// Lets only those book who may enter the event.
pub fn check_entry(
    gateway: &Gateway,
    policy: Policy,
    user_id: Option<Uuid>,
    request: &mut Request,
) -> Result<(), ApiError> {
    let edge = request.headers_mut().remove(TRUSTED_EDGE);
    if policy != Policy::Admitted {
        return Ok(());
    }
    let token = token(request.headers())?;
    let is_from_edge = match (&gateway.settings.trusted_edge_secret, edge) {
        (Some(secret), Some(told)) => told.to_str().is_ok_and(|told| secret.matches(told)),
        (_, _) => false,
    };
    let entry = read(gateway, token, is_from_edge).ok_or_else(invalid)?;
    if Some(entry.user_id) != user_id {
        return Err(invalid());
    }
    if event_in(request.uri().path()).is_some_and(|event| event != entry.event_id) {
        return Err(other_event());
    }
    let headers = request.headers_mut();
    headers.remove(ENTRY_TOKEN);
    headers.insert(ENTRY_EVENT, id_value(entry.event_id));
    headers.insert(ENTRY_SLOT, id_value(entry.slot_id));
    Ok(())
}

fn id_value(id: Uuid) -> HeaderValue {
    HeaderValue::from_str(&id.to_string()).expect("a UUID is ASCII")
}

/// Who may enter what.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    event_id: Uuid,
    user_id: Uuid,
    slot_id: Uuid,
}

fn token(headers: &HeaderMap) -> Result<&str, ApiError> {
    let mut values = headers.get_all(ENTRY_TOKEN).iter();
    match (values.next(), values.next()) {
        (None, _) => Err(required()),
        (Some(value), None) if value.is_empty() => Err(required()),
        (Some(value), None) => value.to_str().map_err(|_| invalid()),
        (Some(_), Some(_)) => Err(invalid()),
    }
}

/// What a token says. Our own edge may have verified the signature already; it skips that and
/// nothing else: whom it is for, what it is for and until when are checked as ever (E-5).
fn read(gateway: &Gateway, token: &str, is_from_edge: bool) -> Option<Entry> {
    let now = gateway.clock.now();
    let verified = match is_from_edge {
        true => read_vouched::<EntryClaims>(ENTRY, token, now),
        false => gateway.settings.entry_key.verify::<EntryClaims>(ENTRY, token, now),
    };
    let verified = verified.ok()?;
    // A turn lasts minutes. Whatever signed a token for longer did so by mistake.
    if verified.expires_at > verified.issued_at + LIFETIME_MAX {
        return None;
    }
    let event_id = verified.subject.parse().ok()?;
    Some(Entry { event_id, user_id: verified.claims.user_id, slot_id: verified.id })
}

/// The event that a path names.
fn event_in(path: &str) -> Option<Uuid> {
    let rest = path.strip_prefix(SEATS_OF_EVENT)?;
    let segment = rest.split('/').next()?;
    // A text that is no id equals no event's id.
    Some(segment.parse().unwrap_or(Uuid::nil()))
}

fn required() -> ApiError {
    let sentence = "Please join the queue first.";
    ApiError::forbidden("ENTRY_TOKEN_REQUIRED", sentence).with("redirectTo", "/queue")
}

fn invalid() -> ApiError {
    let sentence = "Your turn is over or was never yours. Please join the queue again.";
    ApiError::forbidden("ENTRY_TOKEN_INVALID", sentence).with("redirectTo", "/queue")
}

fn other_event() -> ApiError {
    let sentence = "You have been admitted to another event. Please join the queue of this one.";
    ApiError::forbidden("ENTRY_TOKEN_OTHER_EVENT", sentence).with("redirectTo", "/queue")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_name_its_event() {
        let id = Uuid::from_u128(7);
        assert_eq!(event_in(&format!("/api/seats/events/{id}")), Some(id));
        assert_eq!(event_in(&format!("/api/seats/events/{id}/stream")), Some(id));
        assert_eq!(event_in("/api/seats/events/x"), Some(Uuid::nil()));
        assert_eq!(event_in("/api/seats/reserve"), None);
    }
}
