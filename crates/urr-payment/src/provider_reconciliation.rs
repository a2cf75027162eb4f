//! Reconciliation with the providers, in both directions (P8).
//!
//! A payment that we gave up and the provider has charged is reopened; any other difference is
//! reported. A payment with a step left is under way and cannot differ.

use std::collections::HashSet;
use std::fmt;

use futures_util::{StreamExt, stream};
use urr_kernel::{Timestamp, Won};
use urr_storage::{DbResult, Tx};

use crate::PaymentService;
use crate::domain::payment::{Payment, PaymentStatus, SagaStep};
use crate::provider::{
    ListedOrder, ListedState, ProviderClient, ProviderListing, ProviderLookup, ProviderPayment,
    ProviderState,
};
use crate::store::payments;
use crate::store::transitions::{self, TransitionFrom, TransitionTo};

/// How many orders are compared in one transaction.
const COMPARED_AT_ONCE: usize = 200;
/// How many orders the provider is asked for at once.
const ASKED_AT_ONCE: usize = 8;
/// How many differences are checked once more; beyond that they are not a matter of timing.
const RECHECKED_MAX: usize = 100;

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Payments of the provider that were compared with ours.
    pub compared: usize,
    /// Orders that had been given up and are queried again.
    pub reopened: Vec<String>,
    /// Empty if all is well.
    pub differences: Vec<ProviderDifference>,
    /// Providers whose answer is missing or incomplete.
    pub silent: Vec<&'static str>,
}

/// Where a provider and we differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderDifference {
    /// The provider charged an order that we never created.
    UnknownOrder { order_id: String, amount: Won },
    /// We have it as charged, and the provider does not know it.
    MissingAtProvider { order_id: String, amount: Won },
    /// The amounts that were charged and refunded are not the same.
    Amounts { order_id: String, ours: (Won, Won), theirs: (Won, Won) },
}

impl ProviderDifference {
    pub fn order_id(&self) -> &str {
        match self {
            ProviderDifference::UnknownOrder { order_id, .. }
            | ProviderDifference::MissingAtProvider { order_id, .. }
            | ProviderDifference::Amounts { order_id, .. } => order_id,
        }
    }
}

impl fmt::Display for ProviderDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderDifference::UnknownOrder { order_id, amount } => write!(
                f,
                "order {order_id}: the provider has charged {amount}, and we never created it"
            ),
            ProviderDifference::MissingAtProvider { order_id, amount } => write!(
                f,
                "order {order_id}: we have {amount} as charged, and the provider does not know it"
            ),
            ProviderDifference::Amounts { order_id, ours, theirs } => write!(
                f,
                "order {order_id}: we have {} as charged and {} as refunded, the provider {} and {}",
                ours.0, ours.1, theirs.0, theirs.1
            ),
        }
    }
}

/// What follows from the comparison of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OrderFinding {
    Agrees,
    /// We have given it up, and the provider has charged.
    Reopen(ProviderPayment),
    Differs(ProviderDifference),
}

fn compare_order(ours: Option<&Payment>, theirs: &ProviderPayment) -> OrderFinding {
    let taken = match theirs.state {
        ProviderState::Paid | ProviderState::Refunded => theirs.amount,
        ProviderState::Open | ProviderState::Deposit | ProviderState::Dead => Won::ZERO,
    };
    let order_id = theirs.order_id.clone();
    let Some(ours) = ours else {
        return match taken {
            // Nobody has anything left of it.
            amount if amount == theirs.refunded => OrderFinding::Agrees,
            amount => OrderFinding::Differs(ProviderDifference::UnknownOrder { order_id, amount }),
        };
    };
    let (our_sum, their_sum) = ((ours.charged, ours.refunded), (taken, theirs.refunded));
    let is_abandoned = matches!(ours.status, PaymentStatus::Failed | PaymentStatus::Pending);
    match ours.is_settled() {
        false => OrderFinding::Agrees,
        true if our_sum == their_sum => OrderFinding::Agrees,
        // It was refunded at the provider, but not by us.
        true if is_abandoned && theirs.state == ProviderState::Refunded => OrderFinding::Agrees,
        true if is_abandoned && theirs.state == ProviderState::Paid => {
            OrderFinding::Reopen(theirs.clone())
        }
        true => OrderFinding::Differs(ProviderDifference::Amounts {
            order_id,
            ours: our_sum,
            theirs: their_sum,
        }),
    }
}

