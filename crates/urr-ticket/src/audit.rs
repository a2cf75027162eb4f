//! The audit: proves that seats, items, reservations, stock and tickets agree, and reports
//! differences. It repairs nothing: a difference is a bug, and repairing it would hide it.

pub(crate) mod gates;
pub(crate) mod problems;
pub(crate) mod rows;
pub(crate) mod store;

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use urr_kernel::Uuid;
use urr_storage::{DbResult, StorageError, Tx};
use utoipa::ToSchema;

use crate::TicketService;
use crate::audit::store as audit;
use crate::audit::store::AuditDifference;

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

/// Audits repeatedly and skips events that agreed and have not changed since.
pub struct Auditor {
    ticket: TicketService,
    agreed: HashMap<Uuid, i64>,
    runs: u32,
}

/// After this many runs over changed events one run covers all of them: the tables can also be
/// changed by hand.
const RUNS_BETWEEN_FULL_AUDITS: u32 = 12;

impl TicketService {
    /// Audits every event.
    pub async fn audit(&self) -> DbResult<AuditReport> {
        self.auditor().run().await
    }

    pub fn auditor(&self) -> Auditor {
        Auditor { ticket: self.clone(), agreed: HashMap::new(), runs: 0 }
    }
}

impl Auditor {
    /// Audits the events that changed since the last run. Differences are logged and counted.
    pub async fn run(&mut self) -> DbResult<AuditReport> {
        if self.runs.is_multiple_of(RUNS_BETWEEN_FULL_AUDITS) {
            self.agreed.clear();
        }
        self.runs = self.runs.wrapping_add(1);
        let limit = u32::try_from(DIFFERENCES_MAX).expect("it is small");
        let now = self.ticket.clock.now();
        let stuck = move |tx: &mut Tx<'_>| {
            let mut stuck = audit::overdue_audit(tx, now - OVERDUE_AFTER, limit)?;
            stuck.extend(audit::old_pin_audit(tx, now - PIN_OLD_AFTER, limit)?);
            Ok::<_, StorageError>(stuck)
        };
        let differences = self.ticket.db.read(stuck).await?;
        let mut report = AuditReport { events: 0, differences };
        let mut after = Uuid::nil();
        loop {
            let list = move |tx: &mut Tx<'_>| audit::event_list(tx, after, EVENTS_AT_ONCE);
            let events: Vec<(Uuid, i64)> = self.ticket.db.read(list).await?;
            let Some((last, _)) = events.last() else { break };
            after = *last;
            for (event_id, fence) in events {
                if self.agreed.get(&event_id) == Some(&fence) {
                    continue;
                }
                let run = move |tx: &mut Tx<'_>| audit::event_audit(tx, event_id, limit);
                let differences: Vec<AuditDifference> = self.ticket.db.read(run).await?;
                report.events += 1;
                match differences.is_empty() {
                    true => self.agreed.insert(event_id, fence),
                    false => self.agreed.remove(&event_id),
                };
                report.differences.extend(differences);
            }
        }
        report.differences.extend(self.ticket.audit_gates(DIFFERENCES_MAX).await?);
        report.differences.truncate(DIFFERENCES_MAX);
        self.ticket.metrics.record_audit(&report);
        Ok(report)
    }
}
