//! Ticket types are added and changed while they are sold.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;
use urr_kernel::{CallContext, Uuid, Won};
use urr_storage::StorageError;
use urr_ticket::inventory::ticket_types::store;
use urr_ticket::{TicketTypeDraft, TicketTypeError, TicketTypeRejection, TicketTypeStock};

use crate::contract;
use crate::fixture::{World, hall};
use crate::gateway::{Fan, GatewayClient};

const ADMIN: Uuid = Uuid::from_u128(99);

fn draft(name: &str, price: i64, total: i64) -> TicketTypeDraft {
    TicketTypeDraft::parse(name, "", price, total).unwrap()
}

fn context() -> CallContext {
    CallContext::root(Uuid::from_u128(98))
}

/// As `World::open_standing` makes it, with another total.
fn same_with_total(total: i64) -> TicketTypeDraft {
    draft("스탠딩", 88_000, total)
}

async fn buy(world: &World, event_id: Uuid, type_id: Uuid, quantity: u32) -> StatusCode {
    let items = json!([{"ticketTypeId": type_id, "quantity": quantity}]);
    GatewayClient::new(world).reserve_tickets(&Fan::new(world), event_id, items).await.0
}

async fn find(world: &World, type_id: Uuid) -> TicketTypeStock {
    let found = world.db.read(move |tx| store::ticket_type_find(tx, type_id)).await;
    found.unwrap_or_else(|error: StorageError| panic!("{error}")).unwrap()
}

/// Tickets that are in live reservations.
async fn live(world: &World) -> i64 {
    let sql = "select coalesce(sum(quantity), 0)::bigint as n from reservation_items where is_live";
    world.number(sql).await
}

async fn actions(world: &World) -> Vec<String> {
    let sql = "select admin_id, action, resource_type, resource_id, summary from admin_actions \
               order by id";
    world
        .rows(sql, |row| {
            assert_eq!(row.get::<Uuid>("admin_id")?, ADMIN);
            assert_eq!(row.get::<String>("resource_type")?, "ticket_type");
            let (action, summary): (String, String) = (row.get("action")?, row.get("summary")?);
            Ok(format!("{action} {summary}"))
        })
        .await
}

