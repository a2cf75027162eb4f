//! PostgreSQL goes back to a moment: from a base backup, made while it sold, and its archive. What
//! was sold since is lost, but not what was paid for it.

use std::io::{Read, Write};

use anyhow::{Result, ensure};
use postgres::{Client, NoTls};
use serde_json::{Value, json};
use urr_kernel::Clock;
use urr_test::servers::{self, PostgresServer, Server};

use crate::backup::{RUSH, explained, sell};
use crate::process::{Installation, Process, eventually};
use crate::rush::event_on_sale;
use crate::whole_audit::check_whole_audit;

/// The memory of the sandbox, which a real provider keeps elsewhere.
const PROVIDER: [&str; 2] =
    ["payment_service.sandbox_payments", "payment_service.sandbox_movements"];

/// As OPERATIONS says it: what some service has not handled is sent again, into empty topics.
const SEND_AGAIN: &str = "\
    do $$ declare place regclass; begin for place in select c.oid from pg_class c \
    join pg_namespace n on n.oid = c.relnamespace where c.relname = 'outbox' and c.relkind = 'r' \
    loop execute format('update %s set published_at = null', place); end loop; end $$";

fn copy_out(url: &str) -> Result<Vec<Vec<u8>>> {
    let mut client = Client::connect(url, NoTls)?;
    let mut tables = Vec::new();
    for table in PROVIDER {
        let mut rows = Vec::new();
        client.copy_out(&format!("copy {table} to stdout"))?.read_to_end(&mut rows)?;
        tables.push(rows);
    }
    Ok(tables)
}

fn copy_in(url: &str, tables: &[Vec<u8>]) -> Result<()> {
    let mut client = Client::connect(url, NoTls)?;
    client.batch_execute(&format!("truncate {}", PROVIDER.join(", ")))?;
    for (table, rows) in PROVIDER.iter().zip(tables) {
        let mut copy = client.copy_in(&format!("copy {table} from stdin"))?;
        copy.write_all(rows)?;
        copy.finish()?;
    }
    Ok(())
}

#[test]
fn postgresql_goes_back_to_a_moment_and_what_was_paid_since_goes_back_too() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    let mut postgres = PostgresServer::start_with_archive()?;
    let url = postgres.create_database("recovered")?;
    let mut installation = Installation::new()?;
    installation.set("URR_DATABASE_URL", &url);
    let urr = installation.up(&[])?;
    let event = event_on_sale(&installation)?;
    installation.run(&["rush", "prepare", "--fans", "150"])?.succeeded()?;

    let endless = ["--fans", "150", "--rate", "2", "--event", &event];
    let mut rush =
        Process::start(installation.command(&[&RUSH[..2], &RUSH[4..], &endless].concat()))?;
    eventually("seats are sold", || {
        let is_sale =
            |line: &str| line.ends_with(" seats sold") && !line.ends_with(", 0 seats sold");
        Ok(rush.stderr()?.lines().any(is_sale))
    })?;
    postgres.back_up()?;
    ensure!(rush.is_running()?, "it was copied while it sold");
    rush.signal("INT")?;
    rush.await_end()?;
    let since = json!(Clock::System.now()).as_str().unwrap_or_default().to_owned();
    postgres.name_moment("before_the_loss")?;
    sell(&installation, &event, "2")?;
    let charged = |report: &Value| report["ledger"]["charged"].as_i64();
    let before_the_loss = charged(&explained(&installation, "data")?);

    urr.stop("KILL")?;
    let provider = copy_out(&url)?;
    postgres.kill()?;
    postgres.recover_to("before_the_loss")?;
    copy_in(&url, &provider)?;
    Client::connect(&url, NoTls)?.batch_execute(SEND_AGAIN)?;
    for file in ["bus.db", "bus.db-wal", "bus.db-shm"] {
        // The last two may be gone already.
        std::fs::remove_file(installation.path(&format!("data/{file}"))).ok();
    }

    let urr = installation.up(&[])?;
    let named = installation.run(&["audit", "money", "--since", &since])?;
    assert_eq!(named.status.code(), Some(1), "{named:?}");
    assert!(named.stdout.contains("and we never created it"), "{named:?}");
    let settle = ["return-charges", "--since", &since];
    let returned = installation.run(&settle)?.succeeded()?.stdout;
    assert!(returned.contains(" were returned\n"), "{returned}");
    let report = explained(&installation, "data")?;
    assert_eq!(report["findings"], json!(0), "{report}");
    let left = charged(&report);
    ensure!(left > Some(0) && left < before_the_loss, "{left:?} of {before_the_loss:?}");
    check_whole_audit(&installation)?;
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}
