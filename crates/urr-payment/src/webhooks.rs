//! Handling of a provider's webhook: the payment is queried at the provider soon.
//!
//! Anybody who knows an order's number can send webhooks about it. So a message is decided about
//! before anything is written, and after too many of them in an hour the rest only moves the next
//! query forward to within a minute. Nobody can cause many queries, and nobody can suppress the one
//! that the provider's own message asks for.

use std::time::Duration;

use urr_kernel::Timestamp;
use urr_storage::{DbResult, Tx};

use crate::PaymentService;
use crate::domain::payment::{Payment, PaymentStatus};
use crate::provider::WebhookNotice;
use crate::provider_reconciliation::payment_reopen;
use crate::store::{payments, transitions, webhooks};

const HOUR: Duration = Duration::from_secs(60 * 60);
/// This many messages about an order cause a query at once.
const MESSAGES_PER_ORDER_AND_HOUR_MAX: i64 = 20;
/// Any further message causes a query within this time.
const QUERY_WITHIN: Duration = Duration::from_secs(60);

/// What a webhook leads to.
struct PlannedQuery {
    payment: Payment,
    at: Timestamp,
    /// Whether the message is stored, so that a repetition has no effect.
    is_stored: bool,
}

impl PaymentService {
    /// Plans a query of the order's payment, once per message. A message about an unknown order
    /// writes nothing.
    pub(crate) async fn handle_webhook(
        &self,
        provider: &'static str,
        notice: WebhookNotice,
    ) -> DbResult<()> {
        let (now, seen) = (self.0.clock.now(), notice.clone());
        if self.read(move |tx| plan_query(tx, provider, &seen, now)).await?.is_none() {
            return Ok(());
        }
        self.commit("webhook", move |tx| {
            payments::payment_lock_by_order(tx, &notice.order_id)?;
            let Some(query) = plan_query(tx, provider, &notice, now)? else { return Ok(()) };
            if query.is_stored {
                webhooks::webhook_insert(tx, provider, &notice.message_id, &notice.order_id, now)?;
            }
            match may_have_charged(&query.payment) {
                true => payment_reopen(tx, &query.payment, query.at, now),
                false => transitions::payment_attempt_by(tx, query.payment.id, query.at),
            }
        })
        .await
    }
}

/// None if the message was seen before, is not about an order of this provider, or changes nothing
/// because a query is due soon anyway.
fn plan_query(
    tx: &mut Tx<'_>,
    provider: &str,
    notice: &WebhookNotice,
    now: Timestamp,
) -> DbResult<Option<PlannedQuery>> {
    let WebhookNotice { message_id, order_id } = notice;
    let payment = payments::payment_find_by_order(tx, order_id)?;
    let Some(payment) = payment.filter(|payment| payment.provider == provider) else {
        return Ok(None);
    };
    if webhooks::webhook_exists(tx, provider, message_id)? {
        return Ok(None);
    }
    let is_stored =
        webhooks::webhook_count(tx, order_id, now - HOUR)? < MESSAGES_PER_ORDER_AND_HOUR_MAX;
    if is_stored {
        return Ok(Some(PlannedQuery { payment, at: now, is_stored }));
    }
    let at = now + QUERY_WITHIN;
    let is_soon = match transitions::payment_next_attempt(tx, payment.id)? {
        Some(attempt_at) => attempt_at <= at,
        None => !may_have_charged(&payment),
    };
    Ok((!is_soon).then_some(PlannedQuery { payment, at, is_stored }))
}

/// Whether the provider may have charged although the payment was given up.
fn may_have_charged(payment: &Payment) -> bool {
    payment.status == PaymentStatus::Failed
        && payment.is_settled()
        && payment.charge_sent_at.is_some()
}
