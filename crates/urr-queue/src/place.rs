//! Asking for a place, looking at it, leaving it.
//!
//! A check and a look are one operation of the room and what is in memory: no statement, no call of
//! another service (P-1). Only in a pre-sale is the tier of someone who is not in line yet asked for.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use urr_kernel::{CallContext, Timestamp, Uuid};

use crate::crowds::CrowdAt;
use crate::domain::estimate::{Outlook, Wait};
use crate::figures::Way;
use crate::tiers::TierUnknown;
use crate::{EventRoom, NotAdmissible, Opening, Phase, Queue};
use urr_room::{
    Admission, AdmissionRules, LinePosition, RoomError, RoomRequest, StatusSnapshot, UserStatus,
};

/// Whoever wants to see all of their places costs a look into every room: so few do at a time, each
/// looks into few rooms at once, and into so many at most.
pub const LOOKS_EVERYWHERE_MAX: usize = 2;
const LOOKS_AT_ONCE: usize = 8;
const ROOMS_LOOKED_INTO_MAX: usize = 200;

/// What someone is told about their place.
#[derive(Debug)]
pub struct Told {
    pub event: Arc<EventRoom>,
    pub phase: Phase,
    pub rules: AdmissionRules,
    pub is_sold_out: bool,
    pub seen: StatusSnapshot,
    /// Of who waits, if the line is expected to move.
    pub wait: Option<Wait>,
    pub at: Timestamp,
}

/// Why someone is not told a place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error(transparent)]
    NotAdmissible(#[from] NotAdmissible),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("the tier of who comes is not known")]
    TierUnknown(#[from] TierUnknown),
}

/// What an entry token says: the slot by which its owner may book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotClaim {
    pub event_id: Uuid,
    pub user_id: Uuid,
    pub slot_id: Uuid,
}

/// An event at a moment: what its room is told.
pub(crate) struct Doorway {
    pub event: Arc<EventRoom>,
    pub phase: Phase,
    pub rules: AdmissionRules,
    is_sold_out: bool,
    pub now: Timestamp,
}

/// The room of an event as a whole.
#[derive(Debug)]
pub(crate) struct Overview {
    pub event: Arc<EventRoom>,
    pub phase: Phase,
    pub rules: AdmissionRules,
    pub is_sold_out: bool,
    pub crowd: Arc<CrowdAt>,
}

impl Told {
    /// Whether an order will be drawn: until then there is none.
    pub fn is_before_draw(&self) -> bool {
        is_before_draw(&self.event, self.phase)
    }
}

impl Overview {
    /// Whether an order will be drawn: until then there is none.
    pub fn is_before_draw(&self) -> bool {
        is_before_draw(&self.event, self.phase)
    }
}

impl Doorway {
    /// In how many seconds people are let in; none if nobody can tell.
    pub fn until_opening(&self) -> Option<u64> {
        match self.phase {
            _ if self.is_sold_out => None,
            Phase::Open => Some(0),
            Phase::Gathering { .. } | Phase::Closed { .. } => {
                Some(seconds(self.event.sale_starts_at, self.now))
            }
            _ => None,
        }
    }

    /// How fast the line moves.
    pub fn outlook<'a>(&self, crowd: &'a CrowdAt) -> &'a Outlook {
        let open_for = Duration::from_secs(seconds(self.now, self.event.sale_starts_at));
        crowd.outlook(&self.rules, open_for)
    }
}

pub(crate) fn is_before_draw(event: &EventRoom, phase: Phase) -> bool {
    let is_early = matches!(phase, Phase::Closed { .. } | Phase::Gathering { .. } | Phase::Drawing);
    is_early && event.wishes.opening == Opening::Lottery
}

impl Queue {
    /// Tells someone where they stand. Who is neither in nor in line is let in or lined up.
    pub async fn check(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        context: &CallContext,
    ) -> Result<Told, PlaceError> {
        let doorway = self.doorway(event_id)?;
        let Doorway { event, rules, now, .. } = &doorway;
        let request = RoomRequest { event_id, user_id, now: *now };
        self.0.pulse.note_interest(event_id, *now);
        let seen = match event.check_admissible(None, &self.0.settings, *now) {
            Ok(()) => self.noted(self.0.rooms.check(request, rules).await)?,
            Err(early @ (NotAdmissible::NotYet { .. } | NotAdmissible::Presale { .. })) => {
                self.check_early(&doorway, request, early, context).await?
            }
            Err(error) => return Err(error.into()),
        };
        self.note_admission(request, &seen);
        Ok(self.told(doorway, seen).await)
    }

