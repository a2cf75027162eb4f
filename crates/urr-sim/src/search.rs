//! Runs many seeds on several threads, and reports the first that breaks a rule.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::faults::Kept;
use crate::oracle::Figures;
use crate::run::{RunOptions, RunReport, prepare, run};
use crate::sabotage::Sabotage;
use crate::shrink::shrink;

/// Which seeds are run.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    pub first_seed: u64,
    pub seeds: u64,
    pub threads: usize,
    pub sabotage: Option<Sabotage>,
    /// Whether a failure is made short.
    pub is_shrunk: bool,
}

/// What many runs came to.
#[derive(Debug, Default)]
pub struct SearchReport {
    pub seeds: u64,
    pub steps: u64,
    pub figures: Figures,
    /// The failure with the lowest seed of those that were seen.
    pub failure: Option<RunReport>,
}

/// Runs seeds until one fails.
pub fn search(options: &SearchOptions) -> SearchReport {
    let (next, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || search_on_thread(options, &next, &has_failed);
    let reports: Vec<SearchReport> = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|one| one.join().expect("a run does not panic")).collect()
    });
    reports.into_iter().fold(SearchReport::default(), SearchReport::with)
}

fn search_on_thread(
    options: &SearchOptions,
    next: &AtomicU64,
    has_failed: &AtomicBool,
) -> SearchReport {
    let databases = prepare(options.sabotage);
    let mut report = SearchReport::default();
    while !has_failed.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= options.seeds {
            break;
        }
        let seed = options.first_seed + number;
        let one = RunOptions { seed, sabotage: options.sabotage, ..RunOptions::default() };
        let done = run(&databases, &one);
        report.add(&done);
        if done.violation.is_some() {
            has_failed.store(true, Ordering::Relaxed);
            report.failure = Some(match options.is_shrunk {
                true => shrink(&databases, &one, &done),
                false => done,
            });
        }
    }
    report
}

impl SearchReport {
    fn add(&mut self, run: &RunReport) {
        self.seeds += 1;
        self.steps += u64::from(run.steps);
        self.figures = self.figures.plus(&run.figures);
    }

    fn with(self, other: SearchReport) -> SearchReport {
        let failure = match (self.failure, other.failure) {
            (Some(one), Some(two)) if two.seed < one.seed => Some(two),
            (Some(one), _) => Some(one),
            (None, two) => two,
        };
        SearchReport {
            seeds: self.seeds + other.seeds,
            steps: self.steps + other.steps,
            figures: self.figures.plus(&other.figures),
            failure,
        }
    }
}

/// The command that repeats a run exactly.
pub fn replay_command(report: &RunReport, sabotage: Option<Sabotage>) -> String {
    let Kept { actions, faults } = &report.happened;
    let list = |numbers: &std::collections::BTreeSet<u32>| {
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        if numbers.is_empty() { "0".to_owned() } else { numbers.join(",") }
    };
    let sabotage = sabotage.map_or(String::new(), |one| format!(" --sabotage {}", one.as_str()));
    format!(
        "cargo run --release -p urr-sim -- --seed {} --trace --keep-actions {} --keep-faults {}{}",
        report.seed,
        list(actions),
        list(faults),
        sabotage
    )
}
