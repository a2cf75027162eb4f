//! The best seats: chosen under the lock of the sale, by the same rules as seats picked by hand.

use std::collections::HashSet;
use std::sync::mpsc;

use axum::http::StatusCode;
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};
use urr_kernel::Uuid;
use urr_layout::Layout;
use urr_storage::StorageError;
use urr_ticket::{
    Hold, HoldRejection, RequestedItems, ReserveError, ReserveRequest, SeatPreference,
    TicketSettings,
};

use crate::contract;
use crate::fixture::{MINUTE, World, hall, new_sale};
use crate::gateway::{Fan, GatewayClient};

const BEST: &str = "/api/seats/best";

fn two(event_id: Uuid) -> Value {
    json!({"eventId": event_id, "grade": "R", "count": 2})
}

fn seats_of(body: &Value) -> Vec<u64> {
    let seats = body["reservation"]["seats"].as_array().unwrap_or_else(|| panic!("{body}"));
    seats.iter().map(|seat| seat["id"].as_u64().unwrap()).collect()
}

#[track_caller]
fn refused((status, body): &(StatusCode, Value), expected: u16, code: &str) {
    assert_eq!((status.as_u16(), body["code"].as_str()), (expected, Some(code)), "{body}");
}

/// A hall with wheelchair places in the middle of the front row, and pillars before the second.
fn old_theatre() -> Layout {
    let mut layout = hall(3, 8);
    let rows = &mut layout.sections[0].rows;
    rows[0].accessible = vec![4, 5];
    rows[0].restricted_view = vec![1, 2, 3, 6, 7, 8];
    rows[1].restricted_view = (1..=8).collect();
    layout
}

/// Someone else's change of all sales, for as long as it is wanted.
struct SalesLock {
    release: mpsc::Sender<()>,
    change: JoinHandle<Result<(), StorageError>>,
}

impl SalesLock {
    async fn take(world: &World) -> SalesLock {
        let (say, told) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let db = world.db.clone();
        let hold = move |tx: &mut urr_storage::Tx<'_>| {
            tx.execute("update sales set title = title", &[])?;
            say.send(()).unwrap();
            released.recv().unwrap();
            Ok(())
        };
        let change = tokio::spawn(async move { db.write(hold).await });
        tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        SalesLock { release, change }
    }

    async fn release(self) {
        self.release.send(()).unwrap();
        self.change.await.unwrap().unwrap();
    }
}

/// This many requests, each for this many seats; all were sent when this returns.
fn ask<'a>(
    world: &'a World,
    event_id: Uuid,
    people: u32,
    count: u32,
) -> Vec<std::pin::Pin<Box<impl Future<Output = Result<Hold, ReserveError>> + use<'a>>>> {
    let request = || ReserveRequest {
        user_id: world.ids.next_id(),
        event_id,
        requested: RequestedItems::Best(SeatPreference {
            count,
            grade: Some("R".to_owned()),
            section: None,
            accessible: false,
        }),
        key: None,
    };
    let asking = (0..people).map(|_| {
        let mut asking = Box::pin(world.ticket.reserve(request(), world.context()));
        assert!(asking.as_mut().now_or_never().is_none());
        asking
    });
    asking.collect()
}

