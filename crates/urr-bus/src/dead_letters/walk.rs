//! Iterates over dead letters, however many there are.
//!
//! The mark that a letter was replayed comes later in the same partition. So each range of a
//! partition is read twice, page by page: first to learn which offsets hold letters and which of
//! them were replayed, then for the letters themselves.

use std::collections::{HashMap, VecDeque};

use super::{DeadLetter, GROUP, ORIGINAL, REPLAYED, read};
use crate::reader::{PartitionRange, TopicReader};
use crate::{Bus, BusError, Delivery, MessagePosition};

/// How many letters are in memory at a time: a few ten megabytes. More need another survey.
pub(super) const SURVEY_LETTERS_MAX: usize = 100_000;

/// Letters one after the other, oldest first in each partition.
pub(super) struct DeadLetterWalk<'a> {
    bus: &'a Bus,
    /// What was not surveyed yet.
    ahead: VecDeque<PartitionRange>,
    letters_max: usize,
    survey: PartitionSurvey,
    reader: Option<TopicReader>,
    page: VecDeque<Delivery>,
}

impl<'a> DeadLetterWalk<'a> {
    pub(super) fn new(
        bus: &'a Bus,
        extents: Vec<PartitionRange>,
        letters_max: usize,
    ) -> DeadLetterWalk<'a> {
        let mut ahead = VecDeque::from(extents);
        ahead.retain(|extent| extent.start < extent.end);
        let (survey, page) = (PartitionSurvey::default(), VecDeque::new());
        DeadLetterWalk { bus, ahead, letters_max, survey, reader: None, page }
    }

    pub(super) async fn next(&mut self) -> Result<Option<DeadLetter>, BusError> {
        loop {
            while let Some(delivery) = self.page.pop_front() {
                let known = self.survey.letters.get(&delivery.position.offset);
                if let Some(is_replayed) = known.copied() {
                    return Ok(Some(DeadLetter { is_replayed, ..read(delivery) }));
                }
            }
            if let Some(reader) = &mut self.reader {
                self.page = reader.next_page().await?.into();
                if !self.page.is_empty() {
                    continue;
                }
            }
            let Some(extent) = self.ahead.pop_front() else {
                return Ok(None);
            };
            self.begin(extent).await?;
        }
    }

    /// Surveys the partition from here on, and then goes as far as that reaches.
    async fn begin(&mut self, extent: PartitionRange) -> Result<(), BusError> {
        self.survey = PartitionSurvey::default();
        let mut reader = self.bus.reader(&extent).await?;
        loop {
            let page = reader.next_page().await?;
            if page.is_empty() {
                break;
            }
            page.iter().for_each(|delivery| self.survey.note(delivery, self.letters_max));
        }
        let reached = self.survey.reached.unwrap_or(extent.end);
        let within = PartitionRange { end: reached, ..extent.clone() };
        self.reader = Some(self.bus.reader(&within).await?);
        if reached < extent.end {
            self.ahead.push_front(PartitionRange { start: reached, ..extent });
        }
        Ok(())
    }
}

/// What is known of a stretch of a partition.
///
/// A consumer that crashed before it acknowledged wrote its letter twice: only the first counts, and
/// a mark on any of them. Copies that are further apart than a survey reaches are letters of their
/// own; replaying both has no second effect.
#[derive(Default)]
struct PartitionSurvey {
    /// The letters by offset, and whether each was replayed.
    letters: HashMap<i64, bool>,
    /// The letter of each failure: of a group, with a message.
    letter_of: HashMap<(String, MessagePosition), i64>,
    /// The letter that each of these repeats.
    copies: HashMap<i64, i64>,
    /// The first letter beyond this survey.
    reached: Option<i64>,
}

impl PartitionSurvey {
    /// Takes in the next message of the partition: a letter or a mark.
    fn note(&mut self, delivery: &Delivery, letters_max: usize) {
        if let Some(id) = delivery.headers.get(REPLAYED) {
            self.note_mark(id);
            return;
        }
        let offset = delivery.position.offset;
        let header = |name: &str| delivery.headers.get(name);
        // A letter that is not ours has no original; its own place tells it from others.
        let original = header(ORIGINAL).and_then(|text| text.parse().ok());
        let message = original.unwrap_or_else(|| delivery.position.clone());
        let failure = (header(GROUP).cloned().unwrap_or_default(), message);
        if let Some(first) = self.letter_of.get(&failure) {
            if self.copies.len() < SURVEY_LETTERS_MAX {
                self.copies.insert(offset, *first);
            }
        } else if self.letters.len() < letters_max {
            self.letters.insert(offset, false);
            self.letter_of.insert(failure, offset);
        } else {
            self.reached.get_or_insert(offset);
        }
    }

    fn note_mark(&mut self, id: &str) {
        // It is in the partition of its letter.
        let Ok(MessagePosition { offset, .. }) = id.parse() else {
            return;
        };
        let first = self.copies.get(&offset).unwrap_or(&offset);
        if let Some(is_replayed) = self.letters.get_mut(first) {
            *is_replayed = true;
        }
    }
}
