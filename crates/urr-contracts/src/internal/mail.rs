//! Internal calls to the mail service.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::Caller;

use super::problems::{self, ListMailProblems, ProblemList};

const TICKET: &[Caller] = &[Caller::Ticket];
/// Users wait for these answers.
const SHORT_DEADLINE: Duration = Duration::from_secs(2);

internal_calls! {
    /// The calls to the mail service.
    pub enum MailCalls {
        ListMailProblems -> ProblemList:
            Get "/internal/mail/problems", problems::CALLERS, problems::DEADLINE;
        GetMailRecords -> MailRecordsAnswer:
            Get "/internal/mail/records/{userId}", &[Caller::Auth], Duration::from_secs(5);
        ListReservationMails -> ReservationMailsAnswer:
            Get "/internal/mail/reservations/{reservationId}", TICKET, SHORT_DEADLINE;
        ResendTicketMail -> ResendTicketMailAnswer:
            Post "/internal/mail/reservations/{reservationId}/resend", TICKET, SHORT_DEADLINE;
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

/// Asks for the mails about a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListReservationMails {
    pub reservation_id: Uuid,
}

/// The answer of [`ListReservationMails`]: the oldest first, a hundred at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationMailsAnswer {
    pub mails: Vec<ReservationMail>,
}

/// A mail about a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationMail {
    pub id: Uuid,
    pub user_id: Uuid,
    /// As the administrators' operations name it, for example `purchase`.
    pub kind: String,
    /// As the administrators' operations name it, for example `sent`.
    pub status: String,
    pub created_at: Timestamp,
    /// When it was sent, failed or was dropped.
    #[serde(default)]
    pub ended_at: Option<Timestamp>,
}

/// Sends the mail with the tickets of a reservation to its owner once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResendTicketMail {
    pub reservation_id: Uuid,
    /// The present owner.
    pub user_id: Uuid,
    /// Names the request: a repetition sends no second mail.
    pub request_id: Uuid,
}

/// The answer of [`ResendTicketMail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResendTicketMailAnswer {
    pub mail_id: Uuid,
}
