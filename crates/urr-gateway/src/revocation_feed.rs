//! The feed of revoked access tokens.
//!
//! The auth service is the only source. The gateway keeps the list in memory and polls for new
//! entries every second. While auth cannot be reached, nothing can be revoked and the last list stays
//! in force. Until the gateway has read the whole list once, it authenticates no user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use urr_contracts::clients::{AuthClient, ClientError};
use urr_contracts::internal::auth::RevokedTokenEntry;
use urr_kernel::{CallContext, Clock, IdSource, Timestamp, Uuid};
use urr_service::jobs;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many pages one refresh reads. The next one continues.
const PAGES_MAX: usize = 1_000;

/// The revoked tokens by id, with their expiry. Clones share one set.
#[derive(Clone, Debug, Default)]
pub struct RevokedTokens(Arc<RevokedTokenSet>);

#[derive(Debug, Default)]
struct RevokedTokenSet {
    tokens: RwLock<HashMap<Uuid, Timestamp>>,
    /// Whether the list was read to its end once.
    is_complete: AtomicBool,
}

impl RevokedTokens {
    /// For a gateway without an auth service, where nothing can be revoked.
    pub(crate) fn none() -> RevokedTokens {
        let revoked = RevokedTokens::default();
        revoked.mark_complete();
        revoked
    }

    pub fn contains(&self, id: Uuid) -> bool {
        self.0.tokens.read().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    /// Whether the list was read to its end once.
    pub fn is_complete(&self) -> bool {
        self.0.is_complete.load(Ordering::Acquire)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.tokens.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn mark_complete(&self) {
        self.0.is_complete.store(true, Ordering::Release);
    }

    /// Adds tokens, and removes expired ones, which are refused anyway.
    fn add(&self, revoked: Vec<RevokedTokenEntry>, now: Timestamp) {
        let mut all = self.0.tokens.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, expires_at| *expires_at > now);
        all.extend(revoked.into_iter().map(|token| (token.jti, token.expires_at)));
    }
}

/// Reads the list from the auth service. Clones share their position in it.
#[derive(Clone, Debug)]
pub struct RevocationFeed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: AuthClient,
    revoked: RevokedTokens,
    clock: Clock,
    ids: IdSource,
    /// How many refreshes have started.
    started: AtomicU64,
    /// Locked during a refresh.
    position: tokio::sync::Mutex<FeedPosition>,
    /// When the list was last read to its end.
    read_at: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct FeedPosition {
    /// The last entry that was read.
    after: i64,
    /// The number of the last refresh that ended, and its result.
    ended: u64,
    result: Result<(), Arc<ClientError>>,
}

impl RevocationFeed {
    pub(crate) fn new(
        client: AuthClient,
        revoked: RevokedTokens,
        clock: Clock,
        ids: IdSource,
    ) -> RevocationFeed {
        let position = FeedPosition { after: 0, ended: 0, result: Ok(()) };
        RevocationFeed(Arc::new(Inner {
            client,
            revoked,
            clock,
            ids,
            started: AtomicU64::new(0),
            position: tokio::sync::Mutex::new(position),
            read_at: Mutex::default(),
        }))
    }

    /// Reads all entries that the auth service has by now.
    ///
    /// Callers that wait during a refresh share the next one, also if it fails, so that many logouts
    /// at once cause two refreshes only. The one in progress would not do for them, because it may
    /// have passed the end of the list before they called.
    pub async fn refresh(&self) -> Result<(), Arc<ClientError>> {
        let Inner { started, position, .. } = &*self.0;
        let started_before = started.load(Ordering::SeqCst);
        let mut position = position.lock().await;
        if position.ended > started_before {
            return position.result.clone();
        }
        let number = started.fetch_add(1, Ordering::SeqCst) + 1;
        let result = self.read_new_entries(&mut position.after).await.map_err(Arc::new);
        (position.ended, position.result) = (number, result.clone());
        result
    }

    async fn read_new_entries(&self, after: &mut i64) -> Result<(), ClientError> {
        let Inner { client, revoked, clock, ids, read_at, .. } = &*self.0;
        for _ in 0..PAGES_MAX {
            let context = CallContext::root(ids.next_id());
            let page = client.list_revoked_tokens(*after, &context).await?;
            let is_end = page.tokens.is_empty() || page.next <= *after;
            revoked.add(page.tokens, clock.now());
            *after = page.next.max(*after);
            if is_end {
                revoked.mark_complete();
                *read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                break;
            }
        }
        Ok(())
    }

    /// Whether the list was read to its end once. Until then no user is authenticated.
    pub fn is_complete(&self) -> bool {
        self.0.revoked.is_complete()
    }

    /// How long ago the list was last read to its end.
    pub(crate) fn age(&self) -> Option<Duration> {
        let read_at = self.0.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        read_at.map(|read_at| read_at.elapsed())
    }

    /// Refreshes every second until `stop`. Logs once when auth fails and once when it recovers.
    pub async fn run(self, stop: CancellationToken) {
        let mut is_failing = false;
        let mut ticks = jobs::ticker(POLL_INTERVAL);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            match (self.refresh().await, is_failing) {
                (Ok(()), true) => info!("the feed of revoked tokens works again"),
                (Err(error), false) => {
                    warn!(%error, "cannot read revoked tokens; the last list stays in force")
                }
                (Ok(()), false) | (Err(_), true) => continue,
            }
            is_failing = !is_failing;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_20_a_revoked_token_is_kept_until_it_expires() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let token = |id, expires| RevokedTokenEntry {
            seq: 1,
            jti: Uuid::from_u128(id),
            expires_at: at(expires),
        };
        let revoked = RevokedTokens::default();
        assert!(!revoked.contains(Uuid::from_u128(1)));
        revoked.add(vec![token(1, 10), token(2, 20)], at(0));
        assert!(revoked.contains(Uuid::from_u128(1)) && revoked.contains(Uuid::from_u128(2)));
        revoked.add(Vec::new(), at(10));
        assert!(!revoked.contains(Uuid::from_u128(1)), "it has expired and is removed");
        assert!(revoked.contains(Uuid::from_u128(2)));
    }
}
