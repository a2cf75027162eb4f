//! Those who wait: for a database that stands still, for someone else's answer, for a neighbour.

use std::sync::Mutex;

use axum::http::StatusCode;
use futures_util::future::{FutureExt, join_all};
use serde_json::json;
use tokio::time::timeout;
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx};
use urr_test::eventually;
use urr_ticket::{LockResult, SaleStatus};

use crate::contract;
use crate::fixture::{Form, MINUTE, SECOND, World, hall, new_sale, run};
use crate::gateway::{Fan, GatewayClient};
use crate::stalls::{Stall, Standstill};

/// Writing transactions, whatever became of them.
fn decisions(world: &World) -> u64 {
    let stats = world.db.stats();
    stats.committed + stats.rolled_back
}

contract! {
    /// After a stall the seats are for those who are still there.
    async fn nothing_is_held_for_someone_who_left_before_it_was_decided(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[8]).await;
        let stall = Standstill::begin(&world, event_id).await;
        let fan = Fan::new(&world);
        let mut at_the_desk = Box::pin(gateway.reserve(&fan, event_id, &[0]));
        assert!((&mut at_the_desk).now_or_never().is_none());
        for seat_id in 1..=5 {
            let fan = Fan::new(&world);
            let requested = [seat_id];
            let mut leaving = Box::pin(gateway.reserve(&fan, event_id, &requested));
            assert!((&mut leaving).now_or_never().is_none());
            let probe = world.ids.next_id();
            let taken = world.locks.acquire(event_id, &requested, probe, probe).await;
            assert_eq!(taken, LockResult::Refused { seat_id, token: None }, "they stand in line");
            drop(leaving);
        }
        stall.end().await;
        assert_eq!(at_the_desk.await.0, StatusCode::CREATED);
        gateway.must_reserve(&Fan::new(&world), event_id, &[1, 2]).await;
        gateway.must_reserve(&Fan::new(&world), event_id, &[3, 4, 5]).await;
        assert_eq!(world.number("select count(*) as n from reservations").await, 4);
    }

    /// Their hold stands until it expires; the lock tells everyone else so before they ask.
    async fn the_seats_of_someone_who_left_while_it_was_decided_stay_locked(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[8]).await;
        let stall = Standstill::begin(&world, event_id).await;
        let fan = Fan::new(&world);
        let mut leaving = Box::pin(gateway.reserve(&fan, event_id, &[0, 1]));
        // Until it is being decided. Who leaves sooner holds nothing.
        assert!(timeout(SECOND, &mut leaving).await.is_err());
        drop(leaving);
        stall.end().await;
        eventually("the lock is kept", async || {
            let probe = world.ids.next_id();
            let taken = world.locks.acquire(event_id, &[0], probe, probe).await;
            (taken == LockResult::Refused { seat_id: 0, token: Some(2) }).then_some(())
        })
        .await;
        assert_eq!(world.number("select count(*) as n from seats where status = 'held'").await, 3);
    }

    /// To try each alone would make a database slower that is too slow.
    async fn what_is_nobodys_fault_is_everybodys_answer(world: World) {
        let event_id = world.open_sale(hall(3, 10)).await;
        let db = world.db_in_a_hurry(SECOND);
        let gateway = GatewayClient::to(&world.ticket_on(&db), &world);
        gateway.must_reserve(&Fan::new(&world), event_id, &[29]).await;
        let failures = || {
            let stats = db.stats();
            stats.rolled_back + stats.groups_lost
        };
        let (stall, before) = (Stall::begin(&world, event_id).await, failures());
        let fans: Vec<Fan> = (0..20).map(|_| Fan::new(&world)).collect();
        let asking = (0..20).zip(&fans).map(|(seat_id, fan)| {
            let gateway = gateway.clone();
            async move { gateway.reserve(fan, event_id, &[seat_id]).await }
        });
        for (status, body) in join_all(asking).await {
            assert!(status.is_server_error(), "{body}");
        }
        // The first, and the others together.
        assert!(failures() - before <= 2, "{} transactions", failures() - before);
        stall.end(&world).await;
        gateway.must_reserve(&fans[7], event_id, &[7]).await;
        assert_eq!(world.number("select count(*) as n from reservations").await, 2);
    }

    async fn who_asks_for_too_many_keeps_no_seat_from_others(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[8]).await;
        let stall = Standstill::begin(&world, event_id).await;
        let (greedy, modest) = (Fan::new(&world), Fan::new(&world));
        // They come in this order, and wait for the stall to end.
        let (refused, held, ()) = tokio::join!(
            gateway.reserve(&greedy, event_id, &[1, 2, 3, 4, 5]),
            gateway.reserve(&modest, event_id, &[3]),
            stall.end(),
        );
        assert_eq!((refused.0.as_u16(), &refused.1["code"]), (409, &json!("SEAT_LIMIT")));
        assert_eq!(refused.1["alreadyYours"], 0);
        assert_eq!(held.0, StatusCode::CREATED, "{}", held.1);
    }

    async fn b_2_outside_of_the_window_the_database_is_not_asked_to_decide(world: World) {
        let gateway = GatewayClient::new(&world);
        let mut sale = new_sale(world.ids.next_id(), hall(1, 9), &world.clock);
        let event_id = sale.inventory.event_id;
        sale.facts.sale_starts_at = world.clock.now() + MINUTE;
        assert!(world.sale_insert(sale).await);
        let ask = async |seat_id: u32| {
            let (_, body) = gateway.reserve(&Fan::new(&world), event_id, &[seat_id]).await;
            body["code"].as_str().map(str::to_owned)
        };
        let before = decisions(&world);
        for seat_id in 0..5 {
            assert_eq!(ask(seat_id).await.as_deref(), Some("SALE_NOT_OPEN"));
        }
        assert_eq!(decisions(&world), before);
        // What was read a moment ago is believed to the microsecond, and no longer than a second.
        world.clock.advance(MINUTE - SECOND / 2);
        assert_eq!(ask(0).await.as_deref(), Some("SALE_NOT_OPEN"));
        world.clock.advance(SECOND / 2);
        assert_eq!(ask(0).await, None);
        assert_eq!(SaleStatus::Cancelled.as_str(), "cancelled");
        world.execute("update sales set status = 'cancelled'").await;
        let before = decisions(&world);
        assert_eq!(ask(1).await.as_deref(), Some("EVENT_CANCELLED"), "the database knows better");
        assert_eq!(decisions(&world), before + 1);
        world.clock.advance(SECOND);
        assert_eq!(ask(1).await.as_deref(), Some("EVENT_CANCELLED"));
        assert_eq!(decisions(&world), before + 1);
        world.execute("update sales set status = 'open'").await;
        world.clock.advance(SECOND);
        assert_eq!(ask(1).await, None);
    }

    /// Before a pre-sale each has their own time to come back at.
    async fn b_1_before_a_presale_everyone_is_told_their_own_time(world: World) {
        let gateway = GatewayClient::new(&world);
        let mut sale = new_sale(world.ids.next_id(), hall(1, 9), &world.clock);
        let event_id = sale.inventory.event_id;
        sale.facts.sale_starts_at = world.clock.now() + MINUTE;
        sale.facts.has_presale = true;
        sale.facts.artist_id = Some(world.ids.next_id());
        assert!(world.sale_insert(sale).await);
        let (_, body) = gateway.reserve(&Fan::new(&world), event_id, &[0]).await;
        assert_eq!((&body["code"], &body["opensAt"]),
            (&json!("SALE_NOT_OPEN"), &json!("2026-12-03T12:01:00Z")));
    }

    async fn r_4_a_key_is_remembered_after_the_sale(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.ids.next_id());
        let mut sale = new_sale(event_id, hall(1, 9), &world.clock);
        sale.facts.sale_ends_at = world.clock.now() + 60 * MINUTE;
        assert!(world.sale_insert(sale).await);
        let (mina, jun) = (Fan::new(&world), Fan::new(&world));
        let (_, first) = gateway.reserve_with_key(&mina, event_id, &[3], "k1").await;
        world.clock.advance(24 * 60 * MINUTE - MINUTE);
        // All look at once: each gets what is their own.
        let (again, reused, unused) = tokio::join!(
            gateway.reserve_with_key(&mina, event_id, &[3], "k1"),
            gateway.reserve_with_key(&mina, event_id, &[4], "k1"),
            gateway.reserve_with_key(&jun, event_id, &[3], "k1"),
        );
        assert_eq!(again, (StatusCode::CREATED, first));
        assert_eq!(reused.0.as_u16(), 422);
        assert_eq!((unused.0.as_u16(), &unused.1["code"]), (409, &json!("SALE_ENDED")));
    }

    async fn after_a_day_a_key_may_name_another_reservation(world: World) {
        let gateway = GatewayClient::new(&world);
        let (first, second) = (world.open_sale(hall(1, 9)).await, world.open_sale(hall(1, 9)).await);
        let mina = Fan::new(&world);
        gateway.reserve_with_key(&mina, first, &[3], "k1").await;
        world.clock.advance(24 * 60 * MINUTE - MINUTE);
        let (status, body) = gateway.reserve_with_key(&mina, second, &[3], "k1").await;
        assert_eq!((status.as_u16(), &body["code"]), (422, &json!("IDEMPOTENCY_KEY_REUSED")));
        world.clock.advance(MINUTE);
        let (status, other) = gateway.reserve_with_key(&mina, second, &[3], "k1").await;
        assert_eq!(status, StatusCode::CREATED, "{other}");
        let again = gateway.reserve_with_key(&mina, second, &[3], "k1").await;
        assert_eq!(again, (StatusCode::CREATED, other));
        assert_eq!(world.number("select count(*) as n from reservations").await, 2);
    }

    async fn a_seat_about_which_someone_is_being_decided_is_not_called_taken(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let (other, attempt) = (world.ids.next_id(), world.ids.next_id());
        assert_eq!(world.locks.acquire(event_id, &[3], other, attempt).await, LockResult::Acquired);
        let fan = Fan::new(&world);
        let (status, body) = gateway.reserve(&fan, event_id, &[2, 3]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SEAT_BEING_DECIDED")));
        assert_eq!((&body["seatIds"], &body["retryAfter"]), (&json!([3]), &json!(1)));
        // A waiting request learns how it ended: the other one gets nothing …
        let give_up = world.locks.abandon(event_id, &[3], attempt);
        let ((status, body), ()) = tokio::join!(gateway.reserve(&fan, event_id, &[3]), give_up);
        assert_eq!(status, StatusCode::CREATED, "{body}");
        // … or the seat.
        assert_eq!(world.locks.acquire(event_id, &[4], other, attempt).await, LockResult::Acquired);
        let late = Fan::new(&world);
        let keep = world.locks.confirm(event_id, &[4], other, 9, MINUTE);
        let ((status, body), ()) = tokio::join!(gateway.reserve(&late, event_id, &[4]), keep);
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SEAT_TAKEN")));
    }

    async fn an_own_hold_whose_time_is_over_does_not_wait_for_the_sweep(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let fan = Fan::new(&world);
        let first = gateway.must_reserve(&fan, event_id, &[3, 4]).await;
        world.clock.advance(5 * MINUTE - SECOND);
        let (status, body) = gateway.reserve(&fan, event_id, &[4, 5]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("HOLD_IN_PROGRESS")));
        assert_eq!(body["reservationId"], first["id"]);
        world.clock.advance(SECOND);
        gateway.must_reserve(&fan, event_id, &[4, 5]).await;
        assert_eq!(world.number("select count(*) as n from seats where status = 'held'").await, 2);
        // The seat that was given back is free for others, too.
        gateway.must_reserve(&Fan::new(&world), event_id, &[3]).await;
    }

    /// A seat that looks free but is not: a bug, planted here.
    async fn a_broken_batch_is_halved_until_the_one_that_breaks_it_is_alone(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(10, 10)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[50]).await;
        world
            .execute(
                "update seats set status = 'available', reservation_id = null where seat_id = 50",
            )
            .await;
        world.locks.release(event_id, &[50], 1).await;
        let stall = Standstill::begin(&world, event_id).await;
        let before = decisions(&world);
        let fans: Vec<Fan> = (0..64).map(|_| Fan::new(&world)).collect();
        let asking = (0..64).zip(&fans);
        let asking = join_all(asking.map(|(at, fan)| {
            let gateway = gateway.clone();
            async move { gateway.reserve(fan, event_id, &[at]).await }
        }));
        let (answers, ()) = tokio::join!(asking, stall.end());
        for (seat_id, (status, body)) in answers.iter().enumerate() {
            match seat_id {
                50 => assert_eq!(body["code"], "SEAT_TAKEN"),
                _ => assert_eq!(*status, StatusCode::CREATED, "{seat_id}: {body}"),
            }
        }
        let tried = decisions(&world) - before;
        // The stall, the first, 63 twice, two halves on each of six levels, two more for the last.
        assert!(tried <= 1 + 1 + 2 + 12 + 2, "{tried}");
        assert_eq!(world.number("select count(*) as n from reservations").await, 64);
    }
}

