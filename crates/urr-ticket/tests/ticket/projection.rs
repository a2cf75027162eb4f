//! The ticket service learns from the catalog's events what it sells.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use urr_bus::{
    Bus, BusMessage, BusMetrics, Consumer, EventHandler, HandleError, HandlerContext,
    HandlerOutcome, TopicSpec, consumer, dead_letters,
};
use urr_kernel::{CallContext, DomainEvent, Uuid};
use urr_storage::inbox;
use urr_test::eventually;
use urr_ticket::{Sweeper, consumer as ticket_consumer};

use crate::contract;
use crate::fixture::{MINUTE, World, hall};
use crate::operations::without_envelope;

/// An event of the catalog, in its envelope.
pub fn event(world: &World, event_type: &str, data: Value) -> DomainEvent {
    let id = world.ids.next_id();
    DomainEvent {
        specversion: "1.0".to_owned(),
        id,
        source: "urr/catalog".to_owned(),
        event_type: event_type.to_owned(),
        subject: data["eventId"].as_str().unwrap().to_owned(),
        time: world.clock.now(),
        datacontenttype: "application/json".to_owned(),
        data,
        correlation_id: id,
        causation_id: None,
        traceparent: Some(CallContext::root(id).trace.to_string()),
    }
}

/// What the catalog says of an event in every snapshot.
fn snapshot(event_id: Uuid, revision: i64, title: &str) -> Value {
    json!({
        "eventId": event_id, "revision": revision, "title": title, "kind": "seated",
        "status": "upcoming", "artistId": null, "venueId": Uuid::from_u128(7),
        "venueName": "강변 홀", "address": "서울", "startsAt": "2026-12-24T10:00:00Z",
        "saleStartsAt": "2026-12-01T11:00:00Z", "saleEndsAt": "2026-12-24T09:00:00Z",
        "hasPresale": false, "seatsPerUserMax": 4, "prices": {"R": 90_000},
    })
}

fn seated(event_id: Uuid, rows: u16, seats_per_row: u16) -> Value {
    let mut data = snapshot(event_id, 1, "첫 제목");
    data["layout"] = serde_json::to_value(hall(rows, seats_per_row)).unwrap();
    data
}

fn standing(event_id: Uuid, types: &[(u128, &str, i64)]) -> Value {
    let mut data = snapshot(event_id, 1, "스탠딩 공연");
    data["kind"] = json!("standing");
    data["prices"] = json!({});
    let types = types.iter().map(|(id, name, total)| {
        json!({"id": Uuid::from_u128(*id), "name": name, "description": "", "price": 55_000,
            "total": total})
    });
    data["ticketTypes"] = types.collect();
    data
}

fn with(mut data: Value, field: &str, value: Value) -> Value {
    data[field] = value;
    data
}

/// Handles an event as the consumer loop does: once, in one transaction with its inbox row.
pub async fn deliver(world: &World, event: &DomainEvent) -> Result<HandlerOutcome, HandleError> {
    let context = HandlerContext::new(ticket_consumer::GROUP, event, world.clock.now());
    let event = event.clone();
    world
        .db
        .write(move |tx| {
            if !inbox::record(tx, context.group(), event.id, context.now)? {
                return Ok(HandlerOutcome::Ignored);
            }
            ticket_consumer::handle(tx, &event, &context)
        })
        .await
}

pub async fn must_deliver(world: &World, event_type: &str, data: Value) {
    let handled = deliver(world, &event(world, event_type, data)).await;
    assert_eq!(handled, Ok(HandlerOutcome::Done), "{event_type}");
}

