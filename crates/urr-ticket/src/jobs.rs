//! Periodic jobs: ending what is over, telling fans, and the audit.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use urr_service::idempotency::keys_purge;
use urr_service::jobs::run_every;
use urr_storage::StorageError;

use crate::TicketService;
use crate::reservations::expiry::Sweeper;

const EMPTY_CLOSED_SALES_EVERY: Duration = Duration::from_secs(1);
const END_MEMBERSHIPS_EVERY: Duration = Duration::from_secs(60);
const END_TRANSFERS_EVERY: Duration = Duration::from_secs(10);
const SETTLE_POINTS_EVERY: Duration = Duration::from_secs(10);
const ANNOUNCE_MOVED_EVENTS_EVERY: Duration = Duration::from_secs(1);
const TELL_ALERTS_EVERY: Duration = Duration::from_secs(1);
const END_ALERTS_EVERY: Duration = Duration::from_secs(60);
const PURGE_KEYS_EVERY: Duration = Duration::from_secs(60);
const KEYS_PER_PURGE: u32 = 10_000;
const ERASE_GUESTS_EVERY: Duration = Duration::from_secs(60 * 60);
const GUESTS_PER_ERASURE: u32 = 500;
const SHARE_BOOKINGS_EVERY: Duration = Duration::from_secs(1);
const SUM_PAST_EVENTS_EVERY: Duration = Duration::from_secs(60);
const AUDIT_EVERY: Duration = Duration::from_secs(300);

impl TicketService {
    /// Runs the jobs until `stop`. A job that is under way then ends at its next wait;
    /// each of its transactions is complete by itself.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let (expiry, closed) = (Sweeper::new(self.clone()), Sweeper::new(self.clone()));
        let (expiry, closed) = (Mutex::new(expiry), Mutex::new(closed));
        let auditor = Mutex::new(self.auditor());
        let jobs = async {
            tokio::join!(
                run_every("expire_holds", self.settings.expiry_interval, || async {
                    let report = expiry.lock().await.expire_overdue().await?;
                    log_ended(report.ended, "holds expired");
                    Ok::<_, StorageError>(())
                }),
                run_every("empty_closed_sales", EMPTY_CLOSED_SALES_EVERY, || async {
                    let report = closed.lock().await.empty_closed_sales().await?;
                    log_ended(report.ended, "reservations of closed sales were cancelled");
                    Ok::<_, StorageError>(())
                }),
                run_every("end_memberships", END_MEMBERSHIPS_EVERY, || async {
                    log_ended(self.end_memberships().await?, "memberships ended");
                    Ok::<_, StorageError>(())
                }),
                run_every("end_transfers", END_TRANSFERS_EVERY, || async {
                    let ended = self.end_started_transfers().await?;
                    log_ended(ended, "listings ended at the start of their event");
                    Ok::<_, StorageError>(())
                }),
                run_every("settle_points", SETTLE_POINTS_EVERY, || async {
                    let settled = self.settle_points().await?;
                    log_ended(settled, "purchases whose points may count were looked at");
                    Ok::<_, StorageError>(())
                }),
                run_every("announce_moved_events", ANNOUNCE_MOVED_EVENTS_EVERY, || async {
                    let announced = self.announce_moved_events().await?;
                    log_ended(announced, "owners were told of a moved event");
                    Ok::<_, StorageError>(())
                }),
                run_every("tell_sale_alerts", TELL_ALERTS_EVERY, || async {
                    log_ended(self.tell_sale_alerts().await?, "sale alerts were looked at");
                    Ok::<_, StorageError>(())
                }),
                run_every("tell_seat_alerts", TELL_ALERTS_EVERY, || async {
                    log_ended(self.tell_seat_alerts().await?, "fans were told of returned seats");
                    Ok::<_, StorageError>(())
                }),
                run_every("end_seat_alerts", END_ALERTS_EVERY, || async {
                    log_ended(self.end_seat_alerts().await?, "events with seat alerts are over");
                    Ok::<_, StorageError>(())
                }),
                run_every("purge_idempotency_keys", PURGE_KEYS_EVERY, || async {
                    let now = self.clock.now();
                    let purged = self.db.write(move |tx| keys_purge(tx, now, KEYS_PER_PURGE)).await;
                    purged.map(|purged| log_ended(purged, "idempotency keys were forgotten"))
                }),
                run_every("erase_guests", ERASE_GUESTS_EVERY, || async {
                    loop {
                        match self.erase_guests(GUESTS_PER_ERASURE).await? {
                            0 => return Ok::<_, StorageError>(()),
                            erased => log_ended(erased, "guests of past events were erased"),
                        }
                    }
                }),
                run_every("share_bookings", SHARE_BOOKINGS_EVERY, || self.share_bookings()),
                run_every("sum_past_events", SUM_PAST_EVENTS_EVERY, || self.sum_past_events()),
                run_every("audit_reservations", AUDIT_EVERY, || async {
                    auditor.lock().await.run().await
                }),
                run_every("audit_all_reservations", AUDIT_EVERY, || self.audit_daily()),
            )
        };
        stop.run_until_cancelled(jobs).await;
    }
}

fn log_ended(ended: u64, what: &'static str) {
    if ended > 0 {
        tracing::debug!(ended, what);
    }
}
