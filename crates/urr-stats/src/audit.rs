//! For `urr audit`: whether the counters are the sums of the facts, and the facts as lines that can be
//! compared with the tables of other services.

use std::collections::BTreeMap;

use urr_kernel::Uuid;
use urr_storage::{DbResult, RowDifference, Tx};

use crate::StatsService;
use crate::domain::{
    CountedMessage, CounterChanges, ReservationFact, Transaction, TransactionKind, UserFact,
};
use crate::store::counters::{StoredCounters, counters_read, is_rebuilding};
use crate::store::facts::{FactPage, StoredFact};

const FACTS_AT_ONCE: u32 = 1_000;
/// More differences than this are not listed.
const DIFFERENCES_MAX: usize = 1_000;

/// The facts that another service knows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedFacts {
    Reservations,
    Charges,
    Refunds,
    Transfers,
    Memberships,
}

/// What the recount found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterAudit {
    pub facts: u64,
    /// At most 1,000.
    pub differences: Vec<RowDifference>,
}

impl StatsService {
    /// Counts all facts and compares the sums with the counters. One transaction sees one moment;
    /// what it holds in memory grows with days and events, not with facts.
    pub async fn audit_counters(&self) -> DbResult<CounterAudit> {
        self.db.read(audit_counters).await
    }

    /// The next facts, each as a line, in the order of their ids.
    pub async fn audit_facts(
        &self,
        facts: SharedFacts,
        after: Option<Uuid>,
    ) -> DbResult<Vec<(Uuid, String)>> {
        self.db.read(move |tx| audit_facts(tx, facts, after)).await
    }
}

fn audit_facts(
    tx: &mut Tx<'_>,
    facts: SharedFacts,
    after: Option<Uuid>,
) -> DbResult<Vec<(Uuid, String)>> {
    let kind = match facts {
        SharedFacts::Reservations => {
            let page = FactPage { after, limit: FACTS_AT_ONCE, kind: None };
            let facts: Vec<ReservationFact> = page.read(tx)?;
            return Ok(facts.into_iter().map(|fact| (fact.id, reservation_line(&fact))).collect());
        }
        SharedFacts::Charges => TransactionKind::Charge,
        SharedFacts::Refunds => TransactionKind::Refund,
        SharedFacts::Transfers => TransactionKind::Transfer,
        SharedFacts::Memberships => TransactionKind::Membership,
    };
    let page = FactPage { after, limit: FACTS_AT_ONCE, kind: Some(kind) };
    let facts: Vec<Transaction> = page.read(tx)?;
    Ok(facts.into_iter().map(|fact| (fact.id, format!("amount={}", fact.amount))).collect())
}

fn reservation_line(fact: &ReservationFact) -> String {
    let status = fact.state().as_str();
    let (event_id, quantity) = (fact.terms.event_id, fact.terms.quantity);
    let refund = fact.refund_amount;
    format!("event_id={event_id} status={status} quantity={quantity} refund_amount={refund}")
}

fn audit_counters(tx: &mut Tx<'_>) -> DbResult<CounterAudit> {
    let mut audit = CounterAudit::default();
    if is_rebuilding(tx)? {
        audit.differences.push(RowDifference {
            kind: "rebuild",
            sentence: "the statistics are being counted again, or that was broken off".to_owned(),
            rows: vec!["rebuild id=1".to_owned()],
        });
        return Ok(audit);
    }
    let mut sums = FactSums::default();
    sums.add::<CountedMessage>(tx, None, &mut audit.facts)?;
    sums.add::<UserFact>(tx, None, &mut audit.facts)?;
    sums.add::<ReservationFact>(tx, None, &mut audit.facts)?;
    for kind in TransactionKind::ALL {
        sums.add::<Transaction>(tx, Some(kind), &mut audit.facts)?;
    }
    compare(&sums.into_stored(), &counters_read(tx)?, &mut audit.differences);
    Ok(audit)
}

/// Sums over facts.
#[derive(Default)]
struct FactSums {
    changes: CounterChanges,
    /// Sold seats by event: the seats themselves would be too many.
    seats: BTreeMap<Uuid, i64>,
}

impl FactSums {
    fn add<F: StoredFact>(
        &mut self,
        tx: &mut Tx<'_>,
        kind: Option<TransactionKind>,
        count: &mut u64,
    ) -> DbResult<()> {
        let mut after = None;
        loop {
            let facts: Vec<F> = FactPage { after, limit: FACTS_AT_ONCE, kind }.read(tx)?;
            let Some(last) = facts.last() else { return Ok(()) };
            after = Some(last.key().1);
            *count += u64::try_from(facts.len()).expect("a page is small");
            facts.iter().for_each(|fact| fact.count(&mut self.changes, 1));
            for ((event_id, _), sold) in std::mem::take(&mut self.changes.seats) {
                *self.seats.entry(event_id).or_default() += sold;
            }
        }
    }

    fn into_stored(self) -> StoredCounters {
        let mut stored = StoredCounters::from_changes(&self.changes);
        for (event_id, sold) in self.seats {
            stored.add("sold_seats", format!("event_id={event_id}"), &["sold"], &[sold]);
        }
        stored
    }
}

fn compare(counted: &StoredCounters, stored: &StoredCounters, found: &mut Vec<RowDifference>) {
    let keys = counted.0.keys().chain(stored.0.keys()).collect::<std::collections::BTreeSet<_>>();
    for key in keys {
        let values = |of: &StoredCounters| of.0.get(key).cloned().unwrap_or_default();
        let (counted, stored) = (values(counted), values(stored));
        if counted != stored && found.len() < DIFFERENCES_MAX {
            let ((table, key), none) = (key, "nothing");
            let shown =
                |text: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
            found.push(RowDifference {
                kind: "counters",
                sentence: format!("{table} {key}: the facts add up to {}", shown(&counted)),
                rows: vec![format!("{table} {key} {}", shown(&stored))],
            });
        }
    }
}
