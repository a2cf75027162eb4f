//! Sends the notices that the waiting room puts into its buffer.

use std::collections::HashSet;
use std::time::Duration;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use urr_queue::{Notice, NoticeReceiver};

use crate::message::{Message, deduplication_id};
use crate::{Figures, SqsQueue};

/// SQS takes no more at once.
const BATCH_MAX: usize = 10;
const ATTEMPTS_MAX: u32 = 3;
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);
/// When we stop, what is left in the buffer may take so long together.
const FAREWELL: Duration = Duration::from_secs(2);

/// The one who sends.
#[derive(Debug)]
pub struct Post {
    pub queue: SqsQueue,
    pub notices: NoticeReceiver,
    pub figures: Figures,
}

impl Post {
    /// Sends until it is told to stop, then what is left, if it can be sent soon.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut in_hand = Vec::with_capacity(BATCH_MAX);
        stop.run_until_cancelled(self.send_all(&mut in_hand)).await;
        self.notices.receiver.close();
        if timeout(FAREWELL, self.send_all(&mut in_hand)).await.is_err() {
            let mut lost = in_hand.len();
            while self.notices.receiver.try_recv().is_ok() {
                lost += 1;
            }
            self.give_up(lost, "we stop");
        }
    }

    /// Sends what is in hand and whatever comes, until there will be no more. If it is cancelled,
    /// what was not taken is still in hand; what was taken twice is one message to the queue.
    async fn send_all(&mut self, in_hand: &mut Vec<Notice>) {
        while !in_hand.is_empty() || self.notices.receiver.recv_many(in_hand, BATCH_MAX).await > 0 {
            self.send(in_hand).await;
        }
    }

    /// Sends all that is in hand or, after some attempts, gives up what was not taken.
    async fn send(&self, in_hand: &mut Vec<Notice>) {
        for attempt in 1..=ATTEMPTS_MAX {
            let refused = match timeout(SEND_TIMEOUT, self.try_send(in_hand)).await {
                Err(_) => "no answer in time".to_owned(),
                Ok(Err(error)) => error,
                Ok(Ok(taken)) => {
                    self.figures.sent.inc_by(taken.len() as u64);
                    let mut index = 0..;
                    in_hand.retain(|_| !index.next().is_some_and(|at: usize| taken.contains(&at)));
                    if in_hand.is_empty() {
                        return;
                    }
                    "some were refused".to_owned()
                }
            };
            if attempt == ATTEMPTS_MAX {
                self.give_up(in_hand.len(), &refused);
                in_hand.clear();
            } else {
                sleep(PAUSE * attempt).await;
            }
        }
    }

    /// Which of them the queue has taken.
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
        Ok(answer.successful().iter().filter_map(|taken| taken.id().parse().ok()).collect())
    }

    fn give_up(&self, count: usize, reason: &str) {
        self.notices.dropped.inc_by(count as u64);
        tracing::warn!(count, reason, "notices of admissions were given up");
    }
}

fn entry(index: usize, notice: &Notice) -> SendMessageBatchRequestEntry {
    let body = serde_json::to_string(&Message::from(notice)).expect("a notice is JSON");
    SendMessageBatchRequestEntry::builder()
        .id(index.to_string())
        .message_body(body)
        .message_group_id(notice.event_id.to_string())
        .message_deduplication_id(deduplication_id(notice))
        .build()
        .expect("it has an id and a body")
}