contract! {
    async fn the_best_seats_are_held_like_any_others(world: World) {
        let event_id = world.open_sale(hall(3, 8)).await;
        let gateway = GatewayClient::new(&world);
        let fan = Fan::new(&world);
        let (status, body) = gateway.post(&fan, event_id, BEST, two(event_id)).await;
        assert_eq!(status, 201, "{body}");
        assert_eq!(seats_of(&body), [3, 4], "the middle of the front row");
        assert_eq!(body["reservation"]["totalAmount"], 200_000);
        assert_eq!(body["reservation"]["status"], "pending");
        let held = "select count(*) as n from seats where status = 'held' and seat_id in (3, 4)";
        assert_eq!(world.number(held).await, 2);
        let live = "select count(*) as n from reservation_items where is_live";
        assert_eq!(world.number(live).await, 2);
        let announced = "select count(*) as n from outbox where body like '%RESERVATION_CREATED%'";
        assert_eq!(world.number(announced).await, 1);

        let other = Fan::new(&world);
        refused(&gateway.reserve(&other, event_id, &[4]).await, 409, "SEAT_TAKEN");
        let (_, body) = gateway.post(&other, event_id, BEST, two(event_id)).await;
        assert_eq!(seats_of(&body), [11, 12], "the middle of the second is nearer than the sides");
    }

    async fn a_map_that_is_out_of_date_is_not_believed(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        let other = world.ticket_with(TicketSettings::default());
        other.seat_maps().load(event_id).await.unwrap();
        let (here, there) = (GatewayClient::new(&world), GatewayClient::to(&other, &world));
        let (_, body) = here.post(&Fan::new(&world), event_id, BEST, two(event_id)).await;
        assert_eq!(seats_of(&body), [4, 5]);
        let view = other.seat_maps().load(event_id).await.unwrap().unwrap();
        assert_eq!(view.seen, 0, "the other process has not heard of it");
        let (status, body) = there.post(&Fan::new(&world), event_id, BEST, two(event_id)).await;
        assert_eq!((status.as_u16(), seats_of(&body)), (201, vec![2, 3]), "{body}");
    }

    async fn a_map_from_before_a_restore_is_not_believed(world: World) {
        let event_id = world.open_sale(hall(1, 10)).await;
        world.execute(
            "update seats set status = 'held', reservation_id = event_id, fence = 3 \
             where seat_id in (4, 5)",
        ).await;
        world.execute("update sales set fence = 3").await;
        assert_eq!(world.ticket.seat_maps().load(event_id).await.unwrap().unwrap().seen, 3);
        world.execute(
            "update seats set status = 'available', reservation_id = null, fence = 0",
        ).await;
        world.execute("update sales set fence = 1").await;
        let gateway = GatewayClient::new(&world);
        let (_, body) = gateway.post(&Fan::new(&world), event_id, BEST, two(event_id)).await;
        assert_eq!(seats_of(&body), [4, 5]);
    }

    async fn a_crowd_for_the_best_seats_waits_with_one_connection(world: World) {
        let event_id = world.open_sale(hall(10, 10)).await;
        world.ticket.seat_maps().load(event_id).await.unwrap();
        let lock = SalesLock::take(&world).await;
        let committed = world.db.stats().committed;
        let asking = ask(&world, event_id, 33, 2);
        // If they took all connections, this would wait until the database's patience with them
        // ends, and they would get nothing.
        assert_eq!(world.number("select count(*) as n from sales").await, 1);
        lock.release().await;
        let mut sold = HashSet::new();
        for hold in join_all(asking).await {
            assert!(hold.unwrap().seat_ids().into_iter().all(|id| sold.insert(id)));
        }
        assert_eq!(sold.len(), 66);
        let committed = world.db.stats().committed - committed;
        assert_eq!(committed, 3, "the other change, the first one, and all others together");
    }

    async fn when_too_many_wait_for_the_best_seats_the_next_one_is_told(world: World) {
        let (event_id, other) = (world.open_sale(hall(20, 20)).await, world.open_sale(hall(1, 4)).await);
        for event_id in [event_id, other] {
            world.ticket.seat_maps().load(event_id).await.unwrap();
        }
        let gateway = GatewayClient::new(&world);
        let lock = SalesLock::take(&world).await;
        let asking = ask(&world, event_id, 257, 1);
        let answer = gateway.post(&Fan::new(&world), event_id, BEST, two(event_id)).await;
        refused(&answer, 503, "BUSY");
        assert_eq!(answer.1["retryAfter"], 1);
        let elsewhere = ask(&world, other, 1, 1);
        lock.release().await;
        let held = join_all(asking).await.into_iter().filter(Result::is_ok).count();
        assert_eq!(held, 257, "who was in the line was served");
        assert!(join_all(elsewhere).await[0].is_ok(), "the line of another event is its own");
    }

    /// A request that is refused must not make seats look taken for those after it.
    async fn those_who_are_decided_together_do_not_spoil_it_for_each_other(world: World) {
        let event_id = world.open_sale(hall(1, 4)).await;
        world.ticket.seat_maps().load(event_id).await.unwrap();
        let lock = SalesLock::take(&world).await;
        let mut asking = ask(&world, event_id, 1, 1);
        asking.extend(ask(&world, event_id, 1, 1));
        let greedy = Fan::new(&world);
        let preference = |count| SeatPreference { count, grade: Some("R".to_owned()), section: None, accessible: false };
        let by_greedy = |count| ReserveRequest {
            user_id: greedy.user_id, event_id, requested: RequestedItems::Best(preference(count)), key: None,
        };
        let mut twice = Vec::new();
        for _ in 0..2 {
            let mut one = Box::pin(world.ticket.reserve(by_greedy(1), world.context()));
            assert!(one.as_mut().now_or_never().is_none());
            twice.push(one);
        }
        asking.extend(ask(&world, event_id, 2, 1));
        lock.release().await;
        let (all, twice) = tokio::join!(join_all(asking), join_all(twice));
        assert!(twice[0].is_ok() && twice[1].is_err(), "{twice:?}");
        let held: Vec<bool> = all.iter().map(Result::is_ok).collect();
        assert_eq!(held, [true, true, true, false], "four seats for four people: {all:?}");
        let none_fits = matches!(all[3], Err(ReserveError::Rejected(HoldRejection::NoneFits(_))));
        assert!(none_fits, "{all:?}");
    }

    async fn wheelchair_places_and_pillars_are_minded(world: World) {
        let event_id = world.open_sale(old_theatre()).await;
        let gateway = GatewayClient::new(&world);
        let ask = async |accessible: bool, count: u32| {
            let body = json!({
                "eventId": event_id, "section": "R", "count": count, "accessible": accessible,
            });
            seats_of(&gateway.post(&Fan::new(&world), event_id, BEST, body).await.1)
        };
        assert_eq!(ask(false, 2).await, [19, 20], "the third row: there is nothing in the way");
        assert_eq!(ask(true, 1).await, [3]);
        assert_eq!(ask(false, 4).await, [10, 11, 12, 13], "pillars, but no wheelchair place");
    }

    async fn b_2_b_4_the_rules_of_reserving_hold_here_too(world: World) {
        let event_id = world.open_sale(hall(3, 8)).await;
        let gateway = GatewayClient::new(&world);
        let fan = Fan::new(&world);
        let ask = |count: u32| json!({"eventId": event_id, "grade": "R", "count": count});
        refused(&gateway.post(&fan, event_id, BEST, ask(5)).await, 409, "SEAT_LIMIT");
        refused(&gateway.post(&fan, event_id, BEST, ask(0)).await, 400, "INVALID_COUNT");
        refused(&gateway.post(&fan, event_id, BEST, ask(11)).await, 400, "INVALID_COUNT");
        let other = world.ids.next_id();
        refused(&gateway.post(&fan, other, BEST, ask(1)).await, 403, "ENTRY_TOKEN_OTHER_EVENT");
        let nobody = gateway.post_as(None, Some(event_id), BEST, ask(1)).await;
        refused(&nobody, 401, "AUTHENTICATION_REQUIRED");
        for (body, status, code) in [
            (json!({"eventId": event_id, "count": 1}), 400, "NOTHING_CHOSEN"),
            (json!({"eventId": event_id, "count": 1, "grade": "S"}), 404, "GRADE_NOT_FOUND"),
            (json!({"eventId": event_id, "count": 1, "section": "S"}), 404, "SECTION_NOT_FOUND"),
            (
                json!({"eventId": event_id, "count": 1, "section": "R", "grade": "S"}),
                404,
                "GRADE_NOT_FOUND",
            ),
            (json!({"eventId": event_id, "count": 1, "seat": 1}), 400, "INVALID_BODY"),
        ] {
            refused(&gateway.post(&fan, event_id, BEST, body).await, status, code);
        }
        let (standing, _) = world.open_standing(5).await;
        let body = json!({"eventId": standing, "grade": "R", "count": 1});
        refused(&gateway.post(&fan, standing, BEST, body).await, 409, "EVENT_IS_STANDING");

        assert_eq!(gateway.post(&fan, event_id, BEST, ask(1)).await.0, 201);
        refused(&gateway.post(&fan, event_id, BEST, ask(1)).await, 409, "HOLD_IN_PROGRESS");

        let early = world.ids.next_id();
        let mut new = new_sale(early, hall(1, 4), &world.clock);
        new.facts.sale_starts_at = world.clock.now() + 5 * MINUTE;
        assert!(world.sale_insert(new).await);
        let body = json!({"eventId": early, "grade": "R", "count": 1});
        refused(&gateway.post(&fan, early, BEST, body).await, 409, "SALE_NOT_OPEN");
        let taken = "select count(*) as n from seats where status <> 'available'";
        assert_eq!(world.number(taken).await, 1, "nothing that was refused left a trace");
    }

    async fn a_repeated_wish_is_answered_with_the_first_seats(world: World) {
        let event_id = world.open_sale(hall(1, 2)).await;
        let gateway = GatewayClient::new(&world);
        let (fan, other) = (Fan::new(&world), Fan::new(&world));
        let mut body = two(event_id);
        let key = "wish-1";
        let (_, first) = gateway.post_with_key(&fan, event_id, BEST, body.clone(), key).await;
        assert_eq!(seats_of(&first), [0, 1]);
        let (status, again) = gateway.post_with_key(&fan, event_id, BEST, body.clone(), key).await;
        assert_eq!(status, 201);
        assert_eq!(again, first, "although nothing is left");
        let sold_out = gateway.post_with_key(&other, event_id, BEST, body.clone(), key).await;
        refused(&sold_out, 409, "SOLD_OUT");
        body["count"] = json!(1);
        let reused = gateway.post_with_key(&fan, event_id, BEST, body, key).await;
        refused(&reused, 422, "IDEMPOTENCY_KEY_REUSED");
    }

    async fn a_hold_whose_time_is_over_does_not_stand_in_the_way(world: World) {
        let event_id = world.open_sale(hall(1, 8)).await;
        let (gateway, fan) = (GatewayClient::new(&world), Fan::new(&world));
        gateway.must_reserve(&fan, event_id, &[0]).await;
        let early = gateway.post(&fan, event_id, BEST, two(event_id)).await;
        refused(&early, 409, "HOLD_IN_PROGRESS");
        world.clock.advance(5 * MINUTE);
        let (status, body) = gateway.post(&fan, event_id, BEST, two(event_id)).await;
        assert_eq!((status.as_u16(), seats_of(&body)), (201, vec![3, 4]), "no sweep came by: {body}");
    }

    async fn who_cannot_sit_together_is_told_what_is_left(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let gateway = GatewayClient::new(&world);
        gateway.must_reserve(&Fan::new(&world), event_id, &[2, 7]).await;
        let body = json!({"eventId": event_id, "grade": "R", "count": 3});
        let answer = gateway.post(&Fan::new(&world), event_id, BEST, body).await;
        refused(&answer, 409, "NOT_ADJACENT");
        assert_eq!((&answer.1["available"], &answer.1["adjacentMax"]), (&json!(8), &json!(2)));
    }

    /// 30 pairs are left of 100 seats, 100 people want a pair by two processes, and 20 more pick
    /// seats by hand.
    async fn a_hundred_at_once_get_every_pair_once_and_sold_out_is_true(world: World) {
        let event_id = world.open_sale(hall(10, 10)).await;
        world.execute(
            "update seats set status = 'sold', reservation_id = event_id, fence = 1 \
             where seat_id % 10 in (0, 3, 6, 9)",
        ).await;
        world.execute("update sales set fence = 1").await;
        let other = world.ticket_with(TicketSettings::default());
        let doors = [GatewayClient::new(&world), GatewayClient::to(&other, &world)];
        let mut asking = JoinSet::new();
        for number in 0..120_u32 {
            let (gateway, fan) = (doors[number as usize % 2].clone(), Fan::new(&world));
            asking.spawn(async move {
                if number % 6 == 0 {
                    let first = number / 6 * 10 % 100 + 1;
                    return gateway.reserve(&fan, event_id, &[first, first + 1]).await;
                }
                gateway.post(&fan, event_id, BEST, two(event_id)).await
            });
        }
        let answers = asking.join_all().await;
        let mut sold = HashSet::new();
        for (status, body) in &answers {
            match status.as_u16() {
                201 => assert!(seats_of(body).into_iter().all(|id| sold.insert(id)), "{body}"),
                409 => {
                    let code = body["code"].as_str().unwrap();
                    let codes = ["SOLD_OUT", "SEAT_TAKEN", "SEAT_BEING_DECIDED"];
                    assert!(codes.contains(&code), "{body}");
                }
                _ => panic!("{status} {body}"),
            }
        }
        assert_eq!(sold.len(), 60, "every pair was sold, and to one person");
        let free = "select count(*) as n from seats where status = 'available'";
        assert_eq!(world.number(free).await, 0);
    }
}
