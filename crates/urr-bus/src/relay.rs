//! The relay: from the outbox of a service to the bus.
//!
//! It asks for rows that are not marked as published, publishes them and marks them. A crash in
//! between publishes them again, which the inboxes notice. It never remembers how far it came: a
//! transaction may commit an earlier number later.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use urr_kernel::{Clock, Uuid};
use urr_storage::outbox::OutboxRow;
use urr_storage::{Db, StorageError, inbox, outbox};

use crate::{Bus, BusError, Message, Metrics, Position, backoff};

/// What a relay needs. Several may run on one outbox; one at a time works.
#[derive(Clone)]
pub struct Relay {
    pub db: Db,
    pub bus: Bus,
    pub clock: Clock,
    /// Who we are among the relays of this outbox: a fresh id.
    pub holder: Uuid,
    /// Whose outbox it is, for logs and metrics.
    pub service: &'static str,
    pub metrics: Metrics,
    pub options: RelayOptions,
}

#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// A relay that dies blocks the others for this long.
    pub lease: Duration,
    /// How often to look without having been woken.
    pub poll: Duration,
    pub batch_max: u32,
    /// Published events stay this long, for people who look into the outbox.
    pub outbox_retention: Duration,
    /// Longer than the bus keeps messages: a forgotten event would have its effect again.
    pub inbox_retention: Duration,
    /// How often the lag is read.
    pub lag_interval: Duration,
    /// How often what is old is forgotten.
    pub purge_interval: Duration,
    /// So many rows are forgotten by one transaction.
    pub purge_max: u32,
}

impl Default for RelayOptions {
    fn default() -> RelayOptions {
        RelayOptions {
            lease: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            batch_max: 500,
            outbox_retention: Duration::from_hours(24),
            inbox_retention: Duration::from_hours(30 * 24),
            lag_interval: Duration::from_secs(15),
            purge_interval: Duration::from_mins(1),
            purge_max: 1_000,
        }
    }
}

/// What a round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// Nothing waits.
    Idle,
    /// Something was published; there may be more.
    Busy,
    /// Not everything could be published.
    Failed,
    /// Another relay has the lease.
    NotOurs,
    /// The storage was closed.
    Closed,
}

/// Whether something old is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PurgeState {
    Done,
    MoreIsOld,
}

/// Publishes until it is cancelled, and then gives up the lease.
pub async fn run(relay: Relay, cancel: CancellationToken) {
    let (mut failures, mut leased_at) = (0, None);
    let (mut lag_due, mut purge_due) = (Instant::now(), Instant::now());
    while !cancel.is_cancelled() {
        let round = relay.round(&mut leased_at).await;
        let round = round.unwrap_or_else(|error| relay.explain(&error));
        failures = if round == Round::Failed { failures + 1 } else { 0 };
        if round == Round::Closed {
            return;
        }
        // Also while nothing can be published: that is when the lag matters.
        if Instant::now() >= lag_due {
            relay.note_failure(relay.read_lag().await);
            lag_due = Instant::now() + relay.options.lag_interval;
        }
        if Instant::now() >= purge_due {
            let purge = relay.purge_some().await;
            let is_done = !matches!(purge, Ok(PurgeState::MoreIsOld));
            relay.note_failure(purge.map(drop));
            // A backlog is worked off between the rounds, so that publishing goes on.
            purge_due = Instant::now();
            purge_due += if is_done { relay.options.purge_interval } else { Duration::ZERO };
        }
        tokio::select! {
            () = cancel.cancelled() => {}
            () = relay.wait_after(round, failures) => {}
        }
    }
    relay.release().await;
}

