//! Waiting rooms as text.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use urr_kernel::{Timestamp, Uuid};

use crate::text_table::align;

/// The fields of a room that are printed. A newer system may send more.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RoomSummary {
    event_id: Uuid,
    title: String,
    phase: String,
    gathers_at: Timestamp,
    sale_starts_at: Timestamp,
    sale_ends_at: Timestamp,
    waiting: u64,
    active: u64,
    threshold: u64,
    admitted_per_second_max: u64,
    rate_per_minute: u64,
    left_per_minute: u64,
    admitted_total: u64,
    left_total: u64,
    last_wait: Option<LastWaitSummary>,
    sold_out: bool,
    paused: bool,
    message: Option<String>,
    autopilot: AutopilotSummary,
    settings: RoomSettingsSummary,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LastWaitSummary {
    estimated_wait: u64,
    from: u64,
    to: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AutopilotSummary {
    enabled: bool,
    rate_per_second: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RoomSettingsSummary {
    threshold: SettingWithSource,
    admitted_per_second_max: SettingWithSource,
    gathering_seconds: SettingWithSource,
    opening: SettingWithSource,
}

#[derive(Deserialize)]
struct SettingWithSource {
    value: Value,
    source: String,
}

#[derive(Deserialize)]
struct RoomDetails {
    room: RoomSummary,
}

#[derive(Deserialize)]
struct ClearedRoom {
    waiting: u64,
    active: u64,
}

impl RoomSummary {
    /// The phase, and what else keeps people out.
    fn state(&self) -> String {
        match (self.sold_out, self.paused && self.phase != "paused") {
            (true, _) => format!("{}, sold out", self.phase),
            (false, true) => format!("{}, to be paused", self.phase),
            (false, false) => self.phase.clone(),
        }
    }
}

impl SettingWithSource {
    fn text(&self) -> String {
        self.text_with("")
    }

    fn text_with(&self, unit: &str) -> String {
        let value = match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        format!("{value}{unit} ({})", self.source)
    }
}

/// One line per room. Titles come last, because the width of their letters varies.
pub fn table(rooms: &[Value]) -> Result<String> {
    let heads = ["EVENT", "STATE", "WAITING", "IN", "THRESHOLD", "PER MIN", "SALE", "TITLE"];
    let mut lines = vec![heads.map(str::to_owned)];
    for room in rooms {
        let room: RoomSummary = read(room)?;
        lines.push([
            room.event_id.to_string(),
            room.state(),
            room.waiting.to_string(),
            room.active.to_string(),
            room.threshold.to_string(),
            room.rate_per_minute.to_string(),
            moment(room.sale_starts_at),
            room.title,
        ]);
    }
    Ok(align(&lines))
}

/// The details of one room.
pub fn room(answer: &Value) -> Result<String> {
    let RoomDetails { room } = read(answer)?;
    let wait = match &room.last_wait {
        None => "-".to_owned(),
        Some(LastWaitSummary { estimated_wait, from, to }) => {
            format!("{estimated_wait} s ({from} to {to} s)")
        }
    };
    let autopilot = match (room.autopilot.enabled, room.autopilot.rate_per_second) {
        (false, _) => "off".to_owned(),
        (true, None) => "on".to_owned(),
        (true, Some(rate)) => format!("on, {rate} per second now"),
    };
    let pair = |name: &str, value: String| [name.to_owned(), value];
    let in_room = format!("{} of {}", room.active, room.threshold);
    let last_minute = format!("{} let in, {} left", room.rate_per_minute, room.left_per_minute);
    let ever = format!("{} let in, {} left", room.admitted_total, room.left_total);
    let lines = [
        pair("event", room.event_id.to_string()),
        pair("title", room.title.clone()),
        pair("state", room.state()),
        pair("gathering from", moment(room.gathers_at)),
        pair("sale", format!("{} to {}", moment(room.sale_starts_at), moment(room.sale_ends_at))),
        pair("waiting", room.waiting.to_string()),
        pair("in", in_room),
        pair("last minute", last_minute),
        pair("in all", ever),
        pair("last in line", wait),
        pair("rate in force", format!("{} per second", room.admitted_per_second_max)),
        pair("threshold", room.settings.threshold.text()),
        pair("rate", room.settings.admitted_per_second_max.text()),
        pair("gathering", room.settings.gathering_seconds.text_with(" s")),
        pair("opening", room.settings.opening.text()),
        pair("autopilot", autopilot),
        pair("message", room.message.unwrap_or_else(|| "-".to_owned())),
    ];
    Ok(align(&lines))
}

/// To the second.
fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What clearing a room would do.
pub fn clear_warning(answer: &Value) -> Result<String> {
    let RoomDetails { room: RoomSummary { title, waiting, active, .. } } = read(answer)?;
    Ok(format!(
        "{title}: this ends the positions of {waiting} who wait and the slots of {active}, for good"
    ))
}

pub fn cleared(answer: &Value) -> Result<String> {
    let ClearedRoom { waiting, active } = read(answer)?;
    Ok(format!("The positions of {waiting} who waited and the slots of {active} have ended."))
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(value).context("the answer is not one of the waiting rooms of this version")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hanriver() -> Value {
        json!({
            "eventId": "0193e4c5-7a2b-7c3d-8e4f-5a6b7c8d9e0f", "title": "한강의 밤",
            "artistName": null, "phase": "open", "gathersAt": "2026-12-01T11:00:00Z",
            "saleStartsAt": "2026-12-01T12:00:00.503276Z", "saleEndsAt": "2026-12-08T12:00:00Z",
            "waiting": 1234, "active": 500, "available": 0, "threshold": 500,
            "admittedPerSecondMax": 50, "ratePerMinute": 2400, "leftPerMinute": 12,
            "admittedTotal": 8000, "leftTotal": 90,
            "lastWait": { "estimatedWait": 31, "from": 25, "to": 40 },
            "soldOut": false, "paused": false, "message": null,
            "autopilot": { "enabled": true, "ratePerSecond": 40 },
            "settings": {
                "threshold": { "value": 500, "source": "event" },
                "admittedPerSecondMax": { "value": 50, "source": "event" },
                "gatheringSeconds": { "value": 3600, "source": "default" },
                "opening": { "value": "fifo", "source": "default" },
                "autopilot": { "value": true, "source": "event" },
            },
            "serverTime": "2026-12-01T12:03:00Z",
        })
    }

    #[test]
    fn rooms_are_lines_of_a_table() {
        let mut sold_out = hanriver();
        sold_out["soldOut"] = json!(true);
        let text = table(&[hanriver(), sold_out]).unwrap();
        let cells = |line: &str| {
            let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
            cells.map(str::to_owned).collect::<Vec<_>>()
        };
        let lines: Vec<_> = text.lines().map(cells).collect();
        let event = "0193e4c5-7a2b-7c3d-8e4f-5a6b7c8d9e0f";
        let (sale, title) = ("2026-12-01T12:00:00Z", "한강의 밤");
        assert_eq!(
            lines[0],
            ["EVENT", "STATE", "WAITING", "IN", "THRESHOLD", "PER MIN", "SALE", "TITLE"]
        );
        assert_eq!(lines[1], [event, "open", "1234", "500", "500", "2400", sale, title]);
        assert_eq!(lines[2][1], "open, sold out");
        let columns: Vec<_> = text.lines().map(|line| line.find("2026-12")).collect();
        assert_eq!(columns[1], columns[2], "{text}");
    }

    #[test]
    fn a_room_is_shown_with_where_its_settings_come_from() {
        let text = room(&json!({ "room": hanriver() })).unwrap();
        for line in [
            "in              500 of 500",
            "last in line    31 s (25 to 40 s)",
            "threshold       500 (event)",
            "gathering       3600 s (default)",
            "autopilot       on, 40 per second now",
            "message         -",
        ] {
            assert!(text.lines().any(|text| text == line), "{line:?} is not in\n{text}");
        }
        assert!(room(&json!({ "room": {} })).is_err());
    }
}
