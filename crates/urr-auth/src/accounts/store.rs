//! The SQL of users.

use urr_contracts::internal::auth::USERS_PER_CALL_MAX;
use urr_kernel::{Language, Timestamp};
use urr_service::{Page, UserRole};
use urr_storage::{DbResult, Row, ToValue, Tx, Value, from_row, params};

use crate::accounts::account::{AccountStatus, UserId};
use crate::personal_data::SealedDetails;
use crate::sql::parameters;

/// A row of `users`.
#[derive(Clone, Debug)]
pub struct StoredUser {
    pub id: UserId,
    /// `None` if the account was deleted.
    pub person: Option<SealedDetails>,
    /// When somebody proved that the address is theirs.
    pub email_verified_at: Option<Timestamp>,
    pub password_hash: Option<String>,
    /// Grows when another password is chosen, but not when the same one is hashed again.
    pub password_version: u32,
    pub role: UserRole,
    pub language: Language,
    pub status: AccountStatus,
    pub created_at: Timestamp,
    pub last_login_at: Timestamp,
}

const USER_COLUMNS: &str = "id, email_cipher, email_index, name_cipher, phone_cipher, name_index, \
                            phone_index, key_version, email_verified_at, password_hash, \
                            password_version, role, language, status, created_at, last_login_at";

fn user_from_row(row: &Row<'_>) -> DbResult<StoredUser> {
    let status: AccountStatus = row.get("status")?;
    let person = match status {
        AccountStatus::Deleted => None,
        AccountStatus::Active | AccountStatus::Dormant | AccountStatus::Suspended => {
            Some(from_row!(row => SealedDetails {
                key_version, email_cipher, email_index, name_cipher, phone_cipher, name_index,
                phone_index
            }))
        }
    };
    Ok(from_row!(row => StoredUser {
        id, email_verified_at, password_hash, password_version, role, language, created_at,
        last_login_at;
        person: person,
        status: status,
    }))
}

/// `false` if the address is taken.
pub fn user_insert(tx: &mut Tx<'_>, user: &StoredUser) -> DbResult<bool> {
    let person = user.person.as_ref().expect("a new account has a person");
    let rows = tx.execute(
        "insert into users (id, email_cipher, email_index, name_cipher, phone_cipher, \
         key_version, password_hash, password_version, role, status, created_at, updated_at, \
         last_login_at, language, name_index, phone_index, email_verified_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $11, $12, $13, $14, $15) \
         on conflict (email_index) do nothing",
        params![
            user.id,
            person.email_cipher,
            person.email_index,
            person.name_cipher,
            person.phone_cipher,
            person.key_version,
            user.password_hash,
            user.password_version,
            user.role,
            user.status,
            user.created_at,
            user.language,
            person.name_index,
            person.phone_index,
            user.email_verified_at,
        ],
    )?;
    Ok(rows == 1)
}

pub fn user_find(tx: &mut Tx<'_>, id: UserId) -> DbResult<Option<StoredUser>> {
    let sql = format!("select {USER_COLUMNS} from users where id = $1");
    tx.query_opt(&sql, params![id], user_from_row)
}

/// Finds a user, and locks them and their sessions until the commit.
pub fn user_lock(tx: &mut Tx<'_>, id: UserId) -> DbResult<Option<StoredUser>> {
    let sql = format!("select {USER_COLUMNS} from users where id = $1 for update");
    tx.query_opt(&sql, params![id], user_from_row)
}

/// Locks a user whose account was not deleted.
pub fn user_lock_existing(tx: &mut Tx<'_>, id: UserId) -> DbResult<Option<StoredUser>> {
    Ok(user_lock(tx, id)?.filter(|user| user.person.is_some()))
}

/// Locks a user and all administrators, in the order of their ids.
pub fn user_lock_with_admins(
    tx: &mut Tx<'_>,
    id: UserId,
) -> DbResult<(Option<StoredUser>, Vec<UserId>)> {
    let sql = format!(
        "select {USER_COLUMNS} from users where id = $1 or role = 'admin' order by id for update"
    );
    let locked = tx.query(&sql, params![id], user_from_row)?;
    let is_admin = |user: &&StoredUser| {
        let is_open = user.person.is_some() && user.status != AccountStatus::Suspended;
        user.role == UserRole::Admin && is_open
    };
    let admins = locked.iter().filter(is_admin).map(|user| user.id).collect();
    Ok((locked.into_iter().find(|user| user.id == id), admins))
}

