//! Demo venues with halls of several shapes.

use serde::Deserialize;
use urr_layout::{Grid, Layout, SeatRow, Section};

use crate::{NewHall, NewVenue};

#[derive(Deserialize)]
pub struct DemoVenue {
    pub venue: NewVenue,
    pub hall: Option<DemoHall>,
}

/// A hall of a grid, or of single sections and rings of them.
#[derive(Deserialize)]
pub struct DemoHall {
    name: String,
    grid: Option<Grid>,
    #[serde(default)]
    sections: Vec<DemoSection>,
    #[serde(default)]
    rings: Vec<DemoRing>,
}

/// A section of equal rows, and its position.
#[derive(Deserialize)]
struct DemoSection {
    name: String,
    grade: String,
    rows: u16,
    seats: u16,
    position: (i32, i32),
    #[serde(default)]
    angle_degrees: i16,
    #[serde(default)]
    curve_radius: u32,
    /// Wheelchair places at the ends of the first row.
    #[serde(default)]
    accessible: bool,
    /// Restricted views at the ends of every row.
    #[serde(default)]
    restricted: bool,
}

/// Equal sections around the stage, one every 15 degrees.
#[derive(Deserialize)]
struct DemoRing {
    name: String,
    grade: String,
    radius: i32,
    rows: u16,
    seats: u16,
    /// The first and the last direction in degrees, 0 being straight ahead.
    directions: (i16, i16),
}

pub fn demo_venues() -> Vec<DemoVenue> {
    serde_json::from_str(include_str!("venues.json")).expect("the demo venues are valid JSON")
}

impl From<DemoHall> for NewHall {
    fn from(hall: DemoHall) -> NewHall {
        let rings = hall.rings.iter().flat_map(DemoRing::sections);
        let sections: Vec<Section> =
            hall.sections.into_iter().chain(rings).map(Section::from).collect();
        let layout = hall.grid.is_none().then_some(Layout { sections });
        NewHall { name: hall.name, description: String::new(), grid: hall.grid, layout }
    }
}

impl From<DemoSection> for Section {
    fn from(plan: DemoSection) -> Section {
        let seats = plan.seats;
        let row = |number: u16| SeatRow {
            label: number.to_string(),
            seats,
            first_number: 1,
            number_step: 1,
            offset: 0,
            accessible: match plan.accessible && number == 1 {
                true => vec![1, 2, seats - 1, seats],
                false => Vec::new(),
            },
            restricted_view: if plan.restricted { vec![1, seats] } else { Vec::new() },
        };
        Section {
            rows: (1..=plan.rows).map(row).collect(),
            name: plan.name,
            grade: plan.grade,
            x: plan.position.0,
            y: plan.position.1,
            angle_degrees: plan.angle_degrees,
            curve_radius: plan.curve_radius,
            seat_pitch: 50,
            row_pitch: 80,
            view_image_url: None,
        }
    }
}

impl DemoRing {
    fn sections(&self) -> impl Iterator<Item = DemoSection> {
        let (first, last) = self.directions;
        (1_u16..).zip((first..=last).step_by(15)).map(|(number, degrees)| DemoSection {
            name: format!("{} {number}", self.name),
            grade: self.grade.clone(),
            rows: self.rows,
            seats: self.seats,
            position: point(self.radius, degrees),
            angle_degrees: -degrees,
            curve_radius: self.radius.unsigned_abs(),
            accessible: number.is_multiple_of(6),
            restricted: degrees.abs() > 120,
        })
    }
}

/// A thousand times the sine of a multiple of 15 degrees: halls are drawn without fractions.
fn sine_thousandths(degrees: i16) -> i32 {
    const QUARTER: [i32; 7] = [0, 259, 500, 707, 866, 966, 1_000];
    let turned = degrees.rem_euclid(360);
    let (sign, half) = if turned < 180 { (1, turned) } else { (-1, turned - 180) };
    let quarter = if half <= 90 { half } else { 180 - half };
    let index = usize::try_from(quarter / 15).expect("it is not negative");
    sign * QUARTER[index]
}

/// The point at a distance and a direction from the stage, 0 being straight ahead.
fn point(radius: i32, degrees: i16) -> (i32, i32) {
    let x = radius * sine_thousandths(degrees) / 1_000;
    (x, radius * sine_thousandths(degrees + 90) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halls_have_the_sizes_that_they_are_for() {
        let halls = demo_venues().into_iter().filter_map(|venue| venue.hall);
        let layout = |hall: NewHall| match (hall.grid, hall.layout) {
            (Some(grid), None) => grid.to_layout().unwrap(),
            (_, layout) => layout.unwrap(),
        };
        let layouts: Vec<Layout> = halls.map(|hall| layout(hall.into())).collect();
        let [theatre, opera, arena, stadium] = &layouts[..] else { panic!("four halls") };
        assert_eq!(theatre.seat_count(), 192);
        assert!((1_000..2_500).contains(&opera.seat_count()), "{}", opera.seat_count());
        assert!((8_000..15_000).contains(&arena.seat_count()), "{}", arena.seat_count());
        assert!((50_000..60_000).contains(&stadium.seat_count()), "{}", stadium.seat_count());
        assert!(stadium.sections.iter().any(|s| !s.rows[0].accessible.is_empty()));
        assert!(stadium.sections.iter().any(|s| !s.rows[0].restricted_view.is_empty()));
    }

    #[test]
    fn points_go_around_the_stage() {
        assert_eq!(point(1_000, 0), (0, 1_000));
        assert_eq!(point(1_000, 90), (1_000, 0));
        assert_eq!(point(1_000, -90), (-1_000, 0));
        assert_eq!(point(1_000, 180), (0, -1_000));
        assert_eq!(point(1_000, 30), (500, 866));
    }
}
