//! The bodies and answers of internal calls.

use serde_json::json;
use urr_contracts::events::catalog::{CatalogEventStatus, EventKind};
use urr_contracts::internal::auth::{
    self, AccountLanguage, AccountRole, AccountSummary, GetUserAnswer, ListUsersAnswer,
    ListUsersBody, RevokedTokenEntry, RevokedTokenPage,
};
use urr_contracts::internal::catalog::{self, EventInfo, GetEventAnswer};
use urr_contracts::internal::payment::{
    self, AccountBalance, AuditFinding, LedgerAudit, ProviderAudit, TicketAudit,
};
use urr_contracts::internal::queue::{
    self, CheckSlotsAnswer, CheckSlotsBody, ConfirmClearBody, FinishSlotAnswer, FinishSlotBody,
    RoomPage, RoomPagination, SlotCheck,
};
use urr_contracts::internal::ticket::{
    self, AwardPointsAnswer, AwardPointsBody, BookingHealth, CancelReservationBody,
    ConfirmPayableBody, EventAvailability, PaidReservationPage, PayableAnswer, PayableKind,
    PayablePaymentStatus, PayableStatus, PayableView, PinPayableBody, RefundedPayableBody,
    ReservationSummary, ReservationSummaryAnswer, ReturnPointsAnswer, ReturnPointsBody,
    SalesHealthAnswer, SalesHealthBody, TierAnswer, UnpinPayableBody,
};
use urr_contracts::internal::{CALLS, CallMethod, InternalCall};
use urr_kernel::{Tier, Won};

use crate::golden::{GoldenFolder, id, time};

#[test]
fn every_call_is_written_and_read_as_its_golden_files() {
    let mut golden = GoldenFolder::open("internal");
    check_auth_and_catalog(&mut golden);
    check_payment(&mut golden);
    check_queue(&mut golden);
    check_payables(&mut golden);
    check_other_ticket_calls(&mut golden);
    golden.finish(CALLS.iter().flat_map(|call| {
        let request = (call.method == CallMethod::Post).then(|| request(call));
        request.into_iter().chain([answer(call)])
    }));
}

#[test]
fn every_call_has_its_own_address_and_somebody_who_may_call() {
    let mut addresses: Vec<String> =
        CALLS.iter().map(|call| format!("{:?} {}", call.method, call.path)).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), CALLS.len());
    for call in CALLS {
        let service = call.name.split('.').next().unwrap();
        assert!(call.path.starts_with(&format!("/internal/{service}/")), "{}", call.path);
        assert!(!call.callers.is_empty(), "{}", call.path);
    }
}

#[test]
fn parameters_are_filled_in_their_order() {
    let path = ticket::GET_TIER.path_with(&[&id(1), &id(11)]);
    assert_eq!(path, format!("/internal/ticket/tier/{}/{}", id(1), id(11)));
    let kind = PayableKind::Transfer;
    let path = ticket::PIN_PAYABLE.path_with(&[&kind, &7]);
    assert_eq!(path, "/internal/ticket/payables/transfer/7/pin");
}

fn request(call: &InternalCall) -> String {
    format!("{}.request", call.name)
}

fn answer(call: &InternalCall) -> String {
    format!("{}.answer", call.name)
}

fn user() -> AccountSummary {
    AccountSummary {
        id: id(11),
        email: "mina@example.com".to_owned(),
        name: "미나".to_owned(),
        role: AccountRole::User,
        language: AccountLanguage::Korean,
    }
}

fn check_auth_and_catalog(golden: &mut GoldenFolder) {
    golden.check(&answer(&auth::GET_USER), &GetUserAnswer { user: user() });
    golden.check(&request(&auth::LIST_USERS), &ListUsersBody { user_ids: vec![id(11), id(12)] });
    golden.check(&answer(&auth::LIST_USERS), &ListUsersAnswer { users: vec![user()] });
    let token = RevokedTokenEntry { seq: 7, jti: id(50), expires_at: time("2026-12-01T12:00:00Z") };
    let page = RevokedTokenPage { tokens: vec![token], next: 7 };
    golden.check(&answer(&auth::LIST_REVOKED_TOKENS), &page);
    let event = EventInfo {
        id: id(1),
        revision: 3,
        title: "첫 번째 콘서트".to_owned(),
        kind: EventKind::Seated,
        status: CatalogEventStatus::OnSale,
        artist_id: Some(id(2)),
        artist_name: Some("미나".to_owned()),
        starts_at: time("2026-12-24T10:00:00Z"),
        sale_starts_at: time("2026-12-01T11:00:00Z"),
        sale_ends_at: time("2026-12-23T15:00:00Z"),
        has_presale: false,
        inventory_ready: true,
    };
    golden.check(&answer(&catalog::GET_EVENT), &GetEventAnswer { event });
}

