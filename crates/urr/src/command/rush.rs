//! `urr rush`: rehearses a sale with virtual fans.

mod chaos;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use serde_json::Value;
use urr_kernel::{Clock, IdSource, Uuid};
use urr_rush::{
    Arrivals, Behaviour, CARDS, Expectation, FanAccount, LiveFigures, RushEnding, RushPlan,
    RushReport, Site, compare, read_accounts, register_fans, to_html, write_accounts,
};
use urr_service::UserRole;
use urr_service::token::{ACCESS, AccessClaims, TokenFacts, TokenKey};

use super::run::StopSignals;
use super::solve::solve;
use super::{CommandNotRun, block_on, print_line};
use crate::config::Config;
use crate::data_folder;

/// Without a terminal a line is printed this often.
const LINE_EVERY_SECONDS: u64 = 5;
const FANS_PER_ADDRESS: u32 = 40;
/// Without an own limit, fans of few addresses have so many connections together.
const CONNECTIONS: usize = 512;
/// A process answers 16,384 connections.
const CONNECTIONS_MAX: u16 = 16_000;
/// Only a loopback address can be reached from many addresses.
const ONE_ADDRESS: &str = "All fans come from the address of this machine. The limits of the site \
    per address defer them, unless its gateway.rate_limit_users_per_address is raised.";

#[derive(Debug, Subcommand)]
pub enum RushCommand {
    /// Make accounts for virtual fans: they are logged in and can be used again and again
    ///
    /// Needs the secrets of the system that is rehearsed, and writes nothing to its database. With
    /// --url the fans register there as people do: they are logged in for half an hour.
    Prepare {
        /// How many
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        fans: u32,
        /// How long their logins are valid
        #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=720))]
        hours: u64,
        /// Register at this site instead
        #[arg(long, conflicts_with = "hours")]
        url: Option<String>,
        /// The file for the accounts; whoever has it can act as these fans
        #[arg(long, value_name = "FILE", default_value = "rush-fans.jsonl")]
        accounts: PathBuf,
    },
    /// Let the fans come, and report what happened to them
    ///
    /// Use a copy of the real system or an event of its own: seats are really sold, with the sandbox
    /// as payment provider. Ctrl-C ends it early, with a report. Exit code 1: an expectation was not
    /// met, or it was interrupted. 2: it could not begin.
    Run(Box<RunArgs>),
    /// Let the fans come while the program is killed, stopped and cut off; then audit everything
    ///
    /// It starts a program of its own, on a folder of its own. Exit code 1: something does not
    /// agree afterwards. 2: it could not begin.
    Chaos(Box<chaos::ChaosArgs>),
    /// Print two reports side by side
    Compare {
        /// The JSON file of a report
        before: PathBuf,
        after: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The event that is sold
    #[arg(long, value_name = "ID")]
    event: Uuid,
    /// How many fans come
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    fans: u32,
    /// The site [default: the `urr up` that runs on the data folder]
    #[arg(long)]
    url: Option<String>,
    #[arg(long, value_name = "FILE", default_value = "rush-fans.jsonl")]
    accounts: PathBuf,
    /// All come within so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    within: f64,
    /// They come one by one, so many per second
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "within")]
    rate: Option<f64>,
    /// They come as in this file: a line per second, with the arrivals of that second
    #[arg(long, value_name = "FILE", conflicts_with_all = ["within", "rate"])]
    curve: Option<PathBuf>,
    /// The same seed repeats the decisions of all fans
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The share of programs that break the rules
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    programs: f64,
    /// How long fans choose seats, on average
    #[arg(long, value_name = "SECONDS", default_value_t = 8.0)]
    choosing: f64,
    /// How long fans take to pay, on average
    #[arg(long, value_name = "SECONDS", default_value_t = 12.0)]
    paying: f64,
    /// A fan tries again so often after an error of the system
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    tries: u32,
    /// The share of fans who sell their tickets to other fans
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    transfers: f64,
    /// The share of fans whose card is slow, loses its answer or charges something else
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    odd_cards: f64,
    /// Which cards of the sandbox these are; may be repeated [default: all whose payments end without
    /// an operator]
    #[arg(long = "card", value_name = "NAME", value_parser = PossibleValuesParser::new(CARDS))]
    cards: Vec<String>,
    /// The share of fans who read the crowd document while they wait
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    crowd_readers: f64,
    /// The most connections at once, of all fans together, shared out evenly among the addresses; a fan
    /// who finds those of their address in use waits, and the wait is part of the latency [default: 512,
    /// or two for every address if that is more]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(CONNECTIONS_MAX)))]
    connections: Option<u32>,
    /// From how many loopback addresses the fans come, if the site is on this machine; never more than
    /// there are connections [default: one for every 40 fans]
    #[arg(long)]
    addresses: Option<u16>,
    /// Ends after so many minutes, whatever is left
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    max_minutes: u64,
    /// Ends when the event is sold out and nobody inside can buy any more; without it, the fans who
    /// wait then learn of it and leave, as people do
    #[arg(long)]
    until_sold_out: bool,
    /// What must come true, for example `p99.check<200ms` or `failed=0`; may be repeated
    #[arg(long)]
    expect: Vec<Expectation>,
    /// The report is written to this name with .html and .json
    #[arg(long, value_name = "NAME", default_value = "rush-report")]
    report: PathBuf,
}

