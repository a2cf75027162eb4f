//! The same on a cluster: its processes and its servers are killed, stopped and cut off in turn.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;
use urr_rush::{FaultReport, create_sale};
use urr_service::UserRole;

use super::{ChaosArgs, Rehearsed, plan_of};
use crate::cluster::{ClusterFolder, Control, ControlAction, ControlAnswer};
use crate::command::cluster::site_of;
use crate::command::rush::{AccountMaker, Screen};
use crate::role::ProcessRole;

/// After the faults, everything must be ready again within this time.
const READY_WITHIN: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A fault, when it comes and how long it lasts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClusterFault {
    at: Duration,
    /// A member; for a cut a role.
    name: String,
    lasts: Duration,
    kind: ClusterFaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ClusterFaultKind {
    Kill,
    Stop,
    Cut,
}

impl ClusterFaultKind {
    /// As in the report, in the plural.
    fn name(self) -> &'static str {
        match self {
            ClusterFaultKind::Kill => "kills",
            ClusterFaultKind::Stop => "stops",
            ClusterFaultKind::Cut => "cuts",
        }
    }
}

/// The faults in their order, by the seed. Everybody gets as many as the others, or one more.
fn plan_faults(args: &ChaosArgs, members: &[String]) -> Vec<ClusterFault> {
    let mut random = StdRng::seed_from_u64(args.seed);
    let roles: Vec<String> = ProcessRole::ALL.map(|role| role.name().to_owned()).to_vec();
    let kinds = [
        (ClusterFaultKind::Kill, args.kills, members),
        (ClusterFaultKind::Stop, args.stops, members),
        (ClusterFaultKind::Cut, args.cuts, &roles[..]),
    ];
    let mut faults = Vec::new();
    for (kind, count, names) in kinds {
        let mut turn: Vec<String> = Vec::new();
        for _ in 0..count {
            if turn.is_empty() {
                turn = names.to_vec();
                turn.shuffle(&mut random);
            }
            let Some(name) = turn.pop() else { break };
            let within_ms = args.within.max(1) * 1_000;
            // Not in the first tenth: there must be a crowd.
            let at = Duration::from_millis(random.random_range(within_ms / 10..=within_ms));
            let lasts = Duration::from_millis(random.random_range(300..2_500));
            faults.push(ClusterFault { at, name, lasts, kind });
        }
    }
    faults.sort_unstable();
    faults
}

/// Lets fans come to the cluster while it is harmed, heals it, and audits.
pub async fn rehearse(args: &ChaosArgs, folder: &Path) -> Result<Rehearsed> {
    let folder = ClusterFolder::new(folder)?;
    let control = Control::new(&folder);
    let status = control.status()?;
    ensure!(is_whole(&status), "not everything is ready; see `urr cluster status`");
    let config = folder.operator_config()?;
    let site = site_of(&config, &status.site)?;
    let maker = AccountMaker::new(&config, 24)?;
    let admin = maker.account(UserRole::Admin);
    let event_id = create_sale(&site, &admin.token, usize::try_from(args.seats)?).await?;
    let accounts = (0..args.fans).map(|_| maker.account(UserRole::User)).collect();
    let members: Vec<String> = status.members.iter().map(|it| it.name.clone()).collect();
    let faults = plan_faults(args, &members);
    let harming = AbortOnDropHandle::new(tokio::spawn(harm(control.clone(), faults)));
    let mut screen = Screen::new();
    let plan = plan_of(args, site, event_id, accounts);
    let never = std::future::pending();
    let mut report = urr_rush::run(plan, never, |figures| screen.show(figures)).await?;
    // The fans may be done before the last fault; the report tells how many came too late.
    report.faults = harming.await.context("the faults")??;
    await_whole(&control).await?;
    let count = report.faults.len();
    Rehearsed::prove(args, &config, report, count).await
}

/// Lets the faults happen. A member that starts is not waited for, so several can be down at once.
async fn harm(control: Control, faults: Vec<ClusterFault>) -> Result<Vec<FaultReport>> {
    let begun = Instant::now();
    let mut healing = JoinSet::new();
    let mut reports = Vec::new();
    for fault in faults {
        sleep_until(begun + fault.at).await;
        reports.push(FaultReport::new(fault.kind.name(), begun.elapsed(), None));
        healing.spawn(happen(control.clone(), fault));
    }
    while let Some(healed) = healing.join_next().await {
        healed.context("a fault")??;
    }
    Ok(reports)
}

async fn happen(control: Control, fault: ClusterFault) -> Result<()> {
    let ClusterFault { name, lasts, kind, .. } = fault;
    let ask = async |action: ControlAction| {
        let (control, name) = (control.clone(), name.clone());
        spawn_blocking(move || control.ask(action, &name)).await?
    };
    match kind {
        ClusterFaultKind::Cut => {
            ask(ControlAction::Cut).await?;
        }
        ClusterFaultKind::Kill => {
            ask(ControlAction::Kill).await?;
            sleep(lasts).await;
            // It may not come up while what it needs is down; the supervisor goes on trying.
            drop(ask(ControlAction::Start).await);
        }
        ClusterFaultKind::Stop => {
            // Another fault may have killed it.
            if ask(ControlAction::Pause).await.is_ok() {
                sleep(lasts).await;
                ask(ControlAction::Resume).await?;
            }
        }
    }
    Ok(())
}

fn is_whole(status: &ControlAnswer) -> bool {
    status.is_up && status.members.iter().all(|member| member.is_ready)
}

async fn await_whole(control: &Control) -> Result<()> {
    let ends_at = Instant::now() + READY_WITHIN;
    loop {
        let asked = control.clone();
        let status = spawn_blocking(move || asked.status()).await??;
        if is_whole(&status) {
            return Ok(());
        }
        if Instant::now() > ends_at {
            let absent = status.members.iter().filter(|member| !member.is_ready);
            let absent: Vec<&str> = absent.map(|member| &*member.name).collect();
            bail!("not ready {READY_WITHIN:?} after the faults: {}", absent.join(", "));
        }
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::parse;
    use super::*;

    #[test]
    fn every_member_is_harmed_as_often_as_the_others() {
        let args = parse(&["--kills", "7", "--stops", "0", "--cuts", "0", "--seed", "3"]);
        let members = ["postgres", "kafka", "ticket-1"].map(str::to_owned);
        let planned = plan_faults(&args, &members);
        assert_eq!(planned, plan_faults(&args, &members), "a seed repeats the faults");
        let mut counts = BTreeMap::new();
        for fault in &planned {
            *counts.entry(&*fault.name).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 3, "{planned:?}");
        assert!(counts.values().all(|count| (2..=3).contains(count)), "{counts:?}");
        assert!(planned.is_sorted());
    }
}
