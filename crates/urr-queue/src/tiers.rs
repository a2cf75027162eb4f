//! The tiers of those who come in a pre-sale, as the ticket office knows them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_service::{CallPolicy, UpstreamError};

use crate::{Queue, Tier};

/// What was heard is believed for so long: who becomes a member may come a minute later.
const KNOWLEDGE_TTL: Duration = Duration::from_secs(60);
const KNOWN_MAX: usize = 100_000;
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The tiers that were asked for lately.
#[derive(Default)]
pub struct Tiers(Mutex<HashMap<Who, Known>>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Who {
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
pub enum TierUnknown {
    #[error("it is not known where the ticket office is")]
    NoOffice,
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    #[error("the ticket office speaks of a tier that there is not: {0:?}")]
    NoSuchTier(String),
}

#[derive(Deserialize)]
struct TierAnswer {
    tier: Option<String>,
}

impl Queue {
    /// The tier of who comes; none is the general public.
    pub(crate) async fn tier_of(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        context: &CallContext,
        now: Timestamp,
    ) -> Result<Option<Tier>, TierUnknown> {
        let who = Who { event_id, user_id };
        if let Some(tier) = self.0.tiers.known(who, now) {
            return Ok(tier);
        }
        let office = self.0.office.get().ok_or(TierUnknown::NoOffice)?;
        let path = format!("/internal/ticket/tier/{event_id}/{user_id}");
        let policy = CallPolicy::idempotent(ANSWER_WITHIN);
        let answer: TierAnswer = office.get_json(&path, context, policy).await?;
        let parse = |name: String| Tier::parse(&name).ok_or(TierUnknown::NoSuchTier(name));
        let tier = answer.tier.map(parse).transpose()?;
        self.0.tiers.learn(who, Known { tier, at: now });
        Ok(tier)
    }
}

impl Tiers {
    fn known(&self, who: Who, now: Timestamp) -> Option<Option<Tier>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&who).filter(|known| known.is_fresh(now)).map(|known| known.tier)
    }

    fn learn(&self, who: Who, tier: Known) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.retain(|_, known| known.is_fresh(tier.at));
        }
        // Who finds no room even then is asked for again.
        if known.len() < KNOWN_MAX {
            known.insert(who, tier);
        }
    }
}

impl Known {
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.at <= now && now < self.at + KNOWLEDGE_TTL
    }
}
