//! The consumer loop: from a message to its effect, once.
//!
//! The events of a batch are handled in few transactions, each with the inbox rows and the effects
//! of its events. Batches are acknowledged after them, several at once: whatever fails in between,
//! their messages come again and have no second effect. Messages of one key are handled in order.

mod handler;

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};
use urr_kernel::{Clock, DomainEvent, FinishedSpan, SpanKind, Timestamp, error_chain};
use urr_storage::{Db, StorageError, inbox};

use self::handler::CommitEffects;
pub use self::handler::{
    BatchHandler, EventHandler, HandleError, HandledEvent, Handler, HandlerContext, HandlerOutcome,
    decode_event,
};

use crate::dead_letters::{self, HandlingFailure};
use crate::{
    Bus, BusError, BusMetrics, Delivery, DeliveryBatch, LagReader, MessagePosition, Subscription,
    backoff,
};

/// The most events of one transaction, unless one key has more. A larger transaction would keep
/// other writers waiting.
const TRANSACTION_EVENTS_MAX: usize = 64;
/// The same for a handler that handles all of them at once.
const TRANSACTION_EVENTS_TOGETHER_MAX: usize = 256;

/// Batches begin at least this long apart, so that events gather and share a transaction. An event
/// that comes after a pause does not wait.
const GATHER: Duration = Duration::from_millis(25);

/// A batch is acknowledged at most this long after it was handled.
const ACKNOWLEDGE_AFTER: Duration = Duration::from_millis(200);

/// Attempts before a message becomes a dead letter, if waiting will hardly help.
const ATTEMPTS_MAX: u32 = 5;

/// A handler that is always too slow, always collides or always has to wait gets about two minutes.
const SLOW_ATTEMPTS_MAX: u32 = 30;

/// The lag is read this often.
const LAG_INTERVAL: Duration = Duration::from_secs(15);

/// A consumer of some topics for a group. The group is also its name in the inbox.
#[derive(Clone)]
pub struct Consumer {
    pub bus: Bus,
    /// Where the inbox is, and where the handler works.
    pub db: Db,
    pub group: String,
    pub topics: Vec<String>,
    /// The types of events that the handler handles; none: all. Others cost no transaction.
    pub types: Option<&'static [&'static str]>,
    pub handler: EventHandler,
    pub clock: Clock,
    pub metrics: BusMetrics,
}

/// The consumer was cancelled or the storage was closed: what is not acknowledged is delivered again.
#[derive(Debug)]
struct Stopped;

/// Consumes until it is cancelled. Then what is under way is finished and acknowledged, but no
/// failure is waited for any more.
pub async fn run(consumer: Consumer, cancel: CancellationToken) {
    let mut failures = 0;
    while !cancel.is_cancelled() {
        let subscription = match consumer.bus.subscribe(&consumer.group, &consumer.topics).await {
            Ok(subscription) => subscription,
            Err(error) => {
                failures += 1;
                let (group, error) = (&consumer.group, error_chain(&error));
                error!(group, error, "the consumer could not subscribe and tries again");
                if consumer.wait(failures, b"subscribe", &cancel).await.is_err() {
                    return;
                }
                continue;
            }
        };
        failures = 0;
        if consumer.run_subscription(subscription, &cancel).await.is_err() {
            if !cancel.is_cancelled() {
                let group = &consumer.group;
                error!(group, "the storage was closed under the consumer; it ends");
            }
            return;
        }
    }
}

impl Consumer {
    /// Consumes until told to stop (`Stopped`), or until the subscription must be made anew.
    async fn run_subscription(
        &self,
        mut subscription: Subscription,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        let lag_reader = subscription.lag_reader();
        let outcome = tokio::select! {
            biased;
            outcome = self.consume(&mut subscription, cancel) => outcome,
            () = self.observe_lag(&lag_reader) => unreachable!("the lag is read for ever"),
        };
        subscription.close().await;
        outcome
    }

