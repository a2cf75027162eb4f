//! The requests and answers of internal calls.

use std::fmt::Debug;

use serde::Serialize;
use serde_json::{Map, Value, json};
use urr_contracts::events::catalog::{CatalogEventStatus, EventKind};
use urr_contracts::internal::auth::*;
use urr_contracts::internal::calls;
use urr_contracts::internal::catalog::{EventInfo, GetEvent, GetEventAnswer};
use urr_contracts::internal::community::{ContributionsAnswer, GetContributions};
use urr_contracts::internal::mail::*;
use urr_contracts::internal::payment::*;
use urr_contracts::internal::problems::*;
use urr_contracts::internal::queue::*;
use urr_contracts::internal::stats::*;
use urr_contracts::internal::ticket::*;
use urr_kernel::{Tier, Won};
use urr_service::{CallKind, InternalCall};

use crate::golden::{GoldenFolder, id, time};

/// Gets every call with a request and an answer.
pub trait CallVisitor {
    fn visit<C>(&mut self, request: C, answer: C::Answer)
    where
        C: InternalCall + PartialEq + Debug,
        C::Answer: Clone + PartialEq + Debug + Sync;
}

pub fn visit_calls(visitor: &mut impl CallVisitor) {
    visit_auth_and_catalog(visitor);
    visit_payment(visitor);
    visit_records(visitor);
    visit_board(visitor);
    visit_problems(visitor);
    visit_queue(visitor);
    visit_payables(visitor);
    visit_other_ticket_calls(visitor);
    visit_calls_for_organisers(visitor);
    let written = ContributionsAnswer { records: json!({ "posts": [] }) };
    visitor.visit(GetContributions { user_id: id(11) }, written);
}

impl CallVisitor for GoldenFolder {
    fn visit<C>(&mut self, request: C, answer: C::Answer)
    where
        C: InternalCall + PartialEq + Debug,
        C::Answer: Clone + PartialEq + Debug + Sync,
    {
        let name = C::SPEC.name;
        self.check(&format!("{name}.answer"), &answer);
        if C::SPEC.kind != CallKind::Get {
            let mut body = fields(&request);
            body.retain(|name, _| !C::SPEC.path.contains(&format!("{{{name}}}")));
            self.check(&format!("{name}.request"), &Value::Object(body));
        }
        let read: C = serde_json::from_value(Value::Object(fields(&request)))
            .expect("a contract that can be served");
        assert_eq!(read, request);
    }
}

fn fields(request: &impl Serialize) -> Map<String, Value> {
    serde_json::from_value(serde_json::to_value(request).expect("a contract that can be served"))
        .expect("a contract that can be served")
}

#[test]
fn every_call_is_written_and_read_as_its_golden_files() {
    let mut golden = GoldenFolder::open("internal");
    visit_calls(&mut golden);
    golden.finish(calls().flat_map(|call| {
        let request = (call.kind != CallKind::Get).then(|| format!("{}.request", call.name));
        request.into_iter().chain([format!("{}.answer", call.name)])
    }));
}

#[test]
fn every_call_has_its_own_address_and_somebody_who_may_call() {
    let mut addresses: Vec<String> =
        calls().map(|call| format!("{} {}", call.method(), call.path)).collect();
    let count = addresses.len();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), count);
    for call in calls() {
        assert!(call.path.starts_with("/internal/"), "{}", call.path);
        assert!(!call.callers.is_empty(), "{}", call.path);
    }
}

fn user() -> AccountSummary {
    AccountSummary {
        id: id(11),
        email: "mina@example.com".to_owned(),
        name: "미나".to_owned(),
        role: AccountRole::User,
        language: AccountLanguage::Korean,
        email_verified: true,
    }
}

fn visit_auth_and_catalog(visitor: &mut impl CallVisitor) {
    visitor.visit(GetUser { id: id(11) }, GetUserAnswer { user: user() });
    let asked = ListUsers { user_ids: vec![id(11), id(12)] };
    visitor.visit(asked, ListUsersAnswer { users: vec![user()] });
    let found = FindUsersAnswer { user_ids: vec![id(11)], more: false };
    visitor.visit(FindUsers { text: "mina@example.com".to_owned() }, found);
    let hashes = vec!["9f86d081884c7d65".to_owned()];
    visitor.visit(GetPerson { id: id(11) }, PersonAnswer { person_hashes: hashes });
    let token = RevokedTokenEntry { seq: 7, jti: id(50), expires_at: time("2026-12-01T12:00:00Z") };
    let page = RevokedTokenPage { tokens: vec![token], next: 7 };
    visitor.visit(ListRevokedTokens { after: 3 }, page);
    let link =
        AccountLinkAnswer { token: "5f2b".to_owned(), expires_at: time("2026-12-01T12:30:00Z") };
    visitor.visit(GetAccountLink { id: id(51) }, link);
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
    visitor.visit(GetEvent { id: id(1) }, GetEventAnswer { event });
}

