//! A cache in memory: values that are loaded once, believed for a while and bounded in number.
//!
//! - A stampede is one load: those who miss a value wait for the first of them.
//! - A failure is the answer of all who waited, and is not kept.
//! - Values are in two generations. When the younger one is full the older one is dropped whole, so
//!   that nobody ever waits for a walk through all values. A value that is read moves to the
//!   younger one: what is in use stays.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, WeakShared};
use urr_kernel::{Clock, Timestamp};

/// See the head of this file. Clones share the values.
pub struct Cache<K, V, E> {
    inner: Arc<Inner<K, V, E>>,
}

struct Inner<K, V, E> {
    clock: Clock,
    options: CacheOptions,
    state: Mutex<CacheState<K, V, E>>,
}

/// How long values are believed, and how many there may be.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// Older values are loaded again.
    pub ttl: Duration,
    /// At most. The least recently used half goes first.
    pub entries_max: usize,
}

struct CacheState<K, V, E> {
    young: HashMap<K, CachedValue<V>>,
    old: HashMap<K, CachedValue<V>>,
    loading: HashMap<K, WeakShared<BoxFuture<'static, Result<V, E>>>>,
    /// Grows with every removal: a load that began before does not bring a removed value back.
    removals: u64,
}

#[derive(Clone)]
struct CachedValue<V> {
    value: V,
    /// A moment before it was loaded.
    loaded_at: Timestamp,
}