    async fn consume(
        &self,
        subscription: &mut Subscription,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        let (mut failures, mut handled) = (0, HandledBatches::default());
        loop {
            let batch = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    self.acknowledge(subscription, &mut handled, cancel).await?;
                    return Err(Stopped);
                }
                () = handled.are_due() => {
                    self.acknowledge(subscription, &mut handled, cancel).await?;
                    continue;
                }
                batch = subscription.next_batch() => batch,
            };
            let begun = Instant::now();
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    failures += 1;
                    self.note_bus_failure(&error, "read")?;
                    self.wait(failures, b"read", cancel).await?;
                    if error.is_fatal() {
                        return Ok(());
                    }
                    continue;
                }
            };
            failures = 0;
            tokio::select! {
                biased;
                outcome = self.handle_batch(&batch, cancel) => outcome?,
                never = subscription.keep_alive() => match never {},
            }
            handled.add(&batch);
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = tokio::time::sleep_until(begun + GATHER) => {}
            }
        }
    }

    /// Tries for a while. Giving up does no harm: the next batch acknowledges these too, and after a
    /// restart the inbox knows them.
    async fn acknowledge(
        &self,
        subscription: &mut Subscription,
        handled: &mut HandledBatches,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        let Some(batch) = handled.take() else { return Ok(()) };
        for attempt in 1..=ATTEMPTS_MAX {
            let Err(error) = subscription.acknowledge(&batch).await else {
                return Ok(());
            };
            self.note_bus_failure(&error, "acknowledge")?;
            self.wait(attempt, b"acknowledge", cancel).await?;
        }
        Ok(())
    }

    fn note_bus_failure(&self, error: &BusError, doing: &str) -> Result<(), Stopped> {
        if error.is_closed() {
            return Err(Stopped);
        }
        warn!(group = self.group, doing, error = error_chain(error), "the bus failed");
        Ok(())
    }

    async fn handle_batch(
        &self,
        batch: &DeliveryBatch,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        let messages = batch.deliveries.iter().map(Message::read);
        let (relevant, ignored): (Vec<_>, Vec<_>) = messages.partition(|one| self.concerns_us(one));
        for message in ignored {
            self.count(message.delivery, Some(HandlerOutcome::Ignored));
        }
        let mut failed = Vec::new();
        let events_max = match self.handler {
            EventHandler::Each(_) => TRANSACTION_EVENTS_MAX,
            EventHandler::Together(_) | EventHandler::Repeatable(_) => {
                TRANSACTION_EVENTS_TOGETHER_MAX
            }
        };
        for keys in transactions(by_key(relevant), events_max) {
            if !self.handle_together(&keys).await? {
                failed.push(self.handle_halves(keys, cancel));
            }
        }
        // What stops does not interrupt the others: they stop by themselves.
        futures_util::future::join_all(failed).await.into_iter().collect()
    }

    fn concerns_us(&self, message: &Message<'_>) -> bool {
        let is_for_another =
            dead_letters::is_replay_for_another(&message.delivery.headers, &self.group);
        let is_consumed = match &message.event {
            Ok(event) => self.types.is_none_or(|types| types.contains(&event.event_type.as_str())),
            Err(_) => true,
        };
        is_consumed && !is_for_another
    }

    /// Handles keys whose transaction failed. Its halves are tried on their own, down to single
    /// messages, so that one that cannot be handled harms no other.
    async fn handle_halves(
        &self,
        mut keys: Vec<Vec<Message<'_>>>,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        if let [messages] = keys.as_mut_slice() {
            return self.handle_in_order(mem::take(messages), cancel).await;
        }
        let others = keys.split_off(keys.len() / 2);
        let halves = [keys, others].map(|half| {
            Box::pin(async {
                match self.handle_together(&half).await? {
                    true => Ok(()),
                    false => self.handle_halves(half, cancel).await,
                }
            })
        });
        futures_util::future::join_all(halves).await.into_iter().collect()
    }

    /// Handles the messages of a key whose transaction failed.
    async fn handle_in_order(
        &self,
        mut messages: Vec<Message<'_>>,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        if let [message] = messages.as_slice() {
            return self.handle_message(message, cancel).await;
        }
        let later = messages.split_off(messages.len() / 2);
        for half in [messages, later] {
            let half = [half];
            if !self.handle_together(&half).await? {
                let [half] = half;
                Box::pin(self.handle_in_order(half, cancel)).await?;
            }
        }
        Ok(())
    }

    /// Handles several messages in one transaction. `false`: they must be handled in smaller ones.
    async fn handle_together(&self, keys: &[Vec<Message<'_>>]) -> Result<bool, Stopped> {
        let messages: Vec<&Message<'_>> = keys.iter().flatten().collect();
        let events: Option<Vec<_>> =
            messages.iter().map(|one| one.event.as_ref().ok().cloned()).collect();
        let Some(events) = events.filter(|events| events.len() > 1) else { return Ok(false) };
        match self.try_events(events).await {
            Ok(outcomes) => {
                for (message, outcome) in messages.iter().zip(outcomes) {
                    self.count(message.delivery, outcome);
                }
                Ok(true)
            }
            Err(HandleError::Storage(StorageError::Closed)) => Err(Stopped),
            Err(error) => {
                let (group, events) = (&self.group, messages.len());
                debug!(group, events, %error, "a transaction of several events failed");
                Ok(false)
            }
        }
    }

    async fn handle_message(
        &self,
        message: &Message<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        let delivery = message.delivery;
        let event = match &message.event {
            Ok(event) => event,
            Err(reason) => {
                let failure = HandlingFailure { reason: reason.clone(), event: None };
                return self.set_aside(delivery, &failure, cancel).await;
            }
        };
        match self.handle_event(delivery, event, cancel).await? {
            Ok(outcome) => {
                self.count(delivery, outcome);
                Ok(())
            }
            Err(reason) => {
                let failure = HandlingFailure { reason, event: Some(Arc::clone(event)) };
                self.set_aside(delivery, &failure, cancel).await
            }
        }
    }

    /// Runs the handler until it has an outcome (none: it was handled before), or a reason why it will
    /// never have one.
    async fn handle_event(
        &self,
        delivery: &Delivery,
        event: &Arc<DomainEvent>,
        cancel: &CancellationToken,
    ) -> Result<Result<Option<HandlerOutcome>, String>, Stopped> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (max, error) = match self.try_event(event).await {
                Ok(outcome) => return Ok(Ok(outcome)),
                Err(HandleError::Poison(reason)) => return Ok(Err(reason)),
                Err(HandleError::NotYet(reason)) => (Some(SLOW_ATTEMPTS_MAX), reason),
                Err(HandleError::Storage(StorageError::Closed)) => return Err(Stopped),
                Err(HandleError::Storage(error)) => (attempts_max(&error), error.to_string()),
            };
            if max.is_some_and(|max| attempt >= max) {
                return Ok(Err(format!("{error} (after {attempt} attempts)")));
            }
            let (group, place, id) = (&self.group, &delivery.position, event.id);
            let trace_id = event.context().trace.trace_id();
            warn!(
                group, %place, event_id = %id, trace_id, attempt, %error,
                "a handler failed and is retried"
            );
            self.metrics.count_retry(&self.group, place);
            self.wait(attempt, event.id.as_bytes(), cancel).await?;
        }
    }

    async fn try_event(
        &self,
        event: &Arc<DomainEvent>,
    ) -> Result<Option<HandlerOutcome>, HandleError> {
        let mut outcomes = self.try_events(vec![Arc::clone(event)]).await?;
        Ok(outcomes.pop().flatten())
    }

    /// One transaction: the inbox rows and the effects, in order. No outcome: an event was handled
    /// before, as far as the inbox knows.
    async fn try_events(
        &self,
        events: Vec<Arc<DomainEvent>>,
    ) -> Result<Vec<Option<HandlerOutcome>>, HandleError> {
        let (group, handler) = (self.group.clone(), self.handler.clone());
        let now = self.clock.now();
        let traced = if FinishedSpan::is_wanted() { events.clone() } else { Vec::new() };
        let effects = CommitEffects::default();
        let asked = effects.clone();
        let outcomes: Result<Vec<Option<HandlerOutcome>>, HandleError> = self
            .db
            .write(move |tx| {
                asked.clear();
                let ids: Vec<_> = events.iter().map(|event| event.id).collect();
                let mut fresh = match handler {
                    EventHandler::Repeatable(_) => ids.iter().copied().collect(),
                    _ => inbox::record_all(tx, &group, &ids, now)?,
                };
                // An event may be there twice.
                let is_fresh: Vec<bool> = ids.iter().map(|id| fresh.remove(id)).collect();
                let fresh = events.iter().zip(&is_fresh).filter(|(_, is_fresh)| **is_fresh);
                let fresh = fresh.map(|(event, _)| event.as_ref());
                let context = |event: &DomainEvent| {
                    HandlerContext::new(group.clone(), event, now).with_effects(&asked)
                };
                let outcomes = handler.handle(tx, &fresh.collect::<Vec<_>>(), context)?;
                let mut outcomes = outcomes.into_iter();
                let outcome = |is_fresh: &bool| is_fresh.then(|| outcomes.next()).flatten();
                Ok(is_fresh.iter().map(outcome).collect())
            })
            .await;
        if let Ok(outcomes) = &outcomes {
            effects.run();
            let ended_at = self.clock.now();
            for (event, outcome) in traced.iter().zip(outcomes) {
                self.record_span(event, outcome.as_ref(), now, ended_at);
            }
        }
        outcomes
    }

    /// A handled event is a span below the request that announced it. One that was handled before has
    /// its span already.
    fn record_span(
        &self,
        event: &DomainEvent,
        outcome: Option<&HandlerOutcome>,
        begun_at: Timestamp,
        ended_at: Timestamp,
    ) {
        let Some(outcome) = outcome else { return };
        let context = HandlerContext::new(self.group.as_str(), event, begun_at);
        let trace = context.call.trace;
        FinishedSpan {
            trace: trace.child(context.derived_id("span")),
            parent_id: Some(trace.span_id()),
            kind: SpanKind::Event,
            service: &self.group,
            name: &event.event_type,
            ended_at,
            took: ended_at.duration_since(begun_at).unsigned_abs(),
            outcome: match outcome {
                HandlerOutcome::Done => "done",
                HandlerOutcome::Ignored => "ignored",
                HandlerOutcome::Rejected { .. } => "rejected",
            },
            is_failure: false,
        }
        .record();
    }

    /// Writes the dead letter, for as long as it takes: until then the message is ours.
    async fn set_aside(
        &self,
        delivery: &Delivery,
        failure: &HandlingFailure,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        let (group, place, reason) = (&self.group, &delivery.position, &failure.reason);
        let trace_id = failure.event.as_ref().map(|event| event.context().trace.trace_id());
        error!(group, %place, trace_id, reason, "a message is set aside as a dead letter");
        let mut attempt = 0;
        loop {
            attempt += 1;
            let letter = dead_letters::letter(&self.group, delivery, failure, self.clock.now());
            match dead_letters::publish(&self.bus, letter).await {
                Ok(id) => {
                    info!(group, %place, %id, "the dead letter is written");
                    self.metrics.count_dead_letter(&self.group, place);
                    return Ok(());
                }
                Err(error) => self.note_bus_failure(&error, "write a dead letter")?,
            }
            self.metrics.count_retry(&self.group, place);
            self.wait(attempt, delivery.position.to_string().as_bytes(), cancel).await?;
        }
    }

    /// Notes how a message ended; none means that it was handled before.
    fn count(&self, delivery: &Delivery, outcome: Option<HandlerOutcome>) {
        let place = &delivery.position;
        let outcome = match outcome {
            None => "duplicate",
            Some(HandlerOutcome::Done) => "done",
            Some(HandlerOutcome::Ignored) => "ignored",
            Some(HandlerOutcome::Rejected { reason }) => {
                info!(group = self.group, %place, reason, "an event was rejected");
                "rejected"
            }
        };
        debug!(group = self.group, %place, outcome, "a message is dealt with");
        self.metrics.count_handled(&self.group, place, outcome);
    }

    async fn wait(
        &self,
        attempt: u32,
        salt: &[u8],
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Stopped),
            () = tokio::time::sleep(backoff::delay(attempt, salt)) => Ok(()),
        }
    }

    async fn observe_lag(&self, reader: &LagReader) {
        let mut known = Vec::new();
        loop {
            match reader.lag().await {
                Ok(lags) => {
                    self.metrics.set_lag(&self.group, &known, &lags);
                    known = lags;
                }
                Err(error) => {
                    let (group, error) = (&self.group, error_chain(&error));
                    warn!(group, error, "the lag could not be read");
                }
            }
            tokio::time::sleep(LAG_INTERVAL).await;
        }
    }
}

