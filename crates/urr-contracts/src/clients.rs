//! The client of a service: it makes the calls to that service and no others. It is a cheap clone
//! over an [`Upstream`], which has the deadline, retries and breaker.

use std::fmt;
use std::marker::PhantomData;

use urr_kernel::CallContext;
use urr_service::{ApiError, BreakerState, InternalCall, Upstream, UpstreamError};

use crate::internal::auth::AuthCalls;
use crate::internal::community::CommunityCalls;
use crate::internal::mail::MailCalls;
use crate::internal::payment::PaymentCalls;
use crate::internal::queue::QueueCalls;
use crate::internal::stats::StatsCalls;
pub use crate::internal::ticket::PayableRef;
use crate::internal::ticket::TicketCalls;

pub type AuthClient = ServiceClient<AuthCalls>;
pub type CommunityClient = ServiceClient<CommunityCalls>;
pub type MailClient = ServiceClient<MailCalls>;
pub type PaymentClient = ServiceClient<PaymentCalls>;
pub type QueueClient = ServiceClient<QueueCalls>;
pub type StatsClient = ServiceClient<StatsCalls>;
pub type TicketClient = ServiceClient<TicketCalls>;

/// A service, as its callers see it.
pub struct ServiceClient<S> {
    upstream: Upstream,
    service: PhantomData<fn() -> S>,
}

impl<S> ServiceClient<S> {
    pub fn new(upstream: Upstream) -> ServiceClient<S> {
        ServiceClient { upstream, service: PhantomData }
    }

    pub async fn call<C: InternalCall<Service = S>>(
        &self,
        request: C,
        context: &CallContext,
    ) -> Result<C::Answer, ClientError> {
        let answer = self.upstream.ask(&request, context).await;
        answer.map_err(|error| ClientError::new(self.upstream.target(), error))
    }

    /// The target, if its calls are not made at the moment because it failed too often.
    pub fn open_breaker(&self) -> Option<&'static str> {
        let is_open = self.upstream.breaker_state() == BreakerState::Open;
        is_open.then(|| self.upstream.target())
    }

    /// The same, but none if the service says that there is no such thing.
    pub async fn find<C: InternalCall<Service = S>>(
        &self,
        request: C,
        context: &CallContext,
    ) -> Result<Option<C::Answer>, ClientError> {
        match self.call(request, context).await {
            Err(error) if error.is_not_found() => Ok(None),
            answer => answer.map(Some),
        }
    }
}

impl<S> Clone for ServiceClient<S> {
    fn clone(&self) -> ServiceClient<S> {
        ServiceClient::new(self.upstream.clone())
    }
}

impl<S> fmt::Debug for ServiceClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceClient").field(&self.upstream).finish()
    }
}

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
