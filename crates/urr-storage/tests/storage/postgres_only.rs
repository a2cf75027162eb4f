//! What only PostgreSQL can do to us: other roles, lost connections, unsafe servers.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use urr_kernel::{Secret, Timestamp};
use urr_storage::{
    Db, Migration, PostgresOptions, Schema, ServiceRole, StorageError, params, provision,
};
use urr_test::servers::{self, PostgresServer, Server};

use crate::fixture::{Form, Place, SCHEMA, execute, insert_number, numbers, run, url_as};

const NEIGHBOUR: Schema = Schema {
    name: "neighbour",
    migrations: &[Migration {
        series: "service",
        version: 1,
        name: "secrets",
        sql: "create table secrets (id bigint primary key);",
    }],
};

fn admin(place: &Place, sql: &str) {
    let mut client = postgres::Client::connect(&place.admin_url, postgres::NoTls).unwrap();
    client.batch_execute(sql).unwrap();
}

/// The schema rule of the data architecture: no service reads, changes or even sees another's.
#[test]
fn a_services_role_cannot_touch_another_services_schema() {
    run(Form::Postgres, |place| async move {
        let neighbour =
            ServiceRole { name: format!("{}_n", place.role.name), password: Secret::generate() };
        let url = place.admin_url.clone();
        let role = neighbour.clone();
        tokio::task::spawn_blocking(move || {
            provision(&url, &NEIGHBOUR, &role, Timestamp::UNIX_EPOCH).unwrap();
        })
        .await
        .unwrap();
        let db = place.open();
        for sql in [
            "select count(*) as n from neighbour.secrets",
            "insert into neighbour.secrets (id) values (1)",
            "update neighbour.outbox set published_at = null",
            "delete from neighbour.inbox",
        ] {
            assert_denied(&db, sql).await;
        }
        // Control: the neighbour itself may.
        let options = PostgresOptions::new(url_as(&place.admin_url, &neighbour), NEIGHBOUR.name);
        let own = Db::open_postgres(&options).unwrap();
        assert_eq!(execute(&own, "insert into neighbour.secrets (id) values (1)").await, Ok(1));
    });
}

/// What anybody can ask for in many forms must not fill the server's memory.
#[test]
fn prepared_statements_do_not_pile_up() {
    run(Form::Postgres, |place| async move {
        let db = place.open();
        let prepared = db.write(|tx| {
            for number in 0..1_200 {
                tx.query(&format!("select {number} as n"), &[], |_| Ok(()))?;
            }
            let sql = "select count(*) as n from pg_prepared_statements";
            tx.query_one(sql, &[], |row| row.get::<i64>("n"))
        });
        let prepared: i64 = prepared.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        assert!((1..=501).contains(&prepared), "{prepared}");
    });
}

#[test]
fn a_services_role_can_change_rows_but_not_tables() {
    run(Form::Postgres, |place| async move {
        let db = place.open();
        for sql in [
            "drop table numbers",
            "alter table numbers add column x bigint",
            "truncate numbers",
            "create table mine (id bigint)",
            "create table public.mine (id bigint)",
            "create schema mine",
            "create role mine",
            "delete from schema_migrations",
        ] {
            assert_denied(&db, sql).await;
        }
        assert_eq!(execute(&db, "insert into numbers (n) values (1)").await, Ok(1));
    });
}

async fn assert_denied(db: &Db, sql: &'static str) {
    let outcome = execute(db, sql).await;
    let Err(StorageError::Statement { message, .. }) = outcome else {
        panic!("{sql}: {outcome:?}");
    };
    let denied = message.contains("42501") || message.contains("permission denied");
    assert!(denied, "{sql}: {message}");
}

#[test]
fn an_administrator_cannot_become_the_login_of_a_service() {
    let Some(place) = Place::empty(Form::Postgres) else { return };
    let admin = place.admin_url.split("//").nth(1).unwrap().split(':').next().unwrap();
    let role = ServiceRole { name: admin.to_owned(), password: Secret::generate() };
    let outcome = provision(&place.admin_url, &SCHEMA, &role, Timestamp::UNIX_EPOCH);
    let Err(StorageError::Unsafe(reason)) = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("is an administrator"), "{reason}");
}

