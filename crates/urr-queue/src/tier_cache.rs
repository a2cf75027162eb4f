//! The tiers of those who come in a pre-sale, as the ticket office knows them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::Semaphore;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::{CallPolicy, UpstreamError};

use crate::{QueueService, Tier};

/// What was heard is believed for so long: who becomes a member may come a minute later.
const KNOWLEDGE_TTL: Duration = Duration::from_secs(60);
/// So many are remembered in each of two generations.
const KNOWN_MAX: usize = 50_000;
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// So many look-ups may be under way: whoever comes in a pre-sale must not drown the ticket office.
const LOOK_UPS_MAX: usize = 64;

/// The tiers that were asked for lately.
pub struct TierCache {
    known: Mutex<Generations>,
    look_ups: Semaphore,
}

/// What was learnt since a moment, and what was learnt before it: the older is forgotten whole, so
/// that nobody ever waits for a walk through all of it.
struct Generations {
    young: HashMap<TierKey, Known>,
    old: HashMap<TierKey, Known>,
    young_since: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct TierKey {
    event_id: Uuid,
    user_id: Uuid,
}

#[derive(Clone, Copy)]
struct Known {
    tier: Option<Tier>,
    at: Timestamp,
}

/// The ticket office did not tell someone's tier: nobody is let in on a guess.
#[derive(Debug, thiserror::Error)]
pub enum TierLookupError {
    #[error("it is not known where the ticket office is")]
    NoOffice,
    #[error("as many tiers are being asked for as may be at once")]
    TooManyLookUps,
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error("the ticket office speaks of a tier that there is not: {0:?}")]
    NoSuchTier(String),
}

#[derive(Deserialize)]
struct TierAnswer {
    tier: Option<String>,
}

impl QueueService {
    /// The tier of who comes; none is the general public.
    pub(crate) async fn tier_of(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        context: &CallContext,
        now: Timestamp,
    ) -> Result<Option<Tier>, TierLookupError> {
        let who = TierKey { event_id, user_id };
        let tiers = &self.0.tiers;
        if let Some(tier) = tiers.known(who, now) {
            return Ok(tier);
        }
        let ticket = self.0.ticket.get().ok_or(TierLookupError::NoOffice)?;
        let _look_up = tiers.look_ups.try_acquire().map_err(|_| TierLookupError::TooManyLookUps)?;
        let path = format!("/internal/ticket/tier/{event_id}/{user_id}");
        let policy = CallPolicy::idempotent(ANSWER_WITHIN);
        let answer: TierAnswer = ticket.get_json(&path, context, policy).await?;
        let parse = |name: String| Tier::parse(&name).ok_or(TierLookupError::NoSuchTier(name));
        let tier = answer.tier.map(parse).transpose()?;
        tiers.learn(who, Known { tier, at: now });
        Ok(tier)
    }
}

impl Default for TierCache {
    fn default() -> TierCache {
        let young_since = Timestamp::UNIX_EPOCH;
        let (young, old) = (HashMap::new(), HashMap::new());
        TierCache {
            known: Mutex::new(Generations { young, old, young_since }),
            look_ups: Semaphore::new(LOOK_UPS_MAX),
        }
    }
}

impl TierCache {
    fn known(&self, who: TierKey, now: Timestamp) -> Option<Option<Tier>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.young.get(&who).or_else(|| known.old.get(&who));
        found.filter(|known| known.is_fresh(now)).map(|known| known.tier)
    }

    fn learn(&self, who: TierKey, tier: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = known.learn(who, tier);
        drop(known);
        // Not under the lock: it may be much.
        drop(forgotten);
    }
}

impl Generations {
    /// Returns the generation whose time is over, if it is.
    fn learn(&mut self, who: TierKey, tier: Known) -> Option<HashMap<TierKey, Known>> {
        let is_of_age = tier.at < self.young_since || self.young_since + KNOWLEDGE_TTL <= tier.at;
        let forgotten = (is_of_age || self.young.len() >= KNOWN_MAX).then(|| {
            self.young_since = tier.at;
            std::mem::replace(&mut self.old, std::mem::take(&mut self.young))
        });
        self.young.insert(who, tier);
        forgotten
    }
}

impl Known {
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.at <= now && now < self.at + KNOWLEDGE_TTL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(number: u128) -> TierKey {
        TierKey { event_id: Uuid::from_u128(1), user_id: Uuid::from_u128(number) }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    fn learn(tiers: &TierCache, number: u128, at: Timestamp) {
        tiers.learn(who(number), Known { tier: Some(Tier::Gold), at });
    }

    #[test]
    fn what_was_heard_is_known_for_a_minute_whichever_generation_it_is_of() {
        let tiers = TierCache::default();
        learn(&tiers, 1, second(0));
        learn(&tiers, 2, second(59));
        // A new generation begins.
        learn(&tiers, 3, second(60));
        assert_eq!(tiers.known(who(1), second(59)), Some(Some(Tier::Gold)));
        assert_eq!(tiers.known(who(1), second(60)), None);
        assert_eq!(tiers.known(who(2), second(118)), Some(Some(Tier::Gold)));
        assert_eq!(tiers.known(who(2), second(119)), None);
        assert_eq!(tiers.known(who(3), second(119)), Some(Some(Tier::Gold)));
        assert_eq!(tiers.known(who(3), second(50)), None, "the clock was set back");
    }

    #[test]
    fn no_more_are_remembered_than_may_be_and_the_newest_are() {
        let tiers = TierCache::default();
        let count = 5 * KNOWN_MAX as u128;
        for number in 0..count {
            learn(&tiers, number, second(0));
        }
        let known = tiers.known.lock().expect("nobody panics");
        assert!(known.young.len() + known.old.len() <= 2 * KNOWN_MAX);
        drop(known);
        assert_eq!(tiers.known(who(count - 1), second(1)), Some(Some(Tier::Gold)));
        assert_eq!(tiers.known(who(count - KNOWN_MAX as u128), second(1)), Some(Some(Tier::Gold)));
        assert_eq!(tiers.known(who(0), second(1)), None);
    }
}
