//! Check-in: a ticket admits once.

pub(crate) mod http;
pub(crate) mod signature;
pub(crate) mod store;

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{DbResult, StorageError};

use crate::TicketService;
use crate::check_in::signature::InvalidPayload;
use crate::check_in::store as check_in;
use crate::check_in::store::{CheckInAttempt, CheckInCounts, CheckInTicket};
use crate::transfers::end_with_entry;

/// A ticket that is scanned at the entrance of an event.
#[derive(Clone, Debug)]
pub struct ScannedTicket {
    /// The text of its QR code.
    pub payload: String,
    pub event_id: Uuid,
    /// The administrator with the scanner.
    pub admin_id: Uuid,
}

/// Why a ticket is not checked in.
#[derive(Debug, thiserror::Error)]
pub enum CheckInError {
    #[error(transparent)]
    Payload(#[from] InvalidPayload),
    #[error("This ticket is for another event.")]
    OtherEvent { event_id: Uuid },
    #[error("We do not know this ticket.")]
    NotFound,
    #[error("This ticket was issued anew, for example to a new owner. Please show the new one.")]
    Reissued,
    #[error("This ticket was cancelled.")]
    Cancelled,
    #[error("This ticket was shown before.")]
    AlreadyCheckedIn { at: Timestamp, by: Option<Uuid> },
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl TicketService {
    /// Checks a ticket in: signature, event, issue, validity, and only once; one transaction.
    pub async fn check_in(&self, shown: &ScannedTicket) -> Result<CheckInTicket, CheckInError> {
        let signed = self.signer.verify(&shown.payload)?;
        if signed.event_id != shown.event_id {
            return Err(CheckInError::OtherEvent { event_id: signed.event_id });
        }
        let (now, admin_id) = (self.clock.now(), shown.admin_id);
        let (ticket_id, issue) = (signed.ticket_id, signed.issue);
        let entering = CheckInAttempt { ticket_id, issue, admin_id, now };
        let action = self.admin_action(admin_id, "TICKET_CHECKED_IN", "ticket", ticket_id);
        let prepared = self.prepare_events(1, CallContext::root(self.ids.next_id()));
        let checked_in = self.db.write(move |tx| {
            let entered = check_in::ticket_check_in(tx, &entering)?;
            let ticket = check_in::ticket_find(tx, ticket_id)?.ok_or(CheckInError::NotFound)?;
            if !entered {
                return Err(refusal(&ticket, issue));
            }
            end_with_entry(tx, ticket.reservation_id, &prepared, now)?;
            let CheckInTicket { number, reservation_number, .. } = &ticket;
            let summary = format!("ticket {number} of reservation {reservation_number}");
            admin_log::insert(tx, &AdminAction { summary, ..action.clone() })?;
            Ok(ticket)
        });
        checked_in.await
    }

    /// How many tickets of an event were checked in.
    pub async fn count_check_ins(&self, event_id: Uuid) -> DbResult<CheckInCounts> {
        self.db.read(move |tx| check_in::check_in_count(tx, event_id)).await
    }
}

/// Why an existing ticket was rejected.
fn refusal(ticket: &CheckInTicket, issue: u32) -> CheckInError {
    if ticket.issue != issue {
        return CheckInError::Reissued;
    }
    if !ticket.is_valid {
        return CheckInError::Cancelled;
    }
    let at = ticket.checked_in_at.expect("a good ticket that did not come in is in already");
    CheckInError::AlreadyCheckedIn { at, by: ticket.checked_in_by }
}