/// Roles belong to the server, not to a database: programs on several of its databases set the same
/// one.
#[test]
fn databases_of_one_server_can_be_migrated_at_once_with_one_login() {
    if !servers::available(Server::Postgres).unwrap() {
        return;
    }
    let server = servers::shared_postgres().unwrap();
    let name = format!("shared_login_{}", std::process::id());
    let urls: Vec<String> =
        (0..4).map(|_| server.create_database("shared_login").unwrap()).collect();
    std::thread::scope(|scope| {
        for url in &urls {
            let role = ServiceRole { name: name.clone(), password: Secret::generate() };
            scope.spawn(move || {
                for _ in 0..5 {
                    provision(url, &SCHEMA, &role, Timestamp::UNIX_EPOCH).unwrap();
                }
            });
        }
    });
}

/// `begin` travels together with the first statement. If it fails, that one must not be committed
/// alone: outside of a transaction that says otherwise, nothing can be written.
#[test]
fn a_statement_whose_begin_failed_cannot_be_committed_alone() {
    run(Form::Postgres, |place| async move {
        let db = place.open();
        let ask = "select current_setting('default_transaction_read_only') as outside, \
                   current_setting('transaction_read_only') as inside";
        let settings = db
            .write(move |tx| {
                tx.query_one(ask, &[], |row| {
                    Ok((row.get::<String>("outside")?, row.get::<String>("inside")?))
                })
            })
            .await;
        let expected = ("on".to_owned(), "off".to_owned());
        assert_eq!(settings, Ok::<_, StorageError>(expected));
    });
}

/// A server that stands still without closing its connections: nobody waits for it without end.
#[test]
fn a_server_that_falls_silent_is_given_up() {
    run(Form::Postgres, |place| async move {
        let db = place.open_with(64, std::time::Duration::from_millis(500), 1);
        let silent: Result<i64, StorageError> = db
            .write(|tx| {
                // The server's own limit is switched off, as if it could no longer enforce it.
                tx.execute("set local statement_timeout = 0", &[])?;
                tx.query_one("select 1 as one from pg_sleep(60)", &[], |row| row.get("one"))
            })
            .await;
        assert!(matches!(silent, Err(StorageError::Unavailable(_))), "{silent:?}");
        insert_number(&db, 1).await.expect("the worker has a new connection");
    });
}

/// A failover to a server that only reads must not look like a bug of ours.
#[test]
fn a_server_that_only_reads_is_unavailable_for_writing() {
    run(Form::Postgres, |place| async move {
        let db = place.open_with(64, std::time::Duration::from_secs(5), 1);
        let outcome: Result<u64, StorageError> = db
            .write(|tx| {
                tx.execute("set local transaction_read_only = on", &[])?;
                tx.execute("insert into numbers (n) values (1)", &[])
            })
            .await;
        assert!(matches!(outcome, Err(StorageError::Unavailable(_))), "{outcome:?}");
    });
}

#[test]
fn a_changed_table_does_not_break_prepared_statements_for_ever() {
    run(Form::Postgres, |place| async move {
        let db = place.open_with(64, std::time::Duration::from_secs(5), 1);
        let read = "select n from numbers";
        let count = |db: Db| async move {
            db.write(move |tx| tx.query(read, &[], |_| Ok(()))).await.map(|rows| rows.len())
        };
        assert_eq!(count(db.clone()).await, Ok::<_, StorageError>(0));
        let change = "set search_path to contract; alter table numbers alter column n type integer";
        admin_async(&place, change.to_owned()).await;
        assert_eq!(count(db).await, Ok(0));
    });
}

#[test]
fn a_wrong_password_is_told_without_showing_it() {
    run(Form::Postgres, |place| async move {
        let wrong = ServiceRole {
            name: place.role.name.clone(),
            password: Secret::new("not-the-password"),
        };
        let options = PostgresOptions::new(url_as(&place.admin_url, &wrong), SCHEMA.name);
        let outcome =
            tokio::task::spawn_blocking(move || Db::open_postgres(&options)).await.unwrap();
        let Err(StorageError::Unavailable(reason)) = outcome.map(drop) else {
            panic!("a wrong password must not work")
        };
        assert!(reason.contains("password authentication failed"), "{reason}");
        assert!(!reason.contains("not-the-password"), "{reason}");
    });
}

