//! The entries of the response cache, and their eviction.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{CachedResponse, PendingLoad};
use crate::settings::CacheSettings;

#[derive(Default)]
pub struct ResponseCacheState {
    entries: HashMap<String, CacheEntry>,
    /// The bytes of all responses with their keys.
    bytes: usize,
    /// Responses of an older revision are outdated.
    revision: i64,
    /// Counts the resets: what was loaded before one is not stored after it.
    epoch: u64,
    /// When the last check of the revision ended.
    checked_at: Option<Instant>,
    /// Counts lookups, to find the least recently used entries.
    tick: u64,
}

#[derive(Default)]
pub struct CacheEntry {
    pub response: Option<Arc<CachedResponse>>,
    /// The load under way.
    pub pending: Option<PendingLoad>,
    last_used: u64,
}

impl ResponseCacheState {
    pub fn known_revision(&self) -> i64 {
        self.revision
    }

    pub fn note_revision(&mut self, revision: i64) {
        self.revision = self.revision.max(revision);
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Drops everything, because the database went back to this revision.
    pub fn reset(&mut self, revision: i64) {
        self.entries.clear();
        self.bytes = 0;
        self.revision = revision;
        self.epoch += 1;
    }

    pub fn has_response(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.response.is_some())
    }

    pub fn was_checked_within(&self, interval: Duration) -> bool {
        self.checked_at.is_some_and(|checked_at| checked_at.elapsed() < interval)
    }

    pub fn note_check(&mut self, ended_at: Instant) {
        self.checked_at = Some(ended_at);
    }

    /// Entries and bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.entries.len(), self.bytes)
    }

    /// The entry of a key, which is created if it is missing.
    pub fn entry(&mut self, key: &str) -> &mut CacheEntry {
        self.tick += 1;
        if !self.entries.contains_key(key) {
            self.entries.insert(key.to_owned(), CacheEntry::default());
        }
        let entry = self.entries.get_mut(key).expect("it was inserted above");
        entry.last_used = self.tick;
        entry
    }

    /// Ends a load. Without a response it has failed. An older response does not replace a newer.
    pub fn finish_load(
        &mut self,
        key: &str,
        epoch: u64,
        response: Option<&Arc<CachedResponse>>,
        settings: &CacheSettings,
    ) {
        if epoch != self.epoch {
            return;
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.pending = None;
        if let Some(new) = response {
            let old = entry.response.as_ref();
            if old.is_none_or(|old| old.revision <= new.revision) {
                self.bytes -= old.map_or(0, |old| weight(key, old));
                self.bytes += weight(key, new);
                entry.response = Some(Arc::clone(new));
            }
        } else if entry.response.is_none() {
            self.entries.remove(key);
        }
        if self.entries.len() > settings.entries_max || self.bytes > settings.bytes_max {
            self.evict(settings);
        }
    }

    /// Removes the least recently used entries until three quarters of the limits are left, so
    /// that eviction is rare.
    fn evict(&mut self, settings: &CacheSettings) {
        let mut by_use: Vec<(u64, String)> =
            self.entries.iter().map(|(key, entry)| (entry.last_used, key.clone())).collect();
        by_use.sort_unstable();
        let entries = settings.entries_max / 4 * 3;
        let bytes = settings.bytes_max / 4 * 3;
        for (_, key) in by_use {
            if self.entries.len() <= entries && self.bytes <= bytes {
                return;
            }
            // Requests that wait for a load hold its receiver, so they still get the result.
            if let Some(CacheEntry { response: Some(response), .. }) = self.entries.remove(&key) {
                self.bytes -= weight(&key, &response);
            }
        }
    }
}

fn weight(key: &str, response: &CachedResponse) -> usize {
    key.len() + response.body.len()
}
