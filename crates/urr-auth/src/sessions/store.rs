//! The SQL of refresh tokens and revoked access tokens.

use urr_contracts::internal::auth::RevokedTokenEntry;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::accounts::account::UserId;
use crate::sessions::own::LiveSession;
use crate::sessions::refresh::StoredRefreshToken;

const TOKEN_COLUMNS: &str = "id, user_id, family_id, login_at, access_jti, access_expires_at, \
                             access_revoked_at, issued_at, expires_at, rotated_at, revoked_at";

/// A user has fewer live sessions than this, whatever the settings say.
const FAMILIES_LISTED_MAX: u32 = 1_000;

fn token_from_row(row: &Row<'_>) -> DbResult<StoredRefreshToken> {
    Ok(from_row!(row => StoredRefreshToken {
        id, user_id, family_id, login_at, access_expires_at, issued_at, expires_at, rotated_at,
        revoked_at;
        access_id: row.get("access_jti")?,
        access_revoked: row.get::<Option<Timestamp>>("access_revoked_at")?.is_some(),
    }))
}

pub fn refresh_insert(tx: &mut Tx<'_>, token: &StoredRefreshToken, hash: &[u8]) -> DbResult<()> {
    tx.execute(
        "insert into refresh_tokens (id, user_id, family_id, token_hash, access_jti, \
         access_expires_at, issued_at, expires_at, login_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        params![
            token.id,
            token.user_id,
            token.family_id,
            hash,
            token.access_id,
            token.access_expires_at,
            token.issued_at,
            token.expires_at,
            token.login_at
        ],
    )
    .map(drop)
}

pub fn refresh_find(tx: &mut Tx<'_>, hash: &[u8]) -> DbResult<Option<StoredRefreshToken>> {
    let sql = format!("select {TOKEN_COLUMNS} from refresh_tokens where token_hash = $1");
    tx.query_opt(&sql, params![hash], token_from_row)
}

/// The token of a family that was not replaced yet.
pub fn refresh_find_tip(tx: &mut Tx<'_>, family_id: Uuid) -> DbResult<Option<StoredRefreshToken>> {
    let sql = format!(
        "select {TOKEN_COLUMNS} from refresh_tokens where family_id = $1 and rotated_at is null"
    );
    tx.query_opt(&sql, params![family_id], token_from_row)
}

/// The time of the login that started a live session of this user.
pub fn session_login_at(
    tx: &mut Tx<'_>,
    user_id: UserId,
    family_id: Uuid,
) -> DbResult<Option<Timestamp>> {
    let sql = "select login_at from refresh_tokens where family_id = $1 and user_id = $2 \
               and rotated_at is null and revoked_at is null";
    let found = tx.query_opt(sql, params![family_id, user_id], |row| row.get("login_at"))?;
    Ok(found.flatten())
}

/// `false` if the token was replaced or revoked already.
pub fn refresh_rotate(
    tx: &mut Tx<'_>,
    id: Uuid,
    successor_id: Uuid,
    now: Timestamp,
) -> DbResult<bool> {
    let rows = tx.execute(
        "update refresh_tokens set rotated_at = $3, successor_id = $2 \
         where id = $1 and rotated_at is null and revoked_at is null",
        params![id, successor_id, now],
    )?;
    Ok(rows == 1)
}

/// The live sessions of a user except for the `keep` newest.
pub fn family_list_beyond(
    tx: &mut Tx<'_>,
    user_id: UserId,
    keep: u32,
    now: Timestamp,
) -> DbResult<Vec<Uuid>> {
    tx.query(
        "select family_id from refresh_tokens where user_id = $1 and rotated_at is null \
         and revoked_at is null and expires_at > $2 order by issued_at desc, id desc \
         limit $3 offset $4",
        params![user_id, now, FAMILIES_LISTED_MAX, keep],
        |row| row.get("family_id"),
    )
}

