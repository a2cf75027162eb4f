//! Exports the spans of this process to a collector, by OTLP over HTTP in its JSON form.
//!
//! Spans are for understanding, not for proof. A span that finds the queue full is dropped and
//! counted; so is a batch that the collector does not take. No request ever waits for it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, warn};
use tracing_subscriber::layer::{Context, Layer};
use urr_kernel::TraceContext;
use urr_outbound::{Outbound, OutboundRequest};
use urr_service::Metrics;

use crate::config::TracesConfig;

const SPANS_WAITING_MAX: usize = 16_384;
const BATCH_SPANS_MAX: usize = 512;
/// A batch is sent at the latest this long after its first span.
const BATCH_WAIT: Duration = Duration::from_secs(1);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// A collector that is gone is reported this often.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// The numbers of the protocol.
const KIND_SERVER: u8 = 2;
const KIND_CONSUMER: u8 = 5;
const STATUS_ERROR: u8 = 2;

/// Takes spans from the log of this process. Clones share the queue.
pub struct SpanCollector {
    queue: mpsc::Sender<CollectedSpan>,
    counts: Arc<SpanCounts>,
    sampled_percent: u8,
}

/// Sends spans to the collector. It is made before the runtime that it works on.
pub struct SpanExporter {
    queue: mpsc::Receiver<CollectedSpan>,
    counts: Arc<SpanCounts>,
    url: String,
    client: Outbound,
}

