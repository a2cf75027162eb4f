//! `urr health`: whether the process that the configuration describes answers and is ready. For
//! containers, which have no other program to ask with.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use urr_outbound::Outbound;

use super::{block_on, print_line};
use crate::config::Config;

const TIMEOUT: Duration = Duration::from_secs(3);

pub fn run(config: &Config) -> Result<()> {
    let host = match config.server.host {
        host if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        host => host,
    };
    let url = format!("http://{}/health/ready", SocketAddr::new(host, config.server.port));
    let answer = block_on(async {
        let asked = Outbound::to_own_servers().get_json(&url, HeaderMap::new(), TIMEOUT).await;
        asked.with_context(|| format!("{url} does not answer"))
    })?;
    let said = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status.is_success(), "{url} answers with {}: {said}", answer.status);
    print_line(&said)
}
