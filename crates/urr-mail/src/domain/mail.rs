//! Mails and how far they are.

use urr_kernel::{Timestamp, Uuid, define_id};

use super::facts::Facts;

define_id!(
    /// Which mail.
    MailId
);

/// What somebody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The tickets are bought.
    Purchase,
    /// A reservation was cancelled.
    Cancellation,
    /// Money went back.
    Refund,
    /// In the waiting room it is nearly their turn.
    TurnNear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Waiting,
    /// The sender has taken it.
    Sent,
    /// It was tried, and nobody tries again unless an administrator says so.
    Failed,
    /// There is nobody to tell, or it is too late.
    Dropped,
}

/// What an account wants to be written to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    Korean,
    English,
}

/// A mail as the table holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    pub id: MailId,
    pub kind: Kind,
    /// What it is about. Of each kind there is one mail about it.
    pub subject_id: Uuid,
    pub user_id: Uuid,
    pub facts: Facts,
    /// Whether the ticket office was asked for what the event did not say.
    pub is_complete: bool,
    /// As it was when the account was last asked for.
    pub language: Option<Language>,
    pub status: Status,
    pub last_error: Option<String>,
    pub attempts: u32,
    pub due_at: Timestamp,
    pub useful_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Purchase, Kind::Cancellation, Kind::Refund, Kind::TurnNear];

    pub const fn name(self) -> &'static str {
        match self {
            Kind::Purchase => "purchase",
            Kind::Cancellation => "cancellation",
            Kind::Refund => "refund",
            Kind::TurnNear => "turn_near",
        }
    }

    /// Smaller ones are sent first: of a turn one has to know now, whatever else is to be told.
    pub const fn priority(self) -> u16 {
        match self {
            Kind::TurnNear => 0,
            Kind::Purchase | Kind::Cancellation | Kind::Refund => 1,
        }
    }

    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Status {
    pub const ALL: [Status; 4] = [Status::Waiting, Status::Sent, Status::Failed, Status::Dropped];

    pub const fn name(self) -> &'static str {
        match self {
            Status::Waiting => "waiting",
            Status::Sent => "sent",
            Status::Failed => "failed",
            Status::Dropped => "dropped",
        }
    }

    pub fn parse(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl Language {
    pub const ALL: [Language; 2] = [Language::Korean, Language::English];

    pub const fn code(self) -> &'static str {
        match self {
            Language::Korean => "ko",
            Language::English => "en",
        }
    }

    pub fn parse(code: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_states_and_languages_are_found_by_their_names() {
        assert!(Kind::ALL.iter().all(|kind| Kind::parse(kind.name()) == Some(*kind)));
        assert!(Status::ALL.iter().all(|status| Status::parse(status.name()) == Some(*status)));
        assert!(Language::ALL.iter().all(|one| Language::parse(one.code()) == Some(*one)));
        assert_eq!((Kind::parse("news"), Language::parse("fr")), (None, None));
    }
}
