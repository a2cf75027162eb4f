//! Clients' own keys: under one key there is one request.

use urr_kernel::{IdempotencyKey, Uuid};
use urr_service::ApiError;
use urr_storage::{StorageError, Tx};

use crate::Payments;
use crate::store::keys::{self, RequestKey};

/// A key as it came, and what for.
pub struct ClientKey<'a> {
    pub user_id: Uuid,
    /// `confirm`, `process` or `refund`: each has keys of its own.
    pub action: &'static str,
    pub key: Option<&'a IdempotencyKey>,
}

/// A key in use; nothing if the client named none.
pub struct HeldKey {
    key: Option<RequestKey>,
    /// Whether nobody has used it before.
    is_new: bool,
    /// What came of it when it was used before.
    pub order_id: Option<String>,
}

/// Notes what a key is used for. Another request under the same key is refused.
pub async fn take(
    payments: &Payments,
    client: ClientKey<'_>,
    request: &str,
) -> Result<HeldKey, ApiError> {
    let ClientKey { user_id, action, key } = client;
    let Some(key) = key else {
        return Ok(HeldKey { key: None, is_new: false, order_id: None });
    };
    let key = RequestKey { user_id, action, key: key.as_str().to_owned() };
    let (taken, asked, now) = (key.clone(), request.to_owned(), payments.0.clock.now());
    let take = move |tx: &mut Tx<'_>| keys::key_take(tx, &taken, &asked, now);
    let known: Result<_, StorageError> = payments.0.db.write(take).await;
    match known? {
        None => Ok(HeldKey { key: Some(key), is_new: true, order_id: None }),
        Some(known) if known.request == request => {
            Ok(HeldKey { key: Some(key), is_new: false, order_id: known.order_id })
        }
        Some(_) => Err(ApiError::unprocessable(
            "IDEMPOTENCY_KEY_REUSED",
            "This idempotency key was used for another request.",
        )),
    }
}

impl HeldKey {
    /// Notes which order came of it.
    pub async fn note_order(&self, payments: &Payments, order_id: &str) -> Result<(), ApiError> {
        let Some(key) = self.key.clone() else { return Ok(()) };
        let order_id = order_id.to_owned();
        let note = move |tx: &mut Tx<'_>| keys::key_order(tx, &key, &order_id);
        let noted: Result<(), StorageError> = payments.0.db.write(note).await;
        Ok(noted?)
    }

    /// A request that was refused has not used up its key: it may be put right and sent again.
    pub async fn keep_if_done<T>(
        self,
        payments: &Payments,
        outcome: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if let (Err(_), Some(key), true) = (&outcome, self.key, self.is_new) {
            let release = move |tx: &mut Tx<'_>| keys::key_release(tx, &key);
            let released: Result<(), StorageError> = payments.0.db.write(release).await;
            if let Err(error) = released {
                tracing::warn!(%error, "the key of a refused request stays used");
            }
        }
        outcome
    }
}