/// Finds a user by the indexes of an address with all data keys.
pub fn user_find_by_email(tx: &mut Tx<'_>, indexes: &[Vec<u8>]) -> DbResult<Option<StoredUser>> {
    let numbers = parameters(1, indexes.len());
    let sql = format!("select {USER_COLUMNS} from users where email_index in ({numbers}) limit 1");
    let values: Vec<Value<'_>> = indexes.iter().map(ToValue::to_value).collect();
    tx.query_opt(&sql, &values, user_from_row)
}

/// The personal details by which administrators find accounts, beside the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonIndex {
    Name,
    Phone,
}

/// The accounts with a name or phone number, by its indexes with all data keys. Newest first.
pub fn user_list_by_person(
    tx: &mut Tx<'_>,
    index: PersonIndex,
    indexes: &[Vec<u8>],
    page: Page,
) -> DbResult<(Vec<StoredUser>, u64)> {
    let column = match index {
        PersonIndex::Name => "name_index",
        PersonIndex::Phone => "phone_index",
    };
    let numbers = parameters(1, indexes.len());
    let mut values: Vec<Value<'_>> = indexes.iter().map(ToValue::to_value).collect();
    let sql = format!("select count(*) as total from users where {column} in ({numbers})");
    let total = tx.query_one(&sql, &values, |row| row.get("total"))?;
    let (limit, offset) = (page.limit(), page.offset());
    values.extend([limit.to_value(), offset.to_value()]);
    let (at_limit, at_offset) = (values.len() - 1, values.len());
    let sql = format!(
        "select {USER_COLUMNS} from users where {column} in ({numbers}) \
         order by created_at desc, id desc limit ${at_limit} offset ${at_offset}"
    );
    Ok((tx.query(&sql, &values, user_from_row)?, total))
}

/// The last id is repeated up to the maximum, so that the database prepares one statement.
pub fn user_find_many(tx: &mut Tx<'_>, ids: &[UserId]) -> DbResult<Vec<StoredUser>> {
    assert!(ids.len() <= USERS_PER_CALL_MAX, "the caller bounds the ids");
    let Some(last) = ids.last() else {
        return Ok(Vec::new());
    };
    let numbers = parameters(1, USERS_PER_CALL_MAX);
    let sql = format!(
        "select {USER_COLUMNS} from users where status <> 'deleted' and id in ({numbers}) \
         order by id"
    );
    let padded = ids.iter().chain(std::iter::repeat(last)).take(USERS_PER_CALL_MAX);
    let values: Vec<Value<'_>> = padded.map(|id| id.to_value()).collect();
    tx.query(&sql, &values, user_from_row)
}

/// The accounts that were not deleted, the newest first.
pub fn user_list(tx: &mut Tx<'_>, page: Page) -> DbResult<Vec<StoredUser>> {
    let sql = format!(
        "select {USER_COLUMNS} from users where status <> 'deleted' \
         order by created_at desc, id desc limit $1 offset $2"
    );
    tx.query(&sql, params![page.limit(), page.offset()], user_from_row)
}

pub fn user_count(tx: &mut Tx<'_>) -> DbResult<u64> {
    let sql = "select count(*) as total from users where status <> 'deleted'";
    tx.query_one(sql, &[], |row| row.get("total"))
}

pub fn admin_exists(tx: &mut Tx<'_>) -> DbResult<bool> {
    let sql = "select id from users where role = 'admin' and status <> 'deleted' limit 1";
    Ok(tx.query_opt(sql, &[], |row| row.get::<urr_kernel::Uuid>("id"))?.is_some())
}

/// Notes a login, which makes a dormant account active. The caller refused suspended ones.
pub fn user_mark_login(tx: &mut Tx<'_>, id: UserId, now: Timestamp) -> DbResult<()> {
    let sql = "update users set last_login_at = $2, status = 'active' where id = $1";
    tx.execute(sql, params![id, now]).map(drop)
}

pub fn user_set_password(tx: &mut Tx<'_>, id: UserId, hash: &str, now: Timestamp) -> DbResult<()> {
    let sql = "update users set password_hash = $2, password_version = password_version + 1, \
               updated_at = $3 where id = $1";
    tx.execute(sql, params![id, hash, now]).map(drop)
}

/// Stores another hash of the same password.
pub fn user_set_password_hash(tx: &mut Tx<'_>, id: UserId, hash: &str) -> DbResult<()> {
    let sql = "update users set password_hash = $2 where id = $1";
    tx.execute(sql, params![id, hash]).map(drop)
}

pub fn user_set_role(tx: &mut Tx<'_>, id: UserId, role: UserRole, now: Timestamp) -> DbResult<()> {
    let sql = "update users set role = $2, updated_at = $3 where id = $1";
    tx.execute(sql, params![id, role, now]).map(drop)
}

