//! A provider that moves no money, for the demo and for tests.
//!
//! It has two tables of its own, which nothing else refers to, and writes them in its own
//! transactions: to the rest of the service it is as remote as a real provider. The card in the
//! payment key decides what it does, so that every failure of a real provider can be reproduced.

mod store;
mod test_card;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use urr_kernel::{Clock, IdSource, Timestamp, Won};
use urr_storage::{BatchKey, Db, DbResult, StorageError};

use self::store::{CardCharge, CheckoutAgreement, SandboxOutcome};
pub use self::test_card::TestCard;
use super::{
    CALL_TIMEOUT, ChargeRequest, ProviderLookup, ProviderOutcome, ProviderPayment, RefundRequest,
    TIMEOUT, UNREACHABLE,
};

/// Clones share the tables.
#[derive(Clone)]
pub struct Sandbox {
    db: Db,
    clock: Clock,
    ids: IdSource,
    delays: SandboxDelays,
    /// The time limit of callers.
    time_limit: Duration,
    is_down: Arc<AtomicBool>,
}

/// How long slow answers take.
#[derive(Clone, Copy, Debug)]
struct SandboxDelays {
    slow: Duration,
    timeout: Duration,
}

impl Sandbox {
    /// `db` has the tables of the sandbox.
    pub fn new(db: Db, clock: Clock, ids: IdSource) -> Sandbox {
        let delays = SandboxDelays { slow: Duration::from_secs(3), timeout: CALL_TIMEOUT };
        Sandbox { db, clock, ids, delays, time_limit: CALL_TIMEOUT, is_down: Arc::default() }
    }

    /// The same with another time limit, which is also how long it is silent where an answer is lost.
    pub fn with_time_limit(self, time_limit: Duration) -> Sandbox {
        Sandbox { delays: SandboxDelays { timeout: time_limit, ..self.delays }, time_limit, ..self }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.time_limit
    }

    /// The same without delays, for tests.
    pub fn without_waiting(self) -> Sandbox {
        Sandbox { delays: SandboxDelays { slow: Duration::ZERO, timeout: Duration::ZERO }, ..self }
    }

    /// Makes the sandbox unreachable for this handle and its clones.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// The key that the checkout gives the buyer's browser: the buyer agrees to this order and amount.
    pub async fn issue_key(&self, card: TestCard, order_id: &str, amount: Won) -> DbResult<String> {
        let payment_key = format!("sandbox_{}_{}", card.as_str(), self.ids.next_id().simple());
        let agreed = CheckoutAgreement {
            payment_key: payment_key.clone(),
            order_id: order_id.to_owned(),
            amount,
            now: self.clock.now(),
        };
        self.db.write_in_set(BatchKey::named("sandbox checkout"), agreed).await?;
        Ok(payment_key)
    }

    pub async fn confirm(&self, charge: &ChargeRequest) -> ProviderOutcome<ProviderPayment> {
        if self.is_down() {
            return ProviderOutcome::Unsent { code: UNREACHABLE.to_owned() };
        }
        let Some(card) = TestCard::of_key(&charge.payment_key) else {
            return ProviderOutcome::declined("NOT_FOUND_PAYMENT");
        };
        let charge = CardCharge { charge: charge.clone(), card, now: self.clock.now() };
        let entry = self.db.write_in_set(BatchKey::named("sandbox charge"), charge).await;
        match entry {
            Ok(SandboxOutcome::Moved(payment)) => self.tell_of_charge(card, payment).await,
            entry => self.tell(entry).await,
        }
    }

    pub async fn cancel(&self, what: &RefundRequest) -> ProviderOutcome<ProviderPayment> {
        if self.is_down() {
            return ProviderOutcome::Unsent { code: UNREACHABLE.to_owned() };
        }
        let Some(card) = TestCard::of_key(&what.payment_key) else {
            return ProviderOutcome::declined("NOT_FOUND_PAYMENT");
        };
        let (what, now) = (what.clone(), self.clock.now());
        let entry = self.db.write(move |tx| store::payment_return(tx, &what, card, now)).await;
        match entry {
            Ok(SandboxOutcome::Moved(_)) if card == TestCard::RefundTimesOut => {
                self.time_out().await
            }
            entry => self.tell(entry).await,
        }
    }

    pub async fn find(&self, order_id: &str, payment_key: Option<&str>) -> ProviderLookup {
        if self.is_down() {
            return ProviderLookup::unknown(UNREACHABLE);
        }
        let (order_id, key) = (order_id.to_owned(), payment_key.map(str::to_owned));
        let found =
            self.db.read(move |tx| store::payment_find(tx, &order_id, key.as_deref())).await;
        match found {
            Ok(Some(payment)) => ProviderLookup::Payment(payment),
            Ok(None) => ProviderLookup::NotFound,
            Err(error) => ProviderLookup::unknown(storage_code(&error)),
        }
    }

    /// The payments whose money moved from `from` on and before `to`.
    pub async fn list(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<ProviderPayment>, String> {
        if self.is_down() {
            return Err(UNREACHABLE.to_owned());
        }
        let listed = self.db.read(move |tx| store::payment_list(tx, from, to)).await;
        listed.map_err(|error| storage_code(&error).to_owned())
    }

    /// Deletes checkouts of before that time that were never charged. Returns how many.
    pub(crate) async fn delete_old(&self, before: Timestamp, limit: u32) -> DbResult<u64> {
        self.db.write(move |tx| store::payments_delete_old(tx, before, limit)).await
    }

    fn is_down(&self) -> bool {
        self.is_down.load(Ordering::SeqCst)
    }

    /// The money is charged. The card decides what the caller learns about it.
    async fn tell_of_charge(
        &self,
        card: TestCard,
        payment: ProviderPayment,
    ) -> ProviderOutcome<ProviderPayment> {
        match card {
            TestCard::ChargeThenTimeOut => self.time_out().await,
            TestCard::ChargeThenFail => {
                ProviderOutcome::unknown("FAILED_INTERNAL_SYSTEM_PROCESSING")
            }
            TestCard::Duplicate => ProviderOutcome::unknown("ALREADY_PROCESSED_PAYMENT"),
            TestCard::Slow => {
                tokio::time::sleep(self.delays.slow).await;
                ProviderOutcome::Done(payment)
            }
            _ => ProviderOutcome::Done(payment),
        }
    }

    async fn tell(&self, entry: DbResult<SandboxOutcome>) -> ProviderOutcome<ProviderPayment> {
        match entry {
            Ok(SandboxOutcome::Moved(payment) | SandboxOutcome::MovedBefore(payment)) => {
                ProviderOutcome::Done(payment)
            }
            Ok(SandboxOutcome::Refused(code)) => ProviderOutcome::Declined { code },
            Ok(SandboxOutcome::Unclear(code)) => ProviderOutcome::unknown(code),
            Ok(SandboxOutcome::Lost) => self.time_out().await,
            Err(error) => ProviderOutcome::unknown(storage_code(&error)),
        }
    }

    async fn time_out(&self) -> ProviderOutcome<ProviderPayment> {
        tokio::time::sleep(self.delays.timeout).await;
        ProviderOutcome::unknown(TIMEOUT)
    }
}

/// Only the index notices two checkouts of one order at the same moment.
fn storage_code(error: &StorageError) -> &'static str {
    match error.violates("sandbox_payments_charged") {
        true => "DUPLICATED_ORDER_ID",
        false => "SANDBOX_UNAVAILABLE",
    }
}
