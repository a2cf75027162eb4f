//! Moving a SQLite file into a PostgreSQL schema: every type, every row, all or nothing.

use postgres::{Client, NoTls};
use urr_kernel::{Timestamp, Uuid};
use urr_storage::transfer::{TransferSource, TransferTarget, TransferredTable};
use urr_storage::{DbResult, Migration, Schema, StorageError, params};
use urr_test::engines::block_on;

use crate::fixture::{Form, Place, SCHEMA};

/// A file with rows in several tables, and an empty schema.
fn places() -> Option<(Place, Place)> {
    let (source, target) = (Place::new(Form::Sqlite)?, Place::new(Form::Postgres)?);
    block_on(fill(&source));
    Some((source, target))
}

async fn fill(source: &Place) {
    let db = source.open();
    let written = db.write(|tx| {
        for number in 0..50_i64 {
            let id = Uuid::from_u128(number.unsigned_abs().into());
            let at = Timestamp::from_microsecond(1_700_000_000_123_456 + number).unwrap();
            let document = serde_json::json!({"nested": {"z": number, "a": [null, "안녕"]}});
            let payload: &[u8] = &[0, 255, 7];
            tx.execute(
                "insert into samples (id, amount, small, flag, label, document, payload, made_at) \
                 values ($1, $2, $3, $4, $5, $6, $7, $8)",
                params![id, number - 20, 7_i32, number % 2 == 0, "a 'text'", document, payload, at],
            )?;
        }
        tx.execute("insert into samples (id) values ($1)", params![Uuid::max()])?;
        tx.execute("insert into events (id, title) values (1, 'first')", &[])?;
        tx.execute("insert into seats (id, event_id, number) values (1, 1, 1)", &[])?;
        for number in 0..3 {
            tx.execute(
                "insert into outbox (event_id, topic, key, body, created_at) \
                 values ($1, 't', 'k', 'b', $2)",
                params![Uuid::from_u128(number), Timestamp::UNIX_EPOCH],
            )?;
        }
        // Its number was given, and is not given again.
        tx.execute("delete from outbox where seq = 3", &[])?;
        Ok::<_, StorageError>(())
    });
    written.await.unwrap();
    db.close();
}

fn open(source: &Place) -> TransferSource {
    TransferSource::open(&source.path(), &SCHEMA).unwrap()
}

fn fill_target(target: &mut TransferTarget, source: &Place) -> DbResult<Vec<TransferredTable>> {
    target.fill(&open(source), &mut |_, _| {})
}

fn admin(place: &Place) -> Client {
    Client::connect(&place.admin_url, NoTls).unwrap()
}

fn is_unused(place: &Place) -> bool {
    let mut target = TransferTarget::begin(&place.admin_url).unwrap();
    target.is_unused(&SCHEMA, Timestamp::UNIX_EPOCH).unwrap()
}

#[test]
fn every_row_arrives_and_numbers_go_on() {
    let Some((source, place)) = places() else { return };
    assert!(is_unused(&place));
    let before = std::fs::read(source.path()).unwrap();
    let mut target = TransferTarget::begin(&place.admin_url).unwrap();
    let tables = fill_target(&mut target, &source).unwrap();
    assert!(tables.iter().all(TransferredTable::is_equal), "{tables:?}");
    let samples = tables.iter().find(|table| table.target.table == "samples").unwrap();
    assert_eq!((samples.target.rows, samples.target.amounts), (51, Some(225)));
    target.commit().unwrap();
    assert_eq!(std::fs::read(source.path()).unwrap(), before, "the source is as it was");
    assert!(!is_unused(&place));

    let mut admin = admin(&place);
    let row = admin
        .query_one(
            "select flag, label, document -> 'nested' ->> 'z', made_at = timestamptz \
             '2023-11-14 22:13:20.123458+00' from contract.samples where amount = -18",
            &[],
        )
        .unwrap();
    let found: (bool, &str, &str, bool) = (row.get(0), row.get(1), row.get(2), row.get(3));
    assert_eq!(found, (true, "a 'text'", "2", true));
    let next = admin
        .query_one(
            "insert into contract.outbox (event_id, topic, key, body, created_at) \
             values (gen_random_uuid(), 't', 'k', 'b', now()) returning seq",
            &[],
        )
        .unwrap();
    assert_eq!(next.get::<_, i64>(0), 4);
}

#[test]
fn what_is_not_committed_is_not_there() {
    let Some((source, place)) = places() else { return };
    let mut target = TransferTarget::begin(&place.admin_url).unwrap();
    fill_target(&mut target, &source).unwrap();
    drop(target);
    assert!(is_unused(&place));
}

/// Somebody changes a row on its way: the comparison finds it.
#[test]
fn a_row_that_changes_on_its_way_is_found() {
    let Some((source, place)) = places() else { return };
    admin(&place)
        .batch_execute(
            "create function contract.wrong() returns trigger language plpgsql as \
             $$ begin new.amount := new.amount + 1; return new; end $$; \
             create trigger wrong before insert on contract.samples for each row \
             when (new.amount = 5) execute function contract.wrong();",
        )
        .unwrap();
    let mut target = TransferTarget::begin(&place.admin_url).unwrap();
    let tables = fill_target(&mut target, &source).unwrap();
    let different: Vec<&TransferredTable> =
        tables.iter().filter(|table| !table.is_equal()).collect();
    let [samples] = different[..] else { panic!("{different:?}") };
    assert_eq!(samples.source.table, "samples");
    assert_eq!(samples.source.rows, samples.target.rows);
    assert_eq!((samples.source.amounts, samples.target.amounts), (Some(225), Some(226)));
}

#[test]
fn a_column_of_one_side_alone_and_an_outdated_file_are_refused() {
    const NEXT: &[Migration] = &[
        Migration { series: "service", version: 1, name: "a", sql: include_str!("schema.sql") },
        Migration {
            series: "service",
            version: 2,
            name: "b",
            sql: "create table more (id bigint primary key);",
        },
    ];
    let Some((source, place)) = places() else { return };
    let newer = Schema { name: SCHEMA.name, migrations: NEXT };
    let error = TransferSource::open(&source.path(), &newer).err().unwrap().to_string();
    assert!(error.contains("lacks migrations (service 2 (b))"), "{error}");
    admin(&place).batch_execute("alter table contract.samples add column more text").unwrap();
    let mut target = TransferTarget::begin(&place.admin_url).unwrap();
    let error = fill_target(&mut target, &source).unwrap_err().to_string();
    assert!(error.contains("samples.more is only on PostgreSQL"), "{error}");
}
