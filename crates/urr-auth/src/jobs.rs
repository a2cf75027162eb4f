//! What has to be done from time to time: forgetting, putting aside, sealing anew.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use urr_storage::{StorageError, Tx};

use crate::accounts::store::{self as users, StoredUser};
use crate::sessions::{login_history, store as sessions};
use crate::social::store as social;
use crate::{AuthService, InternalError, bot_check, identity_check};

const PURGE_EVERY: Duration = Duration::from_secs(60);
const DORMANT_EVERY: Duration = Duration::from_secs(60 * 60);
/// Small enough not to be felt beside a sale.
const BATCH: u32 = 500;

/// How many rows were forgotten.
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

/// How far sealing personal data with the current key has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRotationProgress {
    pub rotated: u64,
    pub remaining: u64,
}

impl AuthService {
    /// Forgets what has expired, so many rows of each table at most.
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

    /// Puts accounts aside that were not used for long, so many at most. Returns how many.
    pub async fn mark_dormant(&self, limit: u32) -> Result<u64, StorageError> {
        let now = self.clock.now();
        let before = now - self.settings.dormant_after;
        self.db.write(move |tx| users::user_mark_dormant(tx, before, now, limit)).await
    }

    /// Seals the personal data of so many users at most with the current key. Everything goes on
    /// meanwhile; what someone changes at the same time is left to the next call.
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
        Ok(KeyRotationProgress {
            rotated: rotated + identities + social.rotated,
            remaining: remaining + identities_left + social.remaining,
        })
    }

    /// Does what has to be done from time to time, until it is told to stop.
    pub async fn run_jobs(&self, stop: CancellationToken) {
        let mut tick = interval(PURGE_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut dormant_next = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            let purged = self.purge_all(&stop).await;
            let marked = match Instant::now() >= dormant_next {
                true => {
                    dormant_next = Instant::now() + DORMANT_EVERY;
                    self.mark_all_dormant(&stop).await
                }
                false => Ok(()),
            };
            if let Err(error) = purged.and(marked) {
                tracing::warn!(%error, "housekeeping of accounts failed; it is tried again");
            }
        }
    }

    async fn purge_all(&self, stop: &CancellationToken) -> Result<(), StorageError> {
        while !stop.is_cancelled() && self.purge_expired(BATCH).await?.total() > 0 {}
        Ok(())
    }

    async fn mark_all_dormant(&self, stop: &CancellationToken) -> Result<(), StorageError> {
        while !stop.is_cancelled() && self.mark_dormant(BATCH).await? > 0 {}
        Ok(())
    }
}
