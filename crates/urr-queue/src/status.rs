//! Asking for a place, looking at it, leaving it.
//!
//! A check and a look are one operation of the room and what is in memory: no statement, no call of
//! another service (P-1). Only in a pre-sale is the tier of someone who is not in line yet asked for.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use urr_kernel::{CallContext, Timestamp, Uuid};

use crate::crowd_cache::CrowdSnapshot;
use crate::domain::estimate::{WaitEstimator, WaitEstimate};
use crate::metrics::AdmissionPath;
use crate::tier_cache::TierLookupError;
use crate::{EventRoom, JoinRejection, OpeningOrder, RoomPhase, QueueService};
use urr_room::{
    Admission, AdmissionRules, LinePosition, RoomError, RoomRequest, StatusSnapshot, UserStatus,
};

/// Whoever wants to see all of their places costs a look into every room: so few do at a time, each
/// looks into few rooms at once, and into so many at most.
pub const STATUS_LISTS_MAX: usize = 2;
const ROOMS_AT_ONCE: usize = 8;
const ROOMS_PER_LIST_MAX: usize = 200;

/// What someone is told about their place.
#[derive(Debug)]
pub struct QueueStatus {
    pub event: Arc<EventRoom>,
    pub phase: RoomPhase,
    pub rules: AdmissionRules,
    pub is_sold_out: bool,
    pub seen: StatusSnapshot,
    /// Of who waits, if the line is expected to move.
    pub wait: Option<WaitEstimate>,
    pub at: Timestamp,
}

/// Why someone is not told a place.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error(transparent)]
    JoinRejection(#[from] JoinRejection),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("the tier of who comes is not known")]
    TierLookupError(#[from] TierLookupError),
}

/// What an entry token says: the slot by which its owner may book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotClaim {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub slot_id: Uuid,
}

/// An event at a moment: what its room is told.
pub(crate) struct EventContext {
    pub event: Arc<EventRoom>,
    pub phase: RoomPhase,
    pub rules: AdmissionRules,
    is_sold_out: bool,
    pub now: Timestamp,
}

/// The room of an event as a whole.
#[derive(Debug)]
pub(crate) struct RoomOverview {
    pub event: Arc<EventRoom>,
    pub phase: RoomPhase,
    pub rules: AdmissionRules,
    pub is_sold_out: bool,
    pub crowd: Arc<CrowdSnapshot>,
}

impl QueueStatus {
    /// Whether an order will be drawn: until then there is none.
    pub fn is_before_draw(&self) -> bool {
        is_before_draw(&self.event, self.phase)
    }
}

impl RoomOverview {
    /// Whether an order will be drawn: until then there is none.
    pub fn is_before_draw(&self) -> bool {
        is_before_draw(&self.event, self.phase)
    }
}

impl EventContext {
    /// In how many seconds people are let in; none if nobody can tell.
    pub fn until_opening(&self) -> Option<u64> {
        match self.phase {
            _ if self.is_sold_out => None,
            RoomPhase::Open => Some(0),
            RoomPhase::Gathering { .. } | RoomPhase::Closed { .. } => {
                Some(seconds(self.event.sale_starts_at, self.now))
            }
            _ => None,
        }
    }

    /// How fast the line moves.
    pub fn wait_estimator<'a>(&self, crowd: &'a CrowdSnapshot) -> &'a WaitEstimator {
        let open_for = Duration::from_secs(seconds(self.now, self.event.sale_starts_at));
        crowd.wait_estimator(&self.rules, open_for)
    }
}

pub(crate) fn is_before_draw(event: &EventRoom, phase: RoomPhase) -> bool {
    let is_early = matches!(phase, RoomPhase::Closed { .. } | RoomPhase::Gathering { .. } | RoomPhase::Drawing);
    is_early && event.room_settings.opening == OpeningOrder::Lottery
}

impl QueueService {
    /// Tells someone where they stand. Who is neither in nor in line is let in or lined up.
    pub async fn check(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        context: &CallContext,
    ) -> Result<QueueStatus, QueueError> {
        let event_context = self.event_context(event_id)?;
        let EventContext { event, rules, now, .. } = &event_context;
        let request = RoomRequest { event_id, user_id, now: *now };
        self.0.sales_health.note_interest(event_id, *now);
        let seen = match event.check_admissible(None, &self.0.settings, *now) {
            Ok(()) => self.count_errors(self.0.rooms.check(request, rules).await)?,
            Err(early @ (JoinRejection::NotOpen { .. } | JoinRejection::MembersOnly { .. })) => {
                self.check_early(&event_context, request, early, context).await?
            }
            Err(error) => return Err(error.into()),
        };
        self.note_admission(request, &seen);
        Ok(self.told(event_context, seen).await)
    }

