//! The audit finds every sort of difference, and nothing where all agrees.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_service::{Metrics, RequestLimits, ServiceKit};
use urr_ticket::AuditDifferenceKind;

use crate::contract;
use crate::fixture::{MINUTE, SECOND, World, hall, kind_name};
use crate::operations::CallerIdentity;

/// Holds, paid, cancelled and expired reservations, with seats and without.
async fn busy_office(world: &World) -> Uuid {
    let event_id = world.open_sale(hall(2, 10)).await;
    let (standing, type_id) = world.open_standing(20).await;
    let expired = world.hold(event_id, world.ids.next_id(), &[9]).await;
    world.clock.advance(5 * MINUTE);
    world.sweep().await;
    assert_eq!(world.find(expired.reservation.id).await.reservation.status.as_str(), "expired");
    for seat_id in [1, 2] {
        let paid = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
        let paid = world.pay(&paid).await;
        if seat_id == 2 {
            let user_id = paid.record.reservation.user_id;
            world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
        }
    }
    world.hold(event_id, world.ids.next_id(), &[0, 5]).await;
    let paid = world.hold_tickets(standing, type_id, 3).await;
    world.pay(&paid).await;
    world.hold_tickets(standing, type_id, 2).await;
    event_id
}

async fn kinds(world: &World) -> BTreeSet<String> {
    let audit = world.ticket.audit().await.unwrap();
    audit.differences.iter().map(kind_name).collect()
}

/// Makes one thing wrong by hand and looks what the audit says.
async fn check(world: World, sql: &'static str, expected: &[&str]) {
    busy_office(&world).await;
    world.assert_agrees().await;
    assert!(world.execute(sql).await > 0, "the fault was planted");
    assert_eq!(kinds(&world).await, expected.iter().map(|kind| (*kind).to_owned()).collect());
}

