//! Idempotency keys: a client names a request by the header `Idempotency-Key`, and a retry under
//! the same key gets the answer of the first one.
//!
//! A key belongs to a user and an operation and is remembered for 24 hours in the table
//! `idempotency_keys`. [`key_claim`] is the first statement of the transaction that has the effect:
//! key and effect are committed together or not at all.

use std::collections::HashSet;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use serde::Serialize;
use serde_json::{Value as JsonValue, json};
use sha2::{Digest, Sha256};
use urr_kernel::{IdempotencyKey, Timestamp, Uuid, hex};
use urr_storage::{DbResult, Row, Tx, params};

use crate::ApiError;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// How long a key is remembered. After that it may name another request.
pub const KEY_TTL: Duration = Duration::from_hours(24);

/// The key of a request, in its header `Idempotency-Key`.
pub fn header_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let key = IdempotencyKey::parse(value.to_str().unwrap_or_default());
    key.map(Some)
        .map_err(|error| ApiError::bad_request("INVALID_IDEMPOTENCY_KEY", error.to_string()))
}

/// The answer to a key that was used for another request.
pub fn key_reused() -> ApiError {
    ApiError::unprocessable(
        "IDEMPOTENCY_KEY_REUSED",
        "This idempotency key was used for another request.",
    )
}

/// A digest of what a request asks for, to tell a retry from another request.
pub fn fingerprint(request: &impl Serialize) -> String {
    let bytes = serde_json::to_vec(request).expect("a request body can be written as JSON");
    hex::encode(Sha256::digest(bytes))
}

/// A request that its client named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    pub user_id: Uuid,
    /// `confirm_payment`: each operation has keys of its own.
    pub operation: &'static str,
    pub key: IdempotencyKey,
    /// [`fingerprint`] of the body.
    pub fingerprint: String,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaim {
    /// It is used for the first time, or its time was over. It is claimed now.
    New,
    /// The same request was sent before. `resource_id` is what came of it, if it has ended.
    Repeated { resource_id: Option<String> },
    /// It names another request: answer [`key_reused`].
    Reused,
}

/// Claims a key for a request, unless it is in use.
pub fn key_claim(tx: &mut Tx<'_>, request: &KeyedRequest, now: Timestamp) -> DbResult<KeyClaim> {
    let KeyedRequest { user_id, operation, key, fingerprint } = request;
    let rows = tx.execute(
        "insert into idempotency_keys (user_id, operation, key, fingerprint, created_at) \
         values ($1, $2, $3, $4, $5) on conflict (user_id, operation, key) do update \
         set fingerprint = excluded.fingerprint, resource_id = null, \
         created_at = excluded.created_at where idempotency_keys.created_at <= $6",
        params![user_id, operation, key.as_str(), fingerprint, now, now - KEY_TTL],
    )?;
    if rows == 1 {
        return Ok(KeyClaim::New);
    }
    let (known, resource_id): (String, Option<String>) = tx.query_one(
        "select fingerprint, resource_id from idempotency_keys \
         where user_id = $1 and operation = $2 and key = $3",
        params![user_id, operation, key.as_str()],
        |row| Ok((row.get("fingerprint")?, row.get("resource_id")?)),
    )?;
    match known == *fingerprint {
        true => Ok(KeyClaim::Repeated { resource_id }),
        false => Ok(KeyClaim::Reused),
    }
}

