//! TLS on the listeners of the program, with certificates that it made.

use std::fs;

use anyhow::{Context, Result};

use crate::http_client::get;
use crate::process::{Installation, eventually, free_port};

/// An installation whose two listeners have a certificate of its own authority.
fn installation(port: u16) -> Result<Installation> {
    let mut installation = Installation::new()?;
    installation.set("URR_DEMO_SEED", "false");
    installation.set("URR_SERVER_PORT", &port.to_string());
    issue(&installation, "certificates")?;
    for (name, file) in [
        ("URR_SERVER_TLS_CERTIFICATE_PATH", "urr.pem"),
        ("URR_SERVER_TLS_KEY_PATH", "urr.key"),
        ("URR_INTERNAL_TLS_CERTIFICATE_PATH", "urr.pem"),
        ("URR_INTERNAL_TLS_KEY_PATH", "urr.key"),
        ("URR_INTERNAL_TLS_ROOT_PATH", "authority.pem"),
    ] {
        installation.set(name, &format!("certificates/{file}"));
    }
    Ok(installation)
}

fn issue(installation: &Installation, folder: &str) -> Result<()> {
    installation.run(&["certificates", "--to", folder, "urr"])?.succeeded()?;
    Ok(())
}

#[test]
fn commands_reach_a_program_with_tls_and_replaced_certificates_count() -> Result<()> {
    let port = free_port();
    let mut installation = installation(port)?;
    let running = installation.up_with_tls(port)?;
    installation.run(&["queue", "status"])?.succeeded()?;
    installation.run(&["top", "--once"])?.succeeded()?;
    let internal = fs::read_to_string(installation.path("data/internal-url"))?;
    let internal = internal.trim().strip_prefix("https://127.0.0.1:").context("https")?;
    for plain in [port, internal.parse()?] {
        assert!(get(plain, "/health").is_err(), "nothing is served without TLS");
    }
    let doctor = installation.run(&["doctor"])?.succeeded()?.stdout;
    assert!(!doctor.contains("not encrypted"), "{doctor}");

    // Another authority: the commands that trust the first one find a stranger.
    issue(&installation, "others")?;
    for file in ["urr.key", "urr.pem"] {
        let [from, to] =
            ["others", "certificates"].map(|folder| installation.path(folder).join(file));
        fs::rename(from, to)?;
    }
    eventually("the new certificate is shown", || {
        Ok(!installation.run(&["queue", "status"])?.status.success())
    })?;
    let stranger = installation.run(&["queue", "status"])?;
    stranger.refused_with(&["is not signed by an authority that we know"]);
    installation.set("URR_INTERNAL_TLS_ROOT_PATH", "others/authority.pem");
    installation.run(&["queue", "status"])?.succeeded()?;
    running.stop("TERM")?.succeeded()?;
    Ok(())
}

#[test]
fn a_certificate_that_cannot_be_used_is_told_at_the_start() -> Result<()> {
    let installation = installation(free_port())?;
    issue(&installation, "others")?;
    fs::rename(installation.path("others/urr.key"), installation.path("certificates/urr.key"))?;
    let refused = installation.run(&["up"])?;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.stderr.contains("is not the key of"), "{refused:?}");
    Ok(())
}