    /// The general public may not come yet. Who has a place keeps it without a question; otherwise
    /// it depends on their tier, if there is a pre-sale.
    async fn check_early(
        &self,
        doorway: &Doorway,
        request: RoomRequest,
        early: NotAdmissible,
        context: &CallContext,
    ) -> Result<StatusSnapshot, PlaceError> {
        let Doorway { event, rules, now, .. } = doorway;
        let seen = self.noted(self.0.rooms.poll(request, rules).await)?;
        if seen.status != UserStatus::Absent {
            return Ok(seen);
        }
        if !matches!(early, NotAdmissible::Presale { .. }) {
            return Err(early.into());
        }
        let tier = self.tier_of(request.event_id, request.user_id, context, *now).await?;
        event.check_admissible(tier, &self.0.settings, *now)?;
        Ok(self.noted(self.0.rooms.check(request, rules).await)?)
    }

    /// Tells someone where they stand. It counts as being seen.
    pub async fn look(&self, event_id: Uuid, user_id: Uuid) -> Result<Told, PlaceError> {
        let doorway = self.doorway(event_id)?;
        let seen = self.seen(&doorway, user_id).await?;
        Ok(self.told(doorway, seen).await)
    }

    /// Where someone stands in the rooms with people in them. It counts as being seen.
    pub async fn look_everywhere(&self, user_id: Uuid) -> Result<Vec<Told>, PlaceError> {
        let permit = self.0.looks_everywhere.try_acquire();
        let _permit = permit.map_err(|_| RoomError::Unavailable)?;
        let mut events = self.events_likely_with_people();
        events.retain(|event_id| self.0.directory.get(*event_id).is_some());
        events.truncate(ROOMS_LOOKED_INTO_MAX);
        let looks = events.into_iter().map(|event_id| self.look(event_id, user_id));
        stream::iter(looks).buffered(LOOKS_AT_ONCE).try_collect().await
    }

    /// Where someone stands, and nothing else. It counts as being seen.
    pub async fn heartbeat(&self, event_id: Uuid, user_id: Uuid) -> Result<UserStatus, PlaceError> {
        let doorway = self.doorway(event_id)?;
        Ok(self.seen(&doorway, user_id).await?.status)
    }

    async fn seen(&self, doorway: &Doorway, user_id: Uuid) -> Result<StatusSnapshot, PlaceError> {
        let Doorway { event, phase, rules, now, .. } = doorway;
        if is_end(*phase) {
            // Whoever is still in the room is about to be sent home.
            let status = UserStatus::Absent;
            return Ok(StatusSnapshot { status, waiting: 0, active: 0, is_just_admitted: false });
        }
        let request = RoomRequest { event_id: event.event_id, user_id, now: *now };
        Ok(self.noted(self.0.rooms.poll(request, rules).await)?)
    }

    /// Ends someone's place or slot at once, and with it their entry token. False if they had
    /// none.
    pub async fn leave(&self, event_id: Uuid, user_id: Uuid) -> Result<bool, PlaceError> {
        let Doorway { now, .. } = self.doorway(event_id)?;
        Ok(self.noted(self.0.rooms.leave(RoomRequest { event_id, user_id, now }).await)?)
    }

    /// Whether someone may book by this slot now. It counts as being seen.
    pub async fn is_slot_live(&self, claim: SlotClaim) -> Result<bool, RoomError> {
        let SlotClaim { event_id, user_id, slot_id } = claim;
        let Doorway { phase, rules, now, .. } = match self.doorway(event_id) {
            Ok(doorway) => doorway,
            Err(PlaceError::Room(error)) => return Err(error),
            Err(_) => return Ok(false),
        };
        if is_end(phase) {
            return Ok(false);
        }
        let request = RoomRequest { event_id, user_id, now };
        self.noted(self.0.rooms.holds_slot(request, slot_id, &rules).await)
    }

    /// The room of an event as a whole, as it was within the last second.
    pub(crate) async fn overview(&self, event_id: Uuid) -> Result<Overview, PlaceError> {
        let Doorway { event, phase, rules, is_sold_out, now } = self.doorway(event_id)?;
        self.0.pulse.note_interest(event_id, now);
        let crowd = self.noted(self.0.crowds.get(event_id, now).await)?;
        Ok(Overview { event, phase, rules, is_sold_out, crowd })
    }

