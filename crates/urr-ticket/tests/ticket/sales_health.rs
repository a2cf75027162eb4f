//! What the waiting room is told of sales, bookings and fans.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::Caller;
use urr_storage::StorageError;
use urr_ticket::TicketSettings;

use crate::contract;
use crate::fixture::{MINUTE, SECOND, World, hall, new_sale};
use crate::gateway::{Fan, GatewayClient};
use crate::operations::CallerIdentity;

const SALES_HEALTH: &str = "/internal/ticket/sales-health";

async fn sales_health(world: &World, event_ids: &[Uuid]) -> Value {
    let body = json!({ "eventIds": event_ids });
    let (status, body) =
        world.call(CallerIdentity::Service(Caller::Queue), Method::POST, SALES_HEALTH, body).await;
    assert_eq!(status, 200, "{body}");
    body
}

/// Available, held, in all.
async fn supply(world: &World, event_id: Uuid) -> [i64; 3] {
    // What other processes did is seen after a while.
    world.clock.advance(SECOND);
    let supply = sales_health(world, &[event_id]).await["events"][event_id.to_string()].take();
    ["available", "held", "total"].map(|field| supply[field].as_i64().unwrap())
}

contract! {
    async fn what_is_held_may_come_back_and_what_is_sold_does_not(world: World) {
        let seated = world.open_sale(hall(1, 4)).await;
        let (standing, type_id) = world.open_standing(4).await;
        assert_eq!(supply(&world, seated).await, [4, 0, 4]);
        assert_eq!(supply(&world, standing).await, [4, 0, 4]);
        let seats = world.hold(seated, world.ids.next_id(), &[0, 1, 2, 3]).await;
        let tickets = world.hold_tickets(standing, type_id, 4).await;
        assert_eq!(supply(&world, seated).await, [0, 4, 4]);
        assert_eq!(supply(&world, standing).await, [0, 4, 4]);
        let cancelled = world.ticket.cancel_reservation(
            tickets.reservation.id, tickets.reservation.user_id, world.context(),
        );
        cancelled.await.unwrap();
        assert_eq!(supply(&world, standing).await, [4, 0, 4]);
        let tickets = world.hold_tickets(standing, type_id, 4).await;
        world.pay(&seats).await;
        world.pay(&tickets).await;
        assert_eq!(supply(&world, seated).await, [0, 0, 4], "sold out");
        assert_eq!(supply(&world, standing).await, [0, 0, 4], "sold out");
        let unknown = world.ids.next_id();
        let all = sales_health(&world, &[seated, unknown, standing]).await;
        assert_eq!(all["events"].as_object().unwrap().len(), 2, "{all}");
    }

    /// However often it is asked, it costs what people who look at the map cost.
    async fn asking_again_reads_no_more_than_the_map_is_refreshed(world: World) {
        let seated = world.open_sale(hall(1, 4)).await;
        let (standing, _) = world.open_standing(4).await;
        sales_health(&world, &[seated, standing]).await;
        let reads = world.ticket.seat_maps().reads();
        for _ in 0..20 {
            sales_health(&world, &[seated, standing]).await;
        }
        assert_eq!(world.ticket.seat_maps().reads(), reads);
        world.clock.advance(SECOND);
        sales_health(&world, &[seated, standing]).await;
        assert_eq!(world.ticket.seat_maps().reads(), reads + 2, "control");
    }

    async fn a_live_board_is_told_what_is_sold_by_grade(world: World) {
        let seated = world.open_sale(hall(1, 4)).await;
        let (standing, type_id) = world.open_standing(4).await;
        let paid = world.hold(seated, world.ids.next_id(), &[0]).await;
        world.pay(&paid).await;
        world.hold(seated, world.ids.next_id(), &[1, 2]).await;
        world.hold_tickets(standing, type_id, 3).await;
        world.clock.advance(SECOND);
        let ask = async |event_id: Uuid| {
            let path = format!("/internal/ticket/sale-board/{event_id}");
            let queue = CallerIdentity::Service(Caller::Queue);
            world.call(queue, Method::GET, &path, Value::Null).await
        };
        let figures = |board: &Value| {
            let grade = &board["grades"][0];
            [&grade["total"], &grade["available"], &grade["held"]].map(Clone::clone)
        };
        let (status, board) = ask(seated).await;
        assert_eq!((status, figures(&board)), (200, [json!(4), json!(1), json!(2)]), "{board}");
        assert_eq!(board["availability"], json!({ "available": 1, "held": 2, "total": 4 }));
        let reads = world.ticket.seat_maps().reads();
        for _ in 0..20 {
            ask(seated).await;
        }
        assert_eq!(world.ticket.seat_maps().reads(), reads, "it reads the map in memory");
        let (_, board) = ask(standing).await;
        assert_eq!(figures(&board), [json!(4), json!(1), Value::Null], "{board}");
        assert_eq!(ask(world.ids.next_id()).await.0, 404);
    }

    async fn bookings_are_counted_whatever_they_came_to(world: World) {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 4)).await);
        let booking = sales_health(&world, &[]).await["booking"].take();
        assert_eq!(booking, json!({
            "answered": 0, "failed": 0, "p50Micros": 0, "p95Micros": 0, "p99Micros": 0,
        }));
        gateway.must_reserve(&Fan::new(&world), event_id, &[0]).await;
        let (status, _) = gateway.reserve(&Fan::new(&world), event_id, &[0]).await;
        assert_eq!(status.as_u16(), 409);
        let booking = sales_health(&world, &[]).await["booking"].take();
        assert_eq!((&booking["answered"], &booking["failed"]), (&json!(2), &json!(0)));
        assert!(booking["p95Micros"].as_u64().unwrap() > 0, "{booking}");
        let db = world.db.clone();
        tokio::task::spawn_blocking(move || db.close()).await.unwrap();
        let (status, _) = gateway.reserve(&Fan::new(&world), event_id, &[1]).await;
        assert!(status.is_server_error(), "{status}");
        assert_eq!(sales_health(&world, &[]).await["booking"]["failed"], 1);
    }

    async fn a_process_answers_for_the_bookings_of_all_that_report(world: World) {
        let settings = TicketSettings { shares_bookings: true, ..TicketSettings::default() };
        let (one, other) = (world.ticket_with(settings.clone()), world.ticket_with(settings));
        let event_id = world.open_sale(hall(1, 4)).await;
        let world = world.with_ticket(one.clone());
        GatewayClient::new(&world).must_reserve(&Fan::new(&world), event_id, &[0]).await;
        one.share_bookings().await.unwrap();
        let alone = world.ticket_with(TicketSettings::default());
        let world = world.with_ticket(other.clone());
        let booking = async || sales_health(&world, &[]).await["booking"].take();
        assert_eq!(booking().await["answered"], 0, "it has not read the reports yet");
        other.share_bookings().await.unwrap();
        let heard = booking().await;
        assert_eq!((&heard["answered"], &heard["failed"]), (&json!(1), &json!(0)));
        assert!(heard["p95Micros"].as_u64().unwrap() > 0, "{heard}");
        GatewayClient::new(&world).must_reserve(&Fan::new(&world), event_id, &[1]).await;
        assert_eq!(booking().await["answered"], 2, "with its own");
        world.clock.advance(3 * SECOND);
        assert_eq!(booking().await["answered"], 1, "what was read is old");
        other.share_bookings().await.unwrap();
        assert_eq!(booking().await["answered"], 1, "a silent process does not count");
        let world = world.with_ticket(alone.clone());
        alone.share_bookings().await.unwrap();
        assert_eq!(sales_health(&world, &[]).await["booking"]["answered"], 0, "the control");
    }

    async fn b_1_the_tier_of_a_fan_is_that_of_a_membership_in_force(world: World) {
        let artist_id = world.ids.next_id();
        let mut sale = new_sale(world.ids.next_id(), hall(1, 4), &world.clock);
        sale.facts.artist_id = Some(artist_id);
        let event_id = sale.inventory.event_id;
        assert!(world.sale_insert(sale).await);
        let other = world.open_sale(hall(1, 4)).await;
        let now = world.clock.now();
        for (tier, status, expires_at, expected) in [
            ("gold", "active", now + MINUTE, json!("gold")),
            ("diamond", "active", now, Value::Null),
            ("diamond", "pending", now + MINUTE, Value::Null),
        ] {
            let (id, user_id) = (world.ids.next_id(), world.ids.next_id());
            let joined = world.db.write(move |tx| {
                tx.execute(
                    "insert into memberships (id, user_id, artist_id, tier, status, expires_at) \
                     values ($1, $2, $3, $4, $5, $6)",
                    urr_storage::params![id, user_id, artist_id, tier, status, expires_at],
                )
            });
            assert_eq!(joined.await, Ok::<u64, StorageError>(1));
            for (event_id, expected) in [(event_id, expected), (other, Value::Null)] {
                let path = format!("/internal/ticket/tier/{event_id}/{user_id}");
                let asked = world.call(CallerIdentity::Service(Caller::Queue), Method::GET, &path, Value::Null);
                assert_eq!(asked.await, (200, json!({ "tier": expected })), "{tier} {status}");
            }
        }
    }

    async fn d_1_only_the_waiting_room_is_told(world: World) {
        let path = format!("/internal/ticket/tier/{}/{}", world.ids.next_id(), world.ids.next_id());
        let body = json!({ "eventIds": [] });
        for (who, expected) in [
            (CallerIdentity::Service(Caller::Payment), 403),
            (CallerIdentity::Nobody, 403),
            (CallerIdentity::Admin(world.ids.next_id()), 403),
            (CallerIdentity::Service(Caller::Queue), 200),
        ] {
            assert_eq!(world.call(who, Method::POST, SALES_HEALTH, body.clone()).await.0, expected);
            assert_eq!(world.call(who, Method::GET, &path, Value::Null).await.0, expected);
        }
        let many: Vec<Uuid> = (0..1_001).map(|_| world.ids.next_id()).collect();
        let many = json!({ "eventIds": many });
        let refused = world.call(CallerIdentity::Service(Caller::Queue), Method::POST, SALES_HEALTH, many).await;
        assert_eq!((refused.0, &refused.1["code"]), (400, &json!("TOO_MANY_EVENTS")));
    }
}