fn finding(kind: &str) -> AuditFinding {
    AuditFinding {
        kind: kind.to_owned(),
        payment_id: Some(id(20)),
        order_id: None,
        reservation_id: Some(id(10)),
        amount: Won::new(302_000),
        sentence: "302,000원 are charged for a reservation that is not confirmed".to_owned(),
    }
}

fn check_payment(golden: &mut GoldenFolder) {
    let ledger = LedgerAudit {
        at: time("2026-12-01T12:00:00Z"),
        charged: Won::new(302_000),
        refunded: Won::ZERO,
        sold: Won::new(302_000),
        cancelled: Won::ZERO,
        undelivered: Won::ZERO,
        owed: Won::ZERO,
        balances: vec![AccountBalance {
            account: "provider".to_owned(),
            balance: Won::new(302_000),
        }],
        unexplained: Vec::new(),
        stuck: vec![finding("stuck")],
    };
    golden.check(&answer(&payment::AUDIT_LEDGER), &ledger);
    let provider = ProviderAudit {
        providers: vec!["toss".to_owned()],
        since: time("2026-12-01T00:00:00Z"),
        compared: 12,
        reopened: vec!["ORD_0198b7a0".to_owned()],
        differences: vec![finding("amounts")],
        silent: Vec::new(),
    };
    golden.check(&answer(&payment::AUDIT_PROVIDER), &provider);
    let differences = vec![finding("noTicket")];
    let tickets = TicketAudit { reservations: 200, payments: 199, differences, next: Some(id(10)) };
    golden.check(&answer(&payment::AUDIT_TICKETS), &tickets);
}

fn check_queue(golden: &mut GoldenFolder) {
    let (event_id, user_id) = (id(1), id(11));
    let checks = vec![SlotCheck { event_id, user_id, slot_id: id(60) }];
    golden.check(&request(&queue::CHECK_SLOTS), &CheckSlotsBody { checks });
    golden.check(&answer(&queue::CHECK_SLOTS), &CheckSlotsAnswer { live: vec![true] });
    let bought_at = time("2026-12-01T11:02:01Z");
    golden.check(&request(&queue::FINISH_SLOT), &FinishSlotBody { event_id, user_id, bought_at });
    golden.check(&answer(&queue::FINISH_SLOT), &FinishSlotAnswer { ended: true });
    let room = json!({ "eventId": event_id, "phase": "open", "waiting": 1_200 });
    let pagination = RoomPagination { total_pages: 1 };
    let page = RoomPage { rooms: vec![room.clone()], pagination };
    golden.check(&answer(&queue::LIST_ROOMS), &page);
    golden.check(&answer(&queue::GET_ROOM), &json!({ "room": room }));
    golden.check(&request(&queue::CHANGE_ROOM), &json!({ "threshold": 500, "message": null }));
    golden.check(&answer(&queue::CHANGE_ROOM), &json!({ "room": room }));
    golden.check(&request(&queue::CLEAR_ROOM), &ConfirmClearBody { confirm: event_id });
    let cleared = json!({ "eventId": event_id, "waiting": 1_200, "active": 500 });
    golden.check(&answer(&queue::CLEAR_ROOM), &cleared);
}

fn reservation() -> PayableView {
    PayableView {
        kind: PayableKind::Reservation,
        id: id(10),
        order_name: None,
        user_id: Some(id(11)),
        event_id: Some(id(1)),
        artist_id: None,
        reservation_number: Some("R20261201ABCDEF".to_owned()),
        reservation_id: None,
        seller_id: None,
        status: PayableStatus::Pending,
        payment_status: PayablePaymentStatus::Unpaid,
        total_amount: Won::new(302_000),
        booking_fee: Won::new(2_000),
        transfer_fee: Won::ZERO,
        quantity: Some(2),
        expires_at: Some(time("2026-12-01T11:05:01Z")),
        fencing_token: 7,
        pinned_by: None,
        payment_id: None,
        refund_amount: None,
        cancellation_fee: None,
        updated_at: Some(time("2026-12-01T11:00:01Z")),
        correlation_id: None,
        last_event_id: None,
    }
}

fn transfer() -> PayableView {
    PayableView {
        kind: PayableKind::Transfer,
        id: id(40),
        user_id: Some(id(12)),
        reservation_number: None,
        reservation_id: Some(id(10)),
        seller_id: Some(id(11)),
        status: PayableStatus::Completed,
        payment_status: PayablePaymentStatus::Paid,
        total_amount: Won::new(332_200),
        booking_fee: Won::ZERO,
        transfer_fee: Won::new(30_200),
        quantity: None,
        expires_at: None,
        payment_id: Some(id(22)),
        updated_at: None,
        ..reservation()
    }
}

fn membership() -> PayableView {
    PayableView {
        kind: PayableKind::Membership,
        id: id(30),
        event_id: None,
        artist_id: Some(id(2)),
        reservation_number: None,
        status: PayableStatus::Expired,
        payment_status: PayablePaymentStatus::Refunded,
        total_amount: Won::new(30_000),
        booking_fee: Won::ZERO,
        quantity: None,
        expires_at: None,
        payment_id: Some(id(23)),
        refund_amount: Some(Won::new(30_000)),
        updated_at: None,
        ..reservation()
    }
}

