//! One pass over the outbox from its beginning, past rows that cannot be published.

use std::collections::HashSet;

use urr_storage::outbox::OutboxRow;

/// With more keys than this, whole topics are held back, to bound the memory.
const KEYS_HELD_BACK_MAX: usize = 10_000;

/// How far a reading came. It is forgotten at its end, so that what was committed late is found.
#[derive(Default)]
pub(super) struct OutboxPass {
    /// All that was committed up to this number was read.
    pub(super) seq: i64,
    /// How many rows up to there were not published.
    pub(super) passed: u64,
    /// Topic and key of what could not be published: what follows must not overtake it.
    keys: HashSet<(String, String)>,
    topics: HashSet<String>,
}

impl OutboxPass {
    /// Whether all that was read was published.
    pub(super) fn is_clean(&self) -> bool {
        self.passed == 0
    }

    /// Moves behind a page of rows, and gives those that may be published.
    pub(super) fn take(&mut self, page: Vec<OutboxRow>) -> Vec<OutboxRow> {
        self.seq = page.last().map_or(self.seq, |row| row.seq);
        let (held_back, free): (Vec<_>, Vec<_>) =
            page.into_iter().partition(|row| self.holds_back(row));
        self.passed += u64::try_from(held_back.len()).expect("a page is small");
        free
    }

    fn holds_back(&self, row: &OutboxRow) -> bool {
        self.topics.contains(&row.topic)
            || self.keys.contains(&(row.topic.clone(), row.key.clone()))
    }

    pub(super) fn note_failure(&mut self, row: &OutboxRow) {
        self.passed += 1;
        if self.keys.len() < KEYS_HELD_BACK_MAX {
            self.keys.insert((row.topic.clone(), row.key.clone()));
        } else {
            self.topics.insert(row.topic.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: i64, topic: &str, key: &str) -> OutboxRow {
        OutboxRow { seq, topic: topic.to_owned(), key: key.to_owned(), body: String::new() }
    }

    #[test]
    fn what_follows_a_failure_of_its_key_is_passed_and_counted() {
        let mut pass = OutboxPass::default();
        let page = vec![row(1, "t", "a"), row(2, "t", "b")];
        assert_eq!(pass.take(page.clone()), page);
        assert!(pass.is_clean());
        pass.note_failure(&page[0]);
        let free = pass.take(vec![row(3, "t", "a"), row(4, "t", "b"), row(5, "u", "a")]);
        assert_eq!(free, [row(4, "t", "b"), row(5, "u", "a")]);
        assert_eq!((pass.seq, pass.passed), (5, 2));
    }

    #[test]
    fn with_too_many_keys_the_topic_is_held_back_and_others_are_not() {
        let mut pass = OutboxPass::default();
        for seq in 1..=10_001 {
            pass.note_failure(&row(seq, "t", &seq.to_string()));
        }
        assert_eq!(pass.keys.len(), 10_000);
        let free = pass.take(vec![row(10_002, "t", "new"), row(10_003, "u", "new")]);
        assert_eq!(free, [row(10_003, "u", "new")]);
    }
}
