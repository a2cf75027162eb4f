//! Jobs: deleting expired rows and marking dormant accounts; and the rotation of data keys.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_service::admin_log;
use urr_service::data_keys::{KeyRotation, KeyRotationProgress};
use urr_service::jobs::run_every;
use urr_storage::DbResult;

use crate::accounts::store as users;
use crate::identity_check::{self, store as identities};
use crate::social::store as social;
use crate::sql::rows_purge;
use crate::{AuthService, InternalError, bot_check, links, sessions};

const PURGE_INTERVAL: Duration = Duration::from_secs(60);
const DORMANT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Small enough not to slow down a sale.
const ROWS_PER_TRANSACTION: u32 = 500;
/// Spent challenges are kept a little longer than they live, because clocks differ.
const SPENT_KEPT: Duration = Duration::from_secs(60);
/// How long verifications are kept for inquiries.
const VERIFICATIONS_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// What expires: the table, its key, and how the time of a row is compared.
type ExpiringRows = (&'static str, &'static str, &'static str);
const REVOKED: ExpiringRows = ("revoked_access_tokens", "seq", "expires_at <=");
const HISTORY: ExpiringRows = ("login_history", "id", "happened_at <");
const CHALLENGES: ExpiringRows = ("spent_challenges", "id", "expires_at <");
const FAILURES: ExpiringRows = ("failed_logins", "id", "failed_at <");
const VERIFICATIONS: ExpiringRows = ("identity_verifications", "id", "expires_at <");
const DEPARTED: ExpiringRows = ("departed_people", "ci_index", "kept_until <=");
const LINKS: ExpiringRows = ("account_links", "id", "expires_at <");
const REQUESTS: ExpiringRows = ("link_requests", "id", "requested_at <");
const ATTEMPTS: ExpiringRows = ("social_attempts", "state_hash", "expires_at <=");

/// How many rows were deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeCounts {
    pub refresh_tokens: u64,
    pub revoked_access_tokens: u64,
    pub login_history: u64,
    pub spent_challenges: u64,
    pub failed_logins: u64,
    pub verifications: u64,
    pub departed_people: u64,
    pub social_attempts: u64,
    pub account_links: u64,
    pub link_requests: u64,
}

impl AuthService {
    /// Deletes expired rows, up to `limit` of each table.
    pub async fn purge_expired(&self, limit: u32) -> DbResult<PurgeCounts> {
        let now = self.0.clock.now();
        let history_kept = self.0.settings.login_history_kept;
        let purged = self.0.db.write(move |tx| {
            let refresh_tokens = sessions::store::refresh_purge(tx, now, limit)?;
            let mut purge = |rows, time| rows_purge(tx, rows, time, limit);
            Ok(PurgeCounts {
                refresh_tokens,
                revoked_access_tokens: purge(REVOKED, now)?,
                login_history: purge(HISTORY, now - history_kept)?,
                spent_challenges: purge(CHALLENGES, now - SPENT_KEPT)?,
                failed_logins: purge(FAILURES, now - bot_check::FAILURES_WINDOW)?,
                verifications: purge(VERIFICATIONS, now - VERIFICATIONS_KEPT)?,
                departed_people: purge(DEPARTED, now)?,
                social_attempts: purge(ATTEMPTS, now)?,
                account_links: purge(LINKS, now)?,
                link_requests: purge(REQUESTS, now - links::REQUESTS_WINDOW)?,
            })
        });
        purged.await
    }

    /// Marks up to `limit` accounts as dormant that were not used for long. Returns how many.
    pub async fn mark_dormant(&self, limit: u32) -> DbResult<u64> {
        let now = self.0.clock.now();
        let before = now - self.0.settings.dormant_after;
        self.write(move |tx| users::user_mark_dormant(tx, before, now, limit)).await
    }

    /// Encrypts up to `batch` rows of each table of personal data with the current key. The service
    /// keeps running; rows that change at the same time are left to the next call.
    pub async fn rotate_personal_data(
        &self,
        batch: u32,
    ) -> Result<KeyRotationProgress, InternalError> {
        let keys = &self.0.data_keys;
        let accounts = KeyRotation {
            rows: "users where status <> 'deleted'",
            list: users::user_list_with_other_key,
            reseal: |user: &users::StoredUser| {
                let old = user.person.as_ref().expect("deleted accounts are not listed");
                Ok(keys.seal(user.id, &keys.open(user.id, old)?))
            },
            write: users::user_reseal,
        };
        let people = KeyRotation {
            rows: "identities where true",
            list: identities::identity_list_with_other_key,
            reseal: |old: &_| identity_check::reseal(keys, old),
            write: identities::identity_reseal,
        };
        let logins = KeyRotation {
            rows: "social_identities where true",
            list: social::identity_list_with_other_key,
            reseal: |old: &social::StoredSocialIdentity| {
                let kind = old.provider.subject_kind();
                let subject = keys.open_text(old.key_version, kind, old.user_id, &old.cipher)?;
                Ok(self.identity(old.provider, old.user_id, &subject))
            },
            write: social::identity_reseal,
        };
        let (db, current) = (&self.0.db, keys.current_version());
        let progress: [KeyRotationProgress; 3] = [
            accounts.run::<InternalError>(db, current, batch).await?,
            people.run::<InternalError>(db, current, batch).await?,
            logins.run::<InternalError>(db, current, batch).await?,
        ];
        let rotated = progress.iter().map(|one| one.rotated).sum();
        if rotated > 0 {
            let summary = format!("{rotated} rows were encrypted with the current key");
            let logged = self.admin_action(None, "DATA_KEY_ROTATED", "data_key", current, &summary);
            self.write(move |tx| admin_log::insert(tx, &logged)).await?;
        }
        let remaining = progress.iter().map(|one| one.remaining).sum();
        Ok(KeyRotationProgress { rotated, remaining })
    }

    /// Runs the jobs until it is told to stop.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let purge = run_every("purge_expired", PURGE_INTERVAL, || self.purge_all());
        let dormant = run_every("mark_dormant", DORMANT_INTERVAL, || self.mark_all_dormant());
        stop.run_until_cancelled(async { tokio::join!(purge, dormant) }).await;
    }

    async fn purge_all(&self) -> DbResult<()> {
        while self.purge_expired(ROWS_PER_TRANSACTION).await? != PurgeCounts::default() {}
        Ok(())
    }

    async fn mark_all_dormant(&self) -> DbResult<()> {
        while self.mark_dormant(ROWS_PER_TRANSACTION).await? > 0 {}
        Ok(())
    }
}
