//! Counting everything again.
//!
//! First the topics are read from their beginning: facts that are not known yet are learnt, known
//! ones stay. Then the figures are thrown away and counted from the facts, a stretch at a time.
//! Events that the bus no longer keeps are not lost by that, because the facts are.
//!
//! A consumer may go on meanwhile, and a rebuild that was broken off leaves nothing wrong: how far
//! counting has come is stored with the figures, and a fact beyond that is only noted, not counted.

use futures_util::{StreamExt, stream};
use urr_bus::{Bus, BusError, HandleError};
use urr_kernel::{Event, Uuid};
use urr_storage::{StorageError, Tx};

use crate::Stats;
use crate::domain::{Deed, DeedKind, Heard, Reservation, Sums, User};
use crate::events::{TOPICS, learn};
use crate::store::facts::{self, Fact, Stretch};
use crate::store::figures::{figures_clear, progress_lock, progress_write, sums_apply};

/// So many messages are learnt side by side.
const MESSAGES_AT_ONCE: usize = 32;

/// So many facts are counted in a transaction.
const FACTS_PER_STEP: u32 = 1_000;

/// The kinds of facts in the order in which they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Heard,
    Users,
    Reservations,
    Charges,
    Refunds,
    Transfers,
    Memberships,
}

impl Stage {
    const ALL: [Stage; 7] = [
        Stage::Heard,
        Stage::Users,
        Stage::Reservations,
        Stage::Charges,
        Stage::Refunds,
        Stage::Transfers,
        Stage::Memberships,
    ];

    pub fn of(kind: DeedKind) -> Stage {
        match kind {
            DeedKind::Charge => Stage::Charges,
            DeedKind::Refund => Stage::Refunds,
            DeedKind::Transfer => Stage::Transfers,
            DeedKind::Membership => Stage::Memberships,
        }
    }

    fn number(self) -> i32 {
        self as i32
    }
}

/// How far counting has come: facts of earlier stages, and of this one up to an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub stage: i32,
    pub after: Uuid,
}

impl Progress {
    /// All facts are counted.
    pub const DONE: Progress = Progress { stage: 100, after: Uuid::nil() };

    fn start(stage: Stage) -> Progress {
        Progress { stage: stage.number(), after: Uuid::nil() }
    }

    fn has_counted(&self, stage: Stage, id: Uuid) -> bool {
        (stage.number(), id) <= (self.stage, self.after)
    }

    /// Writes what a fact is now, and moves the figures by the difference.
    pub fn learn<F: Fact>(
        &self,
        tx: &mut Tx<'_>,
        stage: Stage,
        id: Uuid,
        fact: &F,
        count: fn(&F, &mut Sums, i64),
    ) -> Result<(), StorageError> {
        let before = fact.find(tx)?;
        if before.as_ref() == Some(fact) {
            return Ok(());
        }
        fact.write(tx)?;
        if !self.has_counted(stage, id) {
            return Ok(());
        }
        let mut sums = Sums::default();
        if let Some(before) = &before {
            count(before, &mut sums, -1);
        }
        count(fact, &mut sums, 1);
        sums_apply(tx, &sums)
    }
}

/// What a rebuild went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// Messages on the topics.
    pub messages: u64,
    /// Messages that say nothing that can be counted; they are among the dead letters.
    pub unreadable: u64,
    /// Facts that were counted again.
    pub facts: u64,
}

