//! Venues, their halls, and the seats of a hall.

use urr_kernel::{Timestamp, define_id};
use urr_layout::{Grid, InvalidGrid, InvalidLayout, Layout};
use urr_storage::storable_id;

define_id!(
    /// Which venue.
    VenueId
);
define_id!(
    /// Which hall.
    HallId
);
storable_id!(VenueId, HallId);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Venue {
    pub id: VenueId,
    pub name: String,
    pub address: String,
    pub description: String,
    pub created_at: Timestamp,
}

/// A hall of a venue, with its seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hall {
    pub id: HallId,
    pub venue_id: VenueId,
    pub name: String,
    pub description: String,
    pub template: SeatTemplate,
    pub created_at: Timestamp,
}

/// A hall without its seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HallSummary {
    pub id: HallId,
    pub venue_id: VenueId,
    pub name: String,
    pub description: String,
    pub seats_total: u32,
    /// In the order of the layout.
    pub grades: Vec<String>,
    pub created_at: Timestamp,
}

impl Hall {
    pub fn summary(&self) -> HallSummary {
        let layout = self.template.layout();
        HallSummary {
            id: self.id,
            venue_id: self.venue_id,
            name: self.name.clone(),
            description: self.description.clone(),
            seats_total: layout.seat_count(),
            grades: layout.grades().into_iter().map(str::to_owned).collect(),
            created_at: self.created_at,
        }
    }
}

/// The seats of a hall: the layout, and the grid it was made from, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatTemplate {
    layout: Layout,
    grid: Option<Grid>,
}

/// The domain event of a new event contains the layout, and it may have 256 KiB at most.
pub const LAYOUT_BYTES_MAX: usize = 200_000;
pub const GRADES_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    #[error(transparent)]
    Grid(#[from] InvalidGrid),
    #[error(transparent)]
    Layout(#[from] InvalidLayout),
    #[error("The layout has more than {GRADES_MAX} grades.")]
    TooManyGrades,
    #[error("The layout is longer than {LAYOUT_BYTES_MAX} bytes. Shorter names would help.")]
    TooLong,
}

impl SeatTemplate {
    pub fn from_layout(layout: Layout) -> Result<SeatTemplate, InvalidTemplate> {
        SeatTemplate::checked(layout, None)
    }

    pub fn from_grid(grid: Grid) -> Result<SeatTemplate, InvalidTemplate> {
        SeatTemplate::checked(grid.to_layout()?, Some(grid))
    }

    fn checked(layout: Layout, grid: Option<Grid>) -> Result<SeatTemplate, InvalidTemplate> {
        layout.check()?;
        if layout.grades().len() > GRADES_MAX {
            return Err(InvalidTemplate::TooManyGrades);
        }
        let bytes = serde_json::to_vec(&layout).expect("a layout is a plain struct").len();
        if bytes > LAYOUT_BYTES_MAX {
            return Err(InvalidTemplate::TooLong);
        }
        Ok(SeatTemplate { layout, grid })
    }

    /// A template from the database, which was checked before it was stored.
    pub(crate) fn stored(layout: Layout, grid: Option<Grid>) -> SeatTemplate {
        SeatTemplate { layout, grid }
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn grid(&self) -> Option<&Grid> {
        self.grid.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use urr_layout::{GradeRows, SeatRow, Section};

    use super::*;

    fn section(name: String, grade: String, rows: usize, label_chars: usize) -> Section {
        let row = |number: usize| SeatRow {
            label: format!("{number:0label_chars$}"),
            seats: 10,
            first_number: 1,
            accessible: Vec::new(),
            restricted_view: Vec::new(),
        };
        Section {
            name,
            grade,
            x: 0,
            y: 0,
            angle_degrees: 0,
            curve_radius: 0,
            seat_pitch: 50,
            row_pitch: 90,
            rows: (1..=rows).map(row).collect(),
        }
    }

    #[test]
    fn a_template_is_small_enough_to_be_announced() {
        let wordy = |chars| Layout {
            sections: vec![section("A".to_owned(), "VIP".to_owned(), 4_000, chars)],
        };
        assert!(SeatTemplate::from_layout(wordy(4)).is_ok());
        assert_eq!(SeatTemplate::from_layout(wordy(50)), Err(InvalidTemplate::TooLong));
        let graded = |count: usize| {
            let sections = (0..count).map(|i| section(format!("S{i}"), format!("G{i}"), 1, 1));
            Layout { sections: sections.collect() }
        };
        assert!(SeatTemplate::from_layout(graded(GRADES_MAX)).is_ok());
        let many = SeatTemplate::from_layout(graded(GRADES_MAX + 1));
        assert_eq!(many, Err(InvalidTemplate::TooManyGrades));
    }

    #[test]
    fn a_grid_that_is_no_hall_is_refused() {
        let vip = |to_row| vec![GradeRows { grade: "VIP".to_owned(), from_row: 1, to_row }];
        let grid =
            |rows, seats_per_row, to_row| Grid { rows, seats_per_row, grade_mapping: vip(to_row) };
        assert!(SeatTemplate::from_grid(grid(5, 4, 5)).is_ok());
        for wrong in [grid(5, 4, 4), grid(5, 0, 5), grid(0, 4, 0), grid(u16::MAX, 500, u16::MAX)] {
            assert!(SeatTemplate::from_grid(wrong).is_err());
        }
    }
}
