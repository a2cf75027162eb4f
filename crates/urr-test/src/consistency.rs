//! Compares the tables of services: reservations, payments, the sandbox provider and the statistics
//! agree in the end, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use urr_kernel::Uuid;
use urr_storage::{Db, Row, StorageError, Tx, from_row, outbox};

/// The databases whose tables have to agree. They are only read.
pub struct ServiceTables {
    pub ticket: Db,
    pub payment: Db,
    pub stats: Db,
}

/// A reservation in the ticket service.
#[derive(Clone, Debug)]
pub struct ReservationRow {
    pub status: String,
    pub payment_status: String,
    pub quantity: i64,
    pub total_amount: i64,
    pub refund_amount: Option<i64>,
    /// What was kept of tickets that were cancelled one by one.
    pub cancelled_fee: i64,
    pub payment_id: Option<Uuid>,
    pub is_pinned: bool,
    pub valid_tickets: i64,
}

/// A payment in our tables and at the provider.
#[derive(Clone, Debug)]
pub struct PaymentRow {
    /// `reservation`, `transfer` or `membership`, and which.
    pub kind: String,
    pub payable_id: Uuid,
    pub order_id: String,
    /// The test card.
    pub card: Option<String>,
    pub status: String,
    pub step: Option<String>,
    pub amount: i64,
    /// Charged and refunded in our tables.
    pub ours: (i64, i64),
    /// Charged and refunded at the provider.
    pub theirs: (i64, i64),
    pub is_announced: bool,
}

/// Sums of the statistics, counted or expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsTotals {
    pub created: i64,
    pub confirmed: i64,
    pub cancelled: i64,
    pub expired: i64,
    pub places_sold: i64,
    pub charges: i64,
    pub charged: i64,
    pub refunded: i64,
}

impl ServiceTables {
    /// What does not agree, in sentences.
    pub async fn differences(&self) -> Vec<String> {
        self.differences_except_cards(&[]).await
    }

    /// The same, but payments with these test cards may be unfinished: the provider charged nothing,
    /// and it takes minutes until that is certain.
    pub async fn differences_except_cards(&self, cards: &[&str]) -> Vec<String> {
        let (reserved, paid) = (self.reservations().await, self.payments().await);
        let is_aside = |paid: &PaymentRow| {
            let is_of = |card: &&str| paid.card.as_deref() == Some(*card);
            paid.step.is_some() && paid.theirs == (0, 0) && cards.iter().any(is_of)
        };
        let aside: BTreeSet<Uuid> =
            paid.values().filter(|paid| is_aside(paid)).map(|paid| paid.payable_id).collect();
        let mut found = Vec::new();
        for (id, payment) in paid.iter().filter(|(_, paid)| !is_aside(paid)) {
            check_payment(*id, payment, &reserved, &mut found);
        }
        for (id, reservation) in &reserved {
            if aside.contains(id) && reservation.valid_tickets == 0 {
                continue;
            }
            check_reservation(*id, reservation, &paid, &mut found);
        }
        self.check_ledger(&paid, &mut found).await;
        let (should, counted) = (self.totals_due(&reserved, &paid), self.totals_counted().await);
        if should != counted {
            found.push(format!("counted {counted:?}, and it is {should:?}"));
        }
        for (name, db) in [("ticket", &self.ticket), ("payment", &self.payment)] {
            let waiting: Result<_, StorageError> = db.read(outbox::lag).await;
            let (waiting, _) = waiting.expect("the outbox can be read");
            if waiting != 0 {
                found.push(format!("{waiting} events of {name} are still to be sent"));
            }
        }
        found
    }

