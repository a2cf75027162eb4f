//! The seats of a hold are changed as a whole or not at all.

use axum::http::Method;
use serde_json::json;
use urr_kernel::Uuid;
use urr_ticket::{
    ChangeSeats, HoldRejection, ReservationId, ReservationRecord, ReservationRejection,
    ReserveError,
};

use crate::contract;
use crate::fixture::{MINUTE, World, hall};
use crate::operations::CallerIdentity;

async fn change(
    world: &World,
    record: &ReservationRecord,
    seat_ids: &[u32],
    token: Option<i64>,
) -> Result<ReservationRecord, ReserveError> {
    let request = ChangeSeats {
        user_id: record.reservation.user_id,
        seat_ids: seat_ids.to_vec(),
        fencing_token: token,
    };
    world.ticket.change_seats(record.reservation.id, request, world.context()).await
}

async fn seats_of(world: &World, id: ReservationId) -> Vec<i64> {
    let rows = world.rows(
        "select reservation_id, seat_id from seats where status = 'held' order by seat_id",
        |row| Ok((row.get::<Uuid>("reservation_id")?, row.get::<i64>("seat_id")?)),
    );
    let rows = rows.await.into_iter().filter(|(reservation, _)| *reservation == id.0);
    rows.map(|(_, seat_id)| seat_id).collect()
}

