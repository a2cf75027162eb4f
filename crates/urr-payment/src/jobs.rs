//! What has to be done from time to time: going on with payments that have something to do, proving
//! the books, and comparing them with the provider's.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use urr_storage::StorageError;

use crate::Payments;
use crate::store::payments;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const WATCH_EVERY: Duration = Duration::from_secs(30);
const STUCK_AFTER: Duration = Duration::from_secs(10 * 60);
/// What moved so long ago is compared every time.
const COMPARED: Duration = Duration::from_secs(2 * 60 * 60);
const AT_ONCE: u32 = 16;

impl Payments {
    /// Does it until it is told to stop. Others go on with what is under way then.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let jobs = async { tokio::join!(self.run_resolver(), self.run_watch(), self.run_proof()) };
        stop.run_until_cancelled(jobs).await;
    }

    async fn run_resolver(&self) {
        let mut tick = every(LOOK_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.resolve_due().await {
                tracing::warn!(%error, "payments could not be gone on with; tried again");
            }
        }
    }

    async fn run_watch(&self) {
        let mut tick = every(WATCH_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = self.count_stuck().await {
                tracing::warn!(%error, "payments could not be counted; tried again");
            }
        }
    }

    /// How many payments have not got on for long: somebody has to look.
    pub async fn count_stuck(&self) -> Result<i64, StorageError> {
        let since = self.0.clock.now() - STUCK_AFTER;
        let stuck = self.0.db.read(move |tx| payments::payments_stuck(tx, since)).await?;
        self.0.figures.note_stuck(stuck);
        Ok(stuck)
    }

    async fn run_proof(&self) {
        let mut tick = every(self.0.settings.proof_interval);
        loop {
            tick.tick().await;
            if let Err(error) = self.prove().await {
                tracing::warn!(%error, "the books could not be read; tried again");
            }
            let now = self.0.clock.now();
            if let Err(error) = self.reconcile(now - COMPARED, now).await {
                tracing::warn!(%error, "the books could not be compared; tried again");
            }
        }
    }

    /// Goes on with every payment that is due: after a crash, an unclear answer, a silent ticket
    /// office. Returns how many were.
    pub async fn resolve_due(&self) -> Result<usize, StorageError> {
        let mut resolved = 0;
        loop {
            let now = self.0.clock.now();
            let due = self.0.db.read(move |tx| payments::payments_due(tx, now, AT_ONCE)).await?;
            self.0.figures.note_due(due.len());
            if due.is_empty() {
                return Ok(resolved);
            }
            let driven = join_all(due.iter().map(|id| self.resume(*id))).await;
            let mut taken = 0;
            for (id, driven) in due.iter().zip(driven) {
                match driven {
                    Ok(Some(_)) => taken += 1,
                    // Somebody else has it.
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(payment = %id, %error, "a payment did not get on");
                        return Err(error);
                    }
                }
            }
            if taken == 0 {
                return Ok(resolved);
            }
            resolved += taken;
        }
    }
}

/// Turns that come late do not pile up.
fn every(pause: Duration) -> Interval {
    let mut tick = interval(pause);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}
