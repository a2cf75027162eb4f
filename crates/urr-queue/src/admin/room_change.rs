//! Changes of room settings: which are allowed, and until when.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value, json};
use urr_kernel::{Timestamp, UnfitText, one_line};

use crate::{EventRoom, OpeningOrder, QueueSettings, RoomPhase, RoomSettings};

/// As in the configuration.
pub const PEOPLE: RangeInclusive<i64> = 1..=100_000_000;
/// Up to a week. Users who do not poll for minutes are dropped from the line anyway.
pub const GATHERING_SECONDS: RangeInclusive<i64> = 0..=604_800;
pub const MESSAGE_CHARS_MAX: usize = 500;

/// Every process must have loaded the opening order before the first user joins.
const SETTLING: Duration = Duration::from_secs(5);

/// New settings. `None` leaves a setting as it is; the inner `None` resets it to the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomChange {
    pub threshold: Option<Option<u32>>,
    pub admitted_per_second_max: Option<Option<u32>>,
    pub gathering: Option<Option<Duration>>,
    pub opening: Option<OpeningOrder>,
    pub has_autopilot: Option<bool>,
    pub is_paused: Option<bool>,
    pub message: Option<Option<RoomMessage>>,
}

/// A line of text for the users who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomMessage(String);

impl RoomMessage {
    pub fn parse(text: &str) -> Result<RoomMessage, UnfitText> {
        one_line(text, MESSAGE_CHARS_MAX).map(|line| RoomMessage(line.to_owned()))
    }
}

/// Why the settings are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoomChangeRejection {
    #[error("the opening order is fixed")]
    OpeningFixed,
    #[error("the start of the gathering is fixed")]
    GatheringFixed,
}

/// The settings after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedChange {
    pub room_settings: RoomSettings,
    /// At least one.
    pub differences: Vec<ChangedSetting>,
}

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSetting {
    /// Its name in the interface.
    pub field: &'static str,
    pub before: Value,
    pub after: Value,
}

impl RoomChange {
    /// Whether it changes the opening order or the start of the gathering.
    pub fn concerns_gathering(&self) -> bool {
        self.opening.is_some() || self.gathering.is_some()
    }
}

/// Decides the new settings. `None` if nothing differs.
///
/// Once users may join, neither the opening order can be changed nor the time from which users may
/// join, by which the first rule could be circumvented. `has_people` covers a sale that was postponed
/// when users waited already.
pub fn decide_change(
    room: &EventRoom,
    change: &RoomChange,
    settings: &QueueSettings,
    has_people: bool,
    now: Timestamp,
) -> Result<Option<DecidedChange>, RoomChangeRejection> {
    let (old, new) = (&room.room_settings, apply(&room.room_settings, change));
    if has_people || is_settled(room, settings, now) {
        if new.opening != old.opening {
            return Err(RoomChangeRejection::OpeningFixed);
        }
        if new.gathering != old.gathering {
            return Err(RoomChangeRejection::GatheringFixed);
        }
    }
    let differences = differences(old, &new);
    Ok((!differences.is_empty()).then_some(DecidedChange { room_settings: new, differences }))
}

/// Whether users may join, or will in a moment.
fn is_settled(room: &EventRoom, settings: &QueueSettings, now: Timestamp) -> bool {
    !matches!(room.phase(settings, now + SETTLING), RoomPhase::Closed { .. })
}

fn apply(old: &RoomSettings, change: &RoomChange) -> RoomSettings {
    let message = match &change.message {
        None => old.message.clone(),
        Some(message) => message.clone().map(|RoomMessage(text)| text),
    };
    RoomSettings {
        threshold: change.threshold.unwrap_or(old.threshold),
        admitted_per_second_max: change
            .admitted_per_second_max
            .unwrap_or(old.admitted_per_second_max),
        gathering: change.gathering.unwrap_or(old.gathering),
        opening: change.opening.unwrap_or(old.opening),
        is_paused: change.is_paused.unwrap_or(old.is_paused),
        has_autopilot: change.has_autopilot.unwrap_or(old.has_autopilot),
        message,
    }
}

