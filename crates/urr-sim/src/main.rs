//! `urr-sim`: runs many seeds, or one of them step by step.

use std::collections::BTreeSet;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use clap::Parser;
use urr_sim::faults::Kept;
use urr_sim::run::{RunOptions, RunReport, prepare, run};
use urr_sim::sabotage::Sabotage;
use urr_sim::search::{SearchOptions, replay_command, search};

/// A seed of a nightly search differs from day to day if `--from` does.
const NIGHTLY_SEEDS: u64 = 1_000_000;

/// Simulates sales with faults, one per seed, and says which seed breaks a rule.
#[derive(Debug, Parser)]
#[command(name = "urr-sim")]
struct Arguments {
    /// How many seeds are run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// A million seeds.
    #[arg(long)]
    nightly: bool,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Runs this seed alone.
    #[arg(long)]
    seed: Option<u64>,
    /// Prints every step of that seed.
    #[arg(long)]
    trace: bool,
    /// Only these actions of that seed happen.
    #[arg(long, value_delimiter = ',')]
    keep_actions: Option<Vec<u32>>,
    /// Only these faults of that seed happen.
    #[arg(long, value_delimiter = ',')]
    keep_faults: Option<Vec<u32>>,
    /// Switches off a guard, which must be noticed.
    #[arg(long)]
    sabotage: Option<String>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let sabotage = match &arguments.sabotage {
        None => None,
        Some(name) => {
            let known: Vec<&str> = Sabotage::ALL.iter().map(|one| one.as_str()).collect();
            let parsed = name.parse::<Sabotage>();
            Some(parsed.map_err(|_| anyhow!("{name:?} is none of {}", known.join(", ")))?)
        }
    };
    match arguments.seed {
        Some(seed) => run_one(&arguments, seed, sabotage),
        None => run_many(&arguments, sabotage),
    }
}

fn run_one(arguments: &Arguments, seed: u64, sabotage: Option<Sabotage>) -> Result<ExitCode> {
    let set = |numbers: &Vec<u32>| numbers.iter().copied().collect::<BTreeSet<u32>>();
    let kept = match (&arguments.keep_actions, &arguments.keep_faults) {
        (None, None) => None,
        (actions, faults) => Some(Kept {
            actions: actions.as_ref().map_or_else(|| (1..1_000).collect(), set),
            faults: faults.as_ref().map_or_else(|| (1..10_000).collect(), set),
        }),
    };
    let databases = prepare(sabotage);
    let options = RunOptions { seed, sabotage, kept, has_lines: arguments.trace };
    let report = run(&databases, &options);
    print_run(&report, sabotage)
}

fn run_many(arguments: &Arguments, sabotage: Option<Sabotage>) -> Result<ExitCode> {
    let seeds = if arguments.nightly { NIGHTLY_SEEDS } else { arguments.seeds };
    let (first_seed, threads) = (arguments.from, arguments.threads);
    let begun = Instant::now();
    let report = search(&SearchOptions { first_seed, seeds, threads, sabotage, is_shrunk: true });
    let took = begun.elapsed();
    let mut out = stdout().lock();
    let (run, steps) = (report.seeds, report.steps);
    writeln!(out, "{run} seeds, {steps} steps, {:.1} s", took.as_secs_f64())?;
    writeln!(out, "{:?}", report.figures)?;
    match &report.failure {
        None => Ok(ExitCode::SUCCESS),
        Some(failure) => {
            drop(out);
            print_run(failure, sabotage)
        }
    }
}

fn print_run(report: &RunReport, sabotage: Option<Sabotage>) -> Result<ExitCode> {
    let mut out = stdout().lock();
    for line in &report.lines {
        writeln!(out, "{line}")?;
    }
    let (seed, hash, steps) = (report.seed, report.hash, report.steps);
    writeln!(out, "seed {seed}: {steps} steps, trace {hash}")?;
    let Some(violation) = &report.violation else { return Ok(ExitCode::SUCCESS) };
    writeln!(out, "broken: {violation}")?;
    writeln!(out, "again: {}", replay_command(report, sabotage))?;
    Ok(ExitCode::FAILURE)
}
