//! `urr health` and `urr top`: what scripts and operators ask a running system.

use anyhow::Result;

use crate::process::{Installation, free_port};

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
    urr.stop("TERM")?.succeeded()?;
    installation.run(&["health"])?.refused_with(&["/health/ready does not answer"]);
    installation.run(&["top", "--once"])?.refused_with(&["no `urr up` runs on the data folder"]);
    let nobody = format!("http://127.0.0.1:{}", free_port());
    installation.run(&["top", "--url", &nobody])?.refused_with(&["does not answer"]);
    Ok(())
}
