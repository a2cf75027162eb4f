//! Whose turn it is. Before anything is booked, the waiting room is asked whether the slot lives
//! that the entry token names; after a purchase it is told, so that the next one can come in.
//!
//! Those who ask while a question about their event is under way are asked for together.
//!
//! Deliberately absent: any memory of answers. A slot that was left, cleared or bought with is dead
//! from that moment on. If the waiting room does not answer, nobody books.

pub(crate) mod http;

use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::{CallPolicy, Upstream};

use crate::batcher::{Batcher, BatcherError};

/// Longer than the waiting room takes, and short enough for the person who waits.
const ASKING_MAX: Duration = Duration::from_secs(2);
/// A purchase is confirmed whether or not the waiting room hears of it at once: it also learns it
/// from the event.
const TELLING_MAX: Duration = Duration::from_secs(2);
/// Usually it has heard of it before the buyer does.
const TELLING_AWAITED: Duration = Duration::from_millis(300);

/// How the ticket office learns whose turn it is. Clones share it.
#[derive(Clone)]
pub enum SlotChecker {
    /// Whoever the gateway lets through: for a ticket office that is tested alone.
    AllowAll,
    Queue(QueueSlots),
}

/// The waiting room, as it is asked from here.
#[derive(Clone)]
pub struct QueueSlots {
    queue: Upstream,
    batcher: Batcher<SlotQuestion, Result<bool, QueueUnavailable>>,
}

/// The turn that someone claims to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotClaim {
    pub event_id: Uuid,
    pub user_id: Uuid,
    /// As the gateway read it from the entry token.
    pub slot_id: Option<Uuid>,
}

/// Someone has bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Purchase {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub bought_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    #[error("their turn is over, or never was")]
    NotLive,
    #[error("the waiting room does not answer")]
    QueueUnavailable,
}

/// Nobody answered, or not what was asked.
#[derive(Clone, Copy, Debug)]
struct QueueUnavailable;

struct SlotQuestion {
    submit: SlotAsk,
    context: CallContext,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct SlotAsk {
    event_id: Uuid,
    user_id: Uuid,
    slot_id: Uuid,
}

#[derive(Serialize)]
struct SlotsBody {
    asks: Vec<SlotAsk>,
}

#[derive(Deserialize)]
struct SlotsAnswer {
    live: Vec<bool>,
}

impl SlotChecker {
    /// Asks the waiting room behind `queue`.
    pub fn queue(queue: Upstream) -> SlotChecker {
        let asked = queue.clone();
        let work = move |_, questions: Vec<SlotQuestion>| check_together(asked.clone(), questions);
        SlotChecker::Queue(QueueSlots { queue, batcher: Batcher::new(work, |_| {}) })
    }

    /// Whether it is someone's turn to book.
    pub async fn check(&self, turn: SlotClaim, context: CallContext) -> Result<(), SlotError> {
        let SlotChecker::Queue(room) = self else { return Ok(()) };
        let SlotClaim { event_id, user_id, slot_id } = turn;
        let slot_id = slot_id.ok_or(SlotError::NotLive)?;
        let question = SlotQuestion { submit: SlotAsk { event_id, user_id, slot_id }, context };
        match room.batcher.submit(event_id, question).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(SlotError::NotLive),
            Ok(Err(QueueUnavailable)) | Err(BatcherError::Full | BatcherError::Failed) => {
                Err(SlotError::QueueUnavailable)
            }
        }
    }

    /// Ends the turn of someone who has bought. It waits for that only a moment: a slow waiting room
    /// must not slow payments. A failure is left to the event.
    pub async fn finish(&self, purchase: Purchase, context: CallContext) {
        let SlotChecker::Queue(room) = self else { return };
        let queue = room.queue.clone();
        let telling = tokio::spawn(async move {
            let policy = CallPolicy::idempotent(TELLING_MAX);
            let path = "/internal/queue/finish";
            let told = queue.post_json::<_, IgnoredAny>(path, &purchase, &context, policy).await;
            if let Err(error) = told {
                tracing::warn!(%error, "the waiting room will learn of a purchase from its event");
            }
        });
        timeout(TELLING_AWAITED, telling).await.ok();
    }
}

/// One call for all of them. It goes by the context of the first, who would have made it alone.
async fn check_together(
    queue: Upstream,
    questions: Vec<SlotQuestion>,
) -> Vec<Result<bool, QueueUnavailable>> {
    let context = questions.first().expect("a batch is not empty").context;
    let asks: Vec<SlotAsk> = questions.iter().map(|question| question.submit).collect();
    let (path, policy) = ("/internal/queue/slots", CallPolicy::idempotent(ASKING_MAX));
    let count = asks.len();
    match queue.post_json::<_, SlotsAnswer>(path, &SlotsBody { asks }, &context, policy).await {
        Ok(SlotsAnswer { live }) if live.len() == count => live.into_iter().map(Ok).collect(),
        Ok(SlotsAnswer { live }) => {
            let answered = live.len();
            tracing::error!(asked = count, answered, "the waiting room answers something else");
            vec![Err(QueueUnavailable); count]
        }
        Err(error) => {
            tracing::warn!(%error, asked = count, "nobody can book: whose turn it is is not known");
            vec![Err(QueueUnavailable); count]
        }
    }
}
