//! Internal calls to the auth service.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{Caller, UserRole};

const DEADLINE: Duration = Duration::from_secs(5);
const SHORT_DEADLINE: Duration = Duration::from_secs(2);

const TICKET: &[Caller] = &[Caller::Ticket];

internal_calls! {
    /// The calls to the auth service.
    pub enum AuthCalls {
        GetUser -> GetUserAnswer: Get "/internal/auth/users/{id}", &Caller::ALL, DEADLINE;
        ListUsers -> ListUsersAnswer: Post "/internal/auth/users/batch", &Caller::ALL, DEADLINE;
        // A search goes over names, so only the service that shows what it finds may ask.
        FindUsers -> FindUsersAnswer: Post "/internal/auth/users/find", TICKET, SHORT_DEADLINE;
        GetPerson -> PersonAnswer:
            Get "/internal/auth/users/{id}/person", TICKET, SHORT_DEADLINE;
        ListRevokedTokens -> RevokedTokenPage:
            Get "/internal/auth/revoked-tokens", &Caller::ALL, SHORT_DEADLINE;
        // The answer is a secret, so only the service that sends it may ask.
        GetAccountLink -> AccountLinkAnswer:
            Get "/internal/auth/links/{id}", &[Caller::Mail], DEADLINE;
    }
}

/// [`ListUsers`] answers for at most this many ids at once.
pub const USERS_PER_CALL_MAX: usize = 100;

/// [`FindUsers`] answers with at most this many accounts.
pub const USERS_FOUND_MAX: usize = 50;

wire_enum! {
    pub open enum AccountRole {
        User => "user",
        Staff => "staff",
        Organiser => "organiser",
        Support => "support",
        Admin => "admin",
    }
}

impl From<UserRole> for AccountRole {
    fn from(role: UserRole) -> AccountRole {
        match role {
            UserRole::User => AccountRole::User,
            UserRole::Staff => AccountRole::Staff,
            UserRole::Organiser => AccountRole::Organiser,
            UserRole::Support => AccountRole::Support,
            UserRole::Admin => AccountRole::Admin,
        }
    }
}

wire_enum! {
    /// What a link that is sent by mail is for.
    pub open enum AccountLinkKind {
        VerifyEmail => "verify_email",
        ResetPassword => "reset_password",
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
    /// Whether the owner of the address has proved that it is theirs. Others get no mail but links.
    #[serde(default)]
    pub email_verified: bool,
}

/// Names and addresses do not belong into logs.
impl std::fmt::Debug for AccountSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountSummary").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Asks for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetUser {
    pub id: Uuid,
}

/// The answer of [`GetUser`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetUserAnswer {
    pub user: AccountSummary,
}

/// Asks for several users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListUsers {
    pub user_ids: Vec<Uuid>,
}

/// The answer of [`ListUsers`]. Ids without an account are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListUsersAnswer {
    pub users: Vec<AccountSummary>,
}

/// Asks for the accounts with this address, name or phone number. They are encrypted, so only a whole
/// one finds its account.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindUsers {
    pub text: String,
}

/// Names and addresses do not belong into logs.
impl std::fmt::Debug for FindUsers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FindUsers").finish_non_exhaustive()
    }
}

/// The answer of [`FindUsers`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FindUsersAnswer {
    pub user_ids: Vec<Uuid>,
    /// Whether there are more than the answer has.
    pub more: bool,
}

/// Asks for a page of the revoked tokens, in the order in which they were revoked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListRevokedTokens {
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

/// The answer of [`ListRevokedTokens`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedTokenPage {
    pub tokens: Vec<RevokedTokenEntry>,
    /// What to ask after next. A page without tokens is the end of the list.
    pub next: i64,
}

/// Asks which person is behind an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetPerson {
    pub id: Uuid,
}

/// The answer of [`GetPerson`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PersonAnswer {
    /// Keyed hashes of the person, for this purpose only: one per data key, the current one first.
    /// Empty: no provider has verified the identity.
    pub person_hashes: Vec<String>,
}

/// Asks for the secret of a link, to send it. Repeated questions get the same secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetAccountLink {
    pub id: Uuid,
}

/// The answer of [`GetAccountLink`]. A link that was used, replaced or has expired is not found.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountLinkAnswer {
    pub token: String,
    pub expires_at: Timestamp,
}

/// The token does not belong into logs.
impl std::fmt::Debug for AccountLinkAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountLinkAnswer").finish_non_exhaustive()
    }
}
