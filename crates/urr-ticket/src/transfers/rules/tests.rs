//! The rules of passing tickets on.

use urr_kernel::Uuid;

use crate::Reservation;
use crate::transfers::rules::*;

const SELLER: Uuid = Uuid::from_u128(1);
const BUYER: Uuid = Uuid::from_u128(2);
const OURS: Uuid = Uuid::from_u128(3);
const THEIRS: Uuid = Uuid::from_u128(4);
const SELLERS: Uuid = Uuid::from_u128(5);

fn at(text: &str) -> Timestamp {
    format!("2026-12-01T{text}:00Z").parse().expect("a time")
}

/// A paid reservation of two tickets whose event begins at seven.
fn record(amount: i64, artist_id: Option<Uuid>) -> ReservationRecord {
    ReservationRecord {
        reservation: Reservation {
            id: ReservationId(Uuid::nil()),
            number: "R".to_owned(),
            user_id: SELLER,
            event_id: Uuid::nil(),
            status: ReservationStatus::Confirmed,
            payment_status: ReservationPaymentStatus::Paid,
            total_amount: Won::new(amount),
            booking_fee: Won::ZERO,
            quantity: 2,
            fence: 7,
            expires_at: at("12:05"),
            pinned_by: None,
            created_at: at("12:00"),
        },
        kind: ReservationKind::Online,
        extended_at: None,
        ended_attempts: EndedAttempts::default(),
        payment_id: Some(SELLERS),
        payment_method: None,
        refund_amount: None,
        end_reason: None,
        updated_at: at("12:00"),
        agreed_starts_at: at("19:00"),
        announced_starts_at: at("19:00"),
        cancelled_amount: Won::ZERO,
        cancelled_refund_amount: Won::ZERO,
        sale_status: SaleStatus::Open,
        starts_at: at("19:00"),
        artist_id,
        event_title: String::new(),
        venue_name: String::new(),
    }
}

/// An offer for 110,000 won, in one of the states of the table below.
fn offer(state: &str) -> TransferOffer {
    let (status, pinned_by, payment_id) = match state {
        "listed" => (TransferStatus::Listed, None, None),
        "pinned" => (TransferStatus::Listed, Some(OURS), None),
        "sold" => (TransferStatus::Completed, None, Some(OURS)),
        "cancelled" => (TransferStatus::Cancelled, None, None),
        other => panic!("no such state: {other}"),
    };
    let transfer = Transfer {
        id: TransferId(Uuid::nil()),
        reservation_id: ReservationId(Uuid::nil()),
        number: 3,
        event_id: Uuid::nil(),
        seller_id: SELLER,
        seller_payment_id: SELLERS,
        price: TransferPrice::new(Won::new(100_000), 10),
        status,
        end_reason: None,
        buyer_id: pinned_by.or(payment_id).map(|_| BUYER),
        pinned_by,
        ended_attempts: EndedAttempts::default(),
        payment_id,
        refund_amount: None,
        created_at: at("12:00"),
        completed_at: None,
    };
    let mut record = record(100_000, None);
    if status == TransferStatus::Completed {
        record.payment_id = payment_id;
    }
    TransferOffer { transfer, record }
}

fn buyer() -> TransferBuyer {
    TransferBuyer { user_id: BUYER, is_member: false, live_quantity: 2, seats_per_user_max: 4 }
}

fn claim(payment_id: Uuid) -> PaymentClaim {
    PaymentClaim { payment_id, fencing_token: 3, amount: Won::new(110_000) }
}

#[test]
fn the_fee_goes_by_the_tier_and_is_rounded_down() {
    let artist = Some(Uuid::from_u128(9));
    let table = [
        // amount, artist, tier, percent, fee
        (150_000, artist, Some(Tier::Silver), Ok((10, 15_000))),
        (150_000, artist, Some(Tier::Gold), Ok((5, 7_500))),
        (150_000, artist, Some(Tier::Diamond), Ok((5, 7_500))),
        (150_000, artist, None, Err(TransferRejection::SellerNotMember)),
        (150_000, None, None, Ok((10, 15_000))),
        // Without an artist no tier is asked for.
        (150_000, None, Some(Tier::Gold), Ok((10, 15_000))),
        (99_999, None, None, Ok((10, 9_999))),
        (33_333, artist, Some(Tier::Gold), Ok((5, 1_666))),
        (9, None, None, Ok((10, 0))),
        (0, None, None, Ok((10, 0))),
    ];
    for (amount, artist_id, tier, expected) in table {
        let price = decide_list(&record(amount, artist_id), tier, at("12:00"));
        let priced = price.map(|price| (price.fee_percent, price.fee.amount()));
        assert_eq!(priced, expected, "{amount} {artist_id:?} {tier:?}");
        if let Ok(price) = price {
            assert_eq!(price.total().amount(), amount + price.fee.amount());
        }
    }
}

