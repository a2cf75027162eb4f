//! The rules of check-in: what the scans of a ticket mean together.
//!
//! Phones without a network report their scans later, in any order. So a scan is not judged by what
//! arrived before it, but by its time: whatever arrives last, the same scans give the same outcomes.

use std::time::Duration;

use urr_kernel::{Timestamp, UnfitText, Uuid, one_line};
use urr_storage::storable_enum;

/// A scan can be undone for this long.
pub const UNDO_WINDOW: Duration = Duration::from_mins(1);

/// A report is at most this old; an older one counts as this old.
pub const SCAN_AGE_MAX: Duration = Duration::from_hours(24);

const DOOR_CHARS_MAX: usize = 40;
const INITIALS_MAX: usize = 3;

/// Which way a visitor goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanDirection {
    Entry,
    Exit,
}

storable_enum!(ScanDirection { Entry => "entry", Exit => "exit" });

/// What a scan turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanOutcome {
    Accepted,
    /// The visitor of this ticket was in already.
    Duplicate,
    /// Somebody went out who was not in.
    NotInside,
    /// Somebody went out, and the event does not let people in again.
    ReentryNotAllowed,
    Cancelled,
    Reissued,
}

storable_enum!(ScanOutcome {
    Accepted => "accepted",
    Duplicate => "duplicate",
    NotInside => "not_inside",
    ReentryNotAllowed => "reentry_not_allowed",
    Cancelled => "cancelled",
    Reissued => "reissued",
});

/// A scan of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Given by the phone.
    pub id: Uuid,
    pub ticket_id: Uuid,
    pub direction: ScanDirection,
    pub door: DoorName,
    pub staff_id: Uuid,
    pub scanned_at: Timestamp,
    pub recorded_at: Timestamp,
    pub outcome: ScanOutcome,
    pub undone_at: Option<Timestamp>,
}

impl Scan {
    /// Whether the ticket itself was good, and the scan was not taken back.
    fn counts(&self) -> bool {
        let was_bad = matches!(self.outcome, ScanOutcome::Cancelled | ScanOutcome::Reissued);
        !was_bad && self.undone_at.is_none()
    }

    fn is_entry_in_force(&self) -> bool {
        self.direction == ScanDirection::Entry
            && self.outcome == ScanOutcome::Accepted
            && self.undone_at.is_none()
    }
}

/// The name of a door, as its staff calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorName(String);

impl DoorName {
    /// An empty name is allowed: a small venue has one door.
    pub fn parse(text: &str) -> Result<DoorName, UnfitText> {
        match text.trim().is_empty() {
            true => Ok(DoorName(String::new())),
            false => Ok(DoorName(one_line(text, DOOR_CHARS_MAX)?.to_owned())),
        }
    }

    /// A name that was parsed before it was stored.
    pub fn stored(text: String) -> DoorName {
        DoorName(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where the visitor of a ticket is, by all its scans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// The first entry that counts.
    pub first_entry: Option<Scan>,
    pub is_inside: bool,
}

/// Judges all scans of a ticket by their times. The scans are sorted and get their outcomes.
pub fn judge_scans(scans: &mut [Scan], allows_reentry: bool) -> Presence {
    scans.sort_by_key(|scan| (scan.scanned_at, scan.id));
    let mut presence = Presence::default();
    for scan in scans.iter_mut().filter(|scan| scan.counts()) {
        scan.outcome = match (scan.direction, presence.is_inside) {
            (ScanDirection::Entry, true) => ScanOutcome::Duplicate,
            (ScanDirection::Entry, false) => ScanOutcome::Accepted,
            (ScanDirection::Exit, _) if !allows_reentry => ScanOutcome::ReentryNotAllowed,
            (ScanDirection::Exit, true) => ScanOutcome::Accepted,
            (ScanDirection::Exit, false) => ScanOutcome::NotInside,
        };
        if scan.outcome == ScanOutcome::Accepted {
            presence.is_inside = scan.direction == ScanDirection::Entry;
            if presence.first_entry.is_none() {
                presence.first_entry = Some(scan.clone());
            }
        }
    }
    presence
}

/// The entry that makes a scan what it is: for a duplicate the entry before it, for an accepted
/// entry a later one that it has made a duplicate. `scans` were judged.
pub fn other_entry<'a>(scans: &'a [Scan], scan: &Scan) -> Option<&'a Scan> {
    let at = scans.iter().position(|other| other.id == scan.id)?;
    match scan.outcome {
        ScanOutcome::Accepted if scan.direction == ScanDirection::Entry => {
            let mut later = scans[at + 1..].iter().filter(|other| other.undone_at.is_none());
            later
                .find(|other| other.direction == ScanDirection::Entry)
                .filter(|other| other.outcome == ScanOutcome::Duplicate)
        }
        ScanOutcome::Accepted => None,
        _ => scans[..at].iter().rev().find(|other| other.is_entry_in_force()),
    }
}

/// When a phone saw a ticket, by our clock. Its own clock may be wrong by hours, so only the time
/// between the scan and the report is believed, and that within bounds.
pub fn scan_time(scanned_at: Timestamp, sent_at: Timestamp, now: Timestamp) -> Timestamp {
    let age = Duration::try_from(sent_at.duration_since(scanned_at)).unwrap_or_default();
    now - age.min(SCAN_AGE_MAX)
}

/// Whether a scan can still be undone.
pub fn may_undo(scan: &Scan, now: Timestamp) -> bool {
    now <= scan.scanned_at + UNDO_WINDOW
}

/// The first letter of each word of a name: all that a phone without a network needs to know.
pub fn initials(name: &str) -> String {
    let letters = name.split_whitespace().filter_map(|word| word.chars().next());
    let letters: Vec<String> = letters.take(INITIALS_MAX).map(String::from).collect();
    letters.join(" ")
}

#[cfg(test)]
mod tests;
