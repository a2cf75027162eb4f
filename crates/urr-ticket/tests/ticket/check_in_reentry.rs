//! Undoing a scan, going out and coming in again, and retries of a phone.

use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::Uuid;
use urr_service::UserRole;
use urr_storage::{StorageError, params};
use urr_ticket::SignedTicket;

use crate::check_in::{CHECK_INS, scanner, shown, ticket};
use crate::contract;
use crate::fixture::{MINUTE, SECOND, World, hall, new_sale};
use crate::reader::{Answer, HttpReader};

/// A sale that lets people in again.
async fn open_with_reentry(world: &World) -> Uuid {
    let event_id = world.ids.next_id();
    let mut new = new_sale(event_id, hall(2, 5), &world.clock);
    new.facts.allows_reentry = true;
    assert!(world.sale_insert(new).await);
    event_id
}

struct Phone {
    reader: HttpReader,
    door: &'static str,
}

impl Phone {
    fn new(world: &World, door: &'static str) -> Phone {
        Phone { reader: scanner(world), door }
    }

    async fn scan(&self, world: &World, of: &SignedTicket, direction: &str) -> Answer {
        self.scan_as(world, of, direction, world.ids.next_id()).await
    }

    async fn scan_as(
        &self,
        world: &World,
        of: &SignedTicket,
        direction: &str,
        scan_id: Uuid,
    ) -> Answer {
        let mut body = shown(world, of);
        body["door"] = json!(self.door);
        body["direction"] = json!(direction);
        body["scanId"] = json!(scan_id);
        self.reader.post(CHECK_INS, &body).await
    }

    async fn undo(&self, of: &SignedTicket, scan_id: Uuid) -> Answer {
        let path = format!("{CHECK_INS}/{}/undo", of.ticket_id);
        self.reader.post(&path, &json!({"scanId": scan_id})).await
    }

    async fn inside(&self, event_id: Uuid) -> Value {
        self.reader.get(&format!("{CHECK_INS}?eventId={event_id}")).await.json()["inside"].take()
    }
}

