//! Check-in: a good ticket comes in once, and every other is told why not.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::Uuid;
use urr_service::UserRole;
use urr_storage::{StorageError, params};
use urr_ticket::SignedTicket;

use crate::contract;
use crate::fixture::{MINUTE, World, hall};
use crate::reader::HttpReader;

pub const CHECK_INS: &str = "/api/admin/check-ins";

/// A sold ticket for a seat, or for standing.
pub async fn ticket(world: &World, event_id: Uuid, subject: Result<u32, Uuid>) -> SignedTicket {
    let (ticket_id, reservation_id) = (world.ids.next_id(), world.ids.next_id());
    let now = world.clock.now();
    let (seat_id, type_id) = (subject.ok(), subject.err());
    let (number, user_id) = (format!("N-{}", ticket_id.simple()), world.ids.next_id());
    let write = move |tx: &mut urr_storage::Tx<'_>| {
        tx.execute(
            "insert into reservations (id, number, user_id, event_id, status, payment_status, \
             total_amount, booking_fee, quantity, fence, expires_at, cancel_policy, \
             agreed_starts_at, announced_starts_at, created_at, updated_at) \
             values ($1, $2, $3, $4, 'confirmed', 'paid', 100000, 0, 1, 1, $5, '{}', $5, $5, $5, \
             $5)",
            params![reservation_id, number, user_id, event_id, now],
        )?;
        tx.execute(
            "insert into reservation_items (reservation_id, position, event_id, seat_id, \
             ticket_type_id, quantity, unit_price, is_live) \
             values ($1, 0, $2, $3, $4, 1, 100000, true)",
            params![reservation_id, event_id, seat_id, type_id],
        )?;
        tx.execute(
            "insert into tickets (id, number, reservation_id, event_id, position, unit, seat_id, \
             issue, is_valid, created_at) values ($1, $2, $3, $4, 0, 0, $5, 1, true, $6)",
            params![ticket_id, number, reservation_id, event_id, seat_id, now],
        )
    };
    world.db.write(write).await.unwrap_or_else(|error: StorageError| panic!("{error}"));
    SignedTicket { ticket_id, event_id, seat_id, issue: 1 }
}

pub fn shown(world: &World, ticket: &SignedTicket) -> Value {
    json!({"payload": world.ticket.signer().payload(ticket), "eventId": ticket.event_id})
}

pub fn scanner(world: &World) -> HttpReader {
    HttpReader::new(world).logged_in(world.ids.next_id(), UserRole::Admin)
}

