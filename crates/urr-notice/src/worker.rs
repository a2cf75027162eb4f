//! Reads notices and logs them. What should follow from an admission has its place here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message as SqsMessage};
use prometheus_client::metrics::counter::Counter;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use urr_service::Metrics;

use crate::{NoticeMessage, SqsQueue};

const BATCH_MAX: i32 = 10;
/// How long a read waits for a message.
const WAIT_SECONDS: i32 = 10;
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The queue did not answer, or with an error.
#[derive(Debug, thiserror::Error)]
#[error("the queue cannot be read: {0}")]
pub struct NoticeReadError(String);

/// Reads notices. Several workers may read one queue.
#[derive(Clone, Debug)]
pub struct NoticeWorker {
    queue: SqsQueue,
    metrics: WorkerMetrics,
    /// Whether the last read has failed.
    is_failing: Arc<AtomicBool>,
}

/// Numbers for Prometheus.
#[derive(Clone, Debug, Default)]
struct WorkerMetrics {
    read: Counter,
    unreadable: Counter,
    failures: Counter,
}

/// The result of one read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeBatch {
    pub done: Vec<NoticeMessage>,
    /// Messages that stay on the queue, which moves them to its dead-letter queue after some reads.
    pub unreadable: usize,
}

impl NoticeWorker {
    pub fn new(queue: SqsQueue) -> NoticeWorker {
        NoticeWorker { queue, metrics: WorkerMetrics::default(), is_failing: Arc::default() }
    }

    /// Whether the queue has answered the last read. Before the first answer it is taken to be there.
    pub fn is_reading(&self) -> bool {
        !self.is_failing.load(Ordering::Relaxed)
    }

    pub fn register(&self, metrics: &Metrics) {
        let WorkerMetrics { read, unreadable, failures } = self.metrics.clone();
        metrics.register("urr_notices_read", "Notices that were read and deleted", read);
        let help = "Messages that are no notice; each read of one counts";
        metrics.register("urr_notices_unreadable", help, unreadable);
        let help = "Reads that the queue refused or did not answer";
        metrics.register("urr_notice_read_failures", help, failures);
    }

    /// Reads until it is stopped. A message that was read and not deleted comes again.
    pub async fn run(&self, stop: CancellationToken) {
        let mut pause = Duration::from_secs(1);
        while let Some(read) = stop.run_until_cancelled(self.read(WAIT_SECONDS)).await {
            self.is_failing.store(read.is_err(), Ordering::Relaxed);
            match read {
                Ok(batch) => {
                    self.metrics.read.inc_by(count(batch.done.len()));
                    self.metrics.unreadable.inc_by(count(batch.unreadable));
                    pause = Duration::from_secs(1);
                }
                Err(error) => {
                    self.metrics.failures.inc();
                    tracing::warn!(%error, "notices could not be read");
                    stop.run_until_cancelled(sleep(pause)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Reads some messages, handles them and deletes them.
    pub async fn read(&self, wait_seconds: i32) -> Result<NoticeBatch, NoticeReadError> {
        let received = self
            .queue
            .client()
            .receive_message()
            .queue_url(self.queue.url())
            .max_number_of_messages(BATCH_MAX)
            .wait_time_seconds(wait_seconds)
            .send();
        let received = received.await.map_err(|error| NoticeReadError(error.to_string()))?;
        let mut read = NoticeBatch::default();
        let mut done = Vec::new();
        for (index, received) in received.messages().iter().enumerate() {
            match NoticeMessage::parse(received.body().unwrap_or_default()) {
                Ok(message) => {
                    handle(&message);
                    read.done.push(message);
                    done.extend(deletion(index, received));
                }
                Err(error) => {
                    let id = received.message_id().unwrap_or("-");
                    tracing::warn!(%error, id, "a message is left on the queue");
                    read.unreadable += 1;
                }
            }
        }
        self.delete(done).await?;
        Ok(read)
    }

    async fn delete(
        &self,
        done: Vec<DeleteMessageBatchRequestEntry>,
    ) -> Result<(), NoticeReadError> {
        if done.is_empty() {
            return Ok(());
        }
        let deleting = self.queue.client().delete_message_batch().queue_url(self.queue.url());
        let deleted = deleting.set_entries(Some(done)).send().await;
        let deleted = deleted.map_err(|error| NoticeReadError(error.to_string()))?;
        match deleted.failed().len() {
            0 => Ok(()),
            count => Err(NoticeReadError(format!("{count} messages could not be deleted"))),
        }
    }
}

fn count(messages: usize) -> u64 {
    u64::try_from(messages).expect("a batch is small")
}

fn handle(message: &NoticeMessage) {
    match message {
        NoticeMessage::Admitted { event_id, user_id, slot_id, .. } => {
            tracing::info!(%event_id, %user_id, %slot_id, "admitted");
        }
        NoticeMessage::Unknown => tracing::warn!("a message with an unknown action is ignored"),
    }
}

fn deletion(index: usize, received: &SqsMessage) -> Option<DeleteMessageBatchRequestEntry> {
    let handle = received.receipt_handle()?;
    let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string());
    Some(entry.receipt_handle(handle).build().expect("it has an id and a handle"))
}