    /// The general public may not come yet. Who has a place keeps it without a question; otherwise
    /// it depends on their tier, if there is a pre-sale.
    async fn check_early(
        &self,
        event_context: &EventContext,
        request: RoomRequest,
        early: JoinRejection,
        context: &CallContext,
    ) -> Result<StatusSnapshot, QueueError> {
        let EventContext { event, rules, now, .. } = event_context;
        let seen = self.count_errors(self.0.rooms.poll(request, rules).await)?;
        if seen.status != UserStatus::Absent {
            return Ok(seen);
        }
        if !matches!(early, JoinRejection::MembersOnly { .. }) {
            return Err(early.into());
        }
        let tier = self.tier_of(request.event_id, request.user_id, context, *now).await?;
        event.check_admissible(tier, &self.0.settings, *now)?;
        Ok(self.count_errors(self.0.rooms.check(request, rules).await)?)
    }

    /// Tells someone where they stand. It counts as being seen.
    pub async fn look(&self, event_id: Uuid, user_id: Uuid) -> Result<QueueStatus, QueueError> {
        let event_context = self.event_context(event_id)?;
        let seen = self.seen(&event_context, user_id).await?;
        Ok(self.told(event_context, seen).await)
    }

    /// Where someone stands in the rooms with people in them. It counts as being seen.
    pub async fn list_statuses(&self, user_id: Uuid) -> Result<Vec<QueueStatus>, QueueError> {
        let permit = self.0.status_lists.try_acquire();
        let _permit = permit.map_err(|_| RoomError::Unavailable)?;
        let mut events = self.events_likely_with_people();
        events.retain(|event_id| self.0.event_index.get(*event_id).is_some());
        events.truncate(ROOMS_PER_LIST_MAX);
        let looks = events.into_iter().map(|event_id| self.look(event_id, user_id));
        stream::iter(looks).buffered(ROOMS_AT_ONCE).try_collect().await
    }

    /// Where someone stands, and nothing else. It counts as being seen.
    pub async fn heartbeat(&self, event_id: Uuid, user_id: Uuid) -> Result<UserStatus, QueueError> {
        let event_context = self.event_context(event_id)?;
        Ok(self.seen(&event_context, user_id).await?.status)
    }

    async fn seen(&self, event_context: &EventContext, user_id: Uuid) -> Result<StatusSnapshot, QueueError> {
        let EventContext { event, phase, rules, now, .. } = event_context;
        if has_ended(*phase) {
            // Whoever is still in the room is about to be sent home.
            let status = UserStatus::Absent;
            return Ok(StatusSnapshot { status, waiting: 0, active: 0, is_just_admitted: false });
        }
        let request = RoomRequest { event_id: event.event_id, user_id, now: *now };
        Ok(self.count_errors(self.0.rooms.poll(request, rules).await)?)
    }

    /// Ends someone's place or slot at once, and with it their entry token. False if they had
    /// none.
    pub async fn leave(&self, event_id: Uuid, user_id: Uuid) -> Result<bool, QueueError> {
        let EventContext { now, .. } = self.event_context(event_id)?;
        Ok(self.count_errors(self.0.rooms.leave(RoomRequest { event_id, user_id, now }).await)?)
    }

    /// Whether someone may book by this slot now. It counts as being seen.
    pub async fn is_slot_live(&self, claim: SlotClaim) -> Result<bool, RoomError> {
        let SlotClaim { event_id, user_id, slot_id } = claim;
        let EventContext { phase, rules, now, .. } = match self.event_context(event_id) {
            Ok(event_context) => event_context,
            Err(QueueError::Room(error)) => return Err(error),
            Err(_) => return Ok(false),
        };
        if has_ended(phase) {
            return Ok(false);
        }
        let request = RoomRequest { event_id, user_id, now };
        self.count_errors(self.0.rooms.holds_slot(request, slot_id, &rules).await)
    }

    /// The room of an event as a whole, as it was within the last second.
    pub(crate) async fn overview(&self, event_id: Uuid) -> Result<RoomOverview, QueueError> {
        let EventContext { event, phase, rules, is_sold_out, now } = self.event_context(event_id)?;
        self.0.sales_health.note_interest(event_id, now);
        let crowd = self.count_errors(self.0.crowds.get(event_id, now).await)?;
        Ok(RoomOverview { event, phase, rules, is_sold_out, crowd })
    }

