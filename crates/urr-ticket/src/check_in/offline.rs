//! Scans that a phone reports later, because it had no network when it let visitors in.
//!
//! Nobody can be sent out again, so nothing is refused: each scan is recorded with what it turned out
//! to be. Of two phones that both let a ticket in, the earlier scan counts; the other one is a
//! duplicate, and is kept for the organiser.

use std::collections::{BTreeMap, BTreeSet};

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::admin_log::{self, AdminAction};
use urr_storage::{DbResult, StorageError, Tx};

use crate::TicketService;
use crate::check_in::rules::{DoorName, Scan, ScanDirection, ScanOutcome, other_entry, scan_time};
use crate::check_in::signature::InvalidPayload;
use crate::check_in::store as check_in;
use crate::check_in::store::CheckInTicket;
use crate::check_in::{EntryNote, TicketCode, find_scan, rejudge};
use crate::transfers::end_with_entry;

/// A report has at most this many scans.
pub const SCANS_PER_REPORT_MAX: usize = 500;

/// So many share a transaction: each waits for the tickets that others are scanning.
const SCANS_AT_ONCE: usize = 100;

/// The newest of them are shown.
const CONFLICTS_SHOWN: u32 = 100;

/// What a phone has done without a network.
#[derive(Clone, Debug)]
pub struct ScanReport {
    pub event_id: Uuid,
    pub staff_id: Uuid,
    /// The time on the phone when it sent the report.
    pub sent_at: Timestamp,
    pub scans: Vec<ReportedScan>,
}

#[derive(Clone, Debug)]
pub struct ReportedScan {
    pub scan_id: Uuid,
    pub code: TicketCode,
    pub direction: ScanDirection,
    pub door: DoorName,
    /// The time on the phone when it saw the ticket.
    pub scanned_at: Timestamp,
}

/// What a reported scan turned out to be.
#[derive(Clone, Debug)]
pub struct ScanResult {
    pub scan_id: Uuid,
    pub verdict: ScanVerdict,
    pub ticket: Option<CheckInTicket>,
    /// For a duplicate the entry that counts; for an accepted entry one that it has made a
    /// duplicate.
    pub other_entry: Option<EntryNote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanVerdict {
    Recorded(ScanOutcome),
    /// The code is none of ours.
    Forged,
    UnknownTicket,
    OtherEvent,
    /// Another ticket was scanned under this id.
    ScanIdReused,
}

impl ScanVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            ScanVerdict::Recorded(outcome) => outcome.as_str(),
            ScanVerdict::Forged => "forged",
            ScanVerdict::UnknownTicket => "unknown",
            ScanVerdict::OtherEvent => "wrong_event",
            ScanVerdict::ScanIdReused => "scan_id_reused",
        }
    }
}

/// A scan by which somebody was let in who should not have been.
#[derive(Clone, Debug)]
pub struct CheckInConflict {
    pub scan: Scan,
    pub ticket: CheckInTicket,
    /// The entry that counts.
    pub entry: Option<EntryNote>,
}

/// A reported scan whose code was read.
#[derive(Clone, Debug)]
struct ReadScan {
    scan: Scan,
    issue: u32,
}

impl TicketService {
    /// Records the scans of a report, some per transaction. After a crash the phone repeats the
    /// report, and what was recorded stays as it is.
    pub async fn report_scans(&self, report: ScanReport) -> DbResult<Vec<ScanResult>> {
        let now = urr_kernel::truncate_to_micros(self.clock.now());
        let mut results = BTreeMap::new();
        let mut read = Vec::new();
        for reported in &report.scans {
            match self.read_scan(&report, reported, now).await? {
                Ok(scan) => read.push(scan),
                Err(verdict) => {
                    let scan_id = reported.scan_id;
                    let result = ScanResult { scan_id, verdict, ticket: None, other_entry: None };
                    results.insert(scan_id, result);
                }
            }
        }
        // The scans of one ticket stay together, and tickets are locked in the order of their ids.
        read.sort_by_key(|read| (read.scan.ticket_id, read.scan.scanned_at, read.scan.id));
        for chunk in read.chunks(SCANS_AT_ONCE) {
            for result in self.record_scans(&report, chunk.to_vec(), now).await? {
                results.insert(result.scan_id, result);
            }
        }
        let in_order = report.scans.iter().filter_map(|scan| results.get(&scan.scan_id).cloned());
        Ok(in_order.collect())
    }

    async fn read_scan(
        &self,
        report: &ScanReport,
        reported: &ReportedScan,
        now: Timestamp,
    ) -> DbResult<Result<ReadScan, ScanVerdict>> {
        let found = match &reported.code {
            TicketCode::Payload(payload) => match self.signer.verify(payload) {
                Ok(signed) if signed.event_id != report.event_id => Err(ScanVerdict::OtherEvent),
                Ok(signed) => Ok((signed.ticket_id, signed.issue)),
                Err(InvalidPayload::Forged | InvalidPayload::Malformed) => Err(ScanVerdict::Forged),
            },
            TicketCode::Number(number) => {
                let number = number.clone();
                let found = self.db.read(move |tx| check_in::ticket_by_number(tx, &number)).await?;
                found.ok_or(ScanVerdict::UnknownTicket)
            }
        };
        Ok(found.map(|(ticket_id, issue)| ReadScan {
            scan: Scan {
                id: reported.scan_id,
                ticket_id,
                direction: reported.direction,
                door: reported.door.clone(),
                staff_id: report.staff_id,
                scanned_at: urr_kernel::truncate_to_micros(scan_time(
                    reported.scanned_at,
                    report.sent_at,
                    now,
                )),
                recorded_at: now,
                outcome: ScanOutcome::Accepted,
                undone_at: None,
            },
            issue,
        }))
    }

