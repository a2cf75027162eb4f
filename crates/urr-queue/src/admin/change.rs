//! What may be changed in a room, and until when.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value, json};
use urr_kernel::{Timestamp, UnfitText, one_line};

use crate::{EventRoom, Opening, Phase, Settings, Wishes};

/// As many people as the configuration takes.
pub const PEOPLE: RangeInclusive<i64> = 1..=100_000_000;
/// A week: who is not seen for minutes is dropped from the line anyway.
pub const GATHERING_SECONDS: RangeInclusive<i64> = 0..=604_800;
pub const MESSAGE_CHARS_MAX: usize = 500;

/// Every process must know how a room begins before the first one comes.
const SETTLING: Duration = Duration::from_secs(5);

/// What is to be different. `None` stays as it is; the inner `None` is the default again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub threshold: Option<Option<u32>>,
    pub admitted_per_second_max: Option<Option<u32>>,
    pub gathering: Option<Option<Duration>>,
    pub opening: Option<Opening>,
    pub has_autopilot: Option<bool>,
    pub is_paused: Option<bool>,
    pub message: Option<Option<Message>>,
}

/// A line for those who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message(String);

impl Message {
    pub fn parse(text: &str) -> Result<Message, UnfitText> {
        one_line(text, MESSAGE_CHARS_MAX).map(|line| Message(line.to_owned()))
    }
}

/// Why a room is not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    #[error("the order of the opening is fixed")]
    OpeningFixed,
    #[error("the beginning of the gathering is fixed")]
    GatheringFixed,
}

/// What a change comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub wishes: Wishes,
    /// At least one.
    pub differences: Vec<Difference>,
}

/// One wish that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// As it is called on the wire.
    pub field: &'static str,
    pub before: Value,
    pub after: Value,
}

impl Change {
    /// Whether it is about what people gather for.
    pub fn concerns_gathering(&self) -> bool {
        self.opening.is_some() || self.gathering.is_some()
    }
}

/// Decides what the wishes become. `None`: they are like that already.
///
/// Once people may gather, nobody can change what they gathered for: neither the order of the
/// opening, nor the moment from which they may come, by which the first could be got around. A sale
/// may have been put off when people waited already: `has_people` says so.
pub fn decide_change(
    room: &EventRoom,
    change: &Change,
    settings: &Settings,
    has_people: bool,
    now: Timestamp,
) -> Result<Option<Decided>, ChangeRefused> {
    let (old, new) = (&room.wishes, apply(&room.wishes, change));
    if has_people || is_settled(room, settings, now) {
        if new.opening != old.opening {
            return Err(ChangeRefused::OpeningFixed);
        }
        if new.gathering != old.gathering {
            return Err(ChangeRefused::GatheringFixed);
        }
    }
    let differences = differences(old, &new);
    Ok((!differences.is_empty()).then_some(Decided { wishes: new, differences }))
}

/// Whether people may come, or will in a moment.
fn is_settled(room: &EventRoom, settings: &Settings, now: Timestamp) -> bool {
    !matches!(room.phase(settings, now + SETTLING), Phase::Closed { .. })
}

