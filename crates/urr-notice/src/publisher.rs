//! Sends the notices that the queue service puts into its buffer.

use std::collections::HashSet;
use std::time::Duration;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use urr_queue::{Notice, NoticeReceiver};

use crate::message::{NoticeMessage, deduplication_id};
use crate::{NoticeMetrics, SqsQueue};

/// The limit of SQS.
const BATCH_MAX: usize = 10;
const ATTEMPTS_MAX: u32 = 3;
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);
/// How long a stop waits for the notices that are left.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends notices to SQS.
#[derive(Debug)]
pub struct NoticePublisher {
    pub queue: SqsQueue,
    pub notices: NoticeReceiver,
    pub metrics: NoticeMetrics,
}

impl NoticePublisher {
    /// Sends until it is stopped, then sends what is left within [`STOP_TIMEOUT`].
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pending = Vec::with_capacity(BATCH_MAX);
        stop.run_until_cancelled(self.send_all(&mut pending)).await;
        self.notices.receiver.close();
        if timeout(STOP_TIMEOUT, self.send_all(&mut pending)).await.is_err() {
            let mut lost = pending.len();
            while self.notices.receiver.try_recv().is_ok() {
                lost += 1;
            }
            self.give_up(lost, "the process stops");
        }
    }

    /// Sends pending and new notices until the buffer is closed. If it is cancelled, notices that SQS
    /// has not accepted are still pending; one that is sent twice is deduplicated by SQS.
    async fn send_all(&mut self, pending: &mut Vec<Notice>) {
        while !pending.is_empty() || self.notices.receiver.recv_many(pending, BATCH_MAX).await > 0 {
            self.send(pending).await;
        }
    }

    /// Sends the pending notices and gives up, after some attempts, those that were not accepted.
    async fn send(&self, pending: &mut Vec<Notice>) {
        for attempt in 1..=ATTEMPTS_MAX {
            let refused = match timeout(SEND_TIMEOUT, self.try_send(pending)).await {
                Err(_) => "no answer in time".to_owned(),
                Ok(Err(error)) => error,
                Ok(Ok(accepted)) => {
                    self.metrics.sent.inc_by(accepted.len() as u64);
                    let mut index = 0..;
                    pending
                        .retain(|_| !index.next().is_some_and(|at: usize| accepted.contains(&at)));
                    if pending.is_empty() {
                        return;
                    }
                    "some were refused".to_owned()
                }
            };
            if attempt == ATTEMPTS_MAX {
                self.give_up(pending.len(), &refused);
                pending.clear();
            } else {
                sleep(PAUSE * attempt).await;
            }
        }
    }

    /// Returns the positions of the accepted notices.
    async fn try_send(&self, batch: &[Notice]) -> Result<HashSet<usize>, String> {
        let entries = batch.iter().enumerate().map(|(index, notice)| entry(index, notice));
        let sent = self
            .queue
            .client()
            .send_message_batch()
            .queue_url(self.queue.url())
            .set_entries(Some(entries.collect()))
            .send();
        let answer = sent.await.map_err(|error| error.to_string())?;
        Ok(answer.successful().iter().filter_map(|entry| entry.id().parse().ok()).collect())
    }

    fn give_up(&self, count: usize, reason: &str) {
        self.notices.dropped.inc_by(count as u64);
        tracing::warn!(count, reason, "notices of admissions were not sent");
    }
}

fn entry(index: usize, notice: &Notice) -> SendMessageBatchRequestEntry {
    let body = serde_json::to_string(&NoticeMessage::from(notice)).expect("a notice is JSON");
    SendMessageBatchRequestEntry::builder()
        .id(index.to_string())
        .message_body(body)
        .message_group_id(notice.event_id.to_string())
        .message_deduplication_id(deduplication_id(notice))
        .build()
        .expect("it has an id and a body")
}