    pub async fn reservations(&self) -> BTreeMap<Uuid, ReservationRow> {
        let sql = "select id, status, payment_status, quantity::bigint as quantity, total_amount, \
                   refund_amount, cancelled_amount - cancelled_refund_amount as cancelled_fee, \
                   payment_id, pinned_by, (select count(*) from tickets \
                   where reservation_id = reservations.id and is_valid) as valid_tickets \
                   from reservations";
        let read = |row: &Row<'_>| {
            let reserved = from_row!(row => ReservationRow {
                status, payment_status, quantity, total_amount, refund_amount, cancelled_fee,
                payment_id, valid_tickets;
                is_pinned: row.get::<Option<Uuid>>("pinned_by")?.is_some(),
            });
            Ok((row.get("id")?, reserved))
        };
        rows(&self.ticket, sql, read).await.into_iter().collect()
    }

    pub async fn payments(&self) -> BTreeMap<Uuid, PaymentRow> {
        let sql = "select id, payable_kind, payable_id, order_id, payment_key, status, step, amount, \
                   charged_amount, refunded_amount, confirmed_event_id, \
                   (select coalesce(sum(charged), 0)::bigint from sandbox_payments as s \
                    where s.order_id = payments.order_id) as charged, \
                   (select coalesce(sum(refunded), 0)::bigint from sandbox_payments as s \
                    where s.order_id = payments.order_id) as refunded from payments";
        let read = |row: &Row<'_>| {
            let paid = from_row!(row => PaymentRow {
                payable_id, order_id, status, step, amount;
                kind: row.get("payable_kind")?,
                card: row.get::<Option<String>>("payment_key")?.as_deref().and_then(card_of),
                ours: (row.get("charged_amount")?, row.get("refunded_amount")?),
                theirs: (row.get("charged")?, row.get("refunded")?),
                is_announced: row.get::<Option<Uuid>>("confirmed_event_id")?.is_some(),
            });
            Ok((row.get("id")?, paid))
        };
        rows(&self.payment, sql, read).await.into_iter().collect()
    }

    async fn check_ledger(&self, paid: &BTreeMap<Uuid, PaymentRow>, found: &mut Vec<String>) {
        let sql = "select account, sum(amount)::bigint as balance from ledger_lines \
                   group by account";
        let read = |row: &Row<'_>| Ok((row.get::<String>("account")?, row.get::<i64>("balance")?));
        let balances: BTreeMap<String, i64> =
            rows(&self.payment, sql, read).await.into_iter().collect();
        let sum: i64 = balances.values().sum();
        let at_provider: i64 = paid.values().map(|paid| paid.theirs.0 - paid.theirs.1).sum();
        let of = |account: &str| balances.get(account).copied().unwrap_or(0);
        let is_balanced = (sum, of("deposits"), of("refunds_due")) == (0, 0, 0);
        if !is_balanced || of("provider") != at_provider {
            found.push(format!("{at_provider} won at the provider, and the ledger {balances:?}"));
        }
        let foreign = "select count(*) as number from sandbox_payments where charged > 0 \
                       and order_id not in (select order_id from payments)";
        let foreign: Vec<i64> = rows(&self.payment, foreign, |row| row.get("number")).await;
        if foreign != [0] {
            found.push(format!("{foreign:?} payments at the provider without an order"));
        }
    }

    fn totals_due(
        &self,
        reserved: &BTreeMap<Uuid, ReservationRow>,
        paid: &BTreeMap<Uuid, PaymentRow>,
    ) -> StatsTotals {
        let count = |is_so: &dyn Fn(&ReservationRow) -> bool| {
            i64::try_from(reserved.values().filter(|one| is_so(one)).count()).unwrap_or(i64::MAX)
        };
        let announced: Vec<&PaymentRow> = paid.values().filter(|paid| paid.is_announced).collect();
        let sold = reserved.values().filter(|one| one.status == "confirmed");
        StatsTotals {
            created: count(&|_| true),
            confirmed: count(&|one| one.payment_id.is_some()),
            cancelled: count(&|one| one.status == "cancelled"),
            expired: count(&|one| one.status == "expired"),
            places_sold: sold.map(|one| one.quantity).sum(),
            charges: i64::try_from(announced.len()).unwrap_or(i64::MAX),
            charged: announced.iter().map(|paid| paid.ours.0).sum(),
            refunded: announced.iter().map(|paid| paid.ours.1).sum(),
        }
    }

    async fn totals_counted(&self) -> StatsTotals {
        let names = ["created", "confirmed", "cancelled", "expired", "places_sold"];
        let names = [&names[..], &["charges", "charged", "refunded"]].concat();
        let sums = names.iter().map(|name| format!("coalesce(sum({name}), 0)::bigint as {name}"));
        let sums = sums.collect::<Vec<String>>().join(", ");
        let read = |row: &Row<'_>| {
            Ok(from_row!(row => StatsTotals {
                created, confirmed, cancelled, expired, places_sold, charges, charged, refunded
            }))
        };
        let sql = format!("select {sums} from hour_counters");
        rows(&self.stats, &sql, read).await.into_iter().next().expect("sums are one row")
    }
}