/// A charge that the next reconciliation resumes.
fn abandoned_charge(theirs: ProviderPayment) -> ProviderDifference {
    let (ours, theirs_sum) = ((Won::ZERO, Won::ZERO), (theirs.amount, theirs.refunded));
    ProviderDifference::Amounts { order_id: theirs.order_id, ours, theirs: theirs_sum }
}

/// What a provider's list says about an order.
enum ListCheck {
    OrderFinding(OrderFinding),
    /// The provider has to be asked about the order.
    Ask {
        payment_key: Option<String>,
    },
}

fn check_listed(ours: Option<&Payment>, listed: &ListedOrder) -> ListCheck {
    let is_charged =
        |ours: &Payment, amount: Won| (ours.charged, ours.refunded) == (amount, Won::ZERO);
    match (&listed.state, ours) {
        (ListedState::Known(theirs), ours) => ListCheck::OrderFinding(compare_order(ours, theirs)),
        (_, Some(ours)) if !ours.is_settled() => ListCheck::OrderFinding(OrderFinding::Agrees),
        (ListedState::Charged(amount), Some(ours)) if is_charged(ours, *amount) => {
            ListCheck::OrderFinding(OrderFinding::Agrees)
        }
        (_, ours) => ListCheck::Ask { payment_key: ours.and_then(|ours| ours.payment_key.clone()) },
    }
}

/// What is done about a payment that we gave up and the provider has charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbandonedCharges {
    Reopen,
    /// For an audit, which changes nothing.
    Report,
}