#[test]
fn a_server_that_may_forget_commits_is_refused() {
    run(Form::Postgres, |place| async move {
        let opened = tokio::task::spawn_blocking(move || {
            admin(&place, &format!("alter role {} set synchronous_commit = off", place.role.name));
            Db::open_postgres(&PostgresOptions::new(place.service_url(), SCHEMA.name)).map(drop)
        });
        let Err(StorageError::Unsafe(reason)) = opened.await.unwrap() else {
            panic!("an unsafe server must be refused")
        };
        assert!(reason.contains("synchronous_commit = on"), "{reason}");
    });
}

/// The closure runs again on a new connection: nothing of the first attempt had been committed.
#[test]
fn a_connection_lost_before_the_commit_is_replaced_and_the_closure_runs_again() {
    run(Form::Postgres, |place| async move {
        let db = place.open_with(64, std::time::Duration::from_secs(5), 1);
        let (pids, seen) = channel();
        let (go_on, wait) = channel::<()>();
        let (pids, wait) = (Mutex::new(pids), Mutex::new(wait));
        let writing = tokio::spawn({
            let db = db.clone();
            async move {
                db.write(move |tx| {
                    tx.execute("insert into numbers (n) values (1)", &[])?;
                    let pid: i64 =
                        tx.query_one("select pg_backend_pid() as pid", &[], |row| row.get("pid"))?;
                    pids.lock().unwrap().send(pid).unwrap();
                    wait.lock().unwrap().recv().unwrap();
                    tx.execute("insert into numbers (n) values (2)", &[])
                })
                .await
            }
        });
        tokio::task::spawn_blocking(move || {
            let first = seen.recv().unwrap();
            admin(&place, &format!("select pg_terminate_backend({first})"));
            go_on.send(()).unwrap();
            let second = seen.recv().unwrap();
            assert_ne!(first, second, "another connection");
            go_on.send(()).unwrap();
        })
        .await
        .unwrap();
        assert_eq!(writing.await.unwrap(), Ok::<_, StorageError>(1));
        assert_eq!(numbers(&db).await, [1, 2]);
        assert_eq!(db.stats().retries, 1);
    });
}

#[test]
fn transactions_that_lock_in_opposite_order_both_succeed_in_the_end() {
    run(Form::Postgres, |place| async move {
        let db = place.open_with(64, std::time::Duration::from_secs(5), 2);
        for n in [100, 200] {
            insert_number(&db, n).await.unwrap();
        }
        let both_hold_one = std::sync::Arc::new(std::sync::Barrier::new(2));
        let tasks: Vec<_> = [(100_i64, 200_i64), (200, 100)]
            .into_iter()
            .map(|(first, second)| {
                let (db, both_hold_one) = (db.clone(), both_hold_one.clone());
                let is_first_run = std::sync::atomic::AtomicBool::new(true);
                tokio::spawn(async move {
                    db.write(move |tx| {
                        let touch = "update numbers set n = n where n = $1";
                        tx.execute(touch, params![first])?;
                        if is_first_run.swap(false, std::sync::atomic::Ordering::SeqCst) {
                            both_hold_one.wait();
                        }
                        tx.execute(touch, params![second])?;
                        tx.execute("insert into numbers (n) values ($1)", params![first + 1])
                    })
                    .await
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok::<_, StorageError>(1));
        }
        assert_eq!(numbers(&db).await, [100, 101, 200, 201]);
        assert_eq!(db.stats().retries, 1, "one of them was the deadlock's victim");
    });
}

/// A connection that breaks in the commit leaves the outcome open; it is not tried again.
#[test]
fn a_connection_lost_during_the_commit_is_an_unknown_outcome() {
    run(Form::Postgres, |place| async move {
        let role = place.role.name.clone();
        admin_async(
            &place,
            format!(
                "set search_path to contract;
                 create function die() returns trigger language plpgsql as
                 $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
                 create constraint trigger dies after insert on events
                 deferrable initially deferred for each row execute function die();
                 grant pg_signal_backend to {role};"
            ),
        )
        .await;
        let db = place.open_with(64, std::time::Duration::from_secs(5), 1);
        let outcome = execute(&db, "insert into events (id, title) values (1, 'A')").await;
        assert!(matches!(outcome, Err(StorageError::OutcomeUnknown(_))), "{outcome:?}");
        assert_eq!(db.stats().retries, 0);
        insert_number(&db, 1).await.expect("the worker has a new connection");
    });
}

async fn admin_async(place: &Place, sql: String) {
    let url = place.admin_url.clone();
    tokio::task::spawn_blocking(move || {
        let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        client.batch_execute(&sql).unwrap();
    })
    .await
    .unwrap();
}

#[test]
fn a_restarted_server_is_found_again() {
    if !servers::available(Server::Postgres).unwrap() {
        return;
    }
    let mut server = PostgresServer::start().unwrap();
    let url = server.create_database("restarted").unwrap();
    let role = ServiceRole { name: "restarted".to_owned(), password: Secret::generate() };
    provision(&url, &SCHEMA, &role, Timestamp::UNIX_EPOCH).unwrap();
    let db = Db::open_postgres(&PostgresOptions::new(url_as(&url, &role), SCHEMA.name)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for n in 0..20 {
            insert_number(&db, n).await.unwrap();
        }
    });
    server.stop().unwrap();
    runtime.block_on(async {
        let started = std::time::Instant::now();
        let refused = insert_number(&db, 99).await;
        assert!(matches!(refused, Err(StorageError::Unavailable(_))), "{refused:?}");
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "callers do not hang");
    });
    server.start_again().unwrap();
    runtime.block_on(async {
        // Workers remember a failed connect for a moment; after it they try again.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while let Err(error) = insert_number(&db, 20).await {
            assert!(std::time::Instant::now() < deadline, "{error}");
            tokio::task::yield_now().await;
        }
        assert_eq!(numbers(&db).await, (0..=20).collect::<Vec<i64>>());
    });
}