    /// Ends the slot of someone who has bought. False if they had none that is older.
    pub async fn finish(
        &self,
        event_id: Uuid,
        user_id: Uuid,
        bought_at: Timestamp,
    ) -> Result<bool, RoomError> {
        let request = RoomRequest { event_id, user_id, now: self.0.clock.now() };
        self.noted(self.0.rooms.finish(request, bought_at).await)
    }

    /// An event that is known.
    pub(crate) fn event(&self, event_id: Uuid) -> Result<Arc<EventRoom>, PlaceError> {
        match self.0.directory.get(event_id) {
            Some(event) => Ok(event),
            None if !self.0.directory.is_loaded() => Err(RoomError::Unavailable.into()),
            None => Err(NotAdmissible::Unknown.into()),
        }
    }

    pub(crate) fn doorway(&self, event_id: Uuid) -> Result<Doorway, PlaceError> {
        let now = self.0.clock.now();
        let event = self.event(event_id)?;
        let phase = event.phase(&self.0.settings, now);
        let is_sold_out = self.0.pulse.is_sold_out(event_id, now);
        let rules = self.rules_of(&event, now);
        Ok(Doorway { event, phase, rules, is_sold_out, now })
    }

    async fn told(&self, doorway: Doorway, seen: StatusSnapshot) -> Told {
        let wait = match seen.status {
            UserStatus::Waiting(place) => self.wait(&doorway, place, &seen).await,
            UserStatus::Active(_) | UserStatus::Absent => None,
        };
        let Doorway { event, phase, rules, is_sold_out, now } = doorway;
        Told { event, phase, rules, is_sold_out, seen, wait, at: now }
    }

    /// How long someone will wait, if that can be told.
    async fn wait(
        &self,
        doorway: &Doorway,
        place: LinePosition,
        seen: &StatusSnapshot,
    ) -> Option<Wait> {
        let Doorway { event, phase, now, .. } = doorway;
        let until_opening = doorway.until_opening()?;
        let crowd = self.0.crowds.get(event.event_id, *now).await.ok()?;
        let outlook = doorway.outlook(&crowd);
        let has_order = *phase == Phase::Open || event.wishes.opening == Opening::Fifo;
        let wait = match has_order {
            true => outlook.wait_at(place.position),
            // The draw may make them the first or the last.
            false => Wait { seconds: 0, from: 0, to: outlook.wait_at(seen.waiting).to },
        };
        Some(Wait {
            seconds: until_opening + wait.seconds,
            from: until_opening + wait.from,
            to: until_opening + wait.to,
        })
    }

    /// How long the last in line will wait, if people are let in.
    pub(crate) fn longest_wait(&self, event: &EventRoom, crowd: &CrowdAt) -> Option<Wait> {
        let now = crowd.at;
        let is_open = event.phase(&self.0.settings, now) == Phase::Open;
        let is_moving = is_open && !self.0.pulse.is_sold_out(event.event_id, now);
        let open_for = Duration::from_secs(seconds(now, event.sale_starts_at));
        let outlook = is_moving.then(|| crowd.outlook(&self.rules_of(event, now), open_for));
        outlook.map(|outlook| outlook.wait_at(crowd.crowd.waiting))
    }

    /// Counts an answer that the room could not give.
    pub(crate) fn noted<T>(&self, answer: Result<T, RoomError>) -> Result<T, RoomError> {
        if let Err(error) = &answer {
            self.0.figures.count_room_error(error);
        }
        answer
    }

    fn note_admission(&self, request: RoomRequest, seen: &StatusSnapshot) {
        let UserStatus::Active(slot) = seen.status else { return };
        if seen.is_just_admitted {
            let admitted = Admission { user_id: request.user_id, slot_id: slot.id };
            self.0.notices.admitted(request.event_id, &[admitted], request.now);
            self.0.figures.count_admitted(Way::AtOnce, 1);
        }
    }
}

/// Whether nobody waits any more, whatever the room may still hold.
pub(crate) fn is_end(phase: Phase) -> bool {
    matches!(phase, Phase::Over | Phase::Cancelled | Phase::Deleted)
}

/// From now until then; 0 if that has passed.
fn seconds(then: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(then.as_second().saturating_sub(now.as_second())).unwrap_or(0)
}
