//! What accounts announce: ids only. Who wants to know more asks, and is told what is true then.

use serde::{Deserialize, Serialize};
use urr_kernel::{EventData, Uuid};

/// Someone opened an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRegistered {
    pub user_id: Uuid,
}

/// Someone closed their account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserDeleted {
    pub user_id: Uuid,
}

impl EventData for UserRegistered {
    const TOPIC: &'static str = "user-events";
    const TYPE: &'static str = "USER_REGISTERED";

    fn aggregate_id(&self) -> Uuid {
        self.user_id
    }
}

impl EventData for UserDeleted {
    const TOPIC: &'static str = "user-events";
    const TYPE: &'static str = "USER_DELETED";

    fn aggregate_id(&self) -> Uuid {
        self.user_id
    }
}
