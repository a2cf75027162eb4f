//! `urr queue`: the waiting rooms of a running system, shown and changed from a terminal.

use std::fs;

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use serde_json::Value;
use urr_kernel::{Secret, Uuid};
use urr_service::{Caller, Identity, InternalCredentials, UserRole};

use crate::http_client::{Reply, request};
use crate::process::{CommandOutput, INTERNAL_TOKEN, Installation, eventually, free_port};

/// Whose example is a whole draw.
const SPECIFICATION: &str = include_str!("../../../../docs/DRAW.md");

/// An installation that runs, as an operator has it.
struct Shop {
    installation: Installation,
    private_port: u16,
}

impl Shop {
    fn queue(&self, arguments: &[&str]) -> Result<CommandOutput> {
        self.installation.run(&[&["queue"], arguments].concat())
    }

    fn json(&self, arguments: &[&str]) -> Result<Value> {
        let outcome = self.queue(&[arguments, &["--json"]].concat())?.succeeded()?;
        serde_json::from_str(&outcome.stdout).with_context(|| format!("{outcome:?}"))
    }

    /// What the line of `urr queue` says that begins with `name`.
    fn line(&self, arguments: &[&str], name: &str) -> Result<String> {
        let outcome = self.queue(arguments)?.succeeded()?;
        let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(name));
        Ok(line.with_context(|| format!("{name} in {}", outcome.stdout))?.trim().to_owned())
    }

    /// An event of the demo data that is on sale for everybody.
    fn event_on_sale(&self) -> Result<String> {
        let mut found = None;
        eventually("an event of the demo data is on sale", || {
            let rooms = self.json(&["status"])?;
            let rooms = rooms["rooms"].as_array().context("a list")?.clone();
            let is_opera = |room: &&Value| {
                let title = room["title"].as_str().unwrap_or_default();
                title.contains("Opera Night") && room["phase"] == "open"
            };
            let id = rooms.iter().find(is_opera).and_then(|room| room["eventId"].as_str());
            found = id.map(str::to_owned);
            Ok(found.is_some())
        })?;
        found.context("it was found")
    }

    /// A fan asks for a place, as the gateway would for them.
    fn check(&self, event: &str, fan: u128) -> Result<Value> {
        let reply = self.as_gateway(fan, "POST", &format!("/api/queue/check/{event}"))?;
        ensure!(reply.status == 200, "{reply:?}");
        reply.json()
    }

    fn as_gateway(&self, fan: u128, method: &str, path: &str) -> Result<Reply> {
        let credentials = InternalCredentials::from_root(&Secret::new(INTERNAL_TOKEN));
        let mut headers = HeaderMap::new();
        let user_id = Uuid::from_u128(fan);
        Identity { user_id, email: None, role: UserRole::User }.write(&mut headers);
        headers.insert("x-urr-caller", Caller::Gateway.as_str().parse()?);
        let credential = credentials.for_call(Caller::Gateway, "queue");
        headers.insert("x-urr-credential", credential.expose().parse()?);
        request(self.private_port, method, path, &headers, "")
    }
}

/// `urr up` is enough: the address of its internal listener is in the data folder.
pub fn private_port(installation: &Installation) -> Result<u16> {
    let url = fs::read_to_string(installation.path("data/internal-url"))?;
    let port = url.strip_prefix("http://127.0.0.1:").with_context(|| url.clone())?;
    Ok(port.trim().parse()?)
}

#[test]
fn an_operator_watches_and_steers_a_room_of_a_running_system() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let urr = installation.up(&[])?;
    let private_port = private_port(&installation)?;
    let shop = Shop { installation, private_port };
    let event = shop.event_on_sale()?;
    let event = event.as_str();
    let table = shop.queue(&["status"])?.succeeded()?.stdout;
    assert!(table.starts_with("EVENT ") && table.contains(event), "{table}");

    assert_eq!(shop.check(event, 1)?["status"], "active");
    assert_eq!(shop.line(&["status", event], "in ")?, "1 of 1000");
    assert_eq!(shop.line(&["set", event, "--threshold", "1"], "threshold ")?, "1 (event)");
    // At once, for the next visitor.
    assert_eq!(shop.check(event, 2)?["status"], "queued");
    assert_eq!(shop.line(&["status", event], "waiting ")?, "1");
    assert_eq!(shop.line(&["pause", event], "state ")?, "paused");
    let set = ["set", event, "--threshold", "default", "--rate", "5", "--autopilot", "on"];
    let room = &shop.json(&set)?["room"];
    assert_eq!(
        (&room["settings"]["threshold"]["source"], &room["waiting"]),
        (&"default".into(), &1.into())
    );
    assert_eq!(shop.line(&["message", event, "곧 이어집니다"], "message ")?, "곧 이어집니다");
    assert_eq!(shop.check(event, 2)?["message"], "곧 이어집니다");
    assert_eq!(shop.line(&["message", event, "--remove"], "message ")?, "-");
    assert_eq!(shop.line(&["resume", event], "state ")?, "open");
    eventually("the one who waited is let in", || {
        Ok(shop.json(&["status", event])?["room"]["active"] == 2)
    })?;

    shop.queue(&["clear", event])?.refused_with(&["the slots of 2", "--yes"]);
    let cleared = shop.queue(&["clear", event, "--yes"])?.succeeded()?.stdout;
    assert!(cleared.contains("0 who waited") && cleared.contains("slots of 2"), "{cleared}");
    let status = shop.as_gateway(1, "GET", &format!("/api/queue/status/{event}"))?;
    assert_eq!(status.json()?["status"], "not_in_queue");

    refusals(&shop, event)?;
    urr.stop("TERM")?.succeeded()?;
    shop.queue(&["status"])?.refused_with(&["no `urr up` runs on the data folder", "--url"]);
    assert!(!shop.installation.path("data/internal-url").exists(), "it was taken away");
    Ok(())
}

