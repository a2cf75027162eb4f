//! Rules of best seats: chosen among the free ones, adjacent, near the stage and the middle, and
//! behind the stage only if nothing else is left.
//!
//! They are chosen inside the transaction that holds them. So two concurrent requests get different
//! seats, and `SOLD_OUT` is never answered too early.

use serde::Serialize;
use urr_layout::{Layout, SeatId, SeatRow, Section};

/// The seats that a user would like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SeatPreference {
    pub count: u32,
    pub grade: Option<String>,
    /// The name of a section.
    pub section: Option<String>,
    /// One of the seats must be for a wheelchair. Requests without this flag get no such seat.
    pub accessible: bool,
}

/// Why no seats fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSeatsFit {
    #[error("Nothing is left there.")]
    SoldOut,
    /// Seats are left, but fewer of them are adjacent.
    #[error("Not so many seats are left beside each other.")]
    NotAdjacent { available: u32, adjacent_max: u32 },
}

/// Reasons against seats, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeatRank {
    /// Behind the stage, or with one's back to it.
    is_behind: bool,
    /// Seats from where part of the stage cannot be seen.
    restricted_view: u32,
    /// Seats for wheelchairs beyond the one that is needed.
    spare_accessible: u32,
    /// Single seats that would be left between others: they are hard to sell.
    orphans: u32,
    distance: i64,
    first: SeatId,
}

/// A row that matches the preference.
struct CandidateRow<'a> {
    first: SeatId,
    section: &'a Section,
    row: &'a SeatRow,
    /// Which row of its section, from 0.
    index: i64,
    /// No seats of the row have a smaller distance.
    nearest: i64,
}

/// The properties of a seat that matter here.
#[derive(Clone, Copy)]
struct CandidateSeat {
    /// Free, and not reserved for wheelchairs unless one was asked for.
    is_usable: bool,
    is_accessible: bool,
    has_restricted_view: bool,
}

/// Chooses among the free seats. The caller says which are free, under the lock of the sale.
pub fn choose_best(
    layout: &Layout,
    preference: &SeatPreference,
    is_free: impl Fn(SeatId) -> bool,
) -> Result<Vec<SeatId>, NoSeatsFit> {
    assert!(preference.count > 0, "nobody asks for nothing");
    let (mut best, mut available, mut adjacent_max): (Option<SeatRank>, u32, u32) = (None, 0, 0);
    let mut rows: Vec<CandidateRow<'_>> = rows(layout, preference).collect();
    rows.sort_by_key(|row| row.nearest);
    for row in &rows {
        if best.is_some_and(|best| best.is_flawless() && best.distance < row.nearest) {
            // Everything further back is worse: the lock of the sale is held meanwhile.
            break;
        }
        let seats = seats(row, preference, &is_free);
        for run in runs(&seats) {
            available += run.length;
            adjacent_max = adjacent_max.max(run.length);
            best = best.into_iter().chain(ranks(row, &seats, preference, run)).min();
        }
    }
    match best {
        Some(rank) => Ok((rank.first..rank.first + preference.count).collect()),
        None if available == 0 => Err(NoSeatsFit::SoldOut),
        None => Err(NoSeatsFit::NotAdjacent { available, adjacent_max }),
    }
}

impl SeatRank {
    /// Only the distance could be better.
    fn is_flawless(&self) -> bool {
        let has_flaw = self.is_behind || self.restricted_view > 0 || self.spare_accessible > 0;
        !has_flaw && self.orphans == 0
    }
}

fn rows<'a>(
    layout: &'a Layout,
    preference: &'a SeatPreference,
) -> impl Iterator<Item = CandidateRow<'a>> {
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
        preference.grade.as_ref().is_none_or(|grade| *grade == section.grade)
            && preference.section.as_ref().is_none_or(|name| *name == section.name)
    };
    placed.filter(move |(_, section, _, _)| is_wanted(section)).map(
        |(first, section, index, row)| {
            let nearest = RowLine::of(section, index, row).nearest(row);
            CandidateRow { first, section, row, index, nearest }
        },
    )
}

fn seats(
    row: &CandidateRow<'_>,
    preference: &SeatPreference,
    is_free: &impl Fn(SeatId) -> bool,
) -> Vec<CandidateSeat> {
    let seat = |offset: u16| {
        let number = row.row.number_at(offset);
        let is_accessible = row.row.accessible.contains(&number);
        let is_allowed = preference.accessible || !is_accessible;
        CandidateSeat {
            is_usable: is_allowed && is_free(row.first + u32::from(offset)),
            is_accessible,
            has_restricted_view: row.row.restricted_view.contains(&number),
        }
    };
    (0..row.row.seats).map(seat).collect()
}

/// Adjacent usable seats.
#[derive(Clone, Copy)]
struct FreeRun {
    /// Where they begin in the row.
    start: u32,
    length: u32,
}

