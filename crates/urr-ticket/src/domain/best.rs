//! The best seats that are left: so many beside each other, near the stage and the middle.

use urr_layout::{Layout, SeatId, SeatRow, Section};

/// What someone asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub count: u32,
    pub grade: Option<String>,
    /// The name of a section.
    pub section: Option<String>,
    /// One of the seats must be for a wheelchair. Who does not ask for such a seat gets none.
    pub accessible: bool,
}

/// Why nobody can sit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoneFits {
    #[error("nothing is left")]
    SoldOut,
    /// Seats are left, but not so many beside each other.
    #[error("not so many seats are left beside each other")]
    Apart { available: u32, adjacent_max: u32 },
}

/// What makes seats worse than others; what stands first weighs most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Seats from where part of the stage cannot be seen.
    restricted_view: u32,
    /// Seats for wheelchairs beyond the one that is needed.
    spare_accessible: u32,
    /// Single seats that would be left between others, which nobody likes to buy.
    orphans: u32,
    distance: i64,
    first: SeatId,
}

/// A row with what matters about each of its seats.
struct Row<'a> {
    first: SeatId,
    section: &'a Section,
    /// Which row of its section, from 0.
    index: i64,
    seats: Vec<Seat>,
}

#[derive(Clone, Copy)]
struct Seat {
    /// Free, and not kept for those who ask for it.
    is_usable: bool,
    is_accessible: bool,
    has_restricted_view: bool,
}

/// Chooses among the free seats. The caller says which are free, under the lock of the sale.
pub fn choose_best(
    layout: &Layout,
    wish: &Wish,
    is_free: impl Fn(SeatId) -> bool,
) -> Result<Vec<SeatId>, NoneFits> {
    assert!(wish.count > 0, "nobody asks for nothing");
    let (mut best, mut available, mut adjacent_max): (Option<Rank>, u32, u32) = (None, 0, 0);
    for row in rows(layout, wish, &is_free) {
        for (start, length) in runs(&row.seats) {
            available += length;
            adjacent_max = adjacent_max.max(length);
            let fits = (0..=length.saturating_sub(wish.count)).filter(|_| length >= wish.count);
            let ranks = fits.filter_map(|offset| rank(&row, wish, (start, length), offset));
            best = best.into_iter().chain(ranks).min();
        }
    }
    match best {
        Some(rank) => Ok((rank.first..rank.first + wish.count).collect()),
        None if available == 0 => Err(NoneFits::SoldOut),
        None => Err(NoneFits::Apart { available, adjacent_max }),
    }
}

fn rows<'a>(
    layout: &'a Layout,
    wish: &'a Wish,
    is_free: &'a impl Fn(SeatId) -> bool,
) -> impl Iterator<Item = Row<'a>> {
    let mut first = 0;
    let sections = layout.sections.iter().flat_map(|section| {
        let rows = (0_i64..).zip(&section.rows);
        rows.map(move |(index, row)| (section, index, row))
    });
    let placed = sections.map(move |(section, index, row)| {
        let id = first;
        first += u32::from(row.seats);
        (id, section, index, row)
    });
    let is_wanted = |section: &Section| {
        wish.grade.as_ref().is_none_or(|grade| *grade == section.grade)
            && wish.section.as_ref().is_none_or(|name| *name == section.name)
    };
    placed.filter(move |(_, section, _, _)| is_wanted(section)).map(
        |(first, section, index, row)| {
            let seats = seats(row, first, wish.accessible, is_free);
            Row { first, section, index, seats }
        },
    )
}

fn seats(
    row: &SeatRow,
    first: SeatId,
    wants_accessible: bool,
    is_free: &impl Fn(SeatId) -> bool,
) -> Vec<Seat> {
    let seat = |offset: u16| {
        let number = row.first_number + offset;
        let is_accessible = row.accessible.contains(&number);
        Seat {
            is_usable: (wants_accessible || !is_accessible) && is_free(first + u32::from(offset)),
            is_accessible,
            has_restricted_view: row.restricted_view.contains(&number),
        }
    };
    (0..row.seats).map(seat).collect()
}

/// The usable seats that stand together: where they begin in the row, and how many they are.
fn runs(seats: &[Seat]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut length = 0;
    for (index, seat) in (1..).zip(seats) {
        length = if seat.is_usable { length + 1 } else { 0 };
        match length {
            0 => {}
            1 => runs.push((index - 1, 1)),
            _ => runs.last_mut().expect("it began before").1 = length,
        }
    }
    runs
}

/// How good the seats at an offset of a run are; none if they do not serve the wish.
fn rank(row: &Row<'_>, wish: &Wish, (start, length): (u32, u32), offset: u32) -> Option<Rank> {
    let from = usize::try_from(start + offset).expect("a row fits memory");
    let count = usize::try_from(wish.count).expect("a row fits memory");
    let taken = &row.seats[from..from + count];
    let how_many = |is: fn(&Seat) -> bool| {
        u32::try_from(taken.iter().filter(|seat| is(seat)).count()).expect("a row is short")
    };
    let accessible = how_many(|seat| seat.is_accessible);
    if wish.accessible && accessible == 0 {
        return None;
    }
    let (left, right) = (offset, length - offset - wish.count);
    Some(Rank {
        restricted_view: how_many(|seat| seat.has_restricted_view),
        orphans: u32::from(left == 1) + u32::from(right == 1),
        spare_accessible: accessible.saturating_sub(1),
        distance: distance(row, start + offset, wish.count),
        first: row.first + start + offset,
    })
}

/// The square of the distance from the middle of the stage to the middle of the seats, in half
/// centimetres. The bend of a row is left out: it moves all its seats alike.
fn distance(row: &Row<'_>, from: u32, count: u32) -> i64 {
    let section = row.section;
    let seats = i64::try_from(row.seats.len()).expect("a row is short");
    let along = (2 * i64::from(from) + i64::from(count) - seats) * i64::from(section.seat_pitch);
    let back = 2 * row.index * i64::from(section.row_pitch);
    let (sine, cosine) = (sine(section.angle_degrees), sine(90 - section.angle_degrees));
    let x = 2 * i64::from(section.x) + (along * cosine - back * sine) / 1_000;
    let y = 2 * i64::from(section.y) + (along * sine + back * cosine) / 1_000;
    x * x + y * y
}

/// The sine in thousandths, right to two of them: Bhaskara's formula needs no fractions.
fn sine(degrees: i16) -> i64 {
    let degrees = i64::from(degrees).rem_euclid(360);
    let (degrees, sign) = if degrees < 180 { (degrees, 1) } else { (degrees - 180, -1) };
    let product = degrees * (180 - degrees);
    sign * 4_000 * product / (40_500 - product)
}

#[cfg(test)]
mod tests;
