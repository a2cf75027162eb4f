//! Whether a visitor who wants to book has waited (G5).
//!
//! The token says for whom and for which event. The user is compared here (anonymous visitors have
//! been turned away already). The event is compared here where the path names it, and by the
//! ticket service, which is told in `x-urr-entry-event`, where the body does (D-5).

use axum::extract::Request;
use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use urr_kernel::{Timestamp, Uuid};
use urr_service::ApiError;
use urr_service::token::{ENTRY, EntryClaims};

use crate::Gateway;
use crate::routes::Policy;

const ENTRY_TOKEN: HeaderName = HeaderName::from_static("x-queue-entry-token");
const TRUSTED_EDGE: HeaderName = HeaderName::from_static("x-cloudfront-verified");
const ENTRY_EVENT: HeaderName = HeaderName::from_static("x-urr-entry-event");
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
    let now = gateway.clock.now();
    let entry = match is_from_edge {
        true => read_unsigned(token, now),
        false => verify(gateway, token, now),
    };
    let entry = entry.ok_or_else(invalid)?;
    if Some(entry.user_id) != user_id {
        return Err(invalid());
    }
    if event_in(request.uri().path()).is_some_and(|event| event != entry.event_id) {
        return Err(other_event());
    }
    let event = HeaderValue::from_str(&entry.event_id.to_string()).expect("a UUID is ASCII");
    let headers = request.headers_mut();
    headers.remove(ENTRY_TOKEN);
    headers.insert(ENTRY_EVENT, event);
    Ok(())
}

/// Who may enter what.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    event_id: Uuid,
    user_id: Uuid,
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

fn verify(gateway: &Gateway, token: &str, now: Timestamp) -> Option<Entry> {
    let verified = gateway.settings.entry_key.verify::<EntryClaims>(ENTRY, token, now).ok()?;
    Some(Entry { event_id: verified.subject.parse().ok()?, user_id: verified.claims.user_id })
}

/// The token as our edge has verified it already. It skips the signature and nothing else: whom it
/// is for, what it is for and until when are checked as ever (E-5).
fn read_unsigned(token: &str, now: Timestamp) -> Option<Entry> {
    #[derive(Deserialize)]
    struct Claims {
        aud: String,
        sub: Uuid,
        uid: Uuid,
        exp: i64,
    }
    let mut parts = token.split('.');
    let (_header, payload, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    let in_force = claims.aud == ENTRY.audience && now.as_second() < claims.exp;
    in_force.then_some(Entry { event_id: claims.sub, user_id: claims.uid })
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
    use serde_json::json;

    use super::*;

    fn unsigned(payload: &serde_json::Value) -> String {
        format!("e30.{}.x", URL_SAFE_NO_PAD.encode(payload.to_string()))
    }

    #[test]
    fn e_5_without_a_signature_everything_else_still_counts() {
        let now = Timestamp::from_second(1_000).unwrap();
        let (event, user) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let good = json!({ "aud": "urr-booking", "sub": event, "uid": user, "exp": 1_001 });
        let entry = Entry { event_id: event, user_id: user };
        assert_eq!(read_unsigned(&unsigned(&good), now), Some(entry));
        for (field, value) in [
            ("aud", json!("urr-api")),
            ("sub", json!("all")),
            ("uid", json!(null)),
            ("exp", json!(1_000)),
            ("exp", json!("never")),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert_eq!(read_unsigned(&unsigned(&bad), now), None, "{bad}");
        }
        for bad in ["", ".", "..", "a.b", "e30.e30.x.x", "e30.!.x"] {
            assert_eq!(read_unsigned(bad, now), None, "{bad}");
        }
    }

    #[test]
    fn a_path_may_name_its_event() {
        let id = Uuid::from_u128(7);
        assert_eq!(event_in(&format!("/api/seats/events/{id}")), Some(id));
        assert_eq!(event_in(&format!("/api/seats/events/{id}/stream")), Some(id));
        assert_eq!(event_in("/api/seats/events/x"), Some(Uuid::nil()));
        assert_eq!(event_in("/api/seats/reserve"), None);
    }
}
