//! Rebuild: counting everything again.
//!
//! First the topics are read from their beginning and unknown facts are added. Then the counters are
//! deleted and counted from the facts, a page at a time. Events that the bus no longer keeps are not
//! lost, because their facts are stored.
//!
//! The consumer may run meanwhile, and an interrupted rebuild leaves nothing wrong: progress is stored
//! with the counters, and a fact beyond it is stored but not counted.

use std::collections::HashSet;

use futures_util::{StreamExt, stream};
use urr_bus::{Bus, BusError, HandleError};
use urr_kernel::{DomainEvent, Uuid};
use urr_storage::{BatchKey, DbResult, StorageError, Tx};

use crate::StatsService;
use crate::consumer::{TOPICS, handle_all};
use crate::domain::{
    CountedMessage, CounterChanges, ReservationFact, Transaction, TransactionKind, UserFact,
};
use crate::store::catalog::event_insert_unknown;
use crate::store::counters::{counters_apply, counters_delete, progress_lock, progress_write};
use crate::store::facts::{FactPage, FactSet, StoredFact, messages_insert};

const REPLAY: BatchKey = BatchKey::named("replay");

/// Messages that are applied concurrently.
const CONCURRENT_MESSAGES_MAX: usize = 32;

/// Facts that are counted in one transaction.
const FACTS_PER_PAGE: u32 = 1_000;

/// The kinds of facts in the order in which they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebuildStage {
    Messages,
    Users,
    Reservations,
    Transactions(TransactionKind),
}

impl RebuildStage {
    const ALL: [RebuildStage; 8] = [
        RebuildStage::Messages,
        RebuildStage::Users,
        RebuildStage::Reservations,
        RebuildStage::Transactions(TransactionKind::Charge),
        RebuildStage::Transactions(TransactionKind::Refund),
        RebuildStage::Transactions(TransactionKind::Transfer),
        RebuildStage::Transactions(TransactionKind::Membership),
        RebuildStage::Transactions(TransactionKind::PartCancellation),
    ];

    fn number(self) -> i32 {
        let index = RebuildStage::ALL.iter().position(|stage| *stage == self);
        index.and_then(|index| i32::try_from(index).ok()).expect("it is one of all stages")
    }
}

/// How far counting has come: facts of earlier stages, and of this one up to an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildProgress {
    pub stage: i32,
    pub after: Uuid,
}

impl RebuildProgress {
    /// All facts are counted.
    pub const DONE: RebuildProgress = RebuildProgress { stage: 100, after: Uuid::nil() };

    fn start(stage: RebuildStage) -> RebuildProgress {
        RebuildProgress { stage: stage.number(), after: Uuid::nil() }
    }

    fn has_counted(&self, (stage, id): (RebuildStage, Uuid)) -> bool {
        (stage.number(), id) <= (self.stage, self.after)
    }
}

/// Facts that are counted in one transaction: each counter is written once, at the end.
pub struct CountingBatch {
    progress: RebuildProgress,
    changes: CounterChanges,
    reservations: FactSet<ReservationFact>,
    charges: FactSet<Transaction>,
    /// The events that have a row.
    event_ids: HashSet<Uuid>,
}

impl CountingBatch {
    /// Waits for its turn: one transaction counts at a time.
    pub fn begin(tx: &mut Tx<'_>) -> DbResult<CountingBatch> {
        Ok(CountingBatch {
            progress: progress_lock(tx)?,
            changes: CounterChanges::default(),
            reservations: FactSet::default(),
            charges: FactSet::default(),
            event_ids: HashSet::new(),
        })
    }

    /// Reads facts that will be asked for.
    pub fn load(
        &mut self,
        tx: &mut Tx<'_>,
        reservation_ids: &HashSet<Uuid>,
        charge_ids: &HashSet<Uuid>,
    ) -> DbResult<()> {
        self.reservations.load(tx, reservation_ids, "")?;
        let kind = TransactionKind::Charge.as_str();
        self.charges.load(tx, charge_ids, &format!(" and kind = '{kind}'"))
    }

    /// Makes sure that an event has a row, even before the catalog has announced it.
    pub fn insert_event(&mut self, tx: &mut Tx<'_>, id: Uuid) -> DbResult<()> {
        match self.event_ids.insert(id) {
            true => event_insert_unknown(tx, id),
            false => Ok(()),
        }
    }

    /// The reservation as it is now.
    pub fn find_reservation(
        &mut self,
        tx: &mut Tx<'_>,
        id: Uuid,
    ) -> DbResult<Option<ReservationFact>> {
        self.reservations.find(id, || ReservationFact::find(tx, id))
    }

