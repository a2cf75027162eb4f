//! Looking at reservations: one's own, and for administrators everybody's.

use axum::http::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use urr_ticket::ReservationStatus;

use crate::contract;
use crate::fixture::{MINUTE, hall};
use crate::operations::CallerIdentity;

contract! {
    async fn my_reservations_come_newest_first_in_pages(world: World) {
        let mina = world.ids.next_id();
        let mut numbers = Vec::new();
        for _ in 0..5 {
            let event_id = world.open_sale(hall(1, 5)).await;
            let record = world.hold(event_id, mina, &[0, 3]).await;
            world.hold(event_id, world.ids.next_id(), &[1]).await;
            numbers.insert(0, json!(record.reservation.number));
            world.clock.advance(MINUTE);
        }
        let (status, first) =
            world.call(CallerIdentity::User(mina), Method::GET, "/api/reservations/my?limit=3", Value::Null).await;
        assert_eq!(status, 200, "{first}");
        let expected = json!({"page": 1, "limit": 3, "total": 5, "totalPages": 2});
        assert_eq!(first["pagination"], expected);
        let path = "/api/reservations/my?limit=3&page=2";
        let (_, second) = world.call(CallerIdentity::User(mina), Method::GET, path, Value::Null).await;
        let rows = [&first, &second].map(|page| page["reservations"].as_array().unwrap().clone());
        let rows: Vec<Value> = rows.into_iter().flatten().collect();
        let found: Vec<Value> = rows.iter().map(|row| row["reservationNumber"].clone()).collect();
        assert_eq!(found, numbers);
        assert_eq!(rows[0]["eventTitle"], "한강의 밤");
        assert_eq!(rows[0]["seats"].as_array().map(Vec::len), Some(2));
        assert_eq!(rows[0]["seats"][1]["label"], "R-1-4");
        // The oldest one's time is over, though nobody has swept yet.
        assert_eq!(rows[4]["status"], "expired");
        assert_eq!(rows[3]["status"], "pending");
        let path = "/api/reservations/my?status=confirmed";
        let (_, none) = world.call(CallerIdentity::User(mina), Method::GET, path, Value::Null).await;
        assert_eq!(none["reservations"], json!([]));
        let path = "/api/reservations/my?status=refunded";
        let (status, body) = world.call(CallerIdentity::User(mina), Method::GET, path, Value::Null).await;
        assert_eq!((status, &body["code"]), (400, &json!("INVALID_STATUS")));
    }

    async fn a_paid_reservation_has_its_tickets_with_what_the_scanner_reads(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let (standing, type_id) = world.open_standing(5).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0, 1]).await;
        let path = format!("/api/reservations/{}", record.reservation.id);
        let (_, held) = world.call(CallerIdentity::User(mina), Method::GET, &path, Value::Null).await;
        assert_eq!(held["reservation"]["tickets"], json!([]));
        assert_eq!(held["reservation"]["fencingToken"], record.reservation.fence);
        let paid = world.pay(&record).await;
        let (status, body) = world.call(CallerIdentity::User(mina), Method::GET, &path, Value::Null).await;
        assert_eq!(status, 200, "{body}");
        let path = format!("/api/seats/reservation/{}", record.reservation.id);
        assert_eq!(world.call(CallerIdentity::User(mina), Method::GET, &path, Value::Null).await.1, body);
        let tickets = body["reservation"]["tickets"].as_array().unwrap().clone();
        assert_eq!(tickets.len(), 2);
        for (ticket, seat_id) in tickets.iter().zip([0, 1]) {
            let signed = world.ticket.signer().verify(ticket["qr"].as_str().unwrap()).unwrap();
            assert_eq!((signed.event_id, signed.seat_id), (event_id, Some(seat_id)));
            assert_eq!(ticket["isValid"], true);
        }
        assert_ne!(tickets[0]["number"], tickets[1]["number"]);
        assert_eq!(body["reservation"].get("fencingToken"), Some(&Value::Null));
        world.ticket.cancel_reservation(paid.id(), mina, world.context()).await.unwrap();
        let (_, body) = world.call(CallerIdentity::User(mina), Method::GET, &path, Value::Null).await;
        let void = &body["reservation"]["tickets"][0];
        assert_eq!((&void["isValid"], void.get("qr")), (&json!(false), Some(&Value::Null)));
        assert_eq!(body["reservation"]["refundAmount"], 200_000);
        assert_eq!(body["reservation"]["seats"].as_array().map(Vec::len), Some(2));
        let tickets = world.hold_tickets(standing, type_id, 2).await;
        let owner = CallerIdentity::User(tickets.reservation.user_id);
        world.pay(&tickets).await;
        let path = format!("/api/reservations/{}", tickets.reservation.id);
        let (_, body) = world.call(owner, Method::GET, &path, Value::Null).await;
        assert_eq!(body["reservation"]["items"][0]["quantity"], 2);
        assert_eq!(body["reservation"]["tickets"][1]["ticketTypeName"], "스탠딩");
    }

    async fn administrators_find_reservations_by_event_user_and_state(world: World) {
        let (first, second) =
            (world.open_sale(hall(1, 5)).await, world.open_sale(hall(1, 5)).await);
        let (mina, jun) = (world.ids.next_id(), world.ids.next_id());
        let paid = world.hold(first, mina, &[0]).await;
        world.pay(&paid).await;
        world.hold(first, jun, &[1]).await;
        world.hold(second, mina, &[0]).await;
        let admin = CallerIdentity::Admin(world.ids.next_id());
        for (query, count) in [
            (String::new(), 3),
            (format!("eventId={first}"), 2),
            (format!("userId={mina}"), 2),
            ("status=confirmed".to_owned(), 1),
            (format!("eventId={first}&userId={jun}&status=pending"), 1),
            (format!("eventId={second}&userId={jun}"), 0),
        ] {
            let path = format!("/api/admin/reservations?{query}");
            let (status, body) = world.call(admin, Method::GET, &path, Value::Null).await;
            let found = body["reservations"].as_array().map(Vec::len);
            assert_eq!((status, found), (200, Some(count)), "{query} {body}");
            assert_eq!(body["nextCursor"], Value::Null);
        }
        let path = format!("/api/admin/reservations/{}", paid.reservation.id);
        let (status, body) = world.call(admin, Method::GET, &path, Value::Null).await;
        assert_eq!((status, &body["reservation"]["userId"]), (200, &json!(mina.to_string())));
        let (status, _) = world.call(CallerIdentity::User(mina), Method::GET, &path, Value::Null).await;
        assert_eq!(status, 403);
        let unknown = format!("/api/admin/reservations/{}", world.ids.next_id());
        assert_eq!(world.call(admin, Method::GET, &unknown, Value::Null).await.0, 404);
    }

    async fn the_jobs_end_what_is_over_until_they_are_told_to_stop(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        world.clock.advance(5 * MINUTE);
        let (stop, ticket) = (CancellationToken::new(), world.ticket.clone());
        let stopping = stop.clone();
        let jobs = tokio::spawn(async move { ticket.run_jobs(stopping).await });
        while world.find(record.reservation.id).await.reservation.status != ReservationStatus::Expired {
            tokio::task::yield_now().await;
        }
        stop.cancel();
        jobs.await.unwrap();
    }
}
