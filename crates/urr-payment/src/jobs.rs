//! Periodic jobs: resuming due payments, watching stuck ones, audits, and deleting old rows.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio_util::sync::CancellationToken;
use urr_kernel::{Timestamp, panic_text};
use urr_service::idempotency::keys_purge;
use urr_service::jobs::{run_every, ticker};
use urr_storage::DbResult;

use crate::domain::payment::{PaymentStatus, retry_delay};
use crate::provider::ProviderClient;
use crate::store::transitions::{self, ResolverLane};
use crate::store::{payments, webhooks};
use crate::{Payment, PaymentId, PaymentService};

const RESOLVE_EVERY: Duration = Duration::from_secs(1);
const WATCH_EVERY: Duration = Duration::from_secs(30);
const CLEAN_UP_EVERY: Duration = Duration::from_secs(60 * 60);
/// A payment that stays at one step for longer is stuck.
pub(crate) const STUCK_AFTER: Duration = Duration::from_secs(10 * 60);
/// How many payments of each lane are worked on at once.
const LANE_WIDTH: u32 = 16;
/// More due payments of a lane are not counted.
const COUNTED_MAX: u32 = 10_000;
/// Providers repeat a webhook for a few days.
const WEBHOOKS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Failed attempts and orders that were never confirmed are of no use after these times.
const FAILED_KEPT: Duration = Duration::from_hours(30 * 24);
const PENDING_KEPT: Duration = Duration::from_hours(7 * 24);
/// How many rows one transaction deletes.
const DELETED_AT_ONCE: u32 = 1_000;
/// Codes of a payment whose step broke.
const STEP_FAILED: &str = "STEP_FAILED";
const STEP_PANICKED: &str = "STEP_PANICKED";

impl PaymentService {
    /// Runs all jobs until `stop`. Another process resumes what is under way then.
    pub async fn run_jobs(self, stop: CancellationToken) {
        let audits = self.0.settings.audit_interval;
        let jobs = async {
            tokio::join!(
                run_every("count_due_payments", RESOLVE_EVERY, || self.count_due()),
                join_all(ResolverLane::ALL.map(|lane| self.run_lane(lane))),
                run_every("count_stuck_payments", WATCH_EVERY, || self.count_stuck()),
                run_every("update_audit_metrics", WATCH_EVERY, || self.update_audit_metrics()),
                run_every("audit_ledger", audits, || self.audit_ledger_changes()),
                run_every("audit_whole_ledger", audits, || self.audit_whole_ledger_daily()),
                run_every("reconcile_providers", audits, || self.reconcile_providers()),
                run_every("delete_old_rows", CLEAN_UP_EVERY, || self.delete_old_rows()),
            )
        };
        stop.run_until_cancelled(jobs).await;
    }

