//! A grid: the simple description of a hall with equal rows and a grade per range of rows.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Layout, SeatRow, Section};

const ROW_PITCH: i32 = 90;

/// Equal rows behind each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Grid {
    #[schema(minimum = 1, maximum = 5_000)]
    pub rows: u16,
    #[schema(minimum = 1, maximum = 500)]
    pub seats_per_row: u16,
    /// Every row belongs to one of these ranges, front to back.
    pub grade_mapping: Vec<GradeRows>,
}

/// The rows of a grade, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GradeRows {
    #[schema(max_length = 50, example = "VIP")]
    pub grade: String,
    pub from_row: u16,
    pub to_row: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The grades must cover the rows 1 to {rows} without gap or overlap, front to back.")]
pub struct InvalidGrid {
    pub rows: u16,
}

impl Grid {
    /// A section per range, named after its grade.
    pub fn to_layout(&self) -> Result<Layout, InvalidGrid> {
        let invalid = InvalidGrid { rows: self.rows };
        let mut next_row = 1;
        let mut sections: Vec<Section> = Vec::new();
        for range in &self.grade_mapping {
            if range.from_row != next_row || range.to_row < range.from_row {
                return Err(invalid);
            }
            let row = |number: u16| SeatRow {
                label: number.to_string(),
                seats: self.seats_per_row,
                first_number: 1,
                number_step: 1,
                offset: 0,
                accessible: Vec::new(),
                restricted_view: Vec::new(),
            };
            let y = i32::from(range.from_row) * ROW_PITCH;
            let twins = sections.iter().filter(|section| section.grade == range.grade).count();
            let name = match twins {
                0 => range.grade.clone(),
                _ => format!("{} {}", range.grade, twins + 1),
            };
            sections.push(Section {
                name,
                grade: range.grade.clone(),
                x: 0,
                y,
                angle_degrees: 0,
                curve_radius: 0,
                seat_pitch: 50,
                row_pitch: 90,
                view_image_url: None,
                rows: (range.from_row..=range.to_row.min(self.rows)).map(row).collect(),
            });
            next_row = range.to_row.checked_add(1).ok_or(invalid)?;
        }
        if u32::from(next_row) != u32::from(self.rows) + 1 {
            return Err(invalid);
        }
        Ok(Layout { sections })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(ranges: &[(&str, u16, u16)]) -> Grid {
        let range = |&(grade, from_row, to_row): &(&str, u16, u16)| GradeRows {
            grade: grade.to_owned(),
            from_row,
            to_row,
        };
        Grid { rows: 5, seats_per_row: 4, grade_mapping: ranges.iter().map(range).collect() }
    }

    #[test]
    fn a_grid_becomes_a_section_per_range() {
        let layout = grid(&[("VIP", 1, 2), ("R", 3, 4), ("VIP", 5, 5)]).to_layout().expect("whole");
        assert_eq!(layout.check(), Ok(()));
        assert_eq!(layout.seat_count(), 20);
        let names: Vec<_> = layout.sections.iter().map(|s| (&*s.name, s.rows.len())).collect();
        assert_eq!(names, [("VIP", 2), ("R", 2), ("VIP 2", 1)]);
        assert_eq!(layout.place(8).expect("it exists").label(), "R-3-1");
    }

    #[test]
    fn grades_that_do_not_cover_the_rows_are_refused() {
        for ranges in [
            &[][..],
            &[("VIP", 1, 4)],
            &[("VIP", 1, 6)],
            &[("VIP", 2, 5)],
            &[("VIP", 1, 2), ("R", 2, 5)],
            &[("VIP", 1, 2), ("R", 4, 5)],
            &[("VIP", 1, u16::MAX)],
            &[("VIP", 3, 1), ("R", 2, 5)],
        ] {
            assert!(grid(ranges).to_layout().is_err(), "{ranges:?}");
        }
    }
}
