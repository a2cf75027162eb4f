//! What is in memory, and what has to leave it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Awaited, Entry};
use crate::settings::CacheSettings;

#[derive(Default)]
pub struct State {
    cells: HashMap<String, Cell>,
    /// The bytes of all entries with their names.
    bytes: usize,
    /// What is older than this was changed since.
    revision: i64,
    /// Counts how often everything was forgotten: what was asked for before is not kept.
    epoch: u64,
    /// When reading it last ended.
    checked: Option<Instant>,
    /// Counts looks, so that the least recently used can be told.
    tick: u64,
}

#[derive(Default)]
pub struct Cell {
    pub entry: Option<Arc<Entry>>,
    /// The read that is under way.
    pub flight: Option<Awaited>,
    used: u64,
}

impl State {
    pub fn known_revision(&self) -> i64 {
        self.revision
    }

    pub fn note_revision(&mut self, revision: i64) {
        self.revision = self.revision.max(revision);
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Forgets everything: the database went back to this number.
    pub fn begin_again(&mut self, revision: i64) {
        self.cells.clear();
        self.bytes = 0;
        self.revision = revision;
        self.epoch += 1;
    }

    pub fn has_entry(&self, key: &str) -> bool {
        self.cells.get(key).is_some_and(|cell| cell.entry.is_some())
    }

    pub fn was_checked_within(&self, interval: Duration) -> bool {
        self.checked.is_some_and(|checked| checked.elapsed() < interval)
    }

    pub fn note_check(&mut self, ended: Instant) {
        self.checked = Some(ended);
    }

    /// Entries and bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.cells.len(), self.bytes)
    }

    pub fn cell(&mut self, key: &str) -> &mut Cell {
        self.tick += 1;
        if !self.cells.contains_key(key) {
            self.cells.insert(key.to_owned(), Cell::default());
        }
        let cell = self.cells.get_mut(key).expect("it is there now");
        cell.used = self.tick;
        cell
    }

    /// A read has ended, well or not. An older answer does not replace a newer one.
    pub fn land(
        &mut self,
        key: &str,
        epoch: u64,
        entry: Option<&Arc<Entry>>,
        settings: &CacheSettings,
    ) {
        if epoch != self.epoch {
            return;
        }
        let Some(cell) = self.cells.get_mut(key) else { return };
        cell.flight = None;
        if let Some(entry) = entry {
            let (old, new) = (cell.entry.as_ref(), entry);
            if old.is_none_or(|old| old.revision <= new.revision) {
                self.bytes -= old.map_or(0, |old| weight(key, old));
                self.bytes += weight(key, new);
                cell.entry = Some(Arc::clone(new));
            }
        } else if cell.entry.is_none() {
            self.cells.remove(key);
        }
        if self.cells.len() > settings.entries_max || self.bytes > settings.bytes_max {
            self.evict(settings);
        }
    }

    /// Makes room for a while: down to three quarters, the least recently used first.
    fn evict(&mut self, settings: &CacheSettings) {
        let mut by_use: Vec<(u64, String)> =
            self.cells.iter().map(|(key, cell)| (cell.used, key.clone())).collect();
        by_use.sort_unstable();
        let entries = settings.entries_max / 4 * 3;
        let bytes = settings.bytes_max / 4 * 3;
        for (_, key) in by_use {
            if self.cells.len() <= entries && self.bytes <= bytes {
                return;
            }
            // Those who wait hold their end of the read; what it brings is given to them alone.
            if let Some(Cell { entry: Some(entry), .. }) = self.cells.remove(&key) {
                self.bytes -= weight(&key, &entry);
            }
        }
    }
}

fn weight(key: &str, entry: &Entry) -> usize {
    key.len() + entry.body.len() + entry.etag.len()
}
