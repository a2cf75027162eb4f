//! Chooses the marks of a line, from which all positions can be estimated.

use crate::MARKS_MAX;

/// Every position at the front, then in growing steps, and the last one. The steps are as small as
/// the number of marks allows: an eleventh of the position for a million users.
pub fn mark_positions(waiting: u32) -> Vec<u32> {
    let with_steps = |part: u32| {
        let next = move |position: &u32| position.checked_add(1 + position / part);
        let all = std::iter::successors(Some(1), next);
        all.take_while(|position| *position < waiting).take(MARKS_MAX).collect::<Vec<u32>>()
    };
    let parts = [32, 24, 20, 16, 14, 12, 11, 10, 8, 6];
    let few = parts.into_iter().map(with_steps).find(|positions| positions.len() < MARKS_MAX);
    let mut positions = few.expect("a sixth is enough for any number of people");
    positions.extend((waiting > 0).then_some(waiting));
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_begin_dense_and_end_with_the_last_of_the_line() {
        assert!(mark_positions(0).is_empty());
        assert_eq!(mark_positions(1), [1]);
        assert_eq!(mark_positions(9), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for waiting in [2, 10, 11, 1_000, 1_000_000, 50_000_000, u32::MAX] {
            let marks = mark_positions(waiting);
            assert_eq!((marks.first(), marks.last()), (Some(&1), Some(&waiting)));
            assert!(marks.len() <= MARKS_MAX, "{waiting}: {}", marks.len());
            let part = if waiting <= 1_000_000 { 11 } else { 6 };
            assert!(marks.is_sorted_by(|a, b| a < b && b - a <= 1 + a / part), "{waiting}");
        }
    }
}
