//! Copying an event: the same in everything but its times.
//!
//! The copy is an event of its own, with an inventory of its own. Settings of the waiting room, house
//! seats and door staff are not part of the event and are not copied.

use urr_kernel::Timestamp;
use urr_service::idempotency::KeyedRequest;

use crate::events::change::{ArtistChoice, CreateEventError, EventLocation, NewEvent};
use crate::events::rules::{EventId, EventRecord, InvalidSchedule, Schedule, TicketType};
use crate::{AdminActor, CatalogService, EditEventError};

/// What the copy has of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCopy {
    pub starts_at: Timestamp,
    /// `None`: as long before the start as those of the original.
    pub sale_starts_at: Option<Timestamp>,
    pub sale_ends_at: Option<Timestamp>,
    /// `None`: that of the original.
    pub title: Option<String>,
    pub request: Option<KeyedRequest>,
}

#[derive(Debug, thiserror::Error)]
pub enum CopyEventError {
    #[error(transparent)]
    Original(#[from] EditEventError),
    #[error(transparent)]
    Schedule(#[from] InvalidSchedule),
    #[error("The sale of the copy would have begun already. Give saleStartsAt and saleEndsAt.")]
    SaleInPast,
    #[error(transparent)]
    Create(#[from] CreateEventError),
}

/// The times of the copy: those of the original, moved with the start, unless others are given. A
/// sale that has begun would open at once, before anybody has looked at the copy.
pub fn decide_schedule(
    original: &Schedule,
    copy: &EventCopy,
    now: Timestamp,
) -> Result<Schedule, CopyEventError> {
    let moved = |time: Timestamp| {
        let before_start = original.starts_at().duration_since(time);
        copy.starts_at.checked_sub(before_start).unwrap_or(Timestamp::MIN)
    };
    let sale_starts_at = copy.sale_starts_at.unwrap_or_else(|| moved(original.sale_starts_at()));
    let sale_ends_at = copy.sale_ends_at.unwrap_or_else(|| moved(original.sale_ends_at()));
    let schedule = Schedule::parse(copy.starts_at, sale_starts_at, sale_ends_at)?;
    match schedule.sale_starts_at() > now {
        true => Ok(schedule),
        false => Err(CopyEventError::SaleInPast),
    }
}

fn new_event(
    event: EventRecord,
    ticket_types: Vec<TicketType>,
    schedule: Schedule,
    copy: EventCopy,
) -> NewEvent {
    let location = match &event.hall {
        Some(hall) => EventLocation::Hall { hall_id: hall.id, venue_id: None },
        None => EventLocation::Venue(event.venue.id),
    };
    NewEvent {
        id: None,
        title: copy.title.unwrap_or(event.title),
        description: event.description,
        location,
        artist: event.artist.map(|artist| ArtistChoice::Id(artist.id)),
        schedule,
        has_presale: event.has_presale,
        seats_per_user_max: event.seats_per_user_max,
        requires_identity: event.requires_identity,
        allows_reentry: event.allows_reentry,
        organiser_id: Some(event.organiser_id),
        poster_image_url: event.poster_image_url,
        terms: event.terms,
        prices: event.prices,
        ticket_types,
        request: copy.request,
    }
}

impl CatalogService {
    /// Creates a copy of an event of the actor's own, for an administrator of any event, also of one
    /// that is over or was cancelled. A repetition with the same key returns the first copy.
    pub async fn copy_event(
        &self,
        id: EventId,
        copy: EventCopy,
        actor: AdminActor,
    ) -> Result<EventRecord, CopyEventError> {
        let found = self.get_public_event(id).await?;
        let not_yours = actor.scope.check(Some(found.event.organiser_id));
        not_yours.map_err(EditEventError::from)?;
        let schedule = decide_schedule(&found.event.schedule, &copy, self.0.clock.now())?;
        let new = new_event(found.event, found.ticket_types, schedule, copy);
        // An organiser's own id is the default, so that only administrators name somebody.
        let organiser_id = new.organiser_id.filter(|organiser_id| *organiser_id != actor.admin_id);
        Ok(self.create_event(NewEvent { organiser_id, ..new }, actor).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn copy(starts_at: &str) -> EventCopy {
        let starts_at = time(starts_at);
        EventCopy {
            starts_at,
            sale_starts_at: None,
            sale_ends_at: None,
            title: None,
            request: None,
        }
    }

    /// The original begins on 24 December; its sale begins 23 days before and ends one day before.
    fn original() -> Schedule {
        Schedule::parse(
            time("2026-12-24T10:00:00Z"),
            time("2026-12-01T11:00:00Z"),
            time("2026-12-23T10:00:00Z"),
        )
        .unwrap()
    }

    #[test]
    fn the_sale_moves_with_the_start() {
        let now = time("2026-12-25T00:00:00Z");
        let moved = decide_schedule(&original(), &copy("2027-03-24T10:00:00Z"), now).unwrap();
        assert_eq!(moved.sale_starts_at(), time("2027-03-01T11:00:00Z"));
        assert_eq!(moved.sale_ends_at(), time("2027-03-23T10:00:00Z"));
        let given = EventCopy {
            sale_starts_at: Some(time("2027-01-01T00:00:00Z")),
            sale_ends_at: Some(time("2027-01-02T00:00:00Z")),
            ..copy("2027-01-10T10:00:00Z")
        };
        let given = decide_schedule(&original(), &given, now).unwrap();
        assert_eq!(given.sale_starts_at(), time("2027-01-01T00:00:00Z"));
    }

    #[test]
    fn a_copy_never_sells_at_once() {
        let now = time("2026-12-25T00:00:00Z");
        let soon = decide_schedule(&original(), &copy("2027-01-10T10:00:00Z"), now);
        assert!(matches!(soon, Err(CopyEventError::SaleInPast)), "{soon:?}");
        let far = decide_schedule(&original(), &copy("9999-01-01T00:00:00Z"), now);
        assert!(matches!(far, Err(CopyEventError::Schedule(_))), "{far:?}");
    }
}
