//! The user of a request, as the gateway says in three headers. From any other caller these headers
//! are refused.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use urr_kernel::percent;
use urr_storage::storable_enum;
use uuid::Uuid;

use crate::ApiError;
use crate::caller::{Caller, peer};

const USER_ID: HeaderName = HeaderName::from_static("x-user-id");
const USER_EMAIL: HeaderName = HeaderName::from_static("x-user-email");
const USER_ROLE: HeaderName = HeaderName::from_static("x-user-role");

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserRole {
    User,
    /// Checks tickets in at the events they are assigned to.
    Staff,
    /// Has events of their own.
    Organiser,
    /// Reads, resends mail, refunds up to a limit.
    Support,
    Admin,
}

storable_enum!(UserRole {
    User => "user",
    Staff => "staff",
    Organiser => "organiser",
    Support => "support",
    Admin => "admin",
});

/// A user whose token the gateway has verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user_id: Uuid,
    pub email: Option<String>,
    pub role: UserRole,
}

/// Identity headers that a gateway of our version never writes. The request is refused: without a
/// role that we know nobody can tell what the user may do.
#[derive(Debug, thiserror::Error)]
#[error("the gateway sent no {0} header, or one that cannot be read")]
struct MalformedIdentity(HeaderName);

impl From<MalformedIdentity> for ApiError {
    fn from(error: MalformedIdentity) -> ApiError {
        let sentence = "Who you are cannot be read. Please log in again.";
        ApiError::forbidden("INVALID_IDENTITY", sentence).caused_by(error)
    }
}

/// The headers of an identity, built once and used for many requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityHeaders {
    user_id: HeaderValue,
    role: HeaderValue,
    email: Option<HeaderValue>,
}

impl IdentityHeaders {
    /// Writes the identity into a request, over whatever was there. Only the gateway has a use for
    /// this.
    pub fn write(self, headers: &mut HeaderMap) {
        headers.insert(USER_ID, self.user_id);
        headers.insert(USER_ROLE, self.role);
        match self.email {
            Some(email) => headers.insert(USER_EMAIL, email),
            None => headers.remove(USER_EMAIL),
        };
    }
}

impl Identity {
    /// Writes the identity into one request.
    pub fn write(&self, headers: &mut HeaderMap) {
        self.headers().write(headers);
    }

    pub fn headers(&self) -> IdentityHeaders {
        let ascii = |text: &str| HeaderValue::from_str(text).expect("the text is printable ASCII");
        IdentityHeaders {
            user_id: ascii(&self.user_id.to_string()),
            role: HeaderValue::from_static(self.role.as_str()),
            email: self
                .email
                .as_deref()
                .map(|email| ascii(&percent::encode_except(email, b"-._~@+"))),
        }
    }

    fn read(headers: &HeaderMap) -> Result<Identity, MalformedIdentity> {
        let text = |name: HeaderName| match headers.get(&name).map(HeaderValue::to_str) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(text)),
            Some(Err(_)) => Err(MalformedIdentity(name)),
        };
        let user_id = text(USER_ID)?.and_then(|id| id.parse().ok());
        let user_id = user_id.ok_or(MalformedIdentity(USER_ID))?;
        let role = text(USER_ROLE)?.and_then(|role| role.parse().ok());
        let role = role.ok_or(MalformedIdentity(USER_ROLE))?;
        let email = text(USER_EMAIL)?.map(|text| percent::decode(text).ok_or(USER_EMAIL));
        let email = email.transpose().map_err(MalformedIdentity)?;
        Ok(Identity { user_id, email, role })
    }
}

/// Reads the identity headers if the gateway wrote them. From anybody else they are an attempt to
/// impersonate a user, or a call that bypassed the gateway: refused and logged.
fn identify(parts: &Parts) -> Result<Option<Identity>, ApiError> {
    let claims = [USER_ID, USER_EMAIL, USER_ROLE];
    if !claims.iter().any(|name| parts.headers.contains_key(name)) {
        return Ok(None);
    }
    let caller = parts.extensions.get::<Caller>().copied();
    if caller == Some(Caller::Gateway) {
        return Ok(Some(Identity::read(&parts.headers)?));
    }
    let peer = peer(&parts.extensions);
    tracing::warn!(?caller, ?peer, "identity headers that the gateway did not send");
    Err(ApiError::forbidden(
        "UNTRUSTED_IDENTITY",
        "Identity headers are accepted from the gateway only.",
    ))
}