    async fn record_scans(
        &self,
        report: &ScanReport,
        read: Vec<ReadScan>,
        now: Timestamp,
    ) -> DbResult<Vec<ScanResult>> {
        let ScanReport { event_id, staff_id, .. } = *report;
        let action = self.admin_action(staff_id, "SCANS_REPORTED", "event", event_id);
        let prepared = self.prepare_events(SCANS_AT_ONCE, CallContext::root(self.ids.next_id()));
        let recorded = self.db.write(move |tx| {
            let ids: BTreeSet<Uuid> = read.iter().map(|read| read.scan.ticket_id).collect();
            let ids: Vec<Uuid> = ids.into_iter().collect();
            let tickets = check_in::tickets_lock(tx, &ids)?;
            let mut scans = check_in::scans_load(tx, &ids)?;
            let allows_reentry = check_in::reentry_find(tx, event_id)?;
            let mut verdicts = BTreeMap::new();
            for read in &read {
                let of_ticket = scans.entry(read.scan.ticket_id).or_default();
                let ticket = tickets.get(&read.scan.ticket_id);
                let verdict = record_scan(tx, event_id, ticket, read, of_ticket)?;
                verdicts.insert(read.scan.id, verdict);
            }
            let mut entered = BTreeSet::new();
            for (ticket_id, of_ticket) in &mut scans {
                let presence = rejudge(tx, event_id, of_ticket, allows_reentry)?;
                let ticket = tickets.get(ticket_id).filter(|_| presence.first_entry.is_some());
                let new = ticket.filter(|ticket| ticket.checked_in_at.is_none());
                entered.extend(new.map(|ticket| ticket.reservation_id));
            }
            let entered: Vec<Uuid> = entered.into_iter().collect();
            end_with_entry(tx, &entered, &prepared, now)?;
            let results = results(&read, &verdicts, &tickets, &scans);
            log_report(tx, &action, &results)?;
            Ok::<_, StorageError>(results)
        });
        recorded.await
    }

    /// The newest conflicts of an event.
    pub async fn list_conflicts(&self, event_id: Uuid) -> DbResult<Vec<CheckInConflict>> {
        let listed = self.db.read(move |tx| {
            let conflicts = check_in::conflict_list(tx, event_id, CONFLICTS_SHOWN)?;
            let ids: BTreeSet<Uuid> = conflicts.iter().map(|scan| scan.ticket_id).collect();
            let ids: Vec<Uuid> = ids.into_iter().collect();
            let (tickets, scans) =
                (check_in::tickets_find(tx, &ids)?, check_in::scans_load(tx, &ids)?);
            let conflict = |scan: Scan| {
                let ticket = tickets.get(&scan.ticket_id)?.clone();
                let entry = other_entry(&scans[&scan.ticket_id], &scan).map(EntryNote::from);
                Some(CheckInConflict { scan, ticket, entry })
            };
            Ok::<_, StorageError>(conflicts.into_iter().filter_map(conflict).collect())
        });
        listed.await
    }
}

/// Inserts a scan, unless it was recorded before or there is no such ticket.
fn record_scan(
    tx: &mut Tx<'_>,
    event_id: Uuid,
    ticket: Option<&CheckInTicket>,
    read: &ReadScan,
    of_ticket: &mut Vec<Scan>,
) -> DbResult<Option<ScanVerdict>> {
    let Some(ticket) = ticket else { return Ok(Some(ScanVerdict::UnknownTicket)) };
    if ticket.event_id != event_id {
        return Ok(Some(ScanVerdict::OtherEvent));
    }
    if of_ticket.iter().any(|scan| scan.id == read.scan.id) {
        return Ok(None);
    }
    let outcome = match ticket {
        ticket if ticket.issue != read.issue => ScanOutcome::Reissued,
        ticket if !ticket.is_valid => ScanOutcome::Cancelled,
        _ => ScanOutcome::Accepted,
    };
    let scan = Scan { outcome, ..read.scan.clone() };
    if !check_in::scan_insert(tx, event_id, &scan)? {
        return Ok(Some(ScanVerdict::ScanIdReused));
    }
    of_ticket.push(scan);
    Ok(None)
}

/// The answers, once all scans of each ticket were judged. Without a verdict of its own a scan is
/// what it was recorded as.
fn results(
    read: &[ReadScan],
    verdicts: &BTreeMap<Uuid, Option<ScanVerdict>>,
    tickets: &BTreeMap<Uuid, CheckInTicket>,
    scans: &BTreeMap<Uuid, Vec<Scan>>,
) -> Vec<ScanResult> {
    let result = |read: &ReadScan| {
        let scan_id = read.scan.id;
        if let Some(verdict) = verdicts[&scan_id] {
            return ScanResult { scan_id, verdict, ticket: None, other_entry: None };
        }
        let of_ticket = &scans[&read.scan.ticket_id];
        let scan = find_scan(of_ticket, scan_id);
        ScanResult {
            scan_id,
            verdict: ScanVerdict::Recorded(scan.outcome),
            ticket: tickets.get(&read.scan.ticket_id).cloned(),
            other_entry: other_entry(of_ticket, scan).map(EntryNote::from),
        }
    };
    read.iter().map(result).collect()
}

fn log_report(tx: &mut Tx<'_>, action: &AdminAction, results: &[ScanResult]) -> DbResult<()> {
    let accepted =
        |result: &&ScanResult| result.verdict == ScanVerdict::Recorded(ScanOutcome::Accepted);
    let accepted = results.iter().filter(accepted).count();
    let summary = format!("{} scans without a network, {accepted} accepted", results.len());
    admin_log::insert(tx, &AdminAction { summary, ..action.clone() })
}