#[test]
fn only_what_is_paid_and_still_to_come_is_listed() {
    let good = record(100_000, None);
    let decide = |record: &ReservationRecord, now| decide_list(record, None, at(now)).map(|_| ());
    assert_eq!(decide(&good, "18:59"), Ok(()));
    assert_eq!(decide(&good, "19:00"), Err(TransferRejection::EventStarted));
    let mut held = good.clone();
    held.reservation.status = ReservationStatus::Pending;
    held.reservation.payment_status = ReservationPaymentStatus::Unpaid;
    let mut refunding = good.clone();
    refunding.reservation.status = ReservationStatus::Cancelled;
    refunding.reservation.payment_status = ReservationPaymentStatus::Refunding;
    for record in [held, refunding] {
        assert_eq!(decide(&record, "12:00"), Err(TransferRejection::NotConfirmed));
    }
    for sale_status in [SaleStatus::Cancelled, SaleStatus::Deleted] {
        let closed = ReservationRecord { sale_status, ..good.clone() };
        assert_eq!(decide(&closed, "12:00"), Err(TransferRejection::EventCancelled));
    }
}

#[test]
fn every_step_in_every_state() {
    let word = |step: Result<Transition, TransferRejection>| match step {
        Ok(Transition::Apply) => "go".to_owned(),
        Ok(Transition::AlreadyDone) => "done".to_owned(),
        Err(refused) => format!("{refused:?}"),
    };
    let row = |state: &str, payment: Uuid| {
        let offer = offer(state);
        let (claim, now) = (claim(payment), at("12:00"));
        let buyer_of_pin = offer.transfer.buyer_id.map(|_| buyer());
        [
            word(decide_pin(&offer, &buyer(), &claim, 1, now)),
            word(decide_unpin(&offer.transfer, payment, 1)),
            word(decide_complete(&offer, &claim, buyer_of_pin.as_ref())),
            word(decide_cancel(&offer.transfer, SELLER)),
        ]
        .join(" ")
    };
    //                    pin unpin complete cancel
    let table = [
        ("listed", OURS, "go go NotPinned go"),
        ("pinned", OURS, "done go go BeingPaid"),
        ("pinned", THEIRS, "BeingPaid go BeingPaid BeingPaid"),
        ("sold", OURS, "Sold Sold done Sold"),
        ("sold", THEIRS, "Sold done Sold Sold"),
        ("cancelled", OURS, "Cancelled done Cancelled done"),
    ];
    for (state, payment, expected) in table {
        assert_eq!(row(state, payment), expected, "{state}");
    }
    let cancelled_by_another = decide_cancel(&offer("listed").transfer, BUYER);
    assert_eq!(cancelled_by_another, Err(TransferRejection::NotFound));
}

#[test]
fn a_buyer_is_another_a_member_and_has_room() {
    let (listed, now) = (offer("listed"), at("12:00"));
    assert_eq!(decide_pay(&listed, &buyer(), now), Ok(()));
    let seller = TransferBuyer { user_id: SELLER, ..buyer() };
    assert_eq!(decide_pay(&listed, &seller, now), Err(TransferRejection::OwnTransfer));
    let full = TransferBuyer { live_quantity: 3, ..buyer() };
    assert_eq!(decide_pay(&listed, &full, now), Err(TransferRejection::SeatLimit));
    assert_eq!(decide_pay(&listed, &buyer(), at("19:00")), Err(TransferRejection::EventStarted));
    let mut of_an_artist = offer("listed");
    of_an_artist.record.artist_id = Some(Uuid::from_u128(9));
    assert_eq!(decide_pay(&of_an_artist, &buyer(), now), Err(TransferRejection::BuyerNotMember));
    let member = TransferBuyer { is_member: true, ..buyer() };
    assert_eq!(decide_pay(&of_an_artist, &member, now), Ok(()));
}

