//! The simulated network: a message waits until the scheduler delivers it, repeats it or loses it.
//! Any waiting message can be next, so messages overtake each other and can be late.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Clones share it.
#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Vec<WaitingMessage>>>);

struct WaitingMessage {
    label: String,
    /// Whether its receiver does the same when it comes twice.
    is_repeatable: bool,
    fate: oneshot::Sender<MessageFate>,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFate {
    Delivered,
    Repeated,
    Lost,
}

impl Network {
    /// Waits for the scheduler. Whoever is dropped meanwhile takes the message along.
    pub async fn send(&self, label: String, is_repeatable: bool) -> MessageFate {
        let (fate, told) = oneshot::channel();
        self.waiting().push(WaitingMessage { label, is_repeatable, fate });
        match told.await {
            Ok(fate) => fate,
            // The run is over.
            Err(_) => std::future::pending().await,
        }
    }

    /// How many messages wait.
    pub fn count(&self) -> usize {
        let mut waiting = self.waiting();
        waiting.retain(|message| !message.fate.is_closed());
        waiting.len()
    }

    pub fn is_repeatable(&self, index: usize) -> bool {
        self.waiting()[index].is_repeatable
    }

    /// Decides about a message. Returns its label.
    pub fn decide(&self, index: usize, fate: MessageFate) -> String {
        let message = self.waiting().remove(index);
        message.fate.send(fate).ok();
        message.label
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<WaitingMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