/// From a time, and before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl PaymentService {
    /// Compares everything that moved in a time range. Providers that do not answer are listed in the
    /// result.
    pub async fn reconcile(&self, from: Timestamp, to: Timestamp) -> DbResult<Reconciliation> {
        let mut all = Reconciliation::default();
        for provider in &self.0.providers {
            let found = self.reconcile_with(provider, TimeRange { from, to }).await?;
            all.compared += found.compared;
            all.reopened.extend(found.reopened);
            all.differences.extend(found.differences);
            all.silent.extend(found.silent);
        }
        Ok(all)
    }

    pub(crate) async fn reconcile_with(
        &self,
        provider: &ProviderClient,
        span: TimeRange,
    ) -> DbResult<Reconciliation> {
        self.compare_with(provider, span, AbandonedCharges::Reopen).await
    }

    pub(crate) async fn compare_with(
        &self,
        provider: &ProviderClient,
        span: TimeRange,
        abandoned: AbandonedCharges,
    ) -> DbResult<Reconciliation> {
        let listed = match provider.list(span.from, span.to).await {
            ProviderListing::Orders(listed) => listed,
            ProviderListing::Unknown { code } => {
                tracing::warn!(
                    provider = provider.name(),
                    code,
                    "the provider's payments cannot be listed"
                );
                let silent = vec![provider.name()];
                return Ok(Reconciliation { silent, ..Reconciliation::default() });
            }
        };
        self.compare_list(provider, listed, span, abandoned).await
    }

    async fn compare_list(
        &self,
        provider: &ProviderClient,
        listed: Vec<ListedOrder>,
        span: TimeRange,
        abandoned: AbandonedCharges,
    ) -> DbResult<Reconciliation> {
        let name = provider.name();
        let mut found = Reconciliation { compared: listed.len(), ..Reconciliation::default() };
        let known: HashSet<String> = listed.iter().map(|order| order.order_id.clone()).collect();
        let (mut suspects, mut reported) = (Vec::new(), Vec::new());
        for chunk in listed.chunks(COMPARED_AT_ONCE) {
            let checked = self.check_all(name, chunk.to_vec()).await?;
            let asked = checked.into_iter().map(|(order, check)| self.ask(provider, order, check));
            let mut asked = stream::iter(asked).buffer_unordered(ASKED_AT_ONCE);
            while let Some(answer) = asked.next().await {
                match answer? {
                    Some(OrderFinding::Agrees) => {}
                    Some(OrderFinding::Differs(difference)) => suspects.push(difference),
                    Some(OrderFinding::Reopen(theirs)) if abandoned == AbandonedCharges::Report => {
                        reported.push(abandoned_charge(theirs));
                    }
                    Some(OrderFinding::Reopen(theirs)) => {
                        if self.reopen(&theirs).await? {
                            found.reopened.push(theirs.order_id);
                        }
                    }
                    None => found.silent = vec![name],
                }
            }
        }
        let TimeRange { from, to } = span;
        let ours = self.read(move |tx| payments::payment_list_charged(tx, name, from, to)).await?;
        let missing = ours.into_iter().filter(|(order_id, _)| !known.contains(order_id));
        suspects.extend(
            missing.map(|(order_id, amount)| ProviderDifference::MissingAtProvider {
                order_id,
                amount,
            }),
        );
        found.differences = self.recheck(provider, suspects).await?;
        found.differences.extend(reported);
        Ok(found)
    }

    /// The finding about an order of the list. None if the provider does not answer.
    async fn ask(
        &self,
        provider: &ProviderClient,
        order: ListedOrder,
        check: ListCheck,
    ) -> DbResult<Option<OrderFinding>> {
        let payment_key = match check {
            ListCheck::OrderFinding(finding) => return Ok(Some(finding)),
            ListCheck::Ask { payment_key } => payment_key,
        };
        let found = provider.find_for_reconciliation(&order.order_id, payment_key.as_deref()).await;
        match found {
            ProviderLookup::Payment(theirs) => {
                let ours = self.find_order(&order.order_id).await?;
                let ours = ours.filter(|payment| payment.provider == provider.name());
                Ok(Some(compare_order(ours.as_ref(), &theirs)))
            }
            ProviderLookup::NotFound => Ok(None),
            ProviderLookup::Unknown { code } => {
                tracing::warn!(
                    order = order.order_id,
                    code,
                    "the provider does not answer about an order"
                );
                Ok(None)
            }
        }
    }

    /// The provider and we are not read at the same moment, and a list may lag behind. So an order that
    /// differs is checked again after a while, and reported only if it has not changed meanwhile.
    async fn recheck(
        &self,
        provider: &ProviderClient,
        suspects: Vec<ProviderDifference>,
    ) -> DbResult<Vec<ProviderDifference>> {
        if suspects.is_empty() {
            return Ok(suspects);
        }
        tokio::time::sleep(self.0.settings.recheck_after).await;
        let mut named = Vec::new();
        for (number, suspect) in suspects.into_iter().enumerate() {
            match number < RECHECKED_MAX {
                true => named.extend(self.recheck_difference(provider, suspect).await?),
                false => named.push(suspect),
            }
        }
        Ok(named)
    }

    async fn recheck_difference(
        &self,
        provider: &ProviderClient,
        found: ProviderDifference,
    ) -> DbResult<Option<ProviderDifference>> {
        let order_id = found.order_id();
        let before = self.find_order(order_id).await?;
        let key = before.as_ref().and_then(|payment| payment.payment_key.as_deref());
        let theirs = provider.find_for_reconciliation(order_id, key).await;
        let after = self.find_order(order_id).await?;
        Ok(match theirs {
            _ if before != after => None,
            ProviderLookup::Payment(theirs) => match compare_order(after.as_ref(), &theirs) {
                OrderFinding::Differs(difference) => Some(difference),
                OrderFinding::Agrees | OrderFinding::Reopen(_) => None,
            },
            // Neither side has charged anything.
            ProviderLookup::NotFound if after.is_none_or(|ours| ours.charged == Won::ZERO) => None,
            ProviderLookup::NotFound | ProviderLookup::Unknown { .. } => Some(found),
        })
    }

    /// Checks an order again that differed before. None if it agrees now.
    pub(crate) async fn recheck_order(
        &self,
        provider: &ProviderClient,
        order_id: &str,
    ) -> DbResult<Option<ProviderDifference>> {
        let ours = self.find_order(order_id).await?;
        let ours = ours.filter(|payment| payment.provider == provider.name());
        let amount = ours.as_ref().map_or(Won::ZERO, |payment| payment.charged);
        let order_id = order_id.to_owned();
        self.recheck_difference(
            provider,
            ProviderDifference::MissingAtProvider { order_id, amount },
        )
        .await
    }

    async fn check_all(
        &self,
        provider: &'static str,
        listed: Vec<ListedOrder>,
    ) -> DbResult<Vec<(ListedOrder, ListCheck)>> {
        let checked = self.read(move |tx| {
            let check_one = |listed: &ListedOrder| {
                let ours = payments::payment_find_by_order(tx, &listed.order_id)?;
                let ours = ours.filter(|payment| payment.provider == provider);
                Ok((listed.clone(), check_listed(ours.as_ref(), listed)))
            };
            listed.iter().map(check_one).collect::<DbResult<Vec<_>>>()
        });
        checked.await
    }

    /// Returns false if meanwhile there is no reason to query any more.
    async fn reopen(&self, theirs: &ProviderPayment) -> DbResult<bool> {
        let (theirs, now) = (theirs.clone(), self.0.clock.now());
        self.commit("reopened", move |tx| {
            let ours = payments::payment_lock_by_order(tx, &theirs.order_id)?;
            let is_abandoned = |ours: &Payment| {
                matches!(compare_order(Some(ours), &theirs), OrderFinding::Reopen(_))
            };
            match ours.filter(is_abandoned) {
                Some(ours) => payment_reopen(tx, &ours, now, now).map(|()| true),
                None => Ok(false),
            }
        })
        .await
    }
}