#[test]
fn an_attempt_that_is_over_neither_pins_nor_unpins() {
    let (mut listed, mut pinned) = (offer("listed"), offer("pinned"));
    for offer in [&mut listed, &mut pinned] {
        offer.transfer.ended_attempts = EndedAttempts::default().with(OURS, 2);
    }
    let pin = |attempt| decide_pin(&listed, &buyer(), &claim(OURS), attempt, at("12:00"));
    assert_eq!(pin(2), Err(TransferRejection::AttemptOver));
    assert_eq!(pin(3), Ok(Transition::Apply));
    assert_eq!(decide_unpin(&pinned.transfer, OURS, 2), Ok(Transition::AlreadyDone));
    assert_eq!(decide_unpin(&pinned.transfer, OURS, 3), Ok(Transition::Apply));
}

#[test]
fn a_stale_token_or_another_price_takes_no_step() {
    let stale = PaymentClaim { fencing_token: 2, ..claim(OURS) };
    let cheap = PaymentClaim { amount: Won::new(109_999), ..claim(OURS) };
    let table = [(stale, TransferRejection::StaleToken), (cheap, TransferRejection::WrongAmount)];
    for (claim, refused) in table {
        for state in ["listed", "pinned"] {
            let pinned = decide_pin(&offer(state), &buyer(), &claim, 1, at("12:00"));
            assert_eq!(pinned, Err(refused), "{state}");
        }
        for state in ["pinned", "sold"] {
            let completed = decide_complete(&offer(state), &claim, Some(&buyer()));
            assert_eq!(completed, Err(refused), "{state}");
        }
    }
}

#[test]
fn what_was_pinned_in_time_is_handed_over_unless_the_event_was_cancelled_or_there_is_no_room() {
    let mut pinned = offer("pinned");
    // The beginning is not asked for: there is no time in the question.
    assert_eq!(decide_complete(&pinned, &claim(OURS), Some(&buyer())), Ok(Transition::Apply));
    let full = TransferBuyer { live_quantity: 3, ..buyer() };
    let refused = decide_complete(&pinned, &claim(OURS), Some(&full));
    assert_eq!(refused, Err(TransferRejection::SeatLimit));
    pinned.record.sale_status = SaleStatus::Cancelled;
    let refused = decide_complete(&pinned, &claim(OURS), Some(&buyer()));
    assert_eq!(refused, Err(TransferRejection::EventCancelled));
}

#[test]
fn the_money_of_a_buyer_follows_the_reservation_until_they_sell_it() {
    let mut sold = offer("sold");
    assert_eq!(
        (sold.payment_status(), sold.refund_amount()),
        (ReservationPaymentStatus::Paid, None)
    );
    sold.record.reservation.payment_status = ReservationPaymentStatus::Refunding;
    sold.record.refund_amount = Some(Won::new(80_000));
    let refunding = (ReservationPaymentStatus::Refunding, Some(Won::new(80_000)));
    assert_eq!((sold.payment_status(), sold.refund_amount()), refunding);
    let mut sold_on = offer("sold");
    sold_on.record.payment_id = Some(THEIRS);
    let whole = (ReservationPaymentStatus::Refunding, Some(Won::new(110_000)));
    assert_eq!((sold_on.payment_status(), sold_on.refund_amount()), whole);
    sold_on.transfer.refund_amount = Some(Won::new(110_000));
    assert_eq!(sold_on.payment_status(), ReservationPaymentStatus::Refunded);
}

#[test]
fn only_its_own_payment_comes_back_and_once() {
    let mut sold = offer("sold").transfer;
    let back = |transfer: &Transfer, payment_id, amount| {
        decide_refunded(transfer, payment_id, Won::new(amount))
    };
    assert_eq!(back(&sold, THEIRS, 110_000), Err(TransferRejection::NotRefunding));
    assert_eq!(back(&sold, OURS, 110_001), Err(TransferRejection::WrongAmount));
    assert_eq!(back(&sold, OURS, 110_000), Ok(Transition::Apply));
    sold.refund_amount = Some(Won::new(110_000));
    assert_eq!(back(&sold, OURS, 110_000), Ok(Transition::AlreadyDone));
    assert_eq!(back(&sold, OURS, 100_000), Err(TransferRejection::WrongAmount));
    let listed = offer("listed").transfer;
    assert_eq!(back(&listed, OURS, 110_000), Err(TransferRejection::NotRefunding));
}
