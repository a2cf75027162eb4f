use proptest::prelude::*;
use urr_kernel::{GracePeriod, Uuid};

use crate::ItemSubject;
use crate::reservations::refund::rules::*;

/// A moment in Korea, in 2026: `12-24 19:00:00`.
fn at(text: &str) -> Timestamp {
    let text = text.replace(' ', "T");
    format!("2026-{text}+09:00").parse().expect("a time")
}

fn item(unit_price: i64, quantity: u32) -> ReservationItem {
    let subject = ItemSubject::TicketType(Uuid::nil());
    let unit_price = Won::new(unit_price);
    ReservationItem { position: 0, subject, quantity, unit_price, name: None }
}

/// Two tickets of 100,000 and a booking fee of 2,000 won, booked at noon of the first of December
/// unless it says otherwise; the event is on Christmas Eve.
fn booking<'a>(items: &'a [ReservationItem], booked_at: &str) -> RefundBasis<'a> {
    RefundBasis {
        booked_at: at(booked_at),
        agreed_starts_at: at("12-24 19:00:00"),
        starts_at: at("12-24 19:00:00"),
        booking_fee: Won::new(2_000),
        items,
        fee: FeeMode::ByPolicy,
    }
}

/// `refund fee RULE`.
fn text(refund: RefundQuote) -> String {
    format!("{} {} {}", refund.refund.amount(), refund.fee.amount(), refund.rule.name())
}

#[test]
fn b_8_every_boundary_of_the_korean_schedule_from_both_sides() {
    let items = [item(100_000, 2)];
    //  booked, cancelled, what goes back, what is kept, why
    let table = [
        // The booking day: everything. Its midnight takes the booking fee, and nothing else.
        ("12-01 12:00:00", "12-01 12:00:00", "202000 0 GRACE"),
        ("12-01 12:00:00", "12-01 23:59:59", "202000 0 GRACE"),
        ("12-01 12:00:00", "12-02 00:00:00", "200000 2000 GRACE"),
        // The day of the booking is Korea's: this one began at 15:00 UTC.
        ("12-01 23:59:59", "12-02 00:00:00", "200000 2000 GRACE"),
        ("12-02 00:00:00", "12-02 23:59:59", "202000 0 GRACE"),
        // Far from the event: 24 hours, then seven days after the booking, then a small fee.
        ("12-01 12:00:00", "12-02 11:59:59", "200000 2000 GRACE"),
        ("12-01 12:00:00", "12-02 12:00:00", "200000 2000 FREE_DAYS"),
        ("12-01 12:00:00", "12-08 23:59:59", "200000 2000 FREE_DAYS"),
        ("12-01 12:00:00", "12-09 00:00:00", "192000 10000 PERCENT_10_CAPPED"),
        ("12-01 00:00:00", "12-09 00:00:00", "192000 10000 PERCENT_10_CAPPED"),
        // Ten days before the event, nine to seven, six to three, two to one, its day.
        ("12-01 12:00:00", "12-14 23:59:59", "192000 10000 PERCENT_10_CAPPED"),
        ("12-01 12:00:00", "12-15 00:00:00", "180000 22000 PERCENT_10"),
        ("12-01 12:00:00", "12-17 23:59:59", "180000 22000 PERCENT_10"),
        ("12-01 12:00:00", "12-18 00:00:00", "160000 42000 PERCENT_20"),
        ("12-01 12:00:00", "12-21 23:59:59", "160000 42000 PERCENT_20"),
        ("12-01 12:00:00", "12-22 00:00:00", "140000 62000 PERCENT_30"),
        ("12-01 12:00:00", "12-23 23:59:59", "140000 62000 PERCENT_30"),
        ("12-01 12:00:00", "12-24 00:00:00", "20000 182000 PERCENT_90"),
        ("12-01 12:00:00", "12-24 18:59:59", "20000 182000 PERCENT_90"),
        ("12-01 12:00:00", "12-24 19:00:00", "0 202000 EVENT_STARTED"),
        // Seven days after the booking are free only while the event is ten days away.
        ("12-12 12:00:00", "12-14 23:59:59", "200000 2000 FREE_DAYS"),
        ("12-12 12:00:00", "12-15 00:00:00", "180000 22000 PERCENT_10"),
        // A late booking: 24 hours are free up to three days before the event.
        ("12-20 12:00:00", "12-21 11:59:59", "200000 2000 GRACE"),
        ("12-20 12:00:00", "12-21 12:00:00", "160000 42000 PERCENT_20"),
        ("12-21 12:00:00", "12-21 23:59:59", "202000 0 GRACE"),
        ("12-21 12:00:00", "12-22 00:00:00", "140000 62000 PERCENT_30"),
        // A booking of the last days: only its booking fee goes back whole, on its day.
        ("12-22 00:00:00", "12-22 00:00:01", "142000 60000 PERCENT_30"),
        ("12-24 10:00:00", "12-24 10:00:01", "22000 180000 PERCENT_90"),
    ];
    let policy = CancelPolicy::korean();
    for (booked, cancelled, expected) in table {
        let booking = booking(&items, booked);
        let refund = refund_of(&policy, &booking, at(cancelled));
        assert_eq!(text(refund), expected, "booked {booked}, cancelled {cancelled}");
    }
}

