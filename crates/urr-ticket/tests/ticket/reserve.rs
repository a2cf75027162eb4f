//! Seats are held by the rules, over HTTP, on both databases.

use axum::http::StatusCode;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_ticket::SaleStatus;

use crate::contract;
use crate::fixture::{MINUTE, World, hall, new_sale};
use crate::gateway::{Fan, GatewayClient};

fn ids_of(body: &Value) -> Value {
    body["seatIds"].clone()
}

contract! {
    async fn a_hold_has_its_seats_its_price_and_its_end(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(3, 10)).await);
        let fan = Fan::new(&world);
        let (status, body) = gateway.reserve(&fan, event_id, &[12, 11]).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        let made = &body["reservation"];
        assert_eq!(made["status"], "pending");
        assert_eq!(made["totalAmount"], 200_000);
        assert_eq!(made["expiresAt"], "2026-12-01T12:05:00Z");
        assert_eq!(made["fencingToken"], 1);
        assert_eq!(made["eventId"], event_id.to_string());
        let seat = json!({"id": 11, "label": made["seats"][0]["label"], "section": "R",
            "row": "2", "number": 2, "grade": "R", "price": 100_000});
        assert_eq!(made["seats"][0], seat);
        assert_eq!(made["seats"].as_array().map(Vec::len), Some(2));
        assert_eq!(made["items"], json!([]), "{made}");
        assert_eq!(world.number("select count(*) as n from seats where status = 'held'").await, 2);
        let announced = world
            .rows("select body from outbox", |row| row.get::<String>("body"))
            .await;
        let event: Value = serde_json::from_str(&announced[0]).unwrap();
        assert_eq!(event["type"], "RESERVATION_CREATED");
        assert_eq!(event["data"]["reservationId"], made["id"]);
        assert_eq!(event["data"]["seatIds"], json!([11, 12]));
        assert_eq!(event["data"]["totalAmount"], 200_000);
        assert_eq!(announced.len(), 1);
    }

    async fn a_taken_seat_is_refused_and_named_and_nothing_else_is_kept(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(3, 10)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[5, 6]).await;
        let (status, body) = gateway.reserve(&Fan::new(&world), event_id, &[6, 7]).await;
        assert_eq!((status, &body["code"]), (StatusCode::CONFLICT, &json!("SEAT_TAKEN")));
        assert_eq!(ids_of(&body), json!([6]));
        // Seat 7 was neither held nor left locked.
        gateway.must_reserve(&Fan::new(&world), event_id, &[7]).await;
        assert_eq!(world.number("select count(*) as n from seats where status = 'held'").await, 3);
    }

    async fn f_9_what_makes_no_sense_is_told_with_a_code(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 5)).await);
        let (standing, type_id) = world.open_standing(5).await;
        let fan = Fan::new(&world);
        let nobody = world.ids.next_id();
        for (event_id, seat_ids, status, code) in [
            (event_id, json!([]), 400, "NOTHING_CHOSEN"),
            (event_id, json!([1, 1]), 400, "CHOSEN_TWICE"),
            (event_id, json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), 409, "SEAT_LIMIT"),
            (event_id, json!([-1]), 400, "INVALID_BODY"),
            (event_id, json!([5]), 404, "SEAT_NOT_FOUND"),
            (nobody, json!([0]), 404, "EVENT_NOT_FOUND"),
            (standing, json!([0]), 409, "EVENT_IS_STANDING"),
        ] {
            let body = json!({"eventId": event_id, "seatIds": seat_ids});
            let (answered, answer) = gateway.post(&fan, event_id, "/api/seats/reserve", body).await;
            assert_eq!((answered.as_u16(), &answer["code"]), (status, &json!(code)), "{answer}");
        }
        let items = json!([{"ticketTypeId": type_id, "quantity": 1}]);
        let (status, answer) = gateway.reserve_tickets(&fan, event_id, items).await;
        assert_eq!((status.as_u16(), &answer["code"]), (409, &json!("EVENT_HAS_SEATS")));
        assert_eq!(world.number("select count(*) as n from reservations").await, 0);
    }

    async fn d_5_an_entry_token_opens_its_own_event_only(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 5)).await);
        let other = world.open_sale(hall(1, 5)).await;
        let fan = Fan::new(&world);
        let body = json!({"eventId": event_id, "seatIds": [0]});
        for entered in [Some(other), None] {
            let (status, answer) =
                gateway.post_as(Some(&fan), entered, "/api/seats/reserve", body.clone()).await;
            let code = &answer["code"];
            assert_eq!((status.as_u16(), code), (403, &json!("ENTRY_TOKEN_OTHER_EVENT")));
        }
        let (status, _) = gateway.post(&fan, event_id, "/api/seats/reserve", body.clone()).await;
        assert_eq!(status, StatusCode::CREATED);
        let (status, _) =
            gateway.post_as(None, Some(event_id), "/api/seats/reserve", body).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }

    async fn b_2_nothing_is_sold_outside_of_the_window(world: World) {
        let gateway = GatewayClient::new(&world);
        let fan = Fan::new(&world);
        let now = world.clock.now();
        let mut early = new_sale(world.ids.next_id(), hall(1, 5), &world.clock);
        early.facts.sale_starts_at = now + 10 * MINUTE;
        let mut over = new_sale(world.ids.next_id(), hall(1, 5), &world.clock);
        over.facts.sale_ends_at = now;
        let opens_at = json!("2026-12-01T12:10:00Z");
        for (sale, code, opens_at) in
            [(early, "SALE_NOT_OPEN", opens_at), (over, "SALE_ENDED", Value::Null)]
        {
            let event_id = sale.inventory.event_id;
            assert!(world.sale_insert(sale).await);
            let (status, body) = gateway.reserve(&fan, event_id, &[0]).await;
            assert_eq!((status.as_u16(), &body["code"]), (409, &json!(code)));
            assert_eq!(body["opensAt"], opens_at);
        }
        world.clock.advance(10 * MINUTE);
        let event_id = world.open_sale(hall(1, 5)).await;
        gateway.must_reserve(&fan, event_id, &[0]).await;
        assert_eq!(SaleStatus::Cancelled.as_str(), "cancelled");
        world.execute("update sales set status = 'cancelled'").await;
        let (status, body) = gateway.reserve(&Fan::new(&world), event_id, &[1]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("EVENT_CANCELLED")));
        world.execute("update sales set status = 'deleted'").await;
        let (status, body) = gateway.reserve(&Fan::new(&world), event_id, &[1]).await;
        assert_eq!((status.as_u16(), &body["code"]), (404, &json!("EVENT_NOT_FOUND")));
    }

    async fn b_4_limits_count_what_someone_has(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let fan = Fan::new(&world);
        let (status, body) = gateway.reserve(&fan, event_id, &[0, 1, 2, 3, 4]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SEAT_LIMIT")));
        let first = gateway.must_reserve(&fan, event_id, &[0, 1, 2]).await;
        let (status, body) = gateway.reserve(&fan, event_id, &[5]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("HOLD_IN_PROGRESS")));
        assert_eq!(body["reservationId"], first["id"]);
        world.execute("update reservations set status = 'confirmed'").await;
        let (status, body) = gateway.reserve(&fan, event_id, &[5, 6]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SEAT_LIMIT")));
        assert_eq!((&body["seatsPerUserMax"], &body["alreadyYours"]), (&json!(4), &json!(3)));
        gateway.must_reserve(&fan, event_id, &[5]).await;
        // Another event has its own count.
        let other = world.open_sale(hall(1, 9)).await;
        gateway.must_reserve(&fan, other, &[0]).await;
    }

    async fn r_4_the_same_key_gets_the_same_answer_even_if_all_ask_at_once(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let fan = Fan::new(&world);
        let asking: Vec<_> = (0..50)
            .map(|_| {
                let (gateway, fan) = (gateway.clone(), fan.clone());
                tokio::spawn(async move { gateway.reserve_with_key(&fan, event_id, &[3], "k1").await })
            })
            .collect();
        let mut answers = Vec::new();
        for answer in asking {
            answers.push(answer.await.unwrap());
        }
        assert_eq!(answers[0].0, StatusCode::CREATED, "{}", answers[0].1);
        assert!(answers.iter().all(|answer| *answer == answers[0]));
        assert_eq!(world.number("select count(*) as n from reservations").await, 1);
        assert_eq!(world.number("select count(*) as n from outbox").await, 1);
        let (status, body) = gateway.reserve_with_key(&fan, event_id, &[4], "k1").await;
        assert_eq!(status.as_u16(), 422);
        assert_eq!(body["code"], "IDEMPOTENCY_KEY_REUSED");
    }

    async fn d_8_a_key_belongs_to_its_user(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let (mina, jun) = (Fan::new(&world), Fan::new(&world));
        let (_, first) = gateway.reserve_with_key(&mina, event_id, &[3], "k1").await;
        // The same words of another user are another request.
        let (status, body) = gateway.reserve_with_key(&jun, event_id, &[3], "k1").await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SEAT_TAKEN")));
        let (status, body) = gateway.reserve_with_key(&jun, event_id, &[4], "k1").await;
        assert_eq!(status, StatusCode::CREATED);
        assert_ne!(body["reservation"]["id"], first["reservation"]["id"]);
    }

    async fn a_key_is_remembered_when_the_seat_is_someone_elses_by_now(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let (mina, jun) = (Fan::new(&world), Fan::new(&world));
        let (_, first) = gateway.reserve_with_key(&mina, event_id, &[3], "k1").await;
        world.execute("update reservations set status = 'expired'").await;
        world.execute("update reservation_items set is_live = false").await;
        world.execute("update seats set status = 'available', reservation_id = null").await;
        world.locks.release(event_id, &[3], 1).await;
        gateway.must_reserve(&jun, event_id, &[3]).await;
        let (status, again) = gateway.reserve_with_key(&mina, event_id, &[3], "k1").await;
        assert_eq!(status, StatusCode::CREATED);
        assert_eq!(again["reservation"]["id"], first["reservation"]["id"]);
        assert_eq!(again["reservation"]["status"], "expired");
        let (status, _) = gateway.reserve_with_key(&mina, event_id, &[3, 4], "k1").await;
        assert_eq!(status.as_u16(), 422);
    }

    async fn the_same_key_for_two_events_at_once_is_one_reservation(world: World) {
        let gateway = GatewayClient::new(&world);
        let events = [world.open_sale(hall(1, 10)).await, world.open_sale(hall(1, 10)).await];
        for round in 0..10 {
            let fan = Fan::new(&world);
            let key = format!("k{round}");
            let ask = |event_id: Uuid| {
                let (gateway, fan, key) = (gateway.clone(), fan.clone(), key.clone());
                tokio::spawn(async move {
                    gateway.reserve_with_key(&fan, event_id, &[round], &key).await.0.as_u16()
                })
            };
            let (one, other) = (ask(events[0]), ask(events[1]));
            let mut statuses = [one.await.unwrap(), other.await.unwrap()];
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 422]);
        }
    }

    async fn a_key_comes_in_a_header_and_must_be_one_word(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let fan = Fan::new(&world);
        let body = json!({"eventId": event_id, "seatIds": [0]});
        let path = "/api/seats/reserve";
        let (_, first) = gateway.post_with_key(&fan, event_id, path, body.clone(), "k1").await;
        let (_, second) = gateway.reserve_with_key(&fan, event_id, &[0], "k1").await;
        assert_eq!(first, second);
        for key in ["", "a b"] {
            let answer = gateway.post_with_key(&fan, event_id, path, body.clone(), key).await;
            let (status, code) = (answer.0.as_u16(), &answer.1["code"]);
            assert_eq!((status, code), (400, &json!("INVALID_IDEMPOTENCY_KEY")), "{key:?}");
        }
        let mut in_body = body.clone();
        in_body["idempotencyKey"] = json!("k1");
        let (status, _) = gateway.post(&fan, event_id, path, in_body).await;
        assert_eq!(status.as_u16(), 400, "a key in the body is not taken for one");
        let long = "x".repeat(65);
        let (status, _) = gateway.reserve_with_key(&fan, event_id, &[0], &long).await;
        assert_eq!(status.as_u16(), 400);
    }

    async fn m_14_a_second_click_never_weakens_the_hold(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let (mina, jun) = (Fan::new(&world), Fan::new(&world));
        let hold = gateway.must_reserve(&mina, event_id, &[3]).await;
        // New key, same seat: told about the hold, and the seat stays locked and held.
        let (status, body) = gateway.reserve_with_key(&mina, event_id, &[3], "second").await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("HOLD_IN_PROGRESS")));
        assert_eq!(body["reservationId"], hold["id"]);
        let taken = world.locks.acquire(event_id, &[3], jun.user_id, world.ids.next_id()).await;
        let token = hold["fencingToken"].as_i64();
        assert_eq!(taken, urr_ticket::LockResult::Refused { seat_id: 3, token });
        let (status, _) = gateway.reserve(&jun, event_id, &[3]).await;
        assert_eq!(status, StatusCode::CONFLICT);
    }

    async fn m_14_twenty_clicks_at_once_are_one_hold_with_its_lock(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        let fan = Fan::new(&world);
        let clicks: Vec<_> = (0..20)
            .map(|_| {
                let (gateway, fan) = (gateway.clone(), fan.clone());
                tokio::spawn(async move { gateway.reserve(&fan, event_id, &[3, 4]).await })
            })
            .collect();
        let mut held = Vec::new();
        for click in clicks {
            match click.await.unwrap() {
                (StatusCode::CREATED, body) => held.push(body["reservation"].clone()),
                (status, body) => {
                    let code = &body["code"];
                    assert_eq!((status.as_u16(), code), (409, &json!("HOLD_IN_PROGRESS")));
                }
            }
        }
        assert_eq!(held.len(), 1);
        let other = world.ids.next_id();
        let taken = world.locks.acquire(event_id, &[4], other, world.ids.next_id()).await;
        let token = held[0]["fencingToken"].as_i64();
        assert_eq!(taken, urr_ticket::LockResult::Refused { seat_id: 4, token });
    }

    /// A seat that looks free but is not: a bug, planted here. The unique index is the last guard,
    /// and the neighbours in the batch do not suffer.
    async fn one_request_that_breaks_the_batch_does_not_break_its_neighbours(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(10, 10)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[50]).await;
        world
            .execute(
                "update seats set status = 'available', reservation_id = null where seat_id = 50",
            )
            .await;
        world.locks.release(event_id, &[50], 1).await;
        let asking: Vec<_> = (40..60)
            .map(|seat_id| {
                let (gateway, fan) = (gateway.clone(), Fan::new(&world));
                tokio::spawn(async move {
                    (seat_id, gateway.reserve(&fan, event_id, &[seat_id]).await)
                })
            })
            .collect();
        for answer in asking {
            let (seat_id, (status, body)) = answer.await.unwrap();
            match seat_id {
                50 => assert_eq!(body["code"], "SEAT_TAKEN"),
                _ => assert_eq!(status, StatusCode::CREATED, "{seat_id}: {body}"),
            }
        }
        assert_eq!(world.number("select count(*) as n from reservations").await, 20);
    }

    /// The rows that were changed are counted: what was not marked is not sold.
    async fn a_seat_that_is_not_marked_is_not_sold_and_its_neighbours_do_not_suffer(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(10, 10)).await);
        world.skip_updates("seats", "new.seat_id = 50").await;
        let asking: Vec<_> = (40..60)
            .map(|seat_id| {
                let (gateway, fan) = (gateway.clone(), Fan::new(&world));
                tokio::spawn(async move {
                    (seat_id, gateway.reserve(&fan, event_id, &[seat_id]).await)
                })
            })
            .collect();
        for answer in asking {
            let (seat_id, (status, body)) = answer.await.unwrap();
            match seat_id {
                50 => assert_eq!(body["code"], "SEAT_TAKEN"),
                _ => assert_eq!(status, StatusCode::CREATED, "{seat_id}: {body}"),
            }
        }
        assert_eq!(world.number("select count(*) as n from reservations").await, 19);
        world.assert_agrees().await;
    }

    /// The hold is over, but nobody told the lock: as when Redis was away at that moment.
    async fn a_lock_that_outlived_its_hold_yields_to_who_has_seen_the_map(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[3]).await;
        world.execute("update reservations set status = 'expired'").await;
        world.execute("update reservation_items set is_live = false").await;
        world.execute("update sales set fence = 2").await;
        world
            .execute("update seats set status = 'available', reservation_id = null, fence = 2 \
                      where seat_id = 3")
            .await;
        // As long as nobody has looked, the lock is believed.
        let (status, body) = gateway.reserve(&Fan::new(&world), event_id, &[3]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SEAT_TAKEN")));
        world.ticket.seat_maps().load(event_id).await.unwrap();
        let fan = Fan::new(&world);
        let hold = gateway.must_reserve(&fan, event_id, &[3]).await;
        assert_eq!(hold["fencingToken"], 3);
        // The lock is the new hold's from now on.
        let taken = world.locks.acquire(event_id, &[3], world.ids.next_id(), world.ids.next_id());
        let token = Some(3);
        assert_eq!(taken.await, urr_ticket::LockResult::Refused { seat_id: 3, token });
    }

    async fn without_locks_the_map_turns_the_crowd_away(world: World) {
        let event_id = world.open_sale(hall(1, 9)).await;
        let locks = urr_ticket::SeatLocks::off();
        let ticket = world.ticket_with_locks(urr_ticket::TicketSettings::default(), &locks);
        let gateway = GatewayClient::to(&ticket, &world);
        gateway.must_reserve(&Fan::new(&world), event_id, &[3]).await;
        ticket.seat_maps().load(event_id).await.unwrap();
        let asked = |world: &World| {
            let stats = world.db.stats();
            stats.committed + stats.rolled_back
        };
        let before = asked(&world);
        let (status, body) = gateway.reserve(&Fan::new(&world), event_id, &[3]).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SEAT_TAKEN")));
        assert_eq!(asked(&world), before, "the database was not asked");
        // A map that is too old says nothing: the database decides.
        world.clock.advance(MINUTE);
        let (status, _) = gateway.reserve(&Fan::new(&world), event_id, &[3]).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert_eq!(asked(&world), before + 1);
    }

    async fn tokens_grow_with_every_hold_and_refusals_use_none(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        for seat_id in 0..5 {
            let hold = gateway.must_reserve(&Fan::new(&world), event_id, &[seat_id]).await;
            assert_eq!(hold["fencingToken"], seat_id + 1);
            gateway.reserve(&Fan::new(&world), event_id, &[seat_id]).await;
        }
        assert_eq!(world.number("select fence as n from sales").await, 5);
        assert_eq!(world.number("select max(fence) as n from seats").await, 5);
    }
}
