//! Clients' own keys: under one key there is one request.

use urr_kernel::{IdempotencyKey, Uuid};
use urr_service::ApiError;
use urr_storage::{StorageError, Tx};

use crate::PaymentService;
use crate::store::idempotency_keys::{self, ClientKeyRow};

/// A key as it came, and what for.
pub struct ClientKey<'a> {
    pub user_id: Uuid,
    /// `confirm`, `process` or `refund`: each has keys of its own.
    pub action: &'static str,
    pub key: Option<&'a IdempotencyKey>,
}

/// A key in use; nothing if the client named none.
pub struct ClaimedKey {
    key: Option<ClientKeyRow>,
    /// Whether nobody has used it before.
    is_new: bool,
    /// What came of it when it was used before.
    pub order_id: Option<String>,
}

/// Notes what a key is used for. Another request under the same key is refused.
pub async fn take(
    payments: &PaymentService,
    client: ClientKey<'_>,
    request: &str,
) -> Result<ClaimedKey, ApiError> {
    let ClientKey { user_id, action, key } = client;
    let Some(key) = key else {
        return Ok(ClaimedKey { key: None, is_new: false, order_id: None });
    };
    let key = ClientKeyRow { user_id, action, key: key.as_str().to_owned() };
    let (taken, asked, now) = (key.clone(), request.to_owned(), payments.0.clock.now());
    let take = move |tx: &mut Tx<'_>| idempotency_keys::key_claim(tx, &taken, &asked, now);
    let known: Result<_, StorageError> = payments.0.db.write(take).await;
    match known? {
        None => Ok(ClaimedKey { key: Some(key), is_new: true, order_id: None }),
        Some(known) if known.request == request => {
            Ok(ClaimedKey { key: Some(key), is_new: false, order_id: known.order_id })
        }
        Some(_) => Err(ApiError::unprocessable(
            "IDEMPOTENCY_KEY_REUSED",
            "This idempotency key was used for another request.",
        )),
    }
}

impl ClaimedKey {
    /// Notes which order came of it.
    pub async fn set_order(
        &self,
        payments: &PaymentService,
        order_id: &str,
    ) -> Result<(), ApiError> {
        let Some(key) = self.key.clone() else { return Ok(()) };
        let order_id = order_id.to_owned();
        let note = move |tx: &mut Tx<'_>| idempotency_keys::key_set_order(tx, &key, &order_id);
        let noted: Result<(), StorageError> = payments.0.db.write(note).await;
        Ok(noted?)
    }

    /// A request that was refused has not used up its key: it may be put right and sent again.
    pub async fn release_if_refused<T>(
        self,
        payments: &PaymentService,
        outcome: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if let (Err(_), Some(key), true) = (&outcome, self.key, self.is_new) {
            let release = move |tx: &mut Tx<'_>| idempotency_keys::key_release(tx, &key);
            let released: Result<(), StorageError> = payments.0.db.write(release).await;
            if let Err(error) = released {
                tracing::warn!(%error, "the key of a refused request stays used");
            }
        }
        outcome
    }
}