/// How often a failure is worth an attempt; `None`: until it passes.
fn attempts_max(error: &StorageError) -> Option<u32> {
    match error {
        // The inbox tells whether a commit of unknown outcome happened, so it may be repeated.
        StorageError::OutcomeUnknown(_) => None,
        StorageError::Timeout | StorageError::Contention => Some(SLOW_ATTEMPTS_MAX),
        error if error.is_retryable() => None,
        _ => Some(ATTEMPTS_MAX),
    }
}

/// A message and its event, or why it has none.
struct Message<'a> {
    delivery: &'a Delivery,
    event: Result<Arc<DomainEvent>, String>,
}

impl<'a> Message<'a> {
    fn read(delivery: &'a Delivery) -> Message<'a> {
        let event = DomainEvent::from_bytes(&delivery.body);
        let event = event.map(Arc::new).map_err(|error| HandleError::from(error).to_string());
        Message { delivery, event }
    }
}

/// Batches that were handled and not acknowledged yet.
#[derive(Default)]
struct HandledBatches {
    /// The last message of each partition, without its content.
    last: HashMap<(String, i32), Delivery>,
    since: Option<Instant>,
}

impl HandledBatches {
    fn add(&mut self, batch: &DeliveryBatch) {
        self.since.get_or_insert_with(Instant::now);
        for ((topic, partition), next) in batch.next_offsets() {
            let place = (topic.to_owned(), partition);
            let position = MessagePosition { topic: topic.to_owned(), partition, offset: next - 1 };
            let (key, body, headers) = Default::default();
            self.last.insert(place, Delivery { position, key, body, headers });
        }
    }

