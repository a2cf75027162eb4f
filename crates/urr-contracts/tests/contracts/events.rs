//! The domain events.

use urr_contracts::events::alert::{SaleAlertDue, SeatAlertDue};
use urr_contracts::events::catalog::{
    ArtistCreated, ArtistUpdated, CatalogEventStatus, EventCancelled, EventCreated, EventDeleted,
    EventKind, EventSnapshot, EventUpdated, OrderedTicketType,
};
use urr_contracts::events::community::{
    CommentCreated, CommentStatusChanged, PostCreated, PostKind, PostPicturesChanged, PostStatus,
    PostStatusChanged,
};
use urr_contracts::events::inventory::{HouseSeatsChanged, InventoryReady, TicketTypeChanged};
use urr_contracts::events::membership::{MembershipActivated, MembershipExpired};
use urr_contracts::events::payment::{
    ChargeReversed, PaymentConfirmed, PaymentRefunded, PaymentSnapshot, PaymentType, RefundCause,
};
use urr_contracts::events::queue::{AdmissionNear, QueueObserved};
use urr_contracts::events::reservation::{
    BoxOfficeSold, ComplimentaryIssued, ReservationCancelled, ReservationChanged,
    ReservationConfirmed, ReservationCreated, ReservationExpired, ReservationPartlyCancelled,
    ReservationRescheduled, ReservationSnapshot,
};
use urr_contracts::events::transfer::{TransferCancelled, TransferCompleted};
use urr_contracts::events::user::{
    AccountLinkIssued, UserDeleted, UserRegistered, UserRoleChanged,
};
use urr_contracts::events::{TOPICS, TYPES};
use urr_contracts::internal::auth::{AccountLinkKind, AccountRole};
use urr_kernel::{CancelPolicy, EventData, Tier, Won};
use urr_layout::{Layout, SeatRow, Section};

use crate::golden::{GoldenFolder, id, time};

fn check<D: EventData + PartialEq + std::fmt::Debug>(golden: &mut GoldenFolder, sample: &D) {
    assert!(TOPICS.contains(&D::TOPIC), "{}", D::TOPIC);
    golden.check(D::TYPE, sample);
}

#[test]
fn every_event_is_written_and_read_as_its_golden_file() {
    let mut golden = GoldenFolder::open("events");
    check_catalog(&mut golden);
    check_reservations(&mut golden);
    check_payments(&mut golden);
    check_memberships_and_transfers(&mut golden);
    check_inventory_queue_and_users(&mut golden);
    check_community(&mut golden);
    check_alerts(&mut golden);
    golden.finish(TYPES.iter().map(|name| (*name).to_owned()));
}

#[test]
fn a_value_that_is_newer_than_the_reader_is_read_as_other() {
    let read: RefundCause = serde_json::from_str("\"weather\"").unwrap();
    assert_eq!(read, RefundCause::Other);
    assert!(serde_json::from_str::<EventKind>("\"floating\"").is_err(), "negative control");
    for cause in RefundCause::ALL {
        assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
    }
}

#[test]
fn missing_optional_and_unknown_fields_are_accepted() {
    let text = r#"{"eventId":"0198b7a0-0000-7000-8000-000000000001","revision":2,"colour":"red"}"#;
    let read: EventCancelled = serde_json::from_str(text).unwrap();
    assert_eq!(read, EventCancelled { event_id: id(1), revision: 2, reason: None });
}

fn check_house(golden: &mut GoldenFolder) {
    let sold = BoxOfficeSold {
        reservation: reservation(),
        payment_id: id(30),
        fencing_token: 12,
        payment_method: "box_office_card".to_owned(),
        receipt_number: Some("0071".to_owned()),
    };
    check(golden, &sold);
    check(golden, &ComplimentaryIssued { reservation: reservation() });
    check(golden, &HouseSeatsChanged { event_id: id(1), blocked: 20, fence: 12 });
}

fn check_community(golden: &mut GoldenFolder) {
    let (post_id, comment_id, artist_id, author_id) = (id(80), id(81), Some(id(2)), id(11));
    check(golden, &PostCreated { post_id, kind: PostKind::Post, artist_id, author_id });
    check(golden, &PostStatusChanged { post_id, artist_id, status: PostStatus::Hidden });
    let image_ids = vec!["0a".repeat(32), "0b".repeat(32)];
    check(golden, &PostPicturesChanged { post_id, image_ids });
    check(golden, &CommentCreated { comment_id, post_id, artist_id, author_id });
    let status = PostStatus::Deleted;
    check(golden, &CommentStatusChanged { comment_id, post_id, status });
}

