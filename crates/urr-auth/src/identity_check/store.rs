//! The SQL of identity checks.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Row, ToValue, Tx, Value, from_row, params};

use super::{Verification, VerificationId, VerificationStatus};
use crate::accounts::account::UserId;
use crate::sql::parameters;

/// Encrypted identifiers of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPersonKeys {
    pub key_version: u16,
    pub ci_cipher: Vec<u8>,
    pub ci_index: Vec<u8>,
    /// Cipher and index.
    pub di: Option<(Vec<u8>, Vec<u8>)>,
}

/// A row of `identities`.
#[derive(Clone, Debug)]
pub struct StoredPersonIdentity {
    pub user_id: UserId,
    pub sealed: SealedPersonKeys,
    /// The name of the provider.
    pub provider: String,
    pub verified_at: Timestamp,
}

const IDENTITY_COLUMNS: &str =
    "user_id, ci_cipher, ci_index, di_cipher, di_index, key_version, provider, verified_at";

fn identity_from_row(row: &Row<'_>) -> DbResult<StoredPersonIdentity> {
    let di_cipher: Option<Vec<u8>> = row.get("di_cipher")?;
    let di_index: Option<Vec<u8>> = row.get("di_index")?;
    let sealed = from_row!(row => SealedPersonKeys {
        key_version, ci_cipher, ci_index; di: di_cipher.zip(di_index)
    });
    Ok(from_row!(row => StoredPersonIdentity { user_id, provider, verified_at; sealed: sealed }))
}

pub fn verification_insert(
    tx: &mut Tx<'_>,
    verification: &Verification,
    provider: &str,
) -> DbResult<()> {
    let Verification { id, user_id, status, created_at, expires_at } = verification;
    tx.execute(
        "insert into identity_verifications (id, user_id, provider, status, created_at, \
         expires_at) values ($1, $2, $3, $4, $5, $6)",
        params![id, user_id, provider, *status, *created_at, *expires_at],
    )
    .map(drop)
}

pub fn verification_find(tx: &mut Tx<'_>, id: VerificationId) -> DbResult<Option<Verification>> {
    let sql = "select id, user_id, status, created_at, expires_at from identity_verifications \
               where id = $1";
    tx.query_opt(sql, params![id], |row| {
        Ok(from_row!(row => Verification { id, user_id, status, created_at, expires_at }))
    })
}

/// How many verifications a user has started since then.
pub fn verification_count(tx: &mut Tx<'_>, user_id: UserId, since: Timestamp) -> DbResult<u32> {
    let sql = "select count(*) as total from identity_verifications \
               where user_id = $1 and created_at > $2";
    tx.query_one(sql, params![user_id, since], |row| row.get("total"))
}

/// Ends a verification. `false` if it had ended before.
pub fn verification_end(
    tx: &mut Tx<'_>,
    id: VerificationId,
    status: VerificationStatus,
    now: Timestamp,
) -> DbResult<bool> {
    let sql = "update identity_verifications set status = $2, ended_at = $3 \
               where id = $1 and status = 'started'";
    Ok(tx.execute(sql, params![id, status, now])? == 1)
}

/// `false` if one of the identifiers belongs to another account.
pub fn identity_insert(tx: &mut Tx<'_>, identity: &StoredPersonIdentity) -> DbResult<bool> {
    let StoredPersonIdentity { user_id, sealed, provider, verified_at } = identity;
    let (di_cipher, di_index) = sealed.di.clone().unzip();
    let rows = tx.execute(
        "insert into identities (user_id, ci_cipher, ci_index, di_cipher, di_index, key_version, \
         provider, verified_at) values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing",
        params![
            user_id,
            sealed.ci_cipher,
            sealed.ci_index,
            di_cipher,
            di_index,
            sealed.key_version,
            *provider,
            *verified_at
        ],
    )?;
    Ok(rows == 1)
}

pub fn identity_find(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<Option<StoredPersonIdentity>> {
    let sql = format!("select {IDENTITY_COLUMNS} from identities where user_id = $1");
    tx.query_opt(&sql, params![user_id], identity_from_row)
}

/// Finds an identity by the indexes of its identifiers with all data keys.
pub fn identity_find_by_keys(
    tx: &mut Tx<'_>,
    ci_indexes: &[Vec<u8>],
    di_indexes: &[Vec<u8>],
) -> DbResult<Option<StoredPersonIdentity>> {
    for (column, indexes) in [("ci_index", ci_indexes), ("di_index", di_indexes)] {
        if indexes.is_empty() {
            continue;
        }
        let numbers = parameters(1, indexes.len());
        let sql = format!(
            "select {IDENTITY_COLUMNS} from identities where {column} in ({numbers}) limit 1"
        );
        let values: Vec<Value<'_>> = indexes.iter().map(ToValue::to_value).collect();
        if let Some(found) = tx.query_opt(&sql, &values, identity_from_row)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

pub fn identity_delete(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<()> {
    tx.execute("delete from identities where user_id = $1", params![user_id]).map(drop)
}

/// Deletes the identity of an account, and its verifications.
pub fn identity_erase(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<()> {
    identity_delete(tx, user_id)?;
    let sql = "delete from identity_verifications where user_id = $1";
    tx.execute(sql, params![user_id]).map(drop)
}

/// Stores the hash of a person who deleted an account, until the later of two times.
pub fn departure_upsert(tx: &mut Tx<'_>, ci_index: &[u8], kept_until: Timestamp) -> DbResult<()> {
    let sql = "insert into departed_people (ci_index, kept_until) values ($1, $2) \
               on conflict (ci_index) do update set kept_until = excluded.kept_until";
    tx.execute(sql, params![ci_index, kept_until]).map(drop)
}

/// Until when a person with one of these indexes cannot verify another account.
pub fn departure_find(
    tx: &mut Tx<'_>,
    ci_indexes: &[Vec<u8>],
    now: Timestamp,
) -> DbResult<Option<Timestamp>> {
    let sql = format!(
        "select kept_until from departed_people where kept_until > $1 and ci_index in ({}) \
         order by kept_until desc limit 1",
        parameters(2, ci_indexes.len())
    );
    let mut values: Vec<Value<'_>> = vec![now.to_value()];
    values.extend(ci_indexes.iter().map(ToValue::to_value));
    tx.query_opt(&sql, &values, |row| row.get("kept_until"))
}

/// Identities that are encrypted with another key.
pub fn identity_list_with_other_key(
    tx: &mut Tx<'_>,
    key_version: u16,
    limit: u32,
) -> DbResult<Vec<StoredPersonIdentity>> {
    let sql = format!(
        "select {IDENTITY_COLUMNS} from identities where key_version <> $1 \
         order by user_id limit $2"
    );
    tx.query(&sql, params![key_version, limit], identity_from_row)
}

/// Replaces encrypted identifiers by the same under another key. `false` if they were changed.
pub fn identity_reseal(
    tx: &mut Tx<'_>,
    old: &StoredPersonIdentity,
    new: &SealedPersonKeys,
) -> DbResult<bool> {
    let (di_cipher, di_index) = new.di.clone().unzip();
    let rows = tx.execute(
        "update identities set ci_cipher = $2, ci_index = $3, di_cipher = $4, di_index = $5, \
         key_version = $6 where user_id = $1 and ci_cipher = $7",
        params![
            old.user_id,
            new.ci_cipher,
            new.ci_index,
            di_cipher,
            di_index,
            new.key_version,
            old.sealed.ci_cipher
        ],
    )?;
    Ok(rows == 1)
}