#[test]
fn b_8_each_ticket_has_its_own_fee_rounded_down_and_capped() {
    // Ten per cent of 39,999 is below 4,000 won; of 40,001 it is above.
    let items = [item(39_999, 1), item(40_001, 3), item(0, 1), item(9, 1)];
    let booking = booking(&items, "12-01 12:00:00");
    let policy = CancelPolicy::korean();
    let capped = refund_of(&policy, &booking, at("12-10 00:00:00"));
    assert_eq!(capped.fee, Won::new(2_000 + 3_999 + 3 * 4_000));
    let nearer = refund_of(&policy, &booking, at("12-15 00:00:00"));
    assert_eq!(nearer.fee, Won::new(2_000 + 3_999 + 3 * 4_000));
    let same_day = refund_of(&policy, &booking, at("12-24 00:00:00"));
    assert_eq!(same_day.fee, Won::new(2_000 + 35_999 + 3 * 36_000 + 8));
}

#[test]
fn b_8_who_is_not_to_blame_gets_everything_back_at_any_time() {
    let items = [item(100_000, 2)];
    let booking = RefundBasis { fee: FeeMode::Waived, ..booking(&items, "12-01 12:00:00") };
    for now in ["12-01 12:00:00", "12-24 18:59:59", "12-24 19:00:00", "12-31 00:00:00"] {
        let refund = refund_of(&CancelPolicy::korean(), &booking, at(now));
        assert_eq!(text(refund), "202000 0 FULL", "{now}");
    }
}

#[test]
fn the_preview_says_until_when_it_holds() {
    let items = [item(100_000, 2)];
    let booking = booking(&items, "12-01 12:00:00");
    let table = [
        ("12-01 12:00:00", "12-02 00:00:00"),
        // Grace ends and seven free days go on: nothing changes for the owner.
        ("12-02 00:00:00", "12-09 00:00:00"),
        ("12-09 00:00:00", "12-15 00:00:00"),
        ("12-15 00:00:00", "12-18 00:00:00"),
        ("12-18 00:00:00", "12-22 00:00:00"),
        ("12-22 00:00:00", "12-24 00:00:00"),
        ("12-24 00:00:00", "12-24 19:00:00"),
    ];
    let policy = CancelPolicy::korean();
    for (now, until) in table {
        assert_eq!(refund_changes_at(&policy, &booking, at(now)), at(until), "{now}");
    }
    let waived = RefundBasis { fee: FeeMode::Waived, ..booking };
    let until = refund_changes_at(&policy, &waived, at("12-02 00:00:00"));
    assert_eq!(until, booking.starts_at);
}

#[test]
fn an_event_that_was_moved_to_another_day_is_free_to_cancel_until_it_begins() {
    let items = [item(100_000, 2)];
    let agreed = booking(&items, "12-01 12:00:00");
    let policy = CancelPolicy::korean();
    let moved_to = |start: &str, now: &str| {
        text(refund_of(&policy, &RefundBasis { starts_at: at(start), ..agreed }, at(now)))
    };
    // To today, to an earlier and to a later day.
    assert_eq!(moved_to("12-10 19:00:00", "12-10 18:59:59"), "202000 0 EVENT_MOVED");
    assert_eq!(moved_to("12-10 19:00:00", "12-10 19:00:00"), "0 202000 EVENT_STARTED");
    assert_eq!(moved_to("12-25 00:00:00", "12-24 23:59:59"), "202000 0 EVENT_MOVED");
    // Another hour of the same day is no move.
    assert_eq!(moved_to("12-24 00:00:00", "12-23 12:00:00"), "140000 62000 PERCENT_30");
    let until = refund_changes_at(
        &policy,
        &RefundBasis { starts_at: at("12-30 19:00:00"), ..agreed },
        at("12-02 00:00:00"),
    );
    assert_eq!(until, at("12-30 19:00:00"));
}

#[test]
fn the_schedule_has_a_row_for_each_amount_from_the_booking_to_the_event() {
    let items = [item(100_000, 2)];
    let policy = CancelPolicy::korean();
    let rows = |booking: &RefundBasis<'_>| -> Vec<String> {
        let day = |at: Timestamp| KOREA.to_datetime(at).strftime("%m-%d %H:%M").to_string();
        let periods = refund_schedule(&policy, booking);
        let row =
            |it: &RefundPeriod| format!("{} {} {}", day(it.from), day(it.until), text(it.quote));
        periods.iter().map(row).collect()
    };
    let booking = booking(&items, "12-01 12:00:00");
    let expected = [
        "12-01 12:00 12-02 00:00 202000 0 GRACE",
        "12-02 00:00 12-09 00:00 200000 2000 GRACE",
        "12-09 00:00 12-15 00:00 192000 10000 PERCENT_10_CAPPED",
        "12-15 00:00 12-18 00:00 180000 22000 PERCENT_10",
        "12-18 00:00 12-22 00:00 160000 42000 PERCENT_20",
        "12-22 00:00 12-24 00:00 140000 62000 PERCENT_30",
        "12-24 00:00 12-24 19:00 20000 182000 PERCENT_90",
    ];
    assert_eq!(rows(&booking), expected);
    let moved = RefundBasis { starts_at: at("12-30 19:00:00"), ..booking };
    assert_eq!(rows(&moved), ["12-01 12:00 12-30 19:00 202000 0 EVENT_MOVED"]);
    let over = RefundBasis { starts_at: at("12-01 12:00:00"), ..booking };
    assert_eq!(rows(&over), [""; 0]);
}