pub fn user_set_language(
    tx: &mut Tx<'_>,
    id: UserId,
    language: Language,
    now: Timestamp,
) -> DbResult<()> {
    let sql = "update users set language = $2, updated_at = $3 where id = $1";
    tx.execute(sql, params![id, language, now]).map(drop)
}

pub fn user_set_person(
    tx: &mut Tx<'_>,
    id: UserId,
    person: &SealedDetails,
    now: Timestamp,
) -> DbResult<()> {
    let sql = "update users set email_cipher = $2, email_index = $3, name_cipher = $4, \
               phone_cipher = $5, key_version = $6, updated_at = $7, name_index = $8, \
               phone_index = $9 where id = $1";
    let values = params![
        id,
        person.email_cipher,
        person.email_index,
        person.name_cipher,
        person.phone_cipher,
        person.key_version,
        now,
        person.name_index,
        person.phone_index
    ];
    tx.execute(sql, values).map(drop)
}

pub fn user_set_status(
    tx: &mut Tx<'_>,
    id: UserId,
    status: AccountStatus,
    now: Timestamp,
) -> DbResult<()> {
    let sql = "update users set status = $2, updated_at = $3 where id = $1";
    tx.execute(sql, params![id, status, now]).map(drop)
}

/// The address is the user's: they proved it.
pub fn user_set_email_verified(tx: &mut Tx<'_>, id: UserId, now: Timestamp) -> DbResult<()> {
    let sql = "update users set email_verified_at = $2 where id = $1 and email_verified_at is null";
    tx.execute(sql, params![id, now]).map(drop)
}

/// Nobody has proved the address any more.
pub fn user_clear_email_verified(tx: &mut Tx<'_>, id: UserId) -> DbResult<()> {
    let sql = "update users set email_verified_at = null where id = $1";
    tx.execute(sql, params![id]).map(drop)
}

/// Erases the personal data. The id stays for the rows that refer to it.
pub fn user_erase(tx: &mut Tx<'_>, id: UserId, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update users set email_cipher = null, email_index = null, name_cipher = null, \
         phone_cipher = null, name_index = null, phone_index = null, password_hash = null, \
         email_verified_at = null, role = 'user', language = 'ko', \
         status = 'deleted', deleted_at = $2, updated_at = $2 where id = $1",
        params![id, now],
    )
    .map(drop)
}

/// Marks accounts as dormant that were not used since `before` and have no live session.
///
/// The outer statement repeats the conditions, so that it sees a concurrent login.
pub fn user_mark_dormant(
    tx: &mut Tx<'_>,
    before: Timestamp,
    now: Timestamp,
    limit: u32,
) -> DbResult<u64> {
    tx.execute(
        "update users set status = 'dormant', updated_at = $2 \
         where status = 'active' and last_login_at < $1 and id in \
         (select id from users where status = 'active' and last_login_at < $1 and not exists \
         (select 1 from refresh_tokens where refresh_tokens.user_id = users.id \
         and refresh_tokens.revoked_at is null and refresh_tokens.expires_at > $2) \
         order by last_login_at limit $3)",
        params![before, now, limit],
    )
}

/// Users whose personal data are encrypted with another key.
pub fn user_list_with_other_key(
    tx: &mut Tx<'_>,
    key_version: u16,
    limit: u32,
) -> DbResult<Vec<StoredUser>> {
    let sql = format!(
        "select {USER_COLUMNS} from users where key_version <> $1 and status <> 'deleted' \
         order by id limit $2"
    );
    tx.query(&sql, params![key_version, limit], user_from_row)
}

/// Replaces encrypted data by the same data under another key. `false` if they were changed.
pub fn user_reseal(tx: &mut Tx<'_>, user: &StoredUser, new: &SealedDetails) -> DbResult<bool> {
    let old = user.person.as_ref().expect("deleted accounts are not listed");
    let rows = tx.execute(
        "update users set email_cipher = $2, email_index = $3, name_cipher = $4, \
         phone_cipher = $5, key_version = $6, name_index = $10, phone_index = $11 \
         where id = $1 and key_version = $7 and email_cipher = $8 and name_cipher = $9",
        params![
            user.id,
            new.email_cipher,
            new.email_index,
            new.name_cipher,
            new.phone_cipher,
            new.key_version,
            old.key_version,
            old.email_cipher,
            old.name_cipher,
            new.name_index,
            new.phone_index
        ],
    )?;
    Ok(rows == 1)
}
