//! The payment service, as an operator sees it.

use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::Upstream;

use super::{ClientError, get, with_query};
use crate::internal::payment::{
    AUDIT_LEDGER, AUDIT_PROVIDER, AUDIT_TICKETS, LedgerAudit, ProviderAudit, TicketAudit,
};

#[derive(Clone, Debug)]
pub struct PaymentClient(Upstream);

impl PaymentClient {
    pub fn new(upstream: Upstream) -> PaymentClient {
        PaymentClient(upstream)
    }

    pub async fn audit_ledger(&self, context: &CallContext) -> Result<LedgerAudit, ClientError> {
        get(&self.0, &AUDIT_LEDGER, AUDIT_LEDGER.path, context).await
    }

    pub async fn audit_provider(
        &self,
        since: Timestamp,
        context: &CallContext,
    ) -> Result<ProviderAudit, ClientError> {
        let path = with_query(AUDIT_PROVIDER.path, "since", Some(since));
        get(&self.0, &AUDIT_PROVIDER, &path, context).await
    }

    /// A page of paid reservations; `after` is the `next` of the page before.
    pub async fn audit_tickets(
        &self,
        after: Option<Uuid>,
        context: &CallContext,
    ) -> Result<TicketAudit, ClientError> {
        let path = with_query(AUDIT_TICKETS.path, "after", after);
        get(&self.0, &AUDIT_TICKETS, &path, context).await
    }
}