contract! {
    async fn a_hold_has_its_new_seats_a_new_token_and_its_old_end(world: World) {
        let event_id = world.open_sale(hall(2, 10)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        world.clock.advance(MINUTE);
        let changed = change(&world, &record, &[1, 2, 3], None).await.unwrap();
        assert_eq!(seats_of(&world, record.reservation.id).await, [1, 2, 3]);
        assert_eq!(changed.reservation.expires_at, record.reservation.expires_at);
        assert!(changed.reservation.fence > record.reservation.fence);
        assert_eq!((changed.reservation.quantity, changed.reservation.total_amount.amount()), (3, 300_000));
        let announced = world.announced("RESERVATION_CHANGED").await;
        assert_eq!(announced[0]["seatIds"], json!([1, 2, 3]));
        assert_eq!(announced[0]["previousSeatIds"], json!([0, 1]));
        assert_eq!(announced[0]["totalAmount"], 300_000);
        // The seat that was given up is another's at once, locks included.
        world.hold(event_id, world.ids.next_id(), &[0]).await;
        let paid = world.pay(&changed).await;
        assert_eq!(paid.record.reservation.quantity, 3);
        world.assert_agrees().await;
    }

    async fn the_old_token_is_stale_after_a_change(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let changed = change(&world, &record, &[1], Some(record.reservation.fence)).await.unwrap();
        let old = Some(record.reservation.fence);
        let again = change(&world, &record, &[2], old).await;
        assert_eq!(again, Err(ReserveError::NotChangeable(ReservationRejection::StaleToken)));
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        let stale = world.ticket.pin_hold(id, user_id, world.claim(&record), 1, None).await;
        assert_eq!(stale, Err(ReservationRejection::StaleToken.into()), "the price may be another");
        let stale = world.ticket.release_hold(id, user_id, old, world.context()).await;
        assert_eq!(stale, Err(ReservationRejection::StaleToken.into()));
        assert_eq!(world.find(id).await, changed);
    }

    async fn m_14_a_refused_change_leaves_the_hold_as_it_was(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        world.hold(event_id, world.ids.next_id(), &[5]).await;
        let taken = change(&world, &record, &[1, 2, 5], None).await;
        let expected = HoldRejection::SeatsTaken { seat_ids: vec![5] };
        assert_eq!(taken, Err(ReserveError::Rejected(expected)));
        let too_many = change(&world, &record, &[0, 1, 2, 3, 4], None).await;
        assert!(matches!(too_many, Err(ReserveError::Rejected(HoldRejection::SeatLimit { .. }))));
        let unknown = change(&world, &record, &[0, 99], None).await;
        assert_eq!(unknown, Err(ReserveError::SeatsNotFound(vec![99])));
        let same = change(&world, &record, &[0, 1], None).await.unwrap();
        assert_eq!(same, record, "choosing what one has changes nothing");
        assert_eq!(world.find(record.reservation.id).await, record);
        assert_eq!(seats_of(&world, record.reservation.id).await, [0, 1]);
        assert_eq!(world.announced("RESERVATION_CHANGED").await.len(), 0);
        // Its locks stand too: nobody else gets its seats, and others do get the rest.
        let stranger = world.ids.next_id();
        let reserve = |seat_ids: Vec<u32>| {
            let requested = urr_ticket::RequestedItems::of_seats(seat_ids).unwrap();
            let request =
                urr_ticket::ReserveRequest { user_id: stranger, event_id, requested, key: None };
            world.ticket.reserve(request, world.context())
        };
        assert!(reserve(vec![0]).await.is_err());
        reserve(vec![2, 3, 4]).await.unwrap();
        world.pay(&record).await;
        world.assert_agrees().await;
    }

    async fn a_change_never_extends_a_hold(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        world.clock.advance(4 * MINUTE);
        change(&world, &record, &[1], None).await.unwrap();
        world.clock.advance(MINUTE);
        let late = change(&world, &record, &[2], None).await;
        assert_eq!(late, Err(ReserveError::NotChangeable(ReservationRejection::Expired)));
        assert_eq!(world.sweep().await.ended, 1);
        world.assert_agrees().await;
    }

    async fn the_limit_counts_what_was_bought_before(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let mina = world.ids.next_id();
        let bought = world.hold(event_id, mina, &[0, 1, 2]).await;
        world.pay(&bought).await;
        let record = world.hold(event_id, mina, &[3]).await;
        let more = change(&world, &record, &[4, 5], None).await;
        let expected = HoldRejection::SeatLimit { seats_per_user_max: 4, live_quantity: 3 };
        assert_eq!(more, Err(ReserveError::Rejected(expected)));
        change(&world, &record, &[9], None).await.unwrap();
        world.assert_agrees().await;
    }

    async fn two_who_want_each_others_seats_do_not_both_get_them(world: World) {
        let event_id = world.open_sale(hall(1, 20)).await;
        for round in 0..10 {
            let (left, right) = ([round * 2], [round * 2 + 1]);
            let first = world.hold(event_id, world.ids.next_id(), &left).await;
            let second = world.hold(event_id, world.ids.next_id(), &right).await;
            let (a, b) = tokio::join!(
                change(&world, &first, &right, None),
                change(&world, &second, &left, None)
            );
            assert!(a.is_err() && b.is_err(), "each seat was held all the time");
            assert_eq!(seats_of(&world, first.reservation.id).await, left.map(i64::from));
        }
        world.assert_agrees().await;
    }

    async fn many_who_want_one_seat_change_to_it_once(world: World) {
        let event_id = world.open_sale(hall(2, 20)).await;
        let mut changes = tokio::task::JoinSet::new();
        for seat_id in 0..20 {
            let record = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
            let (ticket, context) = (world.ticket.clone(), world.context());
            let request = ChangeSeats {
                user_id: record.reservation.user_id,
                seat_ids: vec![30],
                fencing_token: None,
            };
            let id = record.reservation.id;
            changes.spawn(async move { ticket.change_seats(id, request, context).await });
        }
        let changed = changes.join_all().await;
        assert_eq!(changed.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        assert_eq!(world.number("select count(*) as n from seats where status = 'held'").await, 20);
        world.assert_agrees().await;
    }

    async fn over_http_a_change_says_what_is_wrong(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let (standing, type_id) = world.open_standing(5).await;
        let mina = world.ids.next_id();
        let record = world.hold(event_id, mina, &[0]).await;
        world.hold(event_id, world.ids.next_id(), &[1]).await;
        let tickets = world.hold_tickets(standing, type_id, 1).await;
        let path = format!("/api/reservations/{}/seats", record.reservation.id);
        for (seat_ids, status, code) in [
            (json!([]), 400, "NOTHING_CHOSEN"),
            (json!([2, 2]), 400, "CHOSEN_TWICE"),
            (json!([99]), 404, "SEAT_NOT_FOUND"),
            (json!([1]), 409, "SEAT_TAKEN"),
            (json!([2, 3, 4, 5, 6]), 409, "SEAT_LIMIT"),
        ] {
            let body = json!({"seatIds": seat_ids, "overwrite": true});
            let (answered, body) = world.call(CallerIdentity::User(mina), Method::PUT, &path, body).await;
            assert_eq!((answered, &body["code"]), (status, &json!(code)), "{body}");
        }
        let body = json!({"seatIds": [3, 2], "fencingToken": record.reservation.fence});
        let (status, body) = world.call(CallerIdentity::User(mina), Method::PUT, &path, body).await;
        assert_eq!((status, &body["reservation"]["totalAmount"]), (200, &json!(200_000)));
        assert!(body["reservation"]["fencingToken"].as_i64() > Some(record.reservation.fence));
        let path = format!("/api/reservations/{}/seats", tickets.reservation.id);
        let owner = CallerIdentity::User(tickets.reservation.user_id);
        let (status, body) =
            world.call(owner, Method::PUT, &path, json!({"seatIds": [0], "overwrite": true})).await;
        assert_eq!((status, &body["code"]), (409, &json!("EVENT_IS_STANDING")));
    }

    /// Two windows of one user: the second does not undo what the first has done, unless it says so.
    async fn a_change_without_a_version_is_refused(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let path = format!("/api/reservations/{}/seats", record.reservation.id);
        let put = async |body: serde_json::Value| {
            let who = CallerIdentity::User(record.reservation.user_id);
            let (status, body) = world.call(who, Method::PUT, &path, body).await;
            (status, body["code"].as_str().unwrap_or_default().to_owned())
        };
        for body in [json!({"seatIds": [1]}), json!({"seatIds": [1], "overwrite": false})] {
            assert_eq!(put(body).await, (428, "FENCING_TOKEN_REQUIRED".to_owned()));
        }
        assert_eq!(seats_of(&world, record.reservation.id).await, [0]);
        let seen = record.reservation.fence;
        assert_eq!(put(json!({"seatIds": [1], "fencingToken": seen})).await.0, 200);
        // A version is compared even by someone who would overwrite.
        let stale = json!({"seatIds": [2], "fencingToken": seen, "overwrite": true});
        assert_eq!(put(stale).await, (409, "STALE_FENCING_TOKEN".to_owned()));
        assert_eq!(seats_of(&world, record.reservation.id).await, [1]);
        assert_eq!(put(json!({"seatIds": [2], "overwrite": true})).await.0, 200);
        assert_eq!(seats_of(&world, record.reservation.id).await, [2]);
    }
}