    /// Waits until they should be acknowledged; for ever if there are none.
    async fn are_due(&self) {
        match self.since {
            Some(since) => tokio::time::sleep_until(since + ACKNOWLEDGE_AFTER).await,
            None => std::future::pending().await,
        }
    }

    fn take(&mut self) -> Option<DeliveryBatch> {
        self.since.take()?;
        let deliveries = std::mem::take(&mut self.last).into_values().collect();
        Some(DeliveryBatch { deliveries })
    }
}

/// The messages of a batch by key, in the order in which the keys first appear.
fn by_key(messages: Vec<Message<'_>>) -> Vec<Vec<Message<'_>>> {
    let mut groups: Vec<Vec<Message<'_>>> = Vec::new();
    let mut index_of = HashMap::new();
    for message in messages {
        let place = &message.delivery.position;
        let index = *index_of
            .entry((place.topic.as_str(), place.partition, message.delivery.key.as_slice()))
            .or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
        groups[index].push(message);
    }
    groups
}

/// Divides keys into transactions of a bounded size; a key stays whole.
fn transactions(keys: Vec<Vec<Message<'_>>>, events_max: usize) -> Vec<Vec<Vec<Message<'_>>>> {
    let mut transactions: Vec<Vec<Vec<Message<'_>>>> = Vec::new();
    let mut size = events_max;
    for key in keys {
        if size + key.len() > events_max {
            transactions.push(Vec::new());
            size = 0;
        }
        size += key.len();
        transactions.last_mut().expect("the first key begins one").push(key);
    }
    transactions
}
