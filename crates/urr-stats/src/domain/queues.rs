//! The numbers of a waiting room in an hour.

use super::Hour;

/// Totals count from the opening of the room; [`hourly_differences`] makes them those of an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueHour {
    pub waiting_max: i64,
    pub inside_max: i64,
    pub joined_total: i64,
    pub admitted_total: i64,
    pub left_total: i64,
}

/// The hours of a room with what each of them added. A total below the one before belongs to a room
/// that was opened again. The first hour keeps its total, because nothing before it is known.
pub fn hourly_differences(hours: Vec<(Hour, QueueHour)>) -> Vec<(Hour, QueueHour)> {
    let mut before = QueueHour::default();
    let mut added = Vec::with_capacity(hours.len());
    for (hour, observed) in hours {
        let less = |total: i64, before: i64| if total < before { total } else { total - before };
        added.push((
            hour,
            QueueHour {
                joined_total: less(observed.joined_total, before.joined_total),
                admitted_total: less(observed.admitted_total, before.admitted_total),
                left_total: less(observed.left_total, before.left_total),
                ..observed
            },
        ));
        before = observed;
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_what_it_added_and_a_room_that_is_opened_again_begins_at_zero() {
        let hour = |hour| Hour { day: jiff::civil::date(2026, 11, 15), hour };
        let observed = |joined_total| QueueHour { joined_total, ..QueueHour::default() };
        let hours =
            vec![(hour(9), observed(40)), (hour(10), observed(100)), (hour(11), observed(7))];
        let added: Vec<i64> =
            hourly_differences(hours).iter().map(|(_, hour)| hour.joined_total).collect();
        assert_eq!(added, [40, 60, 7]);
    }
}
