//! Logs: text for people, one JSON object per line for machines, always on standard error.
//!
//! A slow or missing reader of the log must not stop the sale. Lines go through a bounded queue to a
//! thread of their own; when the queue is full they are dropped and counted. `tracing-appender` does
//! the same, but does not write into the log how many lines are missing, and prints at shutdown with
//! a macro that panics when standard output is closed.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use urr_kernel::SPAN_TARGET;

use crate::config::{LogConfig, LogFormat};
use crate::traces::SpanCollector;

const LINES_WAITING_MAX: usize = 8_192;
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Keeps the log alive. When it is dropped, the lines in the queue are written.
#[must_use]
pub struct LogGuard(LogQueue);

/// Starts logging for this process, and the collection of spans if they are exported. A second start
/// changes nothing.
pub fn start(config: &LogConfig, spans: Option<SpanCollector>) -> anyhow::Result<LogGuard> {
    let filter = EnvFilter::try_new(&config.level)
        .map_err(|error| anyhow::anyhow!("log.level = {:?}: {error}", config.level))?;
    // Spans are no lines of the log, whatever its level is.
    let filter = filter.add_directive(format!("{SPAN_TARGET}=off").parse()?);
    let queue = LogQueue::start(io::stderr());
    let registry = tracing_subscriber::registry();
    let started = match spans {
        // One filter of everything costs less than one per layer.
        None => registry.with(filter).with(log_layer(config, &queue)).try_init(),
        Some(spans) => {
            let is_span = filter_fn(|metadata| metadata.target() == SPAN_TARGET);
            let log = log_layer(config, &queue).with_filter(filter);
            registry.with(log).with(spans.with_filter(is_span)).try_init()
        }
    };
    // Only a second start fails, and the first one goes on.
    drop(started);
    Ok(LogGuard(queue))
}

fn log_layer<S>(config: &LogConfig, queue: &LogQueue) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let writer = queue.clone();
    let layer = tracing_subscriber::fmt::layer()
        // It would report them by a macro that panics when standard error is closed.
        .log_internal_errors(false)
        .with_writer(move || writer.clone());
    match config.format {
        LogFormat::Text => layer.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.with_ansi(false).json().flatten_event(true).boxed(),
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let (done, is_done) = sync_channel(1);
        let is_queued = self.0.messages.try_send(LogMessage::Flush(done)).is_ok();
        // A reader that does not read is waited for no longer than this.
        let _is_written = is_queued && is_done.recv_timeout(FLUSH_TIMEOUT).is_ok();
    }
}

enum LogMessage {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

#[derive(Clone)]
struct LogQueue {
    messages: SyncSender<LogMessage>,
    dropped: Arc<AtomicU64>,
}

impl LogQueue {
    fn start(sink: impl Write + Send + 'static) -> LogQueue {
        let (messages, queue) = sync_channel(LINES_WAITING_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&dropped);
        let builder = thread::Builder::new().name("urr-log".to_owned());
        let writer = builder.spawn(move || write_lines(sink, &queue, &counter));
        drop(writer.expect("the operating system can start a thread"));
        LogQueue { messages, dropped }
    }
}

/// One call is one line: the formatter writes whole lines.
impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.messages.try_send(LogMessage::Line(line.to_vec())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(mut sink: impl Write, queue: &Receiver<LogMessage>, dropped: &AtomicU64) {
    while let Ok(message) = queue.recv() {
        // An error cannot be reported anywhere.
        let written = match message {
            LogMessage::Line(line) => sink.write_all(&line),
            LogMessage::Flush(done) => done.try_send(()).map_err(io::Error::other),
        };
        drop(written);
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            drop(writeln!(sink, "… {missing} log lines were dropped: they were not read in time"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    /// Keeps what is written, after it has been allowed to write.
    #[derive(Clone)]
    struct Sink {
        written: Arc<Mutex<Vec<u8>>>,
        allowed: Arc<Mutex<std::sync::mpsc::Receiver<()>>>,
    }

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let stopped_waiting = self.allowed.lock().unwrap().recv();
            assert!(stopped_waiting.is_err(), "the test allows everything by dropping its end");
            self.written.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_costs_lines_and_not_the_program() {
        let (allow, allowed) = channel();
        let sink = Sink { written: Arc::default(), allowed: Arc::new(Mutex::new(allowed)) };
        let mut queue = LogQueue::start(sink.clone());
        for _ in 0..LINES_WAITING_MAX + 100 {
            queue.write_all(b"line\n").unwrap();
        }
        drop(allow);
        // The queue is full: the guard's own message may find no place in it.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while sink.written.lock().unwrap().len() < 5 * LINES_WAITING_MAX {
            assert!(std::time::Instant::now() < deadline, "the lines are written");
            thread::yield_now();
        }
        drop(LogGuard(queue));
        let text = String::from_utf8(sink.written.lock().unwrap().clone()).unwrap();
        let kept = text.lines().filter(|line| *line == "line").count();
        assert!(kept >= LINES_WAITING_MAX, "{kept}");
        assert!(text.contains("log lines were dropped"), "{}", text.len());
    }

    #[test]
    fn a_reader_that_is_gone_costs_nothing() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut queue = LogQueue::start(Gone);
        queue.write_all(b"line\n").unwrap();
        drop(LogGuard(queue));
    }
}
