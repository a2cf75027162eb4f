//! Who may act on an event: its organiser, the door staff assigned to it, support and
//! administrators.

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::{Uuid, Won};
use urr_service::UserRole;
use urr_storage::{StorageError, params};
use urr_ticket::{SignedTicket, TicketSettings};

use crate::contract;
use crate::fixture::{World, hall, new_sale};
use crate::reader::HttpReader;

const MINA: Uuid = Uuid::from_u128(0xb01);
const JUNHO: Uuid = Uuid::from_u128(0xb02);
const STAFF: Uuid = Uuid::from_u128(0xb03);

/// An event of an organiser, on sale.
async fn sale_of(world: &World, organiser_id: Uuid) -> Uuid {
    let event_id = world.ids.next_id();
    let mut new = new_sale(event_id, hall(2, 5), &world.clock);
    new.facts.organiser_id = Some(organiser_id);
    assert!(world.sale_insert(new).await);
    event_id
}

/// A paid reservation of one seat, and the text of its ticket.
async fn sold(world: &World, event_id: Uuid, seat_id: u32) -> (Uuid, Value) {
    let held = world.hold(event_id, world.ids.next_id(), &[seat_id]).await;
    let paid = world.pay(&held).await;
    let tickets = world.rows("select id, reservation_id from tickets", |row| {
        Ok((row.get::<Uuid>("id")?, row.get::<Uuid>("reservation_id")?))
    });
    let of_this = |(_, reservation_id): &(Uuid, Uuid)| *reservation_id == paid.id().0;
    let (ticket_id, _) = tickets.await.into_iter().find(of_this).unwrap();
    let ticket = SignedTicket { ticket_id, event_id, seat_id: Some(seat_id), issue: 1 };
    let payload = world.ticket.signer().payload(&ticket);
    (paid.id().0, json!({ "payload": payload, "eventId": event_id }))
}

fn as_role(world: &World, user_id: Uuid, role: UserRole) -> HttpReader {
    HttpReader::new(world).logged_in(user_id, role)
}