/// Why an event will never be handled.
async fn poison(world: &World, data: Value) -> String {
    match deliver(world, &event(world, "EVENT_CREATED", data)).await {
        Err(HandleError::Poison(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

async fn announced(world: &World) -> Vec<Value> {
    let bodies = world
        .rows("select body from outbox where topic = 'inventory-events' order by seq", |row| {
            row.get::<String>("body")
        })
        .await;
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

/// What is stored of the only sale.
async fn sale(world: &World) -> String {
    let sales = world
        .rows("select title, status, revision, is_complete, seats_total from sales", |row| {
            let (title, status): (String, String) = (row.get("title")?, row.get("status")?);
            let (revision, seats): (i64, u32) = (row.get("revision")?, row.get("seats_total")?);
            let is_complete: bool = row.get("is_complete")?;
            Ok(format!("{title}, {status}, revision {revision}, {seats} seats, {is_complete}"))
        })
        .await;
    assert_eq!(sales.len(), 1, "{sales:?}");
    sales[0].clone()
}

/// An event of the 24th with one paid reservation.
async fn paid_event(world: &World) -> Uuid {
    paid_event_of(world, "2026-12-24T10:00:00Z").await
}

async fn paid_event_of(world: &World, starts_at: &str) -> Uuid {
    let event_id = world.ids.next_id();
    let data = with(seated(event_id, 1, 5), "startsAt", json!(starts_at));
    let ends = with(data, "saleEndsAt", json!(starts_at));
    must_deliver(world, "EVENT_CREATED", ends).await;
    let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
    world.pay(&record).await;
    event_id
}

/// All orders of the first `n` numbers.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else { return vec![Vec::new()] };
    let insert = |order: Vec<usize>| {
        (0..n).map(move |place| {
            let mut order = order.clone();
            order.insert(place, last);
            order
        })
    };
    orders(last).into_iter().flat_map(insert).collect()
}

contract! {
    /// F-1, F-2: there is one writer of events and one of seats, each with its own database; the
    /// seats of a new event are made from what the event says, all of them or none.
    async fn f_1_f_2_a_new_event_gets_its_seats_which_are_counted_and_announced(world: World) {
        let event_id = world.ids.next_id();
        must_deliver(&world, "EVENT_CREATED", seated(event_id, 12, 10)).await;
        assert_eq!(sale(&world).await, "첫 제목, open, revision 1, 120 seats, true");
        let free = "select count(*) as n from seats where status = 'available' and fence = 0";
        assert_eq!(world.number(free).await, 120);
        let announced = announced(&world).await;
        assert_eq!(announced.len(), 1);
        assert_eq!(announced[0]["type"], "INVENTORY_READY");
        assert_eq!(announced[0]["subject"], event_id.to_string());
        let data = without_envelope(announced[0]["data"].clone());
        assert_eq!(data, json!({"eventId": event_id, "revision": 1, "seats": 120,
            "ticketTypes": 0, "total": 120}));
    }

    async fn f_2_a_new_standing_event_gets_its_ticket_types(world: World) {
        let event_id = world.ids.next_id();
        let data = standing(event_id, &[(1, "A구역", 300), (2, "B구역", 200)]);
        must_deliver(&world, "EVENT_CREATED", data).await;
        assert_eq!(sale(&world).await, "스탠딩 공연, open, revision 1, 0 seats, true");
        let full = "select count(*) as n from ticket_types where available = total and price = 55000";
        assert_eq!(world.number(full).await, 2);
        let data = without_envelope(announced(&world).await[0]["data"].clone());
        assert_eq!(data, json!({"eventId": event_id, "revision": 1,
            "seats": 0, "ticketTypes": 2, "total": 500}));
    }

    async fn fifty_thousand_seats_are_made_in_one_go(world: World) {
        let event_id = world.ids.next_id();
        must_deliver(&world, "EVENT_CREATED", seated(event_id, 100, 500)).await;
        assert_eq!(world.number("select count(*) as n from seats").await, 50_000);
        assert_eq!(world.number("select max(seat_id) as n from seats").await, 49_999);
        assert_eq!(announced(&world).await[0]["data"]["seats"], 50_000);
    }

    async fn the_same_order_twice_is_one_sale(world: World) {
        let event_id = world.ids.next_id();
        let created = event(&world, "EVENT_CREATED", seated(event_id, 2, 5));
        assert_eq!(deliver(&world, &created).await, Ok(HandlerOutcome::Done));
        assert_eq!(deliver(&world, &created).await, Ok(HandlerOutcome::Ignored), "the inbox knows it");
        // Sent again in another envelope, which the inbox does not know, and even with more seats.
        must_deliver(&world, "EVENT_CREATED", seated(event_id, 2, 5)).await;
        must_deliver(&world, "EVENT_CREATED", seated(event_id, 3, 5)).await;
        assert_eq!(sale(&world).await, "첫 제목, open, revision 1, 10 seats, true");
        assert_eq!(world.number("select count(*) as n from seats").await, 10);
        assert_eq!(announced(&world).await.len(), 1);
    }

    /// Whatever comes first: an edit before the creation, the cancelling before everything.
    async fn the_order_of_arrival_does_not_matter(world: World) {
        for (number, order) in orders(4).into_iter().enumerate() {
            let event_id = world.ids.next_id();
            let moved = with(snapshot(event_id, 4, "네 번째"), "seatsPerUserMax", json!(2));
            let news = [
                ("EVENT_CREATED", seated(event_id, 2, 5)),
                ("EVENT_UPDATED", snapshot(event_id, 2, "두 번째")),
                ("EVENT_CANCELLED", json!({"eventId": event_id, "revision": 3, "reason": "비"})),
                ("EVENT_UPDATED", moved),
            ];
            for index in order {
                let (event_type, data) = news[index].clone();
                must_deliver(&world, event_type, data).await;
            }
            assert_eq!(sale(&world).await, "네 번째, cancelled, revision 4, 10 seats, true");
            assert_eq!(world.number("select seats_per_user_max as n from sales").await, 2);
            assert_eq!(announced(&world).await.len(), number + 1);
            world.execute("delete from sales").await;
            world.execute("delete from seats").await;
        }
    }

    async fn older_facts_do_not_overwrite_newer_ones(world: World) {
        let event_id = world.ids.next_id();
        must_deliver(&world, "EVENT_CREATED", seated(event_id, 1, 5)).await;
        let later = with(snapshot(event_id, 9, "새 제목"), "saleEndsAt", json!("2026-12-20T00:00:00Z"));
        must_deliver(&world, "EVENT_UPDATED", later).await;
        must_deliver(&world, "EVENT_UPDATED", snapshot(event_id, 8, "옛 제목")).await;
        assert_eq!(sale(&world).await, "새 제목, open, revision 9, 5 seats, true");
        let ends = world.rows("select sale_ends_at from sales", |row| {
            row.get::<urr_kernel::Timestamp>("sale_ends_at")
        });
        assert_eq!(ends.await[0].to_string(), "2026-12-20T00:00:00Z");
    }

    async fn what_is_over_is_not_opened_by_an_edit(world: World) {
        let event_id = world.ids.next_id();
        must_deliver(&world, "EVENT_CREATED", seated(event_id, 1, 5)).await;
        let cancelled = with(snapshot(event_id, 2, "취소"), "status", json!("cancelled"));
        must_deliver(&world, "EVENT_UPDATED", cancelled).await;
        assert!(sale(&world).await.contains("cancelled"), "the snapshot alone says it, too");
        must_deliver(&world, "EVENT_UPDATED", snapshot(event_id, 3, "다시?")).await;
        assert_eq!(sale(&world).await, "다시?, cancelled, revision 3, 5 seats, true");
    }

    /// P-3: as many statements for a stadium as for a club.
    async fn p_3_seats_are_made_together_however_many_there_are(world: World) {
        let mut statements = Vec::new();
        for (rows, seats_per_row) in [(5, 10), (250, 200)] {
            let created = seated(world.ids.next_id(), rows, seats_per_row);
            let before = world.db.stats().statements;
            must_deliver(&world, "EVENT_CREATED", created).await;
            statements.push(world.db.stats().statements - before);
        }
        assert_eq!(world.number("select count(*) as n from seats").await, 50_050);
        assert_eq!(statements[0], statements[1]);
        assert!(statements[0] <= 12, "{statements:?}");
    }

    /// F-3: the deletion is one change here, whatever was sold, and can be repeated. Reservations
    /// are cancelled afterwards, by a job.
    async fn f_3_an_event_with_reservations_is_deleted_and_that_can_be_repeated(world: World) {
        let event_id = world.ids.next_id();
        must_deliver(&world, "EVENT_CREATED", seated(event_id, 1, 5)).await;
        world.execute(
            "insert into reservations (id, number, user_id, event_id, status, payment_status, \
             total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, \
             agreed_starts_at, announced_starts_at, created_at, updated_at) \
             select event_id, 'R', event_id, event_id, 'confirmed', 'paid', 1, 0, 1, 1, \
             starts_at, '{}', starts_at, starts_at, starts_at, starts_at from sales",
        ).await;
        for _ in 0..2 {
            let data = json!({"eventId": event_id, "revision": 2});
            must_deliver(&world, "EVENT_DELETED", data).await;
            assert_eq!(sale(&world).await, "첫 제목, deleted, revision 1, 5 seats, true");
        }
        let late = json!({"eventId": event_id, "revision": 2, "reason": "늦게"});
        must_deliver(&world, "EVENT_CANCELLED", late).await;
        assert!(sale(&world).await.contains("cancelled"), "everybody is owed their money");
        assert_eq!(world.number("select count(*) as n from reservations").await, 1);
    }

    /// An event that has taken place is deleted for the sake of order: who was there keeps the ticket,
    /// and nobody is paid back, whatever the ticket service knows of the times.
    async fn deleting_an_event_that_has_taken_place_refunds_nobody(world: World) {
        for (is_over, refunds) in [(json!(true), 0), (json!(false), 1)] {
            let event_id = paid_event(&world).await;
            let data = json!({"eventId": event_id, "revision": 2, "isOver": is_over});
            for _ in 0..2 {
                must_deliver(&world, "EVENT_DELETED", data.clone()).await;
                let swept = Sweeper::new(world.ticket.clone()).empty_closed_sales().await.unwrap();
                assert_eq!(swept.failed, Vec::<Uuid>::new());
            }
            assert_eq!(world.announced("RESERVATION_CANCELLED").await.len(), refunds, "{is_over}");
            let deleted = "select count(*) as n from sales where status = 'deleted'";
            assert_eq!(world.number(deleted).await, 1);
            world.execute("delete from sales").await;
        }
    }

    /// From a catalog that does not say it: by the times that are known here.
    async fn whether_a_deleted_event_has_taken_place_is_told_by_its_time(world: World) {
        let event_id = paid_event(&world).await;
        world.clock.advance(23 * 24 * 60 * MINUTE);
        must_deliver(&world, "EVENT_DELETED", json!({"eventId": event_id, "revision": 2})).await;
        let kept = "select count(*) as n from sales where emptied_at is not null";
        assert_eq!(world.number(kept).await, 1);
        let other = paid_event_of(&world, "2027-01-24T10:00:00Z").await;
        must_deliver(&world, "EVENT_DELETED", json!({"eventId": other, "revision": 2})).await;
        assert_eq!(world.number(kept).await, 1, "that one is yet to come");
    }

    async fn who_was_promised_a_refund_gets_it_although_the_event_is_deleted(world: World) {
        let event_id = paid_event(&world).await;
        must_deliver(&world, "EVENT_CANCELLED", json!({"eventId": event_id, "revision": 2})).await;
        let deleted = json!({"eventId": event_id, "revision": 3, "isOver": true});
        must_deliver(&world, "EVENT_DELETED", deleted).await;
        // However late the job is.
        world.execute("update sales set starts_at = sale_starts_at").await;
        Sweeper::new(world.ticket.clone()).empty_closed_sales().await.unwrap();
        assert_eq!(world.announced("RESERVATION_CANCELLED").await.len(), 1);
    }

    async fn what_cannot_be_sold_is_set_aside_with_its_reason(world: World) {
        let id = world.ids.next_id();
        let good = || seated(id, 1, 5);
        let rows = |data: Value| with(data, "layout", json!({"sections": []}));
        let types = |types: &[(u128, &str, i64)]| standing(id, types);
        for (data, reason) in [
            (with(good(), "layout", Value::Null), "the layout: "),
            (rows(good()), "the layout: "),
            (with(good(), "layout", json!({"rows": 3})), "not what its type promises"),
            (with(good(), "prices", json!({"S": 1})), "the grade \"R\" has no price"),
            (with(good(), "prices", json!({"R": -1})), "the price of \"R\" is -1원"),
            (with(good(), "prices", json!({"R": 1_000_000_000})), "the price of \"R\" is"),
            (with(good(), "kind", json!("lying")), "unknown variant `lying`"),
            (with(good(), "saleEndsAt", json!("2026-12-01T11:00:00Z")), "ends before it begins"),
            (with(good(), "saleEndsAt", json!("soon")), "not what its type promises"),
            (with(good(), "seatsPerUserMax", json!(0)), "0 seats per user"),
            (with(good(), "kind", json!("standing")), "a standing event has seats"),
            (with(good(), "ticketTypes", types(&[(1, "A", 1)])["ticketTypes"].clone()),
                "an event with seats has ticket types"),
            (types(&[(1, "A", 1), (2, "A", 1)]), "\"A\" is there twice"),
            (types(&[(1, "A", 1), (1, "B", 1)]), "\"B\" is there twice"),
            (types(&[(1, "A", 0)]), "\"A\": There are from 1 to"),
            (types(&[(1, "", 1)]), "A name has 1 to"),
        ] {
            let told = poison(&world, data).await;
            assert!(told.contains(reason), "{told:?} should say {reason:?}");
        }
        for table in ["sales", "seats", "ticket_types", "event_states", "outbox", "inbox"] {
            let count = match table {
                "sales" => "select count(*) as n from sales",
                "seats" => "select count(*) as n from seats",
                "ticket_types" => "select count(*) as n from ticket_types",
                "event_states" => "select count(*) as n from event_states",
                "outbox" => "select count(*) as n from outbox",
                _ => "select count(*) as n from inbox",
            };
            assert_eq!(world.number(count).await, 0, "{table}");
        }
        // The control: what was good all the time is taken.
        must_deliver(&world, "EVENT_CREATED", good()).await;
    }

    async fn a_ticket_type_of_another_event_is_not_taken_away(world: World) {
        let (first, second) = (world.ids.next_id(), world.ids.next_id());
        must_deliver(&world, "EVENT_CREATED", standing(first, &[(1, "A", 5)])).await;
        let told = poison(&world, standing(second, &[(2, "B", 5), (1, "C", 5)])).await;
        assert_eq!(told, "one of the ticket types belongs to another event");
        assert_eq!(world.number("select count(*) as n from sales").await, 1);
        assert_eq!(world.number("select count(*) as n from ticket_types").await, 1);
    }

    async fn what_does_not_concern_the_sale_is_ignored(world: World) {
        let other = event(&world, "VENUE_CREATED", json!({"eventId": world.ids.next_id()}));
        assert_eq!(deliver(&world, &other).await, Ok(HandlerOutcome::Ignored));
    }

    /// On PostgreSQL two replicas may handle news of one event at the same moment.
    async fn news_of_one_event_at_the_same_moment_are_both_heard(world: World) {
        let world = Arc::new(world);
        for round in 1..=20 {
            let event_id = world.ids.next_id();
            let news = [
                ("EVENT_CREATED", seated(event_id, 1, 5)),
                ("EVENT_UPDATED", snapshot(event_id, 2, "두 번째")),
                ("EVENT_DELETED", json!({"eventId": event_id, "revision": 3})),
            ];
            let deliveries = news.map(|(event_type, data)| {
                let world = Arc::clone(&world);
                tokio::spawn(async move { must_deliver(&world, event_type, data).await })
            });
            for delivery in deliveries {
                delivery.await.unwrap();
            }
            let right = "select count(*) as n from sales where title = '두 번째' \
                         and status = 'deleted' and revision = 2";
            assert_eq!(world.number(right).await, round);
        }
    }

    /// Through the bus and the consumer loop: the impossible order becomes a dead letter, and what
    /// comes behind it on the same key is handled.
    async fn an_impossible_order_does_not_stop_those_behind_it(world: World) {
        let bus = Bus::open_embedded(&world.folder().join("bus.db"), &world.clock).unwrap();
        let topics: Vec<_> = ticket_consumer::TOPICS.iter().map(|topic| TopicSpec::new(*topic)).collect();
        bus.ensure_topics(&topics).await.unwrap();
        let event_id = world.ids.next_id();
        for data in [with(seated(event_id, 1, 5), "prices", json!({})), seated(event_id, 1, 5)] {
            let event = event(&world, "EVENT_CREATED", data);
            let message =
                BusMessage::new(ticket_consumer::TOPICS[0], event.subject.clone(), event.to_bytes());
            bus.publish_one(message).await.unwrap();
        }
        let cancel = CancellationToken::new();
        let running = tokio::spawn(consumer::run(
            Consumer {
                bus: bus.clone(),
                db: world.db.clone(),
                group: ticket_consumer::GROUP.to_owned(),
                topics: ticket_consumer::TOPICS.iter().map(|topic| (*topic).to_owned()).collect(),
                types: Some(ticket_consumer::TYPES),
                handler: EventHandler::Each(Arc::new(ticket_consumer::handle)),
                clock: world.clock.clone(),
                metrics: BusMetrics::default(),
            },
            cancel.clone(),
        ));
        eventually("the sale is there", async || {
            (world.number("select count(*) as n from seats").await == 5).then_some(())
        })
        .await;
        cancel.cancel();
        running.await.unwrap();
        let topic = Some(ticket_consumer::TOPICS[0]);
        let listed = dead_letters::list(&bus, topic, dead_letters::DeadLetterScope::Open, 10).await.unwrap();
        let reasons: Vec<_> = listed.letters.iter().map(|letter| &*letter.reason).collect();
        assert_eq!(reasons, ["the grade \"R\" has no price"]);
    }
}
