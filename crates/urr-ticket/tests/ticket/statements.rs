//! What the database is asked to do: few statements for many, and nothing written by who reads.

use axum::http::{Method, StatusCode};
use futures_util::future::join_all;
use serde_json::{Value, json};
use urr_kernel::{Uuid, Won};
use urr_test::engines::writings;
use urr_ticket::inventory::store::{NewTicketType, ticket_type_insert};

use crate::contract;
use crate::fixture::{Form, MINUTE, World, hall, run};
use crate::gateway::{Fan, GatewayClient};
use crate::operations::CallerIdentity;
use crate::stalls::Standstill;

/// Runs a step and counts its statements.
async fn count<T>(world: &World, step: impl Future<Output = T>) -> (T, u64) {
    let before = world.db.stats().statements;
    let done = step.await;
    (done, world.db.stats().statements - before)
}

/// A standing event of which everything was looked at before, with ten types of tickets.
async fn ten_types(world: &World) -> (Uuid, Vec<Uuid>) {
    let (event_id, first) = world.open_standing(50).await;
    let mut type_ids = vec![first];
    for number in 1..10 {
        let (id, now) = (world.ids.next_id(), world.clock.now());
        let (name, price) = (format!("구역 {number}"), Won::new(88_000));
        let new = NewTicketType { id, name, description: String::new(), price, total: 50 };
        let made = world.db.write(move |tx| ticket_type_insert(tx, event_id, &new, now)).await;
        assert_eq!(made, Ok::<bool, urr_storage::StorageError>(true));
        type_ids.push(id);
    }
    world.hold_tickets(event_id, first, 1).await;
    (event_id, type_ids)
}

/// On SQLite a statement is no journey, and seats are held one by one.
#[test]
fn p_4_four_seats_take_as_many_statements_as_one() {
    run(Form::Postgres, async |world: World| {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(10, 10)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[99]).await;
        let fans = [Fan::new(&world), Fan::new(&world)];
        let (_, one) = count(&world, gateway.must_reserve(&fans[0], event_id, &[0])).await;
        let (_, four) =
            count(&world, gateway.must_reserve(&fans[1], event_id, &[1, 2, 3, 4])).await;
        assert_eq!(one, four);
        assert!(one <= 4, "{one}");
    });
}

#[test]
fn p_4_four_types_of_tickets_take_as_many_statements_as_one() {
    run(Form::Postgres, async |world: World| {
        let gateway = GatewayClient::new(&world);
        let (event_id, type_ids) = ten_types(&world).await;
        let mut statements = Vec::new();
        for types in [1, 4] {
            let line = |id: &Uuid| json!({"ticketTypeId": id, "quantity": 1});
            let items: Value = type_ids[..types].iter().map(line).collect();
            let fan = Fan::new(&world);
            let asking = gateway.reserve_tickets(&fan, event_id, items);
            let ((status, body), counted) = count(&world, asking).await;
            assert_eq!(status, StatusCode::CREATED, "{body}");
            statements.push(counted);
        }
        assert_eq!(statements[0], statements[1]);
        world.assert_agrees().await;
    });
}

#[test]
fn p_4_a_hundred_who_are_decided_together_take_as_many_statements_as_one() {
    run(Form::Postgres, async |world: World| {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(45, 10)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[449]).await;
        let fan = Fan::new(&world);
        let (_, alone) = count(&world, gateway.must_reserve(&fan, event_id, &[448])).await;
        let stall = Standstill::begin(&world, event_id).await;
        let fans: Vec<Fan> = (0..101).map(|_| Fan::new(&world)).collect();
        // The first keeps the desk busy; the others wait for it.
        let asking = join_all((0..101).zip(&fans).map(|(number, fan)| {
            let (gateway, first) = (gateway.clone(), 4 * number);
            async move { gateway.reserve(fan, event_id, &[first, first + 1, first + 2]).await }
        }));
        let ((answers, ()), counted) =
            count(&world, async { tokio::join!(asking, stall.end()) }).await;
        for (status, body) in answers {
            assert_eq!(status, StatusCode::CREATED, "{body}");
        }
        // That of the standstill, which had begun, and two batches.
        assert_eq!(counted, 1 + 2 * alone);
        world.assert_agrees().await;
    });
}

contract! {
    /// Nobody who looks makes the database write: no counter, no time of the last visit.
    async fn p_11_reading_writes_nothing(world: World) {
        let event_id = world.open_sale(hall(3, 10)).await;
        let (standing, type_id) = world.open_standing(5).await;
        world.hold_tickets(standing, type_id, 1).await;
        let paid = world.hold(event_id, world.ids.next_id(), &[0, 1]).await;
        let paid = world.pay(&paid).await;
        let (id, owner) = (paid.id(), CallerIdentity::User(paid.record.reservation.user_id));
        let admin = CallerIdentity::Admin(world.ids.next_id());
        let before = writings(&world.db).await;
        let reads = [
            (CallerIdentity::Nobody, format!("/api/seats/events/{event_id}")),
            (CallerIdentity::Nobody, format!("/api/seats/events/{event_id}?since=1")),
            (CallerIdentity::Nobody, format!("/api/tickets/event/{standing}")),
            (CallerIdentity::Nobody, "/api/tickets/keys".to_owned()),
            (owner, "/api/reservations/my".to_owned()),
            (owner, format!("/api/reservations/{id}")),
            (admin, "/api/admin/reservations".to_owned()),
            (admin, "/api/admin/reservations/audit".to_owned()),
        ];
        for _ in 0..3 {
            for (who, path) in &reads {
                let (status, body) = world.call(*who, Method::GET, path, Value::Null).await;
                assert_eq!(status, 200, "{path}: {body}");
            }
            // What was kept in memory is too old.
            world.clock.advance(MINUTE);
        }
        assert_eq!(writings(&world.db).await, before);
        // The control: who changes something is seen.
        world.hold(event_id, world.ids.next_id(), &[5]).await;
        assert_ne!(writings(&world.db).await, before);
    }
}
