//! Typed clients: one per service, one method per internal call. A client is a cheap clone over an
//! [`Upstream`], which has the deadline, retries and breaker.

mod auth;
mod payment;
mod queue;
mod ticket;

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use urr_kernel::CallContext;
use urr_service::{ApiError, Upstream, UpstreamError};

pub use self::auth::AuthClient;
pub use self::payment::PaymentClient;
pub use self::queue::QueueClient;
pub use self::ticket::{PayableRef, TicketClient};
use crate::internal::InternalCall;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service says no, and will say so again.
    #[error("{target} refused with {code}")]
    Refused {
        target: &'static str,
        code: String,
        #[source]
        source: UpstreamError,
    },
    /// There is no answer that can be relied on: the service may or may not have done it.
    #[error("{target} did not answer")]
    NoAnswer {
        target: &'static str,
        #[source]
        source: UpstreamError,
    },
}

impl ClientError {
    fn new(target: &'static str, source: UpstreamError) -> ClientError {
        // A refusal of the call itself (our credential, our path, our pace) says nothing about what
        // was asked for.
        let refused = source.refusal().filter(|refusal| {
            let is_about_the_call = matches!(refusal.status.as_u16(), 401 | 408 | 429)
                || matches!(refusal.code.as_str(), "" | "NOT_FOUND" | "CALLER_NOT_ALLOWED");
            refusal.status.is_client_error() && !is_about_the_call
        });
        match refused.map(|refusal| refusal.code.clone()) {
            Some(code) => ClientError::Refused { target, code, source },
            None => ClientError::NoAnswer { target, source },
        }
    }

    /// The code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Refused { code, .. } => Some(code),
            ClientError::NoAnswer { .. } => None,
        }
    }

    /// Whether the service says that what was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        match self {
            ClientError::Refused { source, .. } => {
                source.refusal().is_some_and(|refusal| refusal.status.as_u16() == 404)
            }
            ClientError::NoAnswer { .. } => false,
        }
    }

    pub fn source(&self) -> &UpstreamError {
        match self {
            ClientError::Refused { source, .. } | ClientError::NoAnswer { source, .. } => source,
        }
    }

    pub fn into_source(self) -> UpstreamError {
        match self {
            ClientError::Refused { source, .. } | ClientError::NoAnswer { source, .. } => source,
        }
    }
}

impl From<ClientError> for ApiError {
    fn from(error: ClientError) -> ApiError {
        error.into_source().into()
    }
}

/// The answer to what was asked for, or none if the service says that there is no such thing.
fn found<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Err(error) if error.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

async fn get<T: DeserializeOwned>(
    upstream: &Upstream,
    call: &InternalCall,
    path: &str,
    context: &CallContext,
) -> Result<T, ClientError> {
    let answer = upstream.get_json(path, context, call.policy()).await;
    answer.map_err(|error| ClientError::new(upstream.target(), error))
}

async fn post<T: DeserializeOwned>(
    upstream: &Upstream,
    call: &InternalCall,
    path: &str,
    body: &impl Serialize,
    context: &CallContext,
) -> Result<T, ClientError> {
    let answer = upstream.post_json(path, body, context, call.policy()).await;
    answer.map_err(|error| ClientError::new(upstream.target(), error))
}

/// Appends a query parameter whose value needs no escaping.
fn with_query(path: &str, name: &str, value: Option<impl Display>) -> String {
    match value {
        Some(value) => format!("{path}?{name}={value}"),
        None => path.to_owned(),
    }
}
