//! A cache of the counters of a service's answers by route. It finds them without building their
//! labels, because every request through the gateway is counted twice.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;

use super::{AnsweredRequest, DurationHistogram};

/// By route. It has no more entries than there are time series.
#[derive(Debug, Default)]
pub(crate) struct AnswerCounters(RwLock<HashMap<String, RouteCounters>>);

/// The counters of a route.
#[derive(Debug)]
struct RouteCounters {
    durations: DurationHistogram,
    counts: Vec<(&'static str, StatusCode, Counter)>,
}

impl AnswerCounters {
    /// Counts the answer if its counters are cached. Returns whether they are.
    pub(super) fn count(&self, method: &'static str, answered: &AnsweredRequest<'_>) -> bool {
        let routes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(counters) = routes.get(answered.route) else { return false };
        let is_same = |counters: &&(&str, StatusCode, Counter)| {
            counters.1 == answered.status && counters.0 == method
        };
        let Some((_, _, count)) = counters.counts.iter().find(is_same) else { return false };
        count.inc();
        answered.observe(&counters.durations);
        true
    }

    /// Caches the counters of answers like this one.
    pub(super) fn insert(
        &self,
        method: &'static str,
        answered: &AnsweredRequest<'_>,
        count: Counter,
        durations: DurationHistogram,
    ) {
        let mut routes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let counters = routes.entry(answered.route.to_owned());
        let counters = counters.or_insert_with(|| RouteCounters { durations, counts: Vec::new() });
        // Two requests at once may both insert it; both entries are handles on the same counter.
        counters.counts.push((method, answered.status, count));
    }
}
