//! Periodic audits: of what changed in the ledger, of the whole ledger, and of what moved at the
//! providers. One process at a time runs an audit; all but the whole one continue where the last run
//! stopped.

use std::collections::BTreeSet;
use std::time::Duration;

use urr_kernel::Uuid;
use urr_service::whole_audit::WholeAudit;
use urr_storage::{DbResult, TIME_MIN};

use crate::domain::ledger_audit::{LedgerDifference, LedgerSums};
use crate::provider::ProviderClient;
use crate::provider_reconciliation::{ProviderDifference, TimeRange};
use crate::store::audit_runs::{self, AuditRunHolder, AuditRunProgress};
use crate::store::ledger::EntryMark;
use crate::{LedgerProof, PaymentService};

/// A process that dies during an audit blocks the others for this long.
const LEASE: Duration = Duration::from_secs(2 * 60);
/// The name of the ledger's audit in `audit_runs`, in `whole_audits` and in the metric.
const LEDGER: &str = "ledger";
/// Entries of this time before the last run are audited again: they may have been committed after
/// it.
const COMMIT_LAG: Duration = Duration::from_secs(2 * 60);
/// How many unexplained payments each run checks again.
const RECHECKED_MAX: u32 = 1_000;
/// A provider's list is not complete up to the very moment.
const LIST_LAG: Duration = Duration::from_secs(60);
/// How far back the first run goes.
const FIRST_RANGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How much time one list covers.
const RANGE_MAX: Duration = Duration::from_secs(60 * 60);
/// How many differing orders each run checks again.
const DIFFERING_MAX: u32 = 100;

impl PaymentService {
    /// Audits what was written since the last run. Returns all that is not explained, also from
    /// earlier runs; none if it is not the turn of this process.
    pub async fn audit_ledger_changes(&self) -> DbResult<Option<Vec<LedgerDifference>>> {
        let Some(progress) = self.claim_audit_run(LEDGER).await? else { return Ok(None) };
        let checked = self.audit_changed_payments(progress).await;
        let is_done = matches!(checked, Ok(Some(_)));
        self.finish_audit_run(LEDGER, is_done).await?;
        checked
    }

    async fn audit_changed_payments(
        &self,
        mut progress: AuditRunProgress,
    ) -> DbResult<Option<Vec<LedgerDifference>>> {
        let now = self.0.clock.now();
        let mut sums = LedgerSums::default();
        let from = progress.up_to.map_or(TIME_MIN, |up_to| up_to - COMMIT_LAG);
        let mut after = EntryMark { at: from, id: Uuid::nil() };
        while let Some(until) = self.add_entries(after, &mut sums).await? {
            after = until;
            if !self.update_audit_run(LEDGER, progress).await? {
                return Ok(None);
            }
        }
        progress.up_to = Some(now);
        if !self.update_audit_run(LEDGER, progress).await? {
            return Ok(None);
        }
        self.record_unexplained(&sums.unexplained).await?;
        self.recheck_unexplained().await.map(Some)
    }

    /// The audit of the whole ledger: what came of the last one, and whether one runs.
    pub(crate) fn whole_ledger_audit(&self) -> WholeAudit {
        let (db, clock, ids) = (self.0.db.clone(), self.0.clock.clone(), self.0.ids.clone());
        WholeAudit { db, clock, ids, name: LEDGER }
    }

    /// Proves the whole ledger. What is not explained is checked again by every run of the audit of
    /// changes, until it is.
    pub(crate) async fn audit_whole_ledger(&self) -> DbResult<LedgerProof> {
        let proof = self.prove_ledger().await?;
        self.record_unexplained(&proof.unexplained).await?;
        Ok(proof)
    }

    async fn record_unexplained(&self, found: &[LedgerDifference]) -> DbResult<()> {
        let ids: BTreeSet<Uuid> = found.iter().filter_map(LedgerDifference::payment_id).collect();
        let now = self.0.clock.now();
        if ids.is_empty() {
            return Ok(());
        }
        self.write(move |tx| {
            ids.iter().try_for_each(|id| audit_runs::unexplained_insert(tx, *id, now))
        })
        .await
    }

    /// Checks the payments that were not explained before.
    async fn recheck_unexplained(&self) -> DbResult<Vec<LedgerDifference>> {
        let known = self.read(|tx| audit_runs::unexplained_list(tx, RECHECKED_MAX)).await?;
        let mut unexplained = Vec::new();
        for id in known {
            let found = self.prove_payment(id).await?;
            if found.is_empty() {
                self.write(move |tx| audit_runs::unexplained_delete(tx, id)).await?;
            }
            unexplained.extend(found);
        }
        for found in &unexplained {
            tracing::error!(%found, "the ledger does not explain this");
        }
        Ok(unexplained)
    }

