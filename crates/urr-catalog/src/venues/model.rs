//! Venues, their halls, and the seats of a hall, as they are entered, stored and shown.

use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid, define_id};
use urr_layout::{Grid, InvalidGrid, InvalidLayout, Layout};
use urr_storage::storable_id;
use utoipa::ToSchema;

use crate::text::{InvalidText, parse_line, parse_paragraphs};

define_id!(
    /// Which venue.
    VenueId
);
define_id!(
    /// Which hall.
    HallId
);
storable_id!(VenueId, HallId);

const NAME_CHARS_MAX: usize = 100;
const ADDRESS_CHARS_MAX: usize = 300;
const DESCRIPTION_CHARS_MAX: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = VenueView)]
pub struct Venue {
    #[schema(value_type = Uuid)]
    pub id: VenueId,
    #[schema(example = "강변 오페라하우스")]
    pub name: String,
    pub address: String,
    pub description: String,
    pub created_at: Timestamp,
}

/// What is entered for a new venue.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = CreateVenueBody)]
pub struct NewVenue {
    #[schema(max_length = 100)]
    pub name: String,
    #[schema(max_length = 300)]
    pub address: String,
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub description: String,
}

/// Fields that are left out keep their value.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = EditVenueBody)]
pub struct VenueChange {
    #[schema(max_length = 100)]
    pub name: Option<String>,
    #[schema(max_length = 300)]
    pub address: Option<String>,
    #[schema(max_length = 2_000)]
    pub description: Option<String>,
}

impl Venue {
    /// Checks and trims what was entered.
    pub fn checked(self) -> Result<Venue, InvalidText> {
        Ok(Venue {
            name: parse_line("name", &self.name, NAME_CHARS_MAX)?,
            address: parse_line("address", &self.address, ADDRESS_CHARS_MAX)?,
            description: parse_paragraphs("description", &self.description, DESCRIPTION_CHARS_MAX)?,
            ..self
        })
    }
}

/// A hall of a venue, with its seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = HallView)]
pub struct Hall {
    #[serde(flatten)]
    pub summary: HallSummary,
    #[serde(flatten)]
    pub template: SeatTemplate,
    /// Grows with every change; an editor compares it.
    pub revision: i64,
    /// How many events use it, deleted ones included. If any does, the seats cannot change.
    #[serde(rename = "eventCount")]
    pub events_total: u32,
}

/// A hall without its seats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = HallSummaryView)]
pub struct HallSummary {
    #[schema(value_type = Uuid)]
    pub id: HallId,
    #[schema(value_type = Uuid)]
    pub venue_id: VenueId,
    #[schema(example = "대극장")]
    pub name: String,
    pub description: String,
    #[serde(rename = "totalSeats")]
    pub seats_total: u32,
    /// The grades, front to back. Each needs a price when an event is created.
    pub grades: Vec<String>,
    /// The organiser or administrator who added it. Not shown: these pages are public.
    #[serde(skip)]
    pub creator_id: Uuid,
    pub created_at: Timestamp,
}

/// The seats are given either as a grid or as a layout.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = CreateHallBody)]
pub struct NewHall {
    #[schema(max_length = 100)]
    pub name: String,
    #[serde(default)]
    #[schema(max_length = 2_000)]
    pub description: String,
    pub grid: Option<Grid>,
    pub layout: Option<Layout>,
}

/// Fields that are left out keep their value. The seats can change only while no event uses them.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = EditHallBody)]
pub struct HallChange {
    #[schema(max_length = 100)]
    pub name: Option<String>,
    #[schema(max_length = 2_000)]
    pub description: Option<String>,
    pub grid: Option<Grid>,
    pub layout: Option<Layout>,
    /// The revision that was edited. If the hall has another one by now, the change is refused.
    pub revision: Option<i64>,
}

