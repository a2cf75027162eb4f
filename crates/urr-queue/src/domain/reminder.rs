//! Decides which reminders are due.
//!
//! While it is not measured how fast slots are given back, the number of users ahead decides and not
//! the guessed wait: a whole room may be given back within a minute, and whoever is then admitted
//! has to be told before.

use crate::domain::estimate::WaitEstimator;
use urr_room::UserLocation;

/// A user whose estimated wait is no longer than this is near.
const NEAR_SECONDS: u64 = 180;
/// While users are admitted, at least so many at the front are near, or as many as have slots.
const NEAR_COUNT_MIN: u32 = 100;

/// The front of a line whose admission is near.
#[derive(Clone, Debug)]
pub struct NearFront<'a> {
    wait_estimator: &'a WaitEstimator,
    /// In seconds; none if it is not known.
    until_opening: Option<u64>,
    count: u32,
}

/// What to do about a reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReminderAction {
    /// A user who has been admitted has the position 0. The wait is none if nobody knows it.
    Notify {
        position: u32,
        wait_seconds: Option<u64>,
    },
    /// The user has gone.
    Delete,
    /// Not near yet, and the user has another number than the reminder.
    Renumber(i64),
    Wait,
}

impl<'a> NearFront<'a> {
    /// `until_opening` is 0 while users are admitted, and none if the opening is not known.
    pub fn new(
        wait_estimator: &'a WaitEstimator,
        until_opening: Option<u64>,
        threshold: u32,
    ) -> NearFront<'a> {
        let count = match until_opening {
            None => 0,
            Some(0) => {
                wait_estimator.people_within(NEAR_SECONDS).max(threshold).max(NEAR_COUNT_MIN)
            }
            Some(seconds) => wait_estimator.people_within(NEAR_SECONDS.saturating_sub(seconds)),
        };
        NearFront { wait_estimator, until_opening, count }
    }

    /// How many users at the front are near.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// `number` is that of the reminder.
    pub fn decide(&self, number: i64, whereabouts: UserLocation) -> ReminderAction {
        match whereabouts {
            UserLocation::Absent => ReminderAction::Delete,
            UserLocation::Active => ReminderAction::Notify { position: 0, wait_seconds: Some(0) },
            UserLocation::Waiting(place) if place.position <= self.count => {
                let position = place.position;
                let wait = self.wait_estimator.wait_at(position);
                let wait_seconds = wait.map(|wait| self.until_opening.unwrap_or(0) + wait.seconds);
                ReminderAction::Notify { position, wait_seconds }
            }
            UserLocation::Waiting(place) if place.number != number => {
                ReminderAction::Renumber(place.number)
            }
            UserLocation::Waiting(_) => ReminderAction::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use urr_room::{AdmissionRules, AdmissionState, Crowd, LinePace, LinePosition};

    const THRESHOLD: u32 = 1_000;

    /// A full room in which so many slots were given back each second of the last minute.
    fn wait_estimator(each_second: u32) -> WaitEstimator {
        let rules = AdmissionRules {
            admission: AdmissionState::Open,
            threshold: THRESHOLD,
            admitted_per_second_max: 100,
            slot_ttl: Duration::from_mins(10),
            slot_max: Duration::from_mins(30),
            waiting_max: 1_000_000,
            queues_per_user_max: 3,
        };
        let crowd = Crowd {
            waiting: 50_000,
            active: THRESHOLD,
            admitted_total: 20_000,
            pace: LinePace {
                admitted: vec![each_second; LinePace::SECONDS],
                left: vec![0; LinePace::SECONDS],
                let_in: vec![each_second; LinePace::SECONDS],
                ended: vec![each_second; LinePace::SECONDS],
                in_use: THRESHOLD,
            },
            ..Crowd::default()
        };
        WaitEstimator::new(&crowd, &rules)
    }

    fn waiting(number: i64, position: u32) -> UserLocation {
        UserLocation::Waiting(LinePosition { number, position })
    }

    #[test]
    fn near_is_who_is_let_in_within_three_minutes_by_the_estimate() {
        let wait_estimator = wait_estimator(20);
        let near = NearFront::new(&wait_estimator, Some(0), 10);
        assert_eq!(near.count(), 3_600);
        assert_eq!(
            near.decide(7, waiting(7, 3_600)),
            ReminderAction::Notify { position: 3_600, wait_seconds: Some(180) }
        );
        assert_eq!(near.decide(7, waiting(7, 3_601)), ReminderAction::Wait);
    }

    #[test]
    fn near_are_also_the_next_hundred_or_as_many_as_may_be_in_at_once() {
        // One slot in a second: three minutes are 180 people.
        let wait_estimator = wait_estimator(1);
        assert_eq!(NearFront::new(&wait_estimator, Some(0), 10).count(), 180);
        assert_eq!(NearFront::new(&wait_estimator, Some(0), THRESHOLD).count(), THRESHOLD);
        let still = WaitEstimator::new(
            &Crowd { waiting: 9, active: 10, ..Crowd::default() },
            &AdmissionRules {
                admission: AdmissionState::Open,
                threshold: 1,
                admitted_per_second_max: 1,
                slot_ttl: Duration::from_hours(1),
                slot_max: Duration::from_hours(1),
                waiting_max: 9,
                queues_per_user_max: 1,
            },
        );
        let near = NearFront::new(&still, Some(0), 1);
        assert_eq!(near.count(), 100, "not as many as the rate would admit if all slots were free");
        let told = ReminderAction::Notify { position: 1, wait_seconds: None };
        assert_eq!(near.decide(7, waiting(7, 1)), told, "nobody knows when somebody goes");
    }

    #[test]
    fn before_the_opening_the_time_until_then_is_waited_too() {
        let wait_estimator = wait_estimator(20);
        let count = |seconds| NearFront::new(&wait_estimator, Some(seconds), THRESHOLD).count();
        assert_eq!(count(3_600), 0, "not even the first one");
        assert_eq!(count(180), 0);
        assert_eq!(count(120), 1_200);
        let near = NearFront::new(&wait_estimator, Some(120), THRESHOLD);
        let told = ReminderAction::Notify { position: 400, wait_seconds: Some(140) };
        assert_eq!(near.decide(7, waiting(7, 400)), told);
    }

    #[test]
    fn while_nobody_is_let_in_nobodys_turn_is_near() {
        let wait_estimator = wait_estimator(20);
        let near = NearFront::new(&wait_estimator, None, THRESHOLD);
        assert_eq!(near.decide(7, waiting(7, 1)), ReminderAction::Wait);
        let told = ReminderAction::Notify { position: 0, wait_seconds: Some(0) };
        assert_eq!(near.decide(7, UserLocation::Active), told, "but who is in is told");
        assert_eq!(near.decide(7, UserLocation::Absent), ReminderAction::Delete);
    }

    #[test]
    fn another_number_is_noted_of_who_is_not_near() {
        let wait_estimator = wait_estimator(20);
        let near = NearFront::new(&wait_estimator, Some(0), THRESHOLD);
        assert_eq!(near.decide(7, waiting(-40, 9_000)), ReminderAction::Renumber(-40));
        let told = ReminderAction::Notify { position: 100, wait_seconds: Some(5) };
        assert_eq!(near.decide(7, waiting(-40, 100)), told);
    }
}
