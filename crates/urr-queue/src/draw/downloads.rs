//! The downloads of draw files that are in progress.
//!
//! A file can be large, so few are sent at once. Readers that are slow on purpose must not hide it:
//! when all places are taken, the slowest reader loses its place to the next one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Each holds up to two parts in memory, about half a megabyte.
const DOWNLOADS_MAX: usize = 64;
/// A download keeps its place for at least this long.
const PLACE_KEPT: Duration = Duration::from_secs(2);

#[derive(Clone, Default)]
pub struct DownloadPlaces(Arc<Mutex<TakenPlaces>>);

#[derive(Default)]
struct TakenPlaces {
    next_id: u64,
    taken: BTreeMap<u64, DownloadProgress>,
}

struct DownloadProgress {
    started_at: Instant,
    parts: u32,
    ended: CancellationToken,
}

/// The place of one download, given back when it is dropped.
pub struct DownloadPlace {
    id: u64,
    /// Cancelled when the place was given to another download.
    pub ended: CancellationToken,
    places: DownloadPlaces,
}

impl DownloadPlaces {
    /// Takes a place, from the slowest download if there is no free one. `None` if all downloads have
    /// only just begun.
    pub fn take(&self) -> Option<DownloadPlace> {
        let mut places = self.lock();
        if places.taken.len() >= DOWNLOADS_MAX {
            let slowest = places.slowest()?;
            let progress = places.taken.remove(&slowest).expect("it was found just now");
            progress.ended.cancel();
        }
        let (id, ended) = (places.next_id, CancellationToken::new());
        places.next_id += 1;
        let progress =
            DownloadProgress { started_at: Instant::now(), parts: 0, ended: ended.clone() };
        places.taken.insert(id, progress);
        Some(DownloadPlace { id, ended, places: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, TakenPlaces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakenPlaces {
    /// The download that took the most time for each part.
    fn slowest(&self) -> Option<u64> {
        let old = self.taken.iter().filter(|(_, one)| one.started_at.elapsed() >= PLACE_KEPT);
        let slowest = old.max_by_key(|(_, one)| one.started_at.elapsed() / (one.parts + 1));
        slowest.map(|(id, _)| *id)
    }
}

impl DownloadPlace {
    /// Notes that the reader took a part.
    pub fn note_part(&self) {
        if let Some(progress) = self.places.lock().taken.get_mut(&self.id) {
            progress.parts = progress.parts.saturating_add(1);
        }
    }
}

impl Drop for DownloadPlace {
    fn drop(&mut self) {
        self.places.lock().taken.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_slowest_reader_loses_its_place_and_fast_ones_keep_theirs() {
        let places = DownloadPlaces::default();
        let readers: Vec<_> = (0..DOWNLOADS_MAX).filter_map(|_| places.take()).collect();
        assert_eq!(readers.len(), DOWNLOADS_MAX);
        assert!(places.take().is_none(), "all have only just begun");
        tokio::time::advance(PLACE_KEPT).await;
        let (slow, fast) = readers.split_at(1);
        for _ in 0..20 {
            fast.iter().for_each(DownloadPlace::note_part);
        }
        slow[0].note_part();
        let next = places.take().unwrap();
        assert!(slow[0].ended.is_cancelled());
        assert!(fast.iter().all(|reader| !reader.ended.is_cancelled()));
        // Also many slow ones hide the file from nobody: each newcomer takes a place.
        drop(next);
        tokio::time::advance(PLACE_KEPT).await;
        let newcomers: Vec<_> = (0..10).filter_map(|_| places.take()).collect();
        assert_eq!(newcomers.len(), 10);
    }

    #[test]
    fn a_place_is_given_back() {
        let places = DownloadPlaces::default();
        drop((0..DOWNLOADS_MAX).filter_map(|_| places.take()).collect::<Vec<_>>());
        assert!(places.take().is_some());
        assert!(places.lock().taken.is_empty());
    }
}
