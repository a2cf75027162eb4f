//! Halls as texts, a line per row, the stage above: `.` is a free seat, `x` a taken one, `a` a free
//! one for a wheelchair, `r` a free one with a restricted view. `O` marks what is chosen.

use proptest::prelude::*;

use crate::reserve::best_seats::*;

fn hall(text: &str) -> (Layout, Vec<bool>) {
    let lines: Vec<&str> = text.split_whitespace().collect();
    let numbers = |line: &str, sign: char| {
        (1..).zip(line.chars()).filter(|(_, c)| *c == sign).map(|(number, _)| number).collect()
    };
    let row = |(index, line): (usize, &&str)| SeatRow {
        label: (index + 1).to_string(),
        seats: u16::try_from(line.len()).expect("a short line"),
        first_number: 1,
        number_step: 1,
        offset: 0,
        accessible: numbers(line, 'a'),
        restricted_view: numbers(line, 'r'),
    };
    let section = Section {
        name: "A".to_owned(),
        grade: "R".to_owned(),
        x: 0,
        y: 500,
        angle_degrees: 0,
        curve_radius: 0,
        seat_pitch: 50,
        row_pitch: 90,
        view_image_url: None,
        rows: lines.iter().enumerate().map(row).collect(),
    };
    let free = text.split_whitespace().flat_map(str::chars).map(|c| c != 'x').collect();
    (Layout { sections: vec![section] }, free)
}

fn choose(text: &str, count: u32, accessible: bool) -> Result<Vec<SeatId>, NoSeatsFit> {
    let (layout, free) = hall(text);
    let preference =
        SeatPreference { count, grade: Some("R".to_owned()), section: None, accessible };
    choose_best(&layout, &preference, |id| free[id as usize])
}

fn marked(text: &str, chosen: &[SeatId]) -> String {
    let mut id = 0;
    let mark = |c: char| {
        if c.is_whitespace() {
            return c;
        }
        id += 1;
        if chosen.contains(&(id - 1)) { 'O' } else { c }
    };
    text.chars().map(mark).collect()
}

#[track_caller]
fn check(text: &str, count: u32, expected: &str) {
    let chosen = choose(text, count, false).expect("something fits");
    assert_eq!(marked(text, &chosen), expected);
}

#[track_caller]
fn check_accessible(text: &str, count: u32, expected: &str) {
    let chosen = choose(text, count, true).expect("something fits");
    assert_eq!(marked(text, &chosen), expected);
}

#[test]
fn the_middle_of_the_front_row_is_best() {
    check(".........", 1, "....O....");
    check("........ ........", 2, "...OO... ........");
    check("xxxxxxxx ........", 2, "xxxxxxxx ...OO...");
    check("...xx... ........", 2, "...xx... ...OO...");
}

#[test]
fn no_single_seat_is_left_if_that_can_be_avoided() {
    check(".x..xx..", 2, ".xOOxx..");
    // Right of the middle would leave one seat alone.
    check("xxx...xx", 2, "xxxOO.xx");
    check("xxx...xx ..xxxxxx", 2, "xxx...xx OOxxxxxx");
    check(".....", 2, "OO...");
    check(".....", 3, "OOO..");
    check("....", 4, "OOOO");
}

#[test]
fn seats_that_are_apart_are_not_offered_as_neighbours() {
    let apart = |available, adjacent_max| Err(NoSeatsFit::NotAdjacent { available, adjacent_max });
    assert_eq!(choose("x.x..x.", 3, false), apart(4, 2));
    assert_eq!(choose("...x ...x", 4, false), apart(6, 3), "rows are not neighbours");
    assert_eq!(choose("xxxx xxxx", 1, false), Err(NoSeatsFit::SoldOut));
}

#[test]
fn seats_for_wheelchairs_are_kept_for_those_who_ask() {
    check("..aa.. ......", 2, "OOaa.. ......");
    check("aaaaaa ......", 2, "aaaaaa ..OO..");
    assert_eq!(choose("aaaa", 1, false), Err(NoSeatsFit::SoldOut));
    check_accessible("..aa.. ......", 1, "..Oa.. ......");
    // One for the wheelchair, the other for who comes along.
    check_accessible("...... ..aa..", 2, "...... .OOa..");
    assert_eq!(
        choose("....", 2, true),
        Err(NoSeatsFit::NotAdjacent { available: 4, adjacent_max: 4 })
    );
}

