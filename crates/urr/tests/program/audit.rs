//! `urr audit money`: the proof of the ledger, and what it reports when tables were tampered with.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_storage::{Db, Schema, SqliteOptions, StorageError};

use crate::admin::register;
use crate::distributed_purchase::{Buyer, check_purchase};
use crate::http_client::get;
use crate::process::{CommandOutput, Installation, Running, eventually, free_port};

/// Someone has registered and bought a ticket.
pub fn sell_a_ticket(installation: &Installation, gateway_port: u16) -> Result<Buyer> {
    ensure!(register(installation, gateway_port)?.status == 201, "nobody has registered before");
    eventually("every event on sale has its seats", || {
        let events = get(gateway_port, "/api/events?status=on_sale&limit=50")?.json()?;
        let events = events["events"].as_array().cloned().unwrap_or_default();
        Ok(!events.is_empty() && events.iter().all(|event| event["inventoryReady"] == true))
    })?;
    check_purchase(gateway_port)
}

/// A hand in the tables of a service, beside whatever runs.
pub fn change(installation: &Installation, schema: &Schema, sql: &'static str) -> Result<()> {
    let path = installation.path(&format!("data/{}.db", schema.name));
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let db = Db::open_sqlite(&path, &SqliteOptions::default())?;
        let changed: Result<u64, StorageError> = db.write(move |tx| tx.execute(sql, &[])).await;
        ensure!(changed? > 0, "{sql}");
        tokio::task::spawn_blocking(move || db.close()).await?;
        Ok(())
    })
}

fn audit(installation: &Installation, arguments: &[&str]) -> Result<CommandOutput> {
    installation.run(&[&["audit", "money"], arguments].concat())
}

/// What a script reads, and the code that it branches on.
fn read(installation: &Installation, code: i32) -> Result<Value> {
    let outcome = audit(installation, &["--json"])?;
    ensure!(outcome.status.code() == Some(code), "{outcome:?}");
    serde_json::from_str(&outcome.stdout).with_context(|| format!("{outcome:?}"))
}

/// The only one of a kind of finding.
fn finding<'a>(report: &'a Value, part: &str, list: &str) -> Result<&'a Value> {
    let found = report[part][list].as_array().context("a list")?;
    ensure!(found.len() == 1, "{report}");
    Ok(&found[0])
}

/// A system in which one ticket was sold, wherever it runs.
pub fn check_audit(installation: &Installation) -> Result<()> {
    let text = audit(installation, &[])?.succeeded()?.stdout;
    let amount = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|amount| amount.trim().to_owned()).with_context(|| text.clone())
    };
    assert_eq!(amount("charged")?, amount("sold")?, "{text}");
    assert_eq!(amount("= with the provider")?, amount("= accounted for")?, "{text}");
    assert_eq!(amount("difference")?, "0원", "{text}");
    assert_ne!(amount("charged")?, "0원", "{text}");
    let good = [
        "ok        the ledger: every won is explained",
        "ok        payments: none has been stuck for ten minutes",
        "ok        the provider (sandbox): 1 payments since ",
        "ok        the tickets: 1 paid reservations and 1 payments agree",
    ];
    for line in good {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    let report = read(installation, 0)?;
    assert_eq!((&report["explained"], &report["findings"]), (&json!(true), &json!(0)), "{report}");
    Ok(())
}

#[test]
fn the_money_of_a_running_system_is_proved_and_a_hand_in_the_books_is_named() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let urr = installation.up(&[])?;
    let fan = sell_a_ticket(&installation, urr.port)?;
    check_audit(&installation)?;

    let (books, office) = (&urr_payment::SCHEMA, &urr_ticket::SCHEMA);
    let lost = "update ledger_lines set amount = amount + 1 where account = 'sales'";
    change(&installation, books, lost)?;
    let wrong = audit(&installation, &[])?;
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("2 things are not explained"), "{wrong:?}");
    let report = read(&installation, 1)?;
    let entry = &report["ledger"]["unexplained"][0];
    assert_eq!((&entry["kind"], &entry["amount"]), (&json!("entry"), &json!(1)), "{report}");
    let payment_id = entry["paymentId"].as_str().context("it is named")?;
    let line = format!("WRONG     the ledger: payment {payment_id}: the lines of its entry ");
    assert!(wrong.stdout.contains(&line), "{line:?} is not in {wrong:?}");
    change(
        &installation,
        books,
        "update ledger_lines set amount = amount - 1 \
                                  where account = 'sales'",
    )?;

    change(&installation, books, "update sandbox_payments set refunded = 5")?;
    let amounts = read(&installation, 1)?;
    let differs = finding(&amounts, "provider", "differences")?;
    assert_eq!((&differs["kind"], &differs["amount"]), (&json!("amounts"), &json!(-5)));
    assert_eq!(amounts["ledger"]["unexplained"], json!([]), "our own ledger is right");
    change(&installation, books, "update sandbox_payments set refunded = 0")?;

    change(
        &installation,
        office,
        "update reservations set payment_id = id \
                                   where payment_id is not null",
    )?;
    let report = read(&installation, 1)?;
    let lost = finding(&report, "tickets", "differences")?;
    assert_eq!((&lost["kind"], &lost["paymentId"]), (&json!("unpaid"), &lost["reservationId"]));
    refusals(&installation, &urr)?;
    drop(fan);
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}

