//! Demo venues with halls of several shapes.

use urr_layout::{GradeRows, Grid, Layout, SeatRow, Section};

use crate::SeatTemplate;

pub type MakeTemplate = fn() -> SeatTemplate;

pub struct DemoVenue {
    pub name: &'static str,
    pub address: &'static str,
    pub description: &'static str,
    pub hall: Option<(&'static str, MakeTemplate)>,
}

pub const PLANS: &[DemoVenue] = &[
    DemoVenue {
        name: "달빛소극장 Moonlight Theatre",
        address: "서울 종로구 달빛로 12",
        description: "192석의 작은 극장. A theatre of 192 seats.",
        hall: Some(("소극장 Main Stage", theatre)),
    },
    DemoVenue {
        name: "강변 오페라하우스 Riverside Opera House",
        address: "서울 서초구 강변대로 88",
        description: "둥근 객석의 오페라하우스. An opera house with curved rows.",
        hall: Some(("대극장 Grand Hall", opera)),
    },
    DemoVenue {
        name: "한빛 아레나 Hanbit Arena",
        address: "인천 연수구 아레나길 1",
        description: "무대를 둘러싼 아레나. An arena around its stage.",
        hall: Some(("아레나 Arena", arena)),
    },
    DemoVenue {
        name: "서울 빛 스타디움 Seoul Light Stadium",
        address: "서울 송파구 올림픽광장로 50",
        description: "5만 석의 스타디움. A stadium of more than 50,000 seats.",
        hall: Some(("스타디움 Stadium", stadium)),
    },
    DemoVenue {
        name: "클럽 네온 Club Neon",
        address: "서울 마포구 네온골목 7",
        description: "스탠딩 클럽. A club where people stand.",
        hall: None,
    },
];

fn theatre() -> SeatTemplate {
    let rows =
        |grade: &str, from_row, to_row| GradeRows { grade: grade.to_owned(), from_row, to_row };
    let grade_mapping = vec![rows("VIP", 1, 3), rows("R", 4, 8), rows("S", 9, 12)];
    let grid = Grid { rows: 12, seats_per_row: 16, grade_mapping };
    SeatTemplate::from_grid(grid).expect("the demo halls are valid")
}

/// A section of equal rows, and its position.
struct DemoSection<'a> {
    name: String,
    grade: &'a str,
    rows: u16,
    seats: u16,
    position: (i32, i32),
    angle_degrees: i16,
    curve_radius: u32,
    /// Wheelchair places at the ends of the first row.
    accessible: bool,
    /// Restricted views at the ends of every row.
    restricted: bool,
}

fn section(plan: DemoSection<'_>) -> Section {
    let DemoSection {
        name, grade, rows, seats, position: (x, y), angle_degrees, curve_radius, ..
    } = plan;
    let row = |number: u16| SeatRow {
        label: number.to_string(),
        seats,
        first_number: 1,
        accessible: match plan.accessible && number == 1 {
            true => vec![1, 2, seats - 1, seats],
            false => Vec::new(),
        },
        restricted_view: match plan.restricted {
            true => vec![1, seats],
            false => Vec::new(),
        },
    };
    Section {
        name,
        grade: grade.to_owned(),
        x,
        y,
        angle_degrees,
        curve_radius,
        seat_pitch: 50,
        row_pitch: 80,
        rows: (1..=rows).map(row).collect(),
    }
}

fn template(sections: Vec<Section>) -> SeatTemplate {
    SeatTemplate::from_layout(Layout { sections }).expect("the demo halls are valid")
}

