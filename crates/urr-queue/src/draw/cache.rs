//! The public state of draws. Everybody may read it without a login, so it is cached for a second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use urr_kernel::{Clock, Uuid};
use urr_service::cache::{Cache, CacheOptions};
use urr_storage::{DbResult, StorageError};

use crate::draw::downloads::DownloadPlaces;
use crate::store::draws::{self, StoredDraw};
use crate::store::rooms;
use crate::{DrawState, EventRoom, QueueService};

const DRAW_TTL: Duration = Duration::from_secs(1);
const DRAWS_MAX: usize = 1_000;

/// The draws that were asked for lately, and the downloads of their files.
pub struct DrawCache {
    cache: Cache<Uuid, Option<Arc<PublicDraw>>, StorageError>,
    /// One load at a time for all events: whatever strangers ask for costs one statement at a time.
    loading: Arc<Semaphore>,
    pub downloads: DownloadPlaces,
}

/// An event with its draw.
pub struct PublicDraw {
    pub event: EventRoom,
    /// None if the event was never a lottery.
    pub draw: Option<StoredDraw>,
}

impl DrawCache {
    pub fn new(clock: Clock) -> DrawCache {
        DrawCache {
            cache: Cache::new(clock, CacheOptions { ttl: DRAW_TTL, entries_max: DRAWS_MAX }),
            loading: Arc::new(Semaphore::new(1)),
            downloads: DownloadPlaces::default(),
        }
    }
}

impl QueueService {
    /// An event with its draw, also long after its sale; none if there is no such event.
    pub(crate) async fn public_draw(&self, event_id: Uuid) -> DbResult<Option<Arc<PublicDraw>>> {
        let DrawCache { cache, loading, .. } = &self.0.draw_cache;
        // A draw that this process knows to be done is shown at once.
        let is_done = self.0.event_index.get(event_id).and_then(|event| event.draw);
        if is_done == Some(DrawState::Done)
            && cache.get(&event_id).flatten().is_some_and(|public| !public.is_done())
        {
            cache.remove(&event_id);
        }
        let load = || {
            let (db, loading) = (self.0.db.clone(), Arc::clone(loading));
            async move {
                let _loading = loading.acquire().await.expect("it is never closed");
                let read = db.read(move |tx| {
                    let event = rooms::room_find(tx, event_id)?;
                    let draw = draws::draw_find(tx, event_id)?;
                    Ok::<_, StorageError>(event.map(|event| PublicDraw { event, draw }))
                });
                Ok(read.await?.map(Arc::new))
            }
        };
        cache.get_or_load(event_id, load).await
    }
}

impl PublicDraw {
    fn is_done(&self) -> bool {
        self.draw.as_ref().is_some_and(|draw| draw.done_at.is_some())
    }
}
