//! The relay: from the outbox of a service to the bus.
//!
//! It asks for rows that are not marked as published, publishes them and marks them. A crash in
//! between publishes them again, which the inboxes notice. It never remembers the highest number: a
//! transaction may commit an earlier number later. Only while rows cannot be published it reads past
//! them, to the end, and then starts again.

mod pass;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use urr_kernel::{Clock, Uuid, error_chain};
use urr_storage::outbox::OutboxRow;
use urr_storage::{Db, DbResult, StorageError, Tx, inbox, outbox};

use self::pass::OutboxPass;
use crate::{Bus, BusError, BusMessage, BusMetrics, MessagePosition, backoff};

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
    pub metrics: BusMetrics,
    pub options: RelayOptions,
}

#[derive(Clone, Debug)]
pub struct RelayOptions {
    /// A relay that dies blocks the others for this long.
    pub lease: Duration,
    /// How often the outbox is read without a signal.
    pub poll: Duration,
    /// Rounds that publish something begin at least this long apart, so that events gather and share
    /// a commit. An event that comes after a pause does not wait.
    pub gather: Duration,
    pub batch_max: u32,
    /// Published events stay this long, for people who look into the outbox.
    pub outbox_retention: Duration,
    /// Longer than the bus keeps messages: a forgotten event would have its effect again.
    pub inbox_retention: Duration,
    /// How often the lag is read.
    pub lag_interval: Duration,
    /// How often old rows are deleted.
    pub purge_interval: Duration,
    /// How many rows one transaction deletes.
    pub purge_max: u32,
}

impl Default for RelayOptions {
    fn default() -> RelayOptions {
        RelayOptions {
            lease: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            gather: Duration::from_millis(25),
            batch_max: 500,
            outbox_retention: Duration::from_hours(24),
            inbox_retention: Duration::from_hours(30 * 24),
            lag_interval: Duration::from_secs(15),
            purge_interval: Duration::from_mins(1),
            purge_max: 1_000,
        }
    }
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RelayRound {
    /// Nothing waits.
    Idle,
    /// Something was published; there may be more.
    Busy,
    /// Not everything could be published; there may be more behind it.
    ReadOn,
    /// All was read, and not everything could be published.
    Failed,
    /// Another relay has the lease.
    NotOurs,
    /// The storage was closed.
    Closed,
}

/// What a relay remembers from round to round.
#[derive(Default)]
struct RelayProgress {
    /// When the lease was last taken, if it is ours.
    leased_at: Option<Instant>,
    /// Published and not marked yet: they are marked with the next read, or they would be published
    /// again.
    unmarked: Vec<i64>,
    pass: OutboxPass,
    /// Whether it was logged that another relay has the lease.
    logged_not_ours: bool,
}

/// When the side work is due.
struct RelaySchedule {
    lag: Instant,
    purge: Instant,
    trim: Instant,
}

/// Publishes until it is cancelled, and then gives up the lease.
pub async fn run(relay: Relay, cancel: CancellationToken) {
    let (mut failures, mut progress) = (0, RelayProgress::default());
    let now = Instant::now();
    let mut chores = RelaySchedule { lag: now, purge: now, trim: now };
    while !cancel.is_cancelled() {
        let begun = Instant::now();
        let round = relay.round(&mut progress).await;
        let round = round.unwrap_or_else(|error| relay.explain(&error));
        failures = match round {
            RelayRound::Failed => failures + 1,
            RelayRound::ReadOn => failures,
            RelayRound::Idle | RelayRound::Busy | RelayRound::NotOurs | RelayRound::Closed => 0,
        };
        if round != RelayRound::ReadOn {
            progress.pass = OutboxPass::default();
        }
        if round == RelayRound::Closed {
            if !cancel.is_cancelled() {
                error!(service = relay.service, "the storage was closed under the relay; it ends");
            }
            return;
        }
        relay.do_chores(&mut chores, round, &mut progress.logged_not_ours).await;
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = relay.wait_after(round, failures, begun) => {}
        }
    }
    relay.release(&mut progress).await;
}