    /// Ends the slot of someone who has bought. False if they had none that is older.
    pub async fn finish(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        bought_at: Timestamp,
    ) -> Result<bool, RoomError> {
        let request = RoomRequest { event_id, user_id, now: self.0.clock.now() };
        self.count_errors(self.0.rooms.finish(request, bought_at).await)
    }

    /// An event that is known.
    pub(crate) fn event(&self, event_id: Uuid) -> Result<Arc<EventRoom>, QueueError> {
        match self.0.event_index.get(event_id) {
            Some(event) => Ok(event),
            None if !self.0.event_index.is_loaded() => Err(RoomError::Unavailable.into()),
            None => Err(JoinRejection::UnknownEvent.into()),
        }
    }

    pub(crate) fn event_context(&self, event_id: Uuid) -> Result<EventContext, QueueError> {
        let now = self.0.clock.now();
        let event = self.event(event_id)?;
        let phase = event.phase(&self.0.settings, now);
        let is_sold_out = self.0.sales_health.is_sold_out(event_id, now);
        let rules = self.rules_of(&event, now);
        Ok(EventContext { event, phase, rules, is_sold_out, now })
    }

    async fn told(&self, event_context: EventContext, seen: StatusSnapshot) -> QueueStatus {
        let wait = match seen.status {
            UserStatus::Waiting(place) => self.wait(&event_context, place, &seen).await,
            UserStatus::Active(_) | UserStatus::Absent => None,
        };
        let EventContext { event, phase, rules, is_sold_out, now } = event_context;
        QueueStatus { event, phase, rules, is_sold_out, seen, wait, at: now }
    }

    /// How long someone will wait, if that can be told.
    async fn wait(
        &self,
        event_context: &EventContext,
        place: LinePosition,
        seen: &StatusSnapshot,
    ) -> Option<WaitEstimate> {
        let EventContext { event, phase, now, .. } = event_context;
        let until_opening = event_context.until_opening()?;
        let crowd = self.0.crowds.get(event.event_id, *now).await.ok()?;
        let wait_estimator = event_context.wait_estimator(&crowd);
        let has_order = *phase == RoomPhase::Open || event.room_settings.opening == OpeningOrder::Fifo;
        let wait = match has_order {
            true => wait_estimator.wait_at(place.position),
            // The draw may make them the first or the last.
            false => WaitEstimate { seconds: 0, from: 0, to: wait_estimator.wait_at(seen.waiting).to },
        };
        Some(WaitEstimate {
            seconds: until_opening + wait.seconds,
            from: until_opening + wait.from,
            to: until_opening + wait.to,
        })
    }

    /// How long the last in line will wait, if people are let in.
    pub(crate) fn longest_wait(&self, event: &EventRoom, crowd: &CrowdSnapshot) -> Option<WaitEstimate> {
        let now = crowd.at;
        let is_open = event.phase(&self.0.settings, now) == RoomPhase::Open;
        let is_moving = is_open && !self.0.sales_health.is_sold_out(event.event_id, now);
        let open_for = Duration::from_secs(seconds(now, event.sale_starts_at));
        let wait_estimator = is_moving.then(|| crowd.wait_estimator(&self.rules_of(event, now), open_for));
        wait_estimator.map(|wait_estimator| wait_estimator.wait_at(crowd.crowd.waiting))
    }

    /// Counts an answer that the room could not give.
    pub(crate) fn count_errors<T>(&self, answer: Result<T, RoomError>) -> Result<T, RoomError> {
        if let Err(error) = &answer {
            self.0.metrics.count_room_error(error);
        }
        answer
    }

    fn note_admission(&self, request: RoomRequest, seen: &StatusSnapshot) {
        let UserStatus::Active(slot) = seen.status else { return };
        if seen.is_just_admitted {
            let admitted = Admission { user_id: request.user_id, slot_id: slot.id };
            self.0.notices.admitted(request.event_id, &[admitted], request.now);
            self.0.metrics.count_admitted(AdmissionPath::Direct, 1);
        }
    }
}

/// Whether nobody waits any more, whatever the room may still hold.
pub(crate) fn has_ended(phase: RoomPhase) -> bool {
    matches!(phase, RoomPhase::Over | RoomPhase::Cancelled | RoomPhase::Deleted)
}

/// From now until then; 0 if that has passed.
fn seconds(then: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(then.as_second().saturating_sub(now.as_second())).unwrap_or(0)
}
