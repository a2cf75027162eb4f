//! The bodies of administrators and operators.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use urr_kernel::{UnfitText, Uuid};
use urr_service::ApiError;
use utoipa::ToSchema;

use crate::OpeningOrder;
use crate::admin::{GATHERING_SECONDS, PEOPLE, RoomChange, RoomMessage};

/// Absent settings stay; `null` resets to the default.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeRoomBody {
    /// How many users may have a slot at once.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 100_000_000, example = 500)]
    threshold: Option<Option<i64>>,
    /// How many users are admitted per second at most.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 100_000_000, example = 50)]
    admitted_per_second_max: Option<Option<i64>>,
    /// How long before the sale users may join. It is fixed once they may.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 604_800, example = 3_600)]
    gathering_seconds: Option<Option<i64>>,
    /// Whether the users who join before the sale are admitted by arrival or by lot. It is fixed once
    /// they may join.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<OpeningOrder>)]
    opening: Option<Option<OpeningOrder>>,
    /// Whether the rate follows the health of booking.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<bool>)]
    autopilot: Option<Option<bool>>,
    /// A line of plain text for the users who wait.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500)]
    message: Option<Option<String>>,
    /// Whether the admission is paused.
    #[serde(default, deserialize_with = "named")]
    #[schema(value_type = Option<bool>)]
    paused: Option<Option<bool>>,
}

/// A field that is present, perhaps as `null`.
fn named<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

impl ChangeRoomBody {
    pub fn parse(self) -> Result<RoomChange, ApiError> {
        let people = |number, noun| parse_number(number, PEOPLE, noun);
        let gathering = self.gathering_seconds;
        let gathering = parse_number(gathering, GATHERING_SECONDS, GATHERING)?;
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        Ok(RoomChange {
            threshold: people(self.threshold, THRESHOLD)?,
            admitted_per_second_max: people(self.admitted_per_second_max, RATE)?,
            gathering: gathering.map(|gathering| gathering.map(seconds)),
            opening: self.opening.map(Option::unwrap_or_default),
            has_autopilot: self.autopilot.map(Option::unwrap_or_default),
            is_paused: self.paused.map(Option::unwrap_or_default),
            message: parse_message_change(self.message)?,
        })
    }
}

/// A field with the code of its error.
#[derive(Clone, Copy)]
pub struct NumberField {
    code: &'static str,
    name: &'static str,
}

pub const THRESHOLD: NumberField = NumberField { code: "INVALID_THRESHOLD", name: "The threshold" };
const RATE: NumberField = NumberField { code: "INVALID_RATE", name: "The rate per second" };
const GATHERING: NumberField =
    NumberField { code: "INVALID_GATHERING", name: "The gathering before the sale, in seconds," };

pub fn parse_number(
    number: Option<Option<i64>>,
    range: RangeInclusive<i64>,
    noun: NumberField,
) -> Result<Option<Option<u32>>, ApiError> {
    let Some(Some(number)) = number else {
        return Ok(number.map(|_| None));
    };
    let within = u32::try_from(number).ok().filter(|_| range.contains(&number));
    let number = within.ok_or_else(|| {
        let NumberField { code, name } = noun;
        let sentence = format!("{name} is a number from {} to {}.", range.start(), range.end());
        ApiError::bad_request(code, sentence)
    })?;
    Ok(Some(Some(number)))
}

fn parse_message_change(
    message: Option<Option<String>>,
) -> Result<Option<Option<RoomMessage>>, ApiError> {
    message.map(|text| text.as_deref().map(parse_message).transpose()).transpose()
}

fn parse_message(text: &str) -> Result<RoomMessage, ApiError> {
    RoomMessage::parse(text).map_err(|unfit: UnfitText| {
        ApiError::bad_request("INVALID_MESSAGE", format!("The message {unfit}."))
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageBody {
    /// A line of plain text.
    #[schema(min_length = 1, max_length = 500, example = "30분 뒤에 이어서 입장합니다.")]
    message: String,
}

impl MessageBody {
    pub fn parse(&self) -> Result<RoomMessage, ApiError> {
        parse_message(&self.message)
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClearRoomBody {
    /// The event's id once more.
    confirm: Option<String>,
}

impl ClearRoomBody {
    pub fn confirms(&self, event_id: Uuid) -> bool {
        let confirmed = self.confirm.as_deref().map(str::parse::<Uuid>);
        confirmed.is_some_and(|confirmed| confirmed.ok() == Some(event_id))
    }
}
