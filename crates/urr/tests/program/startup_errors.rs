//! Errors at start are sentences that say what to do.

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process::{CommandOutput, Installation, Process, Running, SHARED_SECRETS, free_port};

#[test]
fn a_port_that_is_taken() -> Result<()> {
    let other = TcpListener::bind("127.0.0.1:0")?;
    let port = other.local_addr()?.port().to_string();
    let outcome = Installation::new()?.run(&["up", "--port", &port])?;
    outcome.refused_with(&[&port, "taken by another program", "--port"]);
    Ok(())
}

/// It would seal guests with a key that everybody can derive. The control has the key, and gets as far
/// as the next thing that is missing.
#[test]
fn a_ticket_process_without_its_data_key() -> Result<()> {
    let serve = ["serve", "--roles", "ticket", "--port", &free_port().to_string()];
    let mut installation = Installation::new()?;
    let secrets = SHARED_SECRETS.iter().filter(|(name, _)| *name != "URR_AUTH_DATA_KEY");
    secrets.for_each(|(name, value)| installation.set(name, value));
    let refused = installation.run(&serve)?;
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let sentence =
        "auth.data_key: missing; set URR_AUTH_DATA_KEY to the same value in every process";
    assert!(refused.stderr.contains(sentence), "{refused:?}");
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let control = installation.run(&serve)?;
    assert!(control.stderr.contains("set database.url"), "{control:?}");
    assert!(!control.stderr.contains("data_key"), "{control:?}");
    Ok(())
}

#[test]
fn a_folder_that_another_process_has() -> Result<()> {
    let installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let outcome = installation.run(&["up", "--port", &free_port().to_string()])?;
    let process = format!("(process {})", urr.pid());
    outcome.refused_with(&["./data is in use", &process, "--data"]);
    let outcome = installation.run(&["migrate"])?;
    outcome.refused_with(&["./data is in use", &process, "--data"]);
    assert_eq!(urr.get("/health")?.status, 200, "the first one is not disturbed");
    Ok(())
}

#[test]
fn a_file_where_the_folder_should_be() -> Result<()> {
    let installation = Installation::new()?;
    fs::write(installation.path("notes"), "of a user")?;
    for data in ["notes", "notes/data"] {
        let outcome = installation.run(&["up", "--data", data])?;
        outcome.refused_with(&[&format!("the data folder {data} cannot be written to"), "--data"]);
        let doctor = installation.run(&["doctor", "--data", data])?;
        assert!(!doctor.status.success());
        let problem = format!("PROBLEM  the data folder {data} cannot be made: notes is a file");
        assert!(doctor.stdout.contains(&problem), "{doctor:?}");
    }
    assert_eq!(fs::read_to_string(installation.path("notes"))?, "of a user");
    Ok(())
}

#[test]
fn a_folder_that_may_not_be_written_to() -> Result<()> {
    let outcome = up_on_tmpfs("ro", "true")?;
    outcome.refused_with(&["the data folder disk/data cannot be written to: Read-only", "--data"]);
    Ok(())
}

#[test]
fn a_disk_that_is_full() -> Result<()> {
    let expected = ["the disk of the data folder disk/data is full; make room", "--data"];
    up_on_tmpfs("size=2m", "true")?.refused_with(&expected);
    // Not even the secrets have room.
    let fill = "! head -c 1000000 /dev/zero > disk/filler 2> /dev/null";
    up_on_tmpfs("size=64k", fill)?.refused_with(&expected);
    Ok(())
}

/// `urr up` on a file system of its own, which is gone with the process.
fn up_on_tmpfs(options: &str, prepare: &str) -> Result<CommandOutput> {
    let installation = Installation::new()?;
    fs::create_dir(installation.path("disk"))?;
    let urr = env!("CARGO_BIN_EXE_urr");
    let script = format!(
        "mount -t tmpfs -o {options} none disk && {prepare} && exec {urr} up --data disk/data"
    );
    let mut command = installation.command_of("unshare");
    command.args(unshare_arguments()?).args(["sh", "-c", &script]);
    Process::start(command)?.await_end()
}

/// Mounting needs a mount namespace: root's own, or that of a user who is root in it.
fn unshare_arguments() -> Result<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [&["--mount"], &["--mount", "--user", "--map-root-user"]];
    for way in WAYS {
        let tried = Command::new("unshare").args(way).arg("true").output()?;
        if tried.status.success() {
            return Ok(way);
        }
    }
    bail!("`unshare --mount` is not permitted here, as root or with a user namespace")
}

#[test]
fn a_configuration_with_several_mistakes() -> Result<()> {
    let mut installation = Installation::new()?;
    fs::create_dir(installation.path("data"))?;
    fs::write(installation.path("data/urr.toml"), "[server]\nprot = 1\n[seats]\nseats = true\n")?;
    installation.set("PORT", "http");
    installation.set("QUEUE_THRESHOLD", "-1");
    let outcome = installation.run(&["up"])?;
    assert_eq!(outcome.status.code(), Some(1));
    let stderr = &outcome.stderr;
    assert!(stderr.starts_with("urr: the configuration is not usable:\n- "), "{stderr}");
    assert_eq!(stderr.lines().count(), 5, "{stderr}");
    for part in ["server.prot", "seats.seats", "PORT", "QUEUE_THRESHOLD"] {
        assert!(stderr.contains(part), "{part} is not in {stderr}");
    }
    assert!(!installation.path("data/secrets.toml").exists(), "nothing was done");
    Ok(())
}

