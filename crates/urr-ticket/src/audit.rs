//! The audit: proves that seats, items, reservations, stock and tickets agree, and reports
//! differences. It repairs nothing: a difference is a bug, and repairing it would hide it.

pub(crate) mod gates;
pub(crate) mod problems;
pub(crate) mod rows;
pub(crate) mod store;

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_service::whole_audit::WholeAudit;
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
/// Everything is audited so often without an order: tables can also be changed by hand.
const WHOLE_AUDIT_EVERY: Duration = Duration::from_hours(24);

/// The result of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditReport {
    /// How many events were audited.
    pub events: u64,
    /// At most 100.
    pub differences: Vec<AuditDifference>,
}

/// Audits repeatedly the events that changed or differ.
pub struct Auditor {
    ticket: TicketService,
    /// The number of the last change of each event that need not be audited.
    known: HashMap<Uuid, i64>,
    /// Whether it audits every event.
    is_whole: bool,
}

/// No event has this number: one that differs is audited again in every run.
const FENCE_OF_DIFFERING: i64 = -1;

impl TicketService {
    /// Audits every event.
    pub async fn audit(&self) -> DbResult<AuditReport> {
        Auditor { is_whole: true, ..self.auditor() }.run().await
    }

    pub fn auditor(&self) -> Auditor {
        Auditor { ticket: self.clone(), known: HashMap::new(), is_whole: false }
    }

    /// The audit of every event: what came of the last one, and whether one runs.
    pub(crate) fn whole_audit(&self) -> WholeAudit {
        let (db, clock, ids) = (self.db.clone(), self.clock.clone(), self.ids.clone());
        WholeAudit { db, clock, ids, name: "reservations" }
    }

    /// Audits every event if nobody has done so for a day. Returns whether it was done.
    pub async fn audit_daily(&self) -> DbResult<bool> {
        self.whole_audit().run_if_older(WHOLE_AUDIT_EVERY, self.audit()).await
    }
}

impl Auditor {
    /// Audits the events that changed since the last run, and those that differed in it or in the last
    /// audit of everything. The first run begins with events that are not over. Differences are
    /// logged and counted.
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
        let last_whole: Option<AuditReport> = self.ticket.whole_audit().state().await?.last;
        for found in last_whole.iter().flat_map(|last| &last.differences) {
            self.known.insert(found.event_id, FENCE_OF_DIFFERING);
        }
        let mut after = Uuid::nil();
        loop {
            let list = move |tx: &mut Tx<'_>| audit::event_list(tx, after, EVENTS_AT_ONCE);
            let events: Vec<AuditedEvent> = self.ticket.db.read(list).await?;
            let Some(last) = events.last() else { break };
            after = last.event_id;
            for event in events {
                if self.is_whole || self.is_due(&event, now) {
                    report.events += 1;
                    report.differences.extend(self.audit_event(&event, limit).await?);
                }
            }
        }
        report.differences.extend(self.ticket.audit_gates(DIFFERENCES_MAX).await?);
        report.differences.truncate(DIFFERENCES_MAX);
        self.ticket.metrics.record_audit(&report);
        Ok(report)
    }

    /// Whether an event has to be audited now. One that is over and was never seen waits for the audit
    /// of everything, or every start would audit everything that was ever sold.
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
