//! Rules of points: what they are awarded for, how many, and the tiers they make.

pub(crate) mod http;
pub(crate) mod store;

use jiff::tz::Offset;
use urr_kernel::{Timestamp, named_enum};

use crate::inventory::rules::Tier;

/// Days are those of Korea's calendar, which knows no summer time.
const KOREA: Offset = Offset::constant(9);

pub const GOLD_FROM: i64 = 500;
pub const DIAMOND_FROM: i64 = 1_500;

/// Tiers with the points from which on they are reached, the highest first.
pub const TIERS: [(Tier, i64); 3] =
    [(Tier::Diamond, DIAMOND_FROM), (Tier::Gold, GOLD_FROM), (Tier::Silver, 0)];

/// The actions that points are awarded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointAction {
    Join,
    Renew,
    TicketPurchase,
    Post,
    Comment,
    NewsArticle,
}

named_enum!(PointAction {
    Join => "MEMBERSHIP_JOIN",
    Renew => "MEMBERSHIP_RENEW",
    TicketPurchase => "TICKET_PURCHASE",
    Post => "COMMUNITY_POST",
    Comment => "COMMUNITY_COMMENT",
    NewsArticle => "NEWS_CREATION",
});

impl PointAction {
    /// The name of the entry that takes its points back.
    pub fn name_of_return(self) -> String {
        format!("{self}_RETURNED")
    }

    /// The actions that the community may report.
    pub fn parse_of_community(name: &str) -> Option<PointAction> {
        [PointAction::Post, PointAction::Comment, PointAction::NewsArticle]
            .into_iter()
            .find(|a| a.as_str() == name)
    }

    pub fn points(self) -> i64 {
        match self {
            PointAction::Join | PointAction::Renew => 200,
            PointAction::TicketPurchase => 100,
            PointAction::Post | PointAction::NewsArticle => 30,
            PointAction::Comment => 10,
        }
    }

    /// How often a day it is awarded in a membership. Paid actions have no limit. Returned awards
    /// count: writing and deleting all day gains nothing.
    pub fn per_day_max(self) -> Option<u32> {
        match self {
            PointAction::Join | PointAction::Renew | PointAction::TicketPurchase => None,
            PointAction::Post | PointAction::NewsArticle => Some(3),
            PointAction::Comment => Some(10),
        }
    }
}

/// When the day began in Korea.
pub fn start_of_day(now: Timestamp) -> Timestamp {
    let midnight = KOREA.to_datetime(now).date().at(0, 0, 0, 0);
    KOREA.to_timestamp(midnight).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn days_begin_at_midnight_in_korea() {
        for (now, began) in [
            ("2026-12-01T14:59:59Z", "2026-11-30T15:00:00Z"),
            ("2026-12-01T15:00:00Z", "2026-12-01T15:00:00Z"),
        ] {
            let at = |text: &str| -> Timestamp { text.parse().expect("a time") };
            assert_eq!(start_of_day(at(now)), at(began));
        }
    }

    /// A return that had the name of an award would stand in its way.
    #[test]
    fn awards_and_their_returns_have_names_of_their_own() {
        let names = PointAction::ALL
            .iter()
            .flat_map(|action| [action.to_string(), action.name_of_return()]);
        assert_eq!(names.collect::<HashSet<_>>().len(), 2 * PointAction::ALL.len());
    }

    #[test]
    fn the_community_cannot_report_what_is_paid_for() {
        let reported = PointAction::ALL
            .into_iter()
            .filter(|action| PointAction::parse_of_community(action.as_str()).is_some());
        assert_eq!(
            reported.collect::<Vec<_>>(),
            [PointAction::Post, PointAction::Comment, PointAction::NewsArticle]
        );
        assert!(reported_without_limit().is_empty());
    }

    fn reported_without_limit() -> Vec<PointAction> {
        let reported = PointAction::ALL.into_iter();
        let reported = reported.filter(|a| PointAction::parse_of_community(a.as_str()).is_some());
        reported.filter(|action| action.per_day_max().is_none()).collect()
    }
}
