//! A provider without money, for the demo and for tests.
//!
//! It keeps durable books, in two tables that nothing of ours refers to, and writes them in its own
//! transactions: to the rest it is as far away as a real provider. The card within the payment key
//! decides what it does, so that everything that can go wrong elsewhere can be seen here.

mod books;
mod card;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use urr_kernel::{Clock, IdSource, Timestamp, Won};
use urr_storage::{Db, StorageError};

use self::books::{Agreement, Entry};
pub use self::card::Card;
use super::{CALL_TIMEOUT, Charge, Found, Outcome, ProviderPayment, Return, TIMEOUT, UNREACHABLE};

/// The sandbox. Clones share its books.
#[derive(Clone)]
pub struct Sandbox {
    db: Db,
    clock: Clock,
    ids: IdSource,
    pace: Pace,
    /// The longest that whoever asks waits for an answer.
    time_limit: Duration,
    is_down: Arc<AtomicBool>,
}

/// How long it takes its time.
#[derive(Clone, Copy, Debug)]
struct Pace {
    slow: Duration,
    timeout: Duration,
}

impl Sandbox {
    /// `db` has the tables of the sandbox.
    pub fn new(db: Db, clock: Clock, ids: IdSource) -> Sandbox {
        let pace = Pace { slow: Duration::from_secs(3), timeout: CALL_TIMEOUT };
        Sandbox { db, clock, ids, pace, time_limit: CALL_TIMEOUT, is_down: Arc::default() }
    }

    /// The same with another time limit: so long it says nothing where an answer is lost.
    pub fn with_time_limit(self, time_limit: Duration) -> Sandbox {
        Sandbox { pace: Pace { timeout: time_limit, ..self.pace }, time_limit, ..self }
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.time_limit
    }

    /// The same, but slow answers and time-outs are told at once: for tests.
    pub fn without_waiting(self) -> Sandbox {
        Sandbox { pace: Pace { slow: Duration::ZERO, timeout: Duration::ZERO }, ..self }
    }

    /// Whether it cannot be reached, for this handle and its clones.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }

    /// What the checkout gives the buyer's browser: the buyer has agreed to this order and amount.
    pub async fn issue_key(
        &self,
        card: Card,
        order_id: &str,
        amount: Won,
    ) -> Result<String, StorageError> {
        let payment_key = format!("sandbox_{}_{}", card.name(), self.ids.next_id().simple());
        let (key, order_id) = (payment_key.clone(), order_id.to_owned());
        let now = self.clock.now();
        let insert = move |tx: &mut urr_storage::Tx<'_>| {
            let agreed = Agreement { payment_key: &key, order_id: &order_id, amount };
            books::payment_insert(tx, &agreed, now)
        };
        self.db.write(insert).await?;
        Ok(payment_key)
    }

    pub async fn confirm(&self, charge: &Charge) -> Outcome<ProviderPayment> {
        if self.is_down() {
            return Outcome::Unsent { code: UNREACHABLE.to_owned() };
        }
        let Some(card) = Card::of_key(&charge.payment_key) else {
            return Outcome::declined("NOT_FOUND_PAYMENT");
        };
        let (charge, now) = (charge.clone(), self.clock.now());
        let entry = self.db.write(move |tx| books::payment_charge(tx, &charge, card, now)).await;
        match entry {
            Ok(Entry::Moved(payment)) => self.tell_of_charge(card, payment).await,
            entry => self.tell(entry).await,
        }
    }

    pub async fn cancel(&self, what: &Return) -> Outcome<ProviderPayment> {
        if self.is_down() {
            return Outcome::Unsent { code: UNREACHABLE.to_owned() };
        }
        let Some(card) = Card::of_key(&what.payment_key) else {
            return Outcome::declined("NOT_FOUND_PAYMENT");
        };
        let (what, now) = (what.clone(), self.clock.now());
        let entry = self.db.write(move |tx| books::payment_return(tx, &what, card, now)).await;
        match entry {
            Ok(Entry::Moved(_)) if card == Card::RefundTimesOut => self.time_out().await,
            entry => self.tell(entry).await,
        }
    }

    pub async fn find(&self, order_id: &str, payment_key: Option<&str>) -> Found {
        if self.is_down() {
            return Found::unknown(UNREACHABLE);
        }
        let (order_id, key) = (order_id.to_owned(), payment_key.map(str::to_owned));
        let found =
            self.db.read(move |tx| books::payment_find(tx, &order_id, key.as_deref())).await;
        match found {
            Ok(Some(payment)) => Found::Payment(payment),
            Ok(None) => Found::Nothing,
            Err(error) => Found::unknown(storage_code(&error)),
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
        let listed = self.db.read(move |tx| books::payment_list(tx, from, to)).await;
        listed.map_err(|error| storage_code(&error).to_owned())
    }

    fn is_down(&self) -> bool {
        self.is_down.load(Ordering::SeqCst)
    }

    /// The money is taken. What the caller hears of it is up to the card.
    async fn tell_of_charge(
        &self,
        card: Card,
        payment: ProviderPayment,
    ) -> Outcome<ProviderPayment> {
        match card {
            Card::ChargeThenTimeOut => self.time_out().await,
            Card::ChargeThenFail => Outcome::unknown("FAILED_INTERNAL_SYSTEM_PROCESSING"),
            Card::Duplicate => Outcome::unknown("ALREADY_PROCESSED_PAYMENT"),
            Card::Slow => {
                tokio::time::sleep(self.pace.slow).await;
                Outcome::Done(payment)
            }
            _ => Outcome::Done(payment),
        }
    }

    async fn tell(&self, entry: Result<Entry, StorageError>) -> Outcome<ProviderPayment> {
        match entry {
            Ok(Entry::Moved(payment) | Entry::MovedBefore(payment)) => Outcome::Done(payment),
            Ok(Entry::Refused(code)) => Outcome::Declined { code },
            Ok(Entry::Unclear(code)) => Outcome::unknown(code),
            Ok(Entry::Lost) => self.time_out().await,
            Err(error) => Outcome::unknown(storage_code(&error)),
        }
    }

    async fn time_out(&self) -> Outcome<ProviderPayment> {
        tokio::time::sleep(self.pace.timeout).await;
        Outcome::unknown(TIMEOUT)
    }
}

/// Two checkouts of one order at the same moment are told apart by the index alone.
fn storage_code(error: &StorageError) -> &'static str {
    match error.violates("sandbox_payments_charged") {
        true => "DUPLICATED_ORDER_ID",
        false => "SANDBOX_UNAVAILABLE",
    }
}
