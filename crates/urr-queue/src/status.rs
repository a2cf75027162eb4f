//! The status of a user in a waiting room: join, poll, leave.
//!
//! A check and a poll are one operation of the room plus data in memory: no SQL statement, no call
//! of another service (P-1). Only in a pre-sale the ticket service is asked for the tier of a user
//! who is not in the line yet.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use urr_contracts::internal::queue::SlotCheck;
use urr_kernel::{CallContext, Timestamp, Uuid};
use urr_room::{
    Admission, AdmissionRules, LinePosition, RoomError, RoomRequest, StatusSnapshot, UserStatus,
};

use crate::crowd_cache::CrowdSnapshot;
use crate::domain::estimate::{EstimatedWait, WaitEstimator};
use crate::metrics::AdmissionPath;
use crate::tier_cache::TierLookupError;
use crate::{EventRoom, JoinRejection, OpeningOrder, QueueService, RoomPhase};

/// Listing a user's statuses polls every occupied room, so it is bounded three times: lists at once,
/// rooms at once per list, and rooms per list.
pub const STATUS_LISTS_MAX: usize = 2;
const ROOMS_AT_ONCE: usize = 8;
const ROOMS_PER_LIST_MAX: usize = 200;
/// The projection of a new event takes moments. For so long an unknown event id that was made just
/// now may belong to an event whose room is not there yet.
const NEW_EVENT_AGE_MAX: Duration = Duration::from_secs(60);

/// A user's status, with what it follows from.
#[derive(Debug)]
pub struct QueueStatus {
    pub context: EventContext,
    pub snapshot: StatusSnapshot,
    /// Only of a user who waits, and only if the line is expected to move.
    pub wait: Option<EstimatedWait>,
}

/// Why a user gets no status.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    #[error(transparent)]
    Rejected(#[from] JoinRejection),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("the event is too new to have a room")]
    RoomNotReady,
    #[error("the user's tier is not known")]
    TierUnknown(#[from] TierLookupError),
}

/// An event at a moment, with the rules of its room.
#[derive(Clone, Debug)]
pub struct EventContext {
    pub event: Arc<EventRoom>,
    pub phase: RoomPhase,
    pub rules: AdmissionRules,
    pub is_sold_out: bool,
    pub now: Timestamp,
}

impl EventContext {
    /// Whether the order of the line is still to be drawn.
    pub fn is_before_draw(&self) -> bool {
        let is_early = matches!(
            self.phase,
            RoomPhase::Closed { .. } | RoomPhase::Gathering { .. } | RoomPhase::Drawing
        );
        is_early && self.event.room_settings.opening == OpeningOrder::Lottery
    }

    /// The seconds until users are admitted; none if that is not known.
    pub fn until_opening(&self) -> Option<u64> {
        match self.phase {
            _ if self.is_sold_out => None,
            RoomPhase::Open => Some(0),
            RoomPhase::Gathering { .. } | RoomPhase::Closed { .. } => {
                Some(seconds_until(self.event.sale_starts_at, self.now))
            }
            _ => None,
        }
    }

    pub fn wait_estimator<'a>(&self, crowd: &'a CrowdSnapshot) -> &'a WaitEstimator {
        crowd.wait_estimator(&self.rules)
    }
}

impl QueueService {
    /// Reports a user's status. A user who is neither admitted nor in the line is admitted at once if
    /// nobody waits, or else joins the line.
    pub async fn check(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        call: &CallContext,
    ) -> Result<QueueStatus, QueueError> {
        let context = self.event_context(event_id)?;
        let EventContext { event, rules, now, .. } = &context;
        let request = RoomRequest { event_id, user_id, now: *now };
        self.0.sales_health.note_interest(event_id, *now);
        let snapshot = match event.check_admissible(None, &self.0.settings, *now) {
            Ok(()) => self.count_errors(self.0.rooms.check(request, rules).await)?,
            Err(early @ (JoinRejection::NotOpen { .. } | JoinRejection::MembersOnly { .. })) => {
                self.check_early(&context, request, early, call).await?
            }
            Err(error) => return Err(error.into()),
        };
        self.note_admission(request, &snapshot);
        Ok(self.status(context, snapshot).await)
    }

    /// Handles a check while the general public may not join yet. A user who is in the room already
    /// stays in it; otherwise the tier decides, if there is a pre-sale.
    async fn check_early(
        &self,
        context: &EventContext,
        request: RoomRequest,
        early: JoinRejection,
        call: &CallContext,
    ) -> Result<StatusSnapshot, QueueError> {
        let EventContext { event, rules, now, .. } = context;
        let snapshot = self.count_errors(self.0.rooms.poll(request, rules).await)?;
        if snapshot.status != UserStatus::Absent {
            return Ok(snapshot);
        }
        if !matches!(early, JoinRejection::MembersOnly { .. }) {
            return Err(early.into());
        }
        let tier = self.tier_of(request.event_id, request.user_id, call).await?;
        event.check_admissible(tier, &self.0.settings, *now)?;
        Ok(self.count_errors(self.0.rooms.check(request, rules).await)?)
    }

