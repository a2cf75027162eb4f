//! Migrations: once, in order, never changed, by one at a time.

use urr_storage::{Migration, Schema, StorageError, migrate};

use crate::contract;
use crate::fixture::{Form, Place, SCHEMA, execute, numbers};

const fn step(version: i64, sql: &'static str) -> Migration {
    Migration { series: "service", version, name: "a step", sql }
}

fn empty_place(place: &Place) -> Place {
    Place::empty(place.form).expect("the engine that runs this test is available")
}

contract! {
    async fn a_second_run_changes_nothing(place: Place) {
        assert_eq!(place.migrate(&SCHEMA), Ok(vec![]));
        assert_eq!(numbers(&place.open()).await, [0; 0]);
    }

    async fn only_what_is_new_is_applied(place: Place) {
        const NEXT: &[Migration] = &[
            step(1, include_str!("schema.sql")),
            step(2, "alter table numbers add column made_at timestamptz;"),
        ];
        let newer = Schema { name: SCHEMA.name, migrations: NEXT };
        // The first step has another name here: the text decides, not the name.
        assert_eq!(place.migrate(&newer), Ok(vec!["service 2 (a step)".to_owned()]));
        let db = place.open();
        execute(&db, "insert into numbers (n, made_at) values (1, null)").await.unwrap();
        // An older program meets a newer database in every rolling restart.
        assert_eq!(place.migrate(&SCHEMA), Ok(vec![]));
    }

    async fn a_program_can_ask_what_is_missing(place: Place) {
        const NEXT: &[Migration] = &[
            step(1, include_str!("schema.sql")),
            step(2, "create table more (id bigint primary key);"),
        ];
        let newer = Schema { name: SCHEMA.name, migrations: NEXT };
        let db = place.open();
        let missing = db.read(move |tx| migrate::missing(tx, &newer)).await;
        assert_eq!(missing, Ok::<_, StorageError>(vec!["service 2 (a step)".to_owned()]));
        let missing = db.read(|tx| migrate::missing(tx, &SCHEMA)).await;
        assert_eq!(missing, Ok::<_, StorageError>(vec![]));
    }

    async fn a_changed_migration_is_refused(place: Place) {
        const CHANGED: &[Migration] = &[step(1, "create table other (id bigint primary key);")];
        let outcome = place.migrate(&Schema { name: SCHEMA.name, migrations: CHANGED });
        let Err(StorageError::Unsafe(reason)) = outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("was changed after it had been applied"), "{reason}");
    }

    async fn a_failing_migration_leaves_nothing_half_done(place: Place) {
        const BROKEN: &[Migration] =
            &[step(1, "create table a (id bigint primary key); create table a (id bigint);")];
        const MENDED: &[Migration] = &[step(1, "create table a (id bigint primary key);")];
        let place = empty_place(&place);
        assert!(place.migrate(&Schema { name: SCHEMA.name, migrations: BROKEN }).is_err());
        let mended = place.migrate(&Schema { name: SCHEMA.name, migrations: MENDED });
        assert!(mended.unwrap().contains(&"service 1 (a step)".to_owned()));
    }

    async fn two_programs_that_migrate_at_once_take_turns(place: Place) {
        let place = empty_place(&place);
        let applied: Vec<Vec<String>> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| place.migrate(&SCHEMA))).collect();
            runs.into_iter().map(|run| run.join().unwrap().unwrap()).collect()
        });
        assert_eq!(applied.iter().filter(|names| !names.is_empty()).count(), 1, "{applied:?}");
    }

    async fn unique_indexes_that_sqlite_could_not_tell_apart_are_refused(place: Place) {
        const TWINS: &[Migration] = &[step(1, "create table a (id bigint primary key, b bigint);
            create unique index a_one on a (b) where id > 1;
            create unique index a_two on a (b) where id < 1;")];
        let place = empty_place(&place);
        let outcome = place.migrate(&Schema { name: SCHEMA.name, migrations: TWINS });
        match place.form {
            Form::Sqlite => {
                let reason = outcome.expect_err("SQLite cannot tell them apart").to_string();
                assert!(reason.contains("a_one") && reason.contains("a_two"), "{reason}");
            }
            Form::Postgres => assert!(outcome.is_ok(), "PostgreSQL names the index: {outcome:?}"),
        }
    }
}
