//! Metrics for Prometheus. The registry is passed in like everything else; there is no global one.

mod answers;
mod calls;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::http::{Method, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Metric, Registry};
use urr_kernel::{Timestamp, TraceContext};

pub(crate) use self::answers::AnswerCounters;
pub(crate) use self::calls::CallCounters;
use crate::ApiError;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// In seconds: from a seat map out of memory to a slow payment provider.
const DURATION_BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// The registry of a process and the metrics that every service has. Clones are handles.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    requests: Family<Labels<4>, Counter>,
    durations: Family<Labels<2>, DurationHistogram, fn() -> DurationHistogram>,
    errors: Family<Labels<2>, Counter>,
    upstream_calls: Family<Labels<3, &'static str>, Counter>,
    upstream_retries: Family<Labels<2, &'static str>, Counter>,
    /// How many of a hundred traces are exported: those can be examples of a duration.
    sampled_percent: u8,
}

/// Durations; each bucket has the trace of the last request that fell into it.
type DurationHistogram = HistogramWithExemplars<Labels<1>>;

/// The names of labels with their values.
type Labels<const N: usize, V = String> = [(&'static str, V); N];

/// A request that was answered.
pub(crate) struct AnsweredRequest<'a> {
    pub service: &'static str,
    pub method: &'a Method,
    pub route: &'a str,
    pub status: StatusCode,
    pub took: Duration,
    /// Its trace and when it was answered, if the trace is exported.
    pub exported: Option<(TraceContext, Timestamp)>,
}

impl AnsweredRequest<'_> {
    fn observe(&self, durations: &DurationHistogram) {
        let trace = self.exported.map(|(trace, _)| [("trace_id", trace.trace_id())]);
        let answered_at = self.exported.map(|(_, at)| SystemTime::from(at));
        durations.observe(self.took.as_secs_f64(), trace, answered_at);
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    pub fn new() -> Metrics {
        let metrics = Metrics {
            registry: Arc::new(Mutex::new(Registry::default())),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| {
                DurationHistogram::new(DURATION_BUCKETS.into_iter())
            }),
            errors: Family::default(),
            upstream_calls: Family::default(),
            upstream_retries: Family::default(),
            sampled_percent: 0,
        };
        let all = &metrics;
        all.register("urr_http_requests", "Requests answered", all.requests.clone());
        let durations = all.durations.clone();
        all.register("urr_http_request_duration_seconds", "Time to the answer", durations);
        all.register("urr_http_errors", "Refusals and failures by code", all.errors.clone());
        let calls = all.upstream_calls.clone();
        all.register("urr_upstream_calls", "Calls to other services by outcome", calls);
        let retries = all.upstream_retries.clone();
        all.register("urr_upstream_retries", "Calls that were repeated", retries);
        metrics
    }

    /// So many of a hundred traces are exported.
    pub fn with_traces(self, sampled_percent: u8) -> Metrics {
        Metrics { sampled_percent, ..self }
    }

    /// Whether a trace is exported, so that it is an example that can be looked up.
    pub(crate) fn is_exported(&self, trace: TraceContext) -> bool {
        trace.is_exported(self.sampled_percent)
    }

    /// Adds a metric or a family of metrics. A counter's name goes without `_total`, which the
    /// format adds.
    pub fn register(&self, name: &str, help: &str, metric: impl Metric) {
        self.lock().register(name, help, metric);
    }

    /// Adds a gauge that is read at every scrape.
    pub fn observe_gauge(&self, name: &'static str, help: &'static str, read: NumberReader) {
        let kind = MetricType::Gauge;
        self.lock().register_collector(Box::new(ObservedNumber { name, help, kind, read }));
    }

    /// Adds a counter that is read at every scrape.
    pub fn observe_counter(&self, name: &'static str, help: &'static str, read: NumberReader) {
        let kind = MetricType::Counter;
        self.lock().register_collector(Box::new(ObservedNumber { name, help, kind, read }));
    }

    /// For a service that registers a set of metrics of its own.
    pub fn with_registry<T>(&self, add: impl FnOnce(&mut Registry) -> T) -> T {
        add(&mut self.lock())
    }

    /// All metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.lock())
            .expect("writing into a string does not fail");
        text
    }

    /// `GET /metrics`, for the internal listener.
    pub fn router(&self) -> Router {
        let metrics = self.clone();
        Router::new().route("/metrics", get(async move || metrics.answer()))
    }

    fn answer(&self) -> impl IntoResponse + use<> {
        ([(header::CONTENT_TYPE, OPENMETRICS)], self.text())
    }

    /// `cache` is that of the service that answered.
    pub(crate) fn count_answer(&self, cache: &AnswerCounters, answered: &AnsweredRequest<'_>) {
        let method = method_name(answered.method);
        if cache.count(method, answered) {
            return;
        }
        let service = ("service", answered.service.to_owned());
        let route = ("route", answered.route.to_owned());
        let durations = self.durations.get_or_create_owned(&[service.clone(), route.clone()]);
        let (method_label, status) = (("method", method.to_owned()), answered.status.as_u16());
        let labels = [service, method_label, route, ("status", status.to_string())];
        let count = self.requests.get_or_create_owned(&labels);
        count.inc();
        answered.observe(&durations);
        cache.insert(method, answered, count, durations);
    }

    pub(crate) fn count_error(&self, service: &'static str, error: &ApiError) {
        let labels = [("service", service.to_owned()), ("code", error.code().to_owned())];
        self.errors.get_or_create(&labels).inc();
    }

    fn call_counter(
        &self,
        caller: &'static str,
        target: &'static str,
        outcome: &'static str,
    ) -> Counter {
        let labels = [("caller", caller), ("target", target), ("outcome", outcome)];
        self.upstream_calls.get_or_create_owned(&labels)
    }

    fn count_retry(&self, caller: &'static str, target: &'static str) {
        self.upstream_retries.get_or_create(&[("caller", caller), ("target", target)]).inc();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the present value of a metric.
pub type NumberReader = Box<dyn Fn() -> u64 + Send + Sync>;

struct ObservedNumber {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    read: NumberReader,
}

impl fmt::Debug for ObservedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Collector for ObservedNumber {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let metric = encoder.encode_descriptor(self.name, self.help, None, self.kind)?;
        let figure = (self.read)();
        match self.kind {
            MetricType::Counter => ConstCounter::new(figure).encode(metric),
            _ => ConstGauge::new(i64::try_from(figure).unwrap_or(i64::MAX)).encode(metric),
        }
    }
}