/// Extractor: the user, or nobody.
#[derive(Clone, Debug)]
pub struct MaybeUser(pub Option<Identity>);

/// Extractor: the user; 401 if nobody is logged in.
#[derive(Clone, Debug)]
pub struct User(pub Identity);

impl<S: Sync> FromRequestParts<S> for MaybeUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<MaybeUser, ApiError> {
        identify(parts).map(MaybeUser)
    }
}

impl<S: Sync> FromRequestParts<S> for User {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<User, ApiError> {
        identify(parts)?.map(User).ok_or_else(|| {
            ApiError::unauthorized("AUTHENTICATION_REQUIRED", "Please log in first.")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mina() -> Identity {
        Identity {
            user_id: Uuid::from_u128(7),
            email: Some("민아 100%@예매.kr".to_owned()),
            role: UserRole::Admin,
        }
    }

    fn parts(headers: HeaderMap, caller: Option<Caller>) -> Parts {
        let (mut parts, ()) = axum::http::Request::new(()).into_parts();
        parts.headers = headers;
        if let Some(caller) = caller {
            parts.extensions.insert(caller);
        }
        parts
    }

    #[test]
    fn an_identity_survives_its_headers_even_if_the_email_is_korean() {
        let mut headers = HeaderMap::new();
        mina().write(&mut headers);
        let read = identify(&parts(headers, Some(Caller::Gateway))).unwrap();
        assert_eq!(read, Some(mina()));
    }

    #[test]
    fn identity_headers_of_anyone_but_the_gateway_are_refused() {
        let mut headers = HeaderMap::new();
        mina().write(&mut headers);
        for caller in [None, Some(Caller::Payment), Some(Caller::Operator)] {
            let refused = identify(&parts(headers.clone(), caller)).unwrap_err();
            assert_eq!(refused.code(), "UNTRUSTED_IDENTITY");
        }
        // A lone role header is an attempt as well.
        let mut role_only = HeaderMap::new();
        role_only.insert(USER_ROLE, HeaderValue::from_static("admin"));
        assert!(identify(&parts(role_only, None)).is_err());
    }

    #[test]
    fn without_identity_headers_there_is_nobody() {
        for caller in [None, Some(Caller::Gateway), Some(Caller::Stats)] {
            assert_eq!(identify(&parts(HeaderMap::new(), caller)).unwrap(), None);
        }
    }

    #[test]
    fn an_identity_without_a_role_that_is_known_is_refused() {
        let mut whole = HeaderMap::new();
        mina().write(&mut whole);
        for (name, value) in [
            (USER_ROLE, None),
            (USER_ROLE, Some("owner")),
            (USER_ROLE, Some("")),
            (USER_ROLE, Some("Admin")),
            (USER_ID, None),
            (USER_ID, Some("7")),
            (USER_EMAIL, Some("%")),
        ] {
            let mut headers = whole.clone();
            headers.remove(&name);
            headers.extend(value.map(|value| (name.clone(), HeaderValue::from_static(value))));
            let refused = identify(&parts(headers, Some(Caller::Gateway))).unwrap_err();
            let outcome = (refused.status().as_u16(), refused.code());
            assert_eq!(outcome, (403, "INVALID_IDENTITY"), "{name} {value:?}");
        }
        // Control: with nothing taken away it is read.
        assert_eq!(identify(&parts(whole, Some(Caller::Gateway))).unwrap(), Some(mina()));
    }

    #[test]
    fn writing_an_identity_removes_the_one_that_was_there() {
        let mut headers = HeaderMap::new();
        mina().write(&mut headers);
        let nameless = Identity { email: None, role: UserRole::User, ..mina() };
        nameless.write(&mut headers);
        let read = identify(&parts(headers, Some(Caller::Gateway))).unwrap();
        assert_eq!(read, Some(nameless));
    }
}
