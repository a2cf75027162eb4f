//! Check-in: a ticket admits once, or again after its visitor went out if the event allows that.
//!
//! Every scan is a row. What the rows of a ticket mean together is judged under the lock of the
//! ticket ([`rules::judge_scans`]); the ticket carries the result.

pub(crate) mod http;
pub(crate) mod list;
pub(crate) mod offline;
pub(crate) mod offline_http;
pub(crate) mod rules;
pub(crate) mod signature;
pub(crate) mod store;

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{DbResult, StorageError, Tx};

use crate::TicketService;
use crate::check_in::rules::{
    DoorName, Presence, Scan, ScanDirection, ScanOutcome, judge_scans, may_undo, other_entry,
};
use crate::check_in::signature::InvalidPayload;
use crate::check_in::store as check_in;
use crate::check_in::store::{CheckInCounts, CheckInTicket};
use crate::reservations::transition::PreparedEvents;
use crate::transfers::end_with_entry;

/// `T-0000-0000-0000` without its hyphens.
const NUMBER_SIGNS: usize = 13;

/// A ticket that is scanned at a door of an event.
#[derive(Clone, Debug)]
pub struct ScannedTicket {
    /// The phone's name for the scan: a repetition changes nothing.
    pub scan_id: Uuid,
    pub code: TicketCode,
    pub event_id: Uuid,
    pub direction: ScanDirection,
    pub door: DoorName,
    /// Who holds the phone.
    pub staff_id: Uuid,
}

/// How a ticket is named at a door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketCode {
    /// The text of its QR code.
    Payload(String),
    /// Its number, typed.
    Number(String),
}

impl TicketCode {
    /// A number may be typed in small letters and without hyphens.
    pub fn parse(text: &str) -> TicketCode {
        let text = text.trim();
        let signs: String = text.chars().filter(|c| *c != '-').collect();
        let is_number = signs.len() == NUMBER_SIGNS
            && signs.starts_with(['T', 't'])
            && signs.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_number {
            return TicketCode::Payload(text.to_owned());
        }
        let signs = signs.to_ascii_uppercase();
        let groups = [&signs[..1], &signs[1..5], &signs[5..9], &signs[9..]];
        TicketCode::Number(groups.join("-"))
    }
}

/// An entry, as it is told to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryNote {
    pub at: Timestamp,
    pub by: Uuid,
    pub door: DoorName,
}

impl From<&Scan> for EntryNote {
    fn from(scan: &Scan) -> EntryNote {
        EntryNote { at: scan.scanned_at, by: scan.staff_id, door: scan.door.clone() }
    }
}

