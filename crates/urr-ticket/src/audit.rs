//! The audit: proves that seats, items, reservations, stock and tickets agree, and reports
//! differences. It repairs nothing: a difference is a bug, and repairing it would hide it.

pub(crate) mod gates;
pub(crate) mod problems;
pub(crate) mod rows;
pub(crate) mod store;

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, StorageError, Tx};
use utoipa::ToSchema;

use crate::TicketService;
use crate::audit::store as audit;
use crate::audit::store::{AuditDifference, AuditedEvent};

/// More differences than this are not listed.
pub const DIFFERENCES_MAX: usize = 100;

/// A hold should have been ended this long after its expiry.
const OVERDUE_AFTER: Duration = Duration::from_secs(120);
/// A payment may pin a hold this long: longer than any payment takes, with the time in which a lost
/// outcome is searched for.
const PIN_OLD_AFTER: Duration = Duration::from_secs(15 * 60);
const EVENTS_AT_ONCE: u32 = 500;

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditReport {
    /// How many events were audited.
    pub events: u64,
    /// At most 100.
    pub differences: Vec<AuditDifference>,
}

/// What a run reads beside the events that changed, in rows: the others are audited in turn, because
/// tables can also be changed by hand. With ten million reservations their turn comes about once a day.
const ROWS_IN_TURN_MAX: u64 = 300_000;

/// Audits repeatedly: events that changed or differ in every run, the others in turn.
pub struct Auditor {
    ticket: TicketService,
    rows_in_turn_max: u64,
    /// The number of the last change of each event that need not be audited before its turn.
    known: HashMap<Uuid, i64>,
    /// The last event that had its turn.
    in_turn_after: Uuid,
}

/// No event has this number: one that differs is audited again in every run.
const FENCE_OF_DIFFERING: i64 = -1;

impl TicketService {
    /// Audits every event.
    pub async fn audit(&self) -> DbResult<AuditReport> {
        self.auditor_in_turns(u64::MAX).run().await
    }

    pub fn auditor(&self) -> Auditor {
        self.auditor_in_turns(ROWS_IN_TURN_MAX)
    }

    /// An auditor that reads about so many rows of events whose turn it is.
    pub fn auditor_in_turns(&self, rows_in_turn_max: u64) -> Auditor {
        let (ticket, known) = (self.clone(), HashMap::new());
        Auditor { ticket, rows_in_turn_max, known, in_turn_after: Uuid::nil() }
    }
}

impl Auditor {
    /// Audits the events that changed since the last run, those that differed, and some others. The
    /// first run begins with events that are not over. Differences are logged and counted.
    pub async fn run(&mut self) -> DbResult<AuditReport> {
        let limit = u32::try_from(DIFFERENCES_MAX).expect("it is small");
        let now = self.ticket.clock.now();
        let stuck = move |tx: &mut Tx<'_>| {
            let mut stuck = audit::overdue_audit(tx, now - OVERDUE_AFTER, limit)?;
            stuck.extend(audit::old_pin_audit(tx, now - PIN_OLD_AFTER, limit)?);
            Ok::<_, StorageError>(stuck)
        };
        let differences = self.ticket.db.read(stuck).await?;
        let mut report = AuditReport { events: 0, differences };
        let (mut after, mut rows_left) = (Uuid::nil(), self.rows_in_turn_max);
        loop {
            let list = move |tx: &mut Tx<'_>| audit::event_list(tx, after, EVENTS_AT_ONCE);
            let events: Vec<AuditedEvent> = self.ticket.db.read(list).await?;
            let Some(last) = events.last() else { break };
            after = last.event_id;
            for event in events {
                let is_due = self.is_due(&event, now);
                if is_due || self.takes_turn(&event, &mut rows_left) {
                    report.events += 1;
                    report.differences.extend(self.audit_event(&event, limit).await?);
                }
            }
        }
        if rows_left > 0 {
            // All had their turn.
            self.in_turn_after = Uuid::nil();
        }
        report.differences.extend(self.ticket.audit_gates(DIFFERENCES_MAX).await?);
        report.differences.truncate(DIFFERENCES_MAX);
        self.ticket.metrics.record_audit(&report);
        Ok(report)
    }

    /// Whether an event has to be audited now. One that is over and was never seen waits for its turn,
    /// or a start would audit everything that was ever sold.
    fn is_due(&mut self, event: &AuditedEvent, now: Timestamp) -> bool {
        match self.known.get(&event.event_id) {
            Some(fence) => *fence != event.fence,
            None if event.starts_at < now => {
                self.known.insert(event.event_id, event.fence);
                false
            }
            None => true,
        }
    }

    fn takes_turn(&mut self, event: &AuditedEvent, rows_left: &mut u64) -> bool {
        let is_turn = *rows_left > 0 && event.event_id > self.in_turn_after;
        if is_turn {
            *rows_left = rows_left.saturating_sub(event.rows());
            self.in_turn_after = event.event_id;
        }
        is_turn
    }

    async fn audit_event(
        &mut self,
        event: &AuditedEvent,
        limit: u32,
    ) -> DbResult<Vec<AuditDifference>> {
        let (event_id, fence) = (event.event_id, event.fence);
        let run = move |tx: &mut Tx<'_>| audit::event_audit(tx, event_id, limit);
        let differences: Vec<AuditDifference> = self.ticket.db.read(run).await?;
        let known = if differences.is_empty() { fence } else { FENCE_OF_DIFFERING };
        self.known.insert(event_id, known);
        Ok(differences)
    }
}
