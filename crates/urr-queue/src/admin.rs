//! What administrators and operators do with a room. A change and its line in the log are one
//! transaction; every process obeys it within a second, this one at once.

mod change;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::StorageError;

pub use self::change::{RoomChange, RoomChangeRejection, GATHERING_SECONDS, RoomMessage, PEOPLE, decide_change};
use crate::domain::estimate::{WaitEstimator, WaitEstimate};
use crate::store::audit::{AuditEntry, audit_complete, audit_insert, audit_list};
use crate::store::rooms::revision_raise;
use crate::store::room_settings::{room_lock, room_settings_update};
use crate::{EventRoom, EventStatus, OpeningOrder, RoomPhase, QueueService, draw};
use urr_room::{AdmissionRules, ClearedCounts, Crowd, RoomError};

/// Rooms that people may enter so soon are worth a look.
const SOON: Duration = Duration::from_hours(24);

/// Who does something to a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    Admin(Uuid),
    /// Whoever runs the installation.
    Operator,
}

impl Actor {
    fn admin_id(self) -> Option<Uuid> {
        match self {
            Actor::Admin(admin_id) => Some(admin_id),
            Actor::Operator => None,
        }
    }
}

/// A room as those see it who watch over it.
#[derive(Clone, Debug)]
pub struct RoomReport {
    pub event: Arc<EventRoom>,
    pub phase: RoomPhase,
    pub crowd: Crowd,
    /// What the room is told at the moment.
    pub rules: AdmissionRules,
    pub is_sold_out: bool,
    /// What the autopilot allows, if it flies.
    pub autopilot_rate: Option<u32>,
    /// Of the last in line; none if nobody waits.
    pub wait_of_last: Option<WaitEstimate>,
    pub at: Timestamp,
}

/// Why a room is not shown or not cleared.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("there is no such event")]
    UnknownEvent,
    #[error("the room does not answer")]
    Room(#[source] RoomError),
    #[error("the storage failed")]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Refused(#[from] RoomChangeRejection),
}

impl From<RoomError> for AdminError {
    fn from(error: RoomError) -> AdminError {
        AdminError::Room(error)
    }
}

impl QueueService {
    /// A room as it is now.
    pub async fn report_room(&self, event_id: Uuid) -> Result<RoomReport, AdminError> {
        let event = self.known_event(event_id)?;
        self.report(event).await
    }

    /// Some of the rooms that have anybody in them, are open, or will be soon: those with people
    /// first, then by their sale. With the number of all of them.
    pub async fn report_rooms(&self, page: Page) -> Result<(Vec<RoomReport>, u64), AdminError> {
        let now = self.0.clock.now();
        let occupied: HashSet<Uuid> = self.0.rooms.occupied_events().await?.into_iter().collect();
        let is_occupied = |event: &EventRoom| occupied.contains(&event.event_id);
        let mut events = self.0.event_index.all();
        events.retain(|event| {
            let phase = event.phase(&self.0.settings, now);
            is_occupied(event) || is_worth_a_look(phase, now)
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
        let rules = self.rules_of(&event, now);
        let open_for = now.duration_since(event.sale_starts_at);
        let wait_estimator =
            WaitEstimator::new(&crowd, &rules, Duration::try_from(open_for).unwrap_or_default());
        Ok(RoomReport {
            phase: event.phase(&self.0.settings, now),
            is_sold_out: self.0.sales_health.is_sold_out(event.event_id, now),
            autopilot_rate: self.0.autopilots.rate_max(event.event_id),
            wait_of_last: (crowd.waiting > 0).then(|| wait_estimator.wait_at(crowd.waiting)),
            event,
            crowd,
            rules,
            at: now,
        })
    }

    fn known_event(&self, event_id: Uuid) -> Result<Arc<EventRoom>, AdminError> {
        let event = self.0.event_index.get(event_id);
        event.filter(|event| event.status != EventStatus::Deleted).ok_or(AdminError::UnknownEvent)
    }

    /// Changes how a room is run. What is so already is no change.
    pub async fn change_room(
        &self,
        event_id: Uuid,
        change: RoomChange,
        actor: Actor,
    ) -> Result<(), AdminError> {
        let (now, id) = (self.0.clock.now(), self.0.ids.next_id());
        let (settings, secret) = (self.0.settings.clone(), draw::new_secret());
        let has_people =
            change.concerns_gathering() && self.0.rooms.crowd(event_id, now).await?.waiting > 0;
        let changed = self.0.db.write(move |tx| {
            let room = room_lock(tx, event_id)?.ok_or(AdminError::UnknownEvent)?;
            if room.status == EventStatus::Deleted {
                return Err(AdminError::UnknownEvent);
            }
            let Some(decided) = decide_change(&room, &change, &settings, has_people, now)? else {
                return Ok(false);
            };
            room_settings_update(tx, event_id, &decided.room_settings, now)?;
            if decided.room_settings.opening == OpeningOrder::Lottery {
                // A commitment that was made before stays.
                draw::commit(tx, event_id, &secret, now)?;
            }
            audit_insert(
                tx,
                &AuditEntry {
                    id,
                    at: now,
                    admin_id: actor.admin_id(),
                    action: decided.action().to_owned(),
                    event_id,
                    details: decided.details(),
                },
            )?;
            revision_raise(tx)?;
            Ok(true)
        });
        if changed.await? {
            self.learn_at_once().await;
        }
        Ok(())
    }

    /// Ends every place and slot of an event, whatever state it is in.
    ///
    /// The room is not in the database: the intent is written down first, then what came of it.
    pub async fn clear_room(
        &self,
        event_id: Uuid,
        actor: Actor,
    ) -> Result<ClearedCounts, AdminError> {
        self.known_event(event_id)?;
        let (now, id) = (self.0.clock.now(), self.0.ids.next_id());
        let intent = AuditEntry {
            id,
            at: now,
            admin_id: actor.admin_id(),
            action: "ROOM_CLEARED".to_owned(),
            event_id,
            details: json!({ "outcome": "begun" }),
        };
        self.0.db.write(move |tx| audit_insert(tx, &intent)).await?;
        let cleared = self.0.rooms.clear(event_id, now).await;
        let details = match &cleared {
            Ok(ClearedCounts { waiting, active }) => {
                json!({ "outcome": "done", "waiting": waiting, "active": active })
            }
            Err(_) => json!({ "outcome": "unknown" }),
        };
        let count_errors = self.0.db.write(move |tx| audit_complete(tx, id, &details)).await;
        if let Err(error) = count_errors {
            // It was done; the line says that it was begun.
            tracing::warn!(%event_id, %error, "what came of clearing a room was not written down");
        }
        Ok(cleared?)
    }

    /// What was done to the rooms, the newest first, and how much it is.
    pub async fn list_audit(
        &self,
        event_id: Option<Uuid>,
        page: Page,
    ) -> Result<(Vec<AuditEntry>, u64), StorageError> {
        self.0.db.read(move |tx| audit_list(tx, event_id, page)).await
    }

    /// The job would do it within a second.
    async fn learn_at_once(&self) {
        if let Err(error) = self.load().await {
            tracing::warn!(%error, "a change is stored and will be obeyed in a moment");
        }
    }
}

fn is_worth_a_look(phase: RoomPhase, now: Timestamp) -> bool {
    match phase {
        RoomPhase::Gathering { .. } | RoomPhase::Drawing | RoomPhase::Open | RoomPhase::Paused => true,
        RoomPhase::Closed { gathers_at } => gathers_at < now + SOON,
        RoomPhase::Over | RoomPhase::Cancelled | RoomPhase::Deleted => false,
    }
}
