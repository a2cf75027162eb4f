//! What was done to the system during a rush, and what that did to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A disk is slow if a sync takes so many times as long as before.
const SLOW_RATIO: f64 = 2.0;
const BYTES_PER_MIB: f64 = 1_048_576.0;

/// A fault that came.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultReport {
    /// In the plural, for example `kills`.
    pub kind: String,
    /// When it came, in seconds since the start.
    pub second: f64,
    /// How long the system took to answer again; none if it did not have to be started.
    pub recovery_ms: Option<f64>,
    /// How long a sync of the disk took; only of a slow disk.
    pub sync: Option<SyncTimes>,
}

/// The median time of a small write with its sync, with all that ran at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncTimes {
    pub before_ms: f64,
    pub meanwhile_ms: f64,
}

/// What the program that was rehearsed with has used.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerUsage {
    /// The most that one process had.
    pub memory_bytes_max: u64,
    /// Processor time of all processes, one after the other.
    pub processor_ms: u64,
}

impl FaultReport {
    /// `at` is the time since the start.
    pub fn new(kind: &str, at: Duration, recovery: Option<Duration>) -> FaultReport {
        let (kind, second) = (kind.to_owned(), at.as_secs_f64());
        let recovery_ms = recovery.map(|it| it.as_secs_f64() * 1e3);
        FaultReport { kind, second, recovery_ms, sync: None }
    }
}

impl SyncTimes {
    pub fn new(before: Duration, meanwhile: Duration) -> SyncTimes {
        let [before_ms, meanwhile_ms] = [before, meanwhile].map(|it| it.as_secs_f64() * 1e3);
        SyncTimes { before_ms, meanwhile_ms }
    }
}

impl ServerUsage {
    pub(crate) fn sentence(self, seconds_total: f64) -> String {
        format!(
            "server: {:.0} MiB of memory at most, {:.2} cores on average",
            self.memory_bytes_max as f64 / BYTES_PER_MIB,
            self.processor_ms as f64 / 1e3 / seconds_total.max(1.0)
        )
    }
}

/// A line for each kind of fault.
pub(crate) fn fault_lines(faults: &[FaultReport], seconds_total: f64) -> Vec<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for fault in faults {
        if !kinds.contains(&fault.kind.as_str()) {
            kinds.push(&fault.kind);
        }
    }
    let mut lines: Vec<String> = kinds.into_iter().map(|kind| kind_line(faults, kind)).collect();
    let late = faults.iter().filter(|it| it.second > seconds_total).count();
    if late > 0 {
        lines.push(format!("{late} faults came after the last fan: let them come sooner"));
    }
    lines
}

fn kind_line(faults: &[FaultReport], kind: &str) -> String {
    let same = || faults.iter().filter(|it| it.kind == kind);
    let mut line = format!("{kind}: {}", same().count());
    let recoveries = sorted(same().filter_map(|it| it.recovery_ms));
    if let Some(longest) = recoveries.last() {
        let median = middle(&recoveries);
        line.push_str(&format!(
            ", answered again after {median:.0} ms (median), {longest:.0} ms (longest)"
        ));
    }
    let syncs: Vec<SyncTimes> = same().filter_map(|it| it.sync).collect();
    if !syncs.is_empty() {
        let before = middle(&sorted(syncs.iter().map(|it| it.before_ms)));
        let meanwhile = middle(&sorted(syncs.iter().map(|it| it.meanwhile_ms)));
        let verdict = if meanwhile < SLOW_RATIO * before { ": NOT SLOW" } else { "" };
        line.push_str(&format!(
            ", a sync took {before:.1} ms before and {meanwhile:.1} ms meanwhile{verdict}"
        ));
    }
    line
}

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// The median of sorted numbers; 0 if there are none.
fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: &str, second: f64) -> FaultReport {
        FaultReport::new(kind, Duration::from_secs_f64(second), None)
    }

    #[test]
    fn each_kind_has_a_line_with_its_recoveries() {
        let kill = |second, ms| FaultReport { recovery_ms: Some(ms), ..fault("kills", second) };
        let faults = [kill(1.0, 700.0), fault("cuts", 2.0), kill(3.0, 300.0), kill(9.0, 400.0)];
        assert_eq!(
            fault_lines(&faults, 8.0),
            [
                "kills: 3, answered again after 400 ms (median), 700 ms (longest)",
                "cuts: 1",
                "1 faults came after the last fan: let them come sooner",
            ]
        );
    }

    /// The control is in it: a fault without an effect is called that.
    #[test]
    fn a_disk_that_was_as_fast_as_before_was_not_slow() {
        let line = |meanwhile_ms| {
            let sync = Some(SyncTimes { before_ms: 2.0, meanwhile_ms });
            fault_lines(&[FaultReport { sync, ..fault("slow disks", 1.0) }], 8.0).join("\n")
        };
        assert_eq!(line(40.0), "slow disks: 1, a sync took 2.0 ms before and 40.0 ms meanwhile");
        assert!(line(2.1).ends_with(": NOT SLOW"));
    }

    #[test]
    fn usage_is_told_in_units_of_people() {
        let usage = ServerUsage { memory_bytes_max: 512 << 20, processor_ms: 75_000 };
        assert_eq!(
            usage.sentence(100.0),
            "server: 512 MiB of memory at most, 0.75 cores on average"
        );
    }
}
