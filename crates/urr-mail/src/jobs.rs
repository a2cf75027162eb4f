//! What has to be done from time to time: sending what is due, counting what waits, forgetting what
//! is old.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use urr_storage::{StorageError, Tx};

use crate::Mails;
use crate::store;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const WATCH_EVERY: Duration = Duration::from_secs(15);
/// So long a stop waits for what is being sent.
const PATIENCE: Duration = Duration::from_secs(5);
const PURGE_EVERY: Duration = Duration::from_secs(60 * 60);
const KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);
const PURGE_BATCH: u32 = 500;

impl Mails {
    /// Does it until it is told to stop. What is being sent then is finished if that is soon, and
    /// otherwise sent again.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let others = async { tokio::join!(self.run_watch(), self.run_purge()) };
        let sending = async {
            let patience = async {
                stop.cancelled().await;
                tokio::time::sleep(PATIENCE).await;
            };
            tokio::select! {
                () = self.run_sending(&stop) => {}
                () = patience => {}
            }
        };
        tokio::join!(sending, stop.run_until_cancelled(others));
    }

    async fn run_sending(&self, stop: &CancellationToken) {
        let mut tick = every(LOOK_EVERY);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            if let Err(error) = self.send_due(stop).await {
                tracing::warn!(%error, "mails could not be taken in hand; tried again");
            }
        }
    }

    async fn run_watch(&self) {
        let mut tick = every(WATCH_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.count_waiting().await {
                tracing::warn!(%error, "mails could not be counted; tried again");
            }
        }
    }

    async fn run_purge(&self) {
        let mut tick = every(PURGE_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.purge().await {
                tracing::warn!(%error, "old mails could not be forgotten; tried again");
            }
        }
    }

    /// How many are still to be sent.
    pub async fn count_waiting(&self) -> Result<i64, StorageError> {
        let waiting = self.0.db.read(store::mails_waiting).await?;
        self.0.figures.note_waiting(waiting);
        Ok(waiting)
    }

    /// Forgets mails of three months ago, in small batches. Returns how many.
    pub async fn purge(&self) -> Result<u64, StorageError> {
        let before = self.0.clock.now() - KEPT;
        let mut purged = 0;
        loop {
            let purge = move |tx: &mut Tx<'_>| store::mails_purge(tx, before, PURGE_BATCH);
            match self.0.db.write(purge).await? {
                0 => return Ok(purged),
                rows => purged += rows,
            }
        }
    }
}

/// Turns that come late do not pile up.
fn every(pause: Duration) -> Interval {
    let mut tick = interval(pause);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}