#[test]
fn free_cancellation_ends_when_the_first_fee_is_kept_for_good() {
    let items = [item(100_000, 1)];
    let policy = CancelPolicy::korean();
    let table = [
        // Seven days after the booking, ten days before the event, 24 hours, at once.
        ("12-01 12:00:00", "12-09 00:00:00"),
        ("12-12 12:00:00", "12-15 00:00:00"),
        ("12-20 12:00:00", "12-21 12:00:00"),
        ("12-22 12:00:00", "12-22 12:00:00"),
    ];
    for (booked, over) in table {
        let booking = booking(&items, booked);
        assert_eq!(free_until(&policy, &booking, at(booked)), at(over), "{booked}");
    }
    let booking = booking(&items, "12-01 12:00:00");
    let moved = RefundBasis { starts_at: at("12-30 19:00:00"), ..booking };
    assert_eq!(free_until(&policy, &moved, at("12-10 00:00:00")), at("12-30 19:00:00"));
    let over = at("12-25 00:00:00");
    assert_eq!(free_until(&policy, &booking, over), over, "the event has happened");
    let free_again = CancelPolicy::new(
        GracePeriod { hours: 0, days_before_min: 0 },
        vec![
            FeeBand { days_before_min: 5, free_days: None, percent: 10, ticket_fee_max: None },
            FeeBand { days_before_min: 0, free_days: None, percent: 0, ticket_fee_max: None },
        ],
    );
    let free_again = free_again.expect("it is a policy");
    let now = at("12-02 00:00:00");
    assert_eq!(free_until(&free_again, &booking, now), booking.starts_at);
}

fn items() -> impl Strategy<Value = Vec<ReservationItem>> {
    let one = (0_i64..=10_000_000, 1_u32..=10);
    prop::collection::vec(one.prop_map(|(price, quantity)| item(price, quantity)), 1..=4)
}

proptest! {
    /// For any booking and any two moments after it.
    #[test]
    fn b_8_what_goes_back_and_what_is_kept_add_up_and_waiting_never_pays(
        items in items(),
        booking_fee in 0_i64..=3_000,
        lead_seconds in 1_u64..=40 * 86_400,
        moments in (0_u64..=42 * 86_400, 0_u64..=42 * 86_400),
    ) {
        let booked_at = at("12-01 12:34:56");
        let starts_at = booked_at + Duration::from_secs(lead_seconds);
        let booking_fee = Won::new(booking_fee);
        let (agreed_starts_at, fee) = (starts_at, FeeMode::ByPolicy);
        let booking =
            RefundBasis { booked_at, agreed_starts_at, starts_at, booking_fee, items: &items, fee };
        let policy = CancelPolicy::korean();
        let moment = |seconds| booked_at + Duration::from_secs(seconds);
        let (early, late) = (moment(moments.0.min(moments.1)), moment(moments.0.max(moments.1)));
        let (first, second) =
            (refund_of(&policy, &booking, early), refund_of(&policy, &booking, late));
        for refund in [first, second] {
            prop_assert!(refund.refund >= Won::ZERO && refund.fee >= Won::ZERO);
            prop_assert_eq!(refund.refund.plus(refund.fee), Ok(booking.total()));
        }
        prop_assert!(second.refund <= first.refund, "{:?} then {:?}", first, second);
        // Ticket by ticket the same goes back as for all at once, the booking fee aside.
        let each = items.iter().flat_map(|item| {
            let price = item.unit_price;
            (0..item.quantity).map(move |_| price)
        });
        let of_each: i64 = each
            .map(|price| refund_of_tickets(&policy, &booking, &[price], early).refund.amount())
            .sum();
        let booking_fee_refund = first.refund.amount() - of_each;
        prop_assert!(booking_fee_refund == 0 || booking_fee_refund == booking_fee.amount());
        if early < starts_at {
            let until = refund_changes_at(&policy, &booking, early);
            prop_assert!(early < until && until <= starts_at);
            let just_before = until - Duration::from_micros(1);
            prop_assert_eq!(refund_of(&policy, &booking, just_before).refund, first.refund);
            if late < until {
                prop_assert_eq!(second.refund, first.refund);
            } else if until < starts_at {
                prop_assert!(second.refund < first.refund);
            }
        }
    }
}
