//! Every call to a provider: written before it is made and completed afterwards.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

use crate::domain::payment::PaymentId;
use crate::domain::refund::RefundId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderCall {
    pub id: Uuid,
    pub payment_id: PaymentId,
    pub refund_id: Option<RefundId>,
    /// `confirm` or `cancel`. Questions change nothing and are not written down.
    pub action: &'static str,
}

pub fn provider_call_insert(
    tx: &mut Tx<'_>,
    attempt: &ProviderCall,
    now: Timestamp,
) -> Result<(), StorageError> {
    let ProviderCall { id, payment_id, refund_id, action } = *attempt;
    tx.execute(
        "insert into provider_calls (id, payment_id, refund_id, action, started_at) \
         values ($1, $2, $3, $4, $5)",
        params![id, payment_id.0, refund_id.map(|id| id.0), action, now],
    )?;
    Ok(())
}

pub(super) const FINISH: &str = "update provider_calls set finished_at = $2, outcome = $3, code = $4 \
    where payment_id = $1 and finished_at is null";

/// What came of the attempts that nobody has heard of yet.
pub fn provider_calls_finish(
    tx: &mut Tx<'_>,
    payment_id: PaymentId,
    outcome: &str,
    code: Option<&str>,
    now: Timestamp,
) -> Result<(), StorageError> {
    tx.execute(FINISH, params![payment_id.0, now, outcome, code])?;
    Ok(())
}
