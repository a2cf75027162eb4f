//! The money of a sale by seconds and minutes.

use std::collections::BTreeMap;

use urr_contracts::internal::stats::{RoomFigures, SaleMinute, SaleSpan, SaleTotals};
use urr_kernel::{Timestamp, Won};

/// The money that moved in each span of so many seconds. Spans without any are left out.
pub fn spans(sales: &[(Timestamp, SaleTotals)], seconds: i64) -> Vec<SaleSpan> {
    let mut spans: Vec<SaleSpan> = Vec::new();
    for (at, moved) in sales {
        let at = span_start(*at, seconds);
        match spans.last_mut() {
            Some(last) if last.at == at => add(&mut last.moved, moved),
            _ => spans.push(SaleSpan { at, moved: *moved }),
        }
    }
    spans
}

/// The minutes of which the money or the room is known.
pub fn minutes(
    sales: &[(Timestamp, SaleTotals)],
    rooms: &[(Timestamp, RoomFigures)],
) -> Vec<SaleMinute> {
    let empty = |at| SaleMinute { span: SaleSpan { at, ..SaleSpan::default() }, room: None };
    let mut minutes: BTreeMap<i64, SaleMinute> = BTreeMap::new();
    for span in spans(sales, 60) {
        minutes.insert(span.at, SaleMinute { span, room: None });
    }
    for (at, room) in rooms {
        let at = span_start(*at, 60);
        minutes.entry(at).or_insert_with(|| empty(at)).room = Some(*room);
    }
    minutes.into_values().collect()
}

fn span_start(at: Timestamp, seconds: i64) -> i64 {
    at.as_second().div_euclid(seconds) * seconds
}

fn add(sum: &mut SaleTotals, moved: &SaleTotals) {
    sum.charges += moved.charges;
    sum.charged = Won::new(sum.charged.amount() + moved.charged.amount());
    sum.refunds += moved.refunds;
    sum.refunded = Won::new(sum.refunded.amount() + moved.refunded.amount());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(millisecond: i64, amount: i64) -> (Timestamp, SaleTotals) {
        let charged = Won::new(amount);
        let at = Timestamp::from_millisecond(millisecond).unwrap();
        (at, SaleTotals { charges: 1, charged, ..SaleTotals::default() })
    }

    #[test]
    fn money_of_one_second_is_one_span() {
        let sales = [charge(59_000, 1), charge(59_999, 2), charge(60_000, 4)];
        let shown = |seconds| {
            let spans = spans(&sales, seconds).into_iter();
            spans.map(|span| (span.at, span.moved.charged.amount())).collect::<Vec<_>>()
        };
        assert_eq!(shown(1), [(59, 3), (60, 4)]);
        assert_eq!(shown(60), [(0, 3), (60, 4)]);
    }

    #[test]
    fn a_minute_has_its_money_and_its_room() {
        let room = RoomFigures { waiting: 7, ..RoomFigures::default() };
        let at = |second| Timestamp::from_second(second).unwrap();
        let minutes = minutes(&[charge(61_000, 5)], &[(at(60), room), (at(180), room)]);
        let shown: Vec<_> =
            minutes.iter().map(|m| (m.span.at, m.span.moved.charges, m.room.is_some())).collect();
        assert_eq!(shown, [(60, 1, true), (180, 0, true)]);
    }
}
