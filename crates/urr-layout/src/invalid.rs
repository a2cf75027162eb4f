//! Validation of layouts.

use std::collections::HashSet;

use urr_kernel::fits_in_line;

use crate::{
    Layout, NAME_CHARS_MAX, ROWS_MAX, SEATS_MAX, SEATS_PER_ROW_MAX, SECTIONS_MAX, SeatRow, Section,
};

const NUMBER_MAX: u16 = 9_999;
const COORDINATE_MAX: u32 = 1_000_000;

/// The first mistake in a layout, as a sentence for the administrator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLayout {
    #[error("The layout has no section.")]
    NoSection,
    #[error("The layout has more than {SECTIONS_MAX} sections.")]
    TooManySections,
    #[error("The layout has more than {ROWS_MAX} rows.")]
    TooManyRows,
    #[error("The layout has more than {SEATS_MAX} seats.")]
    TooManySeats,
    #[error("{0:?} is not fit as a name: 1 to {NAME_CHARS_MAX} characters that can be shown.")]
    Name(String),
    #[error("Two sections are called {0:?}.")]
    SameSection(String),
    #[error("Section {0:?} has no row.")]
    NoRow(String),
    #[error("Section {section:?} has two rows {row:?}.")]
    SameRow { section: String, row: String },
    #[error("Row {row:?} of section {section:?} needs 1 to {SEATS_PER_ROW_MAX} seats.")]
    RowSize { section: String, row: String },
    #[error("Row {row:?} of section {section:?}: seat numbers go from 1 to {NUMBER_MAX}.")]
    SeatNumber { section: String, row: String },
    #[error("Row {row:?} of section {section:?}: seat numbers go on by 1 or 2, up or down.")]
    NumberStep { section: String, row: String },
    #[error("Row {row:?} of section {section:?} has no seat {number}.")]
    NoSuchSeat { section: String, row: String, number: u16 },
    #[error("Section {0:?} is drawn out of bounds.")]
    Drawing(String),
    #[error("The picture of section {0:?} must be one that was uploaded here.")]
    Picture(String),
}

impl Layout {
    /// Whether its seats can be sold.
    pub fn check(&self) -> Result<(), InvalidLayout> {
        if self.sections.is_empty() {
            return Err(InvalidLayout::NoSection);
        }
        if self.sections.len() > SECTIONS_MAX {
            return Err(InvalidLayout::TooManySections);
        }
        if self.sections.iter().map(|section| section.rows.len()).sum::<usize>() > ROWS_MAX {
            return Err(InvalidLayout::TooManyRows);
        }
        let mut names = HashSet::new();
        for section in &self.sections {
            if !names.insert(&section.name) {
                return Err(InvalidLayout::SameSection(section.name.clone()));
            }
            section.check()?;
        }
        if self.seat_count() > SEATS_MAX {
            return Err(InvalidLayout::TooManySeats);
        }
        Ok(())
    }
}

impl Section {
    fn check(&self) -> Result<(), InvalidLayout> {
        check_name(&self.name)?;
        check_name(&self.grade)?;
        if self.rows.is_empty() {
            return Err(InvalidLayout::NoRow(self.name.clone()));
        }
        let lengths = [self.x.unsigned_abs(), self.y.unsigned_abs(), self.curve_radius];
        let offsets = self.rows.iter().map(|row| row.offset.unsigned_abs());
        let is_far = lengths.into_iter().chain(offsets).any(|length| length > COORDINATE_MAX);
        let is_flat = self.seat_pitch == 0 || self.row_pitch == 0;
        if is_far || is_flat || !(-180..=180).contains(&self.angle_degrees) {
            return Err(InvalidLayout::Drawing(self.name.clone()));
        }
        if !self.view_image_url.as_deref().is_none_or(is_own_image) {
            return Err(InvalidLayout::Picture(self.name.clone()));
        }
        let mut labels = HashSet::new();
        for row in &self.rows {
            if !labels.insert(&row.label) {
                let (section, row) = (self.name.clone(), row.label.clone());
                return Err(InvalidLayout::SameRow { section, row });
            }
            row.check(&self.name)?;
        }
        Ok(())
    }
}

impl SeatRow {
    fn check(&self, section: &str) -> Result<(), InvalidLayout> {
        check_name(&self.label)?;
        let (section, row) = (section.to_owned(), self.label.clone());
        if !(1..=SEATS_PER_ROW_MAX).contains(&self.seats) {
            return Err(InvalidLayout::RowSize { section, row });
        }
        if ![1, 2].contains(&self.number_step.unsigned_abs()) {
            return Err(InvalidLayout::NumberStep { section, row });
        }
        let ends = [self.number_of(0), self.number_of(self.seats - 1)];
        if ends.iter().any(|number| !(1..=i32::from(NUMBER_MAX)).contains(number)) {
            return Err(InvalidLayout::SeatNumber { section, row });
        }
        let numbers: HashSet<u16> = (0..self.seats).map(|index| self.number_at(index)).collect();
        let mut named = self.accessible.iter().chain(&self.restricted_view);
        match named.find(|number| !numbers.contains(number)) {
            Some(&number) => Err(InvalidLayout::NoSuchSeat { section, row, number }),
            None => Ok(()),
        }
    }
}

/// Pictures of other hosts would tell them who looks at which seats.
fn is_own_image(url: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let id = url.strip_prefix("/api/image/");
    id.is_some_and(|id| id.len() == 64 && id.bytes().all(is_hex))
}

