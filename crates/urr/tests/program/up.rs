//! `urr up`: everything in one process, from an empty folder to the end, and on again.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::http_client::{artist_names, create_artist};
use crate::process::{Installation, Running, eventually, free_port, rights};

/// How long a stop may take: the grace that the configuration gives.
const STOP_MAX: Duration = Duration::from_secs(10);
const DEMO_ARTISTS: [&str; 8] = [
    "NEON SPARROW",
    "Paper Lanterns",
    "극단 여름비",
    "달무리",
    "별빛소년단",
    "서울 시티 앙상블",
    "정가온",
    "한강 밴드",
];

#[test]
fn an_empty_folder_becomes_a_running_system() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;

    eventually("the banner", || Ok(urr.stdout()?.contains("Stop: Ctrl-C")))?;
    let banner = urr.stdout()?;
    let folder = fs::canonicalize(installation.path("data"))?;
    for part in [format!("http://127.0.0.1:{}\n", urr.port), format!("{}\n", folder.display())] {
        assert!(banner.contains(&part), "{part:?} is not in {banner}");
    }

    assert_eq!(urr.get("/health")?.json()?["status"], "ok");
    assert_eq!(artist_names(urr.port)?, DEMO_ARTISTS);
    let openapi = urr.get("/docs/openapi.json")?.json()?;
    assert!(openapi["paths"]["/api/artists"].is_object(), "{openapi}");
    for page in ["/", "/docs"] {
        let reply = urr.get(page)?;
        assert_eq!(reply.status, 200, "{page}");
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("text/html; charset=utf-8"), "{page}");
    }

    assert_eq!(rights(&folder)?, 0o700);
    // Also the databases with their logs, and the address of the internal listener.
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(rights(&path)?, expected, "{}", path.display());
        names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    for name in ["secrets.toml", "internal-url", "user_service.db", "user_service.db-wal"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
    Ok(())
}

#[test]
fn a_stopped_system_goes_on_where_it_was() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let secrets = fs::read(installation.path("data/secrets.toml"))?;
    stop_in_order(urr, "TERM", &installation.path("data"))?;

    let urr = installation.up(&[])?;
    assert_eq!(artist_names(urr.port)?, DEMO_ARTISTS, "they are added once");
    assert!(fs::read(installation.path("data/secrets.toml"))? == secrets, "they are kept");
    stop_in_order(urr, "INT", &installation.path("data"))
}

/// A client that stays connected between two requests does not delay the end.
#[test]
fn a_silent_client_does_not_delay_a_stop() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let mut client = TcpStream::connect(("127.0.0.1", urr.port))?;
    client.write_all(b"GET /health/live HTTP/1.1\r\nhost: urr\r\n\r\n")?;
    client.read_exact(&mut [0; 12])?;
    stop_in_order(urr, "TERM", &installation.path("data"))
}

#[test]
fn a_killed_system_recovers_with_all_its_data() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let private_port = free_port();
    installation.set("MANAGEMENT_PORT", &private_port.to_string());
    let urr = installation.up(&[])?;
    for number in 0..20 {
        let reply = create_artist(private_port, &format!("Artist {number:02}"))?;
        ensure!(reply.status == 201, "{reply:?}");
    }
    urr.stop("KILL")?;

    let urr = installation.up(&[])?;
    let names = artist_names(urr.port)?;
    let expected: Vec<String> = (0..20).map(|number| format!("Artist {number:02}")).collect();
    assert_eq!(names[..20], expected);
    assert_eq!(names[20..], DEMO_ARTISTS);
    eventually("every artist is counted once, also those announced after the restart", || {
        let activity = crate::http_client::activity(private_port, "ARTIST_CREATED")?;
        ensure!(activity <= 28, "{activity} artists were counted");
        Ok(activity == 28)
    })
}

/// In time, with success, and with nothing left to recover.
fn stop_in_order(urr: Running, signal: &str, data: &PathBuf) -> Result<()> {
    let begun = Instant::now();
    let outcome = urr.stop(signal)?.succeeded()?;
    assert!(begun.elapsed() < STOP_MAX, "{:?}", begun.elapsed());
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    for entry in fs::read_dir(data)? {
        let name = entry?.file_name();
        assert!(!name.to_string_lossy().ends_with("-wal"), "{name:?} is left");
    }
    Ok(())
}
