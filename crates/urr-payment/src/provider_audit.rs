//! For audits: what moved at the providers beside our payments. Nothing is changed by it.

use std::time::Duration;

use urr_kernel::Timestamp;
use urr_storage::DbResult;

use crate::PaymentService;
use crate::provider::ProviderClient;
use crate::provider_reconciliation::{AbandonedCharges, Reconciliation, TimeRange};

/// How much time one list of a provider covers. What is in memory grows with it, and not with the
/// time that is audited.
const RANGE_MAX: Duration = Duration::from_secs(60 * 60);
/// More differences than this are not listed.
const DIFFERENCES_MAX: usize = 1_000;

/// Which providers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditedProviders {
    All,
    /// Those whose books are not our own tables. [`PaymentService::audit_sandbox`] compares the
    /// sandbox row by row.
    WithoutSandbox,
}

impl PaymentService {
    /// Compares what moved in a time range, in both directions. A payment that we gave up and a
    /// provider has charged is a difference: the next reconciliation resumes it.
    pub async fn audit_providers(
        &self,
        audited: AuditedProviders,
        from: Timestamp,
        to: Timestamp,
    ) -> DbResult<Reconciliation> {
        let mut all = Reconciliation::default();
        for provider in &self.0.providers {
            let is_sandbox = matches!(provider, ProviderClient::Sandbox(_));
            if is_sandbox && audited == AuditedProviders::WithoutSandbox {
                continue;
            }
            self.audit_provider(provider, TimeRange { from, to }, &mut all).await?;
        }
        Ok(all)
    }

    async fn audit_provider(
        &self,
        provider: &ProviderClient,
        span: TimeRange,
        all: &mut Reconciliation,
    ) -> DbResult<()> {
        let mut from = span.from;
        while from < span.to {
            let range = TimeRange { from, to: span.to.min(from + RANGE_MAX) };
            let found = self.compare_with(provider, range, AbandonedCharges::Report).await?;
            all.compared += found.compared;
            all.differences.extend(found.differences);
            all.differences.truncate(DIFFERENCES_MAX);
            if !found.silent.is_empty() {
                all.silent.extend(found.silent);
                return Ok(());
            }
            from = range.to;
        }
        Ok(())
    }
}