fn check_payables(golden: &mut GoldenFolder) {
    let payable = |payable| PayableAnswer { payable };
    golden.check(&answer(&ticket::GET_PAYABLE), &payable(transfer()));
    let validated = PayableView {
        order_name: Some("첫 번째 콘서트 2매".to_owned()),
        correlation_id: Some(id(70)),
        last_event_id: Some(id(71)),
        ..reservation()
    };
    golden.check(&answer(&ticket::VALIDATE_PAYABLE), &payable(validated));
    let (payment_id, fencing_token, amount) = (id(20), 7, Won::new(302_000));
    let pin = PinPayableBody { payment_id, user_id: id(11), fencing_token, amount };
    golden.check(&request(&ticket::PIN_PAYABLE), &pin);
    let pinned = PayableView { pinned_by: Some(payment_id), ..reservation() };
    golden.check(&answer(&ticket::PIN_PAYABLE), &payable(pinned));
    golden.check(&request(&ticket::UNPIN_PAYABLE), &UnpinPayableBody { payment_id });
    golden.check(&answer(&ticket::UNPIN_PAYABLE), &payable(reservation()));
    let payment_method = Some("card".to_owned());
    let confirm = ConfirmPayableBody { payment_id, fencing_token, amount, payment_method };
    golden.check(&request(&ticket::CONFIRM_PAYABLE), &confirm);
    let confirmed = PayableView {
        status: PayableStatus::Confirmed,
        payment_status: PayablePaymentStatus::Paid,
        payment_id: Some(payment_id),
        ..reservation()
    };
    golden.check(&answer(&ticket::CONFIRM_PAYABLE), &payable(confirmed.clone()));
    let returned_amount = Some(Won::new(20_000));
    let refunded = RefundedPayableBody { payment_id, amount: Won::new(30_000), returned_amount };
    golden.check(&request(&ticket::MARK_PAYABLE_REFUNDED), &refunded);
    golden.check(&answer(&ticket::MARK_PAYABLE_REFUNDED), &payable(membership()));
    let page = PaidReservationPage { reservations: vec![confirmed.clone()], more: true };
    golden.check(&answer(&ticket::LIST_PAID_RESERVATIONS), &page);
    let cancel = CancelReservationBody {
        user_id: None,
        admin_id: Some(id(13)),
        reason: "중복 예매".to_owned(),
        payment_id: Some(payment_id),
    };
    golden.check(&request(&ticket::CANCEL_RESERVATION), &cancel);
    let cancelled = PayableView {
        status: PayableStatus::Cancelled,
        payment_status: PayablePaymentStatus::Refunding,
        refund_amount: Some(Won::new(270_000)),
        cancellation_fee: Some(Won::new(32_000)),
        ..confirmed
    };
    golden.check(&answer(&ticket::CANCEL_RESERVATION), &payable(cancelled));
}

fn check_other_ticket_calls(golden: &mut GoldenFolder) {
    let summary = ReservationSummary {
        reservation_number: "R20261201ABCDEF".to_owned(),
        event_id: id(1),
        event_title: "첫 번째 콘서트".to_owned(),
        venue_name: "올림픽홀".to_owned(),
        event_starts_at: time("2026-12-24T10:00:00Z"),
        places: vec!["1층 A-1-1".to_owned(), "1층 A-1-2".to_owned()],
        quantity: 2,
    };
    let summary = ReservationSummaryAnswer { reservation: summary };
    golden.check(&answer(&ticket::GET_RESERVATION_SUMMARY), &summary);
    golden.check(&request(&ticket::GET_SALES_HEALTH), &SalesHealthBody { event_ids: vec![id(1)] });
    let availability = EventAvailability { available: 8, held: 2, total: 10 };
    let booking = BookingHealth { answered: 1_000, failed: 1, p95_micros: 42_000 };
    let health = SalesHealthAnswer { events: [(id(1), availability)].into(), booking };
    golden.check(&answer(&ticket::GET_SALES_HEALTH), &health);
    golden.check(&answer(&ticket::GET_TIER), &TierAnswer { tier: Some(Tier::Gold) });
    let (action_type, reference_id) = ("COMMUNITY_POST".to_owned(), id(80));
    let award = AwardPointsBody {
        user_id: id(11),
        action_type: action_type.clone(),
        reference_id,
        artist_id: None,
    };
    golden.check(&request(&ticket::AWARD_POINTS), &award);
    let awarded = AwardPointsAnswer { points: 10, memberships: 1 };
    golden.check(&answer(&ticket::AWARD_POINTS), &awarded);
    golden.check(&request(&ticket::RETURN_POINTS), &ReturnPointsBody { action_type, reference_id });
    golden.check(&answer(&ticket::RETURN_POINTS), &ReturnPointsAnswer { ok: true });
}