/// Why a ticket is not checked in or out.
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
    AlreadyCheckedIn(EntryNote),
    #[error("The visitor with this ticket is not inside.")]
    NotInside,
    #[error("At this event nobody who leaves comes in again.")]
    ReentryNotAllowed,
    #[error("Another ticket was scanned under this id.")]
    ScanIdReused,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a scan is not undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoScanError {
    #[error("This ticket has no such scan.")]
    NotFound,
    #[error("A scan can be undone for one minute.")]
    TooLate,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The scan to undo.
#[derive(Clone, Copy, Debug)]
pub struct UndoScan {
    pub ticket_id: Uuid,
    pub scan_id: Uuid,
    pub event_id: Uuid,
    pub staff_id: Uuid,
}

/// A ticket with the scan that was accepted.
#[derive(Clone, Debug)]
pub struct AcceptedScan {
    pub ticket: CheckInTicket,
    pub scan: Scan,
}

impl TicketService {
    /// Checks a ticket in or out: signature, event, issue, validity, and where its visitor is; one
    /// transaction.
    pub async fn check_in(&self, shown: ScannedTicket) -> Result<AcceptedScan, CheckInError> {
        let (ticket_id, issue) = match &shown.code {
            TicketCode::Payload(payload) => {
                let signed = self.signer.verify(payload)?;
                if signed.event_id != shown.event_id {
                    return Err(CheckInError::OtherEvent { event_id: signed.event_id });
                }
                (signed.ticket_id, signed.issue)
            }
            TicketCode::Number(number) => self.find_by_number(number.clone()).await?,
        };
        let action = match shown.direction {
            ScanDirection::Entry => "TICKET_CHECKED_IN",
            ScanDirection::Exit => "TICKET_CHECKED_OUT",
        };
        let action = self.admin_action(shown.staff_id, action, "ticket", ticket_id);
        let prepared = self.prepare_events(1, CallContext::root(self.ids.next_id()));
        let now = urr_kernel::truncate_to_micros(self.clock.now());
        let written = self.db.write(move |tx| {
            let tickets = check_in::tickets_lock(tx, &[ticket_id])?;
            let ticket = tickets.into_values().next().ok_or(CheckInError::NotFound)?;
            check_ticket(&ticket, shown.event_id, issue)?;
            let mut scans = check_in::scans_load(tx, &[ticket_id])?;
            let mut scans = scans.remove(&ticket_id).unwrap_or_default();
            if let Some(scan) = scans.iter().find(|scan| scan.id == shown.scan_id) {
                return repeated(ticket, scan, &scans);
            }
            let scan = new_scan(&shown, ticket_id, &scans, now);
            scans.push(scan);
            let allows_reentry = check_in::reentry_find(tx, shown.event_id)?;
            let presence = judge_scans(&mut scans, allows_reentry);
            let scan = find_scan(&scans, shown.scan_id).clone();
            refuse_unaccepted(&scan, &scans)?;
            if !check_in::scan_insert(tx, shown.event_id, &scan)? {
                return Err(CheckInError::ScanIdReused);
            }
            check_in::presence_update(tx, ticket_id, &presence)?;
            end_listing(tx, &ticket, &prepared, now)?;
            log_scan(tx, &action, &ticket, &scan)?;
            Ok(AcceptedScan { ticket, scan })
        });
        written.await
    }

    async fn find_by_number(&self, number: String) -> Result<(Uuid, u32), CheckInError> {
        let found = self.db.read(move |tx| check_in::ticket_by_number(tx, &number)).await;
        found.map_err(|error: StorageError| error)?.ok_or(CheckInError::NotFound)
    }

    /// Takes a scan back: its visitor did not pass the door. For a minute only, because later the
    /// ticket may have been shown to others. A repetition changes nothing.
    pub async fn undo_scan(&self, undo: UndoScan) -> Result<CheckInTicket, UndoScanError> {
        let UndoScan { ticket_id, scan_id, event_id, staff_id } = undo;
        let action = self.admin_action(staff_id, "SCAN_UNDONE", "ticket", ticket_id);
        let now = urr_kernel::truncate_to_micros(self.clock.now());
        let undone = self.db.write(move |tx| {
            let tickets = check_in::tickets_lock(tx, &[ticket_id])?;
            let ticket = tickets.into_values().find(|ticket| ticket.event_id == event_id);
            let ticket = ticket.ok_or(UndoScanError::NotFound)?;
            let mut scans = check_in::scans_load(tx, &[ticket_id])?;
            let mut scans = scans.remove(&ticket_id).unwrap_or_default();
            let scan = scans.iter_mut().find(|scan| scan.id == scan_id);
            let scan = scan.ok_or(UndoScanError::NotFound)?;
            if scan.undone_at.is_some() {
                return Ok(ticket);
            }
            if !may_undo(scan, now) {
                return Err(UndoScanError::TooLate);
            }
            scan.undone_at = Some(now);
            let taken_back = scan.clone();
            check_in::scan_set_undone(tx, (event_id, scan_id), staff_id, now)?;
            let allows_reentry = check_in::reentry_find(tx, event_id)?;
            rejudge(tx, event_id, &mut scans, allows_reentry)?;
            log_scan(tx, &action, &ticket, &taken_back)?;
            Ok(ticket)
        });
        undone.await
    }

    /// How many tickets of an event were checked in.
    pub async fn count_check_ins(&self, event_id: Uuid) -> DbResult<CheckInCounts> {
        self.db.read(move |tx| check_in::check_in_count(tx, event_id)).await
    }

    /// The event of a ticket.
    pub(crate) async fn event_of_ticket(&self, ticket_id: Uuid) -> DbResult<Option<Uuid>> {
        let found = self.db.read(move |tx| check_in::tickets_find(tx, &[ticket_id])).await?;
        Ok(found.into_values().next().map(|ticket| ticket.event_id))
    }
}

fn check_ticket(ticket: &CheckInTicket, event_id: Uuid, issue: u32) -> Result<(), CheckInError> {
    if ticket.event_id != event_id {
        return Err(CheckInError::OtherEvent { event_id: ticket.event_id });
    }
    if ticket.issue != issue {
        return Err(CheckInError::Reissued);
    }
    if !ticket.is_valid {
        return Err(CheckInError::Cancelled);
    }
    Ok(())
}

/// A scan that happens now. It comes after all others, whatever the clocks of phones said.
fn new_scan(shown: &ScannedTicket, ticket_id: Uuid, scans: &[Scan], now: Timestamp) -> Scan {
    let after = |scan: &Scan| scan.scanned_at + std::time::Duration::from_micros(1);
    let scanned_at = scans.iter().map(after).fold(now, Timestamp::max);
    Scan {
        id: shown.scan_id,
        ticket_id,
        direction: shown.direction,
        door: shown.door.clone(),
        staff_id: shown.staff_id,
        scanned_at,
        recorded_at: now,
        outcome: ScanOutcome::Accepted,
        undone_at: None,
    }
}

fn find_scan(scans: &[Scan], id: Uuid) -> &Scan {
    scans.iter().find(|scan| scan.id == id).expect("it was put there just now")
}

/// The answer to a scan that was recorded before: the phone did not hear the first one.
fn repeated(
    ticket: CheckInTicket,
    scan: &Scan,
    scans: &[Scan],
) -> Result<AcceptedScan, CheckInError> {
    refuse_unaccepted(scan, scans)?;
    Ok(AcceptedScan { ticket, scan: scan.clone() })
}

fn refuse_unaccepted(scan: &Scan, scans: &[Scan]) -> Result<(), CheckInError> {
    match scan.outcome {
        ScanOutcome::Accepted => Ok(()),
        ScanOutcome::Duplicate => {
            let entry = other_entry(scans, scan).expect("a duplicate comes after an entry");
            Err(CheckInError::AlreadyCheckedIn(entry.into()))
        }
        ScanOutcome::NotInside => Err(CheckInError::NotInside),
        ScanOutcome::ReentryNotAllowed => Err(CheckInError::ReentryNotAllowed),
        ScanOutcome::Cancelled => Err(CheckInError::Cancelled),
        ScanOutcome::Reissued => Err(CheckInError::Reissued),
    }
}

/// Judges the scans of one ticket again and writes what has changed.
fn rejudge(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    scans: &mut [Scan],
    allows_reentry: bool,
) -> DbResult<Presence> {
    let Some(ticket_id) = scans.first().map(|scan| scan.ticket_id) else {
        return Ok(Presence::default());
    };
    let before = scans.to_vec();
    let presence = judge_scans(scans, allows_reentry);
    for scan in scans.iter() {
        if find_scan(&before, scan.id).outcome != scan.outcome {
            check_in::scan_set_outcome(tx, event_id, scan)?;
        }
    }
    check_in::presence_update(tx, ticket_id, &presence)?;
    Ok(presence)
}

/// A ticket that was used is not for sale any more. `ticket` is from before the scan.
fn end_listing(
    tx: &mut Tx<'_>,
    ticket: &CheckInTicket,
    prepared: &PreparedEvents,
    now: Timestamp,
) -> DbResult<()> {
    match ticket.checked_in_at {
        None => end_with_entry(tx, &[ticket.reservation_id], prepared, now),
        Some(_) => Ok(()),
    }
}

fn log_scan(
    tx: &mut Tx<'_>,
    action: &AdminAction,
    ticket: &CheckInTicket,
    scan: &Scan,
) -> DbResult<()> {
    let CheckInTicket { number, reservation_number, .. } = ticket;
    // Names and numbers alone: people read the log in two languages.
    let mut summary = format!("{number} · {reservation_number}");
    if !scan.door.as_str().is_empty() {
        summary.push_str(&format!(" · {}", scan.door.as_str()));
    }
    admin_log::insert(tx, &AdminAction { summary, ..action.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_however_it_is_typed() {
        let number = |text: &str| TicketCode::Number(text.to_owned());
        for typed in ["T-0A1B-2C3D-4E5F", " t-0a1b-2c3d-4e5f ", "T0A1B2C3D4E5F"] {
            assert_eq!(TicketCode::parse(typed), number("T-0A1B-2C3D-4E5F"));
        }
        for other in ["URR1.abc.def", "R-0A1B-2C3D-4E5F", "T-0A1B", "T-0A1B-2C3D-4E5F-", "티"] {
            let is_number = matches!(TicketCode::parse(other), TicketCode::Number(_));
            assert_eq!(is_number, other.ends_with('-'), "{other}");
        }
    }
}
