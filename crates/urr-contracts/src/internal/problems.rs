//! What is wrong at the moment, as each service knows it. The catalog puts it together for people.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::Caller;

pub(crate) const CALLERS: &[Caller] = &[Caller::Catalog];
/// Somebody looks at it, and a service that is slow is itself a problem.
pub(crate) const DEADLINE: Duration = Duration::from_secs(1);

wire_enum! {
    /// What is wrong.
    pub open enum ProblemCode {
        /// A service does not answer.
        ServiceAway => "SERVICE_AWAY",
        /// Calls to a service are not made because it failed too often.
        BreakerOpen => "BREAKER_OPEN",
        /// Messages could not be handled.
        DeadLetters => "DEAD_LETTERS",
        /// Only the provider knows whether a payment was charged, for more than a minute.
        PaymentsUnclear => "PAYMENTS_UNCLEAR",
        /// The provider does not give money back.
        RefundsDeclined => "REFUNDS_DECLINED",
        /// The ledger does not explain payments.
        LedgerUnexplained => "LEDGER_UNEXPLAINED",
        /// The provider and we differ about orders.
        ProviderDiffers => "PROVIDER_DIFFERS",
        /// Something about payments needed an operator within the last hour.
        PaymentAlarm => "PAYMENT_ALARM",
        /// Seats, reservations and tickets do not agree.
        SeatsDiffer => "SEATS_DIFFER",
        /// Nobody is admitted although people wait.
        RoomPaused => "ROOM_PAUSED",
        /// The waiting rooms do not answer.
        RoomsAway => "ROOMS_AWAY",
        /// Mails could not be sent within the last day.
        MailsFailed => "MAILS_FAILED",
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub code: ProblemCode,
    pub count: u64,
    /// Null if it is not known since when.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// The event that it concerns alone.
    #[serde(default)]
    pub event_id: Option<Uuid>,
    /// A name: of a service, of an event, of an alarm.
    #[serde(default)]
    pub subject: Option<String>,
}

impl Problem {
    pub fn new(code: ProblemCode, count: u64) -> Problem {
        Problem { code, count, since: None, event_id: None, subject: None }
    }

    /// A service whose calls are not made at the moment.
    pub fn breaker(caller: &str, target: &str) -> Problem {
        let subject = Some(format!("{caller} → {target}"));
        Problem { subject, ..Problem::new(ProblemCode::BreakerOpen, 1) }
    }
}

/// The answer of every service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemList {
    pub problems: Vec<Problem>,
}

/// Declares the question to a service.
macro_rules! problem_calls {
    ($($(#[$meta:meta])* $name:ident)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Only what concerns this organiser's events; null: everything.
            #[serde(default)]
            pub organiser_id: Option<Uuid>,
        }
    )+};
}

problem_calls! {
    /// Asks the ticket service.
    ListTicketProblems
    /// Asks the payment service.
    ListPaymentProblems
    /// Asks the queue service.
    ListQueueProblems
    /// Asks the mail service.
    ListMailProblems
}
