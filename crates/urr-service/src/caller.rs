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

/// What a process proves itself with to others, and what it accepts from them.
///
/// A credential follows from the secret of the caller's process, and is for one caller and one
/// receiver: who receives it cannot use it elsewhere. A receiver either has the same secret as its
/// callers and derives what it accepts, or has a list of accepted credentials and knows no secret but
/// its own.
#[derive(Clone, Debug)]
pub struct InternalCredentials {
    own: Secret,
    other: Option<Secret>,
    accepted: Arc<[AcceptedCredential]>,
    callers: Vec<Caller>,
}

/// One entry of the list of a receiver.
#[derive(Clone, Debug)]
pub struct AcceptedCredential {
    pub caller: Caller,
    pub credential: Secret,
}

impl InternalCredentials {
    /// Of processes that share one secret.
    pub fn from_root(root: &Secret) -> InternalCredentials {
        InternalCredentials {
            own: root.clone(),
            other: None,
            accepted: Arc::new([]),
            callers: Caller::ALL.to_vec(),
        }
    }

    /// Accepts callers with another secret too, while it is being changed.
    pub fn or_root(self, other: Option<Secret>) -> InternalCredentials {
        InternalCredentials { other, ..self }
    }

    /// Accepts these instead of what follows from the own secret. An empty list changes nothing.
    pub fn accepting(self, accepted: &[AcceptedCredential]) -> InternalCredentials {
        InternalCredentials { accepted: accepted.into(), ..self }
    }

    /// Knows these callers and no others.
    pub fn only_from(&self, callers: Vec<Caller>) -> InternalCredentials {
        InternalCredentials { callers, ..self.clone() }
    }

    /// What `caller` proves itself with to the service `receiver`.
    pub fn for_call(&self, caller: Caller, receiver: &str) -> Secret {
        credential(&self.own, caller, receiver)
    }

    /// What the service `receiver` accepts.
    pub(crate) fn accepted_by(&self, receiver: &str) -> AcceptedCredentials {
        let mut accepted = Vec::new();
        for caller in self.callers.iter().copied() {
            let listed = self.accepted.iter().filter(|entry| entry.caller == caller);
            accepted.extend(listed.cloned());
            // An operator who has the secret of a process may always talk to it.
            if self.accepted.is_empty() || caller == Caller::Operator {
                let roots = std::iter::once(&self.own).chain(&self.other);
                accepted.extend(roots.map(|root| AcceptedCredential {
                    caller,
                    credential: credential(root, caller, receiver),
                }));
            }
        }
        AcceptedCredentials(accepted.into())
    }
}

/// What one service accepts. A caller may have several, while its secret is being changed.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedCredentials(Arc<[AcceptedCredential]>);