/// Uses a key for another event.
fn use_key(tx: &mut Tx<'_>, id: Uuid, user_id: Uuid, now: Timestamp) -> Result<(), StorageError> {
    tx.execute(
        "insert into idempotency_keys (user_id, operation, key, fingerprint, resource_id, \
         created_at) values ($1, 'reserve', 'k1', 'another', $2, $3)",
        urr_storage::params![user_id, id.to_string(), now],
    )?;
    Ok(())
}

/// Until someone waits for this very transaction.
pub fn wait_until_someone_waits(tx: &mut Tx<'_>) -> Result<(), StorageError> {
    let waiting = "select count(*) as n from pg_locks \
        where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))";
    while tx.query_one(waiting, &[], |row| row.get::<i64>("n"))? == 0 {
        std::thread::yield_now();
    }
    Ok(())
}

/// On SQLite there is one writer at a time, and nobody can use the key in the same moment.
#[test]
fn the_same_key_for_two_events_at_once_costs_a_batch_one_more_attempt() {
    run(Form::Postgres, async |world: World| {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(10, 10)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[99]).await;
        let stall = Standstill::begin(&world, event_id).await;
        let before = world.db.stats();
        let fans: Vec<Fan> = (0..40).map(|_| Fan::new(&world)).collect();
        let (id, twice, now) = (world.ids.next_id(), fans[20].user_id, world.clock.now());
        let (used, is_used) = tokio::sync::oneshot::channel();
        let (used, db) = (Mutex::new(Some(used)), world.db.clone());
        let using = tokio::spawn(async move {
            db.write(move |tx| {
                use_key(tx, id, twice, now)?;
                if let Some(used) = used.lock().unwrap().take() {
                    used.send(()).unwrap();
                }
                wait_until_someone_waits(tx)
            })
            .await
        });
        is_used.await.unwrap();
        let asking = join_all((0..40).zip(&fans).map(|(seat_id, fan)| {
            let gateway = gateway.clone();
            async move { gateway.reserve_with_key(fan, event_id, &[seat_id], "k1").await }
        }));
        let (answers, ()) = tokio::join!(asking, stall.end());
        let written: Result<(), StorageError> = using.await.unwrap();
        written.unwrap();
        for (at, (status, body)) in answers.iter().enumerate() {
            let expected = if at == 20 { 422 } else { 201 };
            assert_eq!(status.as_u16(), expected, "{at}: {body}");
        }
        let after = world.db.stats();
        // The stall, the other event, the first, and the others together.
        assert_eq!(after.committed - before.committed, 4);
        assert_eq!(after.rolled_back - before.rolled_back, 1);
    });
}