/// What is known of the keys of requests, in their order, without claiming them.
pub fn keys_find(
    tx: &mut Tx<'_>,
    requests: &[&KeyedRequest],
    now: Timestamp,
) -> DbResult<Vec<KeyClaim>> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    type Found = (Option<String>, Option<String>);
    let read = |row: &Row<'_>| -> DbResult<Found> {
        Ok((row.get("fingerprint")?, row.get("resource_id")?))
    };
    let found: Vec<Found> = match tx.is_postgres() {
        true => tx.query(
            "select kept.fingerprint, kept.resource_id from jsonb_to_recordset($1) as asked \
             (position integer, user_id uuid, operation text, key text) \
             left join lateral (select fingerprint, resource_id from idempotency_keys \
             where user_id = asked.user_id and operation = asked.operation and key = asked.key \
             and created_at > $2 limit 1) as kept on true order by asked.position",
            params![keys_json(requests), now - KEY_TTL],
            read,
        )?,
        false => {
            let sql = "select fingerprint, resource_id from idempotency_keys \
                       where user_id = $1 and operation = $2 and key = $3 and created_at > $4";
            let find = |request: &&KeyedRequest| {
                let KeyedRequest { user_id, operation, key, .. } = request;
                let found = tx.query_opt(
                    sql,
                    params![user_id, operation, key.as_str(), now - KEY_TTL],
                    read,
                )?;
                Ok(found.unwrap_or_default())
            };
            requests.iter().map(find).collect::<DbResult<_>>()?
        }
    };
    let claim = |((fingerprint, resource_id), request): (Found, &&KeyedRequest)| match fingerprint {
        None => KeyClaim::New,
        Some(known) if known == request.fingerprint => KeyClaim::Repeated { resource_id },
        Some(_) => KeyClaim::Reused,
    };
    Ok(found.into_iter().zip(requests).map(claim).collect())
}

fn keys_json(requests: &[&KeyedRequest]) -> JsonValue {
    let row = |(position, request): (usize, &&KeyedRequest)| {
        json!({
            "position": position, "user_id": request.user_id, "operation": request.operation,
            "key": request.key.as_str(), "fingerprint": request.fingerprint,
        })
    };
    requests.iter().enumerate().map(row).collect()
}

/// Claims the keys of several requests; the answers are those of [`key_claim`].
pub fn keys_claim(
    tx: &mut Tx<'_>,
    requests: &[&KeyedRequest],
    now: Timestamp,
) -> DbResult<Vec<KeyClaim>> {
    if requests.is_empty() || !tx.is_postgres() {
        return requests.iter().map(|request| key_claim(tx, request, now)).collect();
    }
    let claimed: HashSet<(Uuid, String)> = tx
        .query(
            "insert into idempotency_keys (user_id, operation, key, fingerprint, created_at) \
             select user_id, operation, key, fingerprint, $2 from jsonb_to_recordset($1) as asked \
             (user_id uuid, operation text, key text, fingerprint text) order by user_id, key \
             on conflict (user_id, operation, key) do update \
             set fingerprint = excluded.fingerprint, resource_id = null, \
             created_at = excluded.created_at where idempotency_keys.created_at <= $3 \
             returning user_id, key",
            params![keys_json(requests), now, now - KEY_TTL],
            |row| Ok((row.get("user_id")?, row.get("key")?)),
        )?
        .into_iter()
        .collect();
    let claim = |request: &&KeyedRequest| match claimed
        .contains(&(request.user_id, request.key.as_str().to_owned()))
    {
        true => Ok(KeyClaim::New),
        false => key_claim(tx, request, now),
    };
    requests.iter().map(claim).collect()
}

/// Notes what came of a request.
pub fn key_complete(tx: &mut Tx<'_>, request: &KeyedRequest, resource_id: &str) -> DbResult<()> {
    let KeyedRequest { user_id, operation, key, .. } = request;
    tx.execute(
        "update idempotency_keys set resource_id = $4 \
         where user_id = $1 and operation = $2 and key = $3",
        params![user_id, operation, key.as_str(), resource_id],
    )?;
    Ok(())
}

/// Frees the key of a request that was refused: it may be corrected and sent again.
pub fn key_release(tx: &mut Tx<'_>, request: &KeyedRequest) -> DbResult<()> {
    let KeyedRequest { user_id, operation, key, .. } = request;
    tx.execute(
        "delete from idempotency_keys where user_id = $1 and operation = $2 and key = $3",
        params![user_id, operation, key.as_str()],
    )?;
    Ok(())
}