contract! {
    async fn a_ticket_type_is_added_noted_and_sold(world: World) {
        let (event_id, _) = world.open_standing(5).await;
        let made = world.ticket.create_ticket_type(ADMIN, context(), event_id, draft(" 앞줄 ", 120_000, 3)).await;
        let made = made.unwrap();
        assert_eq!((&*made.name, made.price, made.total), ("앞줄", Won::new(120_000), 3));
        assert_eq!(buy(&world, event_id, made.id, 2).await, StatusCode::CREATED);
        assert_eq!(find(&world, made.id).await, TicketTypeStock { available: 1, ..made });
        assert_eq!(actions(&world).await, ["TICKET_TYPE_CREATED 앞줄: 3 at 120,000원"]);
        assert!(world.number("select fence as n from sales").await >= 2, "both are numbered");
    }

    async fn a_ticket_type_is_changed_and_what_was_sold_stays_sold(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let free = draft("앞줄", 99_000, 8);
        let changed = world.ticket.change_ticket_type(ADMIN, context(), type_id, free).await.unwrap();
        assert_eq!((changed.total, changed.available), (8, 8));
        assert_eq!(buy(&world, event_id, type_id, 3).await, StatusCode::CREATED);
        let change = |price, total| {
            world.ticket.change_ticket_type(ADMIN, context(), type_id, draft("앞줄", price, total))
        };
        let below = change(99_000, 2).await.unwrap_err();
        let refused = TicketTypeRejection::BelowSold { sold: 3 };
        assert!(matches!(below, TicketTypeError::Rejected(why) if why == refused), "{below}");
        let dearer = change(99_001, 8).await.unwrap_err();
        let refused = TicketTypeRejection::PriceIsFixed { sold: 3 };
        assert!(matches!(dearer, TicketTypeError::Rejected(why) if why == refused));
        let changed = change(99_000, 3).await.unwrap();
        assert_eq!((changed.total, changed.available), (3, 0));
        assert_eq!(find(&world, type_id).await, changed);
        assert_eq!(buy(&world, event_id, type_id, 1).await, StatusCode::CONFLICT);
        let changed = change(99_000, 4).await.unwrap();
        assert_eq!((changed.total, changed.available), (4, 1));
        assert_eq!(actions(&world).await, [
            "TICKET_TYPE_UPDATED name 스탠딩 → 앞줄, price 88,000원 → 99,000원, total 10 → 8",
            "TICKET_TYPE_UPDATED total 8 → 3",
            "TICKET_TYPE_UPDATED total 3 → 4",
        ], "what was refused is not there");
    }

    /// The catalog shows what is sold: it is told in the transaction of the change.
    async fn every_change_is_told_to_the_catalogue_and_no_refusal_is(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let news = async || {
            let sql = "select body from outbox where topic = 'inventory-events' order by seq";
            let bodies = world.rows(sql, |row| row.get::<String>("body")).await;
            let parse = |body: &String| serde_json::from_str::<serde_json::Value>(body).unwrap();
            bodies.iter().map(parse).collect::<Vec<_>>()
        };
        let front = TicketTypeDraft::parse("앞줄", "무대 앞", 120_000, 3).unwrap();
        let made = world.ticket.create_ticket_type(ADMIN, context(), event_id, front.clone()).await;
        let made = made.unwrap().id;
        let change = draft("스탠딩", 77_000, 20);
        world.ticket.change_ticket_type(ADMIN, context(), type_id, change).await.unwrap();
        let twice = world.ticket.create_ticket_type(ADMIN, context(), event_id, front).await;
        assert!(matches!(twice, Err(TicketTypeError::NameTaken)));
        let news = news().await;
        assert_eq!(news.len(), 2);
        for told in &news {
            assert_eq!(told["type"], "TICKET_TYPE_CHANGED");
            assert_eq!(told["subject"], event_id.to_string(), "in the order of its event's changes");
            assert_eq!(told["correlationid"], json!(context().correlation_id));
        }
        let (kind, saga) = ("TICKET_TYPE_CHANGED", context().correlation_id);
        assert_eq!(news[0]["data"], json!({"eventId": event_id, "ticketTypeId": made,
            "name": "앞줄", "description": "무대 앞", "price": 120_000, "total": 3, "fence": 1,
            "type": kind, "sagaId": saga}));
        assert_eq!(news[1]["data"], json!({"eventId": event_id, "ticketTypeId": type_id,
            "name": "스탠딩", "description": "", "price": 77_000, "total": 20, "fence": 2,
            "type": kind, "sagaId": saga}));
    }

    /// a hundred buy while the total goes up and down; no sale is forgotten.
    async fn r_6_changes_and_sales_at_the_same_moment_do_not_lose_each_other(world: World) {
        let world = Arc::new(world);
        let (event_id, type_id) = world.open_standing(200).await;
        let buyers = (0..100).map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { buy(&world, event_id, type_id, 2).await })
        });
        let changers = (0..40).map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let draft = same_with_total(if number % 2 == 0 { 260 } else { 230 });
                world.ticket.change_ticket_type(ADMIN, context(), type_id, draft).await.map(drop)
            })
        });
        let (buyers, changers): (Vec<_>, Vec<_>) = (buyers.collect(), changers.collect());
        for buyer in buyers {
            assert_eq!(buyer.await.unwrap(), StatusCode::CREATED);
        }
        for changer in changers {
            changer.await.unwrap().unwrap();
        }
        assert_eq!(live(&world).await, 200);
        let after = find(&world, type_id).await;
        assert_eq!(i64::from(after.sold()), 200, "{after:?}");
        // The last change has the last word.
        world.ticket.change_ticket_type(ADMIN, context(), type_id, same_with_total(200)).await.unwrap();
        assert_eq!(find(&world, type_id).await.available, 0);
    }

    /// The control: the same change decided on what was read before, without the lock.
    async fn r_6_a_change_from_an_unlocked_read_would_forget_a_sale(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let seen = find(&world, type_id).await;
        assert_eq!(buy(&world, event_id, type_id, 2).await, StatusCode::CREATED);
        let change = seen.change(&same_with_total(20)).unwrap();
        let written = world.db.write(move |tx| store::ticket_type_update(tx, &change)).await;
        written.unwrap_or_else(|error: StorageError| panic!("{error}"));
        assert_eq!((live(&world).await, find(&world, type_id).await.sold()), (2, 0));
    }

    /// F-13: the last guard is the table itself.
    async fn f_13_the_table_refuses_negative_prices_and_impossible_stock(world: World) {
        world.open_standing(10).await;
        for (sql, guard) in [
            ("update ticket_types set available = -1", "ticket_types_stock"),
            ("update ticket_types set available = 11", "ticket_types_stock"),
            ("update ticket_types set total = 9", "ticket_types_stock"),
            ("update ticket_types set price = -1", "ticket_types_price"),
        ] {
            let refused = world.db.write(move |tx| tx.execute(sql, &[])).await;
            let refused: StorageError = refused.unwrap_err();
            assert!(refused.violates(guard), "{sql}: {refused}");
        }
    }

    async fn a_name_is_there_once_per_event(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let (other_event, _) = world.open_standing(10).await;
        let create = |event_id| {
            world.ticket.create_ticket_type(ADMIN, context(), event_id, draft("뒷줄", 1, 1))
        };
        let made = create(event_id).await.unwrap();
        let twice = create(event_id).await;
        assert!(matches!(twice, Err(TicketTypeError::NameTaken)), "a double click");
        create(other_event).await.unwrap();
        let renamed = world.ticket.change_ticket_type(ADMIN, context(), made.id, same_with_total(1)).await;
        assert!(matches!(renamed, Err(TicketTypeError::NameTaken)));
        // Its own name is not taken.
        world.ticket.change_ticket_type(ADMIN, context(), type_id, same_with_total(11)).await.unwrap();
    }

    async fn a_double_click_at_the_same_moment_adds_one_ticket_type(world: World) {
        let (event_id, _) = world.open_standing(10).await;
        let clicks = (0..10).map(|_| {
            let ticket = world.ticket.clone();
            tokio::spawn(async move {
                ticket.create_ticket_type(ADMIN, context(), event_id, draft("뒷줄", 1, 1)).await
            })
        });
        let mut made = 0;
        for click in clicks.collect::<Vec<_>>() {
            match click.await.unwrap() {
                Ok(_) => made += 1,
                Err(error) => assert!(matches!(error, TicketTypeError::NameTaken), "{error}"),
            }
        }
        assert_eq!(made, 1);
        assert_eq!(actions(&world).await.len(), 1);
    }

    async fn ticket_types_belong_to_standing_events_that_are_not_over(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let seated = world.open_sale(hall(1, 5)).await;
        let create = |event_id| {
            world.ticket.create_ticket_type(ADMIN, context(), event_id, draft("뒷줄", 1, 1))
        };
        let change = || world.ticket.change_ticket_type(ADMIN, context(), type_id, same_with_total(11));
        let refused = create(seated).await;
        assert!(matches!(refused, Err(TicketTypeError::EventHasSeats)));
        let refused = create(world.ids.next_id()).await;
        assert!(matches!(refused, Err(TicketTypeError::EventNotFound)));
        let refused =
            world.ticket.change_ticket_type(ADMIN, context(), world.ids.next_id(), same_with_total(1)).await;
        assert!(matches!(refused, Err(TicketTypeError::NotFound)));
        world.execute("update sales set status = 'cancelled'").await;
        assert!(matches!(create(event_id).await, Err(TicketTypeError::EventCancelled)));
        assert!(matches!(change().await, Err(TicketTypeError::EventCancelled)));
        world.execute("update sales set status = 'deleted'").await;
        assert!(matches!(create(event_id).await, Err(TicketTypeError::EventNotFound)));
        assert!(matches!(change().await, Err(TicketTypeError::NotFound)));
        assert!(actions(&world).await.is_empty());
        world.execute("update sales set status = 'open'").await;
        change().await.unwrap();
    }

    async fn an_event_has_at_most_twenty_ticket_types(world: World) {
        let (event_id, _) = world.open_standing(10).await;
        for number in 1..20 {
            let draft = draft(&format!("{number}"), 1, 1);
            world.ticket.create_ticket_type(ADMIN, context(), event_id, draft).await.unwrap();
        }
        let more = world.ticket.create_ticket_type(ADMIN, context(), event_id, draft("더", 1, 1)).await;
        assert!(matches!(more, Err(TicketTypeError::TooMany)));
    }

    async fn a_change_is_seen_by_who_looks_next(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let before = world.ticket.seat_maps().load(event_id).await.unwrap().unwrap();
        assert_eq!(before.ticket_types[0].available, 10);
        world.ticket.change_ticket_type(ADMIN, context(), type_id, same_with_total(7)).await.unwrap();
        world.ticket.create_ticket_type(ADMIN, context(), event_id, draft("뒷줄", 1, 1)).await.unwrap();
        let after = world.ticket.seat_maps().load(event_id).await.unwrap().unwrap();
        let stock: Vec<_> = after.ticket_types.iter().map(|one| one.available).collect();
        assert_eq!(stock.len(), 2);
        assert!(stock.contains(&7) && stock.contains(&1), "{stock:?}");
    }
}