contract! {
    async fn a_scan_can_be_undone_for_a_minute(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let phone = Phone::new(&world, "A");
        let scan_id = world.ids.next_id();
        assert_eq!(phone.scan_as(&world, &good, "entry", scan_id).await.status, 200);
        world.clock.advance(MINUTE);
        let counted = phone.undo(&good, scan_id).await;
        assert_eq!(counted.status, 200);
        assert_eq!(counted.json()["checkedIn"], 0);
        let again = phone.undo(&good, scan_id).await;
        assert_eq!(again.status, 200, "the phone did not hear the first answer");
        let logged = "select count(*) as n from admin_actions where action = 'SCAN_UNDONE'";
        assert_eq!(world.number(logged).await, 1);

        // It admits again, and after more than a minute that stays so.
        let second = world.ids.next_id();
        assert_eq!(phone.scan_as(&world, &good, "entry", second).await.status, 200);
        world.clock.advance(MINUTE + SECOND);
        phone.undo(&good, second).await.refused(409, "UNDO_TOO_LATE");
        assert_eq!(phone.inside(event_id).await, 1);
        phone.undo(&good, world.ids.next_id()).await.refused(409, "SCAN_NOT_FOUND");
        let nobodys = SignedTicket { ticket_id: world.ids.next_id(), ..good };
        phone.undo(&nobodys, second).await.refused(404, "TICKET_NOT_FOUND");
    }

    async fn only_staff_of_the_event_undo(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let (staff, scan_id) = (world.ids.next_id(), world.ids.next_id());
        let phone = Phone::new(&world, "A");
        assert_eq!(phone.scan_as(&world, &good, "entry", scan_id).await.status, 200);
        let of_staff = Phone {
            reader: phone.reader.logged_in(staff, UserRole::Staff), door: "A",
        };
        of_staff.undo(&good, scan_id).await.refused(403, "NOT_YOUR_EVENT");
        let path = format!("/api/admin/events/{event_id}/check-in-list");
        of_staff.reader.get(&path).await.refused(403, "NOT_YOUR_EVENT");
        let conflicts = format!("/api/admin/events/{event_id}/check-in-conflicts");
        of_staff.reader.get(&conflicts).await.refused(403, "NOT_YOUR_EVENT");
        let listed = of_staff.reader.get("/api/admin/check-ins/events").await.json();
        assert_eq!(listed["events"], json!([]));
        world.ticket.assign_staff(event_id, staff, false, world.ids.next_id()).await.unwrap();
        assert_eq!(of_staff.undo(&good, scan_id).await.status, 200);
        assert_eq!(of_staff.reader.get(&path).await.status, 200);
        assert_eq!(of_staff.reader.get(&conflicts).await.status, 200);
        let listed = of_staff.reader.get("/api/admin/check-ins/events").await.json();
        assert_eq!(listed["events"][0]["id"], event_id.to_string());
        let fan = phone.reader.logged_in(staff, UserRole::User);
        fan.get(&path).await.refused(403, "ROLE_REQUIRED");
    }

    async fn a_visitor_goes_out_and_comes_in_again_if_the_event_allows_it(world: World) {
        let event_id = open_with_reentry(&world).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let (north, south) = (Phone::new(&world, "북문"), Phone::new(&world, "남문"));
        north.scan(&world, &good, "exit").await.refused(409, "VISITOR_NOT_INSIDE");
        assert_eq!(north.scan(&world, &good, "entry").await.status, 200);
        world.clock.advance(MINUTE);
        let body = south.scan(&world, &good, "entry").await.refused(409, "ALREADY_CHECKED_IN");
        assert_eq!(body["door"], "북문");
        assert_eq!(south.scan(&world, &good, "exit").await.status, 200);
        assert_eq!(south.inside(event_id).await, 0);
        let back = south.scan(&world, &good, "entry").await;
        assert_eq!((back.status.as_u16(), &back.json()["ticket"]["door"]), (200, &json!("남문")));
        let body = north.scan(&world, &good, "entry").await.refused(409, "ALREADY_CHECKED_IN");
        assert_eq!(body["door"], "남문", "the entry by which they are in");
        let scans = "select count(*) as n from ticket_scans where outcome = 'accepted'";
        assert_eq!(world.number(scans).await, 3, "each is a row");
        let out = "select count(*) as n from admin_actions where action = 'TICKET_CHECKED_OUT'";
        assert_eq!(world.number(out).await, 1);

        let other = world.open_sale(hall(2, 5)).await;
        let without = ticket(&world, other, Ok(1)).await;
        assert_eq!(north.scan(&world, &without, "entry").await.status, 200);
        north.scan(&world, &without, "exit").await.refused(409, "REENTRY_NOT_ALLOWED");
    }

    async fn the_history_of_a_reservation_names_what_happened_at_the_doors(world: World) {
        let event_id = open_with_reentry(&world).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let (north, south) = (Phone::new(&world, "북문"), Phone::new(&world, "남문"));
        let wrong = world.ids.next_id();
        assert_eq!(north.scan_as(&world, &good, "entry", wrong).await.status, 200);
        world.clock.advance(10 * SECOND);
        assert_eq!(north.undo(&good, wrong).await.status, 200);
        for (phone, direction) in [(&south, "entry"), (&south, "exit"), (&north, "entry")] {
            world.clock.advance(MINUTE);
            assert_eq!(phone.scan(&world, &good, direction).await.status, 200);
        }
        // Somebody who is inside already is no part of it.
        north.scan(&world, &good, "entry").await.refused(409, "ALREADY_CHECKED_IN");
        let reservation = world.rows("select reservation_id from tickets", |row| {
            row.get::<Uuid>("reservation_id")
        });
        let id = reservation.await[0];
        let path = format!("/api/admin/reservations/{id}/history");
        let history = north.reader.get(&path).await.json();
        let at_doors: Vec<(&str, &str)> = history["entries"].as_array().unwrap().iter()
            .filter_map(|entry| Some((entry["kind"].as_str()?, entry["details"]["door"].as_str()?)))
            .collect();
        assert_eq!(at_doors, [
            ("checked_in", "북문"), ("check_in_undone", "북문"), ("checked_in", "남문"),
            ("left_hall", "남문"), ("re_entered", "북문"),
        ]);
    }

    async fn a_repeated_scan_gets_the_first_answer(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let (good, other) =
            (ticket(&world, event_id, Ok(1)).await, ticket(&world, event_id, Ok(2)).await);
        let phone = Phone::new(&world, "A");
        let scan_id = world.ids.next_id();
        let first = phone.scan_as(&world, &good, "entry", scan_id).await;
        world.clock.advance(MINUTE);
        let again = phone.scan_as(&world, &good, "entry", scan_id).await;
        assert_eq!((again.status, again.json()), (first.status, first.json()));
        phone.scan_as(&world, &other, "entry", scan_id).await.refused(409, "SCAN_ID_REUSED");
        assert_eq!(phone.inside(event_id).await, 1);
    }

    async fn the_number_of_a_ticket_is_as_good_as_its_code(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let ticket_id = good.ticket_id;
        let number = world.db.write(move |tx| {
            tx.execute(
                "update tickets set number = 'T-0A1B-2C3D-4E5F' where id = $1",
                params![ticket_id],
            )
        });
        assert_eq!(number.await, Ok::<u64, StorageError>(1));
        let other = world.open_sale(hall(2, 5)).await;
        let type_in = async |event_id: Uuid, text: &str| {
            let body = json!({"payload": text, "eventId": event_id});
            scanner(&world).post(CHECK_INS, &body).await
        };
        type_in(other, "T-0A1B-2C3D-4E5F").await.refused(409, "TICKET_FOR_OTHER_EVENT");
        type_in(event_id, "T-0000-0000-0000").await.refused(404, "TICKET_NOT_FOUND");
        assert_eq!(type_in(event_id, "t0a1b2c3d4e5f").await.status, 200);
        type_in(event_id, "T-0A1B-2C3D-4E5F").await.refused(409, "ALREADY_CHECKED_IN");
    }

    async fn undo_and_scans_at_the_same_moment_leave_one_answer(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let scan_id = world.ids.next_id();
        let phone = Phone::new(&world, "A");
        assert_eq!(phone.scan_as(&world, &good, "entry", scan_id).await.status, 200);
        let mut acting = JoinSet::new();
        for number in 0..20 {
            let (reader, body) = (scanner(&world), shown(&world, &good));
            let path = format!("{CHECK_INS}/{}/undo", good.ticket_id);
            acting.spawn(async move {
                match number % 2 {
                    0 => reader.post(&path, &json!({"scanId": scan_id})).await.status,
                    _ => reader.post(CHECK_INS, &body).await.status,
                }
            });
        }
        let statuses: Vec<u16> =
            acting.join_all().await.into_iter().map(|status| status.as_u16()).collect();
        assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
        let inside = "select count(*) as n from ticket_scans \
                      where outcome = 'accepted' and undone_at is null";
        assert_eq!(world.number(inside).await, 1);
        assert_eq!(phone.inside(event_id).await, 1);
    }
}
