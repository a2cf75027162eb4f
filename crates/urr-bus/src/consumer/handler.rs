//! Handlers of domain events: their type, their outcome and their context.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use urr_kernel::{CallContext, DecodeEventError, DomainEvent, EventData, Timestamp, Uuid};
use urr_storage::outbox::EventMetadata;
use urr_storage::{StorageError, Tx};

/// The effect of an event. It runs in a transaction, perhaps more than once, so it must not have
/// effects outside it but through [`HandlerContext::after_commit`]; ids come from the context.
pub type Handler = Arc<
    dyn Fn(&mut Tx<'_>, &DomainEvent, &HandlerContext) -> Result<HandlerOutcome, HandleError>
        + Send
        + Sync,
>;

/// The effect of several events at once, and the outcome of each. What it does for several must be
/// what it does for each, in the order of their keys.
pub type BatchHandler = Arc<
    dyn Fn(&mut Tx<'_>, &[HandledEvent<'_>]) -> Result<Vec<HandlerOutcome>, HandleError>
        + Send
        + Sync,
>;

/// An event and the context of its handler.
pub type HandledEvent<'a> = (&'a DomainEvent, HandlerContext);

/// How a consumer handles the events of a transaction.
#[derive(Clone)]
pub enum EventHandler {
    Each(Handler),
    Together(BatchHandler),
    /// Together, by a handler that an event handled before does not change: it needs no inbox.
    Repeatable(BatchHandler),
}

impl EventHandler {
    /// The outcome of each event.
    pub(super) fn handle(
        &self,
        tx: &mut Tx<'_>,
        events: &[&DomainEvent],
        context: impl Fn(&DomainEvent) -> HandlerContext,
    ) -> Result<Vec<HandlerOutcome>, HandleError> {
        match self {
            EventHandler::Each(handler) => {
                let handle = |event: &&DomainEvent| handler(tx, event, &context(event));
                events.iter().map(handle).collect()
            }
            EventHandler::Together(_) | EventHandler::Repeatable(_) if events.is_empty() => {
                Ok(Vec::new())
            }
            EventHandler::Together(handler) | EventHandler::Repeatable(handler) => {
                let events: Vec<HandledEvent<'_>> =
                    events.iter().map(|event| (*event, context(event))).collect();
                let outcomes = handler(tx, &events)?;
                assert_eq!(outcomes.len(), events.len(), "every event has an outcome");
                Ok(outcomes)
            }
        }
    }
}

impl From<Handler> for EventHandler {
    fn from(handler: Handler) -> EventHandler {
        EventHandler::Each(handler)
    }
}

/// How a handler dealt with an event. Every outcome is final and committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerOutcome {
    Done,
    /// This type of event does not concern us.
    Ignored,
    /// The rules say no. It is never tried again; a compensation is part of the transaction.
    Rejected {
        reason: String,
    },
}

/// Why an event could not be dealt with. The transaction is undone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// It will never work: the message becomes a dead letter at once.
    #[error("{0}")]
    Poison(String),
    /// Something that happened before it is not recorded yet: it is retried for about two minutes.
    #[error("{0}")]
    NotYet(String),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl From<DecodeEventError> for HandleError {
    fn from(error: DecodeEventError) -> HandleError {
        let cause = std::error::Error::source(&error);
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        HandleError::Poison(format!("{error}{cause}"))
    }
}

/// The data of an event whose type the caller matched. Data of another shape can never be handled:
/// the message becomes a dead letter.
pub fn decode_event<D: EventData>(event: &DomainEvent) -> Result<D, HandleError> {
    if event.event_type != D::TYPE {
        let (expected, found) = (D::TYPE, &event.event_type);
        return Err(HandleError::Poison(format!("expected a {expected}, found a {found}")));
    }
    Ok(event.decode()?)
}

/// What a handler gets beside the event.
#[derive(Clone, Debug)]
pub struct HandlerContext {
    pub now: Timestamp,
    group: String,
    event_id: Uuid,
    /// For what the event causes: same flow, caused by it.
    pub call: CallContext,
    effects: CommitEffects,
}

type CommitEffect = Box<dyn FnOnce() + Send>;

/// What is done once a transaction is committed. Clones share it.
#[derive(Clone, Default)]
pub(super) struct CommitEffects(Arc<Mutex<Vec<CommitEffect>>>);

impl CommitEffects {
    /// Forgets what a run that was undone asked for.
    pub fn clear(&self) {
        drop(self.take());
    }

    pub fn run(&self) {
        for effect in self.take() {
            effect();
        }
    }

    fn take(&self) -> Vec<CommitEffect> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for CommitEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitEffects").finish_non_exhaustive()
    }
}

impl HandlerContext {
    pub fn new(group: impl Into<String>, event: &DomainEvent, now: Timestamp) -> HandlerContext {
        let (group, call) = (group.into(), event.context());
        HandlerContext { now, group, event_id: event.id, call, effects: CommitEffects::default() }
    }

    pub(super) fn with_effects(self, effects: &CommitEffects) -> HandlerContext {
        HandlerContext { effects: effects.clone(), ..self }
    }

    /// Does something in memory once the transaction is committed: counting, for example. It is
    /// lost if the process dies in between.
    pub fn after_commit(&self, effect: impl FnOnce() + Send + 'static) {
        let effects = &self.effects.0;
        effects.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(effect));
    }

    pub fn group(&self) -> &str {
        &self.group
    }

    /// An id for something that handling this event makes. The same event, group and name give the
    /// same id, so a second run or a second delivery makes the same thing and not another.
    pub fn derived_id(&self, name: &str) -> Uuid {
        let mut hash = Sha256::new();
        hash.update(self.event_id.as_bytes());
        // Lengths keep ("ab", "c") and ("a", "bc") apart.
        hash.update(self.group.len().to_be_bytes());
        hash.update(self.group.as_bytes());
        hash.update(name.as_bytes());
        let digest = hash.finalize();
        let bytes = digest.first_chunk::<16>().expect("SHA-256 has 32 bytes");
        uuid::Builder::from_custom_bytes(*bytes).into_uuid()
    }

    /// The metadata of an event that handling this one announces. `name` distinguishes several.
    pub fn event_metadata(&self, name: &str, source: &'static str) -> EventMetadata {
        EventMetadata {
            event_id: self.derived_id(name),
            source,
            time: self.now,
            context: self.call,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(group: &str, event_id: u128) -> HandlerContext {
        HandlerContext {
            now: Timestamp::UNIX_EPOCH,
            group: group.to_owned(),
            event_id: Uuid::from_u128(event_id),
            call: CallContext::root(Uuid::from_u128(1)),
            effects: CommitEffects::default(),
        }
    }

    #[test]
    fn the_same_event_group_and_name_give_the_same_id() {
        let id = context("stats", 7).derived_id("refund");
        assert_eq!(id, context("stats", 7).derived_id("refund"));
        assert_eq!(id.get_version_num(), 8);
    }

    #[test]
    fn another_event_group_or_name_gives_another_id() {
        let id = context("stats", 7).derived_id("refund");
        assert_ne!(id, context("stats", 8).derived_id("refund"));
        assert_ne!(id, context("ticket", 7).derived_id("refund"));
        assert_ne!(id, context("stats", 7).derived_id("cancel"));
        let (a, b) = (context("ab", 7).derived_id("c"), context("a", 7).derived_id("bc"));
        assert_ne!(a, b);
    }
}