#[test]
fn a_restricted_view_comes_last() {
    check("rrrrrr ...... ......", 2, "rrrrrr ..OO.. ......");
    check("rrrr xx.x", 1, "rrrr xxOx");
    check("rrrr xxxx", 2, "OOrr xxxx");
    check(".rr rr", 2, "OOr rr");
}

#[test]
fn a_block_at_the_side_is_filled_from_the_middle_of_the_hall() {
    let straight = hall("....").0.sections.remove(0);
    let side = |name: &str, x: i32| Section { name: name.to_owned(), x, ..straight.clone() };
    let layout = Layout { sections: vec![side("left", -600), side("right", 600)] };
    let preference = |section: &str| SeatPreference {
        count: 2,
        grade: None,
        section: Some(section.to_owned()),
        accessible: false,
    };
    assert_eq!(choose_best(&layout, &preference("left"), |_| true), Ok(vec![2, 3]));
    assert_eq!(choose_best(&layout, &preference("right"), |_| true), Ok(vec![4, 5]));
    // Turned by a right angle to the left of the stage, the row runs along the hall.
    let rotated = Section { angle_degrees: 90, y: 600, ..side("turned", 600) };
    let layout = Layout { sections: vec![rotated] };
    assert_eq!(choose_best(&layout, &preference("turned"), |_| true), Ok(vec![0, 1]));
    assert_eq!(choose_best(&layout, &preference("none"), |_| true), Err(NoSeatsFit::SoldOut));
}

/// One row of two seats in each of these places, each looking into a direction.
fn rows_at(places: &[(i32, i32, i16)]) -> Layout {
    let one = hall("..").0.sections.remove(0);
    let section = |&(x, y, angle_degrees)| Section { x, y, angle_degrees, ..one.clone() };
    Layout { sections: places.iter().map(section).collect() }
}

#[track_caller]
fn check_order(layout: &Layout, expected: &[SeatId]) {
    let preference = SeatPreference { count: 2, grade: None, section: None, accessible: false };
    let mut taken = Vec::new();
    while let Ok(seats) = choose_best(layout, &preference, |id| !taken.contains(&id)) {
        taken.extend(seats);
    }
    let firsts: Vec<SeatId> = taken.iter().step_by(2).copied().collect();
    assert_eq!(firsts, expected);
}

#[test]
fn around_a_stage_the_front_comes_first_and_the_back_last() {
    // Behind it, left of it, right of it and in front, all as far and all looking at it; the last
    // one stands in front, far away.
    let around = [(0, -500, 180), (-500, 0, 90), (500, 0, -90), (0, 500, 0), (0, 5_000, 0)];
    check_order(&rows_at(&around), &[6, 2, 4, 8, 0]);
}

#[test]
fn a_row_with_its_back_to_the_stage_comes_last() {
    check_order(&rows_at(&[(0, 300, 180), (0, 900, 0), (0, -200, 0)]), &[2, 4, 0]);
}

#[test]
fn the_sine_is_close_enough() {
    let known = [(0, 0), (30, 500), (45, 707), (90, 1_000), (150, 500), (180, 0), (270, -1_000)];
    for (degrees, thousandths) in known {
        let off: i64 = sine(degrees) - thousandths;
        assert!(off.abs() <= 2, "{degrees}: {}", sine(degrees));
    }
    assert_eq!(sine(-90), -1_000);
}

/// All ways to sit together: how many seats of each have a restricted view, and how many single
/// seats it leaves.
fn all_ways(text: &str, count: usize) -> Vec<(Vec<SeatId>, usize, usize)> {
    let mut ways = Vec::new();
    let mut first = 0;
    for line in text.split_whitespace() {
        let seats: Vec<char> = line.chars().collect();
        let usable = |at: Option<usize>| {
            at.and_then(|at| seats.get(at)).is_some_and(|c| matches!(c, '.' | 'r'))
        };
        for from in 0..seats.len() {
            if !(from..from + count).all(|at| usable(Some(at))) {
                continue;
            }
            let end = from + count;
            let left = usable(from.checked_sub(1)) && !usable(from.checked_sub(2));
            let right = usable(Some(end)) && !usable(Some(end + 1));
            let restricted = seats[from..end].iter().filter(|c| **c == 'r').count();
            let id = |at: usize| first + SeatId::try_from(at).expect("small");
            let orphans = usize::from(left) + usize::from(right);
            ways.push(((from..end).map(id).collect(), restricted, orphans));
        }
        first += SeatId::try_from(seats.len()).expect("small");
    }
    ways
}

