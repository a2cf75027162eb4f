//! Our books beside the provider's, in both directions (P8).
//!
//! What the provider has taken and we have given up is looked at again; what nobody can explain is
//! named. Whatever has a step left explains itself.

use std::collections::HashSet;

use urr_kernel::{Timestamp, Won};
use urr_storage::{StorageError, Tx};

use crate::Payments;
use crate::domain::payment::{Payment, Status, Step};
use crate::provider::{Listed, Provider, ProviderPayment, ProviderState};
use crate::store::payments::{self, From, To};

/// So many are read in one transaction.
const COMPARED_AT_ONCE: usize = 200;

/// What one look at a provider's list has brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Payments of the provider that were compared with ours.
    pub compared: usize,
    /// Orders that were given up and are looked at again.
    pub reopened: Vec<String>,
    /// Empty if all is well.
    pub differences: Vec<Difference>,
}

/// Where the provider's books and ours differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Money for an order that we have never made.
    UnknownOrder { order_id: String, amount: Won },
    /// We say that it is paid, and the provider does not know of it.
    MissingAtProvider { order_id: String, amount: Won },
    /// Both know of it, and not the same: what was taken and what went back.
    Amounts { order_id: String, ours: (Won, Won), theirs: (Won, Won) },
}

/// What to do about a payment of the provider's list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    Agrees,
    Reopen,
    Differs(Difference),
}

fn judge(ours: Option<&Payment>, theirs: &ProviderPayment) -> Finding {
    let taken = match theirs.state {
        ProviderState::Paid | ProviderState::Returned => theirs.amount,
        ProviderState::Open | ProviderState::Dead => Won::ZERO,
    };
    let order_id = theirs.order_id.clone();
    let Some(ours) = ours else {
        return match taken {
            Won::ZERO => Finding::Agrees,
            amount => Finding::Differs(Difference::UnknownOrder { order_id, amount }),
        };
    };
    let (our_sum, their_sum) = ((ours.charged, ours.refunded), (taken, theirs.returned));
    let is_given_up = matches!(ours.status, Status::Failed | Status::Pending);
    match ours.is_at_rest() {
        false => Finding::Agrees,
        true if our_sum == their_sum => Finding::Agrees,
        // All of it is back already, by somebody else's hand.
        true if is_given_up && theirs.state == ProviderState::Returned => Finding::Agrees,
        true if is_given_up && theirs.state == ProviderState::Paid => Finding::Reopen,
        true => {
            Finding::Differs(Difference::Amounts { order_id, ours: our_sum, theirs: their_sum })
        }
    }
}

