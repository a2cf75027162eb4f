//! `urr health`: whether the process that the configuration describes answers and is ready. For
//! containers, which have no other program to ask with.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use axum::http::HeaderMap;
use urr_outbound::Outbound;
use urr_tls::{ClientTls, ServerCheck};

use super::{block_on, print_line};
use crate::config::Config;

const TIMEOUT: Duration = Duration::from_secs(3);

/// The ports that may be open, the likelier first: `urr worker` has only the internal one.
fn ports(config: &Config) -> impl Iterator<Item = u16> {
    let server = &config.server;
    let internal = Some(server.management_port).filter(|port| *port != 0);
    std::iter::once(server.port).chain(internal)
}

/// How the listener may speak, the likelier first.
fn schemes(config: &Config) -> &'static [&'static str] {
    match (config.server.identity(), config.internal.identity()) {
        (Some(_), Some(_)) => &["https"],
        (None, None) => &["http"],
        (Some(_), None) | (None, Some(_)) => &["https", "http"],
    }
}

pub fn run(config: &Config) -> Result<()> {
    let host = match config.server.host {
        host if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        host => host,
    };
    let (url, answer) = block_on(async {
        // Nothing is sent, and the answer comes from this machine: its name need not be verified.
        let tls = ClientTls { check: ServerCheck::Nothing, ..config.internal.client_tls() };
        let client = Outbound::to_own_processes(urr_tls::client_config(&tls)?);
        let mut asked = Err(anyhow!("nobody was asked"));
        // Whether this is the public listener depends on the roles, which are not known here.
        let places = ports(config).map(|port| SocketAddr::new(host, port));
        for (place, scheme) in places.flat_map(|it| schemes(config).iter().map(move |s| (it, s))) {
            let url = format!("{scheme}://{place}/health/ready");
            asked = match client.get_json(&url, HeaderMap::new(), TIMEOUT).await {
                Ok(answer) => return Ok((url, answer)),
                Err(error) => Err(error).with_context(|| format!("{url} does not answer")),
            };
        }
        asked
    })?;
    let said = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status.is_success(), "{url} answers with {}: {said}", answer.status);
    print_line(&said)
}
