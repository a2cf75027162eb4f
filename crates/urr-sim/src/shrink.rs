//! Makes a failing run short: leaves out actions and faults as long as the same rule is broken.

use std::collections::BTreeSet;

use crate::databases::Databases;
use crate::faults::Kept;
use crate::run::{RunOptions, RunReport, run};

/// The most runs that are tried.
const ATTEMPTS_MAX: u32 = 400;

/// A short run that breaks the same rule, with its lines.
pub fn shrink(databases: &Databases, options: &RunOptions, failed: &RunReport) -> RunReport {
    let invariant = failed.violation.as_ref().map(|violation| violation.invariant);
    let mut attempts = 0;
    let mut fails = |kept: &Kept| {
        attempts += 1;
        let options = RunOptions { kept: Some(kept.clone()), ..options.clone() };
        let violation = run(databases, &options).violation;
        attempts <= ATTEMPTS_MAX && violation.map(|violation| violation.invariant) == invariant
    };
    let mut kept = failed.happened.clone();
    if fails(&kept) {
        let faults = kept.faults.clone();
        kept.faults = without_parts(&faults, |faults| {
            fails(&Kept { faults: faults.clone(), ..kept.clone() })
        });
        let actions = kept.actions.clone();
        kept.actions = without_parts(&actions, |actions| {
            fails(&Kept { actions: actions.clone(), ..kept.clone() })
        });
        let faults = kept.faults.clone();
        kept.faults = without_parts(&faults, |faults| {
            fails(&Kept { faults: faults.clone(), ..kept.clone() })
        });
    }
    let kept = Some(kept);
    run(databases, &RunOptions { kept, has_lines: true, ..options.clone() })
}

/// Leaves out halves, quarters and so on, down to single ones, as long as it still fails.
fn without_parts(
    all: &BTreeSet<u32>,
    mut fails: impl FnMut(&BTreeSet<u32>) -> bool,
) -> BTreeSet<u32> {
    let mut kept: Vec<u32> = all.iter().copied().collect();
    let mut size = kept.len();
    while size > 0 {
        let mut start = 0;
        while start < kept.len() {
            let end = (start + size).min(kept.len());
            let rest = kept[..start].iter().chain(&kept[end..]).copied();
            let rest: BTreeSet<u32> = rest.collect();
            match fails(&rest) {
                true => kept = rest.into_iter().collect(),
                false => start = end,
            }
        }
        size /= 2;
    }
    kept.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_needed_is_kept() {
        let all: BTreeSet<u32> = (1..=50).collect();
        let needed = BTreeSet::from([7, 33]);
        let kept = without_parts(&all, |some| needed.is_subset(some));
        assert_eq!(kept, needed);
        assert!(without_parts(&all, |_| true).is_empty());
        assert_eq!(without_parts(&all, |_| false), all);
    }
}