contract! {
    async fn a_missing_seat_is_found(world: World) {
        check(world, "delete from seats where seat_id = 19", &["seatCount"]).await;
    }

    async fn a_seat_that_nobody_has_reserved_is_found(world: World) {
        let sql = "update seats set status = 'held', reservation_id = \
                   (select reservation_id from seats where seat_id = 0) where seat_id = 7";
        check(world, sql, &["seatWithoutItem"]).await;
    }

    async fn a_reserved_seat_that_is_available_is_found(world: World) {
        let sql = "update seats set status = 'available', reservation_id = null where seat_id = 1";
        check(world, sql, &["itemWithoutSeat"]).await;
    }

    async fn a_seat_that_is_sold_but_not_paid_is_found(world: World) {
        let sql = "update seats set status = 'sold' where seat_id = 0";
        check(world, sql, &["seatStatus"]).await;
    }

    async fn a_paid_seat_that_is_only_held_is_found(world: World) {
        let sql = "update seats set status = 'held' where seat_id = 1";
        check(world, sql, &["seatStatus"]).await;
    }

    async fn an_item_that_does_not_live_with_its_reservation_is_found(world: World) {
        let sql = "update reservation_items set is_live = false where seat_id = 0";
        check(world, sql, &["itemStatus", "seatWithoutItem"]).await;
    }

    async fn an_item_that_outlives_its_reservation_is_found(world: World) {
        let sql = "update reservation_items set is_live = true where seat_id = 9";
        check(world, sql, &["itemStatus", "itemWithoutSeat"]).await;
    }

    async fn an_amount_that_is_not_the_sum_is_found(world: World) {
        let sql = "update reservations set total_amount = total_amount + 1 where quantity = 3";
        check(world, sql, &["amount"]).await;
    }

    async fn a_quantity_that_is_not_the_sum_is_found(world: World) {
        let sql = "update reservations set quantity = 1 where quantity = 2";
        check(world, sql, &["amount"]).await;
    }

    async fn f_13_stock_that_is_not_the_total_less_what_is_live_is_found(world: World) {
        check(world, "update ticket_types set available = available - 1", &["stock"]).await;
    }

    async fn a_paid_reservation_without_its_ticket_is_found(world: World) {
        let sql = "update tickets set is_valid = false where unit = 2";
        check(world, sql, &["tickets"]).await;
    }

    async fn a_valid_ticket_of_a_cancelled_reservation_is_found(world: World) {
        let sql = "update tickets set is_valid = true where seat_id = 2";
        check(world, sql, &["tickets"]).await;
    }

    async fn a_confirmed_reservation_that_nobody_paid_is_found(world: World) {
        let sql = "update reservations set payment_status = 'unpaid' where status = 'confirmed'";
        check(world, sql, &["payment"]).await;
    }

    async fn a_cancelled_reservation_that_kept_the_money_is_found(world: World) {
        let sql = "update reservations set payment_status = 'paid' where status = 'cancelled'";
        check(world, sql, &["payment"]).await;
    }

    async fn a_hold_that_nobody_ends_is_found(world: World) {
        busy_office(&world).await;
        world.clock.advance(5 * MINUTE + 2 * MINUTE);
        assert_eq!(kinds(&world).await, BTreeSet::new(), "it may take a while");
        world.clock.advance(SECOND);
        assert_eq!(kinds(&world).await, BTreeSet::from(["overdue".to_owned()]));
        world.sweep().await;
        world.assert_agrees().await;
    }

    async fn a_hold_that_a_payment_has_forgotten_is_found(world: World) {
        let event_id = world.open_sale(hall(2, 10)).await;
        let record = world.hold(event_id, world.ids.next_id(), &[0]).await;
        let claim = world.pin(&record).await;
        world.clock.advance(15 * MINUTE);
        assert_eq!(kinds(&world).await, BTreeSet::new(), "a payment may take a while");
        world.clock.advance(SECOND);
        let audit = world.ticket.audit().await.unwrap();
        let found: Vec<_> = audit.differences.iter().map(|d| (d.kind, d.reservation_id)).collect();
        let id = record.reservation.id;
        assert_eq!(found, [(AuditDifferenceKind::OldPin, Some(id.0))]);
        assert_eq!(kinds(&world).await, BTreeSet::from(["oldPin".to_owned()]));
        world.confirm(id, claim).await.unwrap();
        world.assert_agrees().await;
    }

    async fn an_auditor_passes_over_what_agreed_and_did_not_change(world: World) {
        let event_id = busy_office(&world).await;
        let mut auditor = world.ticket.auditor();
        assert_eq!(auditor.run().await.unwrap().events, 2);
        assert_eq!(auditor.run().await.unwrap().events, 0);
        world.hold(event_id, world.ids.next_id(), &[15]).await;
        assert_eq!(auditor.run().await.unwrap().events, 1);
        world.execute("update ticket_types set available = 1").await;
        assert!(auditor.run().await.unwrap().differences.is_empty(), "nothing says that it changed");
        let found = world.ticket.audit().await.unwrap();
        assert_eq!((found.events, found.differences.len()), (2, 1), "an audit looks at all");
    }

    async fn events_that_did_not_change_are_audited_once_a_day(world: World) {
        busy_office(&world).await;
        world.clock.advance(60 * 24 * 60 * MINUTE);
        world.sweep().await;
        assert_eq!(kinds(&world).await, BTreeSet::new());
        assert_eq!(world.ticket.audit_daily().await, Ok(true));
        world.execute("update tickets set is_valid = false where is_valid").await;
        let mut auditor = world.ticket.auditor();
        let found = auditor.run().await.unwrap();
        assert_eq!(found.events, 0, "the events are over, and nothing says that they changed");
        assert_eq!(world.ticket.audit_daily().await, Ok(false), "it was done today");
        world.clock.advance(24 * 60 * MINUTE);
        assert_eq!(world.ticket.audit_daily().await, Ok(true));
        // What differed then is audited in every run, by whichever process.
        for auditor in [&mut auditor, &mut world.ticket.auditor()] {
            let found = auditor.run().await.unwrap();
            assert_eq!((found.events, found.differences.len()), (2, 2));
        }
    }

    async fn operators_see_what_ended_and_what_does_not_agree(world: World) {
        let kit = ServiceKit {
            clock: world.clock.clone(),
            ids: world.ids.clone(),
            metrics: Metrics::new(),
            limits: RequestLimits::default(),
        };
        let _office = world.ticket.service(&kit);
        busy_office(&world).await;
        world.assert_agrees().await;
        let text = kit.metrics.text();
        assert!(text.contains("urr_reservations_ended_total{ending=\"expired\"} 1\n"), "{text}");
        assert!(text.contains("urr_reservations_ended_total{ending=\"cancelled\"} 1\n"), "{text}");
        let made = world.number("select count(*) as n from reservations").await;
        let paid = "select count(*) as n from reservations where payment_id is not null";
        let paid = world.number(paid).await;
        assert!(text.contains(&format!("urr_reservations_created_total {made}\n")), "{text}");
        assert!(text.contains(&format!("urr_reservations_confirmed_total {paid}\n")), "{text}");
        assert!(text.contains("urr_reservation_audit_differences 0\n"), "{text}");
        world.execute("update ticket_types set available = available - 1").await;
        world.ticket.audit().await.unwrap();
        assert!(kit.metrics.text().contains("urr_reservation_audit_differences 1\n"));
    }

    async fn administrators_see_what_the_audit_finds(world: World) {
        let event_id = busy_office(&world).await;
        let path = "/api/admin/reservations/audit";
        let admin = CallerIdentity::Admin(world.ids.next_id());
        let (status, body) = world.call(admin, Method::GET, path, Value::Null).await;
        assert_eq!((status, &body["last"]), (200, &Value::Null), "none was ever made");
        let (status, ordered) = world.call(admin, Method::POST, path, Value::Null).await;
        assert_eq!((status, &ordered["last"]), (200, &json!({"events": 2, "differences": []})));
        world.execute("update seats set status = 'sold' where seat_id = 5").await;
        let (_, body) = world.call(admin, Method::GET, path, Value::Null).await;
        assert_eq!(body, ordered, "looking at it audits nothing");
        let (_, body) = world.call(admin, Method::POST, path, Value::Null).await;
        let difference = &body["last"]["differences"][0];
        assert_eq!(difference["kind"], "seatStatus");
        assert_eq!(difference["seatId"], 5);
        assert_eq!(difference["eventId"], event_id.to_string());
        let user = CallerIdentity::User(world.ids.next_id());
        for method in [Method::GET, Method::POST] {
            assert_eq!(world.call(user, method, path, Value::Null).await.0, 403);
        }
    }
}
