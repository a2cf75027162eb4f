//! What goes back when a paid reservation is cancelled, and who is told (P11).

use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::{Uuid, Won};
use urr_service::Caller;
use urr_storage::StorageError;
use urr_ticket::{
    CancelPolicy, FeeBand, GracePeriod, ReservationPaymentStatus, ReservationStatus,
    TicketSettings, TransitionError,
};

use crate::contract;
use crate::fixture::{MINUTE, World, hall, new_sale};
use crate::operations::{CallerIdentity, PaidReservation, assert_fields};

const HOUR: std::time::Duration = std::time::Duration::from_secs(60 * 60);
const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Two seats for 200,000 won with a booking fee of 2,000, bought on the first of December at nine in
/// the evening, in Korea. The event is on the 21st, at nine in the evening.
async fn bought(world: &World) -> PaidReservation {
    let event_id = world.open_sale(hall(1, 5)).await;
    let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
    // As a pre-sale would have it.
    world
        .execute(
            "update reservations set booking_fee = 2000, total_amount = total_amount + 2000 \
             where status = 'pending'",
        )
        .await;
    let record = world.find(record.reservation.id).await;
    world.pay(&record).await
}

fn owner(paid: &PaidReservation) -> CallerIdentity {
    CallerIdentity::User(paid.record.reservation.user_id)
}

async fn preview(world: &World, paid: &PaidReservation) -> (u16, Value) {
    let path = format!("/api/reservations/{}/refund-preview", paid.id());
    world.call(owner(paid), Method::GET, &path, Value::Null).await
}

async fn cancel(world: &World, paid: &PaidReservation) -> Value {
    let path = format!("/api/reservations/{}/cancel", paid.id());
    let (status, body) = world.call(owner(paid), Method::POST, &path, Value::Null).await;
    assert_eq!(status, 200, "{body}");
    body["reservation"].clone()
}

async fn close(world: &World) {
    assert_eq!(world.execute("update sales set status = 'cancelled'").await, 1);
}

