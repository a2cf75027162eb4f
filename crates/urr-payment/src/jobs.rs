//! What has to be done from time to time: going on with payments that have something to do, proving
//! the books, and comparing them with the provider's.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use urr_storage::{StorageError, Tx};

use crate::domain::payment::retry_delay;
use crate::store::payments::{self, ResolverLane};
use crate::store::{idempotency_keys, webhooks};
use crate::{Payment, PaymentId, PaymentService};

const LOOK_EVERY: Duration = Duration::from_secs(1);
const WATCH_EVERY: Duration = Duration::from_secs(30);
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(10 * 60);
/// Of each lane.
const AT_ONCE: u32 = 16;
/// More than so many of a lane are not counted.
const COUNTED_MAX: u32 = 10_000;
const FORGET_EVERY: Duration = Duration::from_secs(60 * 60);
/// Providers repeat a message for a few days.
const MESSAGES_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Nobody tries the same again after so long.
const KEYS_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// So many rows are forgotten by one transaction.
const FORGOTTEN_AT_ONCE: u32 = 1_000;
/// What is noted of a payment at which a step broke.
const STEP_FAILED: &str = "STEP_FAILED";
const STEP_PANICKED: &str = "STEP_PANICKED";

impl PaymentService {
    /// Does it until it is told to stop. Others go on with what is under way then.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let jobs = async {
            tokio::join!(
                self.run_resolver(),
                self.run_stuck_watch(),
                self.run_audits(),
                self.run_cleanup()
            )
        };
        stop.run_until_cancelled(jobs).await;
    }

    /// Each lane goes at its own pace: one that waits for a silent provider keeps no other.
    async fn run_resolver(&self) {
        let count = async {
            let mut tick = every(LOOK_EVERY);
            loop {
                tick.tick().await;
                if let Err(error) = self.set_due().await {
                    tracing::warn!(%error, "what is due could not be counted; tried again");
                }
            }
        };
        let lanes = join_all(ResolverLane::ALL.map(|lane| self.run_lane(lane)));
        let ((), _) = tokio::join!(count, lanes);
    }

    /// Keeps so many at work. One that waits for its provider takes one place, and not everybody's.
    async fn run_lane(&self, lane: ResolverLane) {
        let (mut tick, mut at_work) = (every(LOOK_EVERY), HashSet::new());
        let mut work = FuturesUnordered::new();
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                Some(id) = work.next() => {
                    at_work.remove(&id);
                    if work.len() > AT_ONCE as usize / 2 {
                        continue;
                    }
                }
            }
            let now = self.0.clock.now();
            let read = move |tx: &mut Tx<'_>| payments::payments_due(tx, lane, now, AT_ONCE);
            let due: Result<Vec<PaymentId>, StorageError> = self.0.db.read(read).await;
            let due = due.unwrap_or_else(|error| {
                tracing::warn!(%error, "payments could not be gone on with; tried again");
                Vec::new()
            });
            let room = (AT_ONCE as usize).saturating_sub(work.len());
            let fresh: Vec<_> = due.into_iter().filter(|id| !at_work.contains(id)).collect();
            for id in fresh.into_iter().take(room) {
                at_work.insert(id);
                work.push(async move {
                    self.resolve(id).await;
                    id
                });
            }
        }
    }

    async fn run_stuck_watch(&self) {
        let mut tick = every(WATCH_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.count_stuck().await {
                tracing::warn!(%error, "payments could not be counted; tried again");
            }
            if let Err(error) = self.update_audit_metrics().await {
                tracing::warn!(%error, "what was looked through cannot be told; tried again");
            }
        }
    }

    /// How many payments have not got on for long: somebody has to look.
    pub async fn count_stuck(&self) -> Result<i64, StorageError> {
        let since = self.0.clock.now() - STUCK_AFTER;
        let stuck = self.0.db.read(move |tx| payments::payments_stuck(tx, since)).await?;
        self.0.metrics.set_stuck(stuck);
        Ok(stuck)
    }

    /// Payments that have not got on for long, those that wait longest first.
    pub async fn list_stuck(&self, limit: u32) -> Result<Vec<Payment>, StorageError> {
        let since = self.0.clock.now() - STUCK_AFTER;
        self.0.db.read(move |tx| payments::payments_stuck_list(tx, since, limit)).await
    }

    async fn run_audits(&self) {
        let mut tick = every(self.0.settings.audit_interval);
        loop {
            tick.tick().await;
            if let Err(error) = self.audit_ledger_changes().await {
                tracing::warn!(%error, "the books could not be read; tried again");
            }
            if let Err(error) = self.reconcile_providers().await {
                tracing::warn!(%error, "the books could not be compared; tried again");
            }
        }
    }

    async fn run_cleanup(&self) {
        let mut tick = every(FORGET_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.delete_old_rows().await {
                tracing::warn!(%error, "what is old could not be forgotten; tried again");
            }
        }
    }

    /// Forgets messages and keys that nobody will send again. Returns how many.
    pub async fn delete_old_rows(&self) -> Result<u64, StorageError> {
        let now = self.0.clock.now();
        let mut forgotten = 0;
        loop {
            let step = self.0.db.write(move |tx| {
                let messages =
                    webhooks::webhooks_delete_old(tx, now - MESSAGES_KEPT, FORGOTTEN_AT_ONCE)?;
                let keys =
                    idempotency_keys::keys_delete_old(tx, now - KEYS_KEPT, FORGOTTEN_AT_ONCE)?;
                Ok::<_, StorageError>(messages + keys)
            });
            match step.await? {
                0 => return Ok(forgotten),
                some => forgotten += some,
            }
        }
    }

    /// Goes on with every payment that is due: after a crash, an unclear answer, a silent ticket
    /// tickets. Purchases do not wait for money that goes back. Returns how many got on.
    pub async fn resolve_due(&self) -> Result<usize, StorageError> {
        self.set_due().await?;
        // A lane that fails does not break off what the other one is at.
        let resolved = join_all(ResolverLane::ALL.map(|lane| self.resolve_lane(lane))).await;
        resolved.into_iter().sum()
    }

    async fn set_due(&self) -> Result<(), StorageError> {
        let now = self.0.clock.now();
        let count = move |tx: &mut Tx<'_>| payments::payments_due_count(tx, now, COUNTED_MAX);
        self.0.metrics.set_due(self.0.db.read(count).await?);
        Ok(())
    }

    async fn resolve_lane(&self, lane: ResolverLane) -> Result<usize, StorageError> {
        let mut resolved = 0;
        loop {
            let now = self.0.clock.now();
            let read = move |tx: &mut Tx<'_>| payments::payments_due(tx, lane, now, AT_ONCE);
            let due = self.0.db.read(read).await?;
            let driven = join_all(due.iter().map(|id| self.resolve(*id))).await;
            match driven.into_iter().filter(|is_taken| *is_taken).count() {
                // Nothing was due, somebody else has them, or none can be gone on with now.
                0 => return Ok(resolved),
                taken => resolved += taken,
            }
        }
    }

    /// Goes on with one. Whatever happens to it, happens to no other one. The answer is whether
    /// somebody was at it and all went well.
    async fn resolve(&self, id: PaymentId) -> bool {
        let code = match AssertUnwindSafe(self.resume(id)).catch_unwind().await {
            Ok(Ok(taken)) => return taken.is_some(),
            Ok(Err(error)) => {
                tracing::warn!(payment = %id, %error, "a payment did not get on");
                STEP_FAILED
            }
            Err(_) => {
                tracing::error!(payment = %id, "a step of a payment panicked");
                STEP_PANICKED
            }
        };
        self.0.metrics.count_alarm(code);
        if let Err(error) = self.postpone(id, code).await {
            tracing::warn!(payment = %id, %error, "nobody could be told to look later");
        }
        false
    }

    async fn postpone(&self, id: PaymentId, code: &'static str) -> Result<(), StorageError> {
        let now = self.0.clock.now();
        let postpone = self.0.db.write(move |tx| {
            let Some(payment) = payments::payment_find(tx, id)? else { return Ok(()) };
            payments::payment_postpone(tx, id, now + retry_delay(payment.attempts), code)
        });
        postpone.await
    }
}

/// KeyedMutex that come late do not pile up.
fn every(pause: Duration) -> Interval {
    let mut tick = interval(pause);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}