impl Hall {
    /// Checks and trims what was entered, and counts the seats.
    pub fn checked(self) -> Result<Hall, InvalidText> {
        let Hall { summary, template, revision, events_total } = self;
        let description = &summary.description;
        let summary = HallSummary {
            name: parse_line("name", &summary.name, NAME_CHARS_MAX)?,
            description: parse_paragraphs("description", description, DESCRIPTION_CHARS_MAX)?,
            seats_total: template.layout.seat_count(),
            grades: template.layout.grades().into_iter().map(str::to_owned).collect(),
            ..summary
        };
        Ok(Hall { summary, template, revision, events_total })
    }
}

/// The seats of a hall: the layout, and the grid it was made from, if any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SeatTemplate {
    #[serde(rename = "layoutConfig")]
    pub layout: Layout,
    pub grid: Option<Grid>,
}

/// The domain event of a new event contains the layout, and it may have 256 KiB at most.
pub const LAYOUT_BYTES_MAX: usize = 200_000;
pub const GRADES_MAX: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    #[error("The seats are missing: give a grid or a layout.")]
    Missing,
    #[error("Give a grid or a layout, not both.")]
    Both,
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
    /// `None` if neither was given.
    pub fn parse(
        grid: Option<Grid>,
        layout: Option<Layout>,
    ) -> Result<Option<SeatTemplate>, InvalidTemplate> {
        let layout = match (&grid, layout) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => return Err(InvalidTemplate::Both),
            (Some(grid), None) => grid.to_layout()?,
            (None, Some(layout)) => layout,
        };
        layout.check()?;
        if layout.grades().len() > GRADES_MAX {
            return Err(InvalidTemplate::TooManyGrades);
        }
        let bytes = serde_json::to_vec(&layout).expect("a layout is a plain struct").len();
        match bytes > LAYOUT_BYTES_MAX {
            true => Err(InvalidTemplate::TooLong),
            false => Ok(Some(SeatTemplate { layout, grid })),
        }
    }
}

#[cfg(test)]
mod tests {
    use urr_layout::{GradeRows, SeatRow, Section};

    use super::*;

    fn from_layout(layout: Layout) -> Result<Option<SeatTemplate>, InvalidTemplate> {
        SeatTemplate::parse(None, Some(layout))
    }

    fn from_grid(grid: Grid) -> Result<Option<SeatTemplate>, InvalidTemplate> {
        SeatTemplate::parse(Some(grid), None)
    }

    fn section(name: String, grade: String, rows: usize, label_chars: usize) -> Section {
        let row = |number: usize| SeatRow {
            label: format!("{number:0label_chars$}"),
            seats: 10,
            first_number: 1,
            number_step: 1,
            offset: 0,
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
            view_image_url: None,
            rows: (1..=rows).map(row).collect(),
        }
    }

    #[test]
    fn a_template_is_small_enough_to_be_announced() {
        let wordy = |chars| Layout {
            sections: vec![section("A".to_owned(), "VIP".to_owned(), 4_000, chars)],
        };
        assert!(from_layout(wordy(4)).is_ok());
        assert_eq!(from_layout(wordy(50)), Err(InvalidTemplate::TooLong));
        let graded = |count: usize| {
            let sections = (0..count).map(|i| section(format!("S{i}"), format!("G{i}"), 1, 1));
            Layout { sections: sections.collect() }
        };
        assert!(from_layout(graded(GRADES_MAX)).is_ok());
        let many = from_layout(graded(GRADES_MAX + 1));
        assert_eq!(many, Err(InvalidTemplate::TooManyGrades));
    }

    #[test]
    fn a_grid_that_is_no_hall_is_refused() {
        let vip = |to_row| vec![GradeRows { grade: "VIP".to_owned(), from_row: 1, to_row }];
        let grid =
            |rows, seats_per_row, to_row| Grid { rows, seats_per_row, grade_mapping: vip(to_row) };
        assert!(from_grid(grid(5, 4, 5)).is_ok());
        for wrong in [grid(5, 4, 4), grid(5, 0, 5), grid(0, 4, 0), grid(u16::MAX, 500, u16::MAX)] {
            assert!(from_grid(wrong).is_err());
        }
    }
}
