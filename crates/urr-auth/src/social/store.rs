//! The SQL of social identities and login attempts.

use urr_kernel::Timestamp;
use urr_storage::{DbResult, ToValue, Tx, Value, from_row, params};

use crate::LinkedIdentity;
use crate::accounts::account::UserId;
use crate::social::rules::{LocalPath, SocialProvider};
use crate::sql::parameters;

/// A started social login.
#[derive(Clone, Debug)]
pub struct SocialAttempt {
    pub provider: SocialProvider,
    pub redirect: LocalPath,
    pub terms_agreed: bool,
    pub link_user_id: Option<UserId>,
    pub expires_at: Timestamp,
}

/// A row of `social_identities`.
#[derive(Clone, Debug)]
pub struct StoredSocialIdentity {
    pub provider: SocialProvider,
    pub user_id: UserId,
    pub key_version: u16,
    /// Keyed hash of the provider's id of the user.
    pub index: Vec<u8>,
    /// That id, encrypted.
    pub cipher: Vec<u8>,
}

pub fn attempt_insert(tx: &mut Tx<'_>, state_hash: &[u8], attempt: &SocialAttempt) -> DbResult<()> {
    tx.execute(
        "insert into social_attempts \
         (state_hash, provider, redirect, terms_agreed, link_user_id, expires_at) \
         values ($1, $2, $3, $4, $5, $6)",
        params![
            state_hash,
            attempt.provider,
            attempt.redirect.as_str(),
            attempt.terms_agreed,
            attempt.link_user_id,
            attempt.expires_at
        ],
    )
    .map(drop)
}

/// Deletes and returns an attempt, so that it can be used once.
pub fn attempt_take(tx: &mut Tx<'_>, state_hash: &[u8]) -> DbResult<Option<SocialAttempt>> {
    let sql = "delete from social_attempts where state_hash = $1 \
               returning provider, redirect, terms_agreed, link_user_id, expires_at";
    tx.query_opt(sql, params![state_hash], |row| {
        let redirect: String = row.get("redirect")?;
        Ok(from_row!(row => SocialAttempt {
            provider, terms_agreed, link_user_id, expires_at;
            redirect: LocalPath::parse(&redirect).expect("only local paths are stored"),
        }))
    })
}

/// The user of an identity, by its indexes with all data keys.
pub fn identity_owner(
    tx: &mut Tx<'_>,
    provider: SocialProvider,
    indexes: &[Vec<u8>],
) -> DbResult<Option<UserId>> {
    let numbers = parameters(2, indexes.len());
    let sql = format!(
        "select user_id from social_identities where provider = $1 \
         and subject_index in ({numbers}) limit 1"
    );
    let mut values: Vec<Value<'_>> = vec![provider.to_value()];
    values.extend(indexes.iter().map(ToValue::to_value));
    tx.query_opt(&sql, &values, |row| row.get("user_id"))
}

/// Whether a user has an identity of this provider.
pub fn identity_exists(
    tx: &mut Tx<'_>,
    provider: SocialProvider,
    user_id: UserId,
) -> DbResult<bool> {
    let sql = "select user_id from social_identities where user_id = $1 and provider = $2";
    Ok(tx.query_opt(sql, params![user_id, provider], |_| Ok(()))?.is_some())
}

/// `false` if another user has it, or the user has another one of this provider.
pub fn identity_insert(
    tx: &mut Tx<'_>,
    identity: &StoredSocialIdentity,
    now: Timestamp,
) -> DbResult<bool> {
    let StoredSocialIdentity { provider, user_id, key_version, index, cipher } = identity;
    let rows = tx.execute(
        "insert into social_identities \
         (provider, subject_index, subject_cipher, key_version, user_id, linked_at) \
         values ($1, $2, $3, $4, $5, $6) on conflict do nothing",
        params![provider, index, cipher, key_version, user_id, now],
    )?;
    Ok(rows == 1)
}

/// The providers of a user, and since when they are linked.
pub fn identity_list(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<Vec<LinkedIdentity>> {
    let sql = "select provider, linked_at from social_identities where user_id = $1 \
               order by provider";
    tx.query(sql, params![user_id], |row| {
        Ok(from_row!(row => LinkedIdentity { provider, linked_at }))
    })
}

/// `false` if the user has none of this provider.
pub fn identity_delete(
    tx: &mut Tx<'_>,
    provider: SocialProvider,
    user_id: UserId,
) -> DbResult<bool> {
    let sql = "delete from social_identities where user_id = $1 and provider = $2";
    Ok(tx.execute(sql, params![user_id, provider])? == 1)
}

/// Deletes the identities of a user, and their unfinished links.
pub fn identity_erase(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<()> {
    tx.execute("delete from social_identities where user_id = $1", params![user_id])?;
    attempts_erase(tx, user_id)
}

/// Deletes the unfinished links of a user.
pub fn attempts_erase(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<()> {
    let sql = "delete from social_attempts where link_user_id = $1";
    tx.execute(sql, params![user_id]).map(drop)
}

/// Identities that are encrypted with another key.
pub fn identity_list_with_other_key(
    tx: &mut Tx<'_>,
    key_version: u16,
    limit: u32,
) -> DbResult<Vec<StoredSocialIdentity>> {
    let sql = "select provider, subject_index, subject_cipher, key_version, user_id \
               from social_identities where key_version <> $1 order by user_id, provider limit $2";
    tx.query(sql, params![key_version, limit], |row| {
        Ok(from_row!(row => StoredSocialIdentity {
            provider, key_version, user_id;
            index: row.get("subject_index")?,
            cipher: row.get("subject_cipher")?,
        }))
    })
}

/// Replaces an encrypted subject by the same under another key. `false` if it is gone.
pub fn identity_reseal(
    tx: &mut Tx<'_>,
    old: &StoredSocialIdentity,
    new: &StoredSocialIdentity,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update social_identities set subject_index = $3, subject_cipher = $4, key_version = $5 \
         where provider = $1 and subject_index = $2",
        params![old.provider, old.index, new.index, new.cipher, new.key_version],
    )?;
    Ok(rows == 1)
}
