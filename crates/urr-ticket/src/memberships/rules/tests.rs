//! The rules of memberships, over small tables.

use crate::memberships::rules::*;

const OURS: Uuid = Uuid::from_u128(1);
const THEIRS: Uuid = Uuid::from_u128(2);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn at(text: &str) -> Timestamp {
    format!("{text}T03:00:00Z").parse().expect("a time")
}

/// A membership of 30,000 won with its second term in one of the states of the table below.
fn membership(state: &str) -> Membership {
    let payment_status = match state {
        "offered" | "pinned" => TermPaymentStatus::Unpaid,
        "paid" => TermPaymentStatus::Paid,
        "refunded" => TermPaymentStatus::Refunded,
        other => panic!("no such state: {other}"),
    };
    let was_paid = payment_status != TermPaymentStatus::Unpaid;
    let period = TermPeriod { starts_at: at("2026-12-01"), ends_at: at("2027-12-01") };
    Membership {
        id: MembershipId(Uuid::nil()),
        user_id: Uuid::nil(),
        artist_id: Uuid::nil(),
        artist: Some(MembershipArtist {
            name: "한강 밴드".to_owned(), price: Won::new(30_000)
        }),
        tier: Tier::Silver,
        points: 200,
        pending_points: 0,
        joined_at: Some(at("2025-12-01")),
        expires_at: at("2026-12-01"),
        is_live: true,
        last_term: 2,
        ended_attempts: EndedAttempts::default(),
        term: Some(MembershipTerm {
            number: 2,
            payment_status,
            amount: (state != "offered").then_some(Won::new(30_000)),
            pinned_by: (state == "pinned").then_some(OURS),
            payment_id: was_paid.then_some(OURS),
            period: was_paid.then_some(period),
        }),
    }
}

fn claim(payment_id: Uuid) -> PaymentClaim {
    PaymentClaim { payment_id, fencing_token: 2, amount: Won::new(30_000) }
}

fn word(step: Result<Transition, MembershipRejection>) -> String {
    match step {
        Ok(Transition::Apply) => "go".to_owned(),
        Ok(Transition::AlreadyDone) => "done".to_owned(),
        Err(refused) => format!("{refused:?}"),
    }
}

#[test]
fn every_step_in_every_state() {
    //                 subscribe pin unpin confirm refunded
    let table = [
        ("offered", "done go go NotPinned NotRefunding"),
        ("pinned", "done done go go NotRefunding"),
        ("paid", "go Paid Paid done go"),
        ("refunded", "go NotForSale done Refunded done"),
    ];
    for (state, expected) in table {
        let membership = membership(state);
        let steps = [
            word(decide_subscribe(Some(&membership), at("2026-11-30"))),
            word(decide_pin(&membership, &claim(OURS), 1)),
            word(decide_unpin(&membership, OURS, 1)),
            word(decide_confirm(&membership, &claim(OURS))),
            word(decide_refunded(&membership, Some(Won::new(30_000)))),
        ];
        assert_eq!(steps.join(" "), expected, "{state}");
    }
}

#[test]
fn another_payment_is_refused_whatever_the_state() {
    let pinned = membership("pinned");
    assert_eq!(decide_pin(&pinned, &claim(THEIRS), 1), Err(MembershipRejection::PaymentInProgress));
    assert_eq!(
        decide_confirm(&pinned, &claim(THEIRS)),
        Err(MembershipRejection::PaymentInProgress)
    );
    let paid = membership("paid");
    assert_eq!(decide_pin(&paid, &claim(THEIRS), 1), Err(MembershipRejection::Paid));
    assert_eq!(decide_confirm(&paid, &claim(THEIRS)), Err(MembershipRejection::Paid));
}

#[test]
fn an_attempt_that_is_over_neither_pins_nor_unpins() {
    let (mut offered, mut pinned) = (membership("offered"), membership("pinned"));
    for membership in [&mut offered, &mut pinned] {
        membership.ended_attempts = EndedAttempts::default().with(OURS, 2);
    }
    let late = decide_pin(&offered, &claim(OURS), 2);
    assert_eq!(late, Err(MembershipRejection::AttemptOver));
    assert_eq!(decide_pin(&offered, &claim(OURS), 3), Ok(Transition::Apply));
    assert_eq!(decide_unpin(&pinned, OURS, 2), Ok(Transition::AlreadyDone));
    assert_eq!(decide_unpin(&pinned, OURS, 3), Ok(Transition::Apply));
}

#[test]
fn another_amount_takes_no_step() {
    let cheap = PaymentClaim { amount: Won::new(29_999), ..claim(OURS) };
    for state in ["offered", "pinned"] {
        let membership = membership(state);
        assert_eq!(
            decide_pin(&membership, &cheap, 1),
            Err(MembershipRejection::WrongAmount),
            "{state}"
        );
    }
    for state in ["pinned", "paid"] {
        let confirmed = decide_confirm(&membership(state), &cheap);
        assert_eq!(confirmed, Err(MembershipRejection::WrongAmount), "{state}");
    }
    let half = decide_refunded(&membership("paid"), Some(Won::new(15_000)));
    assert_eq!(half, Err(MembershipRejection::WrongAmount));
    assert_eq!(decide_refunded(&membership("paid"), None), Ok(Transition::Apply));
}

