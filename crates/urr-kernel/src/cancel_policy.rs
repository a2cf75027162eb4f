//! The cancellation fees of an event: the catalog checks them, the ticket service applies them.

use serde::{Deserialize, Serialize};

use crate::Won;

/// More bands than this say nothing new.
const BANDS_MAX: usize = 20;
/// Nothing is sold earlier than this before its event.
const DAYS_MAX: u16 = 730;

/// The cancellation fees. Stored as JSON with every reservation: later policies do not change what
/// was agreed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", try_from = "UncheckedCancelPolicy")]
pub struct CancelPolicy {
    grace: GracePeriod,
    bands: Vec<FeeBand>,
}

#[derive(Deserialize)]
struct UncheckedCancelPolicy {
    grace: GracePeriod,
    bands: Vec<FeeBand>,
}

/// The period after the booking in which tickets are refunded in full, if the event is far enough
/// away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GracePeriod {
    pub hours: u16,
    pub days_before_min: u16,
}

/// The fee of a ticket while the event is at least this many days away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeeBand {
    pub days_before_min: u16,
    /// No fee within this many days after the booking.
    pub free_days: Option<u16>,
    /// Of the price, rounded down.
    pub percent: u8,
    pub ticket_fee_max: Option<Won>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCancelPolicy {
    #[error(
        "The bands must come nearer to the event one by one, down to its day, and be at most \
         {BANDS_MAX}."
    )]
    Bands,
    #[error("A fee is from 0 to 100 percent, and its limit is not below zero.")]
    Fee,
    #[error("Days must not be more than {DAYS_MAX}.")]
    Days,
}

impl CancelPolicy {
    pub fn new(
        grace: GracePeriod,
        bands: Vec<FeeBand>,
    ) -> Result<CancelPolicy, InvalidCancelPolicy> {
        let is_falling = bands.is_sorted_by(|a, b| a.days_before_min > b.days_before_min);
        let has_event_day = bands.last().is_some_and(|last| last.days_before_min == 0);
        if !is_falling || !has_event_day || bands.len() > BANDS_MAX {
            return Err(InvalidCancelPolicy::Bands);
        }
        let is_possible = |band: &FeeBand| {
            band.percent <= 100 && band.ticket_fee_max.is_none_or(|max| max >= Won::ZERO)
        };
        if !bands.iter().all(is_possible) {
            return Err(InvalidCancelPolicy::Fee);
        }
        let of_band = |band: &FeeBand| [band.days_before_min, band.free_days.unwrap_or(0)];
        let mut days = bands.iter().flat_map(of_band).chain([grace.days_before_min]);
        match days.any(|days| days > DAYS_MAX) || grace.hours / 24 > DAYS_MAX {
            true => Err(InvalidCancelPolicy::Days),
            false => Ok(CancelPolicy { grace, bands }),
        }
    }

    /// The usual schedule of Korean ticket sellers, within consumers' law.
    pub fn korean() -> CancelPolicy {
        let band = |days_before_min, percent| FeeBand {
            days_before_min,
            free_days: None,
            percent,
            ticket_fee_max: None,
        };
        let far =
            FeeBand { free_days: Some(7), ticket_fee_max: Some(Won::new(4_000)), ..band(10, 10) };
        let bands = vec![far, band(7, 10), band(3, 20), band(1, 30), band(0, 90)];
        let grace = GracePeriod { hours: 24, days_before_min: 3 };
        CancelPolicy::new(grace, bands).expect("it is a policy")
    }

    pub fn grace(&self) -> GracePeriod {
        self.grace
    }

    /// From the farthest to the day of the event.
    pub fn bands(&self) -> &[FeeBand] {
        &self.bands
    }

    /// The band of an event that is this many days away; an event that is over has the last one.
    pub fn band(&self, days_before: i32) -> FeeBand {
        let is_reached = |band: &&FeeBand| days_before >= i32::from(band.days_before_min);
        let last = self.bands.last().expect("there is the day of the event");
        *self.bands.iter().find(is_reached).unwrap_or(last)
    }
}

impl TryFrom<UncheckedCancelPolicy> for CancelPolicy {
    type Error = InvalidCancelPolicy;

    fn try_from(unchecked: UncheckedCancelPolicy) -> Result<CancelPolicy, InvalidCancelPolicy> {
        CancelPolicy::new(unchecked.grace, unchecked.bands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_promises_nothing_for_the_day_of_the_event_is_refused_also_when_it_is_read() {
        let day =
            FeeBand { days_before_min: 0, free_days: None, percent: 90, ticket_fee_max: None };
        let far = FeeBand { days_before_min: 5, ..day };
        let grace = GracePeriod { hours: 0, days_before_min: 0 };
        let policy = |bands: &[FeeBand]| CancelPolicy::new(grace, bands.to_vec());
        assert!(policy(&[far, day]).is_ok());
        for bands in [&[][..], &[far], &[day, far], &[day, day]] {
            assert_eq!(policy(bands), Err(InvalidCancelPolicy::Bands), "{bands:?}");
            let json = serde_json::json!({"grace": grace, "bands": bands});
            assert!(serde_json::from_value::<CancelPolicy>(json).is_err());
        }
        let fees = [
            FeeBand { percent: 101, ..day },
            FeeBand { ticket_fee_max: Some(Won::new(-1)), ..day },
        ];
        for band in fees {
            assert_eq!(policy(&[band]), Err(InvalidCancelPolicy::Fee));
        }
        let days = [FeeBand { days_before_min: 731, ..day }, day];
        assert_eq!(policy(&days), Err(InvalidCancelPolicy::Days));
        let many: Vec<FeeBand> =
            (0..21).rev().map(|days_before_min| FeeBand { days_before_min, ..day }).collect();
        assert_eq!(policy(&many), Err(InvalidCancelPolicy::Bands));
    }

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        let korean = CancelPolicy::korean();
        let json = serde_json::to_value(&korean).unwrap();
        assert_eq!(serde_json::from_value::<CancelPolicy>(json).unwrap(), korean);
    }
}