pub fn run(config: &Config, command: RushCommand) -> Result<()> {
    match command {
        RushCommand::Prepare { fans, url: Some(url), accounts, .. } => {
            register(fans, &url, &accounts).map_err(CommandNotRun::wrap)
        }
        RushCommand::Prepare { fans, hours, accounts, .. } => {
            prepare(config, fans, hours, &accounts).map_err(CommandNotRun::wrap)
        }
        RushCommand::Run(args) => rehearse(config, *args),
        RushCommand::Chaos(args) => chaos::run(&args),
        RushCommand::Compare { before, after } => {
            let read = |path: &Path| read_report(path).map_err(CommandNotRun::wrap);
            print_line(&compare(&read(&before)?, &read(&after)?))
        }
    }
}

fn prepare(config: &Config, fans: u32, hours: u64, path: &Path) -> Result<()> {
    let maker = AccountMaker::new(config, hours)?;
    write_accounts(path, (0..fans).map(|_| maker.account(UserRole::User)))?;
    print_line(&format!("{fans} fans in {}, logged in for {hours} hours.", path.display()))
}

fn register(fans: u32, url: &str, path: &Path) -> Result<()> {
    let site = Site::parse(url)?;
    let solve = |challenge: &Value| solve(serde_json::from_value(challenge.clone())?);
    let accounts = block_on(register_fans(&site, fans, solve))?;
    write_accounts(path, accounts.into_iter())?;
    print_line(&format!("{fans} fans in {}, registered at {url}.", path.display()))
}

/// Makes accounts that are logged in, by the secrets of the system.
pub(super) struct AccountMaker {
    key: TokenKey,
    ids: IdSource,
    lifetime: Duration,
}

impl AccountMaker {
    pub(super) fn new(config: &Config, hours: u64) -> Result<AccountMaker> {
        ensure!(
            !config.auth.jwt_secret.expose().is_empty(),
            "there are no secrets in {}; has `urr up` run there?",
            config.data.dir.display()
        );
        let ids = IdSource::from_system_randomness(Clock::System);
        let key = TokenKey::new(&config.auth.jwt_key());
        Ok(AccountMaker { key, ids, lifetime: Duration::from_hours(hours) })
    }

