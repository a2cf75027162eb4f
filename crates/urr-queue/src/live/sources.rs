//! What other services say about a sale, for its live board. A service that does not answer at once
//! is left out of this second.

use std::time::Duration;

use urr_contracts::clients::{ClientError, PaymentClient, StatsClient, TicketClient};
use urr_contracts::internal::payment::{GetPaymentFigures, PaymentFigures};
use urr_contracts::internal::stats::{GetSaleHistory, GetSaleTotals, SaleHistory, SaleTotals};
use urr_contracts::internal::ticket::{GetSaleBoard, SaleBoard};
use urr_kernel::{CallContext, Timestamp, Uuid};

use super::ring::SECONDS_MAX;

/// A board tells every second, with or without an answer.
const PATIENCE: Duration = Duration::from_millis(800);
const HISTORY_PATIENCE: Duration = Duration::from_secs(3);
/// The day of a board.
const MINUTES: Duration = Duration::from_hours(24);

/// The services that a board asks, without which it shows less. The ticket service is always known.
#[derive(Clone, Debug, Default)]
pub struct LiveSources {
    pub stats: Option<StatsClient>,
    pub payment: Option<PaymentClient>,
}

/// What they said. `None`: not asked, or no answer.
#[derive(Debug, Default)]
pub struct LiveAnswers {
    pub board: Option<SaleBoard>,
    pub money: Option<SaleTotals>,
    pub payments: Option<PaymentFigures>,
    /// The services that did not answer.
    pub missing: Vec<&'static str>,
}

impl LiveSources {
    /// Asks all at once. The payment service shares the database of purchases, so it is asked only
    /// now and then.
    pub async fn ask(
        &self,
        ticket: &TicketClient,
        event_id: Uuid,
        asks_payment: bool,
        context: &CallContext,
    ) -> LiveAnswers {
        let payment = self.payment.as_ref().filter(|_| asks_payment);
        let mut missing = Vec::new();
        let (board, money, payments) = tokio::join!(
            in_time(ticket.call(GetSaleBoard { event_id }, context)),
            async {
                let stats = self.stats.as_ref()?;
                Some(in_time(stats.call(GetSaleTotals { event_id }, context)).await)
            },
            async { Some(in_time(payment?.call(GetPaymentFigures { event_id }, context)).await) },
        );
        let mut note = |is_silent: bool, service| {
            if is_silent {
                missing.push(service);
            }
        };
        note(board.is_none(), "ticket");
        note(matches!(money, Some(None)), "stats");
        note(matches!(payments, Some(None)), "payment");
        LiveAnswers { board, money: money.flatten(), payments: payments.flatten(), missing }
    }

    /// What happened before somebody looked.
    pub async fn ask_history(
        &self,
        event_id: Uuid,
        now: Timestamp,
        context: &CallContext,
    ) -> Option<SaleHistory> {
        let seconds = Duration::from_secs(u64::try_from(SECONDS_MAX).expect("it is small"));
        let call =
            GetSaleHistory { event_id, seconds_since: now - seconds, minutes_since: now - MINUTES };
        let answer = self.stats.as_ref()?.call(call, context);
        tokio::time::timeout(HISTORY_PATIENCE, answer).await.ok()?.ok()
    }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, ClientError>>) -> Option<T> {
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a live board misses an answer");
            None
        }
        Err(_) => None,
    }
}
