//! `urr rush chaos`: a sale while the program is killed, stopped and cut off, and the proof afterwards.
//!
//! It starts `urr up` itself, on a folder of its own, or harms a cluster that `urr cluster` started,
//! and nothing else. The faults follow from the seed.

mod disk;
mod on_cluster;
mod program;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use urr_cluster::Balancer;
use urr_kernel::Uuid;
use urr_rush::{
    Arrivals, Behaviour, Expectation, FanAccount, FaultReport, RushPlan, RushReport, Site,
    SyncTimes, create_sale, to_html,
};
use urr_service::UserRole;

use self::disk::{ChaosDisk, fill, keep_busy};
use self::program::ChaosProgram;
use super::{AccountMaker, Screen, addresses_for, connections_for};
use crate::command::audit::{WholeReport, await_agreement, unpaid_reservations};
use crate::command::{CommandNotRun, block_on, print_line};
use crate::config::Config;

/// A slow disk lasts longer than other faults: it delays, and breaks nothing.
const SLOW_DISK_FACTOR: u32 = 4;
/// A fan goes on trying for a minute.
const TRIES: u32 = 60;

#[derive(Debug, clap::Args)]
pub struct ChaosArgs {
    /// How many fans come
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    fans: u32,
    /// How many seats are sold
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=25_000))]
    seats: u32,
    /// How many fans are inside at once
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    threshold: u32,
    /// How often the program is killed with -9
    #[arg(long, default_value_t = 5)]
    kills: u32,
    /// How often it is stopped for a moment
    #[arg(long, default_value_t = 2)]
    stops: u32,
    /// How often all connections are cut
    #[arg(long, default_value_t = 2)]
    cuts: u32,
    /// How often the disk is full for a moment; needs the right to mount
    #[arg(long, default_value_t = 0)]
    full_disks: u32,
    /// How often the disk is slow for some seconds, because something else writes and syncs; has no
    /// effect in memory
    #[arg(long, default_value_t = 2)]
    slow_disks: u32,
    /// The faults come within so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    within: u64,
    /// The same seed repeats the faults and the decisions of the fans
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The fans go on after the last fault, for so many minutes at most
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    max_minutes: u64,
    /// They go on until the event is sold out and nobody inside can buy any more; without it, until
    /// those who waited in vain have learned of it and left
    #[arg(long)]
    until_sold_out: bool,
    /// How long fans choose and pay, on average
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pauses: f64,
    /// Everything must agree so many minutes after the last fan
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    heal_minutes: u64,
    /// What must come true, for example `p99.pay<2s`; may be repeated
    #[arg(long)]
    expect: Vec<Expectation>,
    /// A new folder for the data; it stays [default: a temporary one]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Harm the cluster of this folder instead, which `urr cluster up` started: its processes and
    /// its servers
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["folder", "full_disks", "slow_disks"])]
    cluster: Option<PathBuf>,
    /// The report is written to this name with .html and .json
    #[arg(long, value_name = "NAME", default_value = "chaos-report")]
    report: PathBuf,
}

/// A fault and when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PlannedFault {
    at: Duration,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Kill,
    Stop { lasts: Duration },
    Cut,
    FullDisk { lasts: Duration },
    SlowDisk { lasts: Duration },
}

impl Fault {
    /// In the plural.
    fn kind(self) -> &'static str {
        match self {
            Fault::Kill => "kills",
            Fault::Stop { .. } => "stops",
            Fault::Cut => "cuts",
            Fault::FullDisk { .. } => "full disks",
            Fault::SlowDisk { .. } => "slow disks",
        }
    }
}

/// What a fault did.
#[derive(Default)]
struct FaultEffect {
    /// How long the program took to answer again.
    recovery: Option<Duration>,
    sync: Option<SyncTimes>,
}

