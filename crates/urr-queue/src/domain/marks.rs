//! A user's position from the crowd document: their number between the marked positions of the line.

use std::ops::RangeInclusive;

use urr_room::LinePosition;

/// The range of positions for this number, if the user was in the line when the marks were made or
/// joined later. None if the line began behind the number or was empty.
///
/// Numbers rise along the line and are unique. So the position is exact at a mark, and wherever no
/// user has left between two marks.
pub fn position_bounds(marks: &[LinePosition], number: i64) -> Option<RangeInclusive<u32>> {
    let behind = marks.partition_point(|mark| mark.number <= number);
    let before = marks[..behind].last()?;
    if before.number == number {
        return Some(before.position..=before.position);
    }
    let steps = |from: i64, to: i64| u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
    let nearest = before.position.saturating_add(1);
    let farthest = before.position.saturating_add(steps(before.number, number));
    match marks.get(behind) {
        None => Some(nearest..=farthest),
        Some(after) => {
            let nearest = nearest.max(after.position.saturating_sub(steps(number, after.number)));
            Some(nearest..=farthest.min(after.position.saturating_sub(1)))
        }
    }
}

/// No user among the first `count` has a higher number, as far as the marks tell.
pub fn number_max(marks: &[LinePosition], count: u32) -> i64 {
    let within = marks.partition_point(|mark| mark.position <= count);
    marks.get(within).map_or(i64::MAX, |behind| behind.number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line of these numbers in which every `step`th and the last are marked.
    fn marks_of(numbers: &[i64], step: usize) -> Vec<LinePosition> {
        let line = (1_u32..).zip(numbers);
        let last = numbers.len();
        line.filter(|(position, _)| {
            let index = *position as usize - 1;
            index.is_multiple_of(step) || index + 1 == last
        })
        .map(|(position, number)| LinePosition { number: *number, position })
        .collect()
    }

    #[test]
    fn where_nobody_left_the_position_is_exact() {
        let numbers: Vec<i64> = (101..=200).collect();
        let marks = marks_of(&numbers, 10);
        for (position, number) in (1_u32..).zip(&numbers) {
            assert_eq!(position_bounds(&marks, *number), Some(position..=position));
        }
    }

    #[test]
    fn who_was_let_in_is_not_in_line_and_who_came_later_stands_behind_it() {
        let marks = marks_of(&[7, 9, 20], 1);
        assert_eq!(position_bounds(&marks, 6), None);
        assert_eq!(position_bounds(&marks, 21), Some(4..=4));
        assert_eq!(position_bounds(&marks, 25), Some(4..=8));
        assert_eq!(position_bounds(&[], 25), None);
    }

    #[test]
    fn those_who_left_between_two_marks_make_it_a_range() {
        // 11 to 20 came; 12 to 18 left.
        let marks = marks_of(&[11, 19, 20], 2);
        assert_eq!(marks.len(), 2);
        assert_eq!(position_bounds(&marks, 19), Some(2..=2));
        // Of 11, 13, 16, 20 only the ends are marked.
        let marks = marks_of(&[11, 13, 16, 20], 3);
        assert_eq!(position_bounds(&marks, 13), Some(2..=3));
        assert_eq!(position_bounds(&marks, 16), Some(2..=3));
    }

    #[test]
    fn nobody_among_the_first_has_a_higher_number_than_the_next_mark() {
        let marks = marks_of(&[-3, -1, 2, 7, 9, 12], 2);
        assert_eq!(number_max(&marks, 0), -3);
        assert_eq!(number_max(&marks, 1), 2);
        assert_eq!(number_max(&marks, 2), 2);
        assert_eq!(number_max(&marks, 4), 9);
        assert_eq!(number_max(&marks, 6), i64::MAX, "and who comes behind them");
        assert_eq!(number_max(&[], 0), i64::MAX, "those who were in line are not any more");
    }

    proptest! {
        /// Everybody's true position lies within what the marks tell them; nobody is told a range
        /// that is wider than the gap between two marks.
        #[test]
        fn the_bounds_are_right_for_everybody(
            numbers in prop::collection::btree_set(-50_000_i64..50_000, 1..600),
            step in 1_usize..60,
        ) {
            let numbers: Vec<i64> = numbers.into_iter().collect();
            let marks = marks_of(&numbers, step);
            for (position, number) in (1_u32..).zip(&numbers) {
                let bounds = position_bounds(&marks, *number).expect("they are in line");
                prop_assert!(bounds.contains(&position), "{number}: {position} {bounds:?}");
                let width = bounds.end() - bounds.start();
                prop_assert!((width as usize) < step, "{number}: {bounds:?}");
            }
        }
    }
}