impl AcceptedCredentials {
    /// The caller that the headers prove; `None` if they claim none.
    fn verify(&self, headers: &HeaderMap) -> Result<Option<Caller>, InvalidCallerCredential> {
        let claimed = match (only(headers, &CALLER)?, only(headers, &CREDENTIAL)?) {
            (None, None) => return Ok(None),
            (Some(name), Some(secret)) => (name, secret),
            (_, _) => return Err(InvalidCallerCredential),
        };
        let caller: Caller = claimed.0.parse().map_err(|_| InvalidCallerCredential)?;
        let mut known = self.0.iter().filter(|entry| entry.caller == caller);
        match known.any(|entry| entry.credential.matches(claimed.1)) {
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

fn credential(root: &Secret, caller: Caller, receiver: &str) -> Secret {
    root.derive(&format!("urr-internal-call:{}:{receiver}", caller.as_str()))
}

/// For the network listeners of services: replaces the credential headers by the `Caller` they
/// prove. Nothing behind it sees a credential.
pub(crate) fn verify_caller(
    credentials: &AcceptedCredentials,
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

    /// Whom a receiver takes the bearer of a credential for.
    fn taken_for(
        receiver: &AcceptedCredentials,
        claimed: Caller,
        secret: &Secret,
    ) -> Option<Caller> {
        let sent = headers(&[(CALLER, claimed.as_str()), (CREDENTIAL, secret.expose())]);
        receiver.verify(&sent).ok().flatten()
    }

    #[test]
    fn a_credential_is_the_hmac_of_caller_and_receiver() {
        // printf urr-internal-call:gateway:ticket | openssl dgst -sha256 -hmac root
        let expected = "0c2860325831e7c455d0953a36e50701d3b80fc6125edac4d929932315cc94de";
        assert!(credentials().for_call(Caller::Gateway, "ticket").matches(expected));
    }

    #[test]
    fn every_caller_is_found_by_its_name() {
        for caller in Caller::ALL {
            assert_eq!(caller.as_str().parse(), Ok(caller));
        }
        assert!("Gateway".parse::<Caller>().is_err());
    }

    #[test]
    fn a_credential_proves_one_caller_to_one_receiver() {
        let all = credentials();
        let ticket = all.accepted_by("ticket");
        for claimed in Caller::ALL {
            for owner in Caller::ALL {
                let verified = taken_for(&ticket, claimed, &all.for_call(owner, "ticket"));
                assert_eq!(verified, (claimed == owner).then_some(owner));
            }
            assert_eq!(taken_for(&ticket, claimed, &all.for_call(claimed, "payment")), None);
        }
    }

    #[test]
    fn a_receiver_knows_only_the_callers_it_is_told_of() {
        let all = credentials();
        let stats = all.only_from(vec![Caller::Gateway]).accepted_by("stats");
        let from = |caller| taken_for(&stats, caller, &all.for_call(caller, "stats"));
        assert_eq!(from(Caller::Gateway), Some(Caller::Gateway));
        assert_eq!(from(Caller::Mail), None);
    }

    #[test]
    fn a_receiver_with_a_list_cannot_speak_for_its_callers() {
        let [gateway, ticket] =
            ["of the gateway", "of tickets"].map(|root| Secret::new(format!("secret {root}")));
        let gateway = InternalCredentials::from_root(&gateway);
        let accepted = AcceptedCredential {
            caller: Caller::Gateway,
            credential: gateway.for_call(Caller::Gateway, "ticket"),
        };
        let process = InternalCredentials::from_root(&ticket).accepting(&[accepted]);
        let receiver = process.accepted_by("ticket");
        let from = |root: &InternalCredentials, caller| {
            taken_for(&receiver, caller, &root.for_call(caller, "ticket"))
        };
        assert_eq!(from(&gateway, Caller::Gateway), Some(Caller::Gateway));
        // Its own secret makes nobody but an operator, and the gateway's is for the gateway alone.
        assert_eq!(from(&process, Caller::Gateway), None);
        assert_eq!(from(&gateway, Caller::Payment), None);
        assert_eq!(from(&gateway, Caller::Operator), None);
        assert_eq!(from(&process, Caller::Operator), Some(Caller::Operator));
    }

    #[test]
    fn two_secrets_are_valid_while_one_replaces_the_other() {
        let [old, new] = ["old", "new"].map(Secret::new);
        let by = |root: &Secret| {
            let callers = InternalCredentials::from_root(root);
            callers.for_call(Caller::Gateway, "ticket")
        };
        let taken = |receiver: &InternalCredentials, root: &Secret| {
            let receiver = receiver.accepted_by("ticket");
            taken_for(&receiver, Caller::Gateway, &by(root)).is_some()
        };
        let before = InternalCredentials::from_root(&old).or_root(Some(new.clone()));
        let after = InternalCredentials::from_root(&new).or_root(Some(old.clone()));
        let done = InternalCredentials::from_root(&new);
        let entry = |root| AcceptedCredential { caller: Caller::Gateway, credential: by(root) };
        let listed = done.clone().accepting(&[entry(&old), entry(&new)]);
        for both in [before, after, listed] {
            assert!(taken(&both, &old) && taken(&both, &new));
        }
        assert!(taken(&done, &new) && !taken(&done, &old));
    }

    #[test]
    fn half_double_and_unknown_claims_are_refused_and_silence_is_nobody() {
        let all = credentials().accepted_by("ticket");
        let good = credentials().for_call(Caller::Queue, "ticket");
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
