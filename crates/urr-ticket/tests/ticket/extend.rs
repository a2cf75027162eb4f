//! A hold gets more time once, while it is not paid.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_ticket::{
    ReservationRecord, ReservationRejection, ReservationStatus, TicketService, TicketSettings,
    TransitionError,
};

use crate::contract;
use crate::fixture::{MINUTE, SECOND, hall};
use crate::operations::CallerIdentity;

async fn extend(
    ticket: &TicketService,
    record: &ReservationRecord,
) -> Result<ReservationRecord, TransitionError> {
    let held = &record.reservation;
    ticket.extend_hold(held.id, held.user_id, held.fence).await
}

contract! {
    async fn a_hold_is_extended_once_however_often_it_is_asked_for(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        let path = format!("/api/reservations/{}", record.reservation.id);
        let who = CallerIdentity::User(record.reservation.user_id);
        let (_, held) = world.call(who, Method::GET, &path, Value::Null).await;
        assert_eq!(held["reservation"]["extensionSeconds"], 180);
        let mut asked = JoinSet::new();
        for _ in 0..20 {
            let (ticket, record) = (world.ticket.clone(), record.clone());
            asked.spawn(async move { extend(&ticket, &record).await.unwrap() });
        }
        for extended in asked.join_all().await {
            let expected = record.reservation.expires_at + 3 * MINUTE;
            assert_eq!(extended.reservation.expires_at, expected);
            assert_eq!(extended.reservation.fence, record.reservation.fence);
        }
        let (_, held) = world.call(who, Method::GET, &path, Value::Null).await;
        assert_eq!(held["reservation"]["extensionSeconds"], Value::Null);
        // It lives longer, and not for ever.
        world.clock.advance(8 * MINUTE - SECOND);
        assert_eq!(world.sweep().await.ended, 0);
        let stranger = world.ids.next_id();
        let requested = urr_ticket::RequestedItems::of_seats(vec![0]).unwrap();
        let request =
            urr_ticket::ReserveRequest { user_id: stranger, event_id, requested, key: None };
        assert!(world.ticket.reserve(request, world.context()).await.is_err());
        world.clock.advance(SECOND);
        assert_eq!(extend(&world.ticket, &record).await, Err(ReservationRejection::Expired.into()));
        assert_eq!(world.sweep().await.ended, 1);
        world.hold(event_id, stranger, &[0, 1]).await;
        world.assert_agrees().await;
    }

    async fn without_its_mark_a_hold_would_be_extended_again(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        extend(&world.ticket, &record).await.unwrap();
        world.execute("update reservations set extended_at = null").await;
        let again = extend(&world.ticket, &record).await.unwrap();
        let twice = record.reservation.expires_at + 6 * MINUTE;
        assert_eq!(again.reservation.expires_at, twice, "nothing else guards it");
    }

    async fn the_locks_of_the_seats_last_as_long_as_the_extended_hold(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        extend(&world.ticket, &record).await.unwrap();
        world.clock.advance(8 * MINUTE - SECOND);
        let (stranger, attempt) = (world.ids.next_id(), world.ids.next_id());
        let locked = world.locks.acquire(event_id, &[0], stranger, attempt).await;
        let token = Some(record.reservation.fence);
        assert_eq!(locked, urr_ticket::LockResult::Refused { seat_id: 0, token });
    }

    async fn what_cannot_be_extended_is_refused(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let path = format!("/api/reservations/{}/extend", record.reservation.id);
        let refusal = async |user_id, token: i64| {
            let who = CallerIdentity::User(user_id);
            let body = json!({"fencingToken": token});
            let (status, body) = world.call(who, Method::POST, &path, body).await;
            (status, body["code"].as_str().unwrap_or("none").to_owned())
        };
        let (owner, token) = (record.reservation.user_id, record.reservation.fence);
        let expected = (404, "RESERVATION_NOT_FOUND".to_owned());
        assert_eq!(refusal(world.ids.next_id(), token).await, expected, "someone else's");
        assert_eq!(refusal(owner, token - 1).await, (409, "STALE_FENCING_TOKEN".to_owned()));
        let never = TicketSettings { hold_extension: Duration::ZERO, ..TicketSettings::default() };
        let strict = world.ticket_with(never);
        assert_eq!(extend(&strict, &record).await, Err(ReservationRejection::NotExtendable.into()));
        let claim = world.pin(&record).await;
        assert_eq!(refusal(owner, token).await, (409, "PAYMENT_IN_PROGRESS".to_owned()));
        world.confirm(record.reservation.id, claim).await.unwrap();
        assert_eq!(refusal(owner, token).await, (409, "RESERVATION_CONFIRMED".to_owned()));
        let found = world.find(record.reservation.id).await;
        assert_eq!(found.reservation.expires_at, record.reservation.expires_at);
        assert_eq!(found.reservation.status, ReservationStatus::Confirmed);
    }

    async fn a_payment_that_was_prepared_before_still_pins_an_extended_hold(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let claim = world.claim(&record);
        extend(&world.ticket, &record).await.unwrap();
        world.clock.advance(6 * MINUTE);
        let (id, user_id) = (record.reservation.id, record.reservation.user_id);
        world.ticket.pin_hold(id, user_id, claim, 1, None).await.unwrap();
        world.confirm(id, claim).await.unwrap();
        world.assert_agrees().await;
    }

    async fn what_cancelling_costs_by_date_is_seen_from_the_booking_on(world: World) {
        let event_id = world.open_sale(hall(1, 5)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let path = format!("/api/reservations/{}", record.reservation.id);
        let who = CallerIdentity::User(record.reservation.user_id);
        let (_, held) = world.call(who, Method::GET, &path, Value::Null).await;
        let terms = held["reservation"]["cancellationTerms"].as_array().unwrap().clone();
        assert_eq!(terms[0]["cancellationFee"], 0);
        assert_eq!(terms[0]["from"], held["reservation"]["createdAt"]);
        let last = terms.last().unwrap();
        assert_eq!((&last["cancellationFee"], &last["refundAmount"]), (&json!(90_000), &json!(10_000)));
        assert_eq!(last["until"], held["reservation"]["eventStartsAt"]);
        for pair in terms.windows(2) {
            assert_eq!(pair[0]["until"], pair[1]["from"]);
        }
        world.pay(&record).await;
        let (_, paid) = world.call(who, Method::GET, &path, Value::Null).await;
        assert_eq!(paid["reservation"]["cancellationTerms"], json!(terms));
        let cancel = format!("{path}/cancel");
        let (_, gone) = world.call(who, Method::POST, &cancel, Value::Null).await;
        assert_eq!(gone["reservation"]["cancellationTerms"], json!([]));
    }
}
