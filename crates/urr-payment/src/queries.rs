//! Read-only operations on payments.

use urr_kernel::Uuid;
use urr_service::{EventScope, Page};
use urr_storage::DbResult;

use crate::PaymentService;
use crate::domain::payment::{Payment, PaymentId};
use crate::domain::refund::Refund;
use crate::store::organisers;
use crate::store::payments::{self, PaymentFilter};
use crate::store::refunds;

impl PaymentService {
    pub async fn find(&self, id: PaymentId) -> DbResult<Option<Payment>> {
        self.read(move |tx| payments::payment_find(tx, id)).await
    }

    /// A payment for an event in the scope; another one is as if it were not there.
    pub async fn find_in_scope(
        &self,
        id: PaymentId,
        scope: EventScope,
    ) -> DbResult<Option<Payment>> {
        let found = self.read(move |tx| {
            let Some(payment) = payments::payment_find(tx, id)? else { return Ok(None) };
            let organiser_id = match payment.event_id {
                Some(event_id) => organisers::organiser_find(tx, event_id)?,
                None => None,
            };
            Ok(scope.includes(organiser_id).then_some(payment))
        });
        found.await
    }

    pub async fn find_order(&self, order_id: &str) -> DbResult<Option<Payment>> {
        let order_id = order_id.to_owned();
        self.read(move |tx| payments::payment_find_by_order(tx, &order_id)).await
    }

    /// The newest first.
    pub async fn list(&self, filter: PaymentFilter, page: Page) -> DbResult<(Vec<Payment>, u64)> {
        self.read(move |tx| payments::payment_list(tx, filter, page)).await
    }

    /// The newest orders of a payable, at most a hundred.
    pub async fn list_by_payable(&self, payable_id: Uuid) -> DbResult<Vec<Payment>> {
        self.read(move |tx| payments::payment_list_by_payable(tx, payable_id, 100)).await
    }

    /// The oldest first.
    pub async fn list_refunds(&self, id: PaymentId) -> DbResult<Vec<Refund>> {
        self.read(move |tx| refunds::refund_list(tx, id)).await
    }
}