    pub(super) fn account(&self, role: UserRole) -> FanAccount {
        let ids = &self.ids;
        let (user_id, id, family_id) = (ids.next_id(), ids.next_id(), ids.next_id());
        let (subject, lifetime) = (user_id.to_string(), self.lifetime);
        let facts = TokenFacts { subject, id, issued_at: Clock::System.now(), lifetime };
        let email = format!("rush-{user_id}@example.com");
        let claims = AccessClaims { email, role, family_id, email_verified: true };
        FanAccount { user_id, token: self.key.sign(ACCESS, &facts, &claims) }
    }
}

fn rehearse(config: &Config, args: RunArgs) -> Result<()> {
    let plan = plan(config, &args).map_err(CommandNotRun::wrap)?;
    if !plan.site.is_loopback() {
        print_line(ONE_ADDRESS)?;
    }
    let mut screen = Screen::new();
    let report = block_on(async {
        let mut signals = StopSignals::listen()?;
        urr_rush::run(plan, signals.next(), |figures| screen.show(figures)).await
    });
    let mut report = report.map_err(CommandNotRun::wrap)?;
    report.judge(&args.expect);
    let (html, json) = (args.report.with_extension("html"), args.report.with_extension("json"));
    fs::write(&html, to_html(&report)).with_context(|| format!("{}", html.display()))?;
    fs::write(&json, serde_json::to_vec(&report)?)
        .with_context(|| format!("{}", json.display()))?;
    print_line(&report.summary())?;
    print_line(&format!("report: {} and {}", html.display(), json.display()))?;
    ensure!(report.ended != RushEnding::Interrupted, "the run was interrupted");
    ensure!(report.has_passed(), "an expectation was not met");
    Ok(())
}

/// Limits per address suit a company or a campus; all fans behind few addresses would meet them.
fn addresses_for(fans: u32) -> u16 {
    u16::try_from(fans.div_ceil(FANS_PER_ADDRESS)).unwrap_or(u16::MAX)
}

/// Two for every address, so that a slow answer does not hold up all fans of an address.
fn connections_for(addresses: u16) -> usize {
    (2 * usize::from(addresses)).clamp(CONNECTIONS, usize::from(CONNECTIONS_MAX))
}

fn plan(config: &Config, args: &RunArgs) -> Result<RushPlan> {
    for (name, share) in
        [("--within", args.within), ("--choosing", args.choosing), ("--paying", args.paying)]
    {
        ensure!((0.0..=86_400.0).contains(&share), "{name} is between 0 and 86400 seconds");
    }
    let shares = [
        ("--programs", args.programs),
        ("--transfers", args.transfers),
        ("--odd-cards", args.odd_cards),
        ("--crowd-readers", args.crowd_readers),
    ];
    for (name, share) in shares {
        ensure!((0.0..=1.0).contains(&share), "{name} is between 0 and 1");
    }
    let arrivals = match (args.rate, &args.curve) {
        (Some(rate), _) => {
            ensure!(rate > 0.0 && rate.is_finite(), "--rate is more than 0");
            Arrivals::Rate(rate)
        }
        (None, Some(path)) => {
            let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
            Arrivals::parse_curve(&text).with_context(|| format!("{}", path.display()))?
        }
        (None, None) => Arrivals::Burst(Duration::from_secs_f64(args.within)),
    };
    let running = || data_folder::public_url(&config.data.dir).ok().flatten();
    let url = args.url.clone().or_else(running);
    let url = url.context("no URR runs on the data folder; name the site with --url")?;
    let addresses = args.addresses.unwrap_or_else(|| addresses_for(args.fans));
    let connections = match args.connections {
        Some(connections) => usize::try_from(connections)?,
        None => connections_for(addresses),
    };
    Ok(RushPlan {
        site: Site::parse(&url)?,
        event_id: args.event,
        accounts: read_accounts(&args.accounts, usize::try_from(args.fans)?)?,
        arrivals,
        behaviour: behaviour(args),
        seed: args.seed,
        connections,
        addresses,
        time_max: Duration::from_mins(args.max_minutes),
        until_sold_out: args.until_sold_out,
    })
}

