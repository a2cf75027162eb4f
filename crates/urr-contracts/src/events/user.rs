//! What accounts announce: ids only. A reader that needs more asks the auth service, which answers
//! with what is true at that moment.

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;

use crate::internal::auth::{AccountLinkKind, AccountRole};

pub const TOPIC: &str = "user-events";

/// A user opened an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRegistered {
    pub user_id: Uuid,
    #[serde(default)]
    pub role: Option<AccountRole>,
}

/// A user got another role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRoleChanged {
    pub user_id: Uuid,
    pub role: AccountRole,
}

/// A user closed their account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserDeleted {
    pub user_id: Uuid,
}

/// A user is to be sent a link that works once. The link itself is asked for when the mail is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountLinkIssued {
    pub link_id: Uuid,
    pub user_id: Uuid,
    pub kind: AccountLinkKind,
}
