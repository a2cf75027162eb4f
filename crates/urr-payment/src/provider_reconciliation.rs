//! Our books beside the provider's, in both directions (P8).
//!
//! What the provider has taken and we have given up is looked at again; what nobody can explain is
//! named. Whatever has a step left explains itself.

use std::collections::HashSet;
use std::fmt;

use futures_util::{StreamExt, stream};
use urr_kernel::{Timestamp, Won};
use urr_storage::{StorageError, Tx};

use crate::PaymentService;
use crate::domain::payment::{Payment, PaymentStatus, SagaStep};
use crate::provider::{
    ListedOrder, ListedState, ProviderClient, ProviderListing, ProviderLookup, ProviderPayment,
    ProviderState,
};
use crate::store::payments::{self, TransitionFrom, TransitionTo};

/// So many are read in one transaction.
const COMPARED_AT_ONCE: usize = 200;
/// So many orders are asked for at once.
const ASKED_AT_ONCE: usize = 8;
/// So many differences are looked at once more; that many are no accident of time.
const LOOKED_AT_AGAIN_MAX: usize = 100;

/// What one look at a provider's list has brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Payments of the provider that were compared with ours.
    pub compared: usize,
    /// Orders that were given up and are looked at again.
    pub reopened: Vec<String>,
    /// Empty if all is well.
    pub differences: Vec<ProviderDifference>,
    /// Providers that did not say everything.
    pub silent: Vec<&'static str>,
}

/// Where the provider's books and ours differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderDifference {
    /// Money for an order that we have never made.
    UnknownOrder { order_id: String, amount: Won },
    /// We say that it is paid, and the provider does not know of it.
    MissingAtProvider { order_id: String, amount: Won },
    /// Both know of it, and not the same: what was taken and what went back.
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
                "order {order_id}: the provider has taken {amount}, and we have never made it"
            ),
            ProviderDifference::MissingAtProvider { order_id, amount } => write!(
                f,
                "order {order_id}: we have {amount} as taken, and the provider does not know of it"
            ),
            ProviderDifference::Amounts { order_id, ours, theirs } => write!(
                f,
                "order {order_id}: taken and given back were {} and {} by our books, {} and {} by \
                 the provider's",
                ours.0, ours.1, theirs.0, theirs.1
            ),
        }
    }
}

/// What to do about a payment of the provider's list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListedOrderFinding {
    Agrees,
    /// We have given it up, and the provider has it like this.
    Reopen(ProviderPayment),
    Differs(ProviderDifference),
}

fn judge(ours: Option<&Payment>, theirs: &ProviderPayment) -> ListedOrderFinding {
    let taken = match theirs.state {
        ProviderState::Paid | ProviderState::Refunded => theirs.amount,
        ProviderState::Open | ProviderState::Deposit | ProviderState::Dead => Won::ZERO,
    };
    let order_id = theirs.order_id.clone();
    let Some(ours) = ours else {
        return match taken {
            Won::ZERO => ListedOrderFinding::Agrees,
            amount => {
                ListedOrderFinding::Differs(ProviderDifference::UnknownOrder { order_id, amount })
            }
        };
    };
    let (our_sum, their_sum) = ((ours.charged, ours.refunded), (taken, theirs.refunded));
    let is_abandoned = matches!(ours.status, PaymentStatus::Failed | PaymentStatus::Pending);
    match ours.is_settled() {
        false => ListedOrderFinding::Agrees,
        true if our_sum == their_sum => ListedOrderFinding::Agrees,
        // All of it is back already, by somebody else's hand.
        true if is_abandoned && theirs.state == ProviderState::Refunded => {
            ListedOrderFinding::Agrees
        }
        true if is_abandoned && theirs.state == ProviderState::Paid => {
            ListedOrderFinding::Reopen(theirs.clone())
        }
        true => ListedOrderFinding::Differs(ProviderDifference::Amounts {
            order_id,
            ours: our_sum,
            theirs: their_sum,
        }),
    }
}

/// What a provider's list tells of an order.
enum ListedOrderCheck {
    ListedOrderFinding(ListedOrderFinding),
    /// The provider has to be asked how it stands.
    Ask {
        payment_key: Option<String>,
    },
}