fn runs(seats: &[CandidateSeat]) -> Vec<FreeRun> {
    let mut runs: Vec<FreeRun> = Vec::new();
    let mut length = 0;
    for (index, seat) in (0..).zip(seats) {
        length = if seat.is_usable { length + 1 } else { 0 };
        match length {
            0 => {}
            1 => runs.push(FreeRun { start: index, length }),
            _ => runs.last_mut().expect("it began before").length = length,
        }
    }
    runs
}

/// Ranks every position in a run where enough seats match the preference.
fn ranks<'a>(
    row: &'a CandidateRow<'_>,
    seats: &'a [CandidateSeat],
    preference: &'a SeatPreference,
    run: FreeRun,
) -> impl Iterator<Item = SeatRank> + 'a {
    let line = RowLine::of(row.section, row.index, row.row);
    let places = (run.length + 1).saturating_sub(preference.count);
    (0..places).filter_map(move |offset| {
        let from = usize::try_from(run.start + offset).expect("a row fits memory");
        let count = usize::try_from(preference.count).expect("a row fits memory");
        let taken = &seats[from..from + count];
        let how_many = |is: fn(&CandidateSeat) -> bool| {
            u32::try_from(taken.iter().filter(|seat| is(seat)).count()).expect("a row is short")
        };
        let accessible = how_many(|seat| seat.is_accessible);
        if preference.accessible && accessible == 0 {
            return None;
        }
        let (left, right) = (offset, run.length - offset - preference.count);
        let middle = 2 * i64::from(run.start + offset) + i64::from(preference.count);
        let half_seats = middle - i64::from(row.row.seats);
        Some(SeatRank {
            is_behind: line.is_behind(half_seats),
            restricted_view: how_many(|seat| seat.has_restricted_view),
            spare_accessible: accessible.saturating_sub(1),
            orphans: u32::from(left == 1) + u32::from(right == 1),
            distance: line.distance(half_seats),
            first: row.first + run.start + offset,
        })
    })
}

/// How much more a way to the side counts than one to the back.
const SIDE_WEIGHT: i64 = 2;

/// The geometry of a row, in half centimetres from the middle of the stage. The bend of a row is
/// ignored: it moves all its seats alike.
struct RowLine {
    /// The middle of the row.
    x: i64,
    y: i64,
    /// Half a seat to the right, in thousandths.
    step_x: i64,
    step_y: i64,
}

impl RowLine {
    fn of(section: &Section, index: i64, row: &SeatRow) -> RowLine {
        let (sine, cosine) = (sine(section.angle_degrees), sine(90 - section.angle_degrees));
        let back = 2 * index * i64::from(section.row_pitch);
        let aside = 2 * i64::from(row.offset);
        let pitch = i64::from(section.seat_pitch);
        RowLine {
            x: 2 * i64::from(section.x) + (aside * cosine - back * sine) / 1_000,
            y: 2 * i64::from(section.y) + (aside * sine + back * cosine) / 1_000,
            step_x: pitch * cosine,
            step_y: pitch * sine,
        }
    }

    /// The point this many half seats right of the row's middle.
    fn point(&self, half_seats: i64) -> (i64, i64) {
        let x = self.x + half_seats * self.step_x / 1_000;
        (x, self.y + half_seats * self.step_y / 1_000)
    }

    /// The squared distance of a point from the stage. The way to the side counts double: from
    /// there one sees less than from as far in front.
    fn distance(&self, half_seats: i64) -> i64 {
        let (x, y) = self.point(half_seats);
        SIDE_WEIGHT * x * x + y * y
    }

    /// Whether a point is behind the stage, or the row looks away from it.
    fn is_behind(&self, half_seats: i64) -> bool {
        let (x, y) = self.point(half_seats);
        y < 0 || y * self.step_x < x * self.step_y
    }

    /// A distance that no place in the row is below.
    fn nearest(&self, row: &SeatRow) -> i64 {
        // The distance falls and then rises along the row; it is least at the foot of the
        // perpendicular from the stage, with the weight of the side.
        let (step_x, step_y) = (i128::from(self.step_x), i128::from(self.step_y));
        let side_step = i128::from(SIDE_WEIGHT) * step_x;
        let towards = -(i128::from(self.x) * side_step + i128::from(self.y) * step_y) * 1_000;
        let foot = towards / (side_step * step_x + step_y * step_y).max(1);
        let end = i64::from(row.seats);
        let foot = i64::try_from(foot).unwrap_or(0).clamp(-end, end);
        let around = (foot - 1).max(-end)..=(foot + 1).min(end);
        let least = around.map(|half_seats| self.distance(half_seats)).min();
        let least = least.expect("the foot is one of them");
        // Rounding above moves a point by less than two half centimetres.
        least - 12 * i64::try_from(least.unsigned_abs().isqrt()).unwrap_or(i64::MAX / 12) - 32
    }
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
