//! Idempotency keys of requests about payments.
//!
//! The operations are idempotent by themselves, so a repetition is executed again and gets the
//! answer of today. The key only makes sure that it is the same request.

use serde::Serialize;
use urr_kernel::{IdempotencyKey, Uuid};
use urr_service::ApiError;
use urr_service::idempotency::{
    KeyClaim, KeyedRequest, fingerprint, key_claim, key_complete, key_release, key_reused,
};

use crate::PaymentService;

/// The claimed key of a request; empty if the client sent none.
pub struct ClaimedKey {
    request: Option<KeyedRequest>,
    is_new: bool,
    /// The order that the first request with this key led to.
    pub order_id: Option<String>,
}

/// Claims a key for a request. Another request with the same key is refused.
pub async fn claim_key(
    payments: &PaymentService,
    user_id: Uuid,
    operation: &'static str,
    key: Option<&IdempotencyKey>,
    request: &impl Serialize,
) -> Result<ClaimedKey, ApiError> {
    let Some(key) = key.cloned() else {
        return Ok(ClaimedKey { request: None, is_new: false, order_id: None });
    };
    let request = KeyedRequest { user_id, operation, key, fingerprint: fingerprint(request) };
    let (claimed, now) = (request.clone(), payments.0.clock.now());
    let claim = payments.write(move |tx| key_claim(tx, &claimed, now));
    let (is_new, order_id) = match claim.await? {
        KeyClaim::New => (true, None),
        KeyClaim::Repeated { resource_id } => (false, resource_id),
        KeyClaim::Reused => return Err(key_reused()),
    };
    Ok(ClaimedKey { request: Some(request), is_new, order_id })
}

impl ClaimedKey {
    /// Stores which order the request led to.
    pub async fn set_order(
        &self,
        payments: &PaymentService,
        order_id: &str,
    ) -> Result<(), ApiError> {
        let Some(request) = self.request.clone() else { return Ok(()) };
        let order_id = order_id.to_owned();
        Ok(payments.write(move |tx| key_complete(tx, &request, &order_id)).await?)
    }

    /// Frees the key of a request that was refused, so that it can be corrected and sent again.
    pub async fn release_if_refused<T>(
        self,
        payments: &PaymentService,
        outcome: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if let (Err(_), Some(request), true) = (&outcome, self.request, self.is_new)
            && let Err(error) = payments.write(move |tx| key_release(tx, &request)).await
        {
            tracing::warn!(%error, "the idempotency key of a refused request is not released");
        }
        outcome
    }
}
