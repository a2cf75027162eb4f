//! A sale while the program is killed, stopped and cut off: afterwards everything agrees. `cluster.rs`
//! has the same with several processes and servers.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::audit::change;
use crate::process::{Installation, Process};

const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn killed_stopped_and_cut_off_the_program_keeps_everything() -> Result<()> {
    let installation = Installation::new()?;
    let arguments = [
        // Enough that whoever gives a ticket back at the end finds somebody to buy it.
        ["--fans", "400"],
        ["--seats", "300"],
        ["--threshold", "30"],
        ["--kills", "3"],
        ["--stops", "1"],
        ["--cuts", "2"],
        ["--slow-disks", "1"],
        ["--within", "12"],
        ["--pauses", "1"],
        ["--heal-minutes", "2"],
        ["--folder", "."],
    ];
    let refused = installation.run(&[&["rush", "chaos"], &arguments.concat()[..]].concat())?;
    assert_eq!(refused.status.code(), Some(2), "a folder that exists is not touched: {refused:?}");
    let mut arguments = arguments.concat();
    *arguments.last_mut().context("there are some")? = "chaos";
    let until = ["rush", "chaos", "--until-sold-out", "--expect", "bought>=100"];
    let run = installation.command(&[&until, &arguments[..]].concat());
    let ended = Process::start(run)?.await_end_within(PATIENCE)?;
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stdout.contains("All agrees after 7 faults."), "{ended:?}");
    assert!(ended.stdout.contains("ok        waiting rooms: "), "{ended:?}");
    for figure in [
        "Sold out after ",
        "kills: 3, answered again after ",
        "slow disks: 1, a sync took ",
        " MiB of memory at most",
    ] {
        assert!(ended.stdout.contains(figure), "{figure}: {ended:?}");
    }
    assert!(!ended.stdout.contains(" 0 seats sold"), "{ended:?}");

    // The control: the audit that was clean sees what is damaged in the same folder.
    std::fs::rename(installation.path("chaos/data"), installation.path("data"))?;
    installation.run(&["audit"])?.succeeded()?;
    let sql = "update seats set status = 'held' where status = 'sold'";
    change(&installation, &urr_ticket::SCHEMA, sql)?;
    assert_eq!(installation.run(&["audit"])?.status.code(), Some(1));
    Ok(())
}
