//! Calls to providers that move money: written before they are made, completed afterwards.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Tx, params};

use crate::domain::payment::PaymentId;
use crate::domain::refund::RefundId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderCall {
    pub id: Uuid,
    pub payment_id: PaymentId,
    pub refund_id: Option<RefundId>,
    /// `confirm` or `cancel`. Queries change nothing and are not recorded.
    pub action: &'static str,
}

impl ProviderCall {
    pub fn charge(id: Uuid, payment_id: PaymentId) -> ProviderCall {
        ProviderCall { id, payment_id, refund_id: None, action: "confirm" }
    }
}

pub fn provider_call_insert(tx: &mut Tx<'_>, call: &ProviderCall, now: Timestamp) -> DbResult<()> {
    let ProviderCall { id, payment_id, refund_id, action } = *call;
    tx.execute_later(
        "insert into provider_calls (id, payment_id, refund_id, action, started_at) \
         values ($1, $2, $3, $4, $5)",
        params![id, payment_id, refund_id, action, now],
    )
}

pub(super) const FINISH: &str = "update provider_calls set finished_at = $2, outcome = $3, code = $4 \
    where payment_id = $1 and finished_at is null";

/// Records the outcome of the payment's calls that have none yet.
pub fn provider_calls_finish(
    tx: &mut Tx<'_>,
    payment_id: PaymentId,
    outcome: &str,
    code: Option<&str>,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute_later(FINISH, params![payment_id, now, outcome, code])
}