impl Payments {
    /// Compares everything that moved in a span of time. None: a provider has not answered.
    pub async fn reconcile(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Option<Reconciliation>, StorageError> {
        let mut all = Reconciliation::default();
        for provider in &self.0.providers {
            let listed = match provider.list(from, to).await {
                Listed::Payments(listed) => listed,
                Listed::Unknown { code } => {
                    tracing::warn!(provider = provider.name(), code, "no list to compare with");
                    return Ok(None);
                }
            };
            let found = self.compare(provider, listed, from, to).await?;
            all.compared += found.compared;
            all.reopened.extend(found.reopened);
            all.differences.extend(found.differences);
        }
        self.0.figures.note_reconciliation(&all);
        Ok(Some(all))
    }

    async fn compare(
        &self,
        provider: &Provider,
        listed: Vec<ProviderPayment>,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Reconciliation, StorageError> {
        let name = provider.name();
        let mut found = Reconciliation { compared: listed.len(), ..Reconciliation::default() };
        for chunk in listed.chunks(COMPARED_AT_ONCE) {
            for (theirs, finding) in self.judge_all(name, chunk.to_vec()).await? {
                match finding {
                    Finding::Agrees => {}
                    Finding::Differs(difference) => found.differences.push(difference),
                    Finding::Reopen if self.reopen(&theirs).await? => {
                        found.reopened.push(theirs.order_id);
                    }
                    Finding::Reopen => {}
                }
            }
        }
        let known: HashSet<&str> = listed.iter().map(|theirs| theirs.order_id.as_str()).collect();
        let ours = self.0.db.read(move |tx| payments::payments_charged(tx, name, from, to)).await?;
        let missing = ours.into_iter().filter(|(order_id, _)| !known.contains(order_id.as_str()));
        found.differences.extend(
            missing.map(|(order_id, amount)| Difference::MissingAtProvider { order_id, amount }),
        );
        Ok(found)
    }

    async fn judge_all(
        &self,
        provider: &'static str,
        listed: Vec<ProviderPayment>,
    ) -> Result<Vec<(ProviderPayment, Finding)>, StorageError> {
        let judged = self.0.db.read(move |tx| {
            let judge_one = |theirs: &ProviderPayment| {
                let ours = payments::payment_of_order(tx, &theirs.order_id)?;
                let ours = ours.filter(|payment| payment.provider == provider);
                Ok((theirs.clone(), judge(ours.as_ref(), theirs)))
            };
            listed.iter().map(judge_one).collect::<Result<Vec<_>, StorageError>>()
        });
        judged.await
    }

    /// False: in the meantime there is nothing to be looked at any more.
    async fn reopen(&self, theirs: &ProviderPayment) -> Result<bool, StorageError> {
        let (theirs, now) = (theirs.clone(), self.0.clock.now());
        let reopened = self.0.db.write(move |tx| {
            let ours = payments::payment_of_order_lock(tx, &theirs.order_id)?;
            match ours.filter(|ours| judge(Some(ours), &theirs) == Finding::Reopen) {
                Some(ours) => reopen(tx, &ours, now).map(|()| true),
                None => Ok(false),
            }
        });
        self.0.faults.around("reopened", reopened).await
    }
}

/// The provider may have charged after all: it is asked, and then there is a ticket or a refund.
pub(crate) fn reopen(
    tx: &mut Tx<'_>,
    payment: &Payment,
    now: Timestamp,
) -> Result<(), StorageError> {
    let (status, step) = (Status::Failed, Some(Step::Query));
    let to = To { status, step, claimed_until: None, look_at: now, now };
    payments::payment_move(tx, From::of(payment), to).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::payment::tests::payment;

    fn theirs(state: ProviderState, returned: i64) -> ProviderPayment {
        ProviderPayment {
            order_id: "ORD_1".to_owned(),
            payment_key: "key".to_owned(),
            amount: Won::new(100_000),
            currency: "KRW".to_owned(),
            state,
            returned: Won::new(returned),
            method: "card".to_owned(),
            approved_at: None,
            receipt_url: None,
        }
    }

    #[test]
    fn what_differs_is_named_and_what_was_given_up_is_looked_at_again() {
        use ProviderState::{Open, Paid, Returned};
        let charged =
            |status, step| Payment { charged: Won::new(100_000), ..payment(status, step) };
        let word =
            |ours: Option<Payment>, theirs: &ProviderPayment| match judge(ours.as_ref(), theirs) {
                Finding::Agrees => "agrees",
                Finding::Reopen => "reopen",
                Finding::Differs(Difference::UnknownOrder { .. }) => "unknown",
                Finding::Differs(Difference::Amounts { .. }) => "amounts",
                Finding::Differs(Difference::MissingAtProvider { .. }) => "missing",
            };
        let (paid, open) = (theirs(Paid, 0), theirs(Open, 0));
        assert_eq!(word(None, &paid), "unknown");
        assert_eq!(word(None, &open), "agrees");
        assert_eq!(word(Some(charged(Status::Confirmed, None)), &paid), "agrees");
        assert_eq!(word(Some(charged(Status::Confirmed, None)), &theirs(Paid, 1)), "amounts");
        assert_eq!(word(Some(charged(Status::Confirmed, None)), &open), "amounts");
        assert_eq!(word(Some(payment(Status::Failed, None)), &paid), "reopen");
        assert_eq!(word(Some(payment(Status::Pending, None)), &paid), "reopen");
        assert_eq!(word(Some(payment(Status::Failed, None)), &theirs(Returned, 100_000)), "agrees");
        assert_eq!(word(Some(payment(Status::Unknown, Some(Step::Query))), &paid), "agrees");
    }
}
