//! An event with its waiting room: when users gather, when they are admitted, and who may join.

use std::time::Duration;

use serde::Deserialize;
pub use urr_kernel::Tier;
use urr_kernel::{Timestamp, Uuid, presale_delay};
use urr_room::{AdmissionRules, AdmissionState};
use urr_storage::storable_enum;
use utoipa::ToSchema;

use crate::QueueSettings;

/// An event as the catalog describes it, with the organiser's settings of its room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRoom {
    pub event_id: Uuid,
    pub status: RoomEventStatus,
    pub title: String,
    pub artist_id: Option<Uuid>,
    pub artist_name: Option<String>,
    /// Whose event it is.
    pub organiser_id: Option<Uuid>,
    pub sale_starts_at: Timestamp,
    pub sale_ends_at: Timestamp,
    pub has_presale: bool,
    pub room_settings: RoomSettings,
    /// Only of a lottery.
    pub draw: Option<DrawState>,
    /// A pre-sale was added after users had joined who may not buy in it. The room will be cleared;
    /// until then nobody is admitted.
    pub awaits_clearing: bool,
}

/// What decides when a sale opens for which tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaleWindow {
    pub sale_starts_at: Timestamp,
    pub has_presale: bool,
}

/// Ordered: an event never goes back to an earlier status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoomEventStatus {
    Open,
    Deleted,
    Cancelled,
}

storable_enum!(RoomEventStatus { Open => "open", Deleted => "deleted", Cancelled => "cancelled" });

/// The organiser's settings of a room; `None` stands for the default of the installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomSettings {
    pub threshold: Option<u32>,
    pub admitted_per_second_max: Option<u32>,
    pub gathering: Option<Duration>,
    pub opening: OpeningOrder,
    pub is_paused: bool,
    pub has_autopilot: bool,
    /// Shown to the users who wait.
    pub message: Option<String>,
}

/// The order in which the users are admitted who joined before the sale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpeningOrder {
    #[default]
    Fifo,
    Lottery,
}

storable_enum!(OpeningOrder { Fifo => "fifo", Lottery => "lottery" });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawState {
    Committed,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomPhase {
    /// Nobody may join yet.
    Closed {
        gathers_at: Timestamp,
    },
    /// Users join and wait for the opening.
    Gathering {
        opens_at: Timestamp,
    },
    /// The sale has begun; the order of the users who joined before is being drawn.
    Drawing,
    Open,
    Paused,
    Over,
    Cancelled,
    /// The event is no longer shown.
    Deleted,
}

impl RoomPhase {
    /// Whether nobody waits any more, even if the room has not been cleared yet.
    pub fn has_ended(self) -> bool {
        matches!(self, RoomPhase::Over | RoomPhase::Cancelled | RoomPhase::Deleted)
    }

    /// The name in views.
    pub fn as_str(self) -> &'static str {
        match self {
            RoomPhase::Closed { .. } => "closed",
            RoomPhase::Gathering { .. } => "gathering",
            RoomPhase::Drawing => "drawing",
            RoomPhase::Open => "open",
            RoomPhase::Paused => "paused",
            RoomPhase::Over => "over",
            RoomPhase::Cancelled => "cancelled",
            RoomPhase::Deleted => "deleted",
        }
    }
}

/// Why a user may not join now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinRejection {
    #[error("there is no such event")]
    UnknownEvent,
    #[error("the event was cancelled")]
    Cancelled,
    #[error("the waiting room is not open yet")]
    NotOpen { gathers_at: Timestamp },
    /// Only members of a higher tier may join at the moment.
    #[error("only members may join at the moment")]
    MembersOnly { opens_at: Timestamp },
    #[error("the sale has ended")]
    SaleEnded,
}

impl EventRoom {
    pub fn phase(&self, settings: &QueueSettings, now: Timestamp) -> RoomPhase {
        match self.status {
            RoomEventStatus::Open => {}
            RoomEventStatus::Cancelled => return RoomPhase::Cancelled,
            RoomEventStatus::Deleted => return RoomPhase::Deleted,
        }
        let opens_at = self.sale_starts_at;
        let gathers_at = opens_at - self.room_settings.gathering.unwrap_or(settings.gathering);
        let is_drawn =
            self.room_settings.opening == OpeningOrder::Fifo || self.draw == Some(DrawState::Done);
        match () {
            () if now >= self.sale_ends_at => RoomPhase::Over,
            () if now < gathers_at => RoomPhase::Closed { gathers_at },
            () if now < opens_at => RoomPhase::Gathering { opens_at },
            () if !is_drawn => RoomPhase::Drawing,
            () if self.room_settings.is_paused => RoomPhase::Paused,
            () => RoomPhase::Open,
        }
    }

