//! `urr health` and `urr top`: what scripts and operators ask a running system.

use anyhow::Result;

use crate::process::{Installation, free_port};
use crate::queue::private_port;

#[test]
fn health_tells_by_its_exit_code_and_top_shows_every_service() -> Result<()> {
    let mut installation = Installation::new()?;
    let urr = installation.up(&[])?;
    installation.set("URR_SERVER_PORT", &urr.port.to_string());
    let healthy = installation.run(&["health"])?.succeeded()?;
    assert!(healthy.stdout.contains(r#""status":"ok""#), "{healthy:?}");
    let top = installation.run(&["top", "--once"])?.succeeded()?.stdout;
    for part in ["requests", "line", "sale", "money", "bus", "storage queue", "ticket", "gateway"] {
        assert!(top.contains(part), "{part:?} is not in\n{top}");
    }
    assert!(top.contains("1 of 1 processes"), "{top}");
    // A process that does not answer is named, and the others are shown.
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let here = format!("http://127.0.0.1:{}", private_port(&installation)?);
    let top = installation.run(&["top", "--once", "--url", &here, "--url", &nobody])?;
    let top = top.succeeded()?.stdout;
    for part in ["1 of 2 processes", &format!("{nobody} ("), "does not answer", "storage queue"] {
        assert!(top.contains(part), "{part:?} is not in\n{top}");
    }
    urr.stop("TERM")?.succeeded()?;
    installation.run(&["health"])?.refused_with(&["/health/ready does not answer"]);
    installation.run(&["top", "--once"])?.refused_with(&["no `urr up` runs on the data folder"]);
    installation.run(&["top", "--url", &nobody])?.refused_with(&["does not answer"]);
    Ok(())
}
