//! `urr solve`: computes the proof of work that registering and logging in ask for.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::http::HeaderMap;
use serde::Deserialize;
use urr_auth::{PROOF_DIFFICULTY_MAX, solve_challenge};
use urr_outbound::Outbound;

use super::{block_on, print_line};
use crate::config::Config;
use crate::data_folder;

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
pub(super) struct ProofChallenge {
    method: String,
    challenge: Option<String>,
    difficulty: Option<u8>,
}

/// Prints the value of the header `x-proof-of-work`; an empty line if no proof is needed.
pub fn run(config: &Config, purpose: &str, url: Option<String>) -> Result<()> {
    let running = || data_folder::public_url(&config.data.dir).ok().flatten();
    let site = url.or_else(running).unwrap_or_else(|| site_of(config));
    let url = format!("{}/api/auth/challenge?for={purpose}", site.trim_end_matches('/'));
    let answer = block_on(async {
        let asked = Outbound::new().get_json(&url, HeaderMap::new(), TIMEOUT).await;
        asked.with_context(|| format!("{site} does not answer; is URR running there?"))
    })?;
    ensure!(answer.status.is_success(), "{url} answers with status {}", answer.status);
    let challenge: ProofChallenge = answer.json().with_context(|| format!("{url} is no URR"))?;
    print_line(&solve(challenge)?)
}

pub(super) fn solve(task: ProofChallenge) -> Result<String> {
    match (task.method.as_str(), task.challenge, task.difficulty) {
        ("none", _, _) => Ok(String::new()),
        ("proof-of-work", Some(challenge), Some(difficulty)) => {
            ensure!(difficulty <= PROOF_DIFFICULTY_MAX, "{difficulty} bits would take too long");
            Ok(solve_challenge(&challenge, difficulty))
        }
        (other, _, _) => bail!("{other} needs a person with a browser"),
    }
}

/// The public listener in the configuration, as this machine reaches it: for a process that has no
/// data folder.
fn site_of(config: &Config) -> String {
    let (host, port) = (config.server.host, config.server.port);
    match host {
        host if host.is_unspecified() => format!("http://127.0.0.1:{port}"),
        host => format!("http://{}", std::net::SocketAddr::new(host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(method: &str, difficulty: u8) -> ProofChallenge {
        let challenge = Some("urr".to_owned());
        ProofChallenge { method: method.to_owned(), challenge, difficulty: Some(difficulty) }
    }

    #[test]
    fn the_work_is_done_and_nothing_else_is_pretended() {
        assert_eq!(solve(task("proof-of-work", 8)).unwrap(), "urr:15");
        assert_eq!(solve(task("none", 8)).unwrap(), "");
        for (method, difficulty) in [("turnstile", 8), ("proof-of-work", 60)] {
            assert!(solve(task(method, difficulty)).is_err(), "{method} {difficulty}");
        }
    }
}
