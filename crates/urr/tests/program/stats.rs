//! `urr stats rebuild`: the figures are counted again, beside a running system or without one.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::audit::{change, sell_a_ticket};
use crate::http_client::{activity, admin_headers, request};
use crate::process::{CommandOutput, Installation, eventually};
use crate::queue::private_port;

fn rebuild(installation: &Installation) -> Result<CommandOutput> {
    installation.run(&["stats", "rebuild"])
}

/// What the pages are made of.
fn figures(private_port: u16) -> Result<Vec<Value>> {
    ["activity", "daily", "events", "payments", "revenue"]
        .map(|page| {
            let path = format!("/api/stats/{page}");
            request(private_port, "GET", &path, &admin_headers("stats"), "")?.json()
        })
        .into_iter()
        .collect()
}

/// Of the last line: how many events and facts there were.
fn counted(outcome: &CommandOutput) -> Result<(u64, u64)> {
    let last = outcome.stdout.lines().last().context("it says something")?;
    let numbers: Vec<u64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    ensure!(last.starts_with("The statistics are counted again: "), "{outcome:?}");
    Ok((*numbers.first().context("events")?, *numbers.last().context("facts")?))
}

/// Counts again where a ticket was sold and counted, wherever that is.
pub fn check_rebuild(installation: &Installation, private_port: u16) -> Result<()> {
    eventually("the purchase is counted", || {
        let confirmed = activity(private_port, "RESERVATION_CONFIRMED")? == 1;
        Ok(confirmed && activity(private_port, "PAYMENT_CONFIRMED")? == 1)
    })?;
    let before = figures(private_port)?;
    let rebuilt = rebuild(installation)?.succeeded()?;
    for topic in ["catalog-events", "payment-events", "reservation-events", "user-events"] {
        let line = rebuilt.stdout.lines().find(|line| line.starts_with(&format!("{topic}: ")));
        let line = line.with_context(|| format!("{topic} in {rebuilt:?}"))?;
        assert!(!line.contains(": 0 events"), "{line}");
    }
    let (events, facts) = counted(&rebuilt)?;
    ensure!(events > 0 && facts > 0, "{rebuilt:?}");
    assert_eq!(figures(private_port)?, before);
    Ok(())
}

#[test]
fn figures_are_counted_again_beside_a_running_system_and_without_one() -> Result<()> {
    let mut installation = Installation::new()?;
    let nothing = rebuild(&installation)?;
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("has `urr up` run there?"), "{nothing:?}");
    assert!(!installation.path("data").exists(), "looking makes nothing");
    for wrong in [vec!["stats"], vec!["stats", "forget"], vec!["stats", "rebuild", "now"]] {
        assert_eq!(installation.run(&wrong)?.status.code(), Some(2), "{wrong:?}");
    }

    installation.share_secrets();
    let urr = installation.up(&[])?;
    let fan = sell_a_ticket(&installation, urr.port)?;
    drop(fan);
    let port = private_port(&installation)?;
    check_rebuild(&installation, port)?;
    let right = figures(port)?;
    let schema = &urr_stats::SCHEMA;
    change(&installation, schema, "update activity set total = total + 3")?;
    change(&installation, schema, "update hour_counters set charged = charged + 1")?;
    ensure!(figures(port)? != right, "the figures can be wrong");
    let first = counted(&rebuild(&installation)?.succeeded()?)?;
    assert_eq!(figures(port)?, right);
    let second = counted(&rebuild(&installation)?.succeeded()?)?;
    assert_eq!((second, figures(port)?), (first, right.clone()), "a second run changes nothing");
    urr.stop("TERM")?.succeeded()?;

    change(&installation, schema, "update activity set total = total + 3")?;
    assert_eq!(counted(&rebuild(&installation)?.succeeded()?)?, first);
    let urr = installation.up(&[])?;
    assert_eq!(figures(private_port(&installation)?)?, right);
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}