#[test]
fn a_row_that_stands_aside_is_nearest_at_its_inner_end() {
    let (mut layout, free) = hall("......");
    let preference = SeatPreference { count: 1, grade: None, section: None, accessible: false };
    let best = |layout: &Layout| choose_best(layout, &preference, |id| free[id as usize]);
    assert_eq!(best(&layout), Ok(vec![2]));
    layout.sections[0].rows[0].offset = 1_000;
    assert_eq!(best(&layout), Ok(vec![0]));
    layout.sections[0].rows[0].offset = -1_000;
    assert_eq!(best(&layout), Ok(vec![5]));
}

proptest! {
    #[test]
    fn whatever_the_hall_the_choice_is_allowed_and_none_is_better(
        text in "([.xar]{1,14} ){1,5}", count in 1_u32..=4,
    ) {
        let ways = all_ways(&text, count as usize);
        match choose(&text, count, false) {
            Ok(chosen) => {
                let way = ways.iter().find(|(seats, _, _)| *seats == chosen);
                let (_, restricted, orphans) = way.expect("the choice is one of the ways");
                let better = |(_, r, o): &&(_, usize, usize)| (r, o) < (restricted, orphans);
                prop_assert_eq!(ways.iter().find(better), None);
            }
            Err(_) => prop_assert_eq!(ways, vec![]),
        }
    }
}

/// Sections that stand anywhere and look anywhere, and which of their seats are free.
fn any_hall() -> impl Strategy<Value = (Layout, Vec<bool>)> {
    let section = (-3_000..3_000_i32, -3_000..3_000_i32, -180..=180_i16, 20..90_u16, 1..5_usize);
    let sections = proptest::collection::vec((section, 1..12_u16), 1..6);
    let halls = sections.prop_map(|sections| {
        let row = |index: usize, seats| SeatRow {
            label: index.to_string(),
            seats,
            first_number: 1,
            number_step: 1,
            offset: 0,
            accessible: Vec::new(),
            restricted_view: Vec::new(),
        };
        let section = |(index, ((x, y, angle_degrees, pitch, rows), seats))| Section {
            name: format!("{index}"),
            grade: "R".to_owned(),
            x,
            y,
            angle_degrees,
            curve_radius: 0,
            seat_pitch: pitch,
            row_pitch: pitch,
            view_image_url: None,
            rows: (0..rows).map(|index| row(index, seats)).collect(),
        };
        let sections: Vec<(usize, _)> = sections.into_iter().enumerate().collect();
        Layout { sections: sections.into_iter().map(section).collect() }
    });
    halls.prop_flat_map(|layout| {
        let seats = layout.seat_count() as usize;
        (Just(layout), proptest::collection::vec(any::<bool>(), seats))
    })
}

proptest! {
    /// The rows at the back are not looked at if what is in front cannot be beaten.
    #[test]
    fn looking_at_the_nearest_rows_first_misses_nothing(
        (layout, free) in any_hall(), count in 1_u32..=3,
    ) {
        let preference = SeatPreference { count, grade: None, section: None, accessible: false };
        let is_free = |id: SeatId| free[id as usize];
        let mut all = Vec::new();
        for row in rows(&layout, &preference) {
            let seats = seats(&row, &preference, &is_free);
            for run in runs(&seats) {
                all.extend(ranks(&row, &seats, &preference, run));
            }
        }
        for row in rows(&layout, &preference) {
            let of_row = all.iter().filter(|rank| {
                (row.first..row.first + u32::from(row.row.seats)).contains(&rank.first)
            });
            prop_assert!(of_row.into_iter().all(|rank| rank.distance >= row.nearest));
        }
        let best = all.into_iter().min().map(|rank| rank.first);
        let chosen = choose_best(&layout, &preference, is_free).ok().map(|seats| seats[0]);
        prop_assert_eq!(chosen, best);
    }
}