impl<K, V, E> Cache<K, V, E>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    pub fn new(clock: Clock, options: CacheOptions) -> Cache<K, V, E> {
        let (young, old) = (HashMap::new(), HashMap::new());
        let state = CacheState { young, old, loading: HashMap::new(), removals: 0 };
        Cache { inner: Arc::new(Inner { clock, options, state: Mutex::new(state) }) }
    }

    /// A value that is not too old.
    pub fn get(&self, key: &K) -> Option<V> {
        self.get_at(key, self.inner.clock.now())
    }

    /// The same for a caller that has just looked at the clock.
    pub fn get_at(&self, key: &K, now: Timestamp) -> Option<V> {
        self.inner.lock().get(key, now, self.inner.options)
    }

    /// The value, loaded if need be. However many ask at once, it is loaded once.
    pub async fn get_or_load<F>(&self, key: K, load: impl FnOnce() -> F) -> Result<V, E>
    where
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let now = self.inner.clock.now();
        let loading = {
            let mut state = self.inner.lock();
            if let Some(value) = state.get(&key, now, self.inner.options) {
                return Ok(value);
            }
            // A load whose callers have all gone away does not go on; it is begun again.
            match state.loading.get(&key).and_then(WeakShared::upgrade) {
                Some(loading) => loading,
                None => {
                    let removals = state.removals;
                    let inner = Arc::clone(&self.inner);
                    let (loaded_key, load) = (key.clone(), load());
                    let loading = async move {
                        let loaded = load.await;
                        inner.loaded(loaded_key, &loaded, now, removals);
                        loaded
                    };
                    let loading = loading.boxed().shared();
                    let weak = loading.downgrade().expect("it was not polled yet");
                    state.loading.insert(key, weak);
                    loading
                }
            }
        };
        loading.await
    }

    /// Puts a value in, over the one that was there.
    pub fn insert(&self, key: K, value: V) {
        let loaded_at = self.inner.clock.now();
        let dropped =
            self.inner.lock().insert(key, CachedValue { value, loaded_at }, self.inner.options);
        // Not under the lock: it may be much.
        drop(dropped);
    }

    /// Forgets a value that has changed. A load under way does not bring it back.
    pub fn remove(&self, key: &K) {
        let mut state = self.inner.lock();
        state.removals += 1;
        state.young.remove(key);
        state.old.remove(key);
        state.loading.remove(key);
    }

    /// How many values there are, those included that are too old.
    pub fn len(&self) -> usize {
        let state = self.inner.lock();
        state.young.len() + state.old.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K, V, E> Clone for Cache<K, V, E> {
    fn clone(&self) -> Cache<K, V, E> {
        Cache { inner: Arc::clone(&self.inner) }
    }
}

impl<K, V, E> fmt::Debug for Cache<K, V, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl<K, V, E> Inner<K, V, E> {
    fn lock(&self) -> MutexGuard<'_, CacheState<K, V, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V: Clone, E> Inner<K, V, E> {
    fn loaded(&self, key: K, loaded: &Result<V, E>, loaded_at: Timestamp, removals: u64) {
        let mut state = self.lock();
        if state.removals != removals {
            return;
        }
        state.loading.remove(&key);
        if let Ok(value) = loaded {
            let value = CachedValue { value: value.clone(), loaded_at };
            let dropped = state.insert(key, value, self.options);
            drop(state);
            drop(dropped);
        }
    }
}

impl<K: Clone + Eq + Hash, V: Clone, E> CacheState<K, V, E> {
    fn get(&mut self, key: &K, now: Timestamp, options: CacheOptions) -> Option<V> {
        if let Some(cached) = self.young.get(key) {
            return cached.fresh(now, options.ttl);
        }
        let (key, cached) = self.old.remove_entry(key)?;
        let value = cached.fresh(now, options.ttl)?;
        self.insert(key, cached, options);
        Some(value)
    }

    /// Returns the generation that had to go, if one had to.
    fn insert(
        &mut self,
        key: K,
        value: CachedValue<V>,
        options: CacheOptions,
    ) -> Option<HashMap<K, CachedValue<V>>> {
        self.old.remove(&key);
        let is_full = self.young.len() >= options.entries_max.div_ceil(2);
        let is_new = !self.young.contains_key(&key);
        let dropped = (is_full && is_new)
            .then(|| std::mem::replace(&mut self.old, std::mem::take(&mut self.young)));
        self.young.insert(key, value);
        dropped
    }
}

impl<V: Clone> CachedValue<V> {
    /// A clock that was set back makes nothing young.
    fn fresh(&self, now: Timestamp, ttl: Duration) -> Option<V> {
        let age = Duration::try_from(now.duration_since(self.loaded_at)).ok()?;
        (age < ttl).then(|| self.value.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures_util::future::join_all;

    use super::*;

    const OPTIONS: CacheOptions = CacheOptions { ttl: Duration::from_secs(60), entries_max: 4 };

    fn cache() -> (Cache<u32, u32, &'static str>, Clock) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH + Duration::from_secs(3_600));
        (Cache::new(clock.clone(), OPTIONS), clock)
    }

    #[tokio::test]
    async fn a_crowd_that_misses_a_value_loads_it_once() {
        let (cache, _clock) = cache();
        let loads = Arc::new(AtomicU32::new(0));
        let load = || {
            let loads = Arc::clone(&loads);
            async move {
                tokio::task::yield_now().await;
                loads.fetch_add(1, Ordering::Relaxed);
                Ok(7)
            }
        };
        let answers = join_all((0..1_000).map(|_| cache.get_or_load(1, load))).await;
        assert!(answers.into_iter().all(|answer| answer == Ok(7)));
        assert_eq!(loads.load(Ordering::Relaxed), 1);
        assert_eq!(cache.get(&1), Some(7));
    }

    #[tokio::test]
    async fn a_failure_is_not_kept_and_an_abandoned_load_is_begun_again() {
        let (cache, _clock) = cache();
        assert_eq!(cache.get_or_load(1, async || Err("down")).await, Err("down"));
        let mut abandoned = Box::pin(cache.get_or_load(1, std::future::pending));
        assert!(abandoned.as_mut().now_or_never().is_none());
        drop(abandoned);
        assert_eq!(cache.get_or_load(1, async || Ok(2)).await, Ok(2));
    }

    #[tokio::test]
    async fn a_value_is_believed_for_its_time_and_not_after_a_removal() {
        let (cache, clock) = cache();
        cache.insert(1, 1);
        clock.advance(OPTIONS.ttl - Duration::from_secs(1));
        assert_eq!(cache.get(&1), Some(1));
        clock.advance(Duration::from_secs(1));
        assert_eq!(cache.get(&1), None);
        let removed = || {
            let cache = cache.clone();
            async move {
                cache.remove(&2);
                Ok(2)
            }
        };
        assert_eq!(cache.get_or_load(2, removed).await, Ok(2));
        assert_eq!(cache.get(&2), None, "it was removed while it was loaded");
    }

    #[test]
    fn a_full_cache_drops_what_was_not_read_lately() {
        let (cache, _clock) = cache();
        cache.insert(0, 0);
        for number in 1..100 {
            cache.insert(number, number);
            assert_eq!(cache.get(&0), Some(0), "it is in use");
            assert!(cache.len() <= OPTIONS.entries_max);
        }
        assert_eq!(cache.get(&99), Some(99));
        assert_eq!(cache.get(&1), None);
    }
}
