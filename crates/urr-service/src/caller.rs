//! Which of our own programs is calling, and how it proves that over the network.
//!
//! Every caller has a credential of its own, so that a leaked one tells where it leaked and cannot
//! be used in another caller's name. Inside a process the proof is the `Caller` value
//! itself: it is put into the request as a typed extension, which no byte from a network can make.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName};
use urr_kernel::{Secret, named_enum};

use crate::ApiError;

pub(crate) const CALLER: HeaderName = HeaderName::from_static("x-urr-caller");
pub(crate) const CREDENTIAL: HeaderName = HeaderName::from_static("x-urr-credential");

/// One of our own programs, as the maker of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    Gateway,
    Auth,
    Catalog,
    Queue,
    Ticket,
    Payment,
    Stats,
    Mail,
    Community,
    Worker,
    Operator,
}

named_enum!(Caller {
    Gateway => "gateway",
    Auth => "auth",
    Catalog => "catalog",
    Queue => "queue",
    Ticket => "ticket",
    Payment => "payment",
    Stats => "stats",
    Mail => "mail",
    Community => "community",
    Worker => "worker",
    Operator => "operator",
});

/// The credentials of all callers, derived from one root secret that the processes share.
#[derive(Clone, Debug)]
pub struct InternalCredentials(Arc<[Secret; Caller::ALL.len()]>);

impl InternalCredentials {
    pub fn from_root(root: &Secret) -> InternalCredentials {
        InternalCredentials(Arc::new(Caller::ALL.map(|caller| credential(root, caller))))
    }

    /// What `caller` proves itself with.
    pub fn for_caller(&self, caller: Caller) -> Secret {
        self.of(caller).clone()
    }

    fn of(&self, caller: Caller) -> &Secret {
        let position = Caller::ALL.iter().position(|other| *other == caller);
        &self.0[position.expect("ALL names every caller")]
    }

    /// The caller that the headers prove; `None` if they claim none.
    fn verify(&self, headers: &HeaderMap) -> Result<Option<Caller>, InvalidCallerCredential> {
        let claimed = match (only(headers, &CALLER)?, only(headers, &CREDENTIAL)?) {
            (None, None) => return Ok(None),
            (Some(name), Some(secret)) => (name, secret),
            (_, _) => return Err(InvalidCallerCredential),
        };
        let caller: Caller = claimed.0.parse().map_err(|_| InvalidCallerCredential)?;
        match self.of(caller).matches(claimed.1) {
            true => Ok(Some(caller)),
            false => Err(InvalidCallerCredential),
        }
    }
}

struct InvalidCallerCredential;

/// The only value of a header. A repeated header is refused, because two programs could read
/// different values of it.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, InvalidCallerCredential> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| InvalidCallerCredential),
        (Some(_), Some(_)) => Err(InvalidCallerCredential),
    }
}

fn credential(root: &Secret, caller: Caller) -> Secret {
    root.derive(&format!("urr-internal-caller:{}", caller.as_str()))
}

/// For the network listeners of services: replaces the credential headers by the `Caller` they
/// prove. Nothing behind it sees a credential.
pub(crate) fn verify_caller(
    credentials: &InternalCredentials,
    request: &mut Request,
) -> Result<(), ApiError> {
    let verified = credentials.verify(request.headers());
    let claimed = request.headers_mut().remove(CALLER);
    request.headers_mut().remove(CREDENTIAL);
    match verified {
        Ok(None) => Ok(()),
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller);
            Ok(())
        }
        Err(InvalidCallerCredential) => {
            let peer = peer(request.extensions());
            tracing::warn!(?claimed, ?peer, "a call with an invalid internal credential");
            Err(ApiError::forbidden(
                "INVALID_CREDENTIAL",
                "The internal credential of this call is not valid.",
            ))
        }
    }
}

/// The address of the other end of the connection, if the call came over one.
pub(crate) fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| *address)
}

/// Extractor: lets only our own programs in.
#[derive(Clone, Copy, Debug)]
pub struct Internal(Caller);

impl Internal {
    pub fn caller(self) -> Caller {
        self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Internal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Internal, ApiError> {
        caller_of(&parts.extensions).map(Internal)
    }
}

fn caller_of(extensions: &Extensions) -> Result<Caller, ApiError> {
    extensions.get::<Caller>().copied().ok_or_else(|| {
        ApiError::unauthorized(
            "INTERNAL_CREDENTIAL_REQUIRED",
            "This address is for internal calls only.",
        )
    })
}

/// Refuses a program of ours that may not make a call.
pub(crate) fn check_allowed(allowed: &[Caller], caller: Caller) -> Result<(), ApiError> {
    if allowed.contains(&caller) {
        return Ok(());
    }
    let sentence = format!("The {caller} service may not make this call.");
    Err(ApiError::forbidden("CALLER_NOT_ALLOWED", sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> InternalCredentials {
        InternalCredentials::from_root(&Secret::new("root"))
    }

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_credential_is_the_hmac_of_the_name() {
        // printf urr-internal-caller:gateway | openssl dgst -sha256 -hmac root
        let expected = "fc752a498cd0e2ec9d45a42e28c10ae50d26396cbcefe3e9a0ee177fe2a49ea2";
        assert!(credentials().for_caller(Caller::Gateway).matches(expected));
    }

    #[test]
    fn every_caller_is_found_by_its_name() {
        for caller in Caller::ALL {
            assert_eq!(caller.as_str().parse(), Ok(caller));
        }
        assert!("Gateway".parse::<Caller>().is_err());
    }

    #[test]
    fn a_credential_proves_one_caller_only() {
        let all = credentials();
        for claimed in Caller::ALL {
            for owner in Caller::ALL {
                let secret = all.for_caller(owner);
                let sent = headers(&[(CALLER, claimed.as_str()), (CREDENTIAL, secret.expose())]);
                let verified = all.verify(&sent).ok().flatten();
                assert_eq!(verified, (claimed == owner).then_some(owner));
            }
        }
    }

    #[test]
    fn half_double_and_unknown_claims_are_refused_and_silence_is_nobody() {
        let all = credentials();
        let good = all.for_caller(Caller::Queue);
        let good = good.expose();
        for refused in [
            headers(&[(CALLER, "queue")]),
            headers(&[(CREDENTIAL, good)]),
            headers(&[(CALLER, "nobody"), (CREDENTIAL, good)]),
            headers(&[(CALLER, "queue"), (CALLER, "auth"), (CREDENTIAL, good)]),
            headers(&[(CALLER, "queue"), (CREDENTIAL, good), (CREDENTIAL, "x")]),
        ] {
            assert!(all.verify(&refused).is_err(), "{refused:?}");
        }
        assert!(matches!(all.verify(&HeaderMap::new()), Ok(None)));
    }
}
