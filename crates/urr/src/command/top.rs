//! `urr top`: what a running system does, on a terminal, once a second.

mod figures;
mod scrape;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::http::HeaderMap;
use urr_kernel::Clock;
use urr_outbound::Outbound;

use self::figures::render;
use self::scrape::Scrape;
use super::{block_on, print_line};
use crate::config::Config;
use crate::data_folder;
use crate::role::ProcessRole;

const TIMEOUT: Duration = Duration::from_secs(3);
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// Where metrics are; may be given several times [default: the running `urr up` of the data
    /// folder, or else all services of the configuration]
    #[arg(long, value_name = "URL")]
    url: Vec<String>,
    /// Print the figures of one second and end
    #[arg(long)]
    once: bool,
}

pub fn run(config: &Config, args: &TopArgs) -> Result<()> {
    let urls = urls(config, &args.url)?;
    block_on(async {
        let client =
            Outbound::to_own_processes(urr_tls::client_config(&config.internal.client_tls())?);
        let mut before = scrape_all(&client, &urls).await?;
        let mut screen = Screen { drawn: 0, is_terminal: io::stdout().is_terminal() };
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = scrape_all(&client, &urls).await?;
            let time = Clock::System.now().strftime("%H:%M:%S UTC").to_string();
            let head = format!("URR  {}  {time}", urls.join(" "));
            screen.show(&format!("{head}\n\n{}", render(&before, &now)))?;
            if args.once || !screen.is_terminal {
                return Ok(());
            }
            before = now;
        }
    })
}

fn urls(config: &Config, given: &[String]) -> Result<Vec<String>> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    if let Some(url) = data_folder::internal_url(&config.data.dir).context("the data folder")? {
        return Ok(vec![url]);
    }
    let configured = ProcessRole::SERVICES.into_iter().filter_map(|r| config.services.url(r));
    let urls: Vec<String> = configured.map(str::to_owned).collect();
    if urls.is_empty() {
        bail!(
            "no `urr up` runs on the data folder {}; choose another one with --data, or name the \
             internal listeners with --url",
            config.data.dir.display()
        );
    }
    Ok(urls)
}

async fn scrape_all(client: &Outbound, urls: &[String]) -> Result<Scrape> {
    let mut all = Scrape::default();
    for url in urls {
        let url = format!("{}/metrics", url.trim_end_matches('/'));
        let answer = client.get_json(&url, HeaderMap::new(), TIMEOUT).await;
        let answer = answer.with_context(|| format!("{url} does not answer"))?;
        ensure!(answer.status.is_success(), "{url} answers with {}", answer.status);
        all.add(std::str::from_utf8(&answer.body).context("metrics are text")?);
    }
    Ok(all)
}

/// Redrawn in place on a terminal.
struct Screen {
    is_terminal: bool,
    drawn: usize,
}

impl Screen {
    fn show(&mut self, text: &str) -> Result<()> {
        if !self.is_terminal {
            return print_line(text);
        }
        // Up to the first line of the last picture, over it, and the rest is cleared.
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        self.drawn = text.lines().count();
        let lines: String = text.lines().map(|line| format!("\x1b[2K{line}\n")).collect();
        let mut out = io::stdout();
        let written = write!(out, "{up}{lines}\x1b[J").and_then(|()| out.flush());
        written.context("the terminal")
    }
}
