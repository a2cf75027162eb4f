//! Reads the notices and says what they say. Where something is to follow from an admission, it
//! has its place here.

use std::time::Duration;

use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message as Received};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{Message, SqsQueue};

const BATCH_MAX: i32 = 10;
/// A read waits so long for a message.
const WAIT_SECONDS: i32 = 10;
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The queue did not answer, or not as it should.
#[derive(Debug, thiserror::Error)]
#[error("the queue cannot be read: {0}")]
pub struct ReadError(String);

/// The one who reads. Several may read one queue.
#[derive(Clone, Debug)]
pub struct Worker {
    queue: SqsQueue,
}

/// What became of some messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub done: Vec<Message>,
    /// Left on the queue, which puts them aside after some times.
    pub unreadable: usize,
}

impl Worker {
    pub fn new(queue: SqsQueue) -> Worker {
        Worker { queue }
    }

    /// Reads until it is told to stop. What was read and not answered for comes again.
    pub async fn run(&self, stop: CancellationToken) {
        let mut pause = Duration::from_secs(1);
        while let Some(read) = stop.run_until_cancelled(self.read(WAIT_SECONDS)).await {
            match read {
                Ok(_) => pause = Duration::from_secs(1),
                Err(error) => {
                    tracing::warn!(%error, "notices cannot be read; tried again");
                    stop.run_until_cancelled(sleep(pause)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Reads some messages, does what they say and takes them off the queue.
    pub async fn read(&self, wait_seconds: i32) -> Result<Read, ReadError> {
        let received = self
            .queue
            .client()
            .receive_message()
            .queue_url(self.queue.url())
            .max_number_of_messages(BATCH_MAX)
            .wait_time_seconds(wait_seconds)
            .send();
        let received = received.await.map_err(|error| ReadError(error.to_string()))?;
        let mut read = Read::default();
        let mut done = Vec::new();
        for (index, received) in received.messages().iter().enumerate() {
            match Message::parse(received.body().unwrap_or_default()) {
                Ok(message) => {
                    say(&message);
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

    async fn delete(&self, done: Vec<DeleteMessageBatchRequestEntry>) -> Result<(), ReadError> {
        if done.is_empty() {
            return Ok(());
        }
        let deleting = self.queue.client().delete_message_batch().queue_url(self.queue.url());
        let deleted = deleting.set_entries(Some(done)).send().await;
        let deleted = deleted.map_err(|error| ReadError(error.to_string()))?;
        match deleted.failed().len() {
            0 => Ok(()),
            count => Err(ReadError(format!("{count} messages could not be taken off"))),
        }
    }
}

fn say(message: &Message) {
    match message {
        Message::Admitted { event_id, user_id, slot_id, .. } => {
            tracing::info!(%event_id, %user_id, %slot_id, "admitted");
        }
        Message::Unknown => tracing::warn!("a message with an unknown action is passed over"),
    }
}

fn deletion(index: usize, received: &Received) -> Option<DeleteMessageBatchRequestEntry> {
    let handle = received.receipt_handle()?;
    let entry = DeleteMessageBatchRequestEntry::builder().id(index.to_string());
    Some(entry.receipt_handle(handle).build().expect("it has an id and a handle"))
}
