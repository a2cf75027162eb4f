//! The seats of a hall, shared by the catalog and ticket services: sections, rows, numbered seats.
//!
//! A layout is written compactly, by rows. Its seats are numbered from 0 in the order of sections,
//! rows and seats, and that number is the seat's id within an event: a map of 50,000 seats needs no
//! list of ids, and a seat's position, grade and label follow from its number.
//!
//! Deliberately absent: prices and whether a seat is free. Those belong to an event.

mod grid;
mod invalid;
mod position;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use grid::{GradeRows, Grid, InvalidGrid};
pub use invalid::InvalidLayout;
pub use position::{SeatId, SeatPosition};

pub const SECTIONS_MAX: usize = 500;
pub const ROWS_MAX: usize = 5_000;
pub const SEATS_PER_ROW_MAX: u16 = 500;
pub const SEATS_MAX: u32 = 100_000;
pub const NAME_CHARS_MAX: usize = 50;

/// The seats of a hall. Only [`Layout::check`] makes one that is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Layout {
    pub sections: Vec<Section>,
}

/// Rows that stand together and cost the same. Lengths are in centimetres; the stage is at (0, 0)
/// and y grows away from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Section {
    #[schema(max_length = 50, example = "1층 A")]
    pub name: String,
    #[schema(max_length = 50, example = "VIP")]
    pub grade: String,
    /// Where the middle of the first row is.
    #[serde(default)]
    pub x: i32,
    #[serde(default)]
    pub y: i32,
    /// Clockwise; 0 faces the stage.
    #[serde(default)]
    #[schema(minimum = -180, maximum = 180)]
    pub angle_degrees: i16,
    /// The radius of the first row's arc; 0 is a straight row.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub curve_radius: u32,
    #[serde(default = "default_seat_pitch")]
    pub seat_pitch: u16,
    #[serde(default = "default_row_pitch")]
    pub row_pitch: u16,
    /// A picture of what is seen from here: one that was uploaded, `/api/image/…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 75)]
    pub view_image_url: Option<String>,
    pub rows: Vec<SeatRow>,
}

/// A row from left to right, seen from the audience.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeatRow {
    #[schema(max_length = 50, example = "12")]
    pub label: String,
    #[schema(minimum = 1, maximum = 500)]
    pub seats: u16,
    /// The number on the leftmost seat.
    #[serde(default = "default_first_number", skip_serializing_if = "is_first_number")]
    #[schema(minimum = 1, maximum = 9_999)]
    pub first_number: u16,
    /// How the numbers go on to the right: by 1, or by 2 where one side has the odd ones. Negative
    /// if they fall.
    #[serde(default = "default_number_step", skip_serializing_if = "is_number_step")]
    #[schema(minimum = -2, maximum = 2)]
    pub number_step: i8,
    /// How far the row's middle is right of the section's middle.
    #[serde(default, skip_serializing_if = "is_centred")]
    pub offset: i32,
    /// The numbers of seats for wheelchairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accessible: Vec<u16>,
    /// The numbers of seats from where part of the stage cannot be seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restricted_view: Vec<u16>,
}

const fn default_seat_pitch() -> u16 {
    50
}

const fn default_row_pitch() -> u16 {
    90
}

const fn default_first_number() -> u16 {
    1
}

const fn default_number_step() -> i8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_first_number(number: &u16) -> bool {
    *number == default_first_number()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_number_step(step: &i8) -> bool {
    *step == default_number_step()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_centred(offset: &i32) -> bool {
    *offset == 0
}

impl Layout {
    /// How many seats it has. At most [`SEATS_MAX`] once it was checked.
    pub fn seat_count(&self) -> u32 {
        self.sections.iter().map(Section::seat_count).sum()
    }

    /// The grades in the order in which they first appear.
    pub fn grades(&self) -> Vec<&str> {
        let mut grades: Vec<&str> = Vec::new();
        for section in &self.sections {
            if !grades.contains(&section.grade.as_str()) {
                grades.push(&section.grade);
            }
        }
        grades
    }
}

impl SeatRow {
    /// The number on a seat, counted from the left from 0. The check has bounded it.
    pub fn number_at(&self, index: u16) -> u16 {
        let number = self.number_of(index);
        u16::try_from(number).expect("the numbers of a checked row are positive and small")
    }

    pub(crate) fn number_of(&self, index: u16) -> i32 {
        i32::from(self.first_number) + i32::from(self.number_step) * i32::from(index)
    }
}

impl Section {
    pub fn seat_count(&self) -> u32 {
        self.rows.iter().map(|row| u32::from(row.seats)).sum()
    }
}