/// The card within a key of the sandbox: `sandbox_<card>_<id>`.
fn card_of(payment_key: &str) -> Option<String> {
    let (card, _) = payment_key.strip_prefix("sandbox_")?.split_once('_')?;
    Some(card.to_owned())
}

fn check_payment(
    id: Uuid,
    payment: &PaymentRow,
    reserved: &BTreeMap<Uuid, ReservationRow>,
    found: &mut Vec<String>,
) {
    let mut note = |what: &str| found.push(format!("{what}: {id} {payment:?}"));
    if payment.step.is_some() {
        note("a payment has not come to its end");
    }
    if payment.ours != payment.theirs {
        note("the provider has other amounts");
    }
    let is_for_ticket =
        |one: &ReservationRow| one.status == "confirmed" && one.payment_id == Some(id);
    let has_ticket = reserved.values().any(is_for_ticket);
    match payment.status.as_str() {
        // The audit of the ticket service says whether it is active.
        "confirmed" if payment.kind == "membership" => {}
        "confirmed" if !has_ticket => note("a payment without its ticket"),
        "pending" | "failed" | "refunded" if has_ticket => note("a ticket for nothing"),
        "pending" | "failed" if payment.theirs.0 != payment.theirs.1 => note("money for nothing"),
        _ => {}
    }
}

fn check_reservation(
    id: Uuid,
    reservation: &ReservationRow,
    paid: &BTreeMap<Uuid, PaymentRow>,
    found: &mut Vec<String>,
) {
    // Its first payment, and that of the buyer of a transfer.
    let is_its = |(payment_id, paid): &(&Uuid, &PaymentRow)| {
        paid.payable_id == id || reservation.payment_id == Some(**payment_id)
    };
    let payments = paid.iter().filter(is_its).map(|(_, paid)| paid);
    let kept: i64 = payments.clone().map(|paid| paid.theirs.0 - paid.theirs.1).sum();
    let standing = payments.filter(|paid| paid.theirs.0 > paid.theirs.1).count();
    let mut note = |what: &str| found.push(format!("{what}: {id} {reservation:?}, {kept} kept"));
    if reservation.is_pinned {
        note("a hold is stuck");
    }
    if standing > 1 {
        note("charged twice");
    }
    let tickets_due = if reservation.status == "confirmed" { reservation.quantity } else { 0 };
    if reservation.valid_tickets != tickets_due {
        note("tickets are missing or too many");
    }
    let of_rest = match (reservation.status.as_str(), reservation.refund_amount) {
        ("confirmed", _) => reservation.total_amount,
        (_, Some(refund)) => reservation.total_amount - refund,
        (_, None) => 0,
    };
    let kept_max = of_rest + reservation.cancelled_fee;
    if kept > kept_max || (reservation.status == "confirmed" && kept == 0) {
        note("not what the buyer owes");
    }
    let is_refunded = reservation.payment_status == "refunded";
    if reservation.refund_amount.is_some() && !is_refunded {
        note("the ticket service waits for a refund");
    }
}

async fn rows<T: Send + 'static>(
    db: &Db,
    sql: &str,
    read: impl Fn(&Row<'_>) -> Result<T, StorageError> + Send + Sync + 'static,
) -> Vec<T> {
    let sql = sql.to_owned();
    let found = db.read(move |tx: &mut Tx<'_>| tx.query(&sql, &[], &read)).await;
    found.unwrap_or_else(|error: StorageError| panic!("{error}"))
}
