//! What follows when an artist or a venue has another name: others print it, and search by it.

use urr_kernel::{CallContext, IdSource, Timestamp};
use urr_storage::outbox::Stamp;
use urr_storage::{StorageError, Tx, outbox};

use crate::admin_log::Actor;
use crate::events::change::{searchable, write_changed};
use crate::events::rules::EventRecord;
use crate::events::search_store as search;
use crate::events::store;
use crate::messages::{EventFacts, EventUpdated};
use crate::{ArtistId, CatalogService, SOURCE, VenueId};

/// The artist or venue has more events to come than can be told of its new name at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more than {events_max} events to come")]
pub struct TooManyEvents {
    pub events_max: usize,
}

/// See [`CatalogService::rename`].
pub struct NameChange {
    ids: IdSource,
    now: Timestamp,
    context: CallContext,
    events_max: usize,
}

impl NameChange {
    /// The names in the tables are the new ones already.
    pub fn announce<E>(
        &self,
        tx: &mut Tx<'_>,
        artist: Option<ArtistId>,
        venue: Option<VenueId>,
    ) -> Result<(), E>
    where
        E: From<StorageError> + From<TooManyEvents>,
    {
        let events = store::event_list_named_after(tx, artist, venue)?;
        let is_to_come = |event: &EventRecord| {
            event.deleted_at.is_none() && !event.is_cancelled() && !event.has_begun(self.now)
        };
        if events.iter().filter(|event| is_to_come(event)).count() > self.events_max {
            return Err(TooManyEvents { events_max: self.events_max }.into());
        }
        for event in events {
            if !is_to_come(&event) {
                search::search_text_write(tx, event.id, &searchable(&event))?;
                continue;
            }
            let revision = event.revision + 1;
            let renamed = EventRecord { revision, updated_at: self.now, ..event };
            write_changed(tx, &renamed)?;
            let (event_id, time) = (self.ids.next_id(), self.now);
            let stamp = Stamp { event_id, source: SOURCE, time, context: self.context };
            outbox::append(tx, &stamp, &EventUpdated(EventFacts::from(&renamed)))?;
        }
        Ok(())
    }
}

impl CatalogService {
    /// Tells of another name of an artist or venue: its events are found by it, and those that
    /// are yet to happen are announced, within the transaction.
    pub(crate) fn rename(&self, actor: &Actor) -> NameChange {
        let (ids, now) = (self.ids.clone(), self.clock.now());
        let events_max = self.settings.renamed_events_max;
        NameChange { ids, now, context: actor.context, events_max }
    }
}