    /// Whether only members may join: a pre-sale runs or is about to begin.
    pub fn is_for_members(&self, now: Timestamp) -> bool {
        !self.window().admits(None, now)
    }

    /// When a user of this tier may buy. In a pre-sale members of the artist may buy earlier.
    pub fn opens_at(&self, tier: Option<Tier>) -> Timestamp {
        self.window().opens_at(tier)
    }

    fn window(&self) -> SaleWindow {
        SaleWindow { sale_starts_at: self.sale_starts_at, has_presale: self.has_presale }
    }

    /// Whether a user of this tier may join now (B-1, B-2, Q8).
    pub fn check_admissible(
        &self,
        tier: Option<Tier>,
        settings: &QueueSettings,
        now: Timestamp,
    ) -> Result<(), JoinRejection> {
        match self.phase(settings, now) {
            RoomPhase::Deleted => return Err(JoinRejection::UnknownEvent),
            RoomPhase::Cancelled => return Err(JoinRejection::Cancelled),
            RoomPhase::Over => return Err(JoinRejection::SaleEnded),
            RoomPhase::Closed { gathers_at } => return Err(JoinRejection::NotOpen { gathers_at }),
            RoomPhase::Gathering { .. }
            | RoomPhase::Drawing
            | RoomPhase::Open
            | RoomPhase::Paused => {}
        }
        match self.window().admits(tier, now) {
            true => Ok(()),
            false => Err(JoinRejection::MembersOnly { opens_at: self.opens_at(tier) }),
        }
    }

    /// The rules of the room. `rate_max` is the limit of the autopilot, if it is on.
    pub fn rules(
        &self,
        settings: &QueueSettings,
        is_sold_out: bool,
        rate_max: Option<u32>,
        now: Timestamp,
    ) -> AdmissionRules {
        let is_held_up = is_sold_out || self.awaits_clearing;
        let is_open = self.phase(settings, now) == RoomPhase::Open && !is_held_up;
        let rate =
            self.room_settings.admitted_per_second_max.unwrap_or(settings.admitted_per_second_max);
        AdmissionRules {
            admission: if is_open { AdmissionState::Open } else { AdmissionState::Closed },
            threshold: self.room_settings.threshold.unwrap_or(settings.threshold),
            admitted_per_second_max: rate.min(rate_max.unwrap_or(u32::MAX)),
            slot_ttl: settings.slot_ttl,
            slot_max: settings.slot_max,
            waiting_max: settings.waiting_max,
            queues_per_user_max: settings.queues_per_user_max,
        }
    }
}

impl SaleWindow {
    fn opens_at(&self, tier: Option<Tier>) -> Timestamp {
        let after = if self.has_presale { presale_delay(tier) } else { Duration::ZERO };
        self.sale_starts_at + after
    }

    /// Before the sale starts, the tiers may join for which it opens at its start.
    fn admits(&self, tier: Option<Tier>, now: Timestamp) -> bool {
        now.max(self.sale_starts_at) >= self.opens_at(tier)
    }

