//! What is done about a provider's message: the payment is looked at.
//!
//! Anybody can send messages about an order whose number they know. They are read before anything
//! is written, and of too many the rest only sees to it that somebody looks in a while: so nobody
//! can cause many looks, and nobody can keep the provider's own message from causing one.

use std::time::Duration;

use urr_kernel::Timestamp;
use urr_storage::{StorageError, Tx};

use crate::Payments;
use crate::domain::payment::{Payment, Status};
use crate::provider::Hint;
use crate::reconcile::reopen;
use crate::store::{payments, webhooks};

const HOUR: Duration = Duration::from_secs(60 * 60);
/// So many messages about an order cause a look at once.
const MESSAGES_PER_ORDER_AND_HOUR_MAX: i64 = 20;
/// The others cause one by then.
const LOOK_WITHIN: Duration = Duration::from_secs(60);

/// What a message leads to.
struct Look {
    payment: Payment,
    at: Timestamp,
    /// Whether the message is kept, so that it causes nothing a second time.
    is_kept: bool,
}

impl Payments {
    /// Looks at the payment of an order, once per message. What nobody has ordered leaves no trace.
    pub(crate) async fn take_hint(
        &self,
        provider: &'static str,
        hint: Hint,
    ) -> Result<(), StorageError> {
        let now = self.0.clock.now();
        let (seen, message) = (hint.clone(), hint);
        let look = move |tx: &mut Tx<'_>| decide(tx, provider, &seen, now);
        if self.0.db.read(look).await?.is_none() {
            return Ok(());
        }
        let noted = self.0.db.write(move |tx| {
            payments::payment_of_order_lock(tx, &message.order_id)?;
            match decide(tx, provider, &message, now)? {
                Some(look) => note(tx, provider, &message, &look, now),
                None => Ok(()),
            }
        });
        self.0.faults.around("hint", noted).await
    }
}

/// None: it is known, concerns nothing of ours, or somebody looks soon anyway.
fn decide(
    tx: &mut Tx<'_>,
    provider: &str,
    hint: &Hint,
    now: Timestamp,
) -> Result<Option<Look>, StorageError> {
    let Hint { message_id, order_id } = hint;
    let payment = payments::payment_of_order(tx, order_id)?;
    let Some(payment) = payment.filter(|payment| payment.provider == provider) else {
        return Ok(None);
    };
    if webhooks::webhook_exists(tx, provider, message_id)? {
        return Ok(None);
    }
    let is_kept =
        webhooks::webhook_count(tx, order_id, now - HOUR)? < MESSAGES_PER_ORDER_AND_HOUR_MAX;
    if is_kept {
        return Ok(Some(Look { payment, at: now, is_kept }));
    }
    let at = now + LOOK_WITHIN;
    let is_soon = match payments::payment_look_at(tx, payment.id)? {
        Some(look_at) => look_at <= at,
        None => !is_worth_a_query(&payment),
    };
    Ok((!is_soon).then_some(Look { payment, at, is_kept }))
}

fn note(
    tx: &mut Tx<'_>,
    provider: &str,
    hint: &Hint,
    look: &Look,
    now: Timestamp,
) -> Result<(), StorageError> {
    let Look { payment, at, is_kept } = look;
    if *is_kept {
        webhooks::webhook_insert(tx, provider, &hint.message_id, &hint.order_id, now)?;
    }
    match is_worth_a_query(payment) {
        true => reopen(tx, payment, *at, now),
        false => payments::payment_hurry(tx, payment.id, *at),
    }
}

/// The provider may have charged after all, although everybody had given up on it.
fn is_worth_a_query(payment: &Payment) -> bool {
    payment.status == Status::Failed && payment.is_at_rest() && payment.charge_sent_at.is_some()
}
