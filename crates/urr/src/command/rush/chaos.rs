//! `urr rush chaos`: a sale while the program is killed, stopped and cut off, and the proof afterwards.
//!
//! It starts `urr up` itself, on a folder of its own, or harms a cluster that `urr cluster` started,
//! and nothing else. The faults follow from the seed.

mod on_cluster;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use urr_cluster::Balancer;
use urr_kernel::{Clock, Uuid};
use urr_rush::{Arrivals, Behaviour, FanAccount, RushPlan, RushReport, Site, create_sale, to_html};
use urr_service::UserRole;

use super::{AccountMaker, Screen, addresses_for};
use crate::command::audit::{WholeReport, await_agreement, unpaid_reservations};
use crate::command::{CommandNotRun, block_on, print_line};
use crate::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};

const READY_WITHIN: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A small disk, if one can be mounted.
const DISK_BYTES: u64 = 512 * 1024 * 1024;
/// So many writers keep the disk busy, each with a file of this size.
const DISK_WRITERS: usize = 4;
const WRITTEN_BYTES: usize = 16 * 1024 * 1024;
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
    /// How long fans choose and pay, on average
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    pauses: f64,
    /// Everything must agree so many minutes after the last fault
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    heal_minutes: u64,
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
            let disk = ChaosDisk::create(args).map_err(CommandNotRun::wrap)?;
            block_on(rehearse(args, &disk))
        }
    };
    let Rehearsed { mut report, audit, lost, faults } = rehearsed.map_err(CommandNotRun::wrap)?;
    report.judge(&[]);
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

/// The fans of a sale with faults: quick, and patient with errors.
fn plan_of(args: &ChaosArgs, site: Site, event_id: Uuid, accounts: Vec<FanAccount>) -> RushPlan {
    let pauses = Duration::from_secs_f64(args.pauses);
    RushPlan {
        site,
        event_id,
        accounts,
        arrivals: Arrivals::Burst(Duration::from_secs(1)),
        behaviour: Behaviour {
            choosing: pauses,
            paying: pauses,
            tries: TRIES,
            ..Behaviour::default()
        },
        seed: args.seed,
        connections: 512,
        addresses: addresses_for(args.fans),
        time_max: Duration::from_mins(args.heal_minutes) + Duration::from_secs(args.within),
        until_sold_out: false,
    }
}

async fn rehearse(args: &ChaosArgs, disk: &ChaosDisk) -> Result<Rehearsed> {
    let mut program = ChaosProgram::new(disk.folder.join("data"), args)?;
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
    let faults = plan_faults(args);
    let count = faults.len();
    let harm = program.harm(faults, proxy, disk.ballast());
    let harm = AbortOnDropHandle::new(tokio::spawn(harm));
    let mut screen = Screen::new();
    let never = std::future::pending();
    let report = urr_rush::run(plan, never, |figures| screen.show(figures)).await?;
    // The fans may be done before the last fault.
    let mut program = harm.await.context("the faults")??;
    program.await_ready().await?;
    let rehearsed = Rehearsed::prove(args, &config, report, count).await?;
    program.end();
    Ok(rehearsed)
}

/// `urr up` as a process of ours, killed when it is dropped.
struct ChaosProgram {
    data: PathBuf,
    address: SocketAddr,
    threshold: u32,
    child: Option<Child>,
}

impl ChaosProgram {
    fn new(data: PathBuf, args: &ChaosArgs) -> Result<ChaosProgram> {
        // The port is free again when the listener is dropped.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        Ok(ChaosProgram { data, address, threshold: args.threshold, child: None })
    }

    /// Its configuration, with the secrets of its folder.
    fn config(&self) -> Result<Config> {
        let overrides = CommandLineOverrides {
            data_dir: Some(self.data.clone()),
            ..CommandLineOverrides::default()
        };
        let options = LoadOptions { mode: LoadMode::Inspect, config_file: None, overrides };
        Ok(config::load(options, [])?)
    }

    /// Starts it and waits until it answers.
    async fn start(&mut self) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.log_path())?;
        let program = std::env::current_exe().context("our own program")?;
        let child = Command::new(program)
            .args(["up", "--port", &self.address.port().to_string(), "--data"])
            .arg(&self.data)
            .env_clear()
            .env("URR_DEMO_SEED", "false")
            .env("URR_QUEUE_THRESHOLD", self.threshold.to_string())
            // A killed process keeps its claim on a payment for longer than all calls could take.
            .env("URR_PAYMENTS_TIMEOUT_SECONDS", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("starting `urr up`")?;
        self.child = Some(child);
        self.await_ready().await
    }

    fn log_path(&self) -> PathBuf {
        self.data.with_file_name("log")
    }

    async fn await_ready(&mut self) -> Result<()> {
        let ends_at = Instant::now() + READY_WITHIN;
        loop {
            let child = self.child.as_mut().context("it was started")?;
            if let Some(status) = child.try_wait()? {
                let log = fs::read_to_string(self.log_path()).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                bail!("`urr up` ended with {status}: {}", last.join(" | "));
            }
            if is_ready(self.address).await {
                return Ok(());
            }
            ensure!(Instant::now() < ends_at, "`urr up` is not ready after {READY_WITHIN:?}");
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Lets the faults happen, and starts the program again after each.
    async fn harm(
        mut self,
        faults: Vec<PlannedFault>,
        proxy: Balancer,
        ballast: Option<PathBuf>,
    ) -> Result<ChaosProgram> {
        let begun = Instant::now();
        for PlannedFault { at, fault } in faults {
            sleep_until(begun + at).await;
            match fault {
                Fault::Kill => {
                    self.end();
                    self.start().await?;
                }
                Fault::Stop { lasts } => {
                    self.signal("STOP")?;
                    sleep(lasts).await;
                    self.signal("CONT")?;
                }
                Fault::Cut => proxy.cut(),
                Fault::FullDisk { lasts } => {
                    let Some(ballast) = &ballast else { continue };
                    fill(ballast)?;
                    sleep(lasts).await;
                    fs::remove_file(ballast)?;
                    self.restart_if_ended().await?;
                }
                Fault::SlowDisk { lasts } => {
                    let folder = self.data.with_file_name("busy");
                    tokio::task::spawn_blocking(move || keep_busy(&folder, lasts)).await??;
                }
            }
        }
        // Fans still use the proxy.
        tokio::spawn(async move {
            let _proxy = proxy;
            std::future::pending::<()>().await;
        });
        Ok(self)
    }

    /// A process that cannot write may end itself; somebody starts it again.
    async fn restart_if_ended(&mut self) -> Result<()> {
        let child = self.child.as_mut().context("it was started")?;
        match child.try_wait()? {
            Some(_) => self.start().await,
            None => Ok(()),
        }
    }

    /// The standard library sends only KILL.
    fn signal(&self, signal: &str) -> Result<()> {
        let pid = self.child.as_ref().context("it was started")?.id();
        let sent = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status()?;
        ensure!(sent.success(), "{signal} could not be sent");
        Ok(())
    }

    /// As `kill -9` does.
    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl Drop for ChaosProgram {
    fn drop(&mut self) {
        self.end();
    }
}

async fn is_ready(address: SocketAddr) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let request =
            format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(answer == *b"HTTP/1.1 200")
    };
    tokio::time::timeout(Duration::from_secs(1), ask).await.is_ok_and(|it| it.unwrap_or(false))
}

