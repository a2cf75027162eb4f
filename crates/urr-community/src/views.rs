//! Counts of views: gathered in memory and written together, so that reading a post writes nothing.
//! A crash loses the views of the last seconds.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use urr_storage::{DbResult, StorageError, params};

use crate::CommunityService;
use crate::posts::PostId;

/// More posts than this are not counted within one interval.
const POSTS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub struct ViewCounts(Mutex<HashMap<PostId, u32>>);

impl ViewCounts {
    fn lock(&self) -> MutexGuard<'_, HashMap<PostId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self, id: PostId) {
        self.add(id, 1);
    }

    fn add(&self, id: PostId, views: u32) {
        let mut counts = self.lock();
        if counts.len() < POSTS_MAX || counts.contains_key(&id) {
            let count = counts.entry(id).or_default();
            *count = count.saturating_add(views);
        }
    }

    /// In the order of ids, in which all processes lock posts.
    fn take(&self) -> Vec<(PostId, u32)> {
        let mut counts: Vec<_> = std::mem::take(&mut *self.lock()).into_iter().collect();
        counts.sort_unstable_by_key(|(id, _)| *id);
        counts
    }
}

impl CommunityService {
    /// Writes the views that were counted since the last time, in one transaction. Returns to how
    /// many posts.
    pub async fn flush_views(&self) -> DbResult<usize> {
        let counts = self.0.views.take();
        if counts.is_empty() {
            return Ok(0);
        }
        let written = counts.clone();
        let flushed: DbResult<()> = self
            .0
            .db
            .write(move |tx| {
                for (id, views) in &written {
                    let sql = "update posts set views = views + $2 where id = $1";
                    tx.execute(sql, params![*id, i64::from(*views)])?;
                }
                Ok::<_, StorageError>(())
            })
            .await;
        if let Err(error) = flushed {
            counts.into_iter().for_each(|(id, views)| self.0.views.add(id, views));
            return Err(error);
        }
        Ok(counts.len())
    }
}
