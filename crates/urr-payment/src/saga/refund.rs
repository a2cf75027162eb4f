//! The steps of a return of money: the provider gives it back, then the ticket office is told.

use urr_kernel::{CallContext, Timestamp, TraceContext, Uuid, Won};
use urr_storage::outbox::{self, Stamp};
use urr_storage::{StorageError, Tx};

use super::drive::Next;
use crate::domain::payment::{Payment, PaymentId, Status, Step};
use crate::domain::postings::Posting;
use crate::domain::refund::{Refund, ReturnVerdict, Returns, judge_return, stands, status_after};
use crate::events::PaymentRefunded;
use crate::office::OfficeError;
use crate::provider::{Outcome, Return};
use crate::store::attempts::{self, Attempt};
use crate::store::ledger::{self, EntryOf};
use crate::store::payments::{self, From, To};
use crate::store::refunds;
use crate::{PROVIDER_GONE, Payments, SOURCE};

impl Payments {
    pub(super) async fn take_refund(&self, payment: &Payment) -> Result<Next, StorageError> {
        let id = payment.id;
        // At one moment: only what was given back by then tells which returns are done.
        let read = self.0.db.read(move |tx| {
            let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
            let refunds = refunds::refund_list(tx, id)?;
            Ok::<_, StorageError>((payment, refunds))
        });
        let (current, all) = read.await?;
        if From::of(&current) != From::of(payment) {
            return Ok(Next::Stop(current));
        }
        let Some(returns) = Returns::choose(&current, &all) else {
            // Somebody else has done the last one.
            return self.wait(&current, None).await;
        };
        match returns.is_unclear() {
            _ if returns.amount() == Won::ZERO => self.returned(&current, returns).await,
            true => self.query_return(&current, returns).await,
            false => self.send_return(&current, returns, Key::Same).await,
        }
    }

    async fn query_return(
        &self,
        payment: &Payment,
        returns: Returns,
    ) -> Result<Next, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.wait(payment, Some(PROVIDER_GONE)).await;
        };
        let find = provider.find(&payment.order_id, payment.payment_key.as_deref());
        let found = self.0.faults.around("call find return", find).await;
        let quiet = self.0.patience.nothing_believed_after;
        let key = match returns.needs_another_key(quiet, self.0.clock.now()) {
            true => Key::Another,
            false => Key::Same,
        };
        match judge_return(payment, returns.amount(), found) {
            ReturnVerdict::Returned => self.returned(payment, returns).await,
            ReturnVerdict::NotYet => self.send_return(payment, returns, key).await,
            ReturnVerdict::Wait { code } => self.wait(payment, Some(&code)).await,
        }
    }

    /// Asks the provider to give money back: first that it will be asked is committed.
    async fn send_return(
        &self,
        payment: &Payment,
        returns: Returns,
        key: Key,
    ) -> Result<Next, StorageError> {
        let Some(provider) = self.provider_of(payment) else {
            return self.wait(payment, Some(PROVIDER_GONE)).await;
        };
        let (id, chosen, now) = (payment.id, returns.clone(), self.0.clock.now());
        let attempt = Attempt {
            id: self.0.ids.next_id(),
            payment_id: id,
            refund_id: Some(returns.all()[0].id),
            action: "cancel",
        };
        let sent = self.0.db.write(move |tx| {
            let payment = payments::payment_lock(tx, id)?.expect("payments are never deleted");
            // Meanwhile somebody may have closed one of them, or asked for more.
            let current = Returns::choose(&payment, &refunds::refund_list(tx, id)?);
            if current.as_ref() != Some(&chosen) {
                return Ok(None);
            }
            note_sent(tx, &chosen, key, now)?;
            attempts::attempt_insert(tx, &attempt, now)?;
            let sent = Returns::choose(&payment, &refunds::refund_list(tx, id)?);
            let sent = sent.expect("it was sent just now");
            Ok::<_, StorageError>(Some((return_of(&payment, &sent), sent)))
        });
        let Some((what, returns)) = self.0.faults.around("return sent", sent).await? else {
            return self.wait(payment, None).await;
        };
        match self.0.faults.around("call cancel", provider.cancel(&what)).await {
            Outcome::Done(_) => self.returned(payment, returns).await,
            Outcome::Unsent { code } | Outcome::Unknown { code } => {
                let told = code.clone();
                self.wait_with(payment, "return unclear", Some(&code), move |tx| {
                    let mut all = returns.all().iter();
                    all.try_for_each(|refund| refunds::refund_unclear(tx, refund.id, &told))
                })
                .await
            }
            Outcome::Declined { code } => self.declined(payment, returns, code).await,
        }
    }

    /// The provider will not give it back now. It is owed all the same: somebody has to look, and
    /// we keep trying.
    async fn declined(
        &self,
        payment: &Payment,
        returns: Returns,
        code: String,
    ) -> Result<Next, StorageError> {
        self.0.figures.count_alarm("REFUND_DECLINED");
        let (order, amount) = (&payment.order_id, returns.amount());
        tracing::error!(order, %amount, code, "the provider does not give money back");
        let (id, now, told) = (payment.id, self.0.clock.now(), code.clone());
        self.wait_with(payment, "return declined", Some(&code), move |tx| {
            attempts::attempts_finish(tx, id, "declined", Some(&told), now)?;
            let mut all = returns.all().iter();
            all.try_for_each(|refund| refunds::refund_decline(tx, refund.id, &told))
        })
        .await
    }

    /// The money is back: books, news and state in one transaction.
    async fn returned(&self, payment: &Payment, returns: Returns) -> Result<Next, StorageError> {
        let (id, now) = (payment.id, self.0.clock.now());
        let stamps: Vec<(Uuid, Stamp)> = returns
            .all()
            .iter()
            .map(|refund| (self.0.ids.next_id(), self.refund_stamp(refund)))
            .collect();
        let to = self.claimed(Status::Refunding, Some(Step::Refund));
        let returned = self.0.db.write(move |tx| {
            let payment = payments::payment_lock(tx, id)?.expect("payments are never deleted");
            attempts::attempts_finish(tx, id, "done", None, now)?;
            let mut is_new = false;
            for (refund, (entry_id, stamp)) in returns.all().iter().zip(&stamps) {
                if refunds::refund_done(tx, refund.id, now)? {
                    is_new = true;
                    let refund_id = Some(refund.id);
                    let of = EntryOf { id: *entry_id, payment_id: id, refund_id, now };
                    note_return(tx, refund, of, stamp)?;
                }
            }
            if is_new {
                move_on(tx, &payment, to)?;
            }
            let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
            Ok::<_, StorageError>(if is_new { Next::Go(payment) } else { Next::Stop(payment) })
        });
        let next = self.0.faults.around("returned", returned).await?;
        if let Next::Go(payment) = &next {
            self.0.figures.count_moved(payment);
        }
        Ok(next)
    }

    /// The envelope of the news that a return is done.
    pub(super) fn refund_stamp(&self, refund: &Refund) -> Stamp {
        let context = CallContext {
            correlation_id: refund.correlation_id,
            causation_id: refund.causation_id,
            trace: TraceContext::root(refund.correlation_id),
        };
        let (event_id, time) = (self.0.ids.next_id(), self.0.clock.now());
        Stamp { event_id, source: SOURCE, time, context }
    }

    pub(super) async fn take_tell(&self, payment: &Payment) -> Result<Next, StorageError> {
        let id = payment.id;
        let untold: Vec<Refund> = self.0.db.read(move |tx| refunds::refund_untold(tx, id)).await?;
        for refund in &untold {
            let told = match refund.office_amount {
                Some(asked) => {
                    let call = self.0.office.refunded(payment, asked, refund.amount);
                    self.0.faults.around("call refunded", call).await
                }
                None if refund.cause.leaves_a_hold() => {
                    let call = self.0.office.unpin(payment);
                    self.0.faults.around("call unpin returned", call).await
                }
                None => continue,
            };
            match told {
                Ok(_) => {}
                Err(OfficeError::Silent(_)) => return self.wait(payment, None).await,
                Err(OfficeError::Refused { code, .. }) => {
                    let order = &payment.order_id;
                    tracing::warn!(order, code, "the ticket office does not want to know");
                }
            }
        }
        let now = self.0.clock.now();
        self.go(payment, "told", (payment.status, None), move |tx| {
            refunds::refunds_told(tx, id, now)
        })
        .await
    }
}