fn check_name(name: &str) -> Result<(), InvalidLayout> {
    let is_fit = !name.trim().is_empty()
        && name.trim().len() == name.len()
        && name.chars().count() <= NAME_CHARS_MAX
        && name.chars().all(fits_in_line);
    if is_fit { Ok(()) } else { Err(InvalidLayout::Name(name.chars().take(60).collect())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let text = r#"{"sections": [
            {"name": "A", "grade": "VIP", "rows": [{"label": "1", "seats": 3}]},
            {"name": "B", "grade": "R", "rows": [
                {"label": "1", "seats": 2, "firstNumber": 11, "accessible": [11]}]}
        ]}"#;
        serde_json::from_str(text).expect("it is a layout")
    }

    /// What the check says after a change to a good layout.
    fn after(change: impl FnOnce(&mut Layout)) -> Result<(), InvalidLayout> {
        let mut layout = layout();
        change(&mut layout);
        layout.check()
    }

    #[test]
    fn a_layout_that_can_be_sold_passes() {
        assert_eq!(after(|_| {}), Ok(()));
    }

    #[test]
    fn a_view_from_a_section_is_a_picture_of_our_own() {
        let with = |url: String| after(|l| l.sections[0].view_image_url = Some(url));
        let own = format!("/api/image/{}", "0a".repeat(32));
        assert_eq!(with(own.clone()), Ok(()));
        for other in ["", "https://example.com/a.png", "/api/image/0a", &format!("{own}?x=1")] {
            let refused = Err(InvalidLayout::Picture("A".to_owned()));
            assert_eq!(with(other.to_owned()), refused, "{other}");
        }
    }

    #[test]
    fn what_cannot_be_sold_is_refused_with_its_reason() {
        let (section, row) = ("A".to_owned(), "1".to_owned());
        assert_eq!(after(|l| l.sections.clear()), Err(InvalidLayout::NoSection));
        let name = |text: &str| Err(InvalidLayout::Name(text.to_owned()));
        assert_eq!(after(|l| l.sections[0].name = " ".into()), name(" "));
        assert_eq!(after(|l| l.sections[0].name = "A ".into()), name("A "));
        assert_eq!(after(|l| l.sections[0].grade = "a\nb".into()), name("a\nb"));
        let same = Err(InvalidLayout::SameSection("A".into()));
        assert_eq!(after(|l| l.sections[1].name = "A".into()), same);
        assert_eq!(after(|l| l.sections[0].rows.clear()), Err(InvalidLayout::NoRow("A".into())));
        let twice = |l: &mut Layout| {
            let row = l.sections[0].rows[0].clone();
            l.sections[0].rows.push(row);
        };
        let same = InvalidLayout::SameRow { section: section.clone(), row: row.clone() };
        assert_eq!(after(twice), Err(same));
        for seats in [0, SEATS_PER_ROW_MAX + 1] {
            let size = InvalidLayout::RowSize { section: section.clone(), row: row.clone() };
            assert_eq!(after(|l| l.sections[0].rows[0].seats = seats), Err(size), "{seats}");
        }
        for first in [0, NUMBER_MAX - 1, u16::MAX] {
            let number = InvalidLayout::SeatNumber { section: section.clone(), row: row.clone() };
            assert_eq!(after(|l| l.sections[0].rows[0].first_number = first), Err(number));
        }
        for step in [0, 3, i8::MIN] {
            let step_error =
                InvalidLayout::NumberStep { section: section.clone(), row: row.clone() };
            assert_eq!(after(|l| l.sections[0].rows[0].number_step = step), Err(step_error));
        }
        let falls = InvalidLayout::SeatNumber { section: section.clone(), row: row.clone() };
        assert_eq!(after(|l| l.sections[0].rows[0].number_step = -1), Err(falls));
        let unknown = InvalidLayout::NoSuchSeat { section: "B".into(), row, number: 13 };
        assert_eq!(after(|l| l.sections[1].rows[0].restricted_view = vec![13]), Err(unknown));
        let drawing = || Err(InvalidLayout::Drawing("A".into()));
        assert_eq!(after(|l| l.sections[0].x = i32::MIN), drawing());
        assert_eq!(after(|l| l.sections[0].seat_pitch = 0), drawing());
        assert_eq!(after(|l| l.sections[0].angle_degrees = 181), drawing());
        assert_eq!(after(|l| l.sections[0].rows[0].offset = i32::MIN), drawing());
    }

    #[test]
    fn the_size_of_a_hall_is_bounded() {
        let many_sections = |l: &mut Layout| {
            let section = l.sections[0].clone();
            let named = |i| Section { name: format!("S{i}"), ..section.clone() };
            l.sections = (0..=SECTIONS_MAX).map(named).collect();
        };
        assert_eq!(after(many_sections), Err(InvalidLayout::TooManySections));
        let rows = |count: usize, seats: u16| {
            move |l: &mut Layout| {
                let row = l.sections[0].rows[0].clone();
                let labelled = |i| SeatRow { label: format!("{i}"), seats, ..row.clone() };
                l.sections[0].rows = (0..count).map(labelled).collect();
            }
        };
        assert_eq!(after(rows(ROWS_MAX, 1)), Err(InvalidLayout::TooManyRows));
        assert_eq!(after(rows(199, 500)), Ok(()));
        assert_eq!(after(rows(200, 500)), Err(InvalidLayout::TooManySeats));
    }

    /// The layout editor of the pages checks the same file.
    #[test]
    fn the_shared_examples_say_what_the_editor_says_too() {
        let text = include_str!("../examples.json");
        let examples: Vec<serde_json::Value> = serde_json::from_str(text).expect("it is a list");
        assert!(examples.len() > 20);
        for example in examples {
            let layout: Layout = serde_json::from_value(example["layout"].clone()).expect("parsed");
            let said = layout.check().err().map(|invalid| invalid.to_string());
            assert_eq!(said.as_deref(), example["sentence"].as_str(), "{}", example["name"]);
        }
    }
}
