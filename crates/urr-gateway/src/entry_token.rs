//! Checks the entry token of the waiting room on routes that book (G5).
//!
//! The token names a user and an event. The user is compared here. The event is compared here if the
//! path names it; otherwise the ticket service compares it with the body and gets the token's event
//! in `x-urr-entry-event` (D-5).
//!
//! Only the waiting room knows whether the slot has ended early, so the ticket service asks it about
//! the slot in `x-urr-entry-slot` before it books.

use std::time::Duration;

use axum::extract::Request;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use urr_kernel::Uuid;
use urr_service::ApiError;
use urr_service::token::{ENTRY, EntryClaims, read_vouched};

use crate::Gateway;
use crate::headers::single_value;
use crate::routes::Policy;

const ENTRY_TOKEN: HeaderName = HeaderName::from_static("x-queue-entry-token");
const TRUSTED_EDGE: HeaderName = HeaderName::from_static("x-cloudfront-verified");
const ENTRY_EVENT: HeaderName = HeaderName::from_static("x-urr-entry-event");
const ENTRY_SLOT: HeaderName = HeaderName::from_static("x-urr-entry-slot");
/// The configuration allows no longer lifetime.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Paths with this prefix name their event next.
const SEATS_OF_EVENT: &str = "/api/seats/events/";

/// Requires a valid entry token where the policy does, and writes its event and slot for the service.
pub fn check(
    gateway: &Gateway,
    policy: Policy,
    user_id: Option<Uuid>,
    request: &mut Request,
) -> Result<(), ApiError> {
    let edge = request.headers_mut().remove(TRUSTED_EDGE);
    if policy != Policy::Admitted {
        return Ok(());
    }
    let token = read_token(request.headers())?;
    let is_from_edge = match (&gateway.settings.trusted_edge_secret, edge) {
        (Some(secret), Some(sent)) => sent.to_str().is_ok_and(|sent| secret.matches(sent)),
        (_, _) => false,
    };
    let grant = verify_token(gateway, token, is_from_edge).ok_or_else(invalid)?;
    if Some(grant.user_id) != user_id {
        return Err(invalid());
    }
    if event_in(request.uri().path()).is_some_and(|event| event != grant.event_id) {
        return Err(other_event());
    }
    let headers = request.headers_mut();
    headers.remove(ENTRY_TOKEN);
    headers.insert(ENTRY_EVENT, id_value(grant.event_id));
    headers.insert(ENTRY_SLOT, id_value(grant.slot_id));
    Ok(())
}

fn id_value(id: Uuid) -> HeaderValue {
    HeaderValue::from_str(&id.to_string()).expect("a UUID is ASCII")
}

/// What a verified token grants.
#[derive(Debug, PartialEq, Eq)]
struct EntryGrant {
    event_id: Uuid,
    user_id: Uuid,
    slot_id: Uuid,
}

fn read_token(headers: &HeaderMap) -> Result<&str, ApiError> {
    let token = single_value(headers, ENTRY_TOKEN).map_err(|_| invalid())?;
    token.filter(|token| !token.is_empty()).ok_or_else(required)
}

/// Verifies a token. Our own edge may have verified the signature; then only the signature is
/// skipped, and user, event and expiry are checked as usual (E-5).
fn verify_token(gateway: &Gateway, token: &str, is_from_edge: bool) -> Option<EntryGrant> {
    let now = gateway.clock.now();
    let verified = match is_from_edge {
        true => read_vouched::<EntryClaims>(ENTRY, token, now),
        false => gateway.settings.entry_key.verify::<EntryClaims>(ENTRY, token, now),
    };
    let verified = verified.ok()?;
    // A slot lasts minutes: a token for longer was signed by mistake.
    if verified.expires_at > verified.issued_at + LIFETIME_MAX {
        return None;
    }
    let event_id = verified.subject.parse().ok()?;
    Some(EntryGrant { event_id, user_id: verified.claims.user_id, slot_id: verified.id })
}

/// The event that a path names.
fn event_in(path: &str) -> Option<Uuid> {
    let rest = path.strip_prefix(SEATS_OF_EVENT)?;
    let segment = rest.split('/').next()?;
    // A segment that is no id must not match any event.
    Some(segment.parse().unwrap_or(Uuid::nil()))
}

fn required() -> ApiError {
    rejection("ENTRY_TOKEN_REQUIRED", "Please join the queue first.")
}

fn invalid() -> ApiError {
    let sentence = "Your entry token is not valid or has expired. Please join the queue again.";
    rejection("ENTRY_TOKEN_INVALID", sentence)
}

fn other_event() -> ApiError {
    let sentence = "You have been admitted to another event. Please join the queue of this one.";
    rejection("ENTRY_TOKEN_OTHER_EVENT", sentence)
}

fn rejection(code: &'static str, sentence: &'static str) -> ApiError {
    ApiError::forbidden(code, sentence).with("redirectTo", "/queue")
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