/// The provider may have charged: it is queried, which leads to a ticket or a refund.
pub(crate) fn payment_reopen(
    tx: &mut Tx<'_>,
    payment: &Payment,
    attempt_at: Timestamp,
    now: Timestamp,
) -> DbResult<()> {
    let (status, step) = (PaymentStatus::Failed, Some(SagaStep::Query));
    let to = TransitionTo { status, step, claimed_until: None, attempt_at, now };
    transitions::payment_transition(tx, TransitionFrom::of(payment), to).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::payment::tests::payment;

    fn theirs(state: ProviderState, refunded: i64) -> ProviderPayment {
        ProviderPayment {
            order_id: "ORD_1".to_owned(),
            payment_key: "key".to_owned(),
            transaction_id: None,
            amount: Won::new(100_000),
            currency: "KRW".to_owned(),
            state,
            refunded: Won::new(refunded),
            method: "card".to_owned(),
            approved_at: None,
            receipt_url: None,
            channel: crate::provider::PaymentChannel::Configured,
        }
    }

    #[test]
    fn what_differs_is_named_and_what_was_given_up_is_looked_at_again() {
        use ProviderState::{Open, Paid, Refunded};
        let charged =
            |status, step| Payment { charged: Won::new(100_000), ..payment(status, step) };
        let word = |ours: Option<Payment>, theirs: &ProviderPayment| match compare_order(
            ours.as_ref(),
            theirs,
        ) {
            OrderFinding::Agrees => "agrees",
            OrderFinding::Reopen(_) => "reopen",
            OrderFinding::Differs(ProviderDifference::UnknownOrder { .. }) => "unknown",
            OrderFinding::Differs(ProviderDifference::Amounts { .. }) => "amounts",
            OrderFinding::Differs(ProviderDifference::MissingAtProvider { .. }) => "missing",
        };
        let (paid, open) = (theirs(Paid, 0), theirs(Open, 0));
        assert_eq!(word(None, &paid), "unknown");
        assert_eq!(word(None, &open), "agrees");
        assert_eq!(word(None, &theirs(Refunded, 100_000)), "agrees");
        assert_eq!(word(None, &theirs(Paid, 1)), "unknown");
        assert_eq!(word(Some(charged(PaymentStatus::Confirmed, None)), &paid), "agrees");
        assert_eq!(
            word(Some(charged(PaymentStatus::Confirmed, None)), &theirs(Paid, 1)),
            "amounts"
        );
        assert_eq!(word(Some(charged(PaymentStatus::Confirmed, None)), &open), "amounts");
        assert_eq!(word(Some(payment(PaymentStatus::Failed, None)), &paid), "reopen");
        assert_eq!(word(Some(payment(PaymentStatus::Pending, None)), &paid), "reopen");
        assert_eq!(
            word(Some(payment(PaymentStatus::Failed, None)), &theirs(Refunded, 100_000)),
            "agrees"
        );
        assert_eq!(
            word(Some(payment(PaymentStatus::Unknown, Some(SagaStep::Query))), &paid),
            "agrees"
        );
    }

    #[test]
    fn only_what_the_list_leaves_open_or_tells_otherwise_is_asked_for() {
        let is_asked = |ours: Option<Payment>, state| {
            let listed = ListedOrder { order_id: "ORD_1".to_owned(), state };
            matches!(check_listed(ours.as_ref(), &listed), ListCheck::Ask { .. })
        };
        let charged =
            |status, step| Payment { charged: Won::new(100_000), ..payment(status, step) };
        let stands = || Some(charged(PaymentStatus::Confirmed, None));
        assert!(!is_asked(stands(), ListedState::Charged(Won::new(100_000))));
        assert!(is_asked(stands(), ListedState::Charged(Won::new(99_999))));
        assert!(is_asked(stands(), ListedState::Unclear));
        assert!(is_asked(None, ListedState::Charged(Won::new(1))));
        let back = Payment { refunded: Won::new(1), ..charged(PaymentStatus::Refunded, None) };
        assert!(is_asked(Some(back), ListedState::Charged(Won::new(100_000))));
        let moving = Some(charged(PaymentStatus::Refunding, Some(SagaStep::Refund)));
        assert!(!is_asked(moving, ListedState::Unclear), "it explains itself");
    }
}
