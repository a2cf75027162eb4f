//! Jobs: telling the ticket service of points, writing views, and deleting what is gone.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_service::idempotency::keys_purge;
use urr_service::jobs::run_every;
use urr_storage::{DbResult, StorageError};

use crate::CommunityService;
use crate::comments::store::comments_purge;
use crate::moderation::store::reports_purge;
use crate::posts::store::posts_purge;

const PURGE_INTERVAL: Duration = Duration::from_hours(1);
/// What was deleted counts for its author's limits for a day.
const DELETED_TTL: Duration = Duration::from_hours(25);
const PURGE_BATCH_MAX: u32 = 500;

impl CommunityService {
    /// Runs the jobs until they are told to stop, and then writes the last views.
    pub async fn run_jobs(self, stop: CancellationToken) {
        let settings = &self.0.settings;
        let jobs = async {
            tokio::join!(
                run_every("send_awards", settings.point_interval, || self.send_due_awards()),
                run_every("flush_views", settings.view_interval, || self.flush_views()),
                run_every("purge_posts", PURGE_INTERVAL, || self.purge_deleted()),
            )
        };
        stop.run_until_cancelled(jobs).await;
        if let Err(error) = self.flush_views().await {
            tracing::warn!(%error, "the last views are not counted");
        }
    }

    /// Deletes rows of deleted posts and comments, with their reports, in small batches. Returns how
    /// many rows.
    pub async fn purge_deleted(&self) -> DbResult<u64> {
        let now = self.0.clock.now();
        let before = now - DELETED_TTL;
        let mut purged = 0;
        loop {
            let purge = self.0.db.write(move |tx| {
                // Comments first: a post without any can go.
                let comments = comments_purge(tx, before, PURGE_BATCH_MAX)?;
                let posts = posts_purge(tx, before, PURGE_BATCH_MAX)?;
                let reports = reports_purge(tx, before, PURGE_BATCH_MAX)?;
                let keys = keys_purge(tx, now, PURGE_BATCH_MAX)?;
                Ok::<_, StorageError>(comments + posts + reports + keys)
            });
            match purge.await? {
                0 => return Ok(purged),
                rows => purged += rows,
            }
        }
    }
}
