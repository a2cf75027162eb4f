//! A cache of whole responses, stored as the bytes that are sent.
//!
//! - Concurrent requests for a missing response cause one read: all wait for the first.
//! - A response is reloaded in the background before it expires, so that no request waits for it.
//! - Every response carries the revision of the catalogue that it was read at. Our own changes
//!   raise the required revision at once; changes by other processes are noticed by reading the
//!   revision again, at most once a second.
//! - A revision lower than a known one means that the database was restored: everything cached
//!   is dropped.
//! - An error goes to all who waited for the read, and is not cached.

pub mod http;
mod state;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use urr_kernel::{Clock, Timestamp};
use urr_service::{ApiError, ETag};
use urr_storage::{Db, DbResult, StorageError};

use crate::revision::revision_load;
use crate::settings::CacheSettings;
use state::ResponseCacheState;

/// A response, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedResponse {
    pub body: Bytes,
    pub content_type: &'static str,
    pub etag: ETag,
    lifetime: CacheLifetime,
    revision: i64,
}

/// How long a response may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLifetime {
    pub expires_at: Timestamp,
    /// From this time on it is reloaded in the background.
    pub refresh_at: Timestamp,
}

/// When a response becomes outdated by time alone, such as by the start of a sale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryHint {
    pub next_change: Option<Timestamp>,
    pub is_near_opening: bool,
}

impl CacheLifetime {
    pub fn new(hint: ExpiryHint, now: Timestamp, settings: &CacheSettings) -> CacheLifetime {
        let ttl = match hint.is_near_opening {
            true => settings.opening_ttl,
            false => settings.ttl,
        };
        match hint.next_change.filter(|change| *change < now + ttl) {
            // A reload before the change would store the state before it once more.
            Some(change) => CacheLifetime { expires_at: change, refresh_at: change },
            None => CacheLifetime { expires_at: now + ttl, refresh_at: now + ttl * 4 / 5 },
        }
    }
}

impl CachedResponse {
    fn new(
        body: Bytes,
        content_type: &'static str,
        revision: i64,
        lifetime: CacheLifetime,
    ) -> CachedResponse {
        let etag = ETag::of_bytes(&body);
        CachedResponse { body, content_type, etag, lifetime, revision }
    }
}

type LoadResult = Result<Arc<CachedResponse>, ApiError>;
type PendingLoad = watch::Receiver<Option<LoadResult>>;

/// The cache described at the top of this file. Clones share it.
#[derive(Clone)]
pub struct ResponseCache(Arc<Inner>);

struct Inner {
    db: Db,
    clock: Clock,
    settings: CacheSettings,
    state: Mutex<ResponseCacheState>,
    /// Held while the revision is read; the other requests wait for it.
    revision_check: tokio::sync::Mutex<()>,
    loads: AtomicU64,
    checks: AtomicU64,
}

/// A request whose response is in memory waits so long for the revision.
const REVISION_WAIT: Duration = Duration::from_secs(1);
/// How often a request loads again when a change overtook the load it waited for.
const ATTEMPTS_MAX: u32 = 3;

enum CacheLookup {
    Fresh(Arc<CachedResponse>),
    Pending(PendingLoad),
}

impl ResponseCache {
    pub fn new(db: Db, clock: Clock, settings: CacheSettings) -> ResponseCache {
        ResponseCache(Arc::new(Inner {
            db,
            clock,
            settings,
            state: Mutex::default(),
            revision_check: tokio::sync::Mutex::default(),
            loads: AtomicU64::new(0),
            checks: AtomicU64::new(0),
        }))
    }

    /// A response that a change of the catalogue makes outdated.
    pub fn response(
        &self,
        view: &impl Serialize,
        revision: i64,
        hint: ExpiryHint,
        now: Timestamp,
    ) -> Result<CachedResponse, ApiError> {
        let body = serde_json::to_vec(view).map_err(ApiError::internal)?;
        let lifetime = CacheLifetime::new(hint, now, &self.0.settings);
        Ok(CachedResponse::new(body.into(), "application/json", revision, lifetime))
    }

    /// A response that never changes.
    pub fn constant(&self, body: Bytes, content_type: &'static str) -> CachedResponse {
        let expires_at = self.0.clock.now() + self.0.settings.ttl;
        let lifetime = CacheLifetime { expires_at, refresh_at: expires_at };
        CachedResponse::new(body, content_type, i64::MAX, lifetime)
    }

    /// How often something was read from the database.
    pub fn loads(&self) -> u64 {
        self.0.loads.load(Ordering::Relaxed)
    }

    /// How often the revision of the catalogue was read.
    pub fn checks(&self) -> u64 {
        self.0.checks.load(Ordering::Relaxed)
    }