fn visit_calls_for_organisers(visitor: &mut impl CallVisitor) {
    let (event_id, reservation_id, user_id) = (id(1), id(10), id(11));
    let refund = PayableRefund {
        id: id(24),
        amount: Won::new(270_000),
        status: "done".to_owned(),
        reason: "중복 예매".to_owned(),
        requested_by: Some(id(13)),
        created_at: time("2026-12-02T09:00:00Z"),
        done_at: Some(time("2026-12-02T09:00:02Z")),
    };
    let payment = PayablePayment {
        id: id(20),
        payable_id: reservation_id,
        user_id,
        status: "refunded".to_owned(),
        method: Some("card".to_owned()),
        amount: Won::new(302_000),
        failure_code: None,
        created_at: time("2026-12-01T11:00:05Z"),
        approved_at: Some(time("2026-12-01T11:00:09Z")),
        updated_at: time("2026-12-02T09:00:02Z"),
        refunds: vec![refund],
    };
    let asked = ListPayablePayments { payable_ids: vec![reservation_id] };
    visitor.visit(asked, PayablePaymentsAnswer { payments: vec![payment] });
    let unclear = UnclearPaymentsAnswer { payments: 2, amount: Won::new(604_000) };
    visitor.visit(GetUnclearPayments { event_id }, unclear);
    let mail = ReservationMail {
        id: id(90),
        user_id,
        kind: "purchase".to_owned(),
        status: "sent".to_owned(),
        created_at: time("2026-12-01T11:00:10Z"),
        ended_at: Some(time("2026-12-01T11:00:12Z")),
    };
    let mails = ReservationMailsAnswer { mails: vec![mail] };
    visitor.visit(ListReservationMails { reservation_id }, mails);
    let resend = ResendTicketMail { reservation_id, user_id, request_id: id(91) };
    visitor.visit(resend, ResendTicketMailAnswer { mail_id: id(92) });
    let preview = MovePreviewAnswer {
        reservations: 40,
        tickets: 76,
        buyers: 39,
        free_reservations: 40,
        refund_max: Won::new(7_600_000),
    };
    visitor.visit(PreviewMove { event_id, starts_at: time("2026-12-25T10:00:00Z") }, preview);
    let vip = GradeSales {
        grade: "VIP".to_owned(),
        sold: 70,
        sold_amount: Won::new(10_500_000),
        cancelled: 6,
        cancelled_amount: Won::new(900_000),
    };
    visitor.visit(
        GetGradeSales { event_id },
        GradeSalesAnswer { grades: vec![vip], complimentary_tickets: 3 },
    );
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

fn booking_health() -> BookingHealth {
    BookingHealth {
        answered: 1_000,
        failed: 1,
        p50_micros: 9_000,
        p95_micros: 42_000,
        p99_micros: 80_000,
    }
}

fn visit_board(visitor: &mut impl CallVisitor) {
    let event_id = id(1);
    let grade = GradeSeats {
        name: "VIP".to_owned(),
        price: Won::new(151_000),
        total: 10,
        available: 7,
        held: Some(1),
        blocked: Some(2),
    };
    let availability = EventAvailability { available: 8, held: 2, total: 10 };
    let board = SaleBoard { availability, booking: booking_health(), grades: vec![grade] };
    visitor.visit(GetSaleBoard { event_id }, board);
    visitor.visit(GetPaymentFigures { event_id }, PaymentFigures { declined: 3, unclear: 1 });
    let totals = SaleTotals {
        charges: 2,
        charged: Won::new(302_000),
        refunds: 1,
        refunded: Won::new(151_000),
    };
    visitor.visit(GetSaleTotals { event_id }, totals);
    let span = SaleSpan { at: 1_796_126_400, moved: totals };
    let room =
        RoomFigures { waiting: 20, inside: 5, joined_total: 40, admitted_total: 15, left_total: 5 };
    let history = SaleHistory {
        totals,
        seconds: vec![span],
        minutes: vec![SaleMinute { span, room: Some(room) }],
    };
    let seconds_since = time("2026-12-01T11:45:00Z");
    let minutes_since = time("2026-11-30T15:00:00Z");
    visitor.visit(GetSaleHistory { event_id, seconds_since, minutes_since }, history);
}

fn visit_problems(visitor: &mut impl CallVisitor) {
    let problem = Problem {
        since: Some(time("2026-12-01T12:00:00Z")),
        event_id: Some(id(1)),
        subject: Some("첫 번째 콘서트".to_owned()),
        ..Problem::new(ProblemCode::RoomPaused, 20)
    };
    let (list, organiser_id) = (ProblemList { problems: vec![problem] }, Some(id(4)));
    visitor.visit(ListTicketProblems { organiser_id }, list.clone());
    visitor.visit(ListPaymentProblems { organiser_id }, list.clone());
    visitor.visit(ListQueueProblems { organiser_id }, list.clone());
    visitor.visit(ListMailProblems { organiser_id }, list);
}

fn visit_records(visitor: &mut impl CallVisitor) {
    let (user_id, records) = (id(11), json!({ "payments": [], "truncated": [] }));
    visitor.visit(GetPaymentRecords { user_id }, PaymentRecordsAnswer { records });
    let records = json!({ "mails": [], "truncated": [] });
    visitor.visit(GetMailRecords { user_id }, MailRecordsAnswer { records });
}

fn visit_payment(visitor: &mut impl CallVisitor) {
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
        next: None,
    };
    visitor.visit(AuditLedger { after: None }, ledger);
    let provider = ProviderAudit {
        providers: vec!["toss".to_owned()],
        since: time("2026-12-01T00:00:00Z"),
        compared: 12,
        reopened: vec!["ORD_0198b7a0".to_owned()],
        differences: vec![finding("amounts")],
        silent: Vec::new(),
    };
    visitor.visit(AuditProvider { since: time("2026-12-01T00:00:00Z") }, provider);
    let returned = ReturnedCharges {
        returned: vec![finding("returned")],
        kept: Vec::new(),
        silent: Vec::new(),
        has_more: false,
    };
    visitor.visit(ReturnUnknownCharges { since: time("2026-12-01T00:00:00Z") }, returned);
    let differences = vec![finding("noTicket")];
    let tickets = TicketAudit { reservations: 200, payments: 199, differences, next: Some(id(10)) };
    visitor.visit(AuditTickets { after: None }, tickets);
}