/// Deletes keys whose time is over, a bounded number at a time. Returns how many.
pub fn keys_purge(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from idempotency_keys where (user_id, operation, key) in \
         (select user_id, operation, key from idempotency_keys \
          where created_at <= $1 order by created_at limit $2)",
        params![now - KEY_TTL, limit],
    )
}

#[cfg(test)]
mod tests {
    use urr_storage::{Db, Schema, SqliteOptions, StorageError, migrate};

    use super::*;

    #[test]
    fn a_key_comes_from_the_header_and_is_short_and_visible() {
        let key = |header: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(HEADER, header.parse().unwrap());
            }
            header_key(&headers).map(|key| key.map(|key| key.as_str().to_owned())).ok()
        };
        assert_eq!(key(None), Some(None));
        assert_eq!(key(Some("a")), Some(Some("a".to_owned())));
        assert_eq!((key(Some("")), key(Some("a b"))), (None, None));
    }

    fn db() -> (tempfile::TempDir, Db) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.db");
        let schema = Schema { name: "keys", migrations: &[] };
        migrate::migrate_sqlite(&path, &schema, Timestamp::UNIX_EPOCH).unwrap();
        let db = Db::open_sqlite(&path, &SqliteOptions::default()).unwrap();
        (folder, db)
    }

    fn request(key: &str, body: &str) -> KeyedRequest {
        KeyedRequest {
            user_id: Uuid::from_u128(1),
            operation: "reserve_seats",
            key: IdempotencyKey::parse(key).unwrap(),
            fingerprint: fingerprint(&body),
        }
    }

    async fn claim(db: &Db, request: KeyedRequest, now: Timestamp) -> KeyClaim {
        let claim = move |tx: &mut Tx<'_>| key_claim(tx, &request, now);
        let claimed: Result<KeyClaim, StorageError> = db.write(claim).await;
        claimed.unwrap()
    }

    #[tokio::test]
    async fn a_key_names_one_request_for_a_day() {
        let (_folder, db) = db();
        let now = Timestamp::UNIX_EPOCH + 2 * KEY_TTL;
        assert_eq!(claim(&db, request("k", "a"), now).await, KeyClaim::New);
        let under_way = KeyClaim::Repeated { resource_id: None };
        assert_eq!(claim(&db, request("k", "a"), now).await, under_way);
        let complete = |tx: &mut Tx<'_>| key_complete(tx, &request("k", "a"), "order-1");
        let completed: Result<(), StorageError> = db.write(complete).await;
        completed.unwrap();
        let known = KeyClaim::Repeated { resource_id: Some("order-1".to_owned()) };
        let later = now + KEY_TTL - Duration::from_secs(1);
        assert_eq!(claim(&db, request("k", "a"), later).await, known);
        assert_eq!(claim(&db, request("k", "b"), later).await, KeyClaim::Reused);
        assert_eq!(claim(&db, request("k", "b"), now + KEY_TTL).await, KeyClaim::New);
    }

    #[tokio::test]
    async fn the_key_of_a_refused_request_is_free_again_and_old_keys_are_deleted() {
        let (_folder, db) = db();
        let now = Timestamp::UNIX_EPOCH + 2 * KEY_TTL;
        claim(&db, request("k", "a"), now).await;
        let release = |tx: &mut Tx<'_>| key_release(tx, &request("k", "a"));
        let released: Result<(), StorageError> = db.write(release).await;
        released.unwrap();
        assert_eq!(claim(&db, request("k", "b"), now).await, KeyClaim::New);
        let purge = |at| move |tx: &mut Tx<'_>| keys_purge(tx, at, 10);
        let early: Result<u64, StorageError> = db.write(purge(now + KEY_TTL / 2)).await;
        let late: Result<u64, StorageError> = db.write(purge(now + KEY_TTL)).await;
        assert_eq!((early, late), (Ok(0), Ok(1)));
    }
}
