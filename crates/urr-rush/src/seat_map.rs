//! Picks free seats from the statuses of a seat map.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::histogram::whole;

/// The statuses of all seats: two bits each, 0 is available.
pub struct SeatStatuses(Vec<u8>);

impl SeatStatuses {
    pub fn decode(text: &str) -> Option<SeatStatuses> {
        STANDARD.decode(text).ok().map(SeatStatuses)
    }

    fn is_free(&self, seat: usize) -> bool {
        self.0.get(seat / 4).is_some_and(|byte| byte >> (2 * (seat % 4)) & 3 == 0)
    }

    /// `count` neighbouring free seats, searched from `position` (between 0 and 1) to the end and
    /// then from the beginning. `seats` is how many the hall has.
    pub fn pick(&self, seats: usize, count: usize, position: f64) -> Option<Vec<usize>> {
        let first = whole(position * seats as f64).min(seats.saturating_sub(1));
        let starts = (first..seats).chain(0..first);
        let fits = |start: &usize| {
            start + count <= seats && (*start..start + count).all(|seat| self.is_free(seat))
        };
        starts.into_iter().find(fits).map(|start| (start..start + count).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seats 1 and 6 of eight are taken.
    fn statuses() -> SeatStatuses {
        SeatStatuses::decode(&STANDARD.encode([0b0000_0100, 0b0010_0000])).unwrap()
    }

    #[test]
    fn neighbours_are_picked_from_the_position_on() {
        let statuses = statuses();
        assert_eq!(statuses.pick(8, 2, 0.0), Some(vec![2, 3]));
        assert_eq!(statuses.pick(8, 2, 0.5), Some(vec![4, 5]));
        assert_eq!(statuses.pick(8, 4, 0.6), Some(vec![2, 3, 4, 5]), "from the beginning again");
        assert_eq!(statuses.pick(8, 5, 0.0), None);
        assert_eq!(statuses.pick(8, 1, 1.0), Some(vec![7]));
    }

    #[test]
    fn seats_behind_the_end_are_not_free() {
        let statuses = statuses();
        assert_eq!(statuses.pick(9, 2, 0.9), Some(vec![2, 3]), "seat 8 is not on the map");
        assert!(SeatStatuses::decode("not base64!").is_none());
    }
}
