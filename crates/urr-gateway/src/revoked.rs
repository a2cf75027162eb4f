//! Access tokens that ended before their time.
//!
//! The auth service is the only source. The gateway keeps what it says in memory and asks for news
//! every second. While auth cannot be reached, the last known set stays in force: nothing can be
//! revoked meanwhile. A gateway that has never read the list to its end lets nobody in as a user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
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
pub struct RevokedTokens(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    tokens: RwLock<HashMap<Uuid, Timestamp>>,
    /// The list was read to its end once.
    is_complete: AtomicBool,
}

impl RevokedTokens {
    /// For a gateway that has no auth service behind it: nobody can revoke anything.
    pub(crate) fn none() -> RevokedTokens {
        let revoked = RevokedTokens::default();
        revoked.complete();
        revoked
    }

    pub fn contains(&self, id: Uuid) -> bool {
        self.0.tokens.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// Whether it is known which tokens are revoked. Once it is, it stays so.
    pub fn is_complete(&self) -> bool {
        self.0.is_complete.load(Ordering::Acquire)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.tokens.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn complete(&self) {
        self.0.is_complete.store(true, Ordering::Release);
    }

    /// Takes the news in and forgets tokens that have expired: those are refused anyway.
    fn learn(&self, news: Vec<RevokedToken>, now: Timestamp) {
        let mut all = self.0.tokens.write().unwrap_or_else(PoisonError::into_inner);
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
pub struct RevocationFeed(Arc<Feed>);

#[derive(Debug)]
struct Feed {
    upstream: Upstream,
    revoked: RevokedTokens,
    clock: Clock,
    ids: IdSource,
    /// How many looks at the list have begun.
    begun: AtomicU64,
    /// Held while looking: one look at a time.
    place: tokio::sync::Mutex<Place>,
    /// When the last look came to the end of the list.
    read_at: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Place {
    /// After which entry of the list the news begin.
    after: i64,
    /// The last look that ended, by its number, and how.
    ended: u64,
    outcome: Result<(), Arc<UpstreamError>>,
}

impl RevocationFeed {
    pub(crate) fn new(
        upstream: Upstream,
        revoked: RevokedTokens,
        clock: Clock,
        ids: IdSource,
    ) -> RevocationFeed {
        let place = Place { after: 0, ended: 0, outcome: Ok(()) };
        RevocationFeed(Arc::new(Feed {
            upstream,
            revoked,
            clock,
            ids,
            begun: AtomicU64::new(0),
            place: tokio::sync::Mutex::new(place),
            read_at: Mutex::default(),
        }))
    }

    /// Takes in all that is known to the auth service by now.
    ///
    /// Those who ask while somebody looks share the next look, also if it fails: a crowd that logs
    /// out does not stand in line for as many looks. A look that was under way already would not
    /// do, because it may have passed the end of the list before they asked.
    pub async fn refresh(&self) -> Result<(), Arc<UpstreamError>> {
        let Feed { begun, place, .. } = &*self.0;
        let begun_before = begun.load(Ordering::SeqCst);
        let mut place = place.lock().await;
        if place.ended > begun_before {
            return place.outcome.clone();
        }
        let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
        let outcome = self.look(&mut place.after).await.map_err(Arc::new);
        (place.ended, place.outcome) = (number, outcome.clone());
        outcome
    }

    async fn look(&self, after: &mut i64) -> Result<(), UpstreamError> {
        let Feed { upstream, revoked, clock, ids, read_at, .. } = &*self.0;
        for _ in 0..PAGES_MAX {
            let context = CallContext::root(ids.next_id());
            let path = format!("{PATH}?after={after}");
            let policy = CallPolicy::idempotent(CALL_MAX);
            let page: RevokedPage = upstream.get_json(&path, &context, policy).await?;
            let is_end = page.tokens.is_empty() || page.next <= *after;
            revoked.learn(page.tokens, clock.now());
            *after = page.next.max(*after);
            if is_end {
                revoked.complete();
                *read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                break;
            }
        }
        Ok(())
    }

    /// Whether the list was read to its end once. Until then nobody is let in as a user.
    pub fn is_complete(&self) -> bool {
        self.0.revoked.is_complete()
    }

    /// How long ago the list was last read to its end.
    pub(crate) fn age(&self) -> Option<Duration> {
        let read_at = self.0.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        read_at.map(|read_at| read_at.elapsed())
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