fn behaviour(args: &RunArgs) -> Behaviour {
    let usual = Behaviour::default();
    let is_meant = |card: &&str| args.cards.iter().any(|name| name == card);
    let cards = match args.cards.as_slice() {
        [] => usual.cards,
        _ => CARDS.into_iter().filter(is_meant).collect(),
    };
    Behaviour {
        programs: args.programs,
        choosing: Duration::from_secs_f64(args.choosing),
        paying: Duration::from_secs_f64(args.paying),
        tries: args.tries,
        transfers: args.transfers,
        crowd_readers: args.crowd_readers,
        odd_cards: args.odd_cards,
        cards,
        ..usual
    }
}

fn read_report(path: &Path) -> Result<RushReport> {
    let text = fs::read(path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no report", path.display()))
}

/// Shows the rush while it runs: redrawn in place on a terminal, a line now and then elsewhere.
struct Screen {
    is_terminal: bool,
    /// Lines that were drawn last.
    drawn: usize,
}

impl Screen {
    fn new() -> Screen {
        Screen { is_terminal: io::stderr().is_terminal(), drawn: 0 }
    }

    fn show(&mut self, figures: &LiveFigures) {
        let seconds = figures.elapsed.as_secs();
        let text = match self.is_terminal {
            true => {
                let lines = lines(figures);
                // Up to the first line of the last picture, then over it.
                let up =
                    if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
                self.drawn = lines.len();
                let lines: String = lines.iter().map(|line| format!("\x1b[2K{line}\n")).collect();
                format!("{up}{lines}")
            }
            false if seconds.is_multiple_of(LINE_EVERY_SECONDS) => {
                format!("{}\n", lines(figures)[0])
            }
            false => return,
        };
        // A rush does not end because nobody watches it.
        drop(io::stderr().write_all(text.as_bytes()));
    }
}

fn lines(figures: &LiveFigures) -> Vec<String> {
    let room = figures.room.map_or_else(String::new, |(waiting, inside, threshold)| {
        format!(", {waiting} waiting, {inside} of {threshold} inside")
    });
    let mut lines = vec![
        format!(
            "{:>4} s: {} of {} fans arrived, {} done{room}, {} admitted ({}/s), {} seats sold",
            figures.elapsed.as_secs(),
            figures.arrived,
            figures.fans,
            figures.finished,
            figures.admitted,
            figures.admitted_per_second,
            figures.seats_sold
        ),
        format!(
            "        {} requests, {} deferred, {} failed{}",
            figures.requests,
            figures.deferred,
            figures.failed,
            figures.time_left.map_or_else(String::new, |left| {
                format!("; the line is empty in about {} s", left.as_secs())
            })
        ),
    ];
    let people = ["check", "poll", "crowd", "map", "reserve", "pay", "cancel", "transfer", "leave"];
    for name in people {
        let found = figures.latencies.iter().find(|(operation, _, _)| *operation == name);
        let times = found.map_or_else(String::new, |(_, p50, p99)| {
            format!("{:>10.1?} p50 {:>10.1?} p99", p50, p99)
        });
        lines.push(format!("        {name:<10}{times}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fans_have_all_cards_of_the_sandbox() {
        let cards = urr_payment::provider::TestCard::ALL.map(|card| card.as_str());
        assert_eq!(cards, CARDS);
    }

    #[test]
    fn the_picture_always_has_as_many_lines() {
        let mut figures = LiveFigures { fans: 5, ..LiveFigures::default() };
        let before = lines(&figures).len();
        let times = (Duration::from_millis(3), Duration::from_millis(30));
        figures.latencies.push(("pay", times.0, times.1));
        figures.room = Some((7, 3, 4));
        let after = lines(&figures);
        assert_eq!(after.len(), before);
        assert!(after[0].contains("7 waiting, 3 of 4 inside"), "{}", after[0]);
        assert!(after.iter().any(|line| line.contains("pay") && line.contains("30.0ms p99")));
    }
}
