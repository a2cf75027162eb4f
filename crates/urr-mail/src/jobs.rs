//! Jobs: sending due mails, counting waiting ones, deleting old ones.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_service::jobs::{run_every, ticker};
use urr_storage::{DbResult, Tx};

use crate::MailService;
use crate::store;

const SEND_INTERVAL: Duration = Duration::from_secs(1);
const COUNT_INTERVAL: Duration = Duration::from_secs(15);
const PURGE_INTERVAL: Duration = Duration::from_hours(1);
/// A stop waits this long for mails that are being sent. Longer ones are sent again later.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
const RETENTION: Duration = Duration::from_hours(90 * 24);
const PURGE_BATCH_MAX: u32 = 500;

impl MailService {
    pub async fn run_jobs(self, stop: CancellationToken) {
        let others = async {
            tokio::join!(
                run_every("count_waiting_mails", COUNT_INTERVAL, || self.count_waiting()),
                run_every("purge_mails", PURGE_INTERVAL, || self.purge_mails()),
            )
        };
        let deadline = async {
            stop.cancelled().await;
            tokio::time::sleep(STOP_TIMEOUT).await;
        };
        let sending = async {
            tokio::select! {
                () = self.run_sending(&stop) => {}
                () = deadline => {}
            }
        };
        tokio::join!(sending, stop.run_until_cancelled(others));
    }

    /// Unlike other jobs it is not cut off by a stop: it finishes the mails of its batch.
    async fn run_sending(&self, stop: &CancellationToken) {
        let mut ticks = ticker(SEND_INTERVAL);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            if let Err(error) = self.send_due(stop).await {
                tracing::warn!(%error, "due mails could not be leased");
            }
        }
    }

    /// How many mails are still to be sent.
    pub async fn count_waiting(&self) -> DbResult<i64> {
        let waiting = self.parts.db.read(store::mails_count_waiting).await?;
        self.metrics.set_waiting(waiting);
        Ok(waiting)
    }

    /// Deletes mails that ended three months ago, in small batches. Returns how many.
    pub async fn purge_mails(&self) -> DbResult<u64> {
        let before = self.parts.clock.now() - RETENTION;
        let mut purged = 0;
        loop {
            let purge = move |tx: &mut Tx<'_>| store::mails_delete(tx, before, PURGE_BATCH_MAX);
            match self.parts.db.write(purge).await? {
                0 => return Ok(purged),
                rows => purged += rows,
            }
        }
    }
}
