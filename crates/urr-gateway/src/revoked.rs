//! Access tokens that ended before their time.
//!
//! The auth service is the only source. The gateway keeps what it says in memory and asks for news
//! every second. While auth cannot be reached, the last known set stays in force: nothing can be
//! revoked meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use urr_kernel::{CallContext, Clock, IdSource, Timestamp, Uuid};
use urr_service::{CallPolicy, Upstream, UpstreamError};

const PATH: &str = "/internal/auth/revoked-tokens";
const POLL: Duration = Duration::from_secs(1);
const CALL_MAX: Duration = Duration::from_secs(2);
/// How many pages one look asks for. What is left comes with the next.
const PAGES_MAX: usize = 1_000;

/// The tokens by id, with the end of their natural life. Clones are handles on one set.
#[derive(Clone, Debug, Default)]
pub struct RevokedTokens(Arc<RwLock<HashMap<Uuid, Timestamp>>>);

impl RevokedTokens {
    pub fn contains(&self, id: Uuid) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// Takes the news in and forgets tokens that have expired: those are refused anyway.
    fn learn(&self, news: Vec<RevokedToken>, now: Timestamp) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, expires_at| *expires_at > now);
        all.extend(news.into_iter().map(|token| (token.jti, token.expires_at)));
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RevokedToken {
    jti: Uuid,
    expires_at: Timestamp,
}

#[derive(Debug, Deserialize)]
struct RevokedPage {
    tokens: Vec<RevokedToken>,
    next: i64,
}

/// Asks the auth service for news. Clones share their place in its list.
#[derive(Clone, Debug)]
pub struct RevocationFeed {
    upstream: Upstream,
    revoked: RevokedTokens,
    clock: Clock,
    ids: IdSource,
    /// After which entry of the list the news begin. Held while asking: one look at a time.
    after: Arc<tokio::sync::Mutex<i64>>,
}

impl RevocationFeed {
    pub(crate) fn new(
        upstream: Upstream,
        revoked: RevokedTokens,
        clock: Clock,
        ids: IdSource,
    ) -> RevocationFeed {
        RevocationFeed { upstream, revoked, clock, ids, after: Arc::default() }
    }

    /// Takes in all that is known to the auth service by now.
    pub async fn refresh(&self) -> Result<(), UpstreamError> {
        let mut after = self.after.lock().await;
        for _ in 0..PAGES_MAX {
            let context = CallContext::root(self.ids.next_id());
            let path = format!("{PATH}?after={after}");
            let policy = CallPolicy::idempotent(CALL_MAX);
            let page: RevokedPage = self.upstream.get_json(&path, &context, policy).await?;
            let is_end = page.tokens.is_empty() || page.next <= *after;
            self.revoked.learn(page.tokens, self.clock.now());
            *after = page.next.max(*after);
            if is_end {
                break;
            }
        }
        Ok(())
    }

    /// Refreshes every second until `stop`. It says once when auth is lost and once when it is back.
    pub async fn run(self, stop: CancellationToken) {
        let mut lost = false;
        let mut ticks = tokio::time::interval(POLL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            match (self.refresh().await, lost) {
                (Ok(()), true) => info!("revoked tokens are known again"),
                (Err(error), false) => warn!(%error, "revoked tokens are not known anew"),
                (Ok(()), false) | (Err(_), true) => continue,
            }
            lost = !lost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_20_a_revoked_token_stays_so_until_it_would_have_expired() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let token =
            |id, expires| RevokedToken { jti: Uuid::from_u128(id), expires_at: at(expires) };
        let revoked = RevokedTokens::default();
        assert!(!revoked.contains(Uuid::from_u128(1)));
        revoked.learn(vec![token(1, 10), token(2, 20)], at(0));
        assert!(revoked.contains(Uuid::from_u128(1)) && revoked.contains(Uuid::from_u128(2)));
        revoked.learn(Vec::new(), at(10));
        assert!(!revoked.contains(Uuid::from_u128(1)), "it has expired and is forgotten");
        assert!(revoked.contains(Uuid::from_u128(2)));
    }
}
