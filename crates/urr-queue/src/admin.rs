//! The operations of administrators, organisers and operators. A change and its entry in the admin log are one
//! transaction. It takes effect at once in this process, and within a second in the others.

mod room_change;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use urr_kernel::{Timestamp, Uuid};
use urr_room::{ClearedCounts, Crowd, RoomError};
use urr_service::admin_log::{self, AdminAction};
use urr_service::{EventScope, NotYourEvent, Page};
use urr_storage::StorageError;

pub use self::room_change::{
    GATHERING_SECONDS, PEOPLE, RoomChange, RoomChangeRejection, RoomMessage, decide_change,
};
use crate::domain::estimate::{EstimatedWait, WaitEstimator};
use crate::status::EventContext;
use crate::store::rooms::{revision_raise, room_lock, room_settings_update};
use crate::{EventRoom, OpeningOrder, QueueService, RoomEventStatus, RoomPhase, draw};

/// Rooms that open for joining within this time are listed.
const SOON: Duration = Duration::from_hours(24);

/// Who changes a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomActor {
    Admin(Uuid),
    /// Of their own events only.
    Organiser(Uuid),
    /// By the command line.
    Operator,
}

impl RoomActor {
    /// The events whose rooms may be changed.
    pub fn scope(self) -> EventScope {
        match self {
            RoomActor::Admin(_) | RoomActor::Operator => EventScope::All,
            RoomActor::Organiser(organiser_id) => EventScope::OwnedBy(organiser_id),
        }
    }

    fn action(
        self,
        id: Uuid,
        action: &'static str,
        event_id: Uuid,
        details: Value,
        now: Timestamp,
    ) -> AdminAction {
        AdminAction {
            id,
            admin_id: match self {
                RoomActor::Admin(user_id) | RoomActor::Organiser(user_id) => Some(user_id),
                RoomActor::Operator => None,
            },
            action: action.into(),
            resource_type: "room".into(),
            resource_id: event_id.to_string(),
            summary: format!("{action} {event_id}"),
            details: Some(details),
            created_at: now,
        }
    }
}

/// A room as administrators see it.
#[derive(Clone, Debug)]
pub struct RoomReport {
    pub context: EventContext,
    pub crowd: Crowd,
    /// The limit of the autopilot, if it is on.
    pub autopilot_rate: Option<u32>,
    /// The wait of the last user in the line; none if nobody waits.
    pub wait_of_last: Option<EstimatedWait>,
}