fn differences(old: &RoomSettings, new: &RoomSettings) -> Vec<ChangedSetting> {
    let before = described(old).into_iter();
    let pairs = before.zip(described(new));
    pairs
        .filter(|((_, before), (_, after))| before != after)
        .map(|((field, before), (_, after))| ChangedSetting { field, before, after })
        .collect()
}

/// Every setting with its name in the interface.
fn described(room_settings: &RoomSettings) -> [(&'static str, Value); 7] {
    let gathering = room_settings.gathering.map(|gathering| gathering.as_secs());
    [
        ("threshold", json!(room_settings.threshold)),
        ("admittedPerSecondMax", json!(room_settings.admitted_per_second_max)),
        ("gatheringSeconds", json!(gathering)),
        ("opening", json!(room_settings.opening.as_str())),
        ("autopilot", json!(room_settings.has_autopilot)),
        ("paused", json!(room_settings.is_paused)),
        ("message", json!(room_settings.message)),
    ]
}

impl DecidedChange {
    /// The action in the admin log.
    pub fn action(&self) -> &'static str {
        match &self.differences[..] {
            [ChangedSetting { field: "paused", after: Value::Bool(true), .. }] => "ROOM_PAUSED",
            [ChangedSetting { field: "paused", .. }] => "ROOM_RESUMED",
            [ChangedSetting { field: "message", after: Value::Null, .. }] => "MESSAGE_REMOVED",
            [ChangedSetting { field: "message", .. }] => "MESSAGE_SET",
            _ => "ROOM_CHANGED",
        }
    }

    /// The values before and after, for the admin log.
    pub fn details(&self) -> Value {
        let difference = |difference: &ChangedSetting| {
            let ChangedSetting { field, before, after } = difference;
            ((*field).to_owned(), json!({ "before": before, "after": after }))
        };
        Value::Object(self.differences.iter().map(difference).collect())
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;
    use crate::RoomEventStatus;

    /// People may gather at 11:00 and buy at 12:00.
    fn room() -> EventRoom {
        EventRoom {
            event_id: Uuid::from_u128(1),
            status: RoomEventStatus::Open,
            title: "한강의 밤".to_owned(),
            artist_id: None,
            artist_name: None,
            organiser_id: None,
            sale_starts_at: time("12:00:00"),
            sale_ends_at: time("20:00:00"),
            has_presale: false,
            room_settings: RoomSettings::default(),
            draw: None,
            awaits_clearing: false,
        }
    }

    fn time(clock: &str) -> Timestamp {
        format!("2026-12-01T{clock}Z").parse().unwrap()
    }

    fn decide(
        change: &RoomChange,
        clock: &str,
    ) -> Result<Option<DecidedChange>, RoomChangeRejection> {
        decide_change(&room(), change, &QueueSettings::default(), false, time(clock))
    }

    #[test]
    fn what_people_gathered_for_is_not_changed_under_them() {
        let lottery = RoomChange { opening: Some(OpeningOrder::Lottery), ..RoomChange::default() };
        let later = Some(Some(Duration::from_secs(60)));
        let later = RoomChange { gathering: later, ..RoomChange::default() };
        // Five seconds before the first one may come everybody must know already.
        assert!(decide(&lottery, "10:59:54").unwrap().is_some());
        assert!(decide(&later, "10:59:54").unwrap().is_some());
        for clock in ["10:59:55", "11:00:00", "12:00:00", "19:00:00", "21:00:00"] {
            assert_eq!(decide(&lottery, clock), Err(RoomChangeRejection::OpeningFixed), "{clock}");
            assert_eq!(decide(&later, clock), Err(RoomChangeRejection::GatheringFixed), "{clock}");
        }
        // The sale was put off, and those who had come still wait.
        let put_off = |change| {
            decide_change(&room(), change, &QueueSettings::default(), true, time("00:00:00"))
        };
        assert_eq!(put_off(&lottery), Err(RoomChangeRejection::OpeningFixed));
        assert_eq!(put_off(&later), Err(RoomChangeRejection::GatheringFixed));
        // What is no change is not refused.
        let fifo = RoomChange { opening: Some(OpeningOrder::Fifo), ..RoomChange::default() };
        assert_eq!(decide(&fifo, "12:00:00"), Ok(None));
    }

    #[test]
    fn everything_else_is_changed_at_any_time() {
        let change = RoomChange {
            threshold: Some(Some(50)),
            admitted_per_second_max: Some(Some(5)),
            has_autopilot: Some(true),
            is_paused: Some(true),
            message: Some(Some(RoomMessage::parse(" 곧 시작합니다 ").unwrap())),
            ..RoomChange::default()
        };
        for clock in ["00:00:00", "11:30:00", "13:00:00"] {
            let decided = decide(&change, clock).unwrap().unwrap();
            let expected = RoomSettings {
                threshold: Some(50),
                admitted_per_second_max: Some(5),
                has_autopilot: true,
                is_paused: true,
                message: Some("곧 시작합니다".to_owned()),
                ..RoomSettings::default()
            };
            assert_eq!(decided.room_settings, expected, "{clock}");
            assert_eq!(decided.differences.len(), 5);
            assert_eq!(decided.action(), "ROOM_CHANGED");
        }
    }

    #[test]
    fn the_default_comes_back_and_what_is_not_named_stays() {
        let mut room = room();
        room.room_settings.threshold = Some(7);
        room.room_settings.message = Some("기다려 주세요".to_owned());
        let change = RoomChange { threshold: Some(None), ..RoomChange::default() };
        let decided =
            decide_change(&room, &change, &QueueSettings::default(), true, time("13:00:00"));
        let decided = decided.unwrap().unwrap();
        assert_eq!(
            decided.room_settings,
            RoomSettings { threshold: None, ..room.room_settings.clone() }
        );
        assert_eq!(decided.details(), json!({ "threshold": { "before": 7, "after": null } }));
    }

    #[test]
    fn the_log_has_a_word_for_what_was_done() {
        let of = |change: RoomChange, room_settings: RoomSettings| {
            let room = EventRoom { room_settings, ..room() };
            let decided =
                decide_change(&room, &change, &QueueSettings::default(), true, time("13:00:00"));
            decided.unwrap().map(|decided| decided.action())
        };
        let paused = |is_paused| RoomChange { is_paused: Some(is_paused), ..RoomChange::default() };
        let stopped = RoomSettings { is_paused: true, ..RoomSettings::default() };
        assert_eq!(of(paused(true), RoomSettings::default()), Some("ROOM_PAUSED"));
        assert_eq!(of(paused(false), stopped.clone()), Some("ROOM_RESUMED"));
        assert_eq!(of(paused(true), stopped), None, "it is so already");
        let said = RoomSettings { message: Some("a".to_owned()), ..RoomSettings::default() };
        let message = |message| RoomChange { message: Some(message), ..RoomChange::default() };
        let line = RoomMessage::parse("b").unwrap();
        assert_eq!(of(message(Some(line)), said.clone()), Some("MESSAGE_SET"));
        assert_eq!(of(message(None), said), Some("MESSAGE_REMOVED"));
    }

    #[test]
    fn a_message_is_one_line_of_plain_text() {
        assert!(RoomMessage::parse(&"가".repeat(MESSAGE_CHARS_MAX)).is_ok());
        assert!(RoomMessage::parse(&"가".repeat(MESSAGE_CHARS_MAX + 1)).is_err());
        for bad in ["", "  ", "a\nb", "a\u{1b}[2Jb"] {
            assert!(RoomMessage::parse(bad).is_err(), "{bad:?}");
        }
    }
}
