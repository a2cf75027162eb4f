//! The history of logins.

use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{DbResult, Tx, from_row, params, storable_enum};

use crate::accounts::account::UserId;
use crate::sessions::client_info::ClientInfo;
use crate::social::rules::SocialProvider;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    Password,
    Registration,
    AdminInvite,
    PasswordChange,
    PasswordReset,
    Refresh,
    /// The password was asked for again, within a session.
    Reauthentication,
    Social(SocialProvider),
}

impl LoginMethod {
    const fn name(self) -> &'static str {
        match self {
            LoginMethod::Password => "password",
            LoginMethod::Registration => "registration",
            LoginMethod::AdminInvite => "admin_invite",
            LoginMethod::PasswordChange => "password_change",
            LoginMethod::PasswordReset => "password_reset",
            LoginMethod::Refresh => "refresh",
            LoginMethod::Reauthentication => "reauthentication",
            LoginMethod::Social(provider) => provider.as_str(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginFailure {
    UnknownEmail,
    WrongPassword,
    Suspended,
    TokenReuse,
}

storable_enum!(LoginFailure {
    UnknownEmail => "unknown_email",
    WrongPassword => "wrong_password",
    Suspended => "suspended",
    TokenReuse => "token_reuse",
});

#[derive(Clone, Debug)]
pub struct LoginRecord {
    pub user_id: Option<UserId>,
    /// The session that the login began.
    pub family_id: Option<Uuid>,
    pub method: LoginMethod,
    pub failure: Option<LoginFailure>,
    pub client: ClientInfo,
    pub happened_at: Timestamp,
}

pub fn login_history_insert(tx: &mut Tx<'_>, record: &LoginRecord) -> DbResult<()> {
    tx.execute(
        "insert into login_history \
         (user_id, method, success, failure, address, user_agent, happened_at, family_id) \
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![
            record.user_id,
            record.method.name(),
            record.failure.is_none(),
            record.failure,
            record.client.address,
            record.client.user_agent,
            record.happened_at,
            record.family_id
        ],
    )
    .map(drop)
}

/// Records an attempt as failed before its password is compared, so that attempts at the same time
/// count as well. `None` if too many failed since then. The caller has locked the user.
pub fn reauthentication_begin(
    tx: &mut Tx<'_>,
    record: &LoginRecord,
    since: Timestamp,
    failures_max: u32,
) -> DbResult<Option<i64>> {
    let sql = "select count(*) as total from login_history where user_id = $1 \
               and method = $2 and failure is not null and happened_at > $3";
    let method = LoginMethod::Reauthentication.name();
    let failures: u32 =
        tx.query_one(sql, params![record.user_id, method, since], |row| row.get("total"))?;
    if failures >= failures_max {
        return Ok(None);
    }
    login_history_insert(tx, record)?;
    let sql = "select max(id) as id from login_history where user_id = $1 and method = $2";
    tx.query_one(sql, params![record.user_id, method], |row| row.get("id")).map(Some)
}

/// Removes the record of an attempt whose password was right.
pub fn reauthentication_passed(tx: &mut Tx<'_>, id: i64) -> DbResult<()> {
    tx.execute("delete from login_history where id = $1", params![id]).map(drop)
}

/// Erases the addresses and user agents of a user's logins.
pub fn login_history_erase(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<()> {
    let sql = "update login_history set address = '', user_agent = '' where user_id = $1";
    tx.execute(sql, params![user_id]).map(drop)
}

/// A login of a user, or an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginEntry {
    pub method: String,
    pub failure: Option<String>,
    pub address: String,
    pub user_agent: String,
    pub happened_at: Timestamp,
}

/// One page of a user's logins, the newest first, and how many there are.
pub fn login_history_list(
    tx: &mut Tx<'_>,
    user_id: UserId,
    page: Page,
) -> DbResult<(Vec<LoginEntry>, u64)> {
    let sql = "select count(*) as total from login_history where user_id = $1";
    let total = tx.query_one(sql, params![user_id], |row| row.get("total"))?;
    let sql = "select method, failure, address, user_agent, happened_at from login_history \
               where user_id = $1 order by happened_at desc, id desc limit $2 offset $3";
    let entries = tx.query(sql, params![user_id, page.limit(), page.offset()], |row| {
        Ok(from_row!(row => LoginEntry { method, failure, address, user_agent, happened_at }))
    })?;
    Ok((entries, total))
}
