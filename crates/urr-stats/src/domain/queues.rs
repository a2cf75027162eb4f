//! How a waiting room stood in an hour.

use super::Hour;

/// Totals are since the room was opened, or of an hour alone: see [`since_before`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueHour {
    pub waiting_max: i64,
    pub inside_max: i64,
    pub joined_total: i64,
    pub admitted_total: i64,
    pub left_total: i64,
}

/// Hours of a room with what each of them added. A total that is below the one before is of a room
/// that was opened anew. Of the first hour nobody knows what was before: all of it is its own.
pub fn since_before(hours: Vec<(Hour, QueueHour)>) -> Vec<(Hour, QueueHour)> {
    let mut before = QueueHour::default();
    let mut added = Vec::with_capacity(hours.len());
    for (hour, stood) in hours {
        let less = |total: i64, before: i64| if total < before { total } else { total - before };
        added.push((
            hour,
            QueueHour {
                joined_total: less(stood.joined_total, before.joined_total),
                admitted_total: less(stood.admitted_total, before.admitted_total),
                left_total: less(stood.left_total, before.left_total),
                ..stood
            },
        ));
        before = stood;
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_what_it_added_and_a_room_that_is_opened_anew_begins_at_zero() {
        let hour = |hour| Hour { day: jiff::civil::date(2026, 11, 15), hour };
        let stood = |joined_total| QueueHour { joined_total, ..QueueHour::default() };
        let hours = vec![(hour(9), stood(40)), (hour(10), stood(100)), (hour(11), stood(7))];
        let added: Vec<i64> =
            since_before(hours).iter().map(|(_, hour)| hour.joined_total).collect();
        assert_eq!(added, [40, 60, 7]);
    }
}
