//! Answers kept in the process, as the bytes that are sent.
//!
//! - A stampede is one read: those who miss an answer wait for the first of them.
//! - An answer is renewed behind the scenes before it expires, so that nobody waits for it.
//! - Every answer carries the catalogue's number of the moment that it shows. A change of our own
//!   raises the number that is wanted at once; changes by other processes are noticed by reading
//!   the number again, at most once a second.
//! - A number that is lower than one that was known is that of a restored database: nothing that
//!   was kept is true any more.
//! - A failure is told to all who waited, and is not kept.

mod state;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;
use urr_kernel::{Clock, Timestamp};
use urr_service::ApiError;
use urr_storage::{Db, StorageError};

use crate::settings::CacheSettings;
use crate::store::revision::revision_read;
use state::State;

/// An answer, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub body: Bytes,
    pub content_type: &'static str,
    /// The hash of the body, in quotes.
    pub etag: String,
    lifetime: Lifetime,
    revision: i64,
}

/// How long an answer is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub expires_at: Timestamp,
    /// From when on it is renewed behind the scenes.
    pub refresh_at: Timestamp,
}

/// What readers see changes by itself then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    pub next_change: Option<Timestamp>,
    pub is_near_opening: bool,
}

impl Lifetime {
    pub fn new(horizon: Horizon, now: Timestamp, settings: &CacheSettings) -> Lifetime {
        let ttl = match horizon.is_near_opening {
            true => settings.opening_ttl,
            false => settings.ttl,
        };
        match horizon.next_change.filter(|change| *change < now + ttl) {
            // Renewed any earlier it would show the time before the change once more.
            Some(change) => Lifetime { expires_at: change, refresh_at: change },
            None => Lifetime { expires_at: now + ttl, refresh_at: now + ttl * 4 / 5 },
        }
    }
}

impl Entry {
    /// What a change of the catalogue makes old.
    pub fn new(body: Vec<u8>, revision: i64, lifetime: Lifetime) -> Entry {
        Entry::with_type(body.into(), "application/json", revision, lifetime)
    }

    /// What never changes.
    pub fn constant(body: Bytes, content_type: &'static str, lifetime: Lifetime) -> Entry {
        Entry::with_type(body, content_type, i64::MAX, lifetime)
    }

    fn with_type(
        body: Bytes,
        content_type: &'static str,
        revision: i64,
        lifetime: Lifetime,
    ) -> Entry {
        let digest = Sha256::digest(&body);
        let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        Entry { body, content_type, etag: format!("\"{hex}\""), lifetime, revision }
    }
}

type Outcome = Result<Arc<Entry>, ApiError>;
type Awaited = watch::Receiver<Option<Outcome>>;

/// See the head of this file. Clones share it.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

struct Shared {
    db: Db,
    clock: Clock,
    settings: CacheSettings,
    state: Mutex<State>,
    /// Held by who reads the number again; the others wait for it.
    checking: tokio::sync::Mutex<()>,
    loads: AtomicU64,
    checks: AtomicU64,
}

/// How often a reader asks again when a change overtook what it waited for.
const ATTEMPTS_MAX: u32 = 3;

enum Look {
    Fresh(Arc<Entry>),
    Wait(Awaited),
}

impl Cache {
    pub fn new(db: Db, clock: Clock, settings: CacheSettings) -> Cache {
        let state = Mutex::new(State::default());
        let checking = tokio::sync::Mutex::new(());
        let (loads, checks) = (AtomicU64::new(0), AtomicU64::new(0));
        Cache { shared: Arc::new(Shared { db, clock, settings, state, checking, loads, checks }) }
    }

    pub fn settings(&self) -> &CacheSettings {
        &self.shared.settings
    }

    /// How often something was read from the database.
    pub fn loads(&self) -> u64 {
        self.shared.loads.load(Ordering::Relaxed)
    }

    /// How often the catalogue's number was read.
    pub fn checks(&self) -> u64 {
        self.shared.checks.load(Ordering::Relaxed)
    }

    pub fn size(&self) -> (usize, usize) {
        self.state().size()
    }

    /// A change was committed: what is older is not given out any more.
    pub fn note_revision(&self, revision: i64) {
        self.state().note_revision(revision);
    }