/// The live sessions of a user with their logins, the most recently used first.
pub fn session_list(
    tx: &mut Tx<'_>,
    user_id: UserId,
    now: Timestamp,
) -> DbResult<Vec<LiveSession>> {
    tx.query(
        "select t.family_id, t.login_at, t.issued_at, t.expires_at, h.method, h.address, \
         h.user_agent from refresh_tokens as t left join login_history as h \
         on h.family_id = t.family_id where t.user_id = $1 and t.rotated_at is null \
         and t.revoked_at is null and t.expires_at > $2 \
         order by t.issued_at desc, t.id desc limit $3",
        params![user_id, now, FAMILIES_LISTED_MAX],
        |row| {
            Ok(from_row!(row => LiveSession {
                login_at, expires_at, method, address, user_agent;
                id: row.get("family_id")?,
                last_used_at: row.get("issued_at")?,
            }))
        },
    )
}

/// One session or all of a user. The caller holds the lock of the user.
#[derive(Clone, Copy, Debug)]
pub enum SessionSelection {
    One(Uuid),
    AllOf(UserId),
}

impl SessionSelection {
    /// A condition with the parameter $1.
    fn condition(self) -> (&'static str, Uuid) {
        match self {
            SessionSelection::One(family_id) => ("family_id = $1", family_id),
            SessionSelection::AllOf(user_id) => ("user_id = $1", user_id.0),
        }
    }
}

/// Ends sessions: their refresh and access tokens are revoked.
pub fn sessions_end(tx: &mut Tx<'_>, sessions: SessionSelection, now: Timestamp) -> DbResult<()> {
    sessions_revoke_access(tx, sessions, now)?;
    let (condition, id) = sessions.condition();
    let sql = format!(
        "update refresh_tokens set revoked_at = $2 where {condition} and revoked_at is null"
    );
    tx.execute(&sql, params![id, now]).map(drop)
}

/// Revokes the access tokens of sessions that continue; the clients must refresh.
pub fn sessions_revoke_access(
    tx: &mut Tx<'_>,
    sessions: SessionSelection,
    now: Timestamp,
) -> DbResult<()> {
    let (condition, id) = sessions.condition();
    let sql = format!(
        "update refresh_tokens set access_revoked_at = $2 where {condition} \
         and access_revoked_at is null and access_expires_at > $2 \
         returning access_jti, access_expires_at"
    );
    let live = tx.query(&sql, params![id, now], |row| {
        Ok((row.get::<Uuid>("access_jti")?, row.get::<Timestamp>("access_expires_at")?))
    })?;
    access_revoke(tx, &live)
}

/// Adds access tokens to the list that the gateways poll.
fn access_revoke(tx: &mut Tx<'_>, tokens: &[(Uuid, Timestamp)]) -> DbResult<()> {
    if tokens.is_empty() {
        return Ok(());
    }
    let count = i64::try_from(tokens.len()).expect("a user's sessions are few");
    let last: i64 = tx.query_one(
        "update revocation_counter set last_seq = last_seq + $1 where id = 1 returning last_seq",
        params![count],
        |row| row.get("last_seq"),
    )?;
    for (seq, (jti, expires_at)) in (last - count + 1..).zip(tokens) {
        tx.execute(
            "insert into revoked_access_tokens (seq, jti, expires_at) values ($1, $2, $3) \
             on conflict (jti) do nothing",
            params![seq, *jti, *expires_at],
        )?;
    }
    Ok(())
}

/// The revoked tokens after a sequence number, in order.
pub fn revoked_list(
    tx: &mut Tx<'_>,
    after: i64,
    now: Timestamp,
    limit: u32,
) -> DbResult<Vec<RevokedTokenEntry>> {
    tx.query(
        "select seq, jti, expires_at from revoked_access_tokens \
         where seq > $1 and expires_at > $2 order by seq limit $3",
        params![after, now, limit],
        |row| Ok(from_row!(row => RevokedTokenEntry { seq, jti, expires_at })),
    )
}

pub fn is_revoked(tx: &mut Tx<'_>, jti: Uuid) -> DbResult<bool> {
    let sql = "select seq from revoked_access_tokens where jti = $1";
    Ok(tx.query_opt(sql, params![jti], |row| row.get::<i64>("seq"))?.is_some())
}

/// Deletes refresh tokens that have expired together with their access tokens.
pub fn refresh_purge(tx: &mut Tx<'_>, now: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from refresh_tokens where id in (select id from refresh_tokens \
         where expires_at <= $1 and access_expires_at <= $1 order by expires_at limit $2)",
        params![now, limit],
    )
}
