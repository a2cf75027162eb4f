//! What accounts announce: ids only. A reader that needs more asks the auth service, which answers
//! with what is true at that moment.

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;

pub const TOPIC: &str = "user-events";

/// A user opened an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRegistered {
    pub user_id: Uuid,
}

/// A user closed their account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserDeleted {
    pub user_id: Uuid,
}
