//! `urr top`: what a running system does, on a terminal, once a second.

mod figures;
mod scrape;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use urr_kernel::Clock;
use urr_service::{HttpClient, ServiceUrls, get_from_every_address};

use self::figures::render;
use self::scrape::Scrape;
use super::{block_on, print_line};
use crate::compose::own_client;
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
    let urls: ServiceUrls = urls(config, &args.url)?.join(",").parse()?;
    let client = own_client(config)?;
    block_on(async {
        let (mut before, _) = scrape_all(&client, &urls).await?;
        let mut screen = Screen { drawn: 0, is_terminal: io::stdout().is_terminal() };
        loop {
            tokio::time::sleep(INTERVAL).await;
            let (now, processes) = scrape_all(&client, &urls).await?;
            let time = Clock::System.now().strftime("%H:%M:%S UTC").to_string();
            let head = format!("URR  {time}  {processes}");
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
    let configured = ProcessRole::ALL.into_iter().flat_map(|role| config.services.urls(role));
    let urls: Vec<String> = configured.cloned().collect();
    if urls.is_empty() {
        bail!(
            "no `urr up` runs on the data folder {}; choose another one with --data, or name the \
             internal listeners with --url",
            config.data.dir.display()
        );
    }
    Ok(urls)
}

/// The figures of all processes that answer, and how many of how many did.
async fn scrape_all(client: &HttpClient, urls: &ServiceUrls) -> Result<(Scrape, String)> {
    let (mut all, mut silent) = (Scrape::default(), Vec::new());
    let answers = get_from_every_address(urls, client, "/metrics", TIMEOUT).await?;
    let processes = answers.len();
    for (address, answer) in answers {
        match answer {
            Ok(text) => all.add(std::str::from_utf8(&text).context("metrics are text")?),
            Err(problem) => silent.push(format!("{address} does not answer: {problem}")),
        }
    }
    if silent.len() == processes {
        bail!("{}", silent.join("; "));
    }
    let answered = processes - silent.len();
    let mut told = vec![format!("{answered} of {processes} processes")];
    told.extend(silent);
    Ok((all, told.join("\n")))
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