fn judge_listed(ours: Option<&Payment>, listed: &ListedOrder) -> ListedOrderCheck {
    let is_charged =
        |ours: &Payment, amount: Won| (ours.charged, ours.refunded) == (amount, Won::ZERO);
    match (&listed.state, ours) {
        (ListedState::Known(theirs), ours) => {
            ListedOrderCheck::ListedOrderFinding(judge(ours, theirs))
        }
        (_, Some(ours)) if !ours.is_settled() => {
            ListedOrderCheck::ListedOrderFinding(ListedOrderFinding::Agrees)
        }
        (ListedState::Charged(amount), Some(ours)) if is_charged(ours, *amount) => {
            ListedOrderCheck::ListedOrderFinding(ListedOrderFinding::Agrees)
        }
        (_, ours) => {
            ListedOrderCheck::Ask { payment_key: ours.and_then(|ours| ours.payment_key.clone()) }
        }
    }
}

/// From when on and before when money moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRange {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl PaymentService {
    /// Compares everything that moved in a span of time. What a silent provider has to say is
    /// missing, and nothing else.
    pub async fn reconcile(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Reconciliation, StorageError> {
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
    ) -> Result<Reconciliation, StorageError> {
        let listed = match provider.list(span.from, span.to).await {
            ProviderListing::Orders(listed) => listed,
            ProviderListing::Unknown { code } => {
                tracing::warn!(provider = provider.name(), code, "no list to compare with");
                let silent = vec![provider.name()];
                return Ok(Reconciliation { silent, ..Reconciliation::default() });
            }
        };
        self.compare(provider, listed, span).await
    }

    async fn compare(
        &self,
        provider: &ProviderClient,
        listed: Vec<ListedOrder>,
        span: TimeRange,
    ) -> Result<Reconciliation, StorageError> {
        let name = provider.name();
        let mut found = Reconciliation { compared: listed.len(), ..Reconciliation::default() };
        let known: HashSet<String> = listed.iter().map(|order| order.order_id.clone()).collect();
        let mut suspects = Vec::new();
        for chunk in listed.chunks(COMPARED_AT_ONCE) {
            let judged = self.judge_all(name, chunk.to_vec()).await?;
            let asked = judged.into_iter().map(|(order, told)| self.ask(provider, order, told));
            let mut asked = stream::iter(asked).buffer_unordered(ASKED_AT_ONCE);
            while let Some(answer) = asked.next().await {
                match answer? {
                    Some(ListedOrderFinding::Agrees) => {}
                    Some(ListedOrderFinding::Differs(difference)) => suspects.push(difference),
                    Some(ListedOrderFinding::Reopen(theirs)) => {
                        if self.reopen(&theirs).await? {
                            found.reopened.push(theirs.order_id);
                        }
                    }
                    None => found.silent = vec![name],
                }
            }
        }
        let TimeRange { from, to } = span;
        let ours = self.0.db.read(move |tx| payments::payments_charged(tx, name, from, to)).await?;
        let missing = ours.into_iter().filter(|(order_id, _)| !known.contains(order_id));
        suspects.extend(
            missing.map(|(order_id, amount)| ProviderDifference::MissingAtProvider {
                order_id,
                amount,
            }),
        );
        found.differences = self.recheck(provider, suspects).await?;
        Ok(found)
    }

    /// How an order of the list stands. None: the provider does not say.
    async fn ask(
        &self,
        provider: &ProviderClient,
        order: ListedOrder,
        told: ListedOrderCheck,
    ) -> Result<Option<ListedOrderFinding>, StorageError> {
        let payment_key = match told {
            ListedOrderCheck::ListedOrderFinding(finding) => return Ok(Some(finding)),
            ListedOrderCheck::Ask { payment_key } => payment_key,
        };
        let found = provider.find_for_reconciliation(&order.order_id, payment_key.as_deref()).await;
        match found {
            ProviderLookup::Payment(theirs) => {
                let ours = self.find_order(&order.order_id).await?;
                let ours = ours.filter(|payment| payment.provider == provider.name());
                Ok(Some(judge(ours.as_ref(), &theirs)))
            }
            ProviderLookup::NotFound => Ok(None),
            ProviderLookup::Unknown { code } => {
                tracing::warn!(order = order.order_id, code, "the provider does not say");
                Ok(None)
            }
        }
    }

    /// Their list and our books are not read at one moment, and a list may lag behind: what differs
    /// is asked for by its order after a while, and named only if it has not moved meanwhile.
    async fn recheck(
        &self,
        provider: &ProviderClient,
        suspects: Vec<ProviderDifference>,
    ) -> Result<Vec<ProviderDifference>, StorageError> {
        if suspects.is_empty() {
            return Ok(suspects);
        }
        tokio::time::sleep(self.0.settings.recheck_after).await;
        let mut named = Vec::new();
        for (number, suspect) in suspects.into_iter().enumerate() {
            match number < LOOKED_AT_AGAIN_MAX {
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
    ) -> Result<Option<ProviderDifference>, StorageError> {
        let order_id = found.order_id();
        let before = self.find_order(order_id).await?;
        let key = before.as_ref().and_then(|payment| payment.payment_key.as_deref());
        let theirs = provider.find_for_reconciliation(order_id, key).await;
        let after = self.find_order(order_id).await?;
        Ok(match theirs {
            _ if before != after => None,
            ProviderLookup::Payment(theirs) => match judge(after.as_ref(), &theirs) {
                ListedOrderFinding::Differs(difference) => Some(difference),
                ListedOrderFinding::Agrees | ListedOrderFinding::Reopen(_) => None,
            },
            // Nothing there, and nothing here.
            ProviderLookup::NotFound if after.is_none_or(|ours| ours.charged == Won::ZERO) => None,
            ProviderLookup::NotFound | ProviderLookup::Unknown { .. } => Some(found),
        })
    }

    /// Looks once more at an order on which the books differed. None: they agree now.
    pub(crate) async fn recheck_order(
        &self,
        provider: &ProviderClient,
        order_id: &str,
    ) -> Result<Option<ProviderDifference>, StorageError> {
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

    async fn judge_all(
        &self,
        provider: &'static str,
        listed: Vec<ListedOrder>,
    ) -> Result<Vec<(ListedOrder, ListedOrderCheck)>, StorageError> {
        let judged = self.0.db.read(move |tx| {
            let judge_one = |listed: &ListedOrder| {
                let ours = payments::payment_find_by_order(tx, &listed.order_id)?;
                let ours = ours.filter(|payment| payment.provider == provider);
                Ok((listed.clone(), judge_listed(ours.as_ref(), listed)))
            };
            listed.iter().map(judge_one).collect::<Result<Vec<_>, StorageError>>()
        });
        judged.await
    }

    /// False: in the meantime there is nothing to be looked at any more.
    async fn reopen(&self, theirs: &ProviderPayment) -> Result<bool, StorageError> {
        let (theirs, now) = (theirs.clone(), self.0.clock.now());
        self.commit("reopened", move |tx| {
            let ours = payments::payment_lock_by_order(tx, &theirs.order_id)?;
            let is_abandoned = |ours: &Payment| {
                matches!(judge(Some(ours), &theirs), ListedOrderFinding::Reopen(_))
            };
            match ours.filter(is_abandoned) {
                Some(ours) => payment_reopen(tx, &ours, now, now).map(|()| true),
                None => Ok(false),
            }
        })
        .await
    }
}

/// The provider may have charged after all: it is asked, and then there is a ticket or a refund.
pub(crate) fn payment_reopen(
    tx: &mut Tx<'_>,
    payment: &Payment,
    attempt_at: Timestamp,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (status, step) = (PaymentStatus::Failed, Some(SagaStep::Query));
    let to = TransitionTo { status, step, claimed_until: None, attempt_at, now };
    payments::payment_transition(tx, TransitionFrom::of(payment), to).map(|_| ())
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
        }
    }

    #[test]
    fn what_differs_is_named_and_what_was_given_up_is_looked_at_again() {
        use ProviderState::{Open, Paid, Refunded};
        let charged =
            |status, step| Payment { charged: Won::new(100_000), ..payment(status, step) };
        let word =
            |ours: Option<Payment>, theirs: &ProviderPayment| match judge(ours.as_ref(), theirs) {
                ListedOrderFinding::Agrees => "agrees",
                ListedOrderFinding::Reopen(_) => "reopen",
                ListedOrderFinding::Differs(ProviderDifference::UnknownOrder { .. }) => "unknown",
                ListedOrderFinding::Differs(ProviderDifference::Amounts { .. }) => "amounts",
                ListedOrderFinding::Differs(ProviderDifference::MissingAtProvider { .. }) => {
                    "missing"
                }
            };
        let (paid, open) = (theirs(Paid, 0), theirs(Open, 0));
        assert_eq!(word(None, &paid), "unknown");
        assert_eq!(word(None, &open), "agrees");
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
            matches!(judge_listed(ours.as_ref(), &listed), ListedOrderCheck::Ask { .. })
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
