//! Jobs: deleting expired rows and marking dormant accounts; and the rotation of data keys.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use urr_service::admin_log;
use urr_service::jobs::run_every;
use urr_storage::{StorageError, Tx};

use crate::accounts::store::{self as users, StoredUser};
use crate::sessions::{login_history, store as sessions};
use crate::social::store as social;
use crate::{AuthService, InternalError, bot_check, identity_check};

const PURGE_INTERVAL: Duration = Duration::from_secs(60);
const DORMANT_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Small enough not to slow down a sale.
const ROWS_PER_TRANSACTION: u32 = 500;

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
}

impl PurgeCounts {
    pub fn total(self) -> u64 {
        self.refresh_tokens
            + self.revoked_access_tokens
            + self.login_history
            + self.spent_challenges
            + self.failed_logins
            + self.verifications
            + self.departed_people
            + self.social_attempts
    }
}

/// How many rows were encrypted with the current data key, and how many are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRotationProgress {
    pub rotated: u64,
    pub remaining: u64,
}

impl AuthService {
    /// Deletes expired rows, up to `limit` of each table.
    pub async fn purge_expired(&self, limit: u32) -> Result<PurgeCounts, StorageError> {
        let now = self.clock.now();
        let history_before = now - self.settings.login_history_kept;
        self.db
            .write(move |tx| {
                let (spent_challenges, failed_logins) = bot_check::purge(tx, now, limit)?;
                let (verifications, departed_people) = identity_check::purge(tx, now, limit)?;
                Ok(PurgeCounts {
                    spent_challenges,
                    failed_logins,
                    verifications,
                    departed_people,
                    social_attempts: social::attempt_purge(tx, now, limit)?,
                    refresh_tokens: sessions::refresh_purge(tx, now, limit)?,
                    revoked_access_tokens: sessions::revoked_purge(tx, now, limit)?,
                    login_history: login_history::login_history_purge(tx, history_before, limit)?,
                })
            })
            .await
    }

    /// Marks up to `limit` accounts as dormant that were not used for long. Returns how many.
    pub async fn mark_dormant(&self, limit: u32) -> Result<u64, StorageError> {
        let now = self.clock.now();
        let before = now - self.settings.dormant_after;
        self.db.write(move |tx| users::user_mark_dormant(tx, before, now, limit)).await
    }

    /// Encrypts the personal data of up to `batch` users with the current key. The service keeps
    /// running; rows that change at the same time are left to the next call.
    pub async fn rotate_personal_data(
        &self,
        batch: u32,
    ) -> Result<KeyRotationProgress, InternalError> {
        let current = self.data_keys.current_version();
        let list = move |tx: &mut Tx<'_>| users::user_list_with_other_key(tx, current, batch);
        let stored: Vec<StoredUser> = self.db.read(list).await?;
        let mut resealed = Vec::with_capacity(stored.len());
        for user in stored {
            let old = user.person.expect("deleted accounts are not listed");
            let person = self.data_keys.open(user.id, &old)?;
            resealed.push((user.id, old, self.data_keys.seal(user.id, &person)));
        }
        let rotation = self.db.write(move |tx| {
            let mut rotated = 0;
            for (id, old, new) in &resealed {
                rotated += u64::from(users::user_reseal(tx, *id, old, new)?);
            }
            let remaining = users::user_count_with_other_key(tx, current)?;
            Ok::<_, StorageError>(KeyRotationProgress { rotated, remaining })
        });
        let KeyRotationProgress { rotated, remaining } = rotation.await?;
        let (identities, identities_left) = self.rotate_identities(batch).await?;
        let social = self.rotate_social(batch).await?;
        let rotated = rotated + identities + social.rotated;
        if rotated > 0 {
            let summary = format!("{rotated} rows were encrypted with the current key");
            let logged = self.admin_action(None, "DATA_KEY_ROTATED", "data_key", current, &summary);
            self.db.write(move |tx| admin_log::insert(tx, &logged)).await?;
        }
        Ok(KeyRotationProgress {
            rotated,
            remaining: remaining + identities_left + social.remaining,
        })
    }

    /// Runs the jobs until it is told to stop.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let purge = run_every("purge_expired", PURGE_INTERVAL, || self.purge_all());
        let dormant = run_every("mark_dormant", DORMANT_INTERVAL, || self.mark_all_dormant());
        stop.run_until_cancelled(async { tokio::join!(purge, dormant) }).await;
    }

    async fn purge_all(&self) -> Result<(), StorageError> {
        while self.purge_expired(ROWS_PER_TRANSACTION).await?.total() > 0 {}
        Ok(())
    }

    async fn mark_all_dormant(&self) -> Result<(), StorageError> {
        while self.mark_dormant(ROWS_PER_TRANSACTION).await? > 0 {}
        Ok(())
    }
}
