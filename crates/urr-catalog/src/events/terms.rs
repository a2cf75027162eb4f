//! What visitors must know of an event before they buy: fees of a cancellation, age, length, notices,
//! who performs.

use serde::{Deserialize, Serialize};
use urr_kernel::{CancelPolicy, FeeBand, GracePeriod, InvalidCancelPolicy, Won};
use urr_storage::storable_enum;
use utoipa::ToSchema;

use crate::text::{InvalidText, parse_line};

pub const NOTICES_CHARS_MAX: usize = 5_000;
const RUNNING_MINUTES_MAX: u32 = 24 * 60;
const PERFORMERS_MAX: usize = 100;
const PERFORMER_CHARS_MAX: usize = 100;

/// The terms of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventTerms {
    /// None: the usual fees.
    pub cancel_policy: Option<CancelPolicy>,
    pub age_rating: AgeRating,
    /// None: it is not known.
    pub running_minutes: Option<RunningMinutes>,
    /// Empty if there are none.
    pub notices: String,
    pub casting: Casting,
}

/// Who performs, in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Casting(Vec<Performer>);

/// Somebody who performs. The role is empty where nobody plays one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Performer {
    #[schema(max_length = 100, example = "김우르")]
    name: String,
    #[serde(default)]
    #[schema(max_length = 100, example = "모차르트")]
    role: String,
}

/// Why a list of performers is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCasting {
    #[error("An event names up to {PERFORMERS_MAX} performers.")]
    TooMany,
    #[error(transparent)]
    Text(#[from] InvalidText),
}

impl Casting {
    pub fn parse(performers: Vec<Performer>) -> Result<Casting, InvalidCasting> {
        if performers.len() > PERFORMERS_MAX {
            return Err(InvalidCasting::TooMany);
        }
        let parse = |Performer { name, role }: Performer| {
            let name = parse_line("performer's name", &name, PERFORMER_CHARS_MAX)?;
            let role = match role.trim() {
                "" => String::new(),
                role => parse_line("performer's role", role, PERFORMER_CHARS_MAX)?,
            };
            Ok(Performer { name, role })
        };
        performers.into_iter().map(parse).collect::<Result<_, _>>().map(Casting)
    }
}

/// Who may watch the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum AgeRating {
    #[default]
    #[serde(rename = "all")]
    All,
    #[serde(rename = "7")]
    From7,
    #[serde(rename = "12")]
    From12,
    #[serde(rename = "15")]
    From15,
    #[serde(rename = "19")]
    From19,
}

storable_enum!(AgeRating {
    All => "all",
    From7 => "7",
    From12 => "12",
    From15 => "15",
    From19 => "19",
});

/// How long an event lasts, from a minute to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningMinutes(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The running time is from 1 to {RUNNING_MINUTES_MAX} minutes.")]
pub struct InvalidRunningTime;

impl RunningMinutes {
    pub fn new(minutes: u32) -> Result<RunningMinutes, InvalidRunningTime> {
        match (1..=RUNNING_MINUTES_MAX).contains(&minutes) {
            true => Ok(RunningMinutes(minutes)),
            false => Err(InvalidRunningTime),
        }
    }

    pub fn minutes(self) -> u32 {
        self.0
    }
}

/// The cancellation fees of an event. The first band whose days are reached applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = CancelPolicyBody)]
pub struct CancelPolicyTable {
    /// For so many hours after the booking cancelling is free,
    #[schema(example = 24)]
    grace_hours: u16,
    /// if the event is at least so many days away.
    #[schema(example = 3)]
    grace_days_before_min: u16,
    /// From the farthest to the day of the event, whose `daysBeforeMin` is 0.
    #[schema(min_items = 1, max_items = 20)]
    bands: Vec<FeeBandRow>,
}

/// The fee of a ticket while the event is at least `daysBeforeMin` days away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = FeeBandBody)]
pub struct FeeBandRow {
    #[schema(maximum = 730, example = 10)]
    days_before_min: u16,
    /// No fee within so many days after the booking.
    #[schema(maximum = 730, example = 7)]
    free_days: Option<u16>,
    /// Of the price, rounded down.
    #[schema(maximum = 100, example = 10)]
    percent: u8,
    /// The most that is kept of a ticket, in won.
    #[schema(value_type = Option<i64>, minimum = 0, example = 4_000)]
    ticket_fee_max: Option<Won>,
}

/// Why a table is no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidPolicyTable(#[from] InvalidCancelPolicy);

impl TryFrom<CancelPolicyTable> for CancelPolicy {
    type Error = InvalidPolicyTable;

    fn try_from(table: CancelPolicyTable) -> Result<CancelPolicy, InvalidPolicyTable> {
        let CancelPolicyTable { grace_hours: hours, grace_days_before_min, bands } = table;
        let band = |row: FeeBandRow| FeeBand {
            days_before_min: row.days_before_min,
            free_days: row.free_days,
            percent: row.percent,
            ticket_fee_max: row.ticket_fee_max,
        };
        let grace = GracePeriod { hours, days_before_min: grace_days_before_min };
        Ok(CancelPolicy::new(grace, bands.into_iter().map(band).collect())?)
    }
}

impl From<&CancelPolicy> for CancelPolicyTable {
    fn from(policy: &CancelPolicy) -> CancelPolicyTable {
        let row = |band: &FeeBand| FeeBandRow {
            days_before_min: band.days_before_min,
            free_days: band.free_days,
            percent: band.percent,
            ticket_fee_max: band.ticket_fee_max,
        };
        CancelPolicyTable {
            grace_hours: policy.grace().hours,
            grace_days_before_min: policy.grace().days_before_min,
            bands: policy.bands().iter().map(row).collect(),
        }
    }
}

/// The terms as they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventTermsView {
    /// The cancellation fees of this event; null means the usual ones.
    cancel_policy: Option<CancelPolicyTable>,
    /// `all`, or the age from which on one may watch it.
    #[schema(value_type = String, example = "12")]
    age_rating: AgeRating,
    /// With the interval; null if it is not known.
    #[schema(example = 150)]
    running_minutes: Option<u32>,
    /// What visitors must know.
    notices: Option<String>,
    /// Who performs.
    #[schema(value_type = Vec<Performer>)]
    casting: Casting,
}

impl From<&EventTerms> for EventTermsView {
    fn from(terms: &EventTerms) -> EventTermsView {
        EventTermsView {
            cancel_policy: terms.cancel_policy.as_ref().map(CancelPolicyTable::from),
            age_rating: terms.age_rating,
            running_minutes: terms.running_minutes.map(RunningMinutes::minutes),
            notices: Some(terms.notices.clone()).filter(|notices| !notices.is_empty()),
            casting: terms.casting.clone(),
        }
    }
}
