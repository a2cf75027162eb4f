//! What is done about a provider's message: the payment is looked at.

use urr_storage::StorageError;

use crate::Payments;
use crate::domain::payment::{Payment, Status};
use crate::provider::Hint;
use crate::reconcile::reopen;
use crate::store::{payments, webhooks};

/// Anybody can send messages about an order whose number they know. So many cause a look.
const MESSAGES_PER_ORDER_MAX: i64 = 50;

impl Payments {
    /// Looks at the payment of an order, once per message. What nobody has ordered leaves no trace.
    pub(crate) async fn take_hint(
        &self,
        provider: &'static str,
        hint: Hint,
    ) -> Result<(), StorageError> {
        let now = self.0.clock.now();
        let noted = self.0.db.write(move |tx| {
            let Hint { message_id, order_id } = &hint;
            let payment = payments::payment_of_order_lock(tx, order_id)?;
            let Some(payment) = payment.filter(|payment| payment.provider == provider) else {
                return Ok(());
            };
            if webhooks::webhook_count(tx, order_id)? >= MESSAGES_PER_ORDER_MAX
                || !webhooks::webhook_insert(tx, provider, message_id, order_id, now)?
            {
                return Ok(());
            }
            match is_worth_a_query(&payment) {
                true => reopen(tx, &payment, now),
                false => payments::payment_hurry(tx, payment.id, now),
            }
        });
        self.0.faults.around("hint", noted).await
    }
}

/// The provider may have charged after all, although everybody had given up on it.
fn is_worth_a_query(payment: &Payment) -> bool {
    payment.status == Status::Failed && payment.is_at_rest() && payment.charge_sent_at.is_some()
}