    /// The answer of this name, from memory or by `load`.
    pub async fn get<F, L>(&self, key: &str, load: L) -> Result<Arc<Entry>, ApiError>
    where
        F: Future<Output = Result<Entry, ApiError>> + Send + 'static,
        L: Fn() -> F,
    {
        self.check_revision(key).await;
        let wanted = self.state().known_revision();
        let mut attempt = 1;
        loop {
            let awaited = match self.look(key, wanted, &load) {
                Look::Fresh(entry) => return Ok(entry),
                Look::Wait(awaited) => awaited,
            };
            let entry = self.outcome(key, awaited).await?;
            if entry.revision >= wanted || attempt == ATTEMPTS_MAX {
                return Ok(entry);
            }
            attempt += 1;
        }
    }

    fn look<F, L>(&self, key: &str, wanted: i64, load: &L) -> Look
    where
        F: Future<Output = Result<Entry, ApiError>> + Send + 'static,
        L: Fn() -> F,
    {
        let now = self.shared.clock.now();
        let mut state = self.state();
        let epoch = state.epoch();
        let cell = state.cell(key);
        let fresh = cell
            .entry
            .clone()
            .filter(|entry| entry.revision >= wanted && now < entry.lifetime.expires_at);
        let under_way = cell.flight.clone().filter(|flight| flight.has_changed().is_ok());
        match (fresh, under_way) {
            (Some(entry), under_way) => {
                if now >= entry.lifetime.refresh_at && under_way.is_none() {
                    cell.flight = Some(self.start(key, epoch, load()));
                }
                Look::Fresh(entry)
            }
            (None, Some(flight)) if !self.shared.settings.dangerous_without_single_flight => {
                Look::Wait(flight)
            }
            (None, _) => {
                let flight = self.start(key, epoch, load());
                cell.flight = Some(flight.clone());
                Look::Wait(flight)
            }
        }
    }

    /// Reads in a task of its own: a reader who goes away takes nothing from those who wait.
    fn start(
        &self,
        key: &str,
        epoch: u64,
        load: impl Future<Output = Result<Entry, ApiError>> + Send + 'static,
    ) -> Awaited {
        let (sender, receiver) = watch::channel(None);
        let (cache, key) = (self.clone(), key.to_owned());
        self.shared.loads.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let outcome = load.await.map(Arc::new);
            let settings = &cache.shared.settings;
            cache.state().land(&key, epoch, outcome.as_ref().ok(), settings);
            sender.send_replace(Some(outcome));
        });
        receiver
    }

    async fn outcome(&self, key: &str, mut awaited: Awaited) -> Outcome {
        match awaited.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().expect("it was waited for"),
            // The task panicked; the log has it.
            Err(_) => {
                let mut state = self.state();
                let epoch = state.epoch();
                state.land(key, epoch, None, &self.shared.settings);
                Err(ApiError::internal("reading for the cache ended early"))
            }
        }
    }

    /// Reads the catalogue's number if that was long ago. While somebody does, the others are given
    /// what is in memory and wait only for what is not. If it cannot be read, what is in memory
    /// goes on being given out: an old answer is better than none.
    async fn check_revision(&self, key: &str) {
        let interval = self.shared.settings.revision_check_interval;
        if self.state().was_checked_within(interval) {
            return;
        }
        let _checking = match self.shared.checking.try_lock() {
            Ok(checking) => checking,
            Err(_) if self.state().has_entry(key) => return,
            Err(_) => self.shared.checking.lock().await,
        };
        if self.state().was_checked_within(interval) {
            return;
        }
        self.shared.checks.fetch_add(1, Ordering::Relaxed);
        let known = self.state().known_revision();
        let read: Result<i64, StorageError> = self.shared.db.read(revision_read).await;
        // From now on, however long it took: those who waited do not read again.
        let mut state = self.state();
        state.note_check(Instant::now());
        match read {
            Ok(revision) if revision < known => {
                tracing::warn!(revision, known, "the catalogue is older than it was");
                state.begin_again(revision);
            }
            Ok(revision) => state.note_revision(revision),
            Err(error) => {
                tracing::warn!(%error, "whether the catalogue changed could not be read");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
