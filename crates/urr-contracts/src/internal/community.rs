//! Internal calls to the community service.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use urr_kernel::Uuid;
use urr_service::Caller;

const DEADLINE: Duration = Duration::from_secs(5);

const AUTH: &[Caller] = &[Caller::Auth];

internal_calls! {
    /// The calls to the community service.
    pub enum CommunityCalls {
        GetContributions -> ContributionsAnswer:
            Get "/internal/community/contributions/{userId}", AUTH, DEADLINE;
    }
}

/// Asks what a user wrote, for a copy of all of the user's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetContributions {
    pub user_id: Uuid,
}

/// The answer of [`GetContributions`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContributionsAnswer {
    /// Posts, comments and reports, as a document for the user.
    pub records: Value,
}
