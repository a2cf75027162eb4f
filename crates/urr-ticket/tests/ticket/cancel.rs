//! Reservations are given back by their owners and by administrators.

use axum::http::Method;
use serde_json::{Value, json};
use urr_ticket::{
    AdminCancel, FeeMode, ReservationPaymentStatus, ReservationRejection, ReservationStatus,
    TransitionError,
};

use crate::contract;
use crate::fixture::{MINUTE, hall};
use crate::operations::CallerIdentity;

fn refused<T>(refused: ReservationRejection) -> Result<T, TransitionError> {
    Err(TransitionError::Rejected(refused))
}

contract! {
    async fn a_hold_is_cancelled_and_its_seats_are_free_at_once(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (mina, jun) = (world.ids.next_id(), world.ids.next_id());
        let (own, other) = (world.hold(event_id, mina, &[0, 1]).await, jun);
        let kept = world.hold(event_id, other, &[2]).await;
        let id = own.reservation.id;
        let cancelled = world.ticket.cancel_reservation(id, mina, world.context()).await.unwrap();
        assert_eq!(cancelled.reservation.status, ReservationStatus::Cancelled);
        assert_eq!(cancelled.reservation.payment_status, ReservationPaymentStatus::Unpaid);
        assert_eq!(world.find(kept.reservation.id).await, kept, "nobody else is touched");
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced.len(), 1);
        assert_eq!(announced[0]["refundAmount"], 0);
        assert_eq!(announced[0]["reason"], "CANCELLED_BY_OWNER");
        assert_eq!(announced[0]["seatIds"], json!([0, 1]));
        world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        world.assert_agrees().await;
    }

    async fn m_2_what_has_expired_cannot_be_cancelled_and_gives_nothing_back_again(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (standing, type_id) = world.open_standing(5).await;
        let mina = world.ids.next_id();
        let old = world.hold(event_id, mina, &[0]).await;
        let tickets = world.hold_tickets(standing, type_id, 2).await;
        world.clock.advance(5 * MINUTE);
        let cancel = async |record: &urr_ticket::ReservationRecord| {
            let (id, user_id) = (record.reservation.id, record.reservation.user_id);
            world.ticket.cancel_reservation(id, user_id, world.context()).await
        };
        assert_eq!(cancel(&old).await, refused(ReservationRejection::Expired), "also before it was swept");
        world.sweep().await;
        let bought = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let bought = world.pay(&bought).await;
        for expired in [&old, &tickets] {
            assert_eq!(cancel(expired).await, refused(ReservationRejection::Expired));
        }
        assert_eq!(world.find(bought.id()).await.reservation.status, ReservationStatus::Confirmed);
        assert_eq!(world.number("select count(*) as n from seats where status = 'sold'").await, 1);
        assert_eq!(world.number("select available as n from ticket_types").await, 5);
        let path = format!("/api/reservations/{}/cancel", old.reservation.id);
        let (status, body) =
            world.call(CallerIdentity::User(mina), Method::POST, &path, Value::Null).await;
        assert_eq!((status, &body["code"]), (409, &json!("RESERVATION_EXPIRED")));
        world.assert_agrees().await;
    }

    async fn what_was_paid_is_refunded_and_its_tickets_are_void(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0, 1]).await;
        let paid = world.pay(&record).await;
        let cancelled =
            world.ticket.cancel_reservation(paid.id(), mina, world.context()).await.unwrap();
        assert_eq!(cancelled.reservation.status, ReservationStatus::Cancelled);
        assert_eq!(cancelled.reservation.payment_status, ReservationPaymentStatus::Refunding);
        assert_eq!(world.number("select count(*) as n from tickets where is_valid").await, 0);
        let announced = world.announced("RESERVATION_CANCELLED").await;
        assert_eq!(announced[0]["refundAmount"], 200_000);
        assert_eq!(announced[0]["paymentId"], paid.payment_id.to_string());
        world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        world.assert_agrees().await;
    }

    async fn m_13_a_refund_touches_neither_seats_nor_stock(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (standing, type_id) = world.open_standing(5).await;
        let mina = world.ids.next_id();
        let seated = world.hold(event_id, mina, &[0]).await;
        let seated = world.pay(&seated).await;
        let tickets = world.hold_tickets(standing, type_id, 2).await;
        let tickets = world.pay(&tickets).await;
        assert_eq!(world.refund(&seated, 100_000).await, refused(ReservationRejection::NotRefunding));
        for paid in [&seated, &tickets] {
            let user_id = paid.record.reservation.user_id;
            world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
        }
        // Both are resold before the money is back.
        let resold = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let resold = world.pay(&resold).await;
        let all = world.hold_tickets(standing, type_id, 4).await;
        assert_eq!(world.refund(&seated, 99_999).await, refused(ReservationRejection::WrongAmount));
        for _ in 0..2 {
            let refunded = world.refund(&seated, 100_000).await.unwrap();
            assert_eq!(refunded.reservation.payment_status, ReservationPaymentStatus::Refunded);
            world.refund(&tickets, 176_000).await.unwrap();
        }
        assert_eq!(world.find(resold.id()).await.reservation.status, ReservationStatus::Confirmed);
        assert_eq!(world.find(all.reservation.id).await.reservation.status, ReservationStatus::Pending);
        assert_eq!(world.number("select count(*) as n from seats where status = 'sold'").await, 1);
        assert_eq!(world.number("select available as n from ticket_types").await, 1);
        world.assert_agrees().await;
    }

    /// By hand, as a double sale would leave it: what is another's is not given away.
    async fn m_13_a_seat_that_is_anothers_by_now_is_left_alone(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0, 2]).await;
        world.hold(event_id, world.ids.next_id(), &[1]).await;
        world
            .execute(
                "update seats set reservation_id = (select reservation_id from seats \
                 where seat_id = 1) where seat_id = 0",
            )
            .await;
        let id = record.reservation.id;
        world.ticket.cancel_reservation(id, mina, world.context()).await.unwrap();
        let held = world.rows(
            "select seat_id from seats where status = 'held' order by seat_id",
            |row| row.get::<i64>("seat_id"),
        );
        assert_eq!(held.await, [0, 1], "only seat 2 was its own");
    }

    async fn cancelling_again_answers_the_same_and_has_no_second_effect(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0]).await;
        let paid = world.pay(&record).await;
        let path = format!("/api/reservations/{}/cancel", paid.id());
        let first = world.call(CallerIdentity::User(mina), Method::POST, &path, Value::Null).await;
        assert_eq!(first.0, 200, "{}", first.1);
        assert_eq!(first.1["reservation"]["status"], "cancelled");
        assert_eq!(first.1["reservation"]["paymentStatus"], "refunding");
        let bought = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let again = world.call(CallerIdentity::User(mina), Method::POST, &path, Value::Null).await;
        assert_eq!(again, first);
        assert_eq!(world.announced("RESERVATION_CANCELLED").await.len(), 1);
        assert_eq!(world.find(bought.reservation.id).await, bought);
        world.assert_agrees().await;
    }

    async fn twenty_cancels_at_once_are_one(world: World) {
        let (standing, type_id) = world.open_standing(10).await;
        let record = world.hold_tickets(standing, type_id, 4).await;
        let paid = world.pay(&record).await;
        let mut cancels = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (ticket, context) = (world.ticket.clone(), world.context());
            let (id, user_id) = (paid.id(), record.reservation.user_id);
            cancels.spawn(async move { ticket.cancel_reservation(id, user_id, context).await });
        }
        let outcomes = cancels.join_all().await;
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(world.announced("RESERVATION_CANCELLED").await.len(), 1);
        assert_eq!(world.number("select available as n from ticket_types").await, 10);
        world.assert_agrees().await;
    }

    async fn nobody_elses_reservation_is_there(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let stranger = CallerIdentity::User(world.ids.next_id());
        let path = format!("/api/reservations/{}", record.reservation.id);
        let seats = json!({"seatIds": [1], "overwrite": true});
        for (method, path, body) in [
            (Method::GET, path.clone(), Value::Null),
            (Method::GET, format!("/api/seats/reservation/{}", record.reservation.id), Value::Null),
            (Method::POST, format!("{path}/cancel"), Value::Null),
            (Method::DELETE, path.clone(), Value::Null),
            (Method::PUT, format!("{path}/seats"), seats),
        ] {
            let (status, body) = world.call(stranger, method.clone(), &path, body.clone()).await;
            let expected = (404, &json!("RESERVATION_NOT_FOUND"));
            assert_eq!((status, &body["code"]), expected, "{method} {path}");
            let (status, _) = world.call(CallerIdentity::Nobody, method, &path, body).await;
            assert_eq!(status, 401);
        }
        assert_eq!(world.find(record.reservation.id).await, record);
    }

    async fn while_it_is_being_paid_nothing_is_cancelled_released_or_changed(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0]).await;
        let claim = world.pin(&record).await;
        let path = format!("/api/reservations/{}", record.reservation.id);
        for (method, path, body) in [
            (Method::POST, format!("{path}/cancel"), Value::Null),
            (Method::DELETE, path.clone(), Value::Null),
            (Method::PUT, format!("{path}/seats"), json!({"seatIds": [1], "overwrite": true})),
        ] {
            let (status, body) = world.call(CallerIdentity::User(mina), method, &path, body).await;
            assert_eq!((status, &body["code"]), (409, &json!("PAYMENT_IN_PROGRESS")));
        }
        world.confirm(record.reservation.id, claim).await.unwrap();
        world.assert_agrees().await;
    }

    async fn owners_cancel_until_the_event_begins_and_administrators_later(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let first = world.hold(event_id, mina, &[0]).await;
        let (first, second) =
            (world.pay(&first).await, world.hold(event_id, mina, &[1]).await);
        let second = world.pay(&second).await;
        world.clock.advance(480 * 60 * MINUTE - MINUTE);
        world.ticket.cancel_reservation(first.id(), mina, world.context()).await.unwrap();
        world.clock.advance(MINUTE);
        let late = world.ticket.cancel_reservation(second.id(), mina, world.context()).await;
        assert_eq!(late, refused(ReservationRejection::EventStarted));
        let (admin_id, reason) = (world.ids.next_id(), "환불 요청".to_owned());
        let by = AdminCancel { admin_id, reason, fee: FeeMode::Waived, payment_id: None };
        let cancelled = world.ticket.cancel_as_admin(second.id(), by, world.context()).await;
        assert_eq!(cancelled.unwrap().reservation.payment_status, ReservationPaymentStatus::Refunding);
    }

    async fn who_has_entered_cannot_have_the_money_back(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0]).await;
        let paid = world.pay(&record).await;
        world.execute("update tickets set checked_in_at = created_at").await;
        let used = world.ticket.cancel_reservation(paid.id(), mina, world.context()).await;
        assert_eq!(used, refused(ReservationRejection::CheckedIn));
        assert_eq!(world.number("select count(*) as n from tickets where is_valid").await, 1);
        world.assert_agrees().await;
    }

    async fn a_hold_is_released_and_a_stale_token_releases_nothing(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0]).await;
        let (path, token) =
            (format!("/api/reservations/{}", record.reservation.id), record.reservation.fence);
        let stale = format!("{path}?fencingToken={}", token - 1);
        let (status, body) = world.call(CallerIdentity::User(mina), Method::DELETE, &stale, Value::Null).await;
        assert_eq!((status, &body["code"]), (409, &json!("STALE_FENCING_TOKEN")));
        let present = format!("{path}?fencingToken={token}");
        let (status, body) =
            world.call(CallerIdentity::User(mina), Method::DELETE, &present, Value::Null).await;
        assert_eq!((status, &body["reservation"]["status"]), (200, &json!("cancelled")), "{body}");
        let paid = world.hold(event_id, mina, &[0]).await;
        let paid = world.pay(&paid).await;
        let path = format!("/api/reservations/{}", paid.id());
        let (status, body) = world.call(CallerIdentity::User(mina), Method::DELETE, &path, Value::Null).await;
        assert_eq!((status, &body["code"]), (409, &json!("RESERVATION_CONFIRMED")));
        world.assert_agrees().await;
    }

    async fn m_10_an_administrator_takes_steps_that_are_written_down(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let admin = world.ids.next_id();
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let claim = world.pin(&record).await;
        let path = format!("/api/admin/reservations/{}/cancel", record.reservation.id);
        let body = json!({"reason": "중복 예매"});
        let owner = CallerIdentity::User(record.reservation.user_id);
        let (status, _) = world.call(owner, Method::POST, &path, body.clone()).await;
        assert_eq!(status, 403);
        let (status, refused) =
            world.call(CallerIdentity::Admin(admin), Method::POST, &path, body.clone()).await;
        assert_eq!((status, &refused["code"]), (409, &json!("PAYMENT_IN_PROGRESS")));
        assert_eq!(world.number("select count(*) as n from admin_actions").await, 0);
        world.confirm(record.reservation.id, claim).await.unwrap();
        for reason in ["", " ", &"가".repeat(201)] {
            let body = json!({"reason": reason});
            let (status, body) = world.call(CallerIdentity::Admin(admin), Method::POST, &path, body).await;
            assert_eq!((status, &body["code"]), (400, &json!("INVALID_REASON")));
        }
        for _ in 0..2 {
            let (status, done) =
                world.call(CallerIdentity::Admin(admin), Method::POST, &path, body.clone()).await;
            assert_eq!(status, 200, "{done}");
            assert_eq!(done["reservation"]["paymentStatus"], "refunding");
            assert_eq!(done["reservation"]["endReason"], "중복 예매");
        }
        let written = world.rows("select admin_id, action, summary from admin_actions", |row| {
            let summary: String = row.get("summary")?;
            Ok((row.get::<urr_kernel::Uuid>("admin_id")?, row.get::<String>("action")?, summary))
        });
        let number = &record.reservation.number;
        let expected = (admin, "RESERVATION_CANCELLED".to_owned(), format!("{number}: 중복 예매"));
        assert_eq!(written.await, [expected]);
        // There is no way to write a state into a reservation.
        let path = format!("/api/admin/reservations/{}/status", record.reservation.id);
        let body = json!({"status": "confirmed"});
        let (status, _) = world.call(CallerIdentity::Admin(admin), Method::PATCH, &path, body).await;
        assert_eq!(status, 404);
        world.assert_agrees().await;
    }
}