#[test]
fn terms_that_cannot_be_read_and_terms_that_changed_without_a_new_version() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.set("URR_AUTH_TERMS_DIR", "terms");
    let refused = |installation: &Installation, parts: &[&str]| -> Result<()> {
        let port = free_port().to_string();
        let outcome = installation.run(&["up", "--port", &port])?;
        assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
        let last = outcome.stderr.lines().last().unwrap_or_default();
        let is_told = parts.iter().all(|part| last.contains(part));
        assert!(last.starts_with("urr: ") && is_told, "{parts:?}: {outcome:?}");
        Ok(())
    };
    refused(&installation, &["auth.terms_dir", "terms/service.ko.txt cannot be read"])?;
    let doctor = installation.run(&["doctor"])?;
    assert!(doctor.stdout.contains("PROBLEM  auth.terms_dir"), "{doctor:?}");
    fs::create_dir(installation.path("terms"))?;
    for kind in ["service", "privacy", "marketing"] {
        for language in ["ko", "en"] {
            let name = format!("terms/{kind}.{language}.txt");
            fs::write(installation.path(&name), format!("Our {kind} terms."))?;
        }
    }
    let privacy = |urr: &Running| -> Result<(String, bool)> {
        let shown = urr.get("/api/auth/terms/PRIVACY")?.json()?;
        let text = shown["text"].as_str().unwrap_or_default().to_owned();
        Ok((text, shown["isExample"] == true))
    };
    let urr = installation.up(&[])?;
    assert_eq!(privacy(&urr)?, ("Our privacy terms.".to_owned(), false));
    urr.stop("TERM")?.succeeded()?;

    fs::write(installation.path("terms/privacy.en.txt"), "Something else.")?;
    let sentence = "the PRIVACY terms were shown in version 2026-11 with another text";
    refused(&installation, &[sentence, "auth.privacy_terms_version"])?;
    // The control: the same text in a new version.
    installation.set("URR_AUTH_PRIVACY_TERMS_VERSION", "2026-12");
    let urr = installation.up(&[])?;
    assert_eq!(privacy(&urr)?, ("Something else.".to_owned(), false));
    let former = urr.get("/api/auth/terms/PRIVACY?version=2026-11")?.json()?;
    assert_eq!(former["text"], "Our privacy terms.");
    Ok(())
}

#[test]
fn a_command_line_with_a_mistake() -> Result<()> {
    let installation = Installation::new()?;
    for (arguments, parts) in [
        (vec!["up", "--prot", "1"], ["unexpected argument '--prot'", "'--port'"]),
        (vec!["upp"], ["unrecognized subcommand 'upp'", "'up'"]),
        (vec!["serve", "--roles", "catalog,shop"], ["\"shop\" is not a role", "gateway, auth"]),
        (vec!["serve"], ["--roles <A,B>", "required"]),
    ] {
        let outcome = installation.run(&arguments)?;
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        for part in parts {
            assert!(outcome.stderr.contains(part), "{part:?} is not in {}", outcome.stderr);
        }
    }
    assert!(fs::read_dir(installation.path(""))?.next().is_none(), "nothing was made");
    Ok(())
}

#[test]
fn services_without_their_secrets_and_servers() -> Result<()> {
    let mut installation = Installation::new()?;
    let outcome = installation.run(&["serve", "--roles", "auth,queue,ticket"])?;
    assert_eq!(outcome.status.code(), Some(1));
    for (name, _) in crate::process::SHARED_SECRETS {
        assert!(outcome.stderr.contains(name), "{name} is not in {}", outcome.stderr);
    }
    let outcome = installation.run(&["serve", "--roles", "catalog"])?;
    assert!(outcome.stderr.contains("INTERNAL_API_TOKEN"), "{outcome:?}");
    assert!(!outcome.stderr.contains("JWT_SECRET"), "it does not need it: {outcome:?}");

    installation.share_secrets();
    let outcome = installation.run(&["serve", "--roles", "catalog"])?;
    outcome.refused_with(&["needs PostgreSQL", "database.url", "`urr up`"]);

    // Nothing listens there.
    let nowhere = format!("127.0.0.1:{}", free_port());
    installation.set("URR_DATABASE_URL", &format!("postgres://urr:canary@{nowhere}/urr"));
    let outcome = installation.run(&["serve", "--roles", "catalog"])?;
    outcome.refused_with(&["needs Kafka", "KAFKA_BOOTSTRAP_SERVERS", "`urr up`"]);
    assert!(!installation.path("data").exists(), "nothing is stored in a folder");

    // It waits for the database as long as it may, and does not send people to the migrations.
    installation.set("KAFKA_BOOTSTRAP_SERVERS", &format!("127.0.0.1:{}", free_port()));
    installation.set("URR_DATABASE_START_WAIT_SECONDS", "2");
    let begun = Instant::now();
    let outcome = installation.run(&["serve", "--roles", "catalog"])?;
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    let last = outcome.stderr.lines().last().unwrap_or_default();
    for part in ["urr: the database of the catalog service does not answer", "127.0.0.1", "2 s"] {
        assert!(last.contains(part), "{part:?} is not in {last}");
    }
    assert!(!outcome.stderr.contains("migrate") && !outcome.stderr.contains("canary"), "{last}");
    Ok(())
}