#[test]
fn a_price_is_fixed_when_the_payment_begins() {
    for (state, amount) in [("offered", 50_000), ("pinned", 30_000), ("paid", 30_000)] {
        let artist =
            Some(MembershipArtist { name: "한강 밴드".to_owned(), price: Won::new(50_000) });
        let dearer = Membership { artist, ..membership(state) };
        assert_eq!(dearer.amount(), Won::new(amount), "{state}");
    }
}

#[test]
fn b_5_a_year_is_renewed_in_its_last_thirty_days_or_later() {
    let paid = Membership { expires_at: at("2026-12-31"), ..membership("paid") };
    for (now, expected) in [
        ("2026-11-30", Err(MembershipRejection::AlreadyMember)),
        ("2026-12-01", Ok(Transition::Apply)),
        ("2026-12-31", Ok(Transition::Apply)),
        ("2029-01-01", Ok(Transition::Apply)),
    ] {
        assert_eq!(decide_subscribe(Some(&paid), at(now)), expected, "{now}");
    }
    let early = at("2026-12-01") - Duration::from_micros(1);
    let refused = decide_subscribe(Some(&paid), early);
    assert_eq!(refused, Err(MembershipRejection::AlreadyMember));
}

#[test]
fn b_5_a_renewed_year_comes_behind_the_present_one() {
    let offered = membership("offered");
    let spans = [
        ("2026-11-15", ("2026-12-01", "2027-12-01")),
        ("2026-12-01", ("2026-12-01", "2027-12-01")),
        ("2028-02-29", ("2028-02-29", "2029-02-28")),
    ];
    for (now, (starts_at, ends_at)) in spans {
        let expected = TermPeriod { starts_at: at(starts_at), ends_at: at(ends_at) };
        assert_eq!(next_period(&offered, at(now)), expected, "{now}");
    }
    let first = Membership { joined_at: None, ..offered };
    assert_eq!(next_period(&first, at("2026-11-15")).starts_at, at("2026-11-15"));
}

#[test]
fn f_12_what_is_over_counts_no_more_whether_it_was_told_or_not() {
    let membership = membership("offered");
    let just_before = membership.expires_at - Duration::from_micros(1);
    assert_eq!(membership.status(just_before), MembershipStatus::Active);
    assert_eq!(membership.effective_tier(just_before), Some(Tier::Silver));
    assert_eq!(membership.status(membership.expires_at), MembershipStatus::Expired);
    assert_eq!(membership.effective_tier(membership.expires_at), None);
    let never = Membership { joined_at: None, ..membership };
    assert_eq!(never.status(just_before), MembershipStatus::Pending);
    assert_eq!(never.effective_tier(just_before), None);
}

#[test]
fn what_is_left_of_a_refunded_year_is_cut_and_the_next_one_moves_forward() {
    let year = |from: &str, to: &str| TermPeriod { starts_at: at(from), ends_at: at(to) };
    let (first, second) = (year("2026-01-01", "2027-01-01"), year("2027-01-01", "2028-01-01"));
    let now = at("2026-12-22");
    // The present year, ten days before its end.
    let (cut, moved) = cut_period(first, &[(2, second)], now);
    assert_eq!(cut, 10 * DAY);
    assert_eq!(moved, [(2, year("2026-12-22", "2027-12-22"))]);
    // The year to come: nothing of the present one is lost.
    let (cut, moved) = cut_period(second, &[(1, first)], now);
    assert_eq!((cut, moved), (365 * DAY, Vec::new()));
    // What is over.
    let (cut, moved) = cut_period(first, &[(2, second)], at("2027-05-01"));
    assert_eq!((cut, moved), (Duration::ZERO, vec![(2, second)]));
}

#[test]
fn b_7_benefits_by_tier() {
    let rows = Benefits::of_all_tiers().into_iter().map(|benefits| {
        let number = |number: Option<i64>| number.map_or("-".to_owned(), |n| n.to_string());
        format!(
            "{} {} {} {} {} {} {} {}",
            benefits.tier,
            number(benefits.points_from),
            benefits.pre_sale_delay_seconds / 3_600,
            number(benefits.pre_sale_phase.map(i64::from)),
            benefits.pre_sale_label,
            benefits.booking_fee_surcharge.amount(),
            number(benefits.transfer_fee_percent.map(i64::from)),
            number(benefits.next_tier_threshold),
        )
    });
    let expected = [
        "diamond 1500 0 1 선예매 1 1000 5 -",
        "gold 500 1 2 선예매 2 2000 5 1500",
        "silver 0 24 3 선예매 3 3000 10 500",
        "bronze - 48 - 일반예매 0 - -",
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}
