//! Tickets without seats: the stock is never negative, whoever asks for it in whatever order.

use axum::http::StatusCode;
use serde_json::json;
use urr_kernel::Won;
use urr_ticket::inventory::store::{NewTicketType, ticket_type_insert};

use crate::contract;
use crate::gateway::{Fan, GatewayClient};

contract! {
    async fn tickets_are_held_with_their_price_and_taken_from_the_stock(world: World) {
        let (gateway, (event_id, type_id)) = (GatewayClient::new(&world), world.open_standing(5).await);
        let items = json!([{"ticketTypeId": type_id, "quantity": 2}]);
        let (status, body) = gateway.reserve_tickets(&Fan::new(&world), event_id, items).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        let made = &body["reservation"];
        assert_eq!(made["totalAmount"], 176_000);
        let line = json!({"ticketTypeId": type_id, "name": "스탠딩", "quantity": 2,
            "unitPrice": 88_000, "subtotal": 176_000});
        assert_eq!(made["items"], json!([line]));
        assert_eq!(world.number("select available as n from ticket_types").await, 3);
        assert_eq!(world.number("select quantity as n from reservations").await, 2);
    }

    async fn what_is_not_there_is_refused_and_nothing_is_taken(world: World) {
        let (gateway, (event_id, type_id)) = (GatewayClient::new(&world), world.open_standing(3).await);
        let other = world.ids.next_id();
        let line = |id, quantity| json!({"ticketTypeId": id, "quantity": quantity});
        for (items, status, code) in [
            (json!([]), 400, "NOTHING_CHOSEN"),
            (json!([line(type_id, 0)]), 400, "NOTHING_CHOSEN"),
            (json!([line(type_id, 11)]), 409, "SEAT_LIMIT"),
            (json!([line(type_id, 1), line(type_id, 1)]), 400, "CHOSEN_TWICE"),
            (json!([line(type_id, 1), line(other, 1)]), 404, "TICKET_TYPE_NOT_FOUND"),
            (json!([line(type_id, 5)]), 409, "SEAT_LIMIT"),
            (json!([line(type_id, 4)]), 409, "NOT_ENOUGH"),
        ] {
            let (answered, body) =
                gateway.reserve_tickets(&Fan::new(&world), event_id, items).await;
            assert_eq!((answered.as_u16(), &body["code"]), (status, &json!(code)), "{body}");
        }
        assert_eq!(world.number("select available as n from ticket_types").await, 3);
        let all = json!([line(type_id, 3)]);
        let (status, _) = gateway.reserve_tickets(&Fan::new(&world), event_id, all).await;
        assert_eq!(status, StatusCode::CREATED);
        let one = json!([line(type_id, 1)]);
        let (status, body) = gateway.reserve_tickets(&Fan::new(&world), event_id, one).await;
        assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SOLD_OUT")));
        assert_eq!(body["available"], 0);
    }

    async fn r_7_f_13_a_crowd_that_asks_in_every_order_gets_exactly_what_there_is(world: World) {
        let (event_id, first) = world.open_standing(60).await;
        let second = world.ids.next_id();
        let now = world.clock.now();
        let vip = NewTicketType {
            id: second,
            name: "VIP".to_owned(),
            description: String::new(),
            price: Won::new(150_000),
            total: 60,
        };
        let made = world.db.write(move |tx| ticket_type_insert(tx, event_id, &vip, now)).await;
        assert_eq!(made, Ok::<bool, urr_storage::StorageError>(true));
        // Two processes, so that two transactions meet in the database.
        let doors = [
            GatewayClient::new(&world),
            GatewayClient::to(&world.ticket_with(urr_ticket::TicketSettings::default()), &world),
        ];
        let asking: Vec<_> = (0..200_usize)
            .map(|number| {
                let (gateway, fan) = (doors[number % 2].clone(), Fan::new(&world));
                let types = if number % 3 == 0 { [first, second] } else { [second, first] };
                let items = json!([
                    {"ticketTypeId": types[0], "quantity": 1},
                    {"ticketTypeId": types[1], "quantity": 1},
                ]);
                tokio::spawn(async move { gateway.reserve_tickets(&fan, event_id, items).await })
            })
            .collect();
        let mut sold = 0;
        for answer in asking {
            match answer.await.unwrap() {
                (StatusCode::CREATED, _) => sold += 1,
                (status, body) => {
                    assert_eq!((status.as_u16(), &body["code"]), (409, &json!("SOLD_OUT")));
                }
            }
        }
        assert_eq!(sold, 60);
        assert_eq!(world.number("select sum(available)::bigint as n from ticket_types").await, 0);
        assert_eq!(world.number("select count(*) as n from reservations").await, 60);
        assert_eq!(world.db.stats().retries, 0, "no deadlock was met");
    }

    async fn r_4_a_key_stands_for_the_types_and_quantities_it_was_used_for(world: World) {
        let (gateway, (event_id, type_id)) = (GatewayClient::new(&world), world.open_standing(5).await);
        let fan = Fan::new(&world);
        let ask = async |quantity: u32| {
            let items = json!([{"ticketTypeId": type_id, "quantity": quantity}]);
            let body = json!({"eventId": event_id, "items": items});
            gateway.post_with_key(&fan, event_id, "/api/reservations", body, "k1").await
        };
        let first = ask(2).await;
        assert_eq!(first.0, StatusCode::CREATED, "{}", first.1);
        assert_eq!(ask(2).await, first);
        let (status, body) = ask(1).await;
        assert_eq!((status.as_u16(), &body["code"]), (422, &json!("IDEMPOTENCY_KEY_REUSED")));
        assert_eq!(world.number("select available as n from ticket_types").await, 3);
    }

    /// The rows that were changed are counted: what was not taken from the stock is not sold.
    async fn f_13_tickets_that_are_not_taken_from_the_stock_are_not_sold(world: World) {
        let (gateway, (event_id, type_id)) = (GatewayClient::new(&world), world.open_standing(5).await);
        world.skip_updates("ticket_types", "true").await;
        let items = json!([{"ticketTypeId": type_id, "quantity": 2}]);
        let (status, body) = gateway.reserve_tickets(&Fan::new(&world), event_id, items).await;
        assert!(status.is_server_error(), "{body}");
        assert_eq!(world.number("select count(*) as n from reservations").await, 0);
        world.assert_agrees().await;
    }

    /// The last guard of the stock is the schema's: even a statement that forgot to look cannot
    /// sell what is not there.
    async fn f_13_the_schema_refuses_a_negative_stock(world: World) {
        world.open_standing(1).await;
        for sql in [
            "update ticket_types set available = available - 2",
            "update ticket_types set available = available + 1",
        ] {
            let done = world.db.write(move |tx| tx.execute(sql, &[])).await;
            let error: urr_storage::StorageError = done.unwrap_err();
            assert!(error.violates("ticket_types_stock"), "{error}");
        }
    }
}
