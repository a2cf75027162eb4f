//! Internal calls to the mail service.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::Uuid;
use urr_service::Caller;

use super::problems::{self, ListMailProblems, ProblemList};

internal_calls! {
    /// The calls to the mail service.
    pub enum MailCalls {
        ListMailProblems -> ProblemList:
            Get "/internal/mail/problems", problems::CALLERS, problems::DEADLINE;
        GetMailRecords -> MailRecordsAnswer:
            Get "/internal/mail/records/{userId}", &[Caller::Auth], Duration::from_secs(5);
    }
}

/// Asks for everything that is stored about a user, for the copy of their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GetMailRecords {
    pub user_id: Uuid,
}

/// The answer of [`GetMailRecords`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailRecordsAnswer {
    /// As plain JSON by table.
    pub records: serde_json::Value,
}
