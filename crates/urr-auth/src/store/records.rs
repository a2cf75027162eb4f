//! What is written down beside accounts: logins, agreements, invitations.

use urr_kernel::Timestamp;
use urr_storage::{StorageError, Tx, params};

use crate::domain::account::UserId;
use crate::domain::language::Language;
use crate::domain::social::Provider;
use crate::domain::terms::{Agreement, Terms, TermsKind};

/// How someone tried to get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    Password,
    Registration,
    AdminInvite,
    PasswordChange,
    Refresh,
    Social(Provider),
}

impl LoginMethod {
    const fn name(self) -> &'static str {
        match self {
            LoginMethod::Password => "password",
            LoginMethod::Registration => "registration",
            LoginMethod::AdminInvite => "admin_invite",
            LoginMethod::PasswordChange => "password_change",
            LoginMethod::Refresh => "refresh",
            LoginMethod::Social(provider) => provider.name(),
        }
    }
}

/// Why it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginFailure {
    UnknownEmail,
    WrongPassword,
    TokenReuse,
}

impl LoginFailure {
    const fn name(self) -> &'static str {
        match self {
            LoginFailure::UnknownEmail => "unknown_email",
            LoginFailure::WrongPassword => "wrong_password",
            LoginFailure::TokenReuse => "token_reuse",
        }
    }
}

/// Where a request came from, as far as is known. Empty texts where it is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub address: String,
    pub user_agent: String,
    /// What the browser asks for.
    pub language: Option<Language>,
}

/// One line of the history.
#[derive(Clone, Debug)]
pub struct LoginRecord {
    pub user_id: Option<UserId>,
    pub method: LoginMethod,
    pub failure: Option<LoginFailure>,
    pub origin: Origin,
    pub happened_at: Timestamp,
}

pub fn login_record(tx: &mut Tx<'_>, record: &LoginRecord) -> Result<(), StorageError> {
    tx.execute(
        "insert into login_history \
         (user_id, method, success, failure, address, user_agent, happened_at) \
         values ($1, $2, $3, $4, $5, $6, $7)",
        params![
            record.user_id.map(|id| id.0),
            record.method.name(),
            record.failure.is_none(),
            record.failure.map(LoginFailure::name),
            record.origin.address,
            record.origin.user_agent,
            record.happened_at
        ],
    )
    .map(drop)
}

/// Removes from a user's history where they were.
pub fn login_history_erase(tx: &mut Tx<'_>, user_id: UserId) -> Result<(), StorageError> {
    let sql = "update login_history set address = '', user_agent = '' where user_id = $1";
    tx.execute(sql, params![user_id.0]).map(drop)
}

pub fn login_history_purge(
    tx: &mut Tx<'_>,
    before: Timestamp,
    limit: u32,
) -> Result<u64, StorageError> {
    tx.execute(
        "delete from login_history where id in (select id from login_history \
         where happened_at < $1 order by happened_at limit $2)",
        params![before, limit],
    )
}

pub fn terms_insert(
    tx: &mut Tx<'_>,
    user_id: UserId,
    terms: &Terms,
    now: Timestamp,
) -> Result<(), StorageError> {
    terms.answers().iter().try_for_each(|answer| agreement_insert(tx, user_id, answer, now))
}

/// Of two answers at the same moment the second counts.
pub fn agreement_insert(
    tx: &mut Tx<'_>,
    user_id: UserId,
    answer: &Agreement,
    now: Timestamp,
) -> Result<(), StorageError> {
    tx.execute(
        "insert into terms_agreements (user_id, kind, version, agreed, agreed_at) \
         values ($1, $2, $3, $4, $5) on conflict (user_id, kind, agreed_at) \
         do update set version = excluded.version, agreed = excluded.agreed",
        params![user_id.0, answer.kind.name(), answer.version, answer.agreed, now],
    )
    .map(drop)
}

/// What a user said last about each document.
pub fn terms_list_latest(tx: &mut Tx<'_>, user_id: UserId) -> Result<Vec<Agreement>, StorageError> {
    let sql = "select kind, version, agreed from terms_agreements as answer where user_id = $1 \
               and not exists (select 1 from terms_agreements as later \
               where later.user_id = answer.user_id and later.kind = answer.kind \
               and later.agreed_at > answer.agreed_at)";
    tx.query(sql, params![user_id.0], |row| {
        let kind: String = row.get("kind")?;
        let kind = TermsKind::parse(&kind).expect("the table checks the kind");
        Ok(Agreement { kind, version: row.get("version")?, agreed: row.get("agreed")? })
    })
}

/// Replaces the invitations that nobody has used.
pub fn invite_replace(
    tx: &mut Tx<'_>,
    hash: &[u8],
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), StorageError> {
    tx.execute("delete from admin_invites where used_at is null", &[])?;
    tx.execute(
        "insert into admin_invites (token_hash, created_at, expires_at) values ($1, $2, $3)",
        params![hash, now, expires_at],
    )
    .map(drop)
}

pub fn invite_is_open(tx: &mut Tx<'_>, hash: &[u8], now: Timestamp) -> Result<bool, StorageError> {
    let sql = "select created_at from admin_invites \
               where token_hash = $1 and used_at is null and expires_at > $2";
    Ok(tx.query_opt(sql, params![hash, now], |row| row.get::<Timestamp>("created_at"))?.is_some())
}

/// `false`: it is unknown, used or too old.
pub fn invite_use(
    tx: &mut Tx<'_>,
    hash: &[u8],
    user_id: UserId,
    now: Timestamp,
) -> Result<bool, StorageError> {
    let rows = tx.execute(
        "update admin_invites set used_at = $3, used_by = $2 \
         where token_hash = $1 and used_at is null and expires_at > $3",
        params![hash, user_id.0, now],
    )?;
    Ok(rows == 1)
}