    pub fn replace_reservation(&mut self, before: Option<&ReservationFact>, fact: ReservationFact) {
        if self.count_difference(before, &fact) {
            self.reservations.replace(fact);
        }
    }

    /// The transaction that this one replaces.
    pub fn find_transaction(
        &mut self,
        tx: &mut Tx<'_>,
        transaction: &Transaction,
    ) -> DbResult<Option<Transaction>> {
        match transaction.kind {
            TransactionKind::Charge => {
                self.charges.find(transaction.id, || transaction.find_stored(tx))
            }
            _ => transaction.find_stored(tx),
        }
    }

    pub fn replace_transaction(
        &mut self,
        tx: &mut Tx<'_>,
        before: Option<&Transaction>,
        transaction: Transaction,
    ) -> DbResult<()> {
        if transaction.kind != TransactionKind::Charge {
            return self.replace(tx, before, &transaction);
        }
        if self.count_difference(before, &transaction) {
            self.charges.replace(transaction);
        }
        Ok(())
    }

    /// Counts messages that were not seen before.
    pub fn add_messages(&mut self, tx: &mut Tx<'_>, messages: &[CountedMessage]) -> DbResult<()> {
        let mut fresh = messages_insert(tx, messages)?;
        // A message may be there twice.
        for message in messages.iter().filter(|message| fresh.remove(&message.id)) {
            self.count(message, 1);
        }
        Ok(())
    }

    /// Stores a fact in place of what is stored, and moves the counters by the difference.
    pub fn replace<F: StoredFact>(
        &mut self,
        tx: &mut Tx<'_>,
        before: Option<&F>,
        fact: &F,
    ) -> DbResult<()> {
        match self.count_difference(before, fact) {
            true => fact.write(tx),
            false => Ok(()),
        }
    }

    /// Moves the counters by the difference of two facts. `false`: there is none.
    fn count_difference<F: StoredFact>(&mut self, before: Option<&F>, fact: &F) -> bool {
        if before == Some(fact) {
            return false;
        }
        if let Some(before) = before {
            self.count(before, -1);
        }
        self.count(fact, 1);
        true
    }

    /// A rebuild counts what is beyond its progress itself.
    fn count<F: StoredFact>(&mut self, fact: &F, sign: i64) {
        if self.progress.has_counted(fact.key()) {
            fact.count(&mut self.changes, sign);
        }
    }

    /// Writes facts and counters.
    pub fn finish(self, tx: &mut Tx<'_>) -> DbResult<()> {
        self.reservations.write(tx)?;
        self.charges.write(tx)?;
        counters_apply(tx, &self.changes)
    }
}

/// What a rebuild has read and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Messages on the topics.
    pub messages: u64,
    /// Messages that cannot be decoded; they are among the dead letters.
    pub unreadable: u64,
    /// Facts that were counted again.
    pub facts: u64,
}