/// By which key the provider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Same,
    Another,
}

fn note_sent(
    tx: &mut Tx<'_>,
    returns: &Returns,
    key: Key,
    now: Timestamp,
) -> Result<(), StorageError> {
    for refund in returns.all() {
        if key == Key::Another {
            refunds::refund_renew(tx, refund.id)?;
        }
        refunds::refund_sent(tx, refund.id, now)?;
    }
    Ok(())
}

fn note_return(
    tx: &mut Tx<'_>,
    refund: &Refund,
    of: EntryOf,
    stamp: &Stamp,
) -> Result<(), StorageError> {
    announce(tx, refund, stamp, of.now)?;
    payments::refunded_add(tx, refund.payment_id, refund.amount)?;
    if refund.amount != Won::ZERO {
        ledger::entry_insert(tx, of, &Posting::refund(refund.amount))?;
    }
    Ok(())
}

/// Tells that the money is back, before that is written down. Of a charge that nobody was told of,
/// nobody is told that it is undone.
pub(super) fn announce(
    tx: &mut Tx<'_>,
    refund: &Refund,
    stamp: &Stamp,
    now: Timestamp,
) -> Result<(), StorageError> {
    let payment = payments::payment_find(tx, refund.payment_id)?;
    let payment = payment.expect("payments are never deleted");
    match payment.confirmed_event_id {
        Some(_) => outbox::append(tx, stamp, &PaymentRefunded::of(&payment, refund, now)),
        None => Ok(()),
    }
}

/// Moves a payment to what is left to do now that something of it has come to its end.
pub(super) fn move_on(tx: &mut Tx<'_>, payment: &Payment, to: To) -> Result<(), StorageError> {
    let (status, step) = state_after(tx, payment.id)?;
    payments::payment_move(tx, From::of(payment), To { status, step, ..to })?;
    Ok(())
}

fn state_after(tx: &mut Tx<'_>, id: PaymentId) -> Result<(Status, Option<Step>), StorageError> {
    let payment = payments::payment_find(tx, id)?.expect("payments are never deleted");
    let all = refunds::refund_list(tx, id)?;
    match all.iter().any(|refund| refund.status.is_open()) {
        true => Ok((returning(&all), Some(Step::Refund))),
        false => Ok((status_after(&payment, &all), Some(Step::Tell))),
    }
}

/// The state of a payment of which something is on its way back. While what was paid for stays the
/// buyer's, so does the payment: nobody else may pay for it (M-11).
pub(super) fn returning(refunds: &[Refund]) -> Status {
    match stands(refunds) {
        true => Status::Confirmed,
        false => Status::Refunding,
    }
}

fn return_of(payment: &Payment, returns: &Returns) -> Return {
    Return {
        order_id: payment.order_id.clone(),
        payment_key: payment.payment_key.clone().expect("it was charged by a key"),
        amount: returns.amount(),
        remaining: payment.remaining(),
        reason: returns.sentence(payment.cancel_reason.as_deref()),
        idempotency_key: returns.key(),
    }
}
