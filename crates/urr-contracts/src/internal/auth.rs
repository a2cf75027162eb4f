//! Internal calls to the auth service.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::Caller;

use super::InternalCall;

pub const GET_USER: InternalCall = InternalCall::get(
    "auth.users.get",
    "/internal/auth/users/{id}",
    &Caller::ALL,
    Duration::from_secs(5),
);

pub const LIST_USERS: InternalCall = InternalCall::post(
    "auth.users.batch",
    "/internal/auth/users/batch",
    &Caller::ALL,
    Duration::from_secs(5),
);

pub const LIST_REVOKED_TOKENS: InternalCall = InternalCall::get(
    "auth.revoked-tokens.list",
    "/internal/auth/revoked-tokens",
    &Caller::ALL,
    Duration::from_secs(2),
);

/// [`LIST_USERS`] answers for at most this many ids at once.
pub const USERS_PER_CALL_MAX: usize = 100;

wire_enum! {
    pub open enum AccountRole {
        User => "user",
        Admin => "admin",
    }
}

wire_enum! {
    /// The language in which a user wants to read.
    pub open enum AccountLanguage {
        Korean => "ko",
        English => "en",
    }
}

/// A user, as other services need to know them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountSummary {
    pub id: Uuid,
    pub email: String,
    pub name: String,
    pub role: AccountRole,
    pub language: AccountLanguage,
}

/// Names and addresses do not belong into logs.
impl std::fmt::Debug for AccountSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountSummary").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The answer of [`GET_USER`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetUserAnswer {
    pub user: AccountSummary,
}

/// The body of [`LIST_USERS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListUsersBody {
    pub user_ids: Vec<Uuid>,
}

/// The answer of [`LIST_USERS`]. Ids without an account are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListUsersAnswer {
    pub users: Vec<AccountSummary>,
}

/// The query of [`LIST_REVOKED_TOKENS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedTokenQuery {
    /// The `next` of the page before; 0 begins with the oldest.
    #[serde(default)]
    pub after: i64,
}

/// An access token that ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokedTokenEntry {
    pub seq: i64,
    pub jti: Uuid,
    pub expires_at: Timestamp,
}

/// The answer of [`LIST_REVOKED_TOKENS`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedTokenPage {
    pub tokens: Vec<RevokedTokenEntry>,
    /// What to ask after next. A page without tokens is the end of the list.
    pub next: i64,
}