/// An audit that cannot run exits with another code than one that finds something.
fn refusals(installation: &Installation, urr: &Running) -> Result<()> {
    let not_done = |outcome: CommandOutput, part: &str| {
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert_eq!(outcome.stdout, "", "{outcome:?}");
        assert!(outcome.stderr.contains(part), "{part:?} is not in {outcome:?}");
    };
    let nobody = format!("http://127.0.0.1:{}", free_port());
    not_done(audit(installation, &["--url", &nobody])?, "nothing answers at");
    let public = format!("http://127.0.0.1:{}", urr.port);
    not_done(audit(installation, &["--url", &public])?, &public);
    let door = std::fs::read_to_string(installation.path("data/internal-url"))?;
    let mut stranger = Installation::new()?;
    stranger.set("INTERNAL_API_TOKEN", "a secret of some other installation");
    not_done(audit(&stranger, &["--url", door.trim()])?, "does not know our credential");
    not_done(audit(installation, &["--since", "yesterday"])?, "such as 90m, 24h or 7d");
    for wrong in [vec!["audit", "seats"], vec!["audit", "money", "all"]] {
        assert_eq!(installation.run(&wrong)?.status.code(), Some(2), "{wrong:?}");
    }
    Ok(())
}

#[test]
fn without_a_running_system_the_folder_is_read_and_a_stuck_payment_is_named() -> Result<()> {
    let mut installation = Installation::new()?;
    let nothing = audit(&installation, &[])?;
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("there are no payments in it"), "{nothing:?}");
    assert!(!installation.path("data").exists(), "looking makes nothing");

    installation.share_secrets();
    let urr = installation.up(&[])?;
    let fan = sell_a_ticket(&installation, urr.port)?;
    drop(fan);
    urr.stop("TERM")?.succeeded()?;
    check_audit(&installation)?;
    let text = audit(&installation, &[])?.succeeded()?.stdout;
    assert!(text.starts_with("Money of the data folder ./data at "), "{text}");

    // As a process leaves it that died before the ticket service answered.
    let unfinished = [
        "update payments set step = 'deliver', next_attempt_at = created_at, \
         updated_at = updated_at - 3600000000",
        "delete from ledger_lines where entry_id in \
         (select id from ledger_entries where kind = 'deliver')",
        "delete from ledger_entries where kind = 'deliver'",
    ];
    for sql in unfinished {
        change(&installation, &urr_payment::SCHEMA, sql)?;
    }
    let report = read(&installation, 1)?;
    let stuck = finding(&report, "ledger", "stuck")?;
    assert!(stuck["paymentId"].as_str().is_some_and(|id| id.parse::<Uuid>().is_ok()), "{stuck}");
    let sentence = stuck["sentence"].as_str().unwrap_or_default();
    assert!(sentence.contains("confirmed, at the step deliver since "), "{sentence}");

    let urr = installation.up(&[])?;
    eventually("the payment is gone on with", || Ok(audit(&installation, &[])?.status.success()))?;
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}

#[test]
fn the_doctor_says_who_takes_the_money_and_warns_of_a_sandbox_that_others_reach() -> Result<()> {
    let doctor = |settings: &[(&str, &str)]| {
        let mut installation = Installation::new()?;
        settings.iter().for_each(|(name, value)| installation.set(name, value));
        installation.run(&["doctor"])
    };
    let check = |settings: &[(&str, &str)], line: &str| -> Result<()> {
        let stdout = doctor(settings)?.succeeded()?.stdout;
        ensure!(stdout.contains(line), "{line:?} is not in {stdout}");
        Ok(())
    };
    check(&[], "ok       payments go through the sandbox: nobody pays")?;
    let open = ("URR_SERVER_HOST", "0.0.0.0");
    check(&[open], "note     payments go through the sandbox, and others can reach 0.0.0.0")?;
    check(&[open], "note     auth.terms_dir is not set")?;
    assert!(!doctor(&[])?.stdout.contains("auth.terms_dir"), "the control: nobody else comes");
    let toss = [
        ("URR_PAYMENTS_PROVIDER", "toss"),
        ("TOSS_CLIENT_KEY", "live_ck"),
        ("TOSS_SECRET_KEY", "live_sk"),
    ];
    check(&[open, toss[0], toss[1], toss[2]], "ok       payments go through Toss")?;
    let test_key = ("TOSS_SECRET_KEY", "test_sk");
    let refused = doctor(&[toss[0], toss[1], test_key])?;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.stdout.contains("payments.dangerous_test_payments"), "{refused:?}");
    let allowed = ("URR_PAYMENTS_DANGEROUS_TEST_PAYMENTS", "true");
    check(&[toss[0], toss[1], test_key, allowed], "note     payments.dangerous_test_payments")?;
    check(&toss[1..2], "note     Toss has some of its keys but not payments.toss_secret_key")?;
    let keyless = doctor(&toss[..2])?;
    assert_eq!(keyless.status.code(), Some(1), "{keyless:?}");
    assert!(keyless.stdout.contains("payments.toss_secret_key"), "{keyless:?}");
    Ok(())
}