impl Relay {
    async fn wait_after(&self, round: RelayRound, failures: u32, begun: Instant) {
        match round {
            RelayRound::ReadOn | RelayRound::Closed => {}
            RelayRound::Busy => tokio::time::sleep_until(begun + self.options.gather).await,
            RelayRound::Idle => tokio::select! {
                biased;
                () = self.db.outbox_filled() => {}
                () = tokio::time::sleep(self.options.poll) => {}
            },
            RelayRound::NotOurs => tokio::time::sleep(self.options.poll).await,
            RelayRound::Failed => {
                let wait = backoff::delay(failures, self.holder.as_bytes());
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Takes the lease, publishes what waits, marks what arrived.
    async fn round(&self, progress: &mut RelayProgress) -> DbResult<RelayRound> {
        let lease = self.has_lease(&mut progress.leased_at).await;
        if !matches!(lease, Ok(true)) {
            // These were published, whichever process has the lease by now.
            self.mark(&mut progress.unmarked).await?;
            return lease.map(|_| RelayRound::NotOurs);
        }
        let Some(page) = self.mark_and_read(&mut progress.unmarked, &progress.pass).await? else {
            return Ok(RelayRound::Failed);
        };
        let was_clean = progress.pass.is_clean();
        if page.is_empty() {
            return Ok(if was_clean { RelayRound::Idle } else { RelayRound::Failed });
        }
        let is_last = page.len() < usize::try_from(self.options.batch_max).expect("32 bits fit");
        let rows = progress.pass.take(page);
        let Some(results) = self.publish(&rows, &mut progress.leased_at).await else {
            return Ok(RelayRound::NotOurs);
        };
        let mut failed = None;
        for (row, result) in rows.iter().zip(results) {
            self.metrics.count_published(&row.topic, result.is_ok());
            match result {
                Ok(_) => progress.unmarked.push(row.seq),
                Err(error) => {
                    progress.pass.note_failure(row);
                    failed = failed.or(Some(error));
                }
            }
        }
        if let Some(error) = failed.filter(|_| was_clean) {
            let (service, error) = (self.service, error_chain(&error));
            warn!(service, error, "events could not be published and are retried");
        }
        if progress.pass.is_clean() {
            // The next round begins soon, and marks them.
            return Ok(RelayRound::Busy);
        }
        self.mark(&mut progress.unmarked).await?;
        Ok(if is_last { RelayRound::Failed } else { RelayRound::ReadOn })
    }

    /// Marks what was published, and reads the next page of rows in the same transaction. None: rows
    /// were committed late, so the reading must begin anew.
    async fn mark_and_read(
        &self,
        published: &mut Vec<i64>,
        pass: &OutboxPass,
    ) -> DbResult<Option<Vec<OutboxRow>>> {
        let (seq, passed, limit) = (pass.seq, pass.passed, self.options.batch_max);
        let is_clean = pass.is_clean();
        let read = move |tx: &mut Tx<'_>| match is_clean {
            true => outbox::unpublished(tx, limit).map(Some),
            false => outbox::unpublished_behind(tx, seq, passed, limit),
        };
        if published.is_empty() {
            return self.db.read(read).await;
        }
        let (seqs, now) = (published.clone(), self.clock.now());
        let write = self.db.write(move |tx| {
            outbox::mark_published(tx, &seqs, now)?;
            read(tx)
        });
        let page = write.await?;
        published.clear();
        Ok(page)
    }

    /// Marks what was published, and forgets the numbers when that succeeded.
    async fn mark(&self, published: &mut Vec<i64>) -> DbResult<()> {
        if published.is_empty() {
            return Ok(());
        }
        let (seqs, now) = (published.clone(), self.clock.now());
        self.db.write(move |tx| outbox::mark_published(tx, &seqs, now)).await?;
        published.clear();
        Ok(())
    }

    /// Takes the lease, or renews it when a third of it has passed: not at every round, which
    /// would be a commit each.
    async fn has_lease(&self, leased_at: &mut Option<Instant>) -> DbResult<bool> {
        let third = self.options.lease / 3;
        if leased_at.is_some_and(|at| at.elapsed() < third) {
            return Ok(true);
        }
        // Counted from before the request, so that we never believe in it for too long.
        let asked_at = Instant::now();
        let (holder, now) = (self.holder, self.clock.now());
        let lease = self.options.lease;
        *leased_at = None;
        let taken = self.db.write(move |tx| outbox::lease_take(tx, holder, now, lease));
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
    ) -> Option<Vec<Result<MessagePosition, BusError>>> {
        if rows.is_empty() {
            return Some(Vec::new());
        }
        let message =
            |row: &OutboxRow| BusMessage::new(row.topic.clone(), row.key.clone(), row.body.clone());
        let publishing = self.bus.publish(rows.iter().map(message).collect());
        tokio::pin!(publishing);
        loop {
            tokio::select! {
                biased;
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

    fn explain(&self, error: &StorageError) -> RelayRound {
        if *error == StorageError::Closed {
            return RelayRound::Closed;
        }
        warn!(service = self.service, %error, "the outbox could not be read or marked and is retried");
        RelayRound::Failed
    }

    /// Does what is due, also while nothing can be published: that is when the lag matters.
    async fn do_chores(
        &self,
        chores: &mut RelaySchedule,
        round: RelayRound,
        logged_not_ours: &mut bool,
    ) {
        *logged_not_ours &= round == RelayRound::NotOurs;
        if Instant::now() >= chores.lag {
            let waiting = self.note_failure(self.read_lag().await).unwrap_or(0);
            chores.lag = Instant::now() + self.options.lag_interval;
            if round == RelayRound::NotOurs && waiting > 0 && !*logged_not_ours {
                info!(service = self.service, waiting, "another relay has the lease of the outbox");
                *logged_not_ours = true;
            }
        }
        // A backlog is worked off between the rounds, so that publishing goes on. That of the bus
        // is another than that of the tables: each look at it takes the bus's only writer.
        if Instant::now() >= chores.purge {
            let purged = self.note_failure(self.purge_some().await);
            chores.purge = Instant::now() + self.wait_after_purge(purged);
        }
        if Instant::now() >= chores.trim {
            let trim = self.bus.trim(self.clock.now(), self.options.purge_max);
            let trimmed = self.note_failure(trim.await);
            chores.trim = Instant::now() + self.wait_after_purge(trimmed);
        }
    }

    fn wait_after_purge(&self, purged: Option<u64>) -> Duration {
        let is_full = purged.is_some_and(|purged| purged >= u64::from(self.options.purge_max));
        if is_full { Duration::ZERO } else { self.options.purge_interval }
    }

    /// How many events wait.
    async fn read_lag(&self) -> Result<u64, BusError> {
        let (waiting, oldest) = self.db.read(outbox::lag).await?;
        self.metrics.set_outbox(self.service, waiting, oldest, self.clock.now());
        Ok(waiting)
    }

    /// Forgets a bounded number of old rows. Returns how many it were in the fuller table.
    async fn purge_some(&self) -> Result<u64, BusError> {
        let (now, limit) = (self.clock.now(), self.options.purge_max);
        let outbox_before = now - self.options.outbox_retention;
        let inbox_before = now - self.options.inbox_retention;
        let outbox = self.db.write(move |tx| outbox::purge(tx, outbox_before, limit)).await?;
        let inbox = self.db.write(move |tx| inbox::purge(tx, inbox_before, limit)).await?;
        Ok(outbox.max(inbox))
    }

    /// A failure of housekeeping is told and left for the next time.
    fn note_failure<T>(&self, outcome: Result<T, BusError>) -> Option<T> {
        let note = |error: BusError| {
            let (service, error) = (self.service, error_chain(&error));
            warn!(service, error, "housekeeping of the outbox failed");
        };
        outcome.map_err(note).ok()
    }

    async fn release(&self, progress: &mut RelayProgress) {
        // What is not marked by now is published again by the next relay.
        let marked = self.mark(&mut progress.unmarked).await;
        let holder = self.holder;
        let released = self.db.write(move |tx| outbox::lease_release(tx, holder)).await;
        match marked.and(released) {
            Ok(()) => info!(service = self.service, "the relay has stopped"),
            Err(StorageError::Closed) => {}
            Err(error) => {
                warn!(service = self.service, %error, "the relay could not release its lease")
            }
        }
    }
}