/// The method as a label. Invented methods share one label, or each would be a new time series.
fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("OTHER")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_number_is_read_when_somebody_looks() {
        let metrics = Metrics::new();
        let number = Arc::new(std::sync::atomic::AtomicU64::new(3));
        let read = || {
            let number = Arc::clone(&number);
            Box::new(move || number.load(std::sync::atomic::Ordering::Relaxed))
        };
        metrics.observe_gauge("urr_waiting", "Those who wait.", read());
        metrics.observe_counter("urr_served", "Those who were served.", read());
        assert!(metrics.text().contains("\nurr_waiting 3\n"));
        number.store(4, std::sync::atomic::Ordering::Relaxed);
        let text = metrics.text();
        assert!(text.contains("\nurr_waiting 4\n"), "{text}");
        assert!(text.contains("\nurr_served_total 4\n"), "{text}");
    }

    #[test]
    fn a_bucket_has_the_trace_of_its_last_request_that_is_exported() {
        let (metrics, cache) = (Metrics::new().with_traces(50), AnswerCounters::default());
        let now = "2026-12-01T12:00:00.25Z".parse().unwrap();
        for number in [149, 150] {
            let trace = TraceContext::root(urr_kernel::Uuid::from_u128(number));
            let answered = AnsweredRequest {
                service: "test",
                method: &"GET".parse().unwrap(),
                route: "/seats",
                status: StatusCode::OK,
                took: Duration::from_millis(3),
                exported: metrics.is_exported(trace).then_some((trace, now)),
            };
            metrics.count_answer(&cache, &answered);
        }
        let text = metrics.text();
        let bucket = |bound: &str| {
            let labels = format!(r#"{{le="{bound}",service="test",route="/seats"}}"#);
            let start = format!("urr_http_request_duration_seconds_bucket{labels} ");
            text.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or(&text)
        };
        let example = r#" # {trace_id="00000000000000000000000000000095"} 0.003 1796126400.25"#;
        assert_eq!(bucket("0.005"), format!("2{example}"));
        assert_eq!(bucket("0.01"), "2");
        assert!(!Metrics::new().is_exported(TraceContext::root(urr_kernel::Uuid::from_u128(100))));
    }

    #[test]
    fn invented_methods_share_one_label() {
        let (metrics, cache) = (Metrics::new(), AnswerCounters::default());
        for name in ["GET", "BREW", "BAKE"] {
            let answered = AnsweredRequest {
                service: "test",
                method: &name.parse().unwrap(),
                route: "/seats/{id}",
                status: StatusCode::OK,
                took: Duration::from_millis(3),
                exported: None,
            };
            metrics.count_answer(&cache, &answered);
        }
        let text = metrics.text();
        let line = |method, count| {
            let labels = format!(
                r#"{{service="test",method="{method}",route="/seats/{{id}}",status="200"}}"#
            );
            format!("urr_http_requests_total{labels} {count}\n")
        };
        assert!(text.contains(&line("GET", 1)), "{text}");
        assert!(text.contains(&line("OTHER", 2)), "{text}");
        assert!(!text.contains("BREW"));
    }
}
