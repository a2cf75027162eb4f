//! What moving an event means: who is told, who may then cancel for free, and what else is there at
//! that time. Nothing is changed.

use std::time::Duration;

use urr_contracts::internal::ticket::{MovePreviewAnswer, PreviewMove};
use urr_kernel::{CallContext, Timestamp};
use urr_service::EventScope;

use crate::events::rules::{EventChange, EventId, EventRecord, decide_edit};
use crate::events::store;
use crate::{CatalogService, EditEventError};

/// Events that begin within this time of each other are in each other's way.
const CONFLICT_DISTANCE: Duration = Duration::from_hours(12);
/// How many conflicts are listed.
pub const CONFLICTS_MAX: u32 = 20;

/// New times of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMove {
    pub starts_at: Timestamp,
    /// `None`: it stays.
    pub sale_ends_at: Option<Timestamp>,
}

/// Why another event is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// The same hall, or standing in the same venue.
    Place,
    Artist,
}

/// What a move means.
#[derive(Clone, Debug)]
pub struct MovePreview {
    pub event: EventRecord,
    /// None: the ticket service is away.
    pub tickets: Option<MovePreviewAnswer>,
    pub conflicts: Vec<(ConflictReason, EventRecord)>,
}

impl CatalogService {
    /// Refuses a move that an edit would refuse.
    pub async fn preview_move(
        &self,
        id: EventId,
        new: EventMove,
        scope: EventScope,
        context: &CallContext,
    ) -> Result<MovePreview, EditEventError> {
        let event = self.get_public_event(id).await?.event;
        scope.check(Some(event.organiser_id))?;
        let change = EventChange {
            revision: event.revision,
            starts_at: Some(new.starts_at),
            sale_ends_at: new.sale_ends_at,
            ..EventChange::default()
        };
        decide_edit(&event, &change, self.0.clock.now())?;
        let conflicts = self.find_conflicts(&event, new.starts_at).await?;
        let tickets = self.preview_tickets(id, new.starts_at, context).await;
        Ok(MovePreview { event, tickets, conflicts })
    }

    async fn find_conflicts(
        &self,
        event: &EventRecord,
        starts_at: Timestamp,
    ) -> Result<Vec<(ConflictReason, EventRecord)>, EditEventError> {
        let range = (starts_at - CONFLICT_DISTANCE, starts_at + CONFLICT_DISTANCE);
        let moved = event.clone();
        let near = self
            .0
            .db
            .read(move |tx| store::event_list_near(tx, &moved, range, CONFLICTS_MAX))
            .await?;
        let conflict = |other: EventRecord| Some((conflict(event, &other)?, other));
        Ok(near.into_iter().filter_map(conflict).collect())
    }

    async fn preview_tickets(
        &self,
        id: EventId,
        starts_at: Timestamp,
        context: &CallContext,
    ) -> Option<MovePreviewAnswer> {
        let ticket = &self.0.dashboard.peers()?.ticket;
        let answer = ticket.call(PreviewMove { event_id: id.0, starts_at }, context).await;
        answer.inspect_err(|error| tracing::warn!(%error, "a preview is without tickets")).ok()
    }
}

/// Two events in different halls of a venue are not in each other's way.
fn conflict(event: &EventRecord, other: &EventRecord) -> Option<ConflictReason> {
    let hall = |event: &EventRecord| event.hall.as_ref().map(|hall| hall.id);
    let artist = |event: &EventRecord| event.artist.as_ref().map(|artist| artist.id);
    if event.venue.id == other.venue.id && hall(event) == hall(other) {
        return Some(ConflictReason::Place);
    }
    (artist(event).is_some() && artist(event) == artist(other)).then_some(ConflictReason::Artist)
}