/// The trap that loses events: an id is drawn early and committed late (see `outbox.rs`).
#[test]
fn an_event_that_commits_late_is_still_unpublished_after_a_later_one_was_seen() {
    run(Form::Postgres, |place| async move {
        let db = place.open();
        let (started, is_started) = channel();
        let (go_on, wait) = channel::<()>();
        let (started, wait) = (Mutex::new(started), Mutex::new(wait));
        let insert = "insert into outbox (event_id, topic, key, body, created_at) \
                      values ($1, 't', 'k', '{}', $2) returning seq";
        let append = move |tx: &mut urr_storage::Tx<'_>, id: u128| {
            let id = urr_kernel::Uuid::from_u128(id);
            tx.query_one(insert, params![id, Timestamp::UNIX_EPOCH], |row| row.get::<i64>("seq"))
        };
        let late = tokio::spawn({
            let db = db.clone();
            async move {
                db.write(move |tx| {
                    let seq = append(tx, 1)?;
                    started.lock().unwrap().send(()).unwrap();
                    wait.lock().unwrap().recv().unwrap();
                    Ok::<_, StorageError>(seq)
                })
                .await
                .unwrap()
            }
        });
        tokio::task::spawn_blocking(move || is_started.recv().unwrap()).await.unwrap();
        let early: i64 = db.write(move |tx| append(tx, 2)).await.unwrap_or_else(fail);
        let seen: Vec<i64> = seqs(&db).await;
        assert_eq!(seen, [early]);
        let publish = seen.clone();
        db.write(move |tx| {
            urr_storage::outbox::mark_published(tx, &publish, Timestamp::UNIX_EPOCH)
        })
        .await
        .unwrap_or_else(fail);
        go_on.send(()).unwrap();
        let late = late.await.unwrap();
        assert!(late < early, "the late one had drawn the smaller number");
        assert_eq!(seqs(&db).await, [late], "it is given to the relay");
        // Control: a relay that remembers the highest number would never ask for it.
        assert!(seqs(&db).await.into_iter().all(|seq| seq < early));
    });
}

fn fail<T>(error: StorageError) -> T {
    panic!("{error}")
}

async fn seqs(db: &Db) -> Vec<i64> {
    let rows = db.read(|tx| urr_storage::outbox::unpublished(tx, 100)).await.unwrap_or_else(fail);
    rows.iter().map(|row| row.seq).collect()
}