contract! {
    async fn a_ticket_comes_in_once(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(7)).await;
        let scanner = scanner(&world);
        let mut first = shown(&world, &good);
        first["door"] = json!(" 1번 출입구 ");
        let answer = scanner.post(CHECK_INS, &first).await;
        assert_eq!(answer.status, 200);
        let came_in = &answer.json()["ticket"];
        assert_eq!(came_in["id"], good.ticket_id.to_string());
        assert_eq!(came_in["seat"], json!({
            "id": 7, "label": "R-2-3", "section": "R", "row": "2", "number": 3, "grade": "R",
        }));
        assert_eq!(came_in["checkedInAt"], "2026-12-01T12:00:00Z");

        world.clock.advance(5 * MINUTE);
        let second = scanner.post(CHECK_INS, &shown(&world, &good)).await;
        let body = second.refused(409, "ALREADY_CHECKED_IN");
        assert_eq!(body["checkedInAt"], "2026-12-01T12:00:00Z", "when it came in");
        assert_eq!(body["door"], "1번 출입구", "and where");
        assert!(body["checkedInBy"].is_string());
        let audited = "select count(*) as n from admin_actions where action = 'TICKET_CHECKED_IN'";
        assert_eq!(world.number(audited).await, 1, "what was refused changed nothing");
    }

    async fn of_fifty_scanners_at_the_same_moment_one_lets_it_in(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(0)).await;
        let mut scanning = JoinSet::new();
        for _ in 0..50 {
            let (scanner, body) = (scanner(&world), shown(&world, &good));
            scanning.spawn(async move { scanner.post(CHECK_INS, &body).await });
        }
        let mut let_in = 0;
        for answer in scanning.join_all().await {
            if answer.status == 200 {
                let_in += 1;
            } else {
                answer.refused(409, "ALREADY_CHECKED_IN");
            }
        }
        assert_eq!(let_in, 1);
    }

    async fn a_standing_ticket_comes_in_with_the_name_of_its_type(world: World) {
        let (event_id, type_id) = world.open_standing(5).await;
        let good = ticket(&world, event_id, Err(type_id)).await;
        let answer = scanner(&world).post(CHECK_INS, &shown(&world, &good)).await.json();
        assert_eq!(answer["ticket"]["seat"], Value::Null);
        assert_eq!(answer["ticket"]["ticketTypeName"], "스탠딩");
    }

    async fn whatever_is_wrong_with_a_ticket_is_said(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let other_event = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let scanner = scanner(&world);
        let show = async |body: Value| scanner.post(CHECK_INS, &body).await;

        let mut elsewhere = shown(&world, &good);
        elsewhere["eventId"] = json!(other_event);
        let body = show(elsewhere).await.refused(409, "TICKET_FOR_OTHER_EVENT");
        assert_eq!(body["ticketEventId"], event_id.to_string());

        let never = SignedTicket { ticket_id: world.ids.next_id(), ..good };
        show(shown(&world, &never)).await.refused(404, "TICKET_NOT_FOUND");
        let nowhere = SignedTicket { event_id: world.ids.next_id(), ..good };
        show(shown(&world, &nowhere)).await.refused(404, "EVENT_NOT_FOUND");

        let forger = urr_ticket::Signer::new(&urr_kernel::Secret::new("of a forger"), &[]);
        let forged = json!({"payload": forger.payload(&good), "eventId": event_id});
        show(forged).await.refused(422, "TICKET_FORGED");
        for nonsense in ["", "hello", &"a".repeat(10_000)] {
            let body = json!({"payload": nonsense, "eventId": event_id});
            show(body).await.refused(400, "INVALID_TICKET");
        }

        world.execute("update tickets set issue = 2").await;
        show(shown(&world, &good)).await.refused(409, "TICKET_REISSUED");
        let new = SignedTicket { issue: 2, ..good };
        world.execute("update tickets set is_valid = false").await;
        show(shown(&world, &new)).await.refused(409, "TICKET_CANCELLED");
        world.execute("update tickets set is_valid = true").await;
        let control = show(shown(&world, &new)).await;
        assert_eq!(control.status, 200, "nothing else is wrong with it");
    }

    async fn only_administrators_stand_at_the_door(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let body = shown(&world, &good);
        let counts = format!("{CHECK_INS}?eventId={event_id}");
        let nobody = HttpReader::new(&world);
        let fan = nobody.logged_in(world.ids.next_id(), UserRole::User);
        nobody.post(CHECK_INS, &body).await.refused(401, "AUTHENTICATION_REQUIRED");
        nobody.get(&counts).await.refused(401, "AUTHENTICATION_REQUIRED");
        fan.post(CHECK_INS, &body).await.refused(403, "ROLE_REQUIRED");
        fan.get(&counts).await.refused(403, "ROLE_REQUIRED");
        assert_eq!(scanner(&world).post(CHECK_INS, &body).await.status, 200);
    }

    async fn those_who_came_in_are_counted(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let other_event = world.open_sale(hall(2, 5)).await;
        let scanner = scanner(&world);
        for seat_id in 0..3 {
            let good = ticket(&world, event_id, Ok(seat_id)).await;
            if seat_id < 2 {
                scanner.post(CHECK_INS, &shown(&world, &good)).await;
            }
        }
        ticket(&world, other_event, Ok(1)).await;
        let counts = async |event_id: Uuid| {
            scanner.get(&format!("{CHECK_INS}?eventId={event_id}")).await
        };
        let counted = counts(event_id).await.json();
        assert_eq!(counted, json!({
            "eventId": event_id, "tickets": 3, "checkedIn": 2, "inside": 2, "conflicts": 0,
        }));
        counts(world.ids.next_id()).await.refused(404, "EVENT_NOT_FOUND");
        scanner.get(CHECK_INS).await.refused(400, "INVALID_QUERY");
    }

    async fn the_key_to_verify_tickets_with_is_public(world: World) {
        let keys = HttpReader::new(&world).get("/api/tickets/keys").await.json();
        let published = &world.ticket.signer().public_keys()[0];
        assert_eq!(keys["keys"], json!([
            {"id": published.id, "algorithm": "Ed25519", "publicKey": published.text},
        ]));
    }
}
