//! The line beside a plain list of the same people.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Pop(usize),
    Remove(prop::sample::Index),
    /// Every so many leave, from here on: holes, and chunks that share little.
    Thin {
        from: prop::sample::Index,
        every: usize,
    },
    /// All between these leave: chunks in the middle that are empty.
    Cut(prop::sample::Index, prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        4 => (1_usize..700).prop_map(Step::Push),
        2 => (1_usize..300).prop_map(Step::Pop),
        2 => index().prop_map(Step::Remove),
        2 => (index(), 1_usize..5).prop_map(|(from, every)| Step::Thin { from, every }),
        1 => (index(), index()).prop_map(|(from, to)| Step::Cut(from, to)),
    ];
    prop::collection::vec(step, 1..24)
}

/// A line, and what it should be.
struct Pair {
    line: WaitingLine,
    plain: Vec<LineEntry>,
    last_number: i64,
}

fn empty() -> Pair {
    let line = WaitingLine::new(DefaultHashBuilder::default());
    Pair { line, plain: Vec::new(), last_number: 0 }
}

fn person(number: i64) -> LineEntry {
    // Ids in no order.
    let user_id = Uuid::from_u128(u128::from(number.unsigned_abs()).wrapping_mul(0x9e37_79b9));
    LineEntry { user_id, number, arrival: number, seen_at_us: 0 }
}

impl Pair {
    fn push(&mut self) {
        self.last_number += 1;
        self.line.push(person(self.last_number));
        self.plain.push(person(self.last_number));
    }

    fn remove(&mut self, index: usize) {
        let entry = self.plain.remove(index);
        assert_eq!(self.line.remove(entry.user_id), Some(entry));
        assert_eq!(self.line.remove(entry.user_id), None, "they are gone");
    }

    fn step(&mut self, step: &Step) {
        let length = self.plain.len();
        match step {
            Step::Push(count) => (0..*count).for_each(|_| self.push()),
            Step::Pop(count) => {
                for entry in self.plain.drain(..length.min(*count)) {
                    assert_eq!(self.line.pop_front(), Some(entry));
                }
            }
            _ if length == 0 => assert_eq!(self.line.pop_front(), None),
            Step::Remove(index) => self.remove(index.index(length)),
            Step::Thin { from, every } => {
                let those = (from.index(length)..length).rev().step_by(*every);
                those.for_each(|index| self.remove(index));
            }
            Step::Cut(one, other) => {
                let (one, other) = (one.index(length), other.index(length));
                (one.min(other)..one.max(other)).rev().for_each(|index| self.remove(index));
            }
        }
    }

    fn assert_agrees(&self) {
        let line = &self.line;
        assert_eq!(line.len() as usize, self.plain.len());
        assert!(line.behind(None).eq(&self.plain));
        for (entry, position) in self.plain.iter().zip(1..) {
            let at = line.find(entry.user_id).unwrap();
            assert_eq!((line.entry(at), line.position(at)), (entry, position));
            assert_eq!(line.nth(position), Some(entry));
        }
        assert_eq!((line.nth(0), line.nth(line.len() + 1)), (None, None));
        assert_eq!(line.find(Uuid::max()), None);
        for index in (0..self.plain.len()).step_by(97) {
            let behind = line.behind(Some(self.plain[index].key()));
            assert!(behind.eq(&self.plain[index + 1..]));
        }
        // But the last two: the last one is still being filled.
        for rank in 0..line.order.len().saturating_sub(2) {
            let count = line.count_in(rank) + line.count_in(rank + 1);
            assert!(count > MERGED_MAX, "neighbours that share little are merged");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_line_agrees_with_a_plain_list(steps in steps()) {
        let mut pair = empty();
        for step in &steps {
            pair.step(step);
            pair.assert_agrees();
        }
    }
}

/// Without merging, a line of which one in ten stayed would take ten times as much for each.
#[test]
fn those_who_left_take_no_memory() {
    let mut line =
        WaitingLine::of((1..=100_000).map(person).collect(), DefaultHashBuilder::default());
    let full = line.bytes();
    assert!(full < 100_000 * 60, "{full}");
    for number in (1..=100_000).filter(|number| number % 10 != 0) {
        line.remove(person(number).user_id).unwrap();
    }
    assert_eq!(line.len(), 10_000);
    assert!(line.bytes() < full / 3, "{} of {full}", line.bytes());
    while line.pop_front().is_some() {}
    assert!(line.bytes() < 60_000, "{}", line.bytes());
    line.push(person(200_000));
    assert_eq!(line.position(line.find(person(200_000).user_id).unwrap()), 1);
}

/// Places in line are reused for ever: nothing runs out, however many come and go behind someone
/// who stays.
#[test]
fn a_line_does_not_grow_by_those_who_come_and_go() {
    let mut line = WaitingLine::of((1..=300).map(person).collect(), DefaultHashBuilder::default());
    let before = line.bytes();
    for number in 301..=200_000 {
        line.push(person(number));
        line.remove(person(number - 299).user_id).unwrap();
    }
    assert_eq!((line.len(), line.nth(1)), (300, Some(&person(1))));
    assert!(line.bytes() < 3 * before, "{} after {before}", line.bytes());
    assert!(line.chunks.len() < 12, "{}", line.chunks.len());
}

#[test]
fn being_seen_is_noted() {
    let mut line = WaitingLine::of(vec![person(1), person(2)], DefaultHashBuilder::default());
    let at = line.find(person(2).user_id).unwrap();
    line.mark_seen(at, 17);
    assert_eq!(line.entry(at).seen_at_us, 17);
    assert_eq!(line.nth(1), Some(&person(1)));
}

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