impl Relay {
    async fn wait_after(&self, round: Round, failures: u32) {
        match round {
            Round::Busy | Round::Closed => {}
            Round::Idle => tokio::select! {
                () = self.db.outbox_filled() => {}
                () = tokio::time::sleep(self.options.poll) => {}
            },
            Round::NotOurs => tokio::time::sleep(self.options.poll).await,
            Round::Failed => {
                let wait = backoff::delay(failures, self.holder.as_bytes());
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Takes the lease, publishes what waits, marks what arrived.
    async fn round(&self, leased_at: &mut Option<Instant>) -> Result<Round, StorageError> {
        if !self.has_lease(leased_at).await? {
            return Ok(Round::NotOurs);
        }
        let limit = self.options.batch_max;
        let rows = self.db.read(move |tx| outbox::unpublished(tx, limit));
        let rows: Vec<OutboxRow> = rows.await?;
        if rows.is_empty() {
            return Ok(Round::Idle);
        }
        let Some(results) = self.publish(&rows, leased_at).await else {
            return Ok(Round::NotOurs);
        };
        let mut published = Vec::with_capacity(rows.len());
        let mut failed = None;
        for (row, result) in rows.iter().zip(results) {
            self.metrics.count_published(&row.topic, result.is_ok());
            match result {
                Ok(_) => published.push(row.seq),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if !published.is_empty() {
            let now = self.clock.now();
            let mark = self.db.write(move |tx| outbox::mark_published(tx, &published, now));
            mark.await?;
        }
        let Some(error) = failed else {
            return Ok(Round::Busy);
        };
        let (service, error) = (self.service, error.full_text());
        warn!(service, error, "events could not be published; once more");
        Ok(Round::Failed)
    }

    /// Takes the lease, or renews it when a third of it has passed: not at every round, which
    /// would be a commit each.
    async fn has_lease(&self, leased_at: &mut Option<Instant>) -> Result<bool, StorageError> {
        let third = self.options.lease / 3;
        if leased_at.is_some_and(|at| at.elapsed() < third) {
            return Ok(true);
        }
        // Counted from before the request, so that we never believe in it for too long.
        let asked_at = Instant::now();
        let (holder, now) = (self.holder, self.clock.now());
        let until = now + self.options.lease;
        *leased_at = None;
        let taken = self.db.write(move |tx| outbox::lease_take(tx, holder, now, until));
        if taken.await? {
            *leased_at = Some(asked_at);
        }
        Ok(leased_at.is_some())
    }

    /// Publishes rows, and renews the lease while that takes long. None: the lease went to another,
    /// who publishes them again; the inboxes notice.
    async fn publish(
        &self,
        rows: &[OutboxRow],
        leased_at: &mut Option<Instant>,
    ) -> Option<Vec<Result<Position, BusError>>> {
        let message =
            |row: &OutboxRow| Message::new(row.topic.clone(), row.key.clone(), row.body.clone());
        let publishing = self.bus.publish(rows.iter().map(message).collect());
        tokio::pin!(publishing);
        loop {
            tokio::select! {
                results = &mut publishing => return Some(results),
                () = tokio::time::sleep(self.options.lease / 3) => {
                    match self.has_lease(leased_at).await {
                        Ok(true) => {}
                        Ok(false) => {
                            warn!(service = self.service, "the lease of the outbox was lost");
                            return None;
                        }
                        Err(error) => {
                            warn!(service = self.service, %error, "the lease was not renewed");
                        }
                    }
                }
            }
        }
    }

    fn explain(&self, error: &StorageError) -> Round {
        if *error == StorageError::Closed {
            return Round::Closed;
        }
        warn!(service = self.service, %error, "the outbox could not be read; once more");
        Round::Failed
    }

    async fn read_lag(&self) -> Result<(), BusError> {
        let (waiting, oldest) = self.db.read(outbox::lag).await?;
        self.metrics.set_outbox(self.service, waiting, oldest, self.clock.now());
        Ok(())
    }

    /// Forgets a bounded number of old rows.
    async fn purge_some(&self) -> Result<PurgeState, BusError> {
        let (now, limit) = (self.clock.now(), self.options.purge_max);
        let outbox_before = now - self.options.outbox_retention;
        let inbox_before = now - self.options.inbox_retention;
        let outbox = self.db.write(move |tx| outbox::purge(tx, outbox_before, limit)).await?;
        let inbox = self.db.write(move |tx| inbox::purge(tx, inbox_before, limit)).await?;
        let bus = self.bus.trim(now, limit).await?;
        let is_full = [outbox, inbox, bus].iter().any(|purged| *purged >= u64::from(limit));
        Ok(if is_full { PurgeState::MoreIsOld } else { PurgeState::Done })
    }

    /// A failure of housekeeping is told and left for the next time.
    fn note_failure(&self, outcome: Result<(), BusError>) {
        if let Err(error) = outcome {
            let (service, error) = (self.service, error.full_text());
            warn!(service, error, "housekeeping of the outbox failed");
        }
    }

    async fn release(&self) {
        let holder = self.holder;
        let released = self.db.write(move |tx| outbox::lease_release(tx, holder)).await;
        match released {
            Ok(()) => info!(service = self.service, "the relay has stopped"),
            Err(StorageError::Closed) => {}
            Err(error) => warn!(service = self.service, %error, "the lease was not released"),
        }
    }
}
