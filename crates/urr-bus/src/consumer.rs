//! The consumer loop: from a message to its effect, once.
//!
//! Inbox row and effect are one transaction, and the message is acknowledged after it: whatever
//! fails in between, the message comes again and has no second effect. Messages of one key are
//! handled in order; different keys concurrently.

mod handler;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};
use urr_kernel::{Clock, DomainEvent, error_chain};
use urr_storage::{Db, StorageError, inbox};

pub use self::handler::{HandleError, Handler, HandlerContext, HandlerOutcome, decode_event};

use crate::dead_letters::{self, HandlingFailure};
use crate::{Bus, BusError, BusMetrics, Delivery, DeliveryBatch, LagReader, Subscription, backoff};

/// How many keys are handled concurrently.
const KEYS_AT_ONCE: usize = 32;

/// Attempts before a message becomes a dead letter, if waiting will hardly help.
const ATTEMPTS_MAX: u32 = 5;

/// A handler that is always too slow, or always collides, is given about two minutes.
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
    pub handler: Handler,
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
        let mut failures = 0;
        loop {
            let batch = tokio::select! {
                () = cancel.cancelled() => return Err(Stopped),
                batch = subscription.next_batch() => batch,
            };
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
                outcome = self.handle_batch(&batch, cancel) => outcome?,
                never = subscription.keep_alive() => match never {},
            }
            self.acknowledge(subscription, &batch, cancel).await?;
        }
    }

    /// Tries for a while. Giving up does no harm: the next batch acknowledges this one too, and
    /// after a restart the inbox knows it.
    async fn acknowledge(
        &self,
        subscription: &mut Subscription,
        batch: &DeliveryBatch,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        for attempt in 1..=ATTEMPTS_MAX {
            let Err(error) = subscription.acknowledge(batch).await else {
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
        let mut keys = Vec::new();
        for deliveries in by_key(batch) {
            keys.push(self.handle_key(deliveries, cancel));
        }
        let mut keys = stream::iter(keys).buffer_unordered(KEYS_AT_ONCE);
        let mut outcome = Ok(());
        // A key that stops does not interrupt the others: they stop by themselves.
        while let Some(of_key) = keys.next().await {
            outcome = outcome.and(of_key);
        }
        outcome
    }

    /// Handles the messages of one key, in order.
    async fn handle_key(
        &self,
        deliveries: Vec<&Delivery>,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        for delivery in deliveries {
            self.handle_delivery(delivery, cancel).await?;
        }
        Ok(())
    }

    async fn handle_delivery(
        &self,
        delivery: &Delivery,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        if dead_letters::is_replay_for_another(&delivery.headers, &self.group) {
            self.count(delivery, Some(HandlerOutcome::Ignored));
            return Ok(());
        }
        let event = match DomainEvent::from_bytes(&delivery.body) {
            Ok(event) => Arc::new(event),
            Err(error) => {
                let reason = HandleError::from(error).to_string();
                let failure = HandlingFailure { reason, event: None };
                return self.set_aside(delivery, &failure, cancel).await;
            }
        };
        match self.handle_event(delivery, &event, cancel).await? {
            Ok(outcome) => {
                self.count(delivery, outcome);
                Ok(())
            }
            Err(reason) => {
                let failure = HandlingFailure { reason, event: Some(Arc::clone(&event)) };
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
            let error = match self.try_event(event).await {
                Ok(outcome) => return Ok(Ok(outcome)),
                Err(HandleError::Poison(reason)) => return Ok(Err(reason)),
                Err(HandleError::Storage(StorageError::Closed)) => return Err(Stopped),
                Err(HandleError::Storage(error)) => error,
            };
            if attempts_max(&error).is_some_and(|max| attempt >= max) {
                return Ok(Err(format!("{error} (after {attempt} attempts)")));
            }
            let (group, place, id) = (&self.group, &delivery.position, event.id);
            warn!(group, %place, event_id = %id, attempt, %error, "a handler failed and is retried");
            self.metrics.count_retry(&self.group, place);
            self.wait(attempt, event.id.as_bytes(), cancel).await?;
        }
    }

    /// One transaction: the inbox row and the effect.
    async fn try_event(
        &self,
        event: &Arc<DomainEvent>,
    ) -> Result<Option<HandlerOutcome>, HandleError> {
        let (event, handler) = (Arc::clone(event), Arc::clone(&self.handler));
        let context = HandlerContext::new(self.group.clone(), &event, self.clock.now());
        self.db
            .write(move |tx| {
                if !inbox::record(tx, context.group(), event.id, context.now)? {
                    return Ok(None);
                }
                handler(tx, &event, &context).map(Some)
            })
            .await
    }

    /// Writes the dead letter, for as long as it takes: until then the message is ours.
    async fn set_aside(
        &self,
        delivery: &Delivery,
        failure: &HandlingFailure,
        cancel: &CancellationToken,
    ) -> Result<(), Stopped> {
        let (group, place, reason) = (&self.group, &delivery.position, &failure.reason);
        error!(group, %place, reason, "a message is set aside as a dead letter");
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

/// The messages of a batch by key, in the order in which the keys first appear.
fn by_key(batch: &DeliveryBatch) -> Vec<Vec<&Delivery>> {
    let mut groups: Vec<Vec<&Delivery>> = Vec::new();
    let mut index_of = HashMap::new();
    for delivery in &batch.deliveries {
        let place = &delivery.position;
        let index = *index_of
            .entry((place.topic.as_str(), place.partition, delivery.key.as_slice()))
            .or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
        groups[index].push(delivery);
    }
    groups
}
