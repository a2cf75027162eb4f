//! Counters by hour, summed up for the pages.

use std::collections::BTreeMap;

use jiff::civil::Date;

use super::{Hour, StatsCounters, StatsPeriod};

/// HourlyCounters in which something happened, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HourlyCounters(pub Vec<(Hour, StatsCounters)>);

impl HourlyCounters {
    pub fn total(&self) -> StatsCounters {
        self.total_where(|_| true)
    }

    pub fn total_where(&self, is_wanted: impl Fn(Hour) -> bool) -> StatsCounters {
        let mut total = StatsCounters::default();
        let wanted = self.0.iter().filter(|(hour, _)| is_wanted(*hour));
        wanted.for_each(|(_, counters)| total += counters);
        total
    }

    /// The days on which something happened, oldest first.
    pub fn by_day(&self) -> BTreeMap<Date, StatsCounters> {
        self.by(|hour| hour.day)
    }

    /// The hours of a day, from 0 to 23, over all days.
    pub fn by_hour(&self) -> Vec<(u8, StatsCounters)> {
        let mut found = self.by(|hour| hour.hour);
        (0..24).map(|hour| (hour, found.remove(&hour).unwrap_or_default())).collect()
    }

    /// The days of the week from Monday on: their number from 1, and their counters.
    pub fn by_weekday(&self) -> Vec<(i8, StatsCounters)> {
        let mut found = self.by(|hour| hour.day.weekday().to_monday_one_offset());
        (1..=7).map(|day| (day, found.remove(&day).unwrap_or_default())).collect()
    }

    /// The periods in which something happened, oldest first.
    pub fn by_period(&self, period: StatsPeriod) -> BTreeMap<String, StatsCounters> {
        self.by(|hour| period.name_of(hour.day))
    }

    fn by<K: Ord>(&self, key: impl Fn(Hour) -> K) -> BTreeMap<K, StatsCounters> {
        let mut sums: BTreeMap<K, StatsCounters> = BTreeMap::new();
        for (hour, counters) in &self.0 {
            *sums.entry(key(*hour)).or_default() += counters;
        }
        sums
    }
}

/// Pairs of (reservations per user, number of users), fewest reservations first.
pub struct ReservationDistribution(pub Vec<(i64, i64)>);

impl ReservationDistribution {
    pub fn people(&self) -> i64 {
        self.0.iter().map(|(_, people)| people).sum()
    }

    pub fn reservations(&self) -> i64 {
        self.0.iter().map(|(each, people)| each * people).sum()
    }

    pub fn max(&self) -> i64 {
        self.0.last().map_or(0, |(each, _)| *each)
    }

    /// Of an even number of people the lower of the two in the middle.
    pub fn median(&self) -> i64 {
        let middle = (self.people() + 1) / 2;
        let mut seen = 0;
        for (each, people) in &self.0 {
            seen += people;
            if seen >= middle {
                return *each;
            }
        }
        0
    }

    /// How many people made at least `from` reservations and fewer than `below`.
    pub fn people_between(&self, from: i64, below: i64) -> i64 {
        let within = self.0.iter().filter(|(each, _)| (from..below).contains(each));
        within.map(|(_, people)| people).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_what_the_one_in_the_middle_made() {
        let distribution = ReservationDistribution(vec![(1, 3), (2, 1), (9, 1)]);
        assert_eq!((distribution.people(), distribution.reservations()), (5, 14));
        assert_eq!((distribution.median(), distribution.max()), (1, 9));
        assert_eq!(ReservationDistribution(vec![(1, 1), (4, 2)]).median(), 4);
        assert_eq!(ReservationDistribution(vec![(1, 1), (4, 1)]).median(), 1);
        assert_eq!(ReservationDistribution(vec![]).median(), 0);
        assert_eq!(distribution.people_between(2, 9), 1);
        assert_eq!(distribution.people_between(2, i64::MAX), 2);
    }
}
