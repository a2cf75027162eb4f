//! The rules over small boards.

use std::collections::BTreeMap;

use urr_layout::{GradeRows, Grid};

use crate::inventory::rules::{InventoryKind, SaleStatus};
use crate::reserve::rules::*;

const NOW: &str = "2026-12-05T00:00:00Z";
const STANDING: Uuid = Uuid::from_u128(77);

fn at(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

fn terms() -> HoldTerms {
    let hold_ttl = Duration::from_secs(300);
    HoldTerms {
        now: at(NOW),
        hold_ttl,
        cancel_policy: Arc::new(CancelPolicy::korean()),
        gate_max: Duration::from_mins(30),
        dangerous_without_seat_guard: false,
    }
}

/// Ten seats of 100,000 won.
fn inventory() -> Inventory {
    let all = GradeRows { grade: "R".to_owned(), from_row: 1, to_row: 1 };
    let grid = Grid { rows: 1, seats_per_row: 10, grade_mapping: vec![all] };
    Inventory {
        event_id: Uuid::from_u128(1),
        kind: InventoryKind::Seated,
        layout: grid.to_layout().expect("a hall"),
        prices: BTreeMap::from([("R".to_owned(), Won::new(100_000))]),
    }
}

/// Seats by their signs, `.` for a free one, and three standing tickets.
fn state(seats: &str) -> SaleState {
    let free = seats.bytes().map(|sign| sign == b'.');
    let stock =
        AvailableStock { name: "스탠딩".to_owned(), price: Won::new(88_000), available: 3 };
    SaleState {
        policy: SalePolicy {
            status: SaleStatus::Open,
            is_complete: true,
            artist_id: None,
            starts_at: at("2026-12-24T10:00:00Z"),
            sale_starts_at: at("2026-12-01T11:00:00Z"),
            sale_ends_at: at("2026-12-10T00:00:00Z"),
            has_presale: false,
            seats_per_user_max: 4,
            requires_identity: false,
            cancel_policy: None,
        },
        fence: 40,
        seats: (0..).zip(free).collect(),
        map: None,
        stock: HashMap::from([(STANDING, stock)]),
        buyers: HashMap::new(),
        persons: HashMap::new(),
        earlier: HashMap::new(),
        gates: AlertGates::default(),
    }
}

fn request(number: u128, seat_ids: &[SeatId]) -> HoldRequest {
    HoldRequest {
        reservation_id: ReservationId(Uuid::from_u128(1_000 + number)),
        user_id: Uuid::from_u128(number),
        person: None,
        requested: RequestedItems::of_seats(seat_ids.to_vec()).expect("seats"),
        key: None,
    }
}

fn decide(state: &mut SaleState, request: &HoldRequest) -> Result<HoldDecision, HoldRejection> {
    decide_hold(state, request, &inventory(), &terms())
}

fn hold(decision: Result<HoldDecision, HoldRejection>) -> Hold {
    match decision {
        Ok(HoldDecision::Hold(hold)) => hold,
        other => panic!("no hold but {other:?}"),
    }
}

#[test]
fn a_seat_goes_to_the_first_and_tokens_grow() {
    let mut state = state("....x.....");
    let first = hold(decide(&mut state, &request(1, &[3, 2])));
    assert_eq!((first.reservation.fence, first.seat_ids()), (41, vec![2, 3]));
    assert_eq!(first.reservation.total_amount, Won::new(200_000));
    assert_eq!(first.reservation.expires_at, at("2026-12-05T00:05:00Z"));
    let late = decide(&mut state, &request(2, &[3, 4, 5]));
    assert_eq!(late, Err(HoldRejection::SeatsTaken { seat_ids: vec![3, 4] }));
    // A refusal takes nothing and uses no number.
    let other = hold(decide(&mut state, &request(3, &[5])));
    assert_eq!(other.reservation.fence, 42);
}

#[test]
fn b_4_nobody_has_more_than_the_event_allows() {
    let mut state = state("..........");
    let bought = BuyerHoldings { live_quantity: 3, ..BuyerHoldings::default() };
    state.buyers.insert(Uuid::from_u128(1), bought);
    let refused = HoldRejection::SeatLimit { seats_per_user_max: 4, live_quantity: 3 };
    assert_eq!(decide(&mut state, &request(1, &[0, 1])), Err(refused));
    hold(decide(&mut state, &request(1, &[0])));
    let refused = HoldRejection::SeatLimit { seats_per_user_max: 4, live_quantity: 0 };
    assert_eq!(decide(&mut state, &request(2, &[5, 6, 7, 8, 9])), Err(refused));
}

#[test]
fn one_hold_at_a_time_even_within_a_batch() {
    let mut state = state("..........");
    let first = hold(decide(&mut state, &request(1, &[0])));
    let again = HoldRequest { reservation_id: ReservationId(Uuid::nil()), ..request(1, &[1]) };
    let refused = HoldRejection::HoldInProgress { reservation_id: first.reservation.id };
    assert_eq!(decide(&mut state, &again), Err(refused));
}

#[test]
fn b_1_b_2_window_and_tier_come_before_the_seats() {
    let mut state = state("xxxxxxxxxx");
    state.policy.sale_ends_at = at(NOW);
    assert_eq!(decide(&mut state, &request(1, &[0])), Err(NotOnSale::Ended.into()));
    state.policy.sale_ends_at = at("2026-12-10T00:00:00Z");
    state.policy.has_presale = true;
    state.policy.sale_starts_at = at("2026-12-04T23:30:00Z");
    let presale = NotOnSale::Presale { opens_at: at("2026-12-06T23:30:00Z") };
    assert_eq!(decide(&mut state, &request(1, &[0])), Err(presale.into()));
    let diamond = BuyerHoldings { tier: Some(Tier::Diamond), ..BuyerHoldings::default() };
    state.buyers.insert(Uuid::from_u128(2), diamond);
    state.seats.insert(0, true);
    hold(decide(&mut state, &request(2, &[0])));
}

#[test]
fn b_3_a_member_pays_the_fee_once_and_the_public_does_not() {
    let mut state = state("..........");
    state.policy.has_presale = true;
    state.policy.sale_starts_at = at("2026-12-04T00:00:00Z");
    let gold = BuyerHoldings { tier: Some(Tier::Gold), ..BuyerHoldings::default() };
    state.buyers.insert(Uuid::from_u128(1), gold);
    let held = hold(decide(&mut state, &request(1, &[0, 1, 2]))).reservation;
    assert_eq!((held.booking_fee, held.total_amount), (Won::new(2_000), Won::new(302_000)));
    state.buyers.insert(Uuid::from_u128(2), gold);
    state.policy.sale_starts_at = at("2026-12-03T00:00:00Z");
    for number in [2, 3] {
        let seat_id = u32::try_from(number).expect("a small number");
        let held = hold(decide(&mut state, &request(number, &[seat_id + 1]))).reservation;
        assert_eq!((held.booking_fee, held.total_amount), (Won::ZERO, Won::new(100_000)));
    }
}

#[test]
fn r_4_d_8_a_key_is_answered_again_to_the_same_user_for_the_same_request() {
    let mut state = state("..........");
    let with_key = |number, seat_ids: &[SeatId], digest: u8| HoldRequest {
        key: Some(KeyedRequest {
            user_id: Uuid::from_u128(number),
            operation: "reserve",
            key: IdempotencyKey::parse("click-1").expect("a key"),
            fingerprint: digest.to_string(),
        }),
        ..request(number, seat_ids)
    };
    let first = hold(decide(&mut state, &with_key(1, &[0], 7)));
    let again = HoldRequest { reservation_id: ReservationId(Uuid::nil()), ..with_key(1, &[0], 7) };
    assert_eq!(decide(&mut state, &again), Ok(HoldDecision::Repeated(first.reservation.id)));
    assert_eq!(decide(&mut state, &with_key(1, &[1], 8)), Err(HoldRejection::KeyReused));
    hold(decide(&mut state, &with_key(2, &[1], 7)));
}

#[test]
fn f_13_stock_is_taken_whole_or_not_at_all() {
    let mut state = state("");
    let tickets = |number, quantity| HoldRequest {
        requested: RequestedItems::of_tickets(vec![RequestedTickets {
            ticket_type_id: STANDING,
            quantity,
        }])
        .expect("tickets"),
        ..request(number, &[0])
    };
    assert_eq!(hold(decide(&mut state, &tickets(1, 2))).reservation.quantity, 2);
    let not_enough = HoldRejection::NotEnough {
        ticket_type_id: STANDING,
        name: "스탠딩".to_owned(),
        available: 1,
    };
    assert_eq!(decide(&mut state, &tickets(2, 2)), Err(not_enough));
    hold(decide(&mut state, &tickets(3, 1)));
    assert_eq!(state.stock[&STANDING].available, 0);
}

#[test]
fn a_request_names_everything_once_and_not_too_much() {
    assert_eq!(RequestedItems::of_seats(vec![]), Err(InvalidRequestedItems::Empty));
    assert_eq!(RequestedItems::of_seats(vec![4, 2, 4]), Err(InvalidRequestedItems::Duplicate));
    assert_eq!(RequestedItems::of_seats((0..11).collect()), Err(InvalidRequestedItems::TooMany));
    assert_eq!(RequestedItems::of_seats(vec![4, 2]), Ok(RequestedItems::Seats(vec![2, 4])));
    let line = |quantity| RequestedTickets { ticket_type_id: STANDING, quantity };
    assert_eq!(RequestedItems::of_tickets(vec![line(0)]), Err(InvalidRequestedItems::Empty));
    assert_eq!(RequestedItems::of_tickets(vec![line(11)]), Err(InvalidRequestedItems::TooMany));
    assert_eq!(
        RequestedItems::of_tickets(vec![line(1), line(2)]),
        Err(InvalidRequestedItems::Duplicate)
    );
}

#[test]
fn the_control_without_a_guard_sells_a_taken_seat() {
    let mut state = state("x");
    let terms = HoldTerms { dangerous_without_seat_guard: true, ..terms() };
    let sold = decide_hold(&mut state, &request(1, &[0]), &inventory(), &terms);
    assert_eq!(hold(sold).seat_ids(), [0]);
}