fn event(kind: EventKind) -> EventSnapshot {
    EventSnapshot {
        event_id: id(1),
        revision: 1,
        title: "첫 번째 콘서트".to_owned(),
        kind,
        status: CatalogEventStatus::Upcoming,
        artist_id: Some(id(2)),
        artist_name: Some("미나".to_owned()),
        venue_id: id(3),
        venue_name: "올림픽홀".to_owned(),
        address: "서울".to_owned(),
        starts_at: time("2026-12-24T10:00:00Z"),
        sale_starts_at: time("2026-12-01T11:00:00Z"),
        sale_ends_at: time("2026-12-23T15:00:00Z"),
        has_presale: true,
        seats_per_user_max: 4,
        organiser_id: Some(id(9)),
        requires_identity: false,
        allows_reentry: true,
        cancel_policy: Some(CancelPolicy::korean()),
        layout: None,
        prices: [("VIP".to_owned(), Won::new(150_000))].into(),
        ticket_types: Vec::new(),
    }
}

fn layout() -> Layout {
    Layout {
        sections: vec![Section {
            name: "1층 A".to_owned(),
            grade: "VIP".to_owned(),
            x: 0,
            y: 500,
            angle_degrees: 0,
            curve_radius: 0,
            seat_pitch: 55,
            row_pitch: 90,
            view_image_url: None,
            rows: vec![SeatRow {
                label: "1".to_owned(),
                seats: 10,
                first_number: 1,
                number_step: 1,
                offset: 0,
                accessible: vec![1],
                restricted_view: Vec::new(),
            }],
        }],
    }
}

fn check_catalog(golden: &mut GoldenFolder) {
    let (artist_id, name, membership_price) = (id(2), "미나".to_owned(), Won::new(30_000));
    check(golden, &ArtistCreated { artist_id, name: name.clone(), membership_price });
    check(golden, &ArtistUpdated { artist_id, name, membership_price });
    let layout = Some(layout());
    check(golden, &EventCreated(EventSnapshot { layout, ..event(EventKind::Seated) }));
    let standing = OrderedTicketType {
        id: id(4),
        name: "스탠딩".to_owned(),
        description: String::new(),
        price: Won::new(99_000),
        total: 300,
    };
    check(
        golden,
        &EventUpdated(EventSnapshot {
            artist_id: None,
            artist_name: None,
            prices: [].into(),
            ticket_types: vec![standing],
            ..event(EventKind::Standing)
        }),
    );
    let reason = Some("공연 취소".to_owned());
    check(golden, &EventCancelled { event_id: id(1), revision: 3, reason });
    check(golden, &EventDeleted { event_id: id(1), revision: 4, is_over: Some(false) });
}

fn reservation() -> ReservationSnapshot {
    ReservationSnapshot {
        reservation_id: id(10),
        reservation_number: "R20261201ABCDEF".to_owned(),
        user_id: id(11),
        event_id: id(1),
        total_amount: Won::new(302_000),
        booking_fee: Won::new(2_000),
        quantity: 2,
        seat_ids: vec![0, 1],
        timestamp: time("2026-12-01T11:00:01Z"),
    }
}

fn check_reservations(golden: &mut GoldenFolder) {
    let expires_at = time("2026-12-01T11:05:01Z");
    check(golden, &ReservationCreated { reservation: reservation(), expires_at });
    check(
        golden,
        &ReservationChanged {
            reservation: reservation(),
            previous_seat_ids: vec![5],
            previous_total_amount: Won::new(151_000),
        },
    );
    let payment_method = Some("card".to_owned());
    let (payment_id, reservation_) = (id(20), reservation());
    check(golden, &ReservationConfirmed { reservation: reservation_, payment_id, payment_method });
    check(
        golden,
        &ReservationCancelled {
            reservation: reservation(),
            reason: "CANCELLED_BY_OWNER".to_owned(),
            refund_amount: Won::new(270_000),
            cancellation_fee: Won::new(32_000),
            payment_id: Some(id(20)),
        },
    );
    check(
        golden,
        &ReservationPartlyCancelled {
            reservation: reservation(),
            cancellation_id: id(13),
            cancelled_seat_ids: vec![2],
            cancelled_quantity: 1,
            cancelled_amount: Won::new(150_000),
            refund_amount: Won::new(135_000),
            cancellation_fee: Won::new(15_000),
            reason: "CANCELLED_BY_OWNER".to_owned(),
            payment_id: id(20),
        },
    );
    check(
        golden,
        &ReservationRescheduled {
            reservation: reservation(),
            previous_starts_at: time("2026-12-24T10:00:00Z"),
            starts_at: time("2026-12-26T10:00:00Z"),
            is_free_to_cancel: true,
        },
    );
    check(golden, &ReservationExpired { reservation: reservation() });
    check_house(golden);
}

fn payment(payment_type: PaymentType) -> PaymentSnapshot {
    PaymentSnapshot {
        payment_id: id(20),
        order_id: "ORD_0198b7a0".to_owned(),
        user_id: id(11),
        payment_type,
        reference_id: id(10),
        reservation_id: Some(id(10)),
        event_id: Some(id(1)),
        payment_method: Some("card".to_owned()),
        timestamp: time("2026-12-01T11:02:00Z"),
    }
}