/// The faults in their order, by the seed.
fn plan_faults(args: &ChaosArgs) -> Vec<PlannedFault> {
    let mut random = StdRng::seed_from_u64(args.seed);
    let mut faults = Vec::new();
    let kinds = [args.kills, args.stops, args.cuts, args.full_disks, args.slow_disks];
    for (kind, count) in kinds.into_iter().enumerate() {
        for _ in 0..count {
            // Not in the first tenth: there must be a crowd.
            let within_ms = args.within.max(1) * 1_000;
            let at = Duration::from_millis(random.random_range(within_ms / 10..=within_ms));
            let lasts = Duration::from_millis(random.random_range(300..2_500));
            let fault = match kind {
                0 => Fault::Kill,
                1 => Fault::Stop { lasts },
                2 => Fault::Cut,
                3 => Fault::FullDisk { lasts },
                _ => Fault::SlowDisk { lasts: lasts * SLOW_DISK_FACTOR },
            };
            faults.push(PlannedFault { at, fault });
        }
    }
    faults.sort_unstable();
    faults
}

pub fn run(args: &ChaosArgs) -> Result<()> {
    let rehearsed = match &args.cluster {
        Some(folder) => block_on(on_cluster::rehearse(args, folder)),
        None => {
            let disk = ChaosDisk::create(args.folder.as_deref(), args.full_disks > 0);
            let disk = disk.map_err(CommandNotRun::wrap)?;
            block_on(rehearse(args, &disk))
        }
    };
    let Rehearsed { mut report, audit, lost, faults } = rehearsed.map_err(CommandNotRun::wrap)?;
    report.judge(&args.expect);
    let (html, json) = (args.report.with_extension("html"), args.report.with_extension("json"));
    fs::write(&html, to_html(&report)).with_context(|| format!("{}", html.display()))?;
    fs::write(&json, serde_json::to_vec(&report)?)
        .with_context(|| format!("{}", json.display()))?;
    print_line(&report.summary())?;
    print_line(&audit.to_text())?;
    for id in &lost {
        print_line(&format!("WRONG     a fan was told that reservation {id} is paid"))?;
    }
    ensure!(lost.is_empty(), "{} fans were told what is not true", lost.len());
    ensure!(audit.is_clean(), "the audit is not clean: {} differences", audit.differences());
    ensure!(audit.is_quiet(), "something is still under way");
    ensure!(report.has_passed(), "an expectation was not met");
    print_line(&format!("All agrees after {faults} faults."))
}

/// What came of it.
struct Rehearsed {
    report: RushReport,
    audit: WholeReport,
    /// Reservations of which fans were told that they are paid, and are not.
    lost: Vec<String>,
    faults: usize,
}

impl Rehearsed {
    /// Audits when everything is healed.
    async fn prove(
        args: &ChaosArgs,
        config: &Config,
        report: RushReport,
        faults: usize,
    ) -> Result<Rehearsed> {
        let audit = await_agreement(config, Duration::from_mins(args.heal_minutes)).await?;
        let told: BTreeSet<String> = report.told_paid.clone();
        let lost = unpaid_reservations(config, &told).await?;
        Ok(Rehearsed { report, audit, lost, faults })
    }
}

async fn rehearse(args: &ChaosArgs, disk: &ChaosDisk) -> Result<Rehearsed> {
    let mut program = ChaosProgram::new(disk.folder.join("data"), args.threshold)?;
    program.start().await?;
    let config = program.config()?;
    let direct = Site::parse(&format!("http://{}", program.address))?;
    let maker = AccountMaker::new(&config, 24)?;
    let admin = maker.account(UserRole::Admin);
    let event_id = create_sale(&direct, &admin.token, usize::try_from(args.seats)?).await?;
    let accounts = (0..args.fans).map(|_| maker.account(UserRole::User)).collect();
    let proxy = Balancer::start(0, &[program.address]).await?;
    let site = Site::parse(&format!("http://{}", proxy.address()))?;
    let plan = plan_of(args, site, event_id, accounts);
    let harm = harm(program, plan_faults(args), proxy, disk.ballast());
    let harm = AbortOnDropHandle::new(tokio::spawn(harm));
    let mut screen = Screen::new();
    let never = std::future::pending();
    let mut report = urr_rush::run(plan, never, |figures| screen.show(figures)).await?;
    // The fans may be done before the last fault.
    let (mut program, faults) = harm.await.context("the faults")??;
    program.await_ready().await?;
    report.faults = faults;
    let count = report.faults.len();
    let mut rehearsed = Rehearsed::prove(args, &config, report, count).await?;
    program.end();
    rehearsed.report.server = Some(program.usage());
    Ok(rehearsed)
}

