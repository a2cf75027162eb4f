//! Query plans: the frequent statements use an index, on both engines.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, Value};
use urr_test::engines::{Database, Engine, block_on};

use super::ledger::{EntryMark, LedgerRange};
use super::payments::{PaymentFilter, page_sql};
use super::transitions::ResolverLane;
use super::{ledger, payments, provider_calls, transitions, webhooks};
use crate::SCHEMA;
use crate::domain::payment::PaymentStatus;

const ROWS: i64 = 1_000;

struct IndexedQuery {
    sql: String,
    values: Vec<Value<'static>>,
    index: &'static str,
}

fn asked(sql: impl Into<String>, values: Vec<Value<'static>>, index: &'static str) -> IndexedQuery {
    IndexedQuery { sql: sql.into(), values, index }
}

fn hot(now: Timestamp) -> Vec<IndexedQuery> {
    let (id, other) = (Value::Uuid(Uuid::from_u128(7)), Value::Uuid(Uuid::from_u128(8)));
    let (time, ten) = (Value::Time(now), Value::Int(10));
    let text = |text| Value::Text(text);
    let mark = EntryMark { at: now, id: Uuid::nil() };
    let written = LedgerRange::Entries { after: mark, until: mark };
    let some = LedgerRange::Payments { after: Uuid::nil(), until: Uuid::from_u128(20) };
    let between = vec![id.clone(), other];
    let marks = vec![time.clone(), id.clone(), time.clone(), id.clone()];
    let by_status =
        PaymentFilter { status: Some(PaymentStatus::Unknown), ..PaymentFilter::default() };
    let (unknown, _) = by_status.conditions();
    vec![
        asked(
            ResolverLane::Purchases.due(),
            vec![time.clone(), ten.clone()],
            "payments_purchases_due",
        ),
        asked(ResolverLane::Refunds.due(), vec![time.clone(), ten.clone()], "payments_refunds_due"),
        asked(transitions::STUCK, vec![time.clone()], "payments_stuck_since"),
        asked(
            payments::CHARGED,
            vec![text("toss"), time.clone(), time.clone()],
            "payments_of_provider",
        ),
        asked(
            page_sql(&unknown, 1),
            vec![text("unknown"), ten.clone(), Value::Int(0)],
            "payments_of_status",
        ),
        asked(ledger::ENTRY_EXISTS, vec![id.clone(), text("charge")], "ledger_entries_by_payment"),
        asked(some.lines_sql(), between, "ledger_entries_by_payment"),
        asked(ledger::ENTRY_AFTER, vec![time.clone(), id.clone(), ten], "ledger_entries_by_time"),
        asked(written.lines_sql(), marks, "ledger_entries_by_time"),
        asked(
            provider_calls::FINISH,
            vec![id, time.clone(), text("done"), Value::Null],
            "provider_calls_of_payment",
        ),
        asked(webhooks::COUNT, vec![text("ORD_1"), time], "webhooks_of_order"),
    ]
}

/// Rows as they are after a while: nearly all have come to their end.
fn fill(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), StorageError> {
    for number in 0..ROWS {
        let id = Uuid::from_u128(u128::try_from(number).expect("not below zero"));
        let (step, status) = match number % 100 {
            0 => (Some("deliver"), "unknown"),
            1 => (Some("refund"), "refunding"),
            _ => (None, "refunded"),
        };
        let order = format!("ORD_{number}");
        let step = step.map_or(Value::Null, Value::Text);
        tx.execute(
            "insert into payments (id, order_id, user_id, payable_kind, payable_id, order_name, \
             amount, booking_fee, currency, provider, payment_key, status, step, next_attempt_at, \
             attempts, charged_amount, refunded_amount, correlation_id, approved_at, created_at, \
             updated_at) values ($1, $2, $1, 'reservation', $1, 'x', 1, 0, 'KRW', 'toss', $2, \
             $3, $4, $5, 0, 1, 0, $1, $5, $5, $5)",
            &[Value::Uuid(id), Value::Text(&order), Value::Text(status), step, Value::Time(now)],
        )?;
        tx.execute(
            "insert into ledger_entries (id, at, payment_id, kind) values ($1, $2, $1, 'charge')",
            &[Value::Uuid(id), Value::Time(now)],
        )?;
        tx.execute(
            "insert into ledger_lines (entry_id, account, amount) values ($1, 'provider', 1)",
            &[Value::Uuid(id)],
        )?;
        tx.execute(
            "insert into provider_calls (id, payment_id, action, started_at) \
             values ($1, $1, 'confirm', $2)",
            &[Value::Uuid(id), Value::Time(now)],
        )?;
        tx.execute(
            "insert into webhooks (provider, message_id, received_at, order_id) \
             values ('toss', $1, $2, $1)",
            &[Value::Text(&order), Value::Time(now)],
        )?;
    }
    tx.execute("analyze", &[])?;
    Ok(())
}

fn plan(tx: &mut Tx<'_>, asked: &IndexedQuery) -> Result<String, StorageError> {
    let (word, column) = match tx.is_postgres() {
        true => ("explain", "QUERY PLAN"),
        false => ("explain query plan", "detail"),
    };
    let sql = format!("{word} {}", asked.sql);
    let lines = tx.query(&sql, &asked.values, |row| row.get::<String>(column))?;
    Ok(lines.join("\n"))
}

fn check(engine: Engine) {
    let now: Timestamp = "2026-12-01T12:00:00Z".parse().unwrap();
    let Some(database) = Database::open(engine, &SCHEMA, now) else { return };
    block_on(async {
        let filled: Result<(), StorageError> = database.db.write(move |tx| fill(tx, now)).await;
        filled.unwrap();
        let read = move |tx: &mut Tx<'_>| {
            if tx.is_postgres() {
                // So few rows are read in their order, unless there is no other way.
                tx.execute("set local enable_seqscan = off", &[])?;
            }
            hot(now).iter().map(|asked| plan(tx, asked)).collect()
        };
        let plans: Result<Vec<String>, StorageError> = database.db.read(read).await;
        for (asked, plan) in hot(now).iter().zip(plans.unwrap()) {
            let IndexedQuery { sql, index, .. } = asked;
            assert!(plan.contains(index), "{sql}\nwants {index}:\n{plan}");
            let is_scanned = plan.contains("Seq Scan") || plan.contains("SCAN ");
            assert!(!is_scanned, "{sql}\n{plan}");
        }
    });
}

#[test]
fn what_is_asked_often_has_its_index_on_sqlite() {
    check(Engine::Sqlite);
}

#[test]
fn what_is_asked_often_has_its_index_on_postgres() {
    check(Engine::Postgres);
}
