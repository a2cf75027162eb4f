//! Gates: returned seats are for fans who were told, for a bounded time, and then for everybody.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_ticket::{
    AlertSettings, AuditDifference, AuditDifferenceKind, ChangeSeats, ReserveError, TicketSettings,
};

use crate::contract;
use crate::fixture::{Form, MINUTE, World, hall, run};
use crate::gateway::{Fan, GatewayClient};
use crate::operations::CallerIdentity;
use crate::seat_alerts::HEAD_START;

/// How long only fans who were told may take returned seats, by default.
const EXCLUSIVE: Duration = Duration::from_secs(30 * 60);

async fn take(gateway: &GatewayClient, user_id: Uuid, event_id: Uuid, seat: u32) -> String {
    let (status, body) = gateway.reserve(&Fan { user_id }, event_id, &[seat]).await;
    match status {
        StatusCode::CREATED => "held".to_owned(),
        _ => body["code"].as_str().unwrap().to_owned(),
    }
}

contract! {
    /// The attack: a program asks for the seat in the moment in which it returns.
    async fn a_program_that_polls_gets_nothing_before_the_fans_who_asked(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        let [first, second] =
            [world.waiting_fan(event_id, 1).await, world.waiting_fan(event_id, 1).await];
        let (gateway, program) = (GatewayClient::new(&world), world.ids.next_id());
        assert_eq!(take(&gateway, program, event_id, 0).await, "SEAT_TAKEN");
        world.cancel(&sold[0]).await;
        // Nobody was told yet, and it is closed already.
        assert_eq!(take(&gateway, program, event_id, 0).await, "SEATS_OFFERED");
        assert_eq!(world.told().await, [first, second]);
        let (status, body) = gateway.reserve(&Fan { user_id: program }, event_id, &[0]).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert_eq!(body["opensAt"], json!((world.clock.now() + EXCLUSIVE).to_string()));
        assert_eq!(take(&gateway, first, event_id, 0).await, "held");
        assert_eq!(take(&gateway, program, event_id, 1).await, "SEATS_OFFERED");
        assert_eq!(take(&gateway, second, event_id, 1).await, "held");
        world.assert_agrees().await;
    }

    /// The control of the above: without gates the program is faster.
    async fn without_gates_the_program_is_faster(world: World) {
        let alerts = AlertSettings { exclusive_max: Duration::ZERO, ..AlertSettings::default() };
        let settings = TicketSettings { alerts, ..TicketSettings::default() };
        let ticket = world.ticket_with_locks(settings, &world.locks);
        let world = world.with_ticket(ticket);
        let (event_id, sold) = world.sold_out(1).await;
        let first = world.waiting_fan(event_id, 1).await;
        world.cancel(&sold[0]).await;
        let gateway = GatewayClient::new(&world);
        assert_eq!(take(&gateway, world.ids.next_id(), event_id, 0).await, "held");
        assert_eq!(world.told().await, [first], "told earlier than others, and no more");
        assert_eq!(world.announced("SEAT_ALERT_DUE").await[0]["headStartUntil"], Value::Null);
    }

    async fn the_next_fan_waits_for_their_turn_and_then_may_take_it(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        let [first, second] =
            [world.waiting_fan(event_id, 2).await, world.waiting_fan(event_id, 2).await];
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [first]);
        let gateway = GatewayClient::new(&world);
        assert_eq!(take(&gateway, second, event_id, 0).await, "SEATS_OFFERED");
        world.clock.advance(HEAD_START);
        assert_eq!(world.told().await, [first, second]);
        assert_eq!(take(&gateway, second, event_id, 0).await, "held");
        // The first one comes late, and may still take what is left.
        assert_eq!(take(&gateway, first, event_id, 1).await, "held");
    }

    async fn everybody_may_take_what_nobody_who_waits_can_use(world: World) {
        let (event_id, sold) = world.sold_out(2).await;
        let only = world.waiting_fan(event_id, 4).await;
        world.cancel(&sold[0]).await;
        let (gateway, passer) = (GatewayClient::new(&world), world.ids.next_id());
        assert_eq!(take(&gateway, passer, event_id, 0).await, "SEATS_OFFERED");
        assert!(world.told().await.is_empty(), "four were asked for, and two are there");
        assert_eq!(take(&gateway, passer, event_id, 0).await, "held");
        // Later enough returns: it is for the fan again.
        let (id, owner) = (sold[1].id(), sold[1].record.reservation.user_id);
        let held = world.number("select count(*) as n from seats where status = 'held'").await;
        assert_eq!(held, 1);
        world.ticket.cancel_reservation(id, owner, world.context()).await.unwrap();
        assert_eq!(take(&gateway, world.ids.next_id(), event_id, 1).await, "SEATS_OFFERED");
        world.told().await;
        assert_eq!(take(&gateway, only, event_id, 1).await, "held", "three are there: open again");
    }

    async fn a_gate_opens_when_everybody_was_told_and_the_last_head_start_is_over(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        world.waiting_fan(event_id, 2).await;
        world.cancel(&sold[0]).await;
        world.told().await;
        let (gateway, passer) = (GatewayClient::new(&world), world.ids.next_id());
        assert_eq!(take(&gateway, passer, event_id, 0).await, "SEATS_OFFERED");
        world.clock.advance(HEAD_START);
        world.told().await;
        assert_eq!(take(&gateway, passer, event_id, 0).await, "held");
        assert_eq!(world.number("select count(*) as n from alert_gates").await, 0);
        let sql = "select count(*) as n from sales where has_seat_alerts";
        assert_eq!(world.number(sql).await, 0);
    }

    /// No process looks at the fans any more: the seats must not stay closed.
    async fn a_gate_opens_by_itself_after_a_bounded_time(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        world.waiting_fan(event_id, 1).await;
        world.cancel(&sold[0]).await;
        let (gateway, passer) = (GatewayClient::new(&world), world.ids.next_id());
        world.clock.advance(EXCLUSIVE - MINUTE);
        assert_eq!(take(&gateway, passer, event_id, 0).await, "SEATS_OFFERED");
        world.clock.advance(MINUTE);
        assert_eq!(take(&gateway, passer, event_id, 0).await, "held");
    }

    async fn best_seats_and_changed_seats_respect_gates(world: World) {
        let (event_id, sold) = world.sold_out(2).await;
        let fan = world.waiting_fan(event_id, 2).await;
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [fan]);
        let gateway = GatewayClient::new(&world);
        let best = async |user_id| {
            let body = json!({"eventId": event_id, "count": 1, "grade": "R"});
            gateway.post(&Fan { user_id }, event_id, "/api/seats/best", body).await
        };
        let (status, body) = best(world.ids.next_id()).await;
        assert_eq!((status, &body["code"]), (StatusCode::CONFLICT, &json!("SEATS_OFFERED")), "{body}");
        let (status, body) = best(fan).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");

        let other = world.open_sale(hall(1, 3)).await;
        let (keeper, passer) = (world.ids.next_id(), world.ids.next_id());
        let held = world.hold(other, passer, &[0]).await;
        let given = world.hold(other, keeper, &[1, 2]).await;
        world.waiting_fan(other, 1).await;
        let id = given.reservation.id;
        world.ticket.release_hold(id, keeper, None, world.context()).await.unwrap();
        let change = ChangeSeats { user_id: passer, seat_ids: vec![1], fencing_token: None };
        let id = held.reservation.id;
        let refused = world.ticket.change_seats(id, change.clone(), world.context()).await;
        let is_offered = |error: &ReserveError| format!("{error:?}").contains("SeatsOffered");
        assert!(refused.as_ref().is_err_and(is_offered), "{refused:?}");
        // The control: when the gate is open, it can be had.
        world.execute("update reservations set expires_at = agreed_starts_at").await;
        world.clock.advance(EXCLUSIVE);
        world.ticket.change_seats(id, change, world.context()).await.unwrap();
        world.assert_agrees().await;
    }

    async fn a_page_is_told_what_is_kept_from_its_user(world: World) {
        let (event_id, sold) = world.sold_out(1).await;
        let first = world.waiting_fan(event_id, 2).await;
        let second = world.waiting_fan(event_id, 1).await;
        let passer = world.ids.next_id();
        let gates = async |user_id| {
            let path = format!("/api/alerts/events/{event_id}/gates");
            let user = CallerIdentity::User(user_id);
            let (status, body) = world.call(user, Method::GET, &path, Value::Null).await;
            assert_eq!(status, 200, "{body}");
            body["gates"].clone()
        };
        world.cancel(&sold[0]).await;
        let opens_at = (world.clock.now() + EXCLUSIVE).to_string();
        let closed = |quantity_max: u32| json!([{ "grade": "R", "ticketTypeId": null,
            "quantityMax": quantity_max, "opensAt": opens_at }]);
        assert_eq!(gates(first).await, closed(0), "nobody was told yet");
        world.told().await;
        assert_eq!(gates(first).await, closed(2));
        for other in [second, passer] {
            assert_eq!(gates(other).await, closed(0));
        }
        // It says what the rule of holds says, also while the fan holds them.
        let gateway = GatewayClient::new(&world);
        assert_eq!(take(&gateway, passer, event_id, 0).await, "SEATS_OFFERED");
        assert_eq!(take(&gateway, first, event_id, 0).await, "held");
        assert_eq!(gates(first).await, closed(2));
        world.clock.advance(EXCLUSIVE);
        assert_eq!(gates(passer).await, json!([]), "its time is over");
        let path = format!("/api/alerts/events/{}/gates", world.ids.next_id());
        let user = CallerIdentity::User(passer);
        let (status, body) = world.call(user, Method::GET, &path, Value::Null).await;
        assert_eq!((status, &body["code"]), (404, &json!("EVENT_NOT_FOUND")));
    }

    /// The control of the audit: the guard is switched off in one process.
    async fn the_audit_finds_who_took_returned_seats_without_having_been_told(world: World) {
        let alerts = AlertSettings { exclusive_max: Duration::ZERO, ..AlertSettings::default() };
        let settings = TicketSettings { alerts, ..TicketSettings::default() };
        let (event_id, sold) = world.sold_out(2).await;
        let fan = world.waiting_fan(event_id, 2).await;
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [fan]);
        world.hold(event_id, fan, &[0]).await;
        world.assert_agrees().await;
        let guarded = world.ticket.clone();
        let unguarded = world.ticket_with_locks(settings, &world.locks);
        let world = world.with_ticket(unguarded);
        let wrong = world.hold(event_id, world.ids.next_id(), &[1]).await.reservation.id;
        let audit = async || {
            let report = guarded.audit().await.unwrap();
            let found = |one: &AuditDifference| (one.kind, one.reservation_id, one.seat_id);
            report.differences.iter().map(found).collect::<Vec<_>>()
        };
        let expected = [(AuditDifferenceKind::Gate, Some(wrong.0), Some(1))];
        assert_eq!(audit().await, expected);
        // The gate is gone, and what happened is not forgotten.
        world.execute("update alert_gates set next_at = returned_at").await;
        guarded.tell_seat_alerts().await.unwrap();
        assert_eq!(world.number("select count(*) as n from alert_gates").await, 0);
        assert_eq!(audit().await, expected);
    }

    /// What looks alike and is allowed: an open gate, a late hold, a withdrawn alert.
    async fn the_audit_has_nothing_against_who_may_take_returned_seats(world: World) {
        let (event_id, sold) = world.sold_out(3).await;
        let fan = world.waiting_fan(event_id, 1).await;
        world.waiting_fan(event_id, 4).await;
        world.cancel(&sold[0]).await;
        assert_eq!(world.told().await, [fan]);
        let held = world.hold(event_id, fan, &[0]).await;
        let list = world.alerts_of(fan).await;
        let path = format!("/api/alerts/seats/{}", list["seatAlerts"][0]["id"].as_str().unwrap());
        let withdrawn = world.call(CallerIdentity::User(fan), Method::DELETE, &path, Value::Null);
        assert_eq!(withdrawn.await.0, 204);
        assert_eq!(world.alerts_of(fan).await["seatAlerts"], json!([]));
        world.pay(&held).await;
        world.assert_agrees().await;
        // The other one cannot use a single seat: everybody may take it.
        world.told().await;
        let free = world.hold(event_id, world.ids.next_id(), &[1]).await;
        world.pay(&free).await;
        world.assert_agrees().await;
        world.cancel(&sold[1]).await;
        world.clock.advance(EXCLUSIVE);
        world.hold(event_id, world.ids.next_id(), &[2]).await;
        world.assert_agrees().await;
    }

    async fn standing_tickets_have_gates_too(world: World) {
        let (event_id, type_id) = world.open_standing(1).await;
        let held = world.hold_tickets(event_id, type_id, 1).await;
        let fan = world.ids.next_id();
        let wish = json!({"ticketTypeId": type_id, "quantity": 1});
        assert_eq!(world.ask_seats(fan, event_id, wish).await.0, 200);
        let (id, owner) = (held.reservation.id, held.reservation.user_id);
        world.ticket.release_hold(id, owner, None, world.context()).await.unwrap();
        let gateway = GatewayClient::new(&world);
        let items = json!([{"ticketTypeId": type_id, "quantity": 1}]);
        let (_, body) = gateway.reserve_tickets(&Fan::new(&world), event_id, items.clone()).await;
        assert_eq!(body["code"], "SEATS_OFFERED");
        world.told().await;
        let (status, body) = gateway.reserve_tickets(&Fan { user_id: fan }, event_id, items).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
    }
}

/// The hot path costs nothing while nobody waits, and little then.
#[test]
fn a_request_for_seats_reads_gates_only_while_somebody_waits() {
    run(Form::Postgres, async |world: World| {
        let (gateway, event_id) = (GatewayClient::new(&world), world.open_sale(hall(1, 9)).await);
        gateway.must_reserve(&Fan::new(&world), event_id, &[8]).await;
        let mut counted = Vec::new();
        for (seat, has_alerts) in [(0, false), (1, true)] {
            if has_alerts {
                world.execute("update sales set has_seat_alerts = true").await;
            }
            let before = world.db.stats().statements;
            gateway.must_reserve(&Fan::new(&world), event_id, &[seat]).await;
            counted.push(world.db.stats().statements - before);
        }
        assert_eq!(counted[1], counted[0] + 2, "{counted:?}");
    });
}
