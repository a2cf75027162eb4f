//! A primary and its standby: which of them is written to, before and after a promotion.

use std::time::{Duration, Instant};

use urr_kernel::{Secret, Timestamp};
use urr_storage::{Db, PostgresOptions, ServiceRole, StorageError, provision, reach_postgres};
use urr_test::servers::{self, PostgresServer, Server};

use crate::fixture::{SCHEMA, insert_number, numbers, url_as};

const PATIENCE: Duration = Duration::from_secs(20);

/// The address of a database with other servers.
fn at(url: &str, servers: &[&PostgresServer], query: &str) -> String {
    let (login, place) = url.split_once('@').unwrap();
    let database = place.split_once('/').unwrap().1;
    let host = |server: &&PostgresServer| server.url().split(['@', '/']).nth(3).unwrap().to_owned();
    let hosts: Vec<String> = servers.iter().map(host).collect();
    format!("{login}@{}/{database}{query}", hosts.join(","))
}

fn open(url: String) -> Result<Db, StorageError> {
    Db::open_postgres(&PostgresOptions { connections: 2, ..PostgresOptions::new(url, SCHEMA.name) })
}

#[test]
fn of_several_servers_the_one_that_was_promoted_last_is_written_to() {
    if !servers::available(Server::Postgres).unwrap() {
        return;
    }
    let mut first = PostgresServer::start_with(&[]).unwrap();
    let url = first.create_database("followed").unwrap();
    let role = ServiceRole { name: "followed".to_owned(), password: Secret::generate() };
    provision(&url, &SCHEMA, &role, Timestamp::UNIX_EPOCH).unwrap();
    let url = url_as(&url, &role);
    let second = first.start_standby().unwrap();
    first.wait_for_standby().unwrap();
    check_standby(&at(&url, &[&second], ""));

    // In the worst order for both of what follows.
    let db = open(at(&url, &[&second, &first], "?target_session_attrs=read-write")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(insert_number(&db, 1)).unwrap();
    first.kill().unwrap();
    let alone = reach_postgres(&at(&url, &[&first, &second], "")).unwrap_err().to_string();
    assert!(alone.contains("it is a standby"), "{alone}");
    second.promote().unwrap();
    runtime.block_on(async {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = insert_number(&db, 2).await {
            assert!(Instant::now() < deadline, "{error}");
            tokio::task::yield_now().await;
        }
    });
    // The old primary comes back, as it does when its machine is switched on again.
    first.start_again().unwrap();
    let later = open(at(&url, &[&first, &second], "")).unwrap();
    runtime.block_on(insert_number(&later, 3)).unwrap();
    let only = open(at(&url, &[&second], "")).unwrap();
    assert_eq!(runtime.block_on(numbers(&only)), [1, 2, 3]);
}

/// A standby is read from if it is the only server, but a write waits for another one.
fn check_standby(url: &str) {
    let db = open(url.to_owned()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(numbers(&db)), [] as [i64; 0]);
    let refused = runtime.block_on(insert_number(&db, 0));
    assert!(matches!(refused, Err(StorageError::Unavailable(_))), "{refused:?}");
    let refused = open(format!("{url}?target_session_attrs=read-write")).map(drop).unwrap_err();
    assert!(refused.to_string().contains("it is a standby"), "{refused}");
}