    pub fn size(&self) -> (usize, usize) {
        self.state().size()
    }

    /// A change was committed: older responses are not served any more.
    pub fn note_revision(&self, revision: i64) {
        self.state().note_revision(revision);
    }

    /// The response with this key, from memory or by `load`.
    pub async fn get<F, L>(&self, key: &str, load: L) -> LoadResult
    where
        F: Future<Output = Result<CachedResponse, ApiError>> + Send + 'static,
        L: Fn() -> F,
    {
        self.check_revision(key).await;
        let required = self.state().known_revision();
        let mut attempt = 1;
        loop {
            let pending = match self.lookup(key, required, &load) {
                CacheLookup::Fresh(response) => return Ok(response),
                CacheLookup::Pending(pending) => pending,
            };
            let response = self.wait_for(key, pending).await?;
            if response.revision >= required || attempt == ATTEMPTS_MAX {
                return Ok(response);
            }
            attempt += 1;
        }
    }

    fn lookup<F, L>(&self, key: &str, required: i64, load: &L) -> CacheLookup
    where
        F: Future<Output = Result<CachedResponse, ApiError>> + Send + 'static,
        L: Fn() -> F,
    {
        let now = self.0.clock.now();
        let mut state = self.state();
        let epoch = state.epoch();
        let entry = state.entry(key);
        let fresh = entry
            .response
            .clone()
            .filter(|response| response.revision >= required && now < response.lifetime.expires_at);
        let pending = entry.pending.clone().filter(|pending| pending.has_changed().is_ok());
        match (fresh, pending) {
            (Some(response), pending) => {
                if now >= response.lifetime.refresh_at && pending.is_none() {
                    entry.pending = Some(self.start_load(key, epoch, load()));
                }
                CacheLookup::Fresh(response)
            }
            (None, Some(pending)) if !self.0.settings.dangerous_without_single_flight => {
                CacheLookup::Pending(pending)
            }
            (None, _) => {
                let pending = self.start_load(key, epoch, load());
                entry.pending = Some(pending.clone());
                CacheLookup::Pending(pending)
            }
        }
    }

    /// Loads in a task of its own, so that a client that disconnects does not stop the load that
    /// others wait for.
    fn start_load(
        &self,
        key: &str,
        epoch: u64,
        load: impl Future<Output = Result<CachedResponse, ApiError>> + Send + 'static,
    ) -> PendingLoad {
        let (sender, receiver) = watch::channel(None);
        let (cache, key) = (self.clone(), key.to_owned());
        self.0.loads.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let result = load.await.map(Arc::new);
            cache.state().finish_load(&key, epoch, result.as_ref().ok(), &cache.0.settings);
            sender.send_replace(Some(result));
        });
        receiver
    }

    async fn wait_for(&self, key: &str, mut pending: PendingLoad) -> LoadResult {
        match pending.wait_for(Option::is_some).await {
            Ok(result) => result.clone().expect("it was waited for"),
            // The task panicked, which the log shows.
            Err(_) => {
                let mut state = self.state();
                let epoch = state.epoch();
                state.finish_load(key, epoch, None, &self.0.settings);
                Err(ApiError::internal("the load of a cached response ended early"))
            }
        }
    }

    /// Reads the revision of the catalogue if the last check is too long ago. While one request
    /// does, the others are served from memory and wait only for what is missing there. If the
    /// revision cannot be read, the cache goes on serving: an old response is better than none.
    async fn check_revision(&self, key: &str) {
        let interval = self.0.settings.revision_check_interval;
        if self.state().was_checked_within(interval) {
            return;
        }
        let _check = match self.0.revision_check.try_lock() {
            Ok(check) => check,
            Err(_) if self.state().has_response(key) => return,
            Err(_) => self.0.revision_check.lock().await,
        };
        if self.state().was_checked_within(interval) {
            return;
        }
        self.0.checks.fetch_add(1, Ordering::Relaxed);
        let known = self.state().known_revision();
        let reading = self.0.db.read(revision_load);
        let is_in_memory = self.state().has_response(key);
        let loaded: DbResult<i64> = match is_in_memory {
            // A database that does not answer must not keep back what is in memory.
            true => timeout(REVISION_WAIT, reading).await.unwrap_or(Err(StorageError::Timeout)),
            false => reading.await,
        };
        // The interval starts when the read has ended, so that those who waited do not read again.
        let mut state = self.state();
        state.note_check(Instant::now());
        match loaded {
            Ok(revision) if revision < known => {
                tracing::warn!(revision, known, "the revision of the catalogue went back");
                state.reset(revision);
            }
            Ok(revision) => state.note_revision(revision),
            Err(error) => {
                tracing::warn!(%error, "the revision of the catalogue could not be read");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, ResponseCacheState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
