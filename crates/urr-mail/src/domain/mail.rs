//! Mails and their states.

use urr_kernel::{Language, Timestamp, Uuid, define_id};
use urr_storage::{storable_enum, storable_id};

use super::template_data::TemplateData;

define_id!(
    /// The id of a mail.
    MailId
);
storable_id!(MailId);

/// What a mail reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailKind {
    /// Tickets were bought.
    Purchase,
    /// Tickets were given away.
    Complimentary,
    /// A reservation was cancelled.
    Cancellation,
    /// Some tickets of a reservation were cancelled.
    PartCancellation,
    /// An event takes place at another time.
    EventMoved,
    /// Money was refunded.
    Refund,
    /// A user in a waiting room is about to be admitted.
    AdmissionNear,
    /// A sale is about to open for a fan who asked to be told.
    SaleAlert,
    /// Seats have returned, and it is the turn of a fan who asked to be told.
    SeatAlert,
    /// A link by which a user proves that the address is theirs.
    EmailVerification,
    /// A link by which a user chooses another password.
    PasswordReset,
}

storable_enum!(MailKind {
    Purchase => "purchase",
    Complimentary => "complimentary",
    Cancellation => "cancellation",
    PartCancellation => "part_cancellation",
    EventMoved => "event_moved",
    Refund => "refund",
    AdmissionNear => "admission_near",
    SaleAlert => "sale_alert",
    SeatAlert => "seat_alert",
    EmailVerification => "email_verification",
    PasswordReset => "password_reset",
});

impl MailKind {
    /// Whether the tickets are attached to it.
    pub const fn has_tickets(self) -> bool {
        matches!(self, MailKind::Purchase | MailKind::Complimentary)
    }

    /// Whether it carries a link with a secret. Such a mail is sent to addresses that nobody has
    /// verified, too, and no other mail is.
    pub const fn is_link(self) -> bool {
        matches!(self, MailKind::EmailVerification | MailKind::PasswordReset)
    }

    /// Smaller ones are sent first: admissions, alerts and links are of no use later.
    pub const fn priority(self) -> u16 {
        match self {
            MailKind::AdmissionNear
            | MailKind::SaleAlert
            | MailKind::SeatAlert
            | MailKind::EmailVerification
            | MailKind::PasswordReset => 0,
            MailKind::Purchase
            | MailKind::Complimentary
            | MailKind::Cancellation
            | MailKind::PartCancellation
            | MailKind::EventMoved
            | MailKind::Refund => 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailStatus {
    Waiting,
    /// The transport has accepted it.
    Sent,
    /// It is not tried again unless an administrator says so.
    Failed,
    /// There is no recipient, or it is too late.
    Dropped,
}

storable_enum!(MailStatus {
    Waiting => "waiting",
    Sent => "sent",
    Failed => "failed",
    Dropped => "dropped",
});

/// A mail as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    pub id: MailId,
    pub kind: MailKind,
    /// What it is about. There is one mail of each kind about it.
    pub subject_id: Uuid,
    pub user_id: Uuid,
    pub template_data: TemplateData,
    /// Whether the ticket service was asked for what the event did not say.
    pub is_complete: bool,
    /// The language of the last attempt.
    pub language: Option<Language>,
    pub status: MailStatus,
    pub last_error: Option<String>,
    pub attempts: u32,
    pub due_at: Timestamp,
    pub useful_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_states_and_languages_are_found_by_their_names() {
        assert!(MailKind::ALL.iter().all(|kind| kind.as_str().parse() == Ok(*kind)));
        assert!(MailStatus::ALL.iter().all(|status| status.as_str().parse() == Ok(*status)));
        assert!(Language::ALL.iter().all(|one| one.as_str().parse() == Ok(*one)));
        assert!("news".parse::<MailKind>().is_err() && "fr".parse::<Language>().is_err());
    }
}