/// A report of progress while a rebuild runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebuildUpdate<'a> {
    /// The messages of a topic that were read so far.
    Reading { topic: &'a str, messages: u64 },
    /// All messages of the topic were read.
    TopicRead { topic: &'a str, messages: u64 },
    /// The facts that were counted so far.
    Counting { facts: u64 },
}

/// Why a rebuild failed. Another attempt begins anew.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error("the topics could not be read")]
    Bus(#[from] BusError),
    #[error("the counters could not be written")]
    Storage(#[from] StorageError),
    #[error("another rebuild has begun; let it finish")]
    Overtaken,
}

impl StatsService {
    /// Reads the topics, deletes the counters and counts them again.
    pub async fn rebuild(&self, bus: &Bus) -> Result<RebuildReport, RebuildError> {
        self.rebuild_with_updates(bus, |_| {}).await
    }

    /// The same, with reports of progress.
    pub async fn rebuild_with_updates(
        &self,
        bus: &Bus,
        mut report: impl FnMut(RebuildUpdate<'_>),
    ) -> Result<RebuildReport, RebuildError> {
        let mut rebuilt = RebuildReport::default();
        for topic in TOPICS {
            let before = rebuilt.messages;
            self.replay(bus, topic, &mut rebuilt, |messages| {
                report(RebuildUpdate::Reading { topic, messages: messages - before });
            })
            .await?;
            report(RebuildUpdate::TopicRead { topic, messages: rebuilt.messages - before });
        }
        rebuilt.facts = self.recount(|facts| report(RebuildUpdate::Counting { facts })).await?;
        Ok(rebuilt)
    }

    async fn replay(
        &self,
        bus: &Bus,
        topic: &str,
        rebuilt: &mut RebuildReport,
        mut report: impl FnMut(u64),
    ) -> Result<(), RebuildError> {
        let mut pages = bus.pages(topic).await?;
        loop {
            let page = pages.next_page().await?;
            if page.is_empty() {
                return Ok(());
            }
            // Their order does not matter, and concurrent messages share commits.
            let applied = page.into_iter().map(|delivery| self.apply_message(delivery.body));
            let mut applied = stream::iter(applied).buffer_unordered(CONCURRENT_MESSAGES_MAX);
            while let Some(is_readable) = applied.next().await {
                rebuilt.messages += 1;
                rebuilt.unreadable += u64::from(!is_readable?);
            }
            report(rebuilt.messages);
        }
    }

    /// Returns `false` if the message cannot be decoded.
    async fn apply_message(&self, body: Vec<u8>) -> DbResult<bool> {
        let Ok(event) = DomainEvent::from_bytes(&body) else {
            return Ok(false);
        };
        match self.db.write_batched(REPLAY, move |tx| handle_all(tx, &[&event])).await {
            Ok(()) => Ok(true),
            Err(HandleError::Poison(_) | HandleError::NotYet(_)) => Ok(false),
            Err(HandleError::Storage(error)) => Err(error),
        }
    }

    /// Deletes the counters and counts them from the facts. Returns the number of facts.
    async fn recount(&self, mut report: impl FnMut(u64)) -> Result<u64, RebuildError> {
        let mut progress = self.db.write(begin).await?;
        let mut facts = 0;
        for stage in RebuildStage::ALL {
            let mut after = None;
            loop {
                let counted =
                    self.db.write(move |tx| count_page(tx, progress, stage, after)).await?;
                facts += counted.facts;
                report(facts);
                progress = counted.progress;
                if counted.facts == 0 {
                    break;
                }
                after = Some(progress.after);
            }
        }
        self.db.write(move |tx| finish(tx, progress)).await?;
        Ok(facts)
    }
}

fn begin(tx: &mut Tx<'_>) -> DbResult<RebuildProgress> {
    progress_lock(tx)?;
    counters_delete(tx)?;
    let progress = RebuildProgress::start(RebuildStage::Messages);
    progress_write(tx, &progress)?;
    Ok(progress)
}

fn finish(tx: &mut Tx<'_>, expected: RebuildProgress) -> Result<(), RebuildError> {
    progress_check(tx, expected)?;
    Ok(progress_write(tx, &RebuildProgress::DONE)?)
}

/// Fails if another rebuild has gone on with the counting.
fn progress_check(tx: &mut Tx<'_>, expected: RebuildProgress) -> Result<(), RebuildError> {
    match progress_lock(tx)? == expected {
        true => Ok(()),
        false => Err(RebuildError::Overtaken),
    }
}

/// What a step has counted.
struct CountedPage {
    facts: u64,
    progress: RebuildProgress,
}

/// Counts the next page of facts of a stage, those behind `after`, and stores the progress.
fn count_page(
    tx: &mut Tx<'_>,
    expected: RebuildProgress,
    stage: RebuildStage,
    after: Option<Uuid>,
) -> Result<CountedPage, RebuildError> {
    progress_check(tx, expected)?;
    let mut page = FactPage { after, limit: FACTS_PER_PAGE, kind: None };
    let mut changes = CounterChanges::default();
    let ids = match stage {
        RebuildStage::Messages => count_facts::<CountedMessage>(tx, &page, &mut changes)?,
        RebuildStage::Users => count_facts::<UserFact>(tx, &page, &mut changes)?,
        RebuildStage::Reservations => count_facts::<ReservationFact>(tx, &page, &mut changes)?,
        RebuildStage::Transactions(kind) => {
            page.kind = Some(kind);
            count_facts::<Transaction>(tx, &page, &mut changes)?
        }
    };
    counters_apply(tx, &changes)?;
    // An empty page ends the stage: later facts are counted as they come.
    let after = ids.last().copied().unwrap_or(Uuid::max());
    let progress = RebuildProgress { stage: stage.number(), after };
    progress_write(tx, &progress)?;
    Ok(CountedPage { facts: u64::try_from(ids.len()).expect("a page is small"), progress })
}

/// Counts the facts of a page and returns their ids.
fn count_facts<F: StoredFact>(
    tx: &mut Tx<'_>,
    page: &FactPage,
    changes: &mut CounterChanges,
) -> DbResult<Vec<Uuid>> {
    let facts: Vec<F> = page.read(tx)?;
    facts.iter().for_each(|fact| fact.count(changes, 1));
    Ok(facts.iter().map(|fact| fact.key().1).collect())
}