fn refusals(shop: &Shop, event: &str) -> Result<()> {
    let nobody = Uuid::from_u128(7).to_string();
    for arguments in [vec!["status", &nobody], vec!["pause", &nobody], vec!["clear", &nobody]] {
        shop.queue(&arguments)?.refused_with(&["There is no such event"]);
    }
    let wrong = shop.queue(&["set", event, "--threshold", "0"])?;
    wrong.refused_with(&["The threshold is a number from 1 to"]);
    let late = shop.queue(&["set", event, "--opening", "lottery"])?;
    late.refused_with(&["Users may join already"]);
    let url = format!("http://127.0.0.1:{}", free_port());
    shop.queue(&["status", "--url", &url])?.refused_with(&["nothing answers at", &url]);
    // From another folder, as in a cluster: the secret is enough.
    let url = format!("http://127.0.0.1:{}", shop.private_port);
    let mut elsewhere = Installation::new()?;
    elsewhere.share_secrets();
    let there = elsewhere.run(&["queue", "status", event, "--url", &url])?.succeeded()?;
    elsewhere.set("QUEUE_SERVICE_URL", &url);
    let named = elsewhere.run(&["queue", "status", event])?.succeeded()?;
    for (name, outcome) in [("--url", there), ("QUEUE_SERVICE_URL", named)] {
        assert!(outcome.stdout.contains(event), "{name}: {outcome:?}");
    }
    let mut stranger = Installation::new()?;
    stranger.set("INTERNAL_API_TOKEN", "another secret, which that installation does not have");
    let outcome = stranger.run(&["queue", "status", "--url", &url])?;
    outcome.refused_with(&["does not know our credential", "INTERNAL_API_TOKEN"]);
    Ok(())
}

#[test]
fn where_nothing_runs_the_command_says_so_and_makes_nothing() -> Result<()> {
    let installation = Installation::new()?;
    let nothing = installation.run(&["queue", "status"])?;
    nothing.refused_with(&["no `urr up` runs on the data folder ./data", "--data", "--url"]);
    assert!(!installation.path("data").exists(), "looking makes nothing");
    let keyless = installation.run(&["queue", "status", "--url", "http://127.0.0.1:1"])?;
    keyless.refused_with(&["INTERNAL_API_TOKEN"]);
    for wrong in [vec!["queue", "set", "x"], vec!["queue", "status", "x"], vec!["queue"]] {
        assert_eq!(installation.run(&wrong)?.status.code(), Some(2), "{wrong:?}");
    }
    Ok(())
}

#[test]
fn a_draw_is_checked_from_its_file_alone() -> Result<()> {
    let installation = Installation::new()?;
    let (_, example) = SPECIFICATION.split_once("```text\n").context("an example")?;
    let (example, _) = example.split_once("```").context("the end of the example")?;
    fs::write(installation.path("draw.txt"), example)?;
    let verified = installation.run(&["queue", "verify-draw", "draw.txt"])?.succeeded()?;
    assert!(verified.stdout.contains("is as it should be"), "{verified:?}");
    let first = "01990000-0000-7000-8000-0000000000a1";
    let verify =
        |user: &str| installation.run(&["queue", "verify-draw", "draw.txt", "--user", user]);
    let ranked = verify(first)?.succeeded()?.stdout;
    assert!(ranked.contains(&format!("User {first} was drawn as number 1.")), "{ranked}");
    let absent = verify(&Uuid::from_u128(7).to_string())?;
    assert!(absent.stderr.contains("did not take part"), "{absent:?}");

    // Two who were drawn one after the other change places.
    let mut lines: Vec<&str> = example.lines().collect();
    let last = lines.len() - 1;
    lines.swap(last, last - 1);
    fs::write(installation.path("swapped.txt"), lines.join("\n") + "\n")?;
    let swapped = installation.run(&["queue", "verify-draw", "swapped.txt"])?;
    swapped.refused_with(&["swapped.txt does not show a fair draw", "does not stand where"]);
    installation.run(&["queue", "verify-draw", "missing.txt"])?.refused_with(&["missing.txt"]);
    assert!(!installation.path("data").exists(), "nothing needs to run");
    Ok(())
}
