//! What has to be done from time to time: ending what is over, and looking whether all agrees.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::TicketService;
use crate::reservations::expiry::{SweepReport, Sweeper};

const EMPTYING_EVERY: Duration = Duration::from_secs(1);
const ENDING_MEMBERSHIPS_EVERY: Duration = Duration::from_secs(60);
const ENDING_TRANSFERS_EVERY: Duration = Duration::from_secs(10);
const AUDIT_EVERY: Duration = Duration::from_secs(300);

impl TicketService {
    /// Does what has to be done from time to time, until it is told to stop. What is under way then
    /// ends at its next wait; its transactions are whole by themselves.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let jobs = async {
            tokio::join!(
                self.run_expiry(),
                self.run_emptying(),
                self.run_ending_memberships(),
                self.run_ending_transfers(),
                self.run_audit(),
            )
        };
        stop.run_until_cancelled(jobs).await;
    }

    async fn run_expiry(&self) {
        let mut sweeper = Sweeper::new(self.clone());
        let mut tick = every(self.settings.expiry_interval);
        loop {
            tick.tick().await;
            match sweeper.expire_overdue().await {
                Ok(SweepReport { ended: 0, .. }) => {}
                Ok(SweepReport { ended, .. }) => tracing::debug!(ended, "holds expired"),
                Err(error) => tracing::warn!(%error, "holds could not be ended; tried again"),
            }
        }
    }

    async fn run_emptying(&self) {
        let mut sweeper = Sweeper::new(self.clone());
        let mut tick = every(EMPTYING_EVERY);
        loop {
            tick.tick().await;
            match sweeper.empty_closed_sales().await {
                Ok(SweepReport { ended: 0, .. }) => {}
                Ok(SweepReport { ended, .. }) => {
                    tracing::info!(ended, "reservations of closed sales were cancelled");
                }
                Err(error) => {
                    tracing::warn!(%error, "closed sales could not be emptied; tried again");
                }
            }
        }
    }

    async fn run_ending_memberships(&self) {
        let mut tick = every(ENDING_MEMBERSHIPS_EVERY);
        loop {
            tick.tick().await;
            match self.end_memberships().await {
                Ok(0) => {}
                Ok(ended) => tracing::info!(ended, "memberships are over"),
                Err(error) => tracing::warn!(%error, "memberships could not be ended; tried again"),
            }
        }
    }

    async fn run_ending_transfers(&self) {
        let mut tick = every(ENDING_TRANSFERS_EVERY);
        loop {
            tick.tick().await;
            match self.end_started_transfers().await {
                Ok(0) => {}
                Ok(ended) => tracing::info!(ended, "transfers ended with the start of their event"),
                Err(error) => tracing::warn!(%error, "transfers could not be ended; tried again"),
            }
        }
    }

    async fn run_audit(&self) {
        let mut auditor = self.auditor();
        let mut tick = every(AUDIT_EVERY);
        loop {
            tick.tick().await;
            if let Err(error) = auditor.run().await {
                tracing::warn!(%error, "reservations could not be audited; tried again");
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
