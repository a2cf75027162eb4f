//! A cache of the counters of answers by service and route. It finds them without building their
//! labels, because every request through the gateway is counted twice.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::StatusCode;
use prometheus_client::metrics::counter::Counter;

use super::{AnsweredRequest, DurationHistogram};

/// By service and route. It has no more entries than there are time series.
#[derive(Clone, Debug, Default)]
pub(super) struct AnswerCounters(Arc<RwLock<HashMap<&'static str, Routes>>>);

type Routes = HashMap<String, RouteCounters>;

/// The counters of a route.
#[derive(Debug)]
struct RouteCounters {
    durations: DurationHistogram,
    counts: Vec<(&'static str, StatusCode, Counter)>,
}

impl AnswerCounters {
    /// Counts the answer if its counters are cached. Returns whether they are.
    pub fn count(&self, method: &'static str, answered: &AnsweredRequest<'_>) -> bool {
        let services = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let route = services.get(answered.service).and_then(|routes| routes.get(answered.route));
        let Some(counters) = route else { return false };
        let is_same = |counters: &&(&str, StatusCode, Counter)| {
            counters.1 == answered.status && counters.0 == method
        };
        let Some((_, _, count)) = counters.counts.iter().find(is_same) else { return false };
        count.inc();
        answered.observe(&counters.durations);
        true
    }

    /// Caches the counters of answers like this one.
    pub fn insert(
        &self,
        method: &'static str,
        answered: &AnsweredRequest<'_>,
        count: Counter,
        durations: DurationHistogram,
    ) {
        let mut services = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let routes = services.entry(answered.service).or_default();
        let counters = routes.entry(answered.route.to_owned());
        let counters = counters.or_insert_with(|| RouteCounters { durations, counts: Vec::new() });
        // Two requests at once may both insert it; both entries are handles on the same counter.
        counters.counts.push((method, answered.status, count));
    }
}
