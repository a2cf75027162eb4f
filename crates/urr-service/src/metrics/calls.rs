//! The counters of the calls that one service makes to another, found without hashing their labels.

use std::sync::OnceLock;

use prometheus_client::metrics::counter::Counter;

use super::Metrics;

/// How many outcomes a call may have. If there were more, those would only be counted more slowly.
const OUTCOMES: usize = 9;

/// Counts the calls of one caller to one target by outcome. A counter exists from the first call
/// with its outcome on.
#[derive(Debug)]
pub(crate) struct CallCounters {
    metrics: Metrics,
    caller: &'static str,
    target: &'static str,
    /// In the order in which the outcomes came.
    counters: [OnceLock<(&'static str, Counter)>; OUTCOMES],
}

impl CallCounters {
    pub fn new(metrics: Metrics, caller: &'static str, target: &'static str) -> CallCounters {
        CallCounters { metrics, caller, target, counters: Default::default() }
    }

    pub fn count(&self, outcome: &'static str) {
        let counter = || (outcome, self.metrics.call_counter(self.caller, self.target, outcome));
        let mut counters = self.counters.iter().map(|slot| slot.get_or_init(counter));
        match counters.find(|(other, _)| *other == outcome) {
            Some((_, counter)) => counter.inc(),
            None => counter().1.inc(),
        };
    }

    pub fn count_retry(&self) {
        self.metrics.count_retry(self.caller, self.target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_is_counted_by_itself_also_beyond_the_slots() {
        let metrics = Metrics::new();
        let counters = CallCounters::new(metrics.clone(), "gateway", "ticket");
        let outcomes = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
        assert!(outcomes.len() > OUTCOMES);
        outcomes.into_iter().chain(outcomes).for_each(|outcome| counters.count(outcome));
        counters.count("b");
        let text = metrics.text();
        for outcome in outcomes {
            let count = if outcome == "b" { 3 } else { 2 };
            let labels = format!(r#"{{caller="gateway",target="ticket",outcome="{outcome}"}}"#);
            let line = format!("\nurr_upstream_calls_total{labels} {count}\n");
            assert!(text.contains(&line), "{text}");
        }
    }
}