fn apply(old: &Wishes, change: &Change) -> Wishes {
    let message = match &change.message {
        None => old.message.clone(),
        Some(message) => message.clone().map(|Message(text)| text),
    };
    Wishes {
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

fn differences(old: &Wishes, new: &Wishes) -> Vec<Difference> {
    let before = described(old).into_iter();
    let pairs = before.zip(described(new));
    pairs
        .filter(|((_, before), (_, after))| before != after)
        .map(|((field, before), (_, after))| Difference { field, before, after })
        .collect()
}

/// Every wish as the interface names it.
fn described(wishes: &Wishes) -> [(&'static str, Value); 7] {
    let gathering = wishes.gathering.map(|gathering| gathering.as_secs());
    [
        ("threshold", json!(wishes.threshold)),
        ("admittedPerSecondMax", json!(wishes.admitted_per_second_max)),
        ("gatheringSeconds", json!(gathering)),
        ("opening", json!(wishes.opening.name())),
        ("autopilot", json!(wishes.has_autopilot)),
        ("paused", json!(wishes.is_paused)),
        ("message", json!(wishes.message)),
    ]
}

impl Decided {
    /// What was done, in a word for the log.
    pub fn action(&self) -> &'static str {
        match &self.differences[..] {
            [Difference { field: "paused", after: Value::Bool(true), .. }] => "ROOM_PAUSED",
            [Difference { field: "paused", .. }] => "ROOM_RESUMED",
            [Difference { field: "message", after: Value::Null, .. }] => "MESSAGE_REMOVED",
            [Difference { field: "message", .. }] => "MESSAGE_SET",
            _ => "ROOM_CHANGED",
        }
    }

    /// What was and what is, for the log.
    pub fn details(&self) -> Value {
        let difference = |difference: &Difference| {
            let Difference { field, before, after } = difference;
            ((*field).to_owned(), json!({ "before": before, "after": after }))
        };
        Value::Object(self.differences.iter().map(difference).collect())
    }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Uuid;

    use super::*;
    use crate::EventStatus;

    /// People may gather at 11:00 and buy at 12:00.
    fn room() -> EventRoom {
        EventRoom {
            event_id: Uuid::from_u128(1),
            status: EventStatus::Open,
            title: "한강의 밤".to_owned(),
            artist_id: None,
            artist_name: None,
            sale_starts_at: time("12:00:00"),
            sale_ends_at: time("20:00:00"),
            has_presale: false,
            wishes: Wishes::default(),
            draw: None,
            awaits_clearing: false,
        }
    }

    fn time(clock: &str) -> Timestamp {
        format!("2026-12-01T{clock}Z").parse().unwrap()
    }

    fn decide(change: &Change, clock: &str) -> Result<Option<Decided>, ChangeRefused> {
        decide_change(&room(), change, &Settings::default(), false, time(clock))
    }

    #[test]
    fn what_people_gathered_for_is_not_changed_under_them() {
        let lottery = Change { opening: Some(Opening::Lottery), ..Change::default() };
        let later = Some(Some(Duration::from_secs(60)));
        let later = Change { gathering: later, ..Change::default() };
        // Five seconds before the first one may come everybody must know already.
        assert!(decide(&lottery, "10:59:54").unwrap().is_some());
        assert!(decide(&later, "10:59:54").unwrap().is_some());
        for clock in ["10:59:55", "11:00:00", "12:00:00", "19:00:00", "21:00:00"] {
            assert_eq!(decide(&lottery, clock), Err(ChangeRefused::OpeningFixed), "{clock}");
            assert_eq!(decide(&later, clock), Err(ChangeRefused::GatheringFixed), "{clock}");
        }
        // The sale was put off, and those who had come still wait.
        let put_off =
            |change| decide_change(&room(), change, &Settings::default(), true, time("00:00:00"));
        assert_eq!(put_off(&lottery), Err(ChangeRefused::OpeningFixed));
        assert_eq!(put_off(&later), Err(ChangeRefused::GatheringFixed));
        // What is no change is not refused.
        let fifo = Change { opening: Some(Opening::Fifo), ..Change::default() };
        assert_eq!(decide(&fifo, "12:00:00"), Ok(None));
    }

    #[test]
    fn everything_else_is_changed_at_any_time() {
        let change = Change {
            threshold: Some(Some(50)),
            admitted_per_second_max: Some(Some(5)),
            has_autopilot: Some(true),
            is_paused: Some(true),
            message: Some(Some(Message::parse(" 곧 시작합니다 ").unwrap())),
            ..Change::default()
        };
        for clock in ["00:00:00", "11:30:00", "13:00:00"] {
            let decided = decide(&change, clock).unwrap().unwrap();
            let expected = Wishes {
                threshold: Some(50),
                admitted_per_second_max: Some(5),
                has_autopilot: true,
                is_paused: true,
                message: Some("곧 시작합니다".to_owned()),
                ..Wishes::default()
            };
            assert_eq!(decided.wishes, expected, "{clock}");
            assert_eq!(decided.differences.len(), 5);
            assert_eq!(decided.action(), "ROOM_CHANGED");
        }
    }

    #[test]
    fn the_default_comes_back_and_what_is_not_named_stays() {
        let mut room = room();
        room.wishes.threshold = Some(7);
        room.wishes.message = Some("기다려 주세요".to_owned());
        let change = Change { threshold: Some(None), ..Change::default() };
        let decided = decide_change(&room, &change, &Settings::default(), true, time("13:00:00"));
        let decided = decided.unwrap().unwrap();
        assert_eq!(decided.wishes, Wishes { threshold: None, ..room.wishes.clone() });
        assert_eq!(decided.details(), json!({ "threshold": { "before": 7, "after": null } }));
    }

    #[test]
    fn the_log_has_a_word_for_what_was_done() {
        let of = |change: Change, wishes: Wishes| {
            let room = EventRoom { wishes, ..room() };
            let decided =
                decide_change(&room, &change, &Settings::default(), true, time("13:00:00"));
            decided.unwrap().map(|decided| decided.action())
        };
        let paused = |is_paused| Change { is_paused: Some(is_paused), ..Change::default() };
        let stopped = Wishes { is_paused: true, ..Wishes::default() };
        assert_eq!(of(paused(true), Wishes::default()), Some("ROOM_PAUSED"));
        assert_eq!(of(paused(false), stopped.clone()), Some("ROOM_RESUMED"));
        assert_eq!(of(paused(true), stopped), None, "it is so already");
        let said = Wishes { message: Some("a".to_owned()), ..Wishes::default() };
        let message = |message| Change { message: Some(message), ..Change::default() };
        let line = Message::parse("b").unwrap();
        assert_eq!(of(message(Some(line)), said.clone()), Some("MESSAGE_SET"));
        assert_eq!(of(message(None), said), Some("MESSAGE_REMOVED"));
    }

    #[test]
    fn a_message_is_one_line_of_plain_text() {
        assert!(Message::parse(&"가".repeat(MESSAGE_CHARS_MAX)).is_ok());
        assert!(Message::parse(&"가".repeat(MESSAGE_CHARS_MAX + 1)).is_err());
        for bad in ["", "  ", "a\nb", "a\u{1b}[2Jb"] {
            assert!(Message::parse(bad).is_err(), "{bad:?}");
        }
    }
}