    /// Compares with every provider what moved since the last run. A provider that does not answer is
    /// asked for the same next time and does not keep us from the others. Returns all differences,
    /// also from earlier runs.
    pub async fn reconcile_providers(&self) -> DbResult<Vec<ProviderDifference>> {
        let mut differences = Vec::new();
        for provider in &self.0.providers {
            let name = format!("provider:{}", provider.name());
            let Some(progress) = self.claim_audit_run(&name).await? else { continue };
            let checked = self.reconcile_since(provider, &name, progress).await;
            self.finish_audit_run(&name, matches!(checked, Ok((_, true)))).await?;
            differences.extend(checked?.0);
        }
        for found in &differences {
            tracing::error!(%found, "the provider and we differ");
        }
        Ok(differences)
    }

    /// Returns the differences, and whether the provider has answered completely.
    async fn reconcile_since(
        &self,
        provider: &ProviderClient,
        name: &str,
        progress: AuditRunProgress,
    ) -> DbResult<(Vec<ProviderDifference>, bool)> {
        let now = self.0.clock.now();
        let mut differences = self.recheck_differing_orders(provider).await?;
        let end = now - LIST_LAG;
        let mut from = progress.up_to.unwrap_or(now - FIRST_RANGE);
        while from < end {
            let to = end.min(from + RANGE_MAX);
            let found = self.reconcile_with(provider, TimeRange { from, to }).await?;
            self.record_differing(provider, &[], &found.differences).await?;
            differences.extend(found.differences);
            if !found.silent.is_empty() {
                return Ok((differences, false));
            }
            let compared = AuditRunProgress { up_to: Some(to) };
            if !self.update_audit_run(name, compared).await? {
                return Ok((differences, false));
            }
            from = to;
        }
        Ok((differences, true))
    }

    /// Checks the orders that differed before.
    async fn recheck_differing_orders(
        &self,
        provider: &ProviderClient,
    ) -> DbResult<Vec<ProviderDifference>> {
        let name = provider.name();
        let list = self.read(move |tx| audit_runs::differing_list(tx, name, DIFFERING_MAX));
        let orders = list.await?;
        let mut differences = Vec::new();
        for order_id in &orders {
            differences.extend(self.recheck_order(provider, order_id).await?);
        }
        self.record_differing(provider, &orders, &differences).await?;
        Ok(differences)
    }

    async fn record_differing(
        &self,
        provider: &ProviderClient,
        checked: &[String],
        differences: &[ProviderDifference],
    ) -> DbResult<()> {
        let (name, now) = (provider.name(), self.0.clock.now());
        let checked = checked.to_vec();
        let orders: Vec<String> =
            differences.iter().map(|found| found.order_id().to_owned()).collect();
        if checked.is_empty() && orders.is_empty() {
            return Ok(());
        }
        self.write(move |tx| audit_runs::differing_set(tx, name, &checked, &orders, now)).await
    }

    /// Every process shows the results of the audits, whichever runs them.
    pub(crate) async fn update_audit_metrics(&self) -> DbResult<()> {
        let metrics = self.0.metrics.clone();
        self.read(move |tx| {
            let done = audit_runs::audit_runs_list(tx)?;
            let (unexplained, differing) =
                (audit_runs::unexplained_count(tx)?, audit_runs::differing_count(tx)?);
            metrics.set_audits(&done, unexplained, differing);
            Ok(())
        })
        .await
    }

    fn holder(&self) -> AuditRunHolder {
        AuditRunHolder { id: self.0.process_id, lease: LEASE }
    }

    /// None if another process runs the audit or has just done so.
    async fn claim_audit_run(&self, name: &str) -> DbResult<Option<AuditRunProgress>> {
        let (name, holder, now) = (name.to_owned(), self.holder(), self.0.clock.now());
        let done_since = now - self.0.settings.audit_interval / 2;
        self.write(move |tx| audit_runs::audit_run_claim(tx, &name, holder, done_since, now)).await
    }

    async fn update_audit_run(&self, name: &str, progress: AuditRunProgress) -> DbResult<bool> {
        let (name, holder, now) = (name.to_owned(), self.holder(), self.0.clock.now());
        self.write(move |tx| audit_runs::audit_run_update(tx, &name, holder, progress, now)).await
    }

    async fn finish_audit_run(&self, name: &str, is_done: bool) -> DbResult<()> {
        let (name, holder, now) = (name.to_owned(), self.holder(), self.0.clock.now());
        let succeeded_at = is_done.then_some(now);
        self.write(move |tx| audit_runs::audit_run_finish(tx, &name, holder, succeeded_at)).await
    }
}
