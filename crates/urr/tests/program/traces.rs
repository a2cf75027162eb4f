//! Traces: one purchase is one trace, from the click to the statistics, through the bus.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::audit::sell_a_ticket;
use crate::process::{Installation, eventually};

/// A collector that keeps the spans it gets.
struct SpanStore {
    port: u16,
    spans: Arc<Mutex<Vec<StoredSpan>>>,
}

#[derive(Clone, Debug)]
struct StoredSpan {
    service: String,
    name: String,
    trace_id: String,
    id: String,
    parent_id: String,
}

impl SpanStore {
    fn start() -> Result<SpanStore> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let spans = Arc::new(Mutex::new(Vec::new()));
        let store = Arc::clone(&spans);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let store = Arc::clone(&store);
                thread::spawn(move || take_batches(stream, &store).ok());
            }
        });
        Ok(SpanStore { port, spans })
    }

    fn all(&self) -> Vec<StoredSpan> {
        self.spans.lock().expect("nobody panics with it").clone()
    }
}

/// Answers requests of one connection until it ends.
fn take_batches(stream: TcpStream, store: &Mutex<Vec<StoredSpan>>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        store
            .lock()
            .expect("nobody panics with it")
            .extend(read_spans(&serde_json::from_slice(&body)?));
        (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")?;
    }
}

fn read_spans(body: &Value) -> Vec<StoredSpan> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut spans = Vec::new();
    for resource in list(&body["resourceSpans"]) {
        let service = text(&resource["resource"]["attributes"][0]["value"]["stringValue"]);
        for span in list(&resource["scopeSpans"][0]["spans"]) {
            spans.push(StoredSpan {
                service: service.clone(),
                name: text(&span["name"]),
                trace_id: text(&span["traceId"]),
                id: text(&span["spanId"]),
                parent_id: text(&span["parentSpanId"]),
            });
        }
    }
    spans
}

#[test]
fn a_purchase_is_one_trace_from_the_click_to_the_statistics() -> Result<()> {
    let store = SpanStore::start()?;
    let mut installation = Installation::new()?;
    installation.share_secrets();
    installation.set("URR_TRACES_OTLP_URL", &format!("http://127.0.0.1:{}", store.port));
    let urr = installation.up(&[])?;
    sell_a_ticket(&installation, urr.port)?;

    let expected = ["gateway", "payment", "ticket", "stats-service-group", "mail-service-group"];
    let mut trace = Vec::new();
    eventually("the whole trace is exported", || {
        let spans = store.all();
        let is_payment = |span: &&StoredSpan| span.name == "POST /api/payments/process";
        let Some(payment) = spans.iter().find(is_payment) else { return Ok(false) };
        trace = spans.iter().filter(|span| span.trace_id == payment.trace_id).cloned().collect();
        let services: BTreeSet<&str> = trace.iter().map(|span| span.service.as_str()).collect();
        Ok(expected.iter().all(|service| services.contains(service)))
    })?;
    let ids: BTreeSet<&str> = trace.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), trace.len(), "every span has an id of its own: {trace:#?}");
    let roots: Vec<_> = trace.iter().filter(|span| span.parent_id.is_empty()).collect();
    assert_eq!(roots.len(), 1, "the click is the only beginning: {roots:#?}");
    assert_eq!(roots[0].service, "gateway");
    let orphan = trace
        .iter()
        .find(|span| !span.parent_id.is_empty() && !ids.contains(span.parent_id.as_str()));
    assert!(orphan.is_none(), "{orphan:#?} of {trace:#?}");

    let url = std::fs::read_to_string(installation.path("data/internal-url"))?;
    let port = url.trim().rsplit(':').next().context("a port")?.parse()?;
    let metrics = crate::http_client::get(port, "/metrics")?.body;
    assert!(metrics.contains("\nurr_spans_dropped_total 0\n"), "{metrics}");
    // The duration of the payment leads to its trace.
    let example = format!(r#"# {{trace_id="{}"}} "#, trace[0].trace_id);
    let is_of_payment = |line: &&str| {
        line.starts_with("urr_http_request_duration_seconds_bucket")
            && line.contains(r#"service="payment",route="/api/payments/process""#)
    };
    let payments: Vec<&str> = metrics.lines().filter(is_of_payment).collect();
    assert!(payments.iter().any(|line| line.contains(&example)), "{example} in {payments:#?}");
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}

#[test]
fn a_collector_that_is_gone_stops_nothing() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    installation.set("URR_TRACES_OTLP_URL", "http://127.0.0.1:1");
    let urr = installation.up(&[])?;
    sell_a_ticket(&installation, urr.port)?;
    let ended = urr.stop("TERM")?.succeeded()?;
    assert!(ended.stderr.contains("spans are lost"), "{}", ended.stderr);
    Ok(())
}