    /// Reports a user's status and marks the user as seen.
    pub async fn poll(&self, event_id: Uuid, user_id: Uuid) -> Result<QueueStatus, QueueError> {
        let context = self.event_context(event_id)?;
        let snapshot = self.poll_room(&context, user_id).await?;
        Ok(self.status(context, snapshot).await)
    }

    /// Polls all occupied rooms for a user, and marks the user as seen in them.
    pub async fn list_statuses(&self, user_id: Uuid) -> Result<Vec<QueueStatus>, QueueError> {
        let permit = self.0.status_lists.try_acquire();
        let _permit = permit.map_err(|_| RoomError::Unavailable)?;
        let mut events = self.likely_occupied_events();
        events.retain(|event_id| self.0.event_index.get(*event_id).is_some());
        events.truncate(ROOMS_PER_LIST_MAX);
        let polls = events.into_iter().map(|event_id| self.poll(event_id, user_id));
        stream::iter(polls).buffered(ROOMS_AT_ONCE).try_collect().await
    }

    /// Marks a user as seen.
    pub async fn heartbeat(&self, event_id: Uuid, user_id: Uuid) -> Result<UserStatus, QueueError> {
        let context = self.event_context(event_id)?;
        Ok(self.poll_room(&context, user_id).await?.status)
    }

    async fn poll_room(
        &self,
        context: &EventContext,
        user_id: Uuid,
    ) -> Result<StatusSnapshot, QueueError> {
        let EventContext { event, phase, rules, now, .. } = context;
        if phase.has_ended() {
            // The room may still hold users until a job clears it.
            let status = UserStatus::Absent;
            return Ok(StatusSnapshot { status, waiting: 0, active: 0, is_just_admitted: false });
        }
        let request = RoomRequest { event_id: event.event_id, user_id, now: *now };
        Ok(self.count_errors(self.0.rooms.poll(request, rules).await)?)
    }

    /// Ends a user's position or slot, and with it the entry token. False if there was none.
    pub async fn leave(&self, event_id: Uuid, user_id: Uuid) -> Result<bool, QueueError> {
        let EventContext { now, .. } = self.event_context(event_id)?;
        let request = RoomRequest { event_id, user_id, now };
        Ok(self.count_errors(self.0.rooms.leave(request).await)?)
    }

    /// Reads the events again if one of these slots is at an event that this process has not read
    /// yet: another process did, and has admitted someone since.
    pub(crate) async fn learn_events(&self, checks: &[SlotCheck]) -> Result<(), RoomError> {
        let index = &self.0.event_index;
        let is_unknown = |check: &SlotCheck| index.get(check.event_id).is_none();
        if !index.is_loaded() || !checks.iter().any(is_unknown) {
            return Ok(());
        }
        self.load().await.map_err(|error| {
            tracing::warn!(%error, "slots of an unknown event cannot be checked");
            RoomError::Unavailable
        })
    }

    /// Whether a user may book by this slot now. If so, the user is marked as seen.
    pub async fn is_slot_live(&self, check: SlotCheck) -> Result<bool, RoomError> {
        let SlotCheck { event_id, user_id, slot_id } = check;
        let EventContext { phase, rules, now, .. } = match self.event_context(event_id) {
            Ok(context) => context,
            Err(QueueError::Room(error)) => return Err(error),
            // Somebody was admitted to it, so it will be there.
            Err(QueueError::RoomNotReady) => return Err(RoomError::Unavailable),
            Err(_) => return Ok(false),
        };
        if phase.has_ended() {
            return Ok(false);
        }
        let request = RoomRequest { event_id, user_id, now };
        self.count_errors(self.0.rooms.holds_slot(request, slot_id, &rules).await)
    }

    /// The crowd of an event, at most a second old.
    pub(crate) async fn crowd(
        &self,
        event_id: Uuid,
    ) -> Result<(EventContext, Arc<CrowdSnapshot>), QueueError> {
        let context = self.event_context(event_id)?;
        self.0.sales_health.note_interest(event_id, context.now);
        let crowd = self.count_errors(self.0.crowds.get(event_id, context.now).await)?;
        Ok((context, crowd))
    }

    /// Ends the slot of a user who has bought. False if there was none before the purchase.
    pub async fn finish(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        bought_at: Timestamp,
    ) -> Result<bool, RoomError> {
        let request = RoomRequest { event_id, user_id, now: self.0.clock.now() };
        self.count_errors(self.0.rooms.finish(request, bought_at).await)
    }