    /// Whether a tier that could join by the window `before` may not join by this one.
    pub fn shuts_out(&self, before: &SaleWindow, now: Timestamp) -> bool {
        let tiers = [None, Some(Tier::Silver), Some(Tier::Gold), Some(Tier::Diamond)];
        tiers.into_iter().any(|tier| before.admits(tier, now) && !self.admits(tier, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_hours(1);
    const TIERS: [Option<Tier>; 4] =
        [None, Some(Tier::Silver), Some(Tier::Gold), Some(Tier::Diamond)];

    fn start() -> Timestamp {
        "2026-12-01T11:00:00Z".parse().unwrap()
    }

    /// On sale for four days.
    fn event() -> EventRoom {
        EventRoom {
            event_id: Uuid::from_u128(1),
            status: RoomEventStatus::Open,
            title: "Open Air".to_owned(),
            artist_id: Some(Uuid::from_u128(2)),
            artist_name: Some("The Queue".to_owned()),
            organiser_id: None,
            sale_starts_at: start(),
            sale_ends_at: start() + 96 * HOUR,
            has_presale: false,
            room_settings: RoomSettings::default(),
            draw: None,
            awaits_clearing: false,
        }
    }

    fn presale() -> EventRoom {
        EventRoom { has_presale: true, ..event() }
    }

    fn lottery(draw: Option<DrawState>) -> EventRoom {
        let room_settings =
            RoomSettings { opening: OpeningOrder::Lottery, ..RoomSettings::default() };
        EventRoom { room_settings, draw, ..event() }
    }

    fn phase(event: &EventRoom, now: Timestamp) -> RoomPhase {
        event.phase(&QueueSettings::default(), now)
    }

    fn admissible(
        event: &EventRoom,
        tier: Option<Tier>,
        now: Timestamp,
    ) -> Result<(), JoinRejection> {
        event.check_admissible(tier, &QueueSettings::default(), now)
    }

    fn rules(event: &EventRoom, now: Timestamp) -> AdmissionRules {
        event.rules(&QueueSettings::default(), false, None, now)
    }

    #[test]
    fn people_gather_before_the_sale_and_are_let_in_until_its_end() {
        let (event, tick) = (event(), Duration::from_micros(1));
        let (gathers_at, ends_at) = (start() - HOUR, start() + 96 * HOUR);
        let opens_at = start();
        let steps = [
            (gathers_at - tick, RoomPhase::Closed { gathers_at }),
            (gathers_at, RoomPhase::Gathering { opens_at }),
            (opens_at - tick, RoomPhase::Gathering { opens_at }),
            (opens_at, RoomPhase::Open),
            (ends_at - tick, RoomPhase::Open),
            (ends_at, RoomPhase::Over),
        ];
        for (now, expected) in steps {
            assert_eq!(phase(&event, now), expected, "{now}");
        }
    }

    #[test]
    fn the_organiser_says_how_long_people_gather() {
        let mut event = event();
        event.room_settings.gathering = Some(5 * MINUTE);
        let gathers_at = start() - 5 * MINUTE;
        assert_eq!(phase(&event, start() - 6 * MINUTE), RoomPhase::Closed { gathers_at });
        assert_eq!(phase(&event, gathers_at), RoomPhase::Gathering { opens_at: start() });
        event.room_settings.gathering = Some(Duration::ZERO);
        let eve = start() - MINUTE;
        assert_eq!(phase(&event, eve), RoomPhase::Closed { gathers_at: start() });
        assert_eq!(phase(&event, start()), RoomPhase::Open);
    }

    #[test]
    fn a_lottery_opens_when_it_was_drawn() {
        for (draw, expected) in [
            (None, RoomPhase::Drawing),
            (Some(DrawState::Committed), RoomPhase::Drawing),
            (Some(DrawState::Done), RoomPhase::Open),
        ] {
            let event = lottery(draw);
            assert_eq!(phase(&event, start()), expected, "{draw:?}");
            let opens_at = start();
            assert_eq!(phase(&event, start() - MINUTE), RoomPhase::Gathering { opens_at });
            assert_eq!(phase(&event, event.sale_ends_at), RoomPhase::Over);
        }
        let undrawn = EventRoom { draw: Some(DrawState::Committed), ..event() };
        assert_eq!(phase(&undrawn, start()), RoomPhase::Open, "it is no lottery any more");
    }

    #[test]
    fn a_pause_is_a_pause_of_an_open_room() {
        let mut event = lottery(Some(DrawState::Committed));
        event.room_settings.is_paused = true;
        assert_eq!(phase(&event, start()), RoomPhase::Drawing, "the draw goes on");
        event.draw = Some(DrawState::Done);
        assert_eq!(phase(&event, start()), RoomPhase::Paused);
        assert_eq!(phase(&event, event.sale_ends_at), RoomPhase::Over);
        let opens_at = start();
        assert_eq!(phase(&event, start() - MINUTE), RoomPhase::Gathering { opens_at });
    }

    #[test]
    fn what_was_cancelled_or_deleted_is_so_at_any_time() {
        for now in [start() - 2 * HOUR, start() - MINUTE, start(), start() + 97 * HOUR] {
            let cancelled = EventRoom { status: RoomEventStatus::Cancelled, ..event() };
            assert_eq!(phase(&cancelled, now), RoomPhase::Cancelled);
            assert_eq!(admissible(&cancelled, None, now), Err(JoinRejection::Cancelled));
            let deleted = EventRoom { status: RoomEventStatus::Deleted, ..event() };
            assert_eq!(phase(&deleted, now), RoomPhase::Deleted);
            assert_eq!(admissible(&deleted, None, now), Err(JoinRejection::UnknownEvent));
        }
    }

    #[test]
    fn people_may_line_up_from_the_gathering_until_the_end() {
        let (event, gathers_at) = (event(), start() - HOUR);
        let early = gathers_at - MINUTE;
        for tier in TIERS {
            assert_eq!(admissible(&event, tier, early), Err(JoinRejection::NotOpen { gathers_at }));
            assert_eq!(admissible(&event, tier, gathers_at), Ok(()));
            assert_eq!(admissible(&event, tier, start()), Ok(()));
            assert_eq!(admissible(&event, tier, event.sale_ends_at), Err(JoinRejection::SaleEnded));
        }
        let mut paused = event.clone();
        paused.room_settings.is_paused = true;
        assert_eq!(admissible(&paused, None, start()), Ok(()), "they wait");
        assert_eq!(admissible(&lottery(None), None, start()), Ok(()), "behind those who are drawn");
    }

    #[test]
    fn b_1_members_may_buy_earlier_by_their_tier() {
        let (event, tick) = (presale(), Duration::from_micros(1));
        let hours = [(None, 48), (Some(Tier::Silver), 24), (Some(Tier::Gold), 1)];
        for (tier, hours) in hours {
            let opens_at = start() + hours * HOUR;
            assert_eq!(event.opens_at(tier), opens_at);
            for now in [start() - MINUTE, start(), opens_at - tick] {
                let refused = Err(JoinRejection::MembersOnly { opens_at });
                assert_eq!(admissible(&event, tier, now), refused, "{tier:?} at {now}");
            }
            assert_eq!(admissible(&event, tier, opens_at), Ok(()), "{tier:?}");
        }
        let diamond = Some(Tier::Diamond);
        assert_eq!(event.opens_at(diamond), start());
        assert_eq!(admissible(&event, diamond, start() - MINUTE), Ok(()), "those gather");
        for tier in TIERS {
            assert_eq!(self::event().opens_at(tier), start(), "without a pre-sale all may");
        }
    }

    #[test]
    fn a_presale_is_for_members_until_the_general_sale() {
        let (event, public) = (presale(), start() + 48 * HOUR);
        for now in [start() - MINUTE, start(), public - MINUTE] {
            assert!(event.is_for_members(now), "{now}");
        }
        assert!(!event.is_for_members(public));
        assert!(!self::event().is_for_members(start()));
    }

    #[test]
    fn a_presale_put_before_the_sale_shuts_out_those_who_may_not_buy_any_more() {
        let window =
            |has_presale, hours| SaleWindow { sale_starts_at: start() + hours * HOUR, has_presale };
        let (sale, presale) = (window(false, 0), window(true, 0));
        for now in [start() - MINUTE, start(), start() + 47 * HOUR] {
            assert!(presale.shuts_out(&sale, now), "{now}");
            assert!(!sale.shuts_out(&presale, now), "a pre-sale taken back: {now}");
            assert!(!window(false, 9).shuts_out(&sale, now), "a sale put off: {now}");
        }
        assert!(!presale.shuts_out(&sale, start() + 48 * HOUR), "the general sale has begun");
        let later = window(true, 5);
        assert!(!later.shuts_out(&presale, start()), "only those came who still may");
        assert!(later.shuts_out(&presale, start() + HOUR), "the second tier had come");
        assert!(!presale.shuts_out(&later, start() + HOUR), "it opens earlier");
    }

    #[test]
    fn the_door_is_open_in_an_open_room_with_something_to_sell() {
        let event = event();
        assert_eq!(rules(&event, start()).admission, AdmissionState::Open);
        assert_eq!(rules(&event, start() - MINUTE).admission, AdmissionState::Closed);
        assert_eq!(rules(&event, event.sale_ends_at).admission, AdmissionState::Closed);
        assert_eq!(rules(&lottery(None), start()).admission, AdmissionState::Closed);
        let mut paused = event.clone();
        paused.room_settings.is_paused = true;
        assert_eq!(rules(&paused, start()).admission, AdmissionState::Closed);
        let sold_out = event.rules(&QueueSettings::default(), true, None, start());
        assert_eq!(sold_out.admission, AdmissionState::Closed);
        let awaiting = EventRoom { awaits_clearing: true, ..event };
        assert_eq!(rules(&awaiting, start()).admission, AdmissionState::Closed);
    }

    #[test]
    fn the_organisers_wishes_come_before_the_installations_settings() {
        let (mut event, settings) = (event(), QueueSettings::default());
        let expected = AdmissionRules {
            admission: AdmissionState::Open,
            threshold: 1_000,
            admitted_per_second_max: 100,
            slot_ttl: 10 * MINUTE,
            slot_max: 30 * MINUTE,
            waiting_max: 1_000_000,
            queues_per_user_max: 3,
        };
        assert_eq!(rules(&event, start()), expected);
        event.room_settings.threshold = Some(7);
        event.room_settings.admitted_per_second_max = Some(500);
        let wished = AdmissionRules { threshold: 7, admitted_per_second_max: 500, ..expected };
        assert_eq!(rules(&event, start()), wished);
        let rate_under = |autopilot| {
            event.rules(&settings, false, Some(autopilot), start()).admitted_per_second_max
        };
        assert_eq!(rate_under(40), 40, "the autopilot slows down");
        assert_eq!(rate_under(900), 500, "and never drives faster than is wished");
    }
}