    /// Resumes the due payments of a lane, up to [`LANE_WIDTH`] at once. A payment that waits for its
    /// provider takes one place of them and does not delay the others.
    async fn run_lane(&self, lane: ResolverLane) {
        let (mut ticks, mut under_way) = (ticker(RESOLVE_EVERY), HashSet::new());
        let mut work = FuturesUnordered::new();
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                Some(id) = work.next() => {
                    under_way.remove(&id);
                    if work.len() > LANE_WIDTH as usize / 2 {
                        continue;
                    }
                }
            }
            let due = self.list_due(lane).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "due payments could not be listed");
                Vec::new()
            });
            let free = (LANE_WIDTH as usize).saturating_sub(work.len());
            let fresh: Vec<_> = due.into_iter().filter(|id| !under_way.contains(id)).collect();
            for id in fresh.into_iter().take(free) {
                under_way.insert(id);
                work.push(self.resolve(id).map(move |_| id));
            }
        }
    }

    async fn list_due(&self, lane: ResolverLane) -> DbResult<Vec<PaymentId>> {
        let now = self.0.clock.now();
        self.read(move |tx| transitions::payment_list_due(tx, lane, now, LANE_WIDTH)).await
    }

    async fn count_due(&self) -> DbResult<()> {
        let now = self.0.clock.now();
        let count = self.read(move |tx| transitions::payment_count_due(tx, now, COUNTED_MAX));
        self.0.metrics.set_due(count.await?);
        Ok(())
    }

    /// How many payments are stuck.
    pub async fn count_stuck(&self) -> DbResult<i64> {
        let since = self.0.clock.now() - STUCK_AFTER;
        let stuck = self.read(move |tx| transitions::payment_count_stuck(tx, since)).await?;
        self.0.metrics.set_stuck(stuck);
        Ok(stuck)
    }

    /// Stuck payments, those that wait longest first.
    pub async fn list_stuck(&self, limit: u32) -> DbResult<Vec<Payment>> {
        let since = self.0.clock.now() - STUCK_AFTER;
        self.read(move |tx| transitions::payment_list_stuck(tx, since, limit)).await
    }

    /// Deletes webhooks and idempotency keys that will not be repeated, and old attempts that
    /// charged nothing. Returns how many.
    pub async fn delete_old_rows(&self) -> DbResult<u64> {
        let now = self.0.clock.now();
        let mut deleted = 0;
        loop {
            let step = self.write(move |tx| {
                let before = now - WEBHOOKS_KEPT;
                let webhooks = webhooks::webhooks_delete_old(tx, before, DELETED_AT_ONCE)?;
                let old = [
                    (PaymentStatus::Failed, now - FAILED_KEPT),
                    (PaymentStatus::Pending, now - PENDING_KEPT),
                ];
                let mut attempts = 0;
                for (status, before) in old {
                    attempts += payments::payments_delete_old(tx, status, before, DELETED_AT_ONCE)?;
                }
                Ok(webhooks + attempts + keys_purge(tx, now, DELETED_AT_ONCE)?)
            });
            let checkouts = self.delete_old_checkouts(now - FAILED_KEPT).await?;
            match step.await? + checkouts {
                0 => return Ok(deleted),
                some => deleted += some,
            }
        }
    }

    async fn delete_old_checkouts(&self, before: Timestamp) -> DbResult<u64> {
        let mut deleted = 0;
        for provider in &self.0.providers {
            if let ProviderClient::Sandbox(sandbox) = provider {
                deleted += sandbox.delete_old(before, DELETED_AT_ONCE).await?;
            }
        }
        Ok(deleted)
    }

    /// Resumes every due payment: after a crash, an unclear answer, or no answer of the ticket
    /// service. Returns how many made progress.
    pub async fn resolve_due(&self) -> DbResult<usize> {
        self.count_due().await?;
        // Both lanes come to their end, also if one of them fails.
        let resolved = join_all(ResolverLane::ALL.map(|lane| self.resolve_lane(lane))).await;
        resolved.into_iter().sum()
    }

    async fn resolve_lane(&self, lane: ResolverLane) -> DbResult<usize> {
        let mut resolved = 0;
        loop {
            let due = self.list_due(lane).await?;
            let resumed = join_all(due.iter().map(|id| self.resolve(*id))).await;
            match resumed.into_iter().filter(|is_resumed| *is_resumed).count() {
                // Nothing is due, other processes have claimed it, or no step can be done now.
                0 => return Ok(resolved),
                some => resolved += some,
            }
        }
    }

    /// Resumes one payment. A failure or panic postpones this payment and affects no other one.
    /// Returns whether the payment was claimed and its steps ran without a failure.
    async fn resolve(&self, id: PaymentId) -> bool {
        let code = match AssertUnwindSafe(self.resume(id)).catch_unwind().await {
            Ok(Ok(resumed)) => return resumed.is_some(),
            Ok(Err(error)) => {
                tracing::warn!(payment = %id, %error, "a step of a payment failed");
                STEP_FAILED
            }
            Err(panic) => {
                let cause = panic_text(panic.as_ref());
                tracing::error!(payment = %id, cause, "a step of a payment panicked");
                STEP_PANICKED
            }
        };
        self.0.metrics.count_alarm(code);
        if let Err(error) = self.postpone(id, code).await {
            tracing::warn!(payment = %id, %error, "a failed payment could not be postponed");
        }
        false
    }

    async fn postpone(&self, id: PaymentId, code: &'static str) -> DbResult<()> {
        let now = self.0.clock.now();
        self.write(move |tx| {
            let attempts = payments::payment_get(tx, id)?.attempts;
            transitions::payment_postpone(tx, id, now + retry_delay(attempts), code)
        })
        .await
    }
}