    pub(crate) fn event_context(&self, event_id: Uuid) -> Result<EventContext, QueueError> {
        let now = self.0.clock.now();
        let Some(event) = self.0.event_index.get(event_id) else {
            return Err(match self.0.event_index.is_loaded() {
                false => RoomError::Unavailable.into(),
                true if is_new_id(event_id, now) => QueueError::RoomNotReady,
                true => JoinRejection::UnknownEvent.into(),
            });
        };
        Ok(self.context_at(event, now))
    }

    pub(crate) fn context_at(&self, event: Arc<EventRoom>, now: Timestamp) -> EventContext {
        EventContext {
            phase: event.phase(&self.0.settings, now),
            rules: self.rules_of(&event, now),
            is_sold_out: self.0.sales_health.is_sold_out(event.event_id, now),
            event,
            now,
        }
    }

    async fn status(&self, context: EventContext, snapshot: StatusSnapshot) -> QueueStatus {
        let wait = match snapshot.status {
            UserStatus::Waiting(position) => self.wait(&context, position, &snapshot).await,
            UserStatus::Active(_) | UserStatus::Absent => None,
        };
        QueueStatus { context, snapshot, wait }
    }

    async fn wait(
        &self,
        context: &EventContext,
        line: LinePosition,
        snapshot: &StatusSnapshot,
    ) -> Option<EstimatedWait> {
        let EventContext { event, phase, now, .. } = context;
        let until_opening = context.until_opening()?;
        let crowd = self.0.crowds.get(event.event_id, *now).await.ok()?;
        let estimator = context.wait_estimator(&crowd);
        let is_fifo = event.room_settings.opening == OpeningOrder::Fifo;
        let wait = match *phase == RoomPhase::Open || is_fifo {
            true => estimator.wait_at(line.position)?,
            // The draw may put the user at the front or at the end.
            false => {
                EstimatedWait { seconds: 0, from: 0, to: estimator.wait_at(snapshot.waiting)?.to }
            }
        };
        Some(EstimatedWait {
            seconds: until_opening + wait.seconds,
            from: until_opening + wait.from,
            to: until_opening + wait.to,
        })
    }

    /// The wait of the last user in the line, while users are admitted.
    pub(crate) fn longest_wait(
        &self,
        event: &Arc<EventRoom>,
        crowd: &CrowdSnapshot,
    ) -> Option<EstimatedWait> {
        let context = self.context_at(Arc::clone(event), crowd.at);
        let is_moving = context.phase == RoomPhase::Open && !context.is_sold_out;
        context.wait_estimator(crowd).wait_at(crowd.crowd.waiting).filter(|_| is_moving)
    }

    /// Counts the errors of the rooms in the metrics.
    pub(crate) fn count_errors<T>(&self, answer: Result<T, RoomError>) -> Result<T, RoomError> {
        if let Err(error) = &answer {
            self.0.metrics.count_room_error(error);
        }
        answer
    }

    fn note_admission(&self, request: RoomRequest, snapshot: &StatusSnapshot) {
        let UserStatus::Active(slot) = snapshot.status else { return };
        if snapshot.is_just_admitted {
            let admission = Admission { user_id: request.user_id, slot_id: slot.id };
            self.0.notices.admitted(request.event_id, &[admission], request.now);
            self.0.metrics.count_admitted(AdmissionPath::Direct, 1);
        }
    }
}

/// Whether an event id was made within the last minute. Event ids are UUIDs of version 7, which
/// begin with the time in milliseconds; clocks may differ by a minute.
pub(crate) fn is_new_id(event_id: Uuid, now: Timestamp) -> bool {
    let millis = i64::try_from(event_id.as_u128() >> 80).expect("48 bits fit");
    let age_ms = now.as_millisecond().saturating_sub(millis).unsigned_abs();
    event_id.get_version_num() == 7 && u128::from(age_ms) <= NEW_EVENT_AGE_MAX.as_millis()
}

/// 0 if `then` has passed.
fn seconds_until(then: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(then.as_second().saturating_sub(now.as_second())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(version: u128, millis: i64) -> Uuid {
        let millis = u128::from(millis.unsigned_abs());
        Uuid::from_u128(millis << 80 | version << 76 | 0x8000_0000_0000_0001)
    }

    #[test]
    fn an_event_id_is_new_for_a_minute_by_either_clock_and_only_if_it_has_a_time() {
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let at = |offset_ms: i64| now.as_millisecond() + offset_ms;
        for (offset_ms, expected) in
            [(0, true), (-60_000, true), (-60_001, false), (60_000, true), (60_001, false)]
        {
            assert_eq!(is_new_id(id(7, at(offset_ms)), now), expected, "{offset_ms}");
        }
        assert!(!is_new_id(id(4, at(0)), now), "a forged id of another version");
        assert!(!is_new_id(Uuid::max(), now) && !is_new_id(Uuid::nil(), now));
    }
}