contract! {
    async fn door_staff_check_in_at_their_own_events_only(world: World) {
        let (own, other) = (sale_of(&world, MINA).await, sale_of(&world, JUNHO).await);
        let (_, shown) = sold(&world, own, 1).await;
        let (_, shown_elsewhere) = sold(&world, other, 1).await;
        let staff = as_role(&world, STAFF, UserRole::Staff);
        let mina = as_role(&world, MINA, UserRole::Organiser);
        staff.post("/api/admin/check-ins", &shown).await.refused(403, "NOT_YOUR_EVENT");
        let place = format!("/api/admin/events/{own}/staff/{STAFF}");
        let elsewhere = format!("/api/admin/events/{other}/staff/{STAFF}");
        let refused = mina.request(Method::PUT, &elsewhere).await;
        refused.refused(403, "NOT_YOUR_EVENT");
        // Twice is once.
        assert_eq!(mina.request(Method::PUT, &place).await.status, 204);
        assert_eq!(mina.request(Method::PUT, &place).await.status, 204);
        let list = mina.get(&format!("/api/admin/events/{own}/staff")).await.json();
        assert_eq!(list["staff"].as_array().unwrap().len(), 1);
        assert_eq!(list["staff"][0]["userId"], json!(STAFF));
        assert_eq!(staff.post("/api/admin/check-ins", &shown).await.status, 200);
        let refused = staff.post("/api/admin/check-ins", &shown_elsewhere).await;
        refused.refused(403, "NOT_YOUR_EVENT");
        let counts = |event_id| format!("/api/admin/check-ins?eventId={event_id}");
        assert_eq!(staff.get(&counts(own)).await.json()["checkedIn"], 1);
        staff.get(&counts(other)).await.refused(403, "NOT_YOUR_EVENT");
        // An assignment that is taken away counts from the next ticket on.
        let (_, next) = sold(&world, own, 2).await;
        assert_eq!(mina.request(Method::DELETE, &place).await.status, 204);
        staff.post("/api/admin/check-ins", &next).await.refused(403, "NOT_YOUR_EVENT");
        let log = "select count(*) as n from admin_actions where action like 'STAFF_%'";
        assert_eq!(world.number(log).await, 2, "what changed something is in the log");
    }

    async fn an_organiser_reads_and_cancels_in_their_own_events_only(world: World) {
        let (own, other) = (sale_of(&world, MINA).await, sale_of(&world, JUNHO).await);
        let (mine, _) = sold(&world, own, 1).await;
        let (theirs, _) = sold(&world, other, 1).await;
        let mina = as_role(&world, MINA, UserRole::Organiser);
        let list = mina.get("/api/admin/reservations").await.json();
        assert_eq!(list["reservations"].as_array().map(Vec::len), Some(1));
        assert_eq!(list["reservations"][0]["id"], json!(mine));
        let asked_for = format!("/api/admin/reservations?eventId={other}");
        assert_eq!(mina.get(&asked_for).await.json()["reservations"], json!([]));
        let path = |id| format!("/api/admin/reservations/{id}");
        assert_eq!(mina.get(&path(mine)).await.status, 200);
        mina.get(&path(theirs)).await.refused(404, "RESERVATION_NOT_FOUND");
        let reason = json!({ "reason": "음향 사고" });
        let cancel = |id| format!("/api/admin/reservations/{id}/cancel");
        mina.post(&cancel(theirs), &reason).await.refused(404, "RESERVATION_NOT_FOUND");
        let cancelled = mina.post(&cancel(mine), &reason).await.json();
        assert_eq!(cancelled["reservation"]["status"], "cancelled");
        let statuses = "select count(*) as n from reservations where status = 'confirmed'";
        assert_eq!(world.number(statuses).await, 1);
    }

    async fn an_organiser_changes_ticket_types_of_their_own_events_only(world: World) {
        let (event_id, type_id) = world.open_standing(10).await;
        let body = json!({ "name": "앞줄", "price": 99_000, "total": 50 });
        let mina = as_role(&world, MINA, UserRole::Organiser);
        let path = format!("/api/admin/events/{event_id}/tickets");
        mina.post(&path, &body).await.refused(403, "NOT_YOUR_EVENT");
        let own = world.db.write(|tx| {
            tx.execute("update sales set organiser_id = $1", params![MINA])
        });
        assert_eq!(own.await, Ok::<_, StorageError>(1));
        assert_eq!(mina.post(&path, &body).await.status, 201);
        let nobody = mina.get(&format!("/api/admin/tickets/{type_id}")).await;
        assert_eq!(nobody.status, 405, "there is only a change");
    }

    async fn support_reads_all_and_refunds_up_to_a_limit(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let (cheap, _) = sold(&world, event_id, 1).await;
        let held = world.hold(event_id, world.ids.next_id(), &[2, 3]).await;
        let dear = world.pay(&held).await.id().0;
        let support = as_role(&world, STAFF, UserRole::Support);
        let all = support.get("/api/admin/reservations").await.json();
        assert_eq!(all["reservations"].as_array().map(Vec::len), Some(2));
        let reason = json!({ "reason": "고객 요청" });
        let cancel = |id| format!("/api/admin/reservations/{id}/cancel");
        let refused = support.post(&cancel(dear), &reason).await;
        assert_eq!(refused.refused(403, "REFUND_ABOVE_LIMIT")["limit"], 100_000);
        assert_eq!(support.post(&cancel(cheap), &reason).await.status, 200);
        // The control: it is the setting that refuses.
        let support_refund_max = Won::new(200_000);
        let settings = TicketSettings { support_refund_max, ..TicketSettings::default() };
        let generous = HttpReader::of(&world.ticket_with(settings), &world);
        let generous = generous.logged_in(STAFF, UserRole::Support);
        assert_eq!(generous.post(&cancel(dear), &reason).await.status, 200);
        support.request(Method::PUT, &format!("/api/admin/events/{event_id}/staff/{STAFF}")).await
            .refused(403, "ROLE_REQUIRED");
    }
}
