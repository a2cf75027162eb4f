//! Returns what a provider has charged for orders that we do not have: after a restore, the ones that
//! were made and paid since the backup.
//!
//! Neither the charge nor the refund is in the ledger, as the order is not: together they are nothing.
//! The refund has a key that follows from the order, so it is made once however often it is asked for.

use urr_kernel::{Timestamp, Won};
use urr_storage::DbResult;

use crate::PaymentService;
use crate::provider::{
    ProviderClient, ProviderLookup, ProviderOutcome, ProviderState, RefundRequest,
};
use crate::provider_reconciliation::{ProviderDifference, TimeRange};

/// How many are returned in one call; the caller asks again.
pub const RETURNED_AT_ONCE_MAX: usize = 50;

/// What was done about charges without an order of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownCharges {
    pub returned: Vec<(String, Won)>,
    /// Orders whose refund did not work, with the amount and the provider's code.
    pub kept: Vec<(String, Won, String)>,
    /// Providers that did not answer.
    pub silent: Vec<&'static str>,
    /// Whether there are others.
    pub has_more: bool,
}

impl PaymentService {
    /// Refunds every charge of the time range whose order we do not have. Never call it if another
    /// shop uses the same account at the provider: its orders are unknown too.
    pub async fn return_unknown_charges(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> DbResult<UnknownCharges> {
        let mut done = UnknownCharges::default();
        for provider in &self.0.providers {
            let found = self.reconcile_with(provider, TimeRange { from, to }).await?;
            done.silent.extend(found.silent);
            for difference in found.differences {
                let ProviderDifference::UnknownOrder { order_id, amount } = difference else {
                    continue;
                };
                if done.returned.len() >= RETURNED_AT_ONCE_MAX {
                    done.has_more = true;
                    return Ok(done);
                }
                match return_charge(provider, &order_id).await {
                    Ok(amount) => {
                        tracing::warn!(order_id, %amount, "a charge without an order was returned");
                        done.returned.push((order_id, amount));
                    }
                    Err(code) => done.kept.push((order_id, amount, code)),
                }
            }
        }
        Ok(done)
    }
}

/// Returns what is left of a charge, or says by a code why not.
async fn return_charge(provider: &ProviderClient, order_id: &str) -> Result<Won, String> {
    let theirs = match provider.find_for_reconciliation(order_id, None).await {
        ProviderLookup::Payment(theirs) if theirs.state == ProviderState::Paid => theirs,
        ProviderLookup::Payment(_) | ProviderLookup::NotFound => return Err("NOT_PAID".to_owned()),
        ProviderLookup::Unknown { code } => return Err(code),
    };
    let left = theirs.amount.minus(theirs.refunded).map_err(|_| "MISMATCH".to_owned())?;
    let refund = RefundRequest {
        order_id: order_id.to_owned(),
        payment_key: theirs.payment_key,
        amount: left,
        remaining: left,
        reason: "The order was lost".to_owned(),
        idempotency_key: format!("return-{order_id}"),
    };
    match provider.cancel(&refund).await {
        ProviderOutcome::Done(_) => Ok(left),
        ProviderOutcome::Declined { code }
        | ProviderOutcome::Unsent { code }
        | ProviderOutcome::Unknown { code } => Err(code),
    }
}