/// Why an operation fails.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("there is no such event")]
    UnknownEvent,
    #[error(transparent)]
    NotYours(#[from] NotYourEvent),
    #[error("the room does not answer")]
    Room(#[from] RoomError),
    #[error("the storage failed")]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Refused(#[from] RoomChangeRejection),
}

impl QueueService {
    /// The present state of a room in the scope.
    pub async fn report_room(
        &self,
        event_id: Uuid,
        scope: EventScope,
    ) -> Result<RoomReport, AdminError> {
        let event = self.known_event(event_id, scope)?;
        self.report(event).await
    }

    /// A page of the rooms in the scope that are occupied, open or will be soon, and how many there
    /// are. Occupied rooms come first, then by the start of the sale.
    pub async fn report_rooms(
        &self,
        scope: EventScope,
        page: Page,
    ) -> Result<(Vec<RoomReport>, u64), AdminError> {
        let now = self.0.clock.now();
        let occupied: HashSet<Uuid> = self.0.rooms.occupied_events().await?.into_iter().collect();
        let is_occupied = |event: &EventRoom| occupied.contains(&event.event_id);
        let mut events = self.0.event_index.all();
        events.retain(|event| {
            let phase = event.phase(&self.0.settings, now);
            scope.includes(event.organiser_id) && (is_occupied(event) || is_listed(phase, now))
        });
        events.sort_by_key(|event| (!is_occupied(event), event.sale_starts_at, event.event_id));
        let total = events.len().try_into().unwrap_or(u64::MAX);
        let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
        let limit = usize::try_from(page.limit()).unwrap_or(usize::MAX);
        let mut reports = Vec::new();
        for event in events.into_iter().skip(skipped).take(limit) {
            reports.push(self.report(event).await?);
        }
        Ok((reports, total))
    }

    async fn report(&self, event: Arc<EventRoom>) -> Result<RoomReport, AdminError> {
        let now = self.0.clock.now();
        let crowd = self.0.rooms.crowd(event.event_id, now).await?;
        let context = self.context_at(event, now);
        let wait_estimator = WaitEstimator::new(&crowd, &context.rules);
        Ok(RoomReport {
            autopilot_rate: self.0.autopilots.rate_max(context.event.event_id),
            wait_of_last: wait_estimator.wait_at(crowd.waiting).filter(|_| crowd.waiting > 0),
            context,
            crowd,
        })
    }

    pub(crate) fn known_event(
        &self,
        event_id: Uuid,
        scope: EventScope,
    ) -> Result<Arc<EventRoom>, AdminError> {
        let event = self.0.event_index.get(event_id);
        let event = event.filter(|event| event.status != RoomEventStatus::Deleted);
        let event = event.ok_or(AdminError::UnknownEvent)?;
        scope.check(event.organiser_id)?;
        Ok(event)
    }

    /// Changes the settings of a room. A change without effect is not logged.
    pub async fn change_room(
        &self,
        event_id: Uuid,
        change: RoomChange,
        actor: RoomActor,
    ) -> Result<(), AdminError> {
        let (now, id) = (self.0.clock.now(), self.0.ids.next_id());
        let (settings, secret) = (self.0.settings.clone(), draw::new_secret());
        let seal = self.0.draw_seal.clone();
        let has_people =
            change.concerns_gathering() && self.0.rooms.crowd(event_id, now).await?.waiting > 0;
        let changed = self.0.db.write(move |tx| {
            let room = room_lock(tx, event_id)?.ok_or(AdminError::UnknownEvent)?;
            if room.status == RoomEventStatus::Deleted {
                return Err(AdminError::UnknownEvent);
            }
            actor.scope().check(room.organiser_id)?;
            let Some(decided) = decide_change(&room, &change, &settings, has_people, now)? else {
                return Ok(false);
            };
            room_settings_update(tx, event_id, &decided.room_settings, now)?;
            if decided.room_settings.opening == OpeningOrder::Lottery {
                // An earlier commitment stays.
                draw::commit(tx, event_id, &secret, &seal, now)?;
            }
            let action = actor.action(id, decided.action(), event_id, decided.details(), now);
            admin_log::insert(tx, &action)?;
            revision_raise(tx)?;
            Ok(true)
        });
        if changed.await? {
            self.load_at_once().await;
        }
        Ok(())
    }

    /// Ends every position and slot of an event, in whatever phase it is.
    ///
    /// The room is not in the database, so the intent is logged first and the result afterwards.
    pub async fn clear_room(
        &self,
        event_id: Uuid,
        actor: RoomActor,
    ) -> Result<ClearedCounts, AdminError> {
        self.known_event(event_id, actor.scope())?;
        let (now, id) = (self.0.clock.now(), self.0.ids.next_id());
        let begun = json!({ "outcome": "begun" });
        let intent = actor.action(id, "ROOM_CLEARED", event_id, begun, now);
        self.0.db.write(move |tx| admin_log::insert(tx, &intent)).await?;
        let cleared = self.0.rooms.clear(event_id, now).await;
        let details = match &cleared {
            Ok(ClearedCounts { waiting, active }) => {
                json!({ "outcome": "done", "waiting": waiting, "active": active })
            }
            Err(_) => json!({ "outcome": "unknown" }),
        };
        let count_errors =
            self.0.db.write(move |tx| admin_log::set_details(tx, id, &details)).await;
        if let Err(error) = count_errors {
            // The room was cleared; the log says that it was begun.
            tracing::warn!(%event_id, %error, "the result of clearing a room was not logged");
        }
        Ok(cleared?)
    }

    /// Otherwise a job would do it within a second.
    async fn load_at_once(&self) {
        if let Err(error) = self.load().await {
            tracing::warn!(%error, "a change is stored and takes effect in a moment");
        }
    }
}

fn is_listed(phase: RoomPhase, now: Timestamp) -> bool {
    match phase {
        RoomPhase::Gathering { .. } | RoomPhase::Drawing | RoomPhase::Open | RoomPhase::Paused => {
            true
        }
        RoomPhase::Closed { gathers_at } => gathers_at < now + SOON,
        RoomPhase::Over | RoomPhase::Cancelled | RoomPhase::Deleted => false,
    }
}
