//! `urr rush`: a sale is rehearsed against a running system, in a room that is really full.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::{CommandOutput, Installation, Process, eventually};
use crate::whole_audit::check_whole_audit;

/// A rush has much to do on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Fans are quick, so that the test is.
const RUN: [&str; 12] = [
    "rush",
    "run",
    "--fans",
    "120",
    "--choosing",
    "0.2",
    "--paying",
    "0.2",
    "--max-minutes",
    "3",
    "--programs",
    "0.2",
];

fn assert_fails(output: &CommandOutput, code: i32, said: &str) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stderr.contains(said), "{said:?} is not in {}", output.stderr);
}

/// A seated event of the demo data that is on sale.
pub fn event_on_sale(installation: &Installation) -> Result<String> {
    let mut found = None;
    eventually("an event of the demo data is on sale", || {
        let rooms = installation.run(&["queue", "status", "--json"])?.succeeded()?;
        let rooms: Value = serde_json::from_str(&rooms.stdout)?;
        let is_opera = |room: &&Value| {
            room["title"].as_str().is_some_and(|title| title.contains("Opera Night"))
                && room["phase"] == "open"
        };
        let rooms = rooms["rooms"].as_array().context("a list")?;
        found = rooms
            .iter()
            .find(is_opera)
            .and_then(|room| room["eventId"].as_str().map(str::to_owned));
        Ok(found.is_some())
    })?;
    found.context("it was found")
}

#[test]
fn a_sale_is_rehearsed_and_judged() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let event = event_on_sale(&installation)?;
    installation.run(&["queue", "set", &event, "--threshold", "20"])?.succeeded()?;
    let run = |more: &[&str]| {
        let command = installation.command(&[&RUN[..], &["--event", &event], more].concat());
        Process::start(command)?.await_end_within(PATIENCE)
    };

    assert_fails(&run(&[])?, 2, "run `urr rush prepare` first");
    installation.run(&["rush", "prepare", "--fans", "240"])?.succeeded()?;

    let expected = ["failed=0", "unfinished=0", "out-of-order=0", "bought>=50", "p99.check<20s"];
    let expected: Vec<&str> = expected.iter().flat_map(|it| ["--expect", it]).collect();
    let summary = run(&expected)?.succeeded()?.stdout;
    assert!(summary.contains("0 of ") && summary.contains("admitted out of order"), "{summary}");

    let report: Value = serde_json::from_slice(&fs::read(installation.path("rush-report.json"))?)?;
    assert!(report["outcomes"]["programs refused"].as_u64() > Some(0), "{}", report["outcomes"]);
    assert!(report["outcomes"]["programs that succeeded"].is_null(), "{}", report["outcomes"]);
    assert!(report["fairness"]["numbered"].as_u64() > Some(20), "the room was full");
    let room = report["room"].as_array().context("samples")?;
    let is_over = |it: &&Value| it["inside"].as_u64() > it["threshold"].as_u64();
    assert!(!room.is_empty() && !room.iter().any(|it| is_over(&it)), "{room:?}");
    let page = fs::read_to_string(installation.path("rush-report.html"))?;
    assert!(page.contains("<svg") && !page.contains("<script"), "it needs nothing else");
    check_whole_audit(&installation)?;

    let compared =
        installation.run(&["rush", "compare", "rush-report.json", "rush-report.json"])?;
    assert!(compared.succeeded()?.stdout.contains("pay p99 ms"));
    let unmet = run(&["--expect", "bought>=100000", "--seed", "2", "--report", "second"])?;
    assert_fails(&unmet, 1, "an expectation was not met");
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}

/// Half a rehearsal is worth a report, too.
#[test]
fn an_interrupted_run_writes_its_report() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let event = event_on_sale(&installation)?;
    installation.run(&["rush", "prepare", "--fans", "120"])?.succeeded()?;
    for (signal, name) in [("INT", "first"), ("TERM", "second")] {
        let endless = ["--event", &event, "--rate", "2", "--report", name];
        let run = Process::start(installation.command(&[&RUN[..], &endless].concat()))?;
        eventually("fans have arrived", || Ok(run.stderr()?.contains("fans arrived")))?;
        run.signal(signal)?;
        let output = run.await_end_within(PATIENCE)?;
        assert_fails(&output, 1, "the run was interrupted");
        assert!(output.stdout.contains("Ended early: it was interrupted."), "{}", output.stdout);
        let json = fs::read(installation.path(&format!("{name}.json")))?;
        let report: Value = serde_json::from_slice(&json)?;
        assert_eq!(report["ended"], "interrupted");
        assert!(report["outcomes"]["unfinished"].as_u64() > Some(0), "{}", report["outcomes"]);
        let page = fs::read_to_string(installation.path(&format!("{name}.html")))?;
        assert!(page.contains("Ended early"));
    }
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}

#[test]
fn what_cannot_be_rehearsed_is_refused_at_once() -> Result<()> {
    let installation = Installation::new()?;
    assert_fails(&installation.run(&["rush", "prepare", "--fans", "1"])?, 2, "no secrets");
    for (wrong, said) in [
        (["--expect", "p99.check<200"], "a time ends in ms or s"),
        (["--rate", "0"], "--rate is more than 0"),
        (["--programs", "2"], "--programs is between 0 and 1"),
        (["--fans", "0"], "0 is not in 1..=1000000"),
    ] {
        let event = "01a1df10-7c5e-7d0b-9a35-0a6f2f3f9c11";
        let fans: &[&str] = if wrong[0] == "--fans" { &[] } else { &["--fans", "1"] };
        let arguments = [&["rush", "run", "--event", event], fans, &wrong[..]].concat();
        assert_fails(&installation.run(&arguments)?, 2, said);
    }
    Ok(())
}