/// How far a rebuild has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuilding<'a> {
    /// So many messages of a topic were read.
    Learning { topic: &'a str, messages: u64 },
    /// These are all.
    Learnt { topic: &'a str, messages: u64 },
    /// So many facts were counted.
    Counting { facts: u64 },
}

/// Why the figures could not be counted again. Another attempt begins anew.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error("the topics could not be read")]
    Bus(#[from] BusError),
    #[error("the figures could not be written")]
    Storage(#[from] StorageError),
    #[error("somebody else has begun to count again; let them finish")]
    Overtaken,
}

impl Stats {
    /// Learns what the topics still hold, throws the figures away and counts them again.
    pub async fn rebuild(&self, bus: &Bus) -> Result<Rebuilt, RebuildError> {
        self.rebuild_and_tell(bus, |_| {}).await
    }

    /// The same, and says how far it is.
    pub async fn rebuild_and_tell(
        &self,
        bus: &Bus,
        mut tell: impl FnMut(Rebuilding<'_>),
    ) -> Result<Rebuilt, RebuildError> {
        let mut rebuilt = Rebuilt::default();
        for topic in TOPICS {
            let before = rebuilt.messages;
            self.replay(bus, topic, &mut rebuilt, |messages| {
                tell(Rebuilding::Learning { topic, messages: messages - before });
            })
            .await?;
            tell(Rebuilding::Learnt { topic, messages: rebuilt.messages - before });
        }
        rebuilt.facts = self.recount(|facts| tell(Rebuilding::Counting { facts })).await?;
        Ok(rebuilt)
    }

    async fn replay(
        &self,
        bus: &Bus,
        topic: &str,
        rebuilt: &mut Rebuilt,
        mut tell: impl FnMut(u64),
    ) -> Result<(), RebuildError> {
        let mut pages = bus.pages(topic).await?;
        loop {
            let page = pages.next_page().await?;
            if page.is_empty() {
                return Ok(());
            }
            // Their order does not matter, and together they share commits.
            let learnt = page.into_iter().map(|delivery| self.learn_again(delivery.body));
            let mut learnt = stream::iter(learnt).buffer_unordered(MESSAGES_AT_ONCE);
            while let Some(is_readable) = learnt.next().await {
                rebuilt.messages += 1;
                rebuilt.unreadable += u64::from(!is_readable?);
            }
            tell(rebuilt.messages);
        }
    }

    /// `false`: it says nothing that can be counted.
    async fn learn_again(&self, body: Vec<u8>) -> Result<bool, StorageError> {
        let Ok(event) = Event::from_bytes(&body) else {
            return Ok(false);
        };
        match self.db.write(move |tx| learn(tx, &event)).await {
            Ok(()) => Ok(true),
            Err(HandleError::Poison(_)) => Ok(false),
            Err(HandleError::Storage(error)) => Err(error),
        }
    }

    /// Throws the figures away and counts them from the facts. Says how many those were.
    async fn recount(&self, mut tell: impl FnMut(u64)) -> Result<u64, RebuildError> {
        let mut progress = self.db.write(begin).await?;
        let mut facts = 0;
        for stage in Stage::ALL {
            let mut after = None;
            loop {
                let step = Step { expected: progress, stage, after };
                let counted = self.db.write(move |tx| count_stretch(tx, &step)).await?;
                facts += counted.facts;
                tell(facts);
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

fn begin(tx: &mut Tx<'_>) -> Result<Progress, StorageError> {
    progress_lock(tx)?;
    figures_clear(tx)?;
    let progress = Progress::start(Stage::Heard);
    progress_write(tx, &progress)?;
    Ok(progress)
}

fn finish(tx: &mut Tx<'_>, expected: Progress) -> Result<(), RebuildError> {
    progress_check(tx, expected)?;
    Ok(progress_write(tx, &Progress::DONE)?)
}

/// Who finds that somebody else has gone on with the counting must not count too.
fn progress_check(tx: &mut Tx<'_>, expected: Progress) -> Result<(), RebuildError> {
    match progress_lock(tx)? == expected {
        true => Ok(()),
        false => Err(RebuildError::Overtaken),
    }
}

/// Facts to count next.
struct Step {
    /// How far counting has come.
    expected: Progress,
    stage: Stage,
    after: Option<Uuid>,
}

/// What a step has counted.
struct Counted {
    facts: u64,
    progress: Progress,
}

/// Counts the facts that follow, and stores how far that came.
fn count_stretch(tx: &mut Tx<'_>, step: &Step) -> Result<Counted, RebuildError> {
    progress_check(tx, step.expected)?;
    let Step { stage, after, .. } = *step;
    let stretch = Stretch { after, limit: FACTS_PER_STEP };
    let mut sums = Sums::default();
    let ids: Vec<Uuid> = match stage {
        Stage::Heard => {
            let page = facts::heard_page(tx, &stretch)?;
            count_all(&page, &mut sums, Heard::count, |fact| fact.id)
        }
        Stage::Users => {
            let page = facts::user_page(tx, &stretch)?;
            count_all(&page, &mut sums, User::count, |fact| fact.id)
        }
        Stage::Reservations => {
            let page = facts::reservation_page(tx, &stretch)?;
            count_all(&page, &mut sums, Reservation::count, |fact| fact.id)
        }
        Stage::Charges => count_deeds(tx, DeedKind::Charge, &stretch, &mut sums)?,
        Stage::Refunds => count_deeds(tx, DeedKind::Refund, &stretch, &mut sums)?,
        Stage::Transfers => count_deeds(tx, DeedKind::Transfer, &stretch, &mut sums)?,
        Stage::Memberships => count_deeds(tx, DeedKind::Membership, &stretch, &mut sums)?,
    };
    sums_apply(tx, &sums)?;
    // The stretch after the last one ends the stage: whatever comes now is counted as it comes.
    let after = ids.last().copied().unwrap_or(Uuid::max());
    let progress = Progress { stage: stage.number(), after };
    progress_write(tx, &progress)?;
    Ok(Counted { facts: u64::try_from(ids.len()).expect("a page is small"), progress })
}

fn count_deeds(
    tx: &mut Tx<'_>,
    kind: DeedKind,
    stretch: &Stretch,
    sums: &mut Sums,
) -> Result<Vec<Uuid>, StorageError> {
    let page = facts::deed_page(tx, kind, stretch)?;
    Ok(count_all(&page, sums, Deed::count, |fact| fact.id))
}

fn count_all<F>(
    page: &[F],
    sums: &mut Sums,
    count: fn(&F, &mut Sums, i64),
    id: fn(&F) -> Uuid,
) -> Vec<Uuid> {
    page.iter().for_each(|fact| count(fact, sums, 1));
    page.iter().map(id).collect()
}