/// The fans of a sale with faults: quick, and patient with errors.
fn plan_of(args: &ChaosArgs, site: Site, event_id: Uuid, accounts: Vec<FanAccount>) -> RushPlan {
    let (pauses, usual) = (Duration::from_secs_f64(args.pauses), Behaviour::default());
    let addresses = addresses_for(args.fans);
    RushPlan {
        site,
        event_id,
        accounts,
        arrivals: Arrivals::Burst(Duration::from_secs(1)),
        behaviour: Behaviour {
            choosing: pauses,
            paying: pauses,
            tries: TRIES,
            // A card without an outcome keeps its seats for minutes, and the sale would wait for them.
            odd_cards: if args.until_sold_out { 0.0 } else { usual.odd_cards },
            ..usual
        },
        seed: args.seed,
        connections: connections_for(addresses),
        addresses,
        time_max: Duration::from_mins(args.max_minutes) + Duration::from_secs(args.within),
        until_sold_out: args.until_sold_out,
    }
}

/// Lets the faults happen, and starts the program again after each.
async fn harm(
    mut program: ChaosProgram,
    faults: Vec<PlannedFault>,
    proxy: Balancer,
    ballast: Option<PathBuf>,
) -> Result<(ChaosProgram, Vec<FaultReport>)> {
    let begun = Instant::now();
    let mut reports = Vec::new();
    for PlannedFault { at, fault } in faults {
        sleep_until(begun + at).await;
        let came_at = begun.elapsed();
        let FaultEffect { recovery, sync } =
            inflict(&mut program, fault, &proxy, ballast.as_ref()).await?;
        reports.push(FaultReport { sync, ..FaultReport::new(fault.kind(), came_at, recovery) });
    }
    // Fans still use the proxy.
    tokio::spawn(async move {
        let _proxy = proxy;
        std::future::pending::<()>().await;
    });
    Ok((program, reports))
}

async fn inflict(
    program: &mut ChaosProgram,
    fault: Fault,
    proxy: &Balancer,
    ballast: Option<&PathBuf>,
) -> Result<FaultEffect> {
    let mut effect = FaultEffect::default();
    match fault {
        Fault::Kill => {
            program.end();
            let ended = Instant::now();
            program.start().await?;
            effect.recovery = Some(ended.elapsed());
        }
        Fault::Stop { lasts } => {
            program.signal("STOP")?;
            sleep(lasts).await;
            program.signal("CONT")?;
        }
        Fault::Cut => proxy.cut(),
        Fault::FullDisk { lasts } => {
            let ballast = ballast.context("a disk that can be full was mounted")?;
            fill(ballast)?;
            sleep(lasts).await;
            fs::remove_file(ballast)?;
            program.restart_if_ended().await?;
        }
        Fault::SlowDisk { lasts } => {
            let folder = program.data.with_file_name("busy");
            let busy = tokio::task::spawn_blocking(move || keep_busy(&folder, lasts));
            effect.sync = Some(busy.await??);
        }
    }
    Ok(effect)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ChaosArgs,
    }

    /// What these options of the command mean.
    pub fn parse(options: &[&str]) -> ChaosArgs {
        Line::parse_from([&["chaos"], options].concat()).args
    }

    #[test]
    fn a_seed_repeats_the_faults_and_all_of_them_come_in_time() {
        let faults = |seed: &str| {
            let options = ["--kills", "3", "--full-disks", "1", "--within", "20", "--seed", seed];
            plan_faults(&parse(&options))
        };
        assert_eq!(faults("7"), faults("7"));
        assert_ne!(faults("7"), faults("8"));
        let planned = faults("7");
        assert_eq!(planned.iter().filter(|it| it.fault == Fault::Kill).count(), 3);
        assert_eq!(planned.len(), 3 + 2 + 2 + 1 + 2);
        let within = Duration::from_secs(2)..=Duration::from_secs(20);
        assert!(planned.is_sorted() && planned.iter().all(|it| within.contains(&it.at)));
    }
}
