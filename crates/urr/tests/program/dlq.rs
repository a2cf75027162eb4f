//! `urr dlq`: dead letters, listed and sent again beside a running system.

use anyhow::{Context, Result, ensure};
use urr_bus::{Bus, BusMessage};
use urr_kernel::Clock;

use crate::process::{Installation, eventually};

const POISON: &str = "this is not an event";
/// The groups that consume events of users: community, mail and statistics.
const GROUPS: usize = 3;

#[test]
fn a_dead_letter_is_listed_shown_and_sent_again() -> Result<()> {
    let installation = Installation::new()?;
    let _urr = installation.up(&[])?;
    assert_eq!(list(&installation)?, [] as [String; 0]);
    publish_poison(&installation)?;
    await_letters(&installation, GROUPS)?;

    let lines = list(&installation)?;
    let letter = lines.iter().find(|line| line.contains("stats-service-group"));
    let letter = letter.context("the statistics consume every topic")?;
    let id = id_of(letter)?;
    for part in ["user-events-dlq/", "not a CloudEvents JSON document"] {
        assert!(letter.contains(part), "{part:?} is not in {lines:?}");
    }
    let of_topic = installation.run(&["dlq", "list", "--topic", "user-events"])?.succeeded()?;
    assert_eq!(of_topic.stdout.lines().collect::<Vec<_>>(), lines);
    let shown = installation.run(&["dlq", "show", &id])?.succeeded()?.stdout;
    assert_eq!(shown, format!("{letter}\n{POISON}\n"));

    let replayed = installation.run(&["dlq", "replay", &id])?.succeeded()?.stdout;
    assert!(replayed.starts_with(&format!("{id} was sent again as user-events/")), "{replayed}");
    // It fails again: the first letter is dealt with, and there is a new one.
    await_letters(&installation, GROUPS)?;
    let ids: Vec<String> =
        list(&installation)?.iter().map(|line| id_of(line)).collect::<Result<_>>()?;
    assert!(!ids.contains(&id), "{ids:?}");
    let all = installation.run(&["dlq", "list", "--all"])?.succeeded()?.stdout;
    assert_eq!(all.lines().count(), GROUPS + 1, "other groups were not asked again: {all}");
    assert_eq!(all.matches("(sent again)").count(), 1, "{all}");

    let twice = installation.run(&["dlq", "replay", &id])?;
    twice.refused_with(&[&id, "was sent again before", "--force"]);
    installation.run(&["dlq", "replay", &id, "--force"])?.succeeded()?;
    await_letters(&installation, GROUPS + 1)?;
    let sent = installation.run(&["dlq", "replay", "--all"])?.succeeded()?.stdout;
    assert_eq!(sent, format!("{} dead letters were sent again.\n", GROUPS + 1));
    await_letters(&installation, GROUPS + 1)
}

#[test]
fn a_dead_letter_that_does_not_exist_is_told() -> Result<()> {
    let installation = Installation::new()?;
    installation.run(&["dlq", "list"])?.refused_with(&["there is no bus in ./data", "`urr up`"]);
    assert!(!installation.path("data").exists(), "looking makes nothing");
    let urr = installation.up(&[])?;
    for id in ["user-events-dlq/0/99", "user-events/0/0", "nothing-dlq/0/0"] {
        for verb in ["show", "replay"] {
            let outcome = installation.run(&["dlq", verb, id])?;
            outcome.refused_with(&[&format!("there is no dead letter {id}")]);
        }
    }
    let outcome = installation.run(&["dlq", "show", "the first one"])?;
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.stderr.contains("expected <topic>/<partition>/<offset>"), "{outcome:?}");
    urr.stop("TERM")?.succeeded()?;
    assert_eq!(list(&installation)?, [] as [String; 0], "it works on a stopped system too");
    Ok(())
}

/// As another process would: the running one is not told.
fn publish_poison(installation: &Installation) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bus = Bus::open_embedded(&installation.path("data/bus.db"), &Clock::System)?;
        bus.publish_one(BusMessage::new("user-events", "", POISON)).await?;
        bus.close().await;
        Ok(())
    })
}

fn list(installation: &Installation) -> Result<Vec<String>> {
    let listed = installation.run(&["dlq", "list"])?.succeeded()?.stdout;
    if listed == "There are no dead letters.\n" {
        return Ok(Vec::new());
    }
    Ok(listed.lines().map(str::to_owned).collect())
}

fn id_of(line: &str) -> Result<String> {
    Ok(line.split("  ").next().context("a line begins with the id")?.to_owned())
}

fn await_letters(installation: &Installation, count: usize) -> Result<()> {
    eventually("the dead letters are there", || {
        let letters = list(installation)?;
        ensure!(letters.len() <= count, "{letters:?}");
        Ok(letters.len() == count)
    })
}