/// The exporter at work.
pub struct RunningExporter {
    counts: Arc<SpanCounts>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct SpanCounts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

/// A finished span, as `urr_kernel::FinishedSpan` records it.
#[derive(Debug, Default)]
struct CollectedSpan {
    trace_id: u128,
    span_id: u64,
    parent_id: u64,
    is_event: bool,
    is_failure: bool,
    service: String,
    name: String,
    outcome: String,
    begun_ns: i64,
    ended_ns: i64,
}

/// The two ends of the export, if there is a collector.
pub fn open(config: &TracesConfig) -> Result<Option<(SpanCollector, SpanExporter)>> {
    let Some(url) = &config.otlp_url else { return Ok(None) };
    let tls = urr_tls::client_config(&config.client_tls()).context("traces.tls_root_path")?;
    let client = Outbound::to_own_processes(tls);
    let (sender, receiver) = mpsc::channel(SPANS_WAITING_MAX);
    let counts = Arc::new(SpanCounts::default());
    let collector = SpanCollector {
        queue: sender,
        counts: Arc::clone(&counts),
        sampled_percent: config.sampled_percent,
    };
    let url = format!("{}/v1/traces", url.trim_end_matches('/'));
    Ok(Some((collector, SpanExporter { queue: receiver, counts, url, client })))
}

impl<S: Subscriber> Layer<S> for SpanCollector {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut span = CollectedSpan::default();
        event.record(&mut span);
        if !TraceContext::is_number_exported(span.trace_id, self.sampled_percent) {
            return;
        }
        if self.queue.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Visit for CollectedSpan {
    fn record_u128(&mut self, field: &Field, value: u128) {
        if field.name() == "trace_id" {
            self.trace_id = value;
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "span_id" => self.span_id = value,
            "parent_id" => self.parent_id = value,
            _ => {}
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match field.name() {
            "begun_ns" => self.begun_ns = value,
            "ended_ns" => self.ended_ns = value,
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        match field.name() {
            "is_event" => self.is_event = value,
            "is_failure" => self.is_failure = value,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "service" => self.service = value.to_owned(),
            "name" => self.name = value.to_owned(),
            "outcome" => self.outcome = value.to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn fmt::Debug) {}
}

impl SpanExporter {
    pub fn start(self) -> RunningExporter {
        let (stop, stopped) = oneshot::channel();
        let counts = Arc::clone(&self.counts);
        RunningExporter { counts, stop, task: tokio::spawn(self.run(stopped)) }
    }

    /// Sends batches until it is stopped, and then what is left, once.
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut last_warning = None;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                _ = &mut stopped => break,
                _ = self.queue.recv_many(&mut batch, BATCH_SPANS_MAX) => {}
            }
            self.fill(&mut batch).await;
            if batch.is_empty() {
                return;
            }
            if let Err(problem) = self.send(&batch).await {
                let is_due = last_warning.is_none_or(|at: Instant| at.elapsed() >= WARN_EVERY);
                if is_due {
                    warn!(problem, "spans are lost: the collector did not take them");
                    last_warning = Some(Instant::now());
                }
            }
        }
        let mut batch = Vec::new();
        while batch.len() < SPANS_WAITING_MAX
            && let Ok(span) = self.queue.try_recv()
        {
            batch.push(span);
        }
        if !batch.is_empty()
            && let Err(problem) = self.send(&batch).await
        {
            warn!(problem, "the last spans are lost");
        }
    }

    async fn fill(&mut self, batch: &mut Vec<CollectedSpan>) {
        let deadline = Instant::now() + BATCH_WAIT;
        while batch.len() < BATCH_SPANS_MAX {
            match timeout_at(deadline, self.queue.recv()).await {
                Ok(Some(span)) => batch.push(span),
                Ok(None) | Err(_) => return,
            }
        }
    }

    async fn send(&self, batch: &[CollectedSpan]) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = serde_json::to_vec(&export_request(batch)).expect("JSON values can be written");
        let request = OutboundRequest {
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body: body.into(),
            timeout: SEND_TIMEOUT,
        };
        let sent = match self.client.send(request).await {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(format!("it answers with {}", answer.status)),
            Err(error) => Err(error.to_string()),
        };
        let count = if sent.is_ok() { &self.counts.exported } else { &self.counts.dropped };
        count.fetch_add(u64::try_from(batch.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        sent
    }
}

impl RunningExporter {
    pub fn register(&self, metrics: &Metrics) {
        let counts = Arc::clone(&self.counts);
        let read = Box::new(move || counts.exported.load(Ordering::Relaxed));
        metrics.observe_counter("urr_spans_exported", "Spans that the collector took.", read);
        let counts = Arc::clone(&self.counts);
        let read = Box::new(move || counts.dropped.load(Ordering::Relaxed));
        metrics.observe_counter("urr_spans_dropped", "Spans that were lost.", read);
    }

    /// Sends what is left, and does not wait long for it.
    pub async fn stop(self) {
        // The task may have ended by itself.
        self.stop.send(()).ok();
        drop(tokio::time::timeout(SEND_TIMEOUT, self.task).await);
    }
}

/// An `ExportTraceServiceRequest` of the protocol.
fn export_request(batch: &[CollectedSpan]) -> Value {
    let mut services: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for span in batch {
        services.entry(&span.service).or_default().push(span_json(span));
    }
    let resources = services.into_iter().map(|(service, spans)| {
        json!({
            "resource": { "attributes": [
                text_attribute("service.name", service),
                text_attribute("service.namespace", "urr"),
                text_attribute("service.version", env!("CARGO_PKG_VERSION")),
            ] },
            "scopeSpans": [{ "scope": { "name": "urr" }, "spans": spans }],
        })
    });
    json!({ "resourceSpans": resources.collect::<Vec<_>>() })
}

fn span_json(span: &CollectedSpan) -> Value {
    let parent = match span.parent_id {
        0 => String::new(),
        id => format!("{id:016x}"),
    };
    let (kind, outcome) = match span.is_event {
        true => (KIND_CONSUMER, "urr.outcome"),
        false => (KIND_SERVER, "http.response.status_code"),
    };
    json!({
        "traceId": format!("{:032x}", span.trace_id),
        "spanId": format!("{:016x}", span.span_id),
        "parentSpanId": parent,
        "name": span.name,
        "kind": kind,
        // 64-bit numbers are texts in the protocol's JSON.
        "startTimeUnixNano": span.begun_ns.to_string(),
        "endTimeUnixNano": span.ended_ns.to_string(),
        "attributes": [text_attribute(outcome, &span.outcome)],
        "status": if span.is_failure { json!({ "code": STATUS_ERROR }) } else { json!({}) },
    })
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::post;
    use tokio::net::TcpListener;
    use tracing_subscriber::layer::SubscriberExt;
    use urr_kernel::{Clock, FinishedSpan, SpanKind, TraceContext, Uuid};

    use super::*;

    fn config(url: &str, sampled_percent: u8) -> TracesConfig {
        TracesConfig { otlp_url: Some(url.to_owned()), tls_root_path: None, sampled_percent }
    }

    fn record(id: u128) {
        FinishedSpan {
            trace: TraceContext::root(Uuid::from_u128(id)),
            parent_id: Some(7),
            kind: SpanKind::Request,
            service: "ticket",
            name: "POST /api/seats/reserve",
            ended_at: Clock::System.now(),
            took: Duration::from_millis(5),
            outcome: "503",
            is_failure: true,
        }
        .record();
    }

    /// A collector that keeps what it gets.
    async fn collector() -> (String, mpsc::UnboundedReceiver<Value>) {
        let (sender, received) = mpsc::unbounded_channel();
        let take = move |axum::Json(body): axum::Json<Value>| {
            sender.send(body).ok();
            async { axum::Json(json!({})) }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum_serve(listener, router).await });
        (url, received)
    }

    async fn axum_serve(listener: TcpListener, router: Router) {
        let never = tokio_util::sync::CancellationToken::new();
        urr_service::serve(listener, router, never, Duration::ZERO).await.unwrap();
    }

    #[tokio::test]
    async fn spans_arrive_in_the_form_of_the_protocol() {
        let (url, mut received) = collector().await;
        let (spans, exporter) = open(&config(&url, 100)).unwrap().unwrap();
        let exporter = exporter.start();
        let subscriber = tracing_subscriber::registry().with(spans);
        tracing::subscriber::with_default(subscriber, || {
            record(0x0193_8d2c_8a00_7000_8000_0000_0000_0005);
        });
        let body = received.recv().await.unwrap();
        let resource = &body["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0];
        assert_eq!(service, &text_attribute("service.name", "ticket"));
        let span = &resource["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"], "01938d2c8a0070008000000000000005");
        assert_eq!(span["spanId"], "8000000000000005");
        assert_eq!(span["parentSpanId"], "0000000000000007");
        assert_eq!((&span["kind"], &span["status"]["code"]), (&json!(2), &json!(2)));
        let time = |name: &str| span[name].as_str().unwrap().parse::<i64>().unwrap();
        assert_eq!(time("endTimeUnixNano") - time("startTimeUnixNano"), 5_000_000);
        exporter.stop().await;
    }

    /// Nobody waits for a collector, and what is lost is counted.
    #[tokio::test]
    async fn spans_that_find_the_queue_full_are_dropped_and_counted() {
        let (spans, exporter) = open(&config("http://127.0.0.1:1", 100)).unwrap().unwrap();
        let subscriber = tracing_subscriber::registry().with(spans);
        tracing::subscriber::with_default(subscriber, || {
            for id in 1..=SPANS_WAITING_MAX + 10 {
                record(u128::try_from(id).unwrap());
            }
        });
        assert_eq!(exporter.counts.dropped.load(Ordering::Relaxed), 10);
    }

    #[tokio::test]
    async fn spans_that_the_collector_does_not_take_are_dropped_and_counted() {
        let (spans, exporter) = open(&config("http://127.0.0.1:1", 100)).unwrap().unwrap();
        let subscriber = tracing_subscriber::registry().with(spans);
        tracing::subscriber::with_default(subscriber, || (1..=3).for_each(record));
        let exporter = exporter.start();
        let counts = &exporter.counts;
        urr_test::eventually("they are given up", async || {
            (counts.dropped.load(Ordering::Relaxed) == 3).then_some(())
        })
        .await;
        assert_eq!(counts.exported.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_trace_is_sampled_by_its_id() {
        let (spans, mut exporter) = open(&config("http://127.0.0.1:1", 25)).unwrap().unwrap();
        let subscriber = tracing_subscriber::registry().with(spans);
        tracing::subscriber::with_default(subscriber, || (1..=100).for_each(record));
        let mut kept = Vec::new();
        exporter.queue.recv_many(&mut kept, 200).await;
        assert_eq!(kept.len(), 25);
        assert!(kept.iter().all(|span| span.trace_id % 100 < 25));
    }
}
