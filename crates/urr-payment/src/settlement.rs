//! The settlement of an event, its payments and the ledger's entries, for organisers and
//! administrators.

use urr_contracts::internal::ticket::{GetGradeSales, GradeSales};
use urr_kernel::{CallContext, Timestamp, Uuid, Won};
use urr_service::{EventScope, NotYourEvent};
use urr_storage::{DbResult, StorageError, Tx};

use crate::PaymentService;
use crate::domain::settlement::{LedgerSum, Settlement};
use crate::store::{organisers, settlement as store};
pub use store::{LedgerRow, MethodSales};

/// The event cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum EventMoneyError {
    #[error("There is no such event.")]
    NotFound,
    #[error(transparent)]
    NotYours(#[from] NotYourEvent),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The settlement of an event at a moment.
#[derive(Clone, Debug)]
pub struct EventSettlement {
    pub event_id: Uuid,
    pub at: Timestamp,
    pub settlement: Settlement,
    pub methods: Vec<MethodSales>,
    /// None: the ticket service is away.
    pub grades: Option<Vec<GradeSales>>,
    /// Valid tickets that were given away. None: the ticket service is away.
    pub complimentary_tickets: Option<u64>,
}

impl EventSettlement {
    /// What buyers were charged less what was paid back: the same by the payments
    /// themselves as by the ledger.
    pub fn is_explained(&self) -> bool {
        let by_payments: i64 = self.methods.iter().map(|method| method.net().amount()).sum();
        Won::new(by_payments) == self.settlement.held()
    }
}

impl PaymentService {
    /// Refuses an event that is unknown or not in the scope.
    pub(crate) async fn check_event(
        &self,
        event_id: Uuid,
        scope: EventScope,
    ) -> Result<(), EventMoneyError> {
        let found = self.read(move |tx| organisers::event_organiser_find(tx, event_id)).await?;
        let organiser_id = found.ok_or(EventMoneyError::NotFound)?;
        Ok(scope.check(organiser_id)?)
    }

    /// Ledger and payments are read in one transaction, so that they are of one moment.
    pub async fn settle_event(
        &self,
        event_id: Uuid,
        scope: EventScope,
        context: &CallContext,
    ) -> Result<EventSettlement, EventMoneyError> {
        self.check_event(event_id, scope).await?;
        let read = move |tx: &mut Tx<'_>| -> DbResult<(Vec<LedgerSum>, Vec<MethodSales>)> {
            Ok((store::ledger_sum_list(tx, event_id)?, store::method_list(tx, event_id)?))
        };
        let (lines, methods) = self.read(read).await?;
        let grades = self.0.tickets.call(GetGradeSales { event_id }, context).await;
        let grades = grades
            .inspect_err(|error| tracing::warn!(%error, "a settlement is without grades"))
            .ok();
        Ok(EventSettlement {
            event_id,
            at: self.0.clock.now(),
            settlement: Settlement::new(&lines),
            methods,
            complimentary_tickets: grades.as_ref().map(|answer| answer.complimentary_tickets),
            grades: grades.map(|answer| answer.grades),
        })
    }
}