fn opera() -> SeatTemplate {
    let curved =
        |name: &str, grade, rows, seats, position: (i32, i32), angle_degrees| DemoSection {
            name: name.to_owned(),
            grade,
            rows,
            seats,
            position,
            angle_degrees,
            curve_radius: position.1.unsigned_abs(),
            accessible: false,
            restricted: false,
        };
    let stalls =
        DemoSection { accessible: true, ..curved("1층 중앙", "VIP", 12, 22, (0, 700), 0) };
    let boxed = |name: &str, grade, x, y, angle| DemoSection {
        restricted: true,
        ..curved(name, grade, 10, 10, (x, y), angle)
    };
    template(vec![
        section(stalls),
        section(curved("1층 뒤", "R", 10, 28, (0, 1_750), 0)),
        section(boxed("1층 왼쪽", "R", -1_050, 900, 25)),
        section(boxed("1층 오른쪽", "R", 1_050, 900, -25)),
        section(curved("2층 중앙", "S", 8, 34, (0, 2_700), 0)),
        section(boxed("2층 왼쪽", "S", -1_600, 2_100, 35)),
        section(boxed("2층 오른쪽", "S", 1_600, 2_100, -35)),
        section(curved("3층", "A", 8, 40, (0, 3_500), 0)),
    ])
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

/// Equal sections around the stage.
struct DemoRing<'a> {
    name: &'a str,
    grade: &'a str,
    radius: i32,
    rows: u16,
    seats: u16,
}

fn ring(ring: &DemoRing<'_>, directions: impl Iterator<Item = i16>) -> Vec<Section> {
    let section_at = |(number, degrees): (u16, i16)| {
        section(DemoSection {
            name: format!("{} {number}", ring.name),
            grade: ring.grade,
            rows: ring.rows,
            seats: ring.seats,
            position: point(ring.radius, degrees),
            angle_degrees: -degrees,
            curve_radius: ring.radius.unsigned_abs(),
            accessible: number.is_multiple_of(6),
            restricted: degrees.abs() > 120,
        })
    };
    (1..).zip(directions).map(section_at).collect()
}

fn arena() -> SeatTemplate {
    let floor = |name: &str, x| DemoSection {
        name: name.to_owned(),
        grade: "VIP",
        rows: 20,
        seats: 20,
        position: (x, 600),
        angle_degrees: 0,
        curve_radius: 0,
        accessible: true,
        restricted: false,
    };
    let directions = || (-8..=8).map(|step: i16| step * 15);
    let lower = DemoRing { name: "1층", grade: "R", radius: 4_500, rows: 14, seats: 22 };
    let upper = DemoRing { name: "2층", grade: "S", radius: 6_000, rows: 12, seats: 28 };
    let mut sections = vec![section(floor("플로어 A", -1_100)), section(floor("플로어 B", 0))];
    sections.push(section(floor("플로어 C", 1_100)));
    sections.extend(ring(&lower, directions()));
    sections.extend(ring(&upper, directions()));
    template(sections)
}

fn stadium() -> SeatTemplate {
    let directions = || (-11..=12).map(|step: i16| step * 15);
    let lower = DemoRing { name: "1층", grade: "R", radius: 6_500, rows: 20, seats: 30 };
    let middle = DemoRing { name: "2층", grade: "S", radius: 8_500, rows: 25, seats: 34 };
    let upper = DemoRing { name: "3층", grade: "A", radius: 10_900, rows: 25, seats: 28 };
    let rings = [lower, middle, upper];
    template(rings.iter().flat_map(|one| ring(one, directions())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halls_have_the_sizes_that_they_are_for() {
        let seats = |template: SeatTemplate| template.layout().seat_count();
        assert_eq!(seats(theatre()), 192);
        assert!((1_000..2_500).contains(&seats(opera())), "{}", seats(opera()));
        assert!((8_000..15_000).contains(&seats(arena())), "{}", seats(arena()));
        assert!((50_000..60_000).contains(&seats(stadium())), "{}", seats(stadium()));
        let layout = stadium();
        assert!(layout.layout().sections.iter().any(|s| !s.rows[0].accessible.is_empty()));
        assert!(layout.layout().sections.iter().any(|s| !s.rows[0].restricted_view.is_empty()));
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