fn visit_queue(visitor: &mut impl CallVisitor) {
    let (event_id, user_id) = (id(1), id(11));
    let checks = vec![SlotCheck { event_id, user_id, slot_id: id(60) }];
    visitor.visit(CheckSlots { checks }, CheckSlotsAnswer { live: vec![true] });
    let bought_at = time("2026-12-01T11:02:01Z");
    let finish = FinishSlot { event_id, user_id, bought_at };
    visitor.visit(finish, FinishSlotAnswer { ended: true });
    let room = json!({ "eventId": event_id, "phase": "open", "waiting": 1_200 });
    let pagination = RoomPagination { total_pages: 1 };
    let page = RoomPage { rooms: vec![room.clone()], pagination };
    visitor.visit(ListRooms { page: Some(1), limit: Some(100) }, page);
    visitor.visit(GetRoom { event_id }, json!({ "room": room }));
    let change = fields(&json!({ "threshold": 500, "message": null }));
    visitor.visit(ChangeRoom { event_id, change }, json!({ "room": room }));
    let cleared = json!({ "eventId": event_id, "waiting": 1_200, "active": 500 });
    visitor.visit(ClearRoom { event_id, confirm: Some(event_id) }, cleared);
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
        is_box_office: false,
        refund_amount: None,
        cancellation_fee: None,
        cancelled_amount: Won::ZERO,
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

fn visit_payables(visitor: &mut impl CallVisitor) {
    let answer = |payable| PayableAnswer { payable };
    let payable = PayableRef { kind: PayableKind::Transfer, id: id(40) };
    visitor.visit(GetPayable { payable }, answer(transfer()));
    let validated = PayableView {
        order_name: Some("첫 번째 콘서트 2매".to_owned()),
        correlation_id: Some(id(70)),
        last_event_id: Some(id(71)),
        ..reservation()
    };
    let payable = PayableRef { kind: PayableKind::Reservation, id: id(10) };
    visitor.visit(ValidatePayable { payable, user_id: id(11) }, answer(validated));
    let (payment_id, user_id, fencing_token, amount) = (id(20), id(11), 7, Won::new(302_000));
    let event_id = Some(id(12));
    let attempt = 2;
    let pin = PinPayable { payable, payment_id, user_id, fencing_token, amount, attempt, event_id };
    visitor.visit(pin, Acknowledged {});
    visitor.visit(UnpinPayable { payable, payment_id, attempt }, Acknowledged {});
    let payment_method = Some("card".to_owned());
    let confirm =
        ConfirmPayable { payable, payment_id, fencing_token, amount, payment_method, event_id };
    visitor.visit(confirm, Acknowledged {});
    let (amount, returned_amount) = (Won::new(30_000), Some(Won::new(20_000)));
    let refunded = MarkPayableRefunded { payable, payment_id, amount, returned_amount };
    visitor.visit(refunded, Acknowledged {});
    let confirmed = PayableView {
        status: PayableStatus::Confirmed,
        payment_status: PayablePaymentStatus::Paid,
        payment_id: Some(payment_id),
        ..reservation()
    };
    let reservations = vec![confirmed.clone(), membership()];
    let page = PaidReservationPage { reservations, more: true };
    visitor.visit(ListPaidReservations { after: Some(id(9)) }, page);
    let cancel = CancelReservation {
        id: id(10),
        user_id: None,
        admin_id: Some(id(13)),
        reason: "중복 예매".to_owned(),
        payment_id: Some(payment_id),
    };
    let cancelled = PayableView {
        status: PayableStatus::Cancelled,
        payment_status: PayablePaymentStatus::Refunding,
        refund_amount: Some(Won::new(270_000)),
        cancellation_fee: Some(Won::new(32_000)),
        cancelled_amount: Won::new(150_000),
        ..confirmed
    };
    visitor.visit(cancel, answer(cancelled));
    let release = ReleaseHold { id: id(10), user_id, fencing_token };
    visitor.visit(release, Acknowledged {});
}

fn visit_other_ticket_calls(visitor: &mut impl CallVisitor) {
    let summary = ReservationSummary {
        reservation_number: "R20261201ABCDEF".to_owned(),
        event_id: id(1),
        event_title: "첫 번째 콘서트".to_owned(),
        venue_name: "올림픽홀".to_owned(),
        event_starts_at: time("2026-12-24T10:00:00Z"),
        places: vec!["1층 A-1-1".to_owned(), "1층 A-1-2".to_owned()],
        quantity: 2,
    };
    let guest_email = Some("mina@example.com".to_owned());
    let summary = ReservationSummaryAnswer { reservation: summary, guest_email };
    visitor.visit(GetReservationSummary { id: id(10) }, summary);
    let asked =
        GetTicketDocument { id: id(10), user_id: id(11), language: AccountLanguage::Korean };
    let (file_name, pdf) = ("tickets-R20261201ABCDEF.pdf".to_owned(), "JVBERi0xLjc=".to_owned());
    visitor.visit(asked, TicketDocumentAnswer { file_name, pdf });
    let availability = EventAvailability { available: 8, held: 2, total: 10 };
    let booking = booking_health();
    let health = SalesHealthAnswer { events: [(id(1), availability)].into(), booking };
    visitor.visit(GetSalesHealth { event_ids: vec![id(1)] }, health);
    let (event_id, user_id) = (id(1), id(11));
    visitor.visit(GetTier { event_id, user_id }, TierAnswer { tier: Some(Tier::Gold) });
    let holding = Holding {
        kind: HoldingKind::Reservation,
        id: id(10),
        title: "첫 번째 콘서트".to_owned(),
        number: Some("R20261201ABCDEF".to_owned()),
        quantity: Some(2),
        time: Some(time("2026-12-24T10:00:00Z")),
    };
    let holdings = HoldingsAnswer {
        has_bought: true,
        holdings: vec![holding],
        records: json!({ "reservations": [] }),
    };
    visitor.visit(GetHoldings { user_id }, holdings);
    let recent = RecentReservation {
        id: id(10),
        user_id,
        reservation_number: "R20261201ABCDEF".to_owned(),
        event_title: "첫 번째 콘서트".to_owned(),
        total_amount: Won::new(302_000),
        status: PayableStatus::Confirmed,
        created_at: time("2026-12-01T12:00:00Z"),
    };
    let figures = ReservationFigures {
        total_reservations: 1,
        total_revenue: Won::new(302_000),
        today_reservations: 1,
        recent_reservations: vec![recent],
    };
    visitor.visit(GetReservationFigures { organiser_id: Some(id(12)) }, figures);
    let (action_type, reference_id) = ("COMMUNITY_POST".to_owned(), id(80));
    let award = AwardPoints {
        user_id: id(11),
        action_type: action_type.clone(),
        reference_id,
        artist_id: None,
    };
    visitor.visit(award, AwardPointsAnswer { points: 10, memberships: 1 });
    let returned = ReturnPoints { action_type, reference_id };
    visitor.visit(returned, ReturnPointsAnswer { ok: true });
}