/// Where the data is: a folder, or a small disk of its own that can be filled.
struct ChaosDisk {
    folder: PathBuf,
    is_mounted: bool,
    is_temporary: bool,
}

impl ChaosDisk {
    fn create(args: &ChaosArgs) -> Result<ChaosDisk> {
        let named = args.folder.clone();
        let folder = named.unwrap_or_else(|| {
            let now = Clock::System.now().as_millisecond();
            std::env::temp_dir().join(format!("urr-chaos-{}-{now}", std::process::id()))
        });
        ensure!(!folder.exists(), "{} exists; name a new folder", folder.display());
        fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
        let is_temporary = args.folder.is_none();
        let mut disk = ChaosDisk { folder, is_mounted: false, is_temporary };
        if args.full_disks > 0 {
            disk.mount()?;
        }
        Ok(disk)
    }

    fn mount(&mut self) -> Result<()> {
        let size = format!("size={DISK_BYTES}");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&self.folder);
        let mounted = command.stderr(Stdio::null()).status();
        self.is_mounted = mounted.is_ok_and(|status| status.success());
        ensure!(self.is_mounted, "a small disk cannot be mounted here; leave out --full-disks");
        Ok(())
    }

    /// The file that fills the disk.
    fn ballast(&self) -> Option<PathBuf> {
        self.is_mounted.then(|| self.folder.join("ballast"))
    }
}

impl Drop for ChaosDisk {
    fn drop(&mut self) {
        // What cannot be removed stays in the temporary folder.
        if self.is_mounted && self.is_temporary {
            Command::new("umount").arg(&self.folder).status().ok();
        }
        if self.is_temporary {
            fs::remove_dir_all(&self.folder).ok();
        }
    }
}

/// Writes until nothing more can be written.
fn fill(path: &Path) -> Result<()> {
    let mut file = fs::File::create(path)?;
    for size in [1 << 20, 1 << 12, 1] {
        let bytes = vec![0; size];
        while file.write_all(&bytes).is_ok() {}
    }
    Ok(())
}

/// Keeps the disk of this folder busy: syncs of others have to wait for ours.
fn keep_busy(folder: &Path, lasts: Duration) -> Result<()> {
    fs::create_dir_all(folder)?;
    let ends_at = std::time::Instant::now() + lasts;
    thread::scope(|scope| {
        let write = |number: usize| keep_writing(folder.join(number.to_string()), ends_at);
        let writers: Vec<_> =
            (0..DISK_WRITERS).map(|number| scope.spawn(move || write(number))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("it does not panic"))
    })?;
    Ok(fs::remove_dir_all(folder)?)
}

/// Writes a file again and again, and syncs it each time.
fn keep_writing(path: PathBuf, ends_at: std::time::Instant) -> std::io::Result<()> {
    let bytes = vec![1; WRITTEN_BYTES];
    while std::time::Instant::now() < ends_at {
        let mut file = fs::File::create(&path)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
    }
    Ok(())
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

    #[test]
    fn a_seed_repeats_the_faults_and_all_of_them_come_in_time() {
        let faults = |seed: &str| {
            let line = ["chaos", "--kills", "3", "--full-disks", "1", "--within", "20", "--seed"];
            plan_faults(&Line::parse_from(line.into_iter().chain([seed])).args)
        };
        assert_eq!(faults("7"), faults("7"));
        assert_ne!(faults("7"), faults("8"));
        let planned = faults("7");
        assert_eq!(planned.iter().filter(|it| it.fault == Fault::Kill).count(), 3);
        assert_eq!(planned.len(), 3 + 2 + 2 + 1 + 2);
        let within = Duration::from_secs(2)..=Duration::from_secs(20);
        assert!(planned.is_sorted() && planned.iter().all(|it| within.contains(&it.at)));
    }

    #[test]
    fn a_busy_disk_is_left_as_it_was() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, lasts) = (outer.path().join("busy"), Duration::from_millis(100));
        let begun = std::time::Instant::now();
        keep_busy(&folder, lasts).unwrap();
        assert!(begun.elapsed() >= lasts && !folder.exists());
    }
}
