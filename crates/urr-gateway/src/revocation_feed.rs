//! The feed of revoked access tokens.
//!
//! The auth service is the only source. The gateway keeps the list in memory and polls for new
//! entries every second. While auth cannot be reached, nothing can be revoked and the last list stays
//! in force. Until the gateway has read the whole list once, it authenticates no user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use urr_contracts::clients::{AuthClient, ClientError};
use urr_contracts::internal::auth::{ListRevokedTokens, RevokedTokenEntry};
use urr_kernel::{CallContext, Clock, IdSource, Timestamp, Uuid};
use urr_service::{ServiceKit, jobs};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many pages one refresh reads. The next one continues.
const PAGES_MAX: usize = 1_000;

/// Reads the list from the auth service. Clones share it and the position in it.
#[derive(Clone, Debug)]
pub struct RevocationFeed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: AuthClient,
    clock: Clock,
    ids: IdSource,
    revoked: RwLock<RevokedTokens>,
    /// How many refreshes have started.
    started: AtomicU64,
    /// Locked during a refresh.
    position: Mutex<FeedPosition>,
}

#[derive(Debug, Default)]
struct RevokedTokens {
    expires_at: HashMap<Uuid, Timestamp>,
    /// When the list was last read to its end.
    read_at: Option<Instant>,
}

impl RevokedTokens {
    /// Adds tokens, and removes expired ones, which are refused anyway.
    fn add(&mut self, revoked: Vec<RevokedTokenEntry>, now: Timestamp) {
        self.expires_at.retain(|_, expires_at| *expires_at > now);
        self.expires_at.extend(revoked.into_iter().map(|token| (token.jti, token.expires_at)));
    }
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
    pub(crate) fn new(client: AuthClient, kit: &ServiceKit) -> RevocationFeed {
        let position = FeedPosition { after: 0, ended: 0, result: Ok(()) };
        RevocationFeed(Arc::new(Inner {
            client,
            clock: kit.clock.clone(),
            ids: kit.ids.clone(),
            revoked: RwLock::default(),
            started: AtomicU64::new(0),
            position: Mutex::new(position),
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
        let Inner { client, clock, ids, revoked, .. } = &*self.0;
        for _ in 0..PAGES_MAX {
            let context = CallContext::root(ids.next_id());
            let page = client.call(ListRevokedTokens { after: *after }, &context).await?;
            let is_end = page.tokens.is_empty() || page.next <= *after;
            let mut revoked = revoked.write().unwrap_or_else(PoisonError::into_inner);
            revoked.add(page.tokens, clock.now());
            *after = page.next.max(*after);
            if is_end {
                revoked.read_at = Some(Instant::now());
                break;
            }
        }
        Ok(())
    }

    /// Whether a token is revoked; `None` if the list was never read to its end.
    pub(crate) fn is_revoked(&self, token_id: Uuid) -> Option<bool> {
        let revoked = self.revoked();
        revoked.read_at.map(|_| revoked.expires_at.contains_key(&token_id))
    }

    /// Whether the list was read to its end once. Until then no user is authenticated.
    pub fn is_complete(&self) -> bool {
        self.revoked().read_at.is_some()
    }

    /// How many tokens the list has.
    pub(crate) fn len(&self) -> usize {
        self.revoked().expires_at.len()
    }

    /// How long ago the list was last read to its end.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.revoked().read_at.map(|read_at| read_at.elapsed())
    }

    fn revoked(&self) -> RwLockReadGuard<'_, RevokedTokens> {
        self.0.revoked.read().unwrap_or_else(PoisonError::into_inner)
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
        let mut revoked = RevokedTokens::default();
        let has =
            |revoked: &RevokedTokens, id| revoked.expires_at.contains_key(&Uuid::from_u128(id));
        assert!(!has(&revoked, 1));
        revoked.add(vec![token(1, 10), token(2, 20)], at(0));
        assert!(has(&revoked, 1) && has(&revoked, 2));
        revoked.add(Vec::new(), at(10));
        assert!(!has(&revoked, 1), "it has expired and is removed");
        assert!(has(&revoked, 2));
    }
}