contract! {
    /// M-1: the announcement has all that the payment service needs.
    async fn m_1_a_cancelled_paid_reservation_announces_its_refund_once(world: World) {
        let paid = bought(&world).await;
        world.clock.advance(14 * DAY);
        let (status, preview) = preview(&world, &paid).await;
        let expected = json!({"refundAmount": 160_000, "cancellationFee": 42_000,
            "rule": "PERCENT_20", "until": "2026-12-18T15:00:00Z", "bookingFeeRefund": 0});
        assert_eq!(status, 200);
        assert_fields(&preview, &expected);
        for _ in 0..2 {
            let cancelled = cancel(&world, &paid).await;
            assert_eq!(cancelled["refundAmount"], 160_000);
            assert_eq!(cancelled["cancellationFee"], 42_000);
            assert_eq!(cancelled["paymentStatus"], "refunding");
            // It stays what it was, whenever one asks.
            world.clock.advance(DAY);
        }
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced.len(), 1);
        assert_eq!(announced[0]["refundAmount"], 160_000);
        assert_eq!(announced[0]["cancellationFee"], 42_000);
        assert_eq!(announced[0]["totalAmount"], 202_000);
        assert_eq!(announced[0]["paymentId"], paid.payment_id.to_string());
        let refunded = world.refund(&paid, 160_000).await.unwrap();
        assert_eq!(refunded.reservation.payment_status, ReservationPaymentStatus::Refunded);
        world.assert_agrees().await;
    }

    /// What is promised a second before a boundary and at it is what goes back.
    async fn b_8_the_preview_is_kept_on_both_sides_of_a_boundary(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mut paid = Vec::new();
        for seat_id in 0..2 {
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
            paid.push(world.pay(&record).await);
        }
        let (_, first) = preview(&world, &paid[0]).await;
        assert_eq!((&first["refundAmount"], &first["rule"]), (&json!(100_000), &json!("GRACE")));
        // To the 12th of December in Korea, a second before it begins, and then its beginning.
        world.clock.advance(10 * DAY + 3 * HOUR - std::time::Duration::from_secs(1));
        for (paid, refund, fee, rule) in [
            (&paid[0], 96_000, 4_000, "PERCENT_10_CAPPED"),
            (&paid[1], 90_000, 10_000, "PERCENT_10"),
        ] {
            let (_, preview) = preview(&world, paid).await;
            assert_eq!(preview["rule"], rule);
            assert_eq!((&preview["refundAmount"], &preview["cancellationFee"]),
                (&json!(refund), &json!(fee)));
            assert_eq!(cancel(&world, paid).await["refundAmount"], refund);
            world.clock.advance(std::time::Duration::from_secs(1));
        }
        world.assert_agrees().await;
    }

    async fn b_8_the_policy_is_that_of_the_day_of_the_reservation(world: World) {
        let paid = bought(&world).await;
        let all = FeeBand { days_before_min: 0, free_days: None, percent: 100, ticket_fee_max: None };
        let grace = GracePeriod { hours: 0, days_before_min: 0 };
        let strict = Arc::new(CancelPolicy::new(grace, vec![all]).unwrap());
        let office = world.ticket_with(TicketSettings { cancel_policy: strict, ..TicketSettings::default() });
        // Earlier buyers are not affected; new buyers agree to it.
        let user_id = paid.record.reservation.user_id;
        let old = office.preview_refund(paid.id(), user_id).await.unwrap();
        assert_eq!(old.refund_amount, Won::new(202_000));
        let event_id = paid.record.reservation.event_id;
        let strict = world.with_ticket(office);
        let record = strict.hold(event_id, strict.ids.next_id(), &[2]).await;
        let new = strict.pay(&record).await;
        let cancelled = cancel(&strict, &new).await;
        assert_eq!((&cancelled["refundAmount"], &cancelled["cancellationFee"]),
            (&json!(0), &json!(100_000)));
        // Nothing goes back, and that is said too: the payment is closed by it.
        assert_eq!(cancelled["paymentStatus"], "refunding");
        let announced = strict.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced[0]["refundAmount"], 0);
        assert_eq!(announced[0]["paymentId"], new.payment_id.to_string());
        let refunded = strict.refund(&new, 0).await.unwrap();
        assert_eq!(refunded.reservation.payment_status, ReservationPaymentStatus::Refunded);
        strict.assert_agrees().await;
    }

    /// An event may have fees of its own. They are agreed on with the booking; a later change is for
    /// later bookings.
    async fn b_8_the_policy_of_the_event_comes_before_the_usual_one(world: World) {
        let half = FeeBand { days_before_min: 0, free_days: None, percent: 50, ticket_fee_max: None };
        let grace = GracePeriod { hours: 0, days_before_min: 0 };
        let mut sale = new_sale(world.ids.next_id(), hall(1, 5), &world.clock);
        sale.facts.cancel_policy = Some(CancelPolicy::new(grace, vec![half]).unwrap());
        let event_id = sale.inventory.event_id;
        assert!(world.sale_insert(sale).await);
        let held = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let first = world.pay(&held).await;
        world.execute("update sales set cancel_policy = null").await;
        let held = world.hold(event_id, world.ids.next_id(), &[1]).await;
        let second = world.pay(&held).await;
        assert_eq!(cancel(&world, &first).await["refundAmount"], 50_000);
        assert_eq!(cancel(&world, &second).await["refundAmount"], 100_000);
    }

    /// By hand, as a bug would leave it: how much goes back is not guessed. An administrator can still
    /// give back what was paid.
    async fn b_8_a_total_that_is_not_what_the_items_cost_is_not_divided(world: World) {
        let paid = bought(&world).await;
        world.execute("update reservations set total_amount = total_amount + 1").await;
        let user_id = paid.record.reservation.user_id;
        let cancelled = world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await;
        let is_loud = matches!(cancelled, Err(TransitionError::Storage(StorageError::Panicked(_))));
        assert!(is_loud, "{cancelled:?}");
        assert_eq!(world.find(paid.id()).await.reservation.status, ReservationStatus::Confirmed);
        let path = format!("/api/admin/reservations/{}/cancel", paid.id());
        let admin = CallerIdentity::Admin(world.ids.next_id());
        let (_, done) = world.call(admin, Method::POST, &path, json!({"reason": "오류"})).await;
        assert_eq!(done["reservation"]["refundAmount"], 202_001, "{done}");
    }

    async fn b_8_every_ticket_of_a_standing_reservation_has_its_fee(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let record = world.hold_tickets(event_id, type_id, 3).await;
        let paid = world.pay(&record).await;
        world.clock.advance(10 * DAY);
        assert_eq!(cancel(&world, &paid).await["cancellationFee"], 3 * 4_000);
    }

    /// The job has not come by yet: the owner is first, and is not worse off for it.
    async fn m_9_of_a_cancelled_event_the_owner_gets_everything_at_any_time(world: World) {
        let paid = bought(&world).await;
        world.clock.advance(20 * DAY - MINUTE);
        let (_, before) = preview(&world, &paid).await;
        assert_eq!((&before["refundAmount"], &before["rule"]), (&json!(20_000), &json!("PERCENT_90")));
        close(&world).await;
        let (_, after) = preview(&world, &paid).await;
        assert_eq!((&after["refundAmount"], &after["rule"]), (&json!(202_000), &json!("FULL")));
        let cancelled = cancel(&world, &paid).await;
        assert_eq!((&cancelled["refundAmount"], &cancelled["cancellationFee"]),
            (&json!(202_000), &json!(0)));
        world.assert_agrees().await;
    }

    async fn m_9_the_job_gives_everything_back_the_booking_fee_too(world: World) {
        let paid = bought(&world).await;
        world.clock.advance(15 * DAY);
        close(&world).await;
        let swept = urr_ticket::Sweeper::new(world.ticket.clone()).empty_closed_sales().await;
        assert_eq!(swept.unwrap().ended, 1);
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced[0]["refundAmount"], 202_000);
        assert_eq!(announced[0]["cancellationFee"], 0);
        assert_eq!(announced[0]["paymentId"], paid.payment_id.to_string());
        world.assert_agrees().await;
    }

    async fn an_administrator_gives_everything_back_or_what_the_policy_says(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mut paid = Vec::new();
        for seat_id in 0..4 {
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
            paid.push(world.pay(&record).await);
        }
        world.clock.advance(19 * DAY);
        let admin = CallerIdentity::Admin(world.ids.next_id());
        for (paid, body, refund) in [
            (&paid[0], json!({"reason": "사과"}), 100_000),
            (&paid[1], json!({"reason": "사과", "refund": "full"}), 100_000),
            (&paid[2], json!({"reason": "규정 위반", "refund": "policy"}), 70_000),
        ] {
            let path = format!("/api/admin/reservations/{}/cancel", paid.id());
            let (status, done) = world.call(admin, Method::POST, &path, body).await;
            assert_eq!((status, &done["reservation"]["refundAmount"]), (200, &json!(refund)), "{done}");
        }
        let path = format!("/api/admin/reservations/{}/cancel", paid[3].id());
        let body = json!({"reason": "반", "refund": "half"});
        assert_eq!(world.call(admin, Method::POST, &path, body).await.0, 400);
        // By the policy nothing goes back once the event has begun.
        world.clock.advance(DAY);
        let body = json!({"reason": "규정 위반", "refund": "policy"});
        let (_, done) = world.call(admin, Method::POST, &path, body).await;
        assert_eq!(done["reservation"]["refundAmount"], 0, "{done}");
        world.assert_agrees().await;
    }

    async fn what_cannot_be_cancelled_has_no_preview(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let held = world.hold(event_id, mina, &[0]).await;
        let path = format!("/api/reservations/{}/refund-preview", held.reservation.id);
        let look = async |who: CallerIdentity| {
            let (status, body) = world.call(who, Method::GET, &path, Value::Null).await;
            (status, body["code"].as_str().unwrap_or_default().to_owned(), body)
        };
        let (status, _, body) = look(CallerIdentity::User(mina)).await;
        let unpaid = json!({"refundAmount": 0, "cancellationFee": 0, "rule": "UNPAID",
            "until": held.reservation.expires_at, "bookingFeeRefund": 0, "tickets": []});
        assert_eq!((status, body), (200, unpaid));
        let not_found = (404, "RESERVATION_NOT_FOUND".to_owned());
        let (status, code, _) = look(CallerIdentity::User(world.ids.next_id())).await;
        assert_eq!((status, code), not_found);
        assert_eq!(look(CallerIdentity::Nobody).await.0, 401);
        let claim = world.pin(&held).await;
        assert_eq!(look(CallerIdentity::User(mina)).await.1, "PAYMENT_IN_PROGRESS");
        world.confirm(held.reservation.id, claim).await.unwrap();
        world.execute("update tickets set checked_in_at = created_at").await;
        assert_eq!(look(CallerIdentity::User(mina)).await.1, "ALREADY_CHECKED_IN");
        world.execute("update tickets set checked_in_at = null").await;
        assert_eq!(look(CallerIdentity::User(mina)).await.0, 200);
        world.clock.advance(20 * DAY);
        assert_eq!(look(CallerIdentity::User(mina)).await.1, "EVENT_STARTED");
        let by = urr_ticket::AdminCancel {
            admin_id: mina,
            reason: "환불".to_owned(),
            fee: urr_ticket::FeeMode::Waived,
            payment_id: None,
        };
        world.ticket.cancel_as_admin(held.reservation.id, by, world.context()).await.unwrap();
        assert_eq!(look(CallerIdentity::User(mina)).await.1, "RESERVATION_CANCELLED");
    }

    /// Where one paid one can also ask for the money: the answer is the same, and comes from here.
    async fn the_payment_service_cancels_for_the_owner_or_an_administrator(world: World) {
        let (first, admin_id) = (bought(&world).await, world.ids.next_id());
        let event_id = first.record.reservation.event_id;
        let second = world.hold(event_id, world.ids.next_id(), &[2]).await;
        let second = world.pay(&second).await;
        world.clock.advance(19 * DAY);
        let payments = CallerIdentity::Service(Caller::Payment);
        let call = async |paid: &PaidReservation, who: CallerIdentity, body: Value| {
            let path = format!("/internal/ticket/reservations/{}/cancel", paid.id());
            world.call(who, Method::POST, &path, body).await
        };
        let owner_id = first.record.reservation.user_id;
        for (who, body, status, code) in [
            (CallerIdentity::Service(Caller::Community), json!({"userId": owner_id}), 403, "CALLER_NOT_ALLOWED"),
            (payments, json!({"userId": admin_id}), 404, "RESERVATION_NOT_FOUND"),
            (payments, json!({}), 400, "INVALID_CANCELLER"),
            (payments, json!({"userId": owner_id, "adminId": admin_id}), 400, "INVALID_CANCELLER"),
            (payments, json!({"adminId": admin_id}), 400, "INVALID_REASON"),
        ] {
            let (answered, answer) = call(&first, who, body.clone()).await;
            assert_eq!((answered, &answer["code"]), (status, &json!(code)), "{body}");
        }
        assert_eq!(world.find(first.id()).await.reservation.status, ReservationStatus::Confirmed);
        for _ in 0..2 {
            let (status, answer) = call(&first, payments, json!({"userId": owner_id})).await;
            assert_eq!(status, 200, "{answer}");
            assert_eq!(answer["payable"]["refundAmount"], 140_000);
            assert_eq!(answer["payable"]["cancellationFee"], 62_000);
        }
        let body = json!({"adminId": admin_id, "reason": "공연장 사정"});
        let (_, answer) = call(&second, payments, body).await;
        assert_eq!(answer["payable"]["refundAmount"], 100_000);
        assert_eq!(world.announced("RESERVATION_CANCELLED").await.len(), 2);
        assert_eq!(world.number("select count(*) as n from admin_actions").await, 1);
        world.assert_agrees().await;
    }

    async fn who_pays_sees_what_for(world: World) {
        let mut new = new_sale(world.ids.next_id(), hall(1, 5), &world.clock);
        let seated = new.inventory.event_id;
        assert!(world.sale_insert(new.clone()).await);
        let (standing, type_id) = world.open_standing(5).await;
        new.inventory.event_id = world.ids.next_id();
        new.facts.title = "가".repeat(120);
        assert!(world.sale_insert(new.clone()).await);
        let long = format!("{}…", "가".repeat(99));
        for (record, name) in [
            (world.hold(seated, world.ids.next_id(), &[0, 1]).await, "한강의 밤 · R 2매"),
            (world.hold_tickets(standing, type_id, 3).await, "한강의 밤 · 스탠딩 3매"),
            (world.hold(new.inventory.event_id, world.ids.next_id(), &[0]).await, &long),
        ] {
            let (id, user_id) = (record.reservation.id, record.reservation.user_id);
            let path = format!("/internal/ticket/payables/reservation/{id}/validate?userId={user_id}");
            let (status, answer) =
                world.call(CallerIdentity::Service(Caller::Payment), Method::GET, &path, Value::Null).await;
            assert_eq!((status, &answer["payable"]["orderName"]), (200, &json!(name)));
            assert_eq!(answer["payable"]["bookingFee"], 0);
            assert_eq!(answer["payable"]["fencingToken"], record.reservation.fence);
            let stranger = Uuid::nil();
            let path = format!("/internal/ticket/payables/reservation/{id}/validate?userId={stranger}");
            let (status, _) =
                world.call(CallerIdentity::Service(Caller::Payment), Method::GET, &path, Value::Null).await;
            assert_eq!(status, 404);
        }
    }
}