fn check_payments(golden: &mut GoldenFolder) {
    check(
        golden,
        &PaymentConfirmed {
            payment: payment(PaymentType::Reservation),
            amount: Won::new(302_000),
            booking_fee: Won::new(2_000),
            transfer_fee: None,
            fencing_token: Some(7),
        },
    );
    check(
        golden,
        &PaymentRefunded {
            payment: payment(PaymentType::Reservation),
            refund_id: id(21),
            amount: Won::new(270_000),
            fee: Won::new(32_000),
            requested_amount: Some(Won::new(270_000)),
            cause: RefundCause::Cancelled,
            reason: "CANCELLED_BY_OWNER".to_owned(),
            is_whole: Some(false),
        },
    );
    check(
        golden,
        &ChargeReversed {
            payment: payment(PaymentType::Reservation),
            refund_id: id(21),
            amount: Won::new(301_999),
            ordered_amount: Won::new(302_000),
            cause: RefundCause::Mismatch,
            reason: "AMOUNT_MISMATCH".to_owned(),
        },
    );
}

fn check_memberships_and_transfers(golden: &mut GoldenFolder) {
    let (membership_id, user_id, artist_id) = (id(30), id(11), id(2));
    let (tier, expires_at) = (Tier::Silver, time("2027-12-01T11:00:00Z"));
    let timestamp = Some(time("2026-12-01T11:02:00Z"));
    check(
        golden,
        &MembershipActivated {
            membership_id,
            user_id,
            artist_id,
            tier,
            expires_at,
            payment_id: id(20),
            amount: Won::new(30_000),
            is_renewal: false,
            timestamp,
        },
    );
    let ended =
        MembershipExpired { membership_id, user_id, artist_id, tier, expires_at, timestamp };
    check(golden, &ended);
    check(
        golden,
        &TransferCompleted {
            transfer_id: id(40),
            reservation_id: id(10),
            event_id: id(1),
            seller_id: id(11),
            buyer_id: id(12),
            original_price: Won::new(302_000),
            fee: Won::new(30_200),
            total_price: Won::new(332_200),
            payment_id: id(22),
            seller_payment_id: Some(id(20)),
            seller_payout: Won::new(302_000),
            timestamp,
        },
    );
    check(
        golden,
        &TransferCancelled {
            transfer_id: id(40),
            reservation_id: id(10),
            event_id: id(1),
            seller_id: id(11),
            reason: "EVENT_STARTED".to_owned(),
            timestamp,
        },
    );
}

fn check_alerts(golden: &mut GoldenFolder) {
    let (user_id, event_id) = (id(11), id(1));
    let (event_title, venue_name) = ("첫 번째 콘서트".to_owned(), "올림픽홀".to_owned());
    let event_starts_at = time("2026-12-24T10:00:00Z");
    check(
        golden,
        &SaleAlertDue {
            user_id,
            event_id,
            event_title: event_title.clone(),
            venue_name: venue_name.clone(),
            event_starts_at,
            opens_at: time("2026-12-01T12:00:00Z"),
            is_presale: true,
        },
    );
    check(
        golden,
        &SeatAlertDue {
            alert_id: id(60),
            user_id,
            event_id,
            event_title,
            venue_name,
            event_starts_at,
            grade: Some("VIP".to_owned()),
            quantity: 2,
            head_start_until: Some(time("2026-12-02T09:03:00Z")),
            useful_until: time("2026-12-02T09:30:00Z"),
        },
    );
}

fn check_inventory_queue_and_users(golden: &mut GoldenFolder) {
    let event_id = id(1);
    check(golden, &InventoryReady { event_id, revision: 1, seats: 10, ticket_types: 0, total: 10 });
    check(
        golden,
        &TicketTypeChanged {
            event_id,
            ticket_type_id: id(4),
            name: "스탠딩".to_owned(),
            description: "입장 순서대로".to_owned(),
            price: Won::new(99_000),
            total: 350,
            fence: 3,
        },
    );
    check(
        golden,
        &AdmissionNear {
            event_id,
            user_id: id(11),
            event_title: Some("첫 번째 콘서트".to_owned()),
            position: Some(80),
            estimated_wait_seconds: Some(120),
            sale_ends_at: Some(time("2026-12-23T15:00:00Z")),
        },
    );
    check(
        golden,
        &QueueObserved {
            event_id,
            waiting: 1_200,
            inside: 500,
            joined_total: 2_000,
            admitted_total: 700,
            left_total: 100,
        },
    );
    check(golden, &UserRegistered { user_id: id(11), role: Some(AccountRole::User) });
    check(golden, &UserRoleChanged { user_id: id(11), role: AccountRole::Admin });
    let kind = AccountLinkKind::ResetPassword;
    check(golden, &AccountLinkIssued { link_id: id(51), user_id: id(11), kind });
    check(golden, &UserDeleted { user_id: id(11) });
}
