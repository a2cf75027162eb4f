//! The tiers of users who join in a pre-sale, as the ticket service knows them.

use std::time::Duration;

use tokio::sync::Semaphore;
use urr_contracts::clients::ClientError;
use urr_contracts::internal::ticket::GetTier;
use urr_kernel::{CallContext, Clock, Uuid};
use urr_service::cache::{Cache, CacheOptions};

use crate::{QueueService, Tier};

/// A user who becomes a member can join a minute later.
const TIER_TTL: Duration = Duration::from_secs(60);
const TIERS_MAX: usize = 100_000;
/// Bounds the calls under way, so that a pre-sale does not overload the ticket service.
const LOOKUPS_MAX: usize = 64;

/// The tiers that were looked up lately, by event and user.
pub struct TierCache {
    cache: Cache<(Uuid, Uuid), Option<Tier>, ()>,
    lookups: Semaphore,
}

/// The tier is not known: nobody is admitted on a guess.
#[derive(Debug, thiserror::Error)]
pub enum TierLookupError {
    #[error("too many tiers are being looked up")]
    TooManyLookups,
    #[error(transparent)]
    Client(#[from] ClientError),
}

impl TierCache {
    pub fn new(clock: Clock) -> TierCache {
        let options = CacheOptions { ttl: TIER_TTL, entries_max: TIERS_MAX };
        TierCache { cache: Cache::new(clock, options), lookups: Semaphore::new(LOOKUPS_MAX) }
    }
}

impl QueueService {
    /// The tier of a user; none is the general public.
    pub(crate) async fn tier_of(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        context: &CallContext,
    ) -> Result<Option<Tier>, TierLookupError> {
        let TierCache { cache, lookups } = &self.0.tiers;
        if let Some(tier) = cache.get(&(event_id, user_id)) {
            return Ok(tier);
        }
        let _lookup = lookups.try_acquire().map_err(|_| TierLookupError::TooManyLookups)?;
        let tier = self.0.ticket.call(GetTier { event_id, user_id }, context).await?.tier;
        cache.insert((event_id, user_id), tier);
        Ok(tier)
    }
}
