//! The position of a seat: its section, row and number.

use crate::{Layout, SeatRow, Section};

/// A seat's number within its layout, from 0.
pub type SeatId = u32;

/// A seat with its section and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatPosition<'a> {
    pub id: SeatId,
    pub section: &'a Section,
    pub row: &'a SeatRow,
    /// The number on the seat.
    pub number: u16,
}

impl SeatPosition<'_> {
    /// As it is printed on the ticket: `1층 A-12-7`.
    pub fn label(&self) -> String {
        format!("{}-{}-{}", self.section.name, self.row.label, self.number)
    }

    pub fn is_accessible(&self) -> bool {
        self.row.accessible.contains(&self.number)
    }

    pub fn has_restricted_view(&self) -> bool {
        self.row.restricted_view.contains(&self.number)
    }
}

impl Layout {
    /// The position of a seat; none if the layout does not have it.
    pub fn place(&self, id: SeatId) -> Option<SeatPosition<'_>> {
        let mut first = 0;
        for section in &self.sections {
            let count = section.seat_count();
            if id < first + count {
                return section.place(id, first);
            }
            first += count;
        }
        None
    }

    /// Every row with the id of its leftmost seat.
    pub fn rows(&self) -> impl Iterator<Item = (SeatId, &Section, &SeatRow)> {
        let mut first = 0;
        let rows = self.sections.iter().flat_map(|s| s.rows.iter().map(move |row| (s, row)));
        rows.map(move |(section, row)| {
            let id = first;
            first += u32::from(row.seats);
            (id, section, row)
        })
    }
}

impl Section {
    fn place(&self, id: SeatId, mut first: SeatId) -> Option<SeatPosition<'_>> {
        for row in &self.rows {
            let offset = id - first;
            match u16::try_from(offset) {
                Ok(offset) if offset < row.seats => {
                    return Some(SeatPosition {
                        id,
                        section: self,
                        row,
                        number: row.number_at(offset),
                    });
                }
                _ => first += u32::from(row.seats),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_numbered_by_section_row_and_place() {
        let text = r#"{"sections": [
            {"name": "A", "grade": "VIP", "rows": [{"label": "1", "seats": 2}, {"label": "2", "seats": 1}]},
            {"name": "B", "grade": "R", "rows": [
                {"label": "7", "seats": 2, "firstNumber": 11, "accessible": [12], "restrictedView": [11]}]}
        ]}"#;
        let layout: Layout = serde_json::from_str(text).expect("it is a layout");
        assert_eq!(layout.seat_count(), 5);
        assert_eq!(layout.grades(), ["VIP", "R"]);
        let labels: Vec<String> =
            (0..5).map(|id| layout.place(id).expect("it exists").label()).collect();
        assert_eq!(labels, ["A-1-1", "A-1-2", "A-2-1", "B-7-11", "B-7-12"]);
        assert_eq!(layout.place(5), None);
        assert_eq!(layout.place(u32::MAX), None);
        let (left, right) = (layout.place(3).expect("3"), layout.place(4).expect("4"));
        assert!(left.has_restricted_view() && !left.is_accessible());
        assert!(right.is_accessible() && !right.has_restricted_view());
        let rows: Vec<_> = layout.rows().map(|(id, s, row)| (id, &*s.name, &*row.label)).collect();
        assert_eq!(rows, [(0, "A", "1"), (2, "A", "2"), (3, "B", "7")]);
    }

    #[test]
    fn numbers_may_fall_and_may_be_odd_on_one_side() {
        let text = r#"{"sections": [{"name": "A", "grade": "R", "rows": [
            {"label": "1", "seats": 3, "firstNumber": 3, "numberStep": -1},
            {"label": "2", "seats": 3, "firstNumber": 5, "numberStep": -2, "accessible": [3]}]}]}"#;
        let layout: Layout = serde_json::from_str(text).expect("it is a layout");
        assert_eq!(layout.check(), Ok(()));
        let numbers: Vec<u16> =
            (0..6).map(|id| layout.place(id).expect("it exists").number).collect();
        assert_eq!(numbers, [3, 2, 1, 5, 3, 1]);
        assert!(layout.place(4).expect("it exists").is_accessible());
    }
}
