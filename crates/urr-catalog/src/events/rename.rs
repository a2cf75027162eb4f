//! The new name of an artist or a venue in the events that show it and are found by it.

use urr_contracts::events::catalog::EventUpdated;
use urr_kernel::{CallContext, IdSource, Timestamp};
use urr_storage::outbox::{self, EventMetadata};
use urr_storage::{StorageError, Tx};

use super::change::{event_store_change, search_text};
use super::rules::EventRecord;
use super::search_store::search_text_update;
use super::store::event_list_by_artist_or_venue;
use crate::{AdminActor, ArtistId, CatalogService, SOURCE, VenueId};

/// The artist or venue has too many coming events to announce them all in one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The name cannot be changed now: it has more than {events_max} events to come.")]
pub struct TooManyEvents {
    pub events_max: usize,
}

/// Announces a new name; made before the transaction by [`CatalogService::name_change`].
pub struct NameChange {
    ids: IdSource,
    now: Timestamp,
    context: CallContext,
    events_max: usize,
}

impl NameChange {
    /// Indexes the events of the artist or venue by the new name, which is stored already, and
    /// announces those that have not begun.
    pub fn announce<E>(
        &self,
        tx: &mut Tx<'_>,
        artist: Option<ArtistId>,
        venue: Option<VenueId>,
    ) -> Result<(), E>
    where
        E: From<StorageError> + From<TooManyEvents>,
    {
        let events = event_list_by_artist_or_venue(tx, artist, venue)?;
        let is_coming = |event: &EventRecord| {
            event.deleted_at.is_none() && !event.is_cancelled() && !event.has_begun(self.now)
        };
        if events.iter().filter(|event| is_coming(event)).count() > self.events_max {
            return Err(TooManyEvents { events_max: self.events_max }.into());
        }
        for event in events {
            if !is_coming(&event) {
                search_text_update(tx, event.id, &search_text(&event))?;
                continue;
            }
            let revision = event.revision + 1;
            let renamed = EventRecord { revision, updated_at: self.now, ..event };
            event_store_change(tx, &renamed)?;
            let (event_id, time) = (self.ids.next_id(), self.now);
            let metadata = EventMetadata { event_id, source: SOURCE, time, context: self.context };
            outbox::append(tx, &metadata, &EventUpdated(renamed.snapshot()))?;
        }
        Ok(())
    }
}

impl CatalogService {
    pub(crate) fn name_change(&self, actor: &AdminActor) -> NameChange {
        let (ids, now) = (self.0.ids.clone(), self.0.clock.now());
        let events_max = self.0.settings.renamed_events_max;
        NameChange { ids, now, context: actor.context, events_max }
    }
}
