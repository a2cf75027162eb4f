//! What organisers look at: their buyers, the history of a reservation, what a cancellation costs,
//! files and lists; with the services that know names, payments and mails there and away.

pub mod fake_peers;

use axum::http::Method;
use serde_json::{Value, json};
use urr_contracts::internal::ticket::{GetGradeSales, GradeSalesAnswer, MovePreviewAnswer};
use urr_kernel::{Timestamp, Uuid};
use urr_service::{Caller, InternalCall, UserRole};
use urr_storage::{StorageError, params};
use urr_ticket::{AdminCancel, CancelTickets, ChangeSeats, FeeMode, TicketCanceller};

use self::fake_peers::FakePeers;
use crate::contract;
use crate::fixture::{MINUTE, World, hall, new_sale};
use crate::operations::{CallerIdentity, PaidReservation};
use crate::reader::HttpReader;

const MINA: Uuid = Uuid::from_u128(0xb01);
const JUNHO: Uuid = Uuid::from_u128(0xb02);
const ADMIN: Uuid = Uuid::from_u128(0xb04);

/// An event of an organiser, on sale.
async fn sale_of(world: &World, organiser_id: Uuid) -> Uuid {
    let event_id = world.ids.next_id();
    let mut new = new_sale(event_id, hall(2, 5), &world.clock);
    new.facts.organiser_id = Some(organiser_id);
    assert!(world.sale_insert(new).await);
    event_id
}

async fn sold(world: &World, event_id: Uuid, user_id: Uuid, seats: &[u32]) -> PaidReservation {
    let held = world.hold(event_id, user_id, seats).await;
    world.pay(&held).await
}

/// The numbers that a search shows to somebody.
async fn found(reader: &HttpReader, query: &str) -> Vec<String> {
    let path = format!("/api/admin/reservations?{query}");
    let list = reader.get(&path).await.json();
    let rows = list["reservations"].as_array().unwrap_or_else(|| panic!("{list}")).iter();
    rows.map(|row| row["reservationNumber"].as_str().unwrap().to_owned()).collect()
}

fn kinds(history: &Value) -> Vec<(&str, &str)> {
    let entries = history["entries"].as_array().unwrap().iter();
    entries.map(|entry| (entry["kind"].as_str().unwrap(), entry["by"].as_str().unwrap())).collect()
}

contract! {
    async fn a_reservation_is_found_by_its_number_and_by_its_buyer(world: World) {
        let (own, other) = (sale_of(&world, MINA).await, sale_of(&world, JUNHO).await);
        let peers = FakePeers::default();
        let (haru, sora) = (world.ids.next_id(), world.ids.next_id());
        peers.register(haru, "김하루", "haru@example.com");
        peers.register(sora, "이소라", "sora@example.com");
        let first = sold(&world, own, haru, &[0]).await.record.reservation;
        world.clock.advance(24 * 60 * MINUTE);
        let second = world.hold(own, sora, &[1]).await.reservation;
        let elsewhere = sold(&world, other, haru, &[0]).await.record.reservation;
        let ticket = world.rows("select number, reservation_id from tickets", |row| {
            Ok((row.get::<String>("number")?, row.get::<Uuid>("reservation_id")?))
        });
        let ticket = ticket.await.into_iter().find(|(_, id)| *id == first.id.0).unwrap().0;
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let mina = http.logged_in(MINA, UserRole::Organiser);
        let typed = first.number.replace('-', "").to_lowercase();
        for (query, expected) in [
            (String::new(), vec![&second.number, &first.number]),
            (format!("q={}", first.number), vec![&first.number]),
            (format!("q={typed}"), vec![&first.number]),
            (format!("q={ticket}"), vec![&first.number]),
            (format!("q={}", first.id.0), vec![&first.number]),
            ("q=haru@example.com".to_owned(), vec![&first.number]),
            ("q=%EA%B9%80%ED%95%98%EB%A3%A8".to_owned(), vec![&first.number]),
            ("q=sora@example.com&status=confirmed".to_owned(), vec![]),
            ("day=2026-12-01".to_owned(), vec![&first.number]),
            ("day=2026-12-02".to_owned(), vec![&second.number]),
            (format!("eventId={own}&limit=1"), vec![&second.number]),
            // Another organiser's reservation is as if it were not there.
            (format!("q={}", elsewhere.number), vec![]),
            ("q=nobody@example.com".to_owned(), vec![]),
            ("q=R-0000-0000-0000".to_owned(), vec![]),
        ] {
            assert_eq!(found(&mina, &query).await, expected.into_iter().cloned().collect::<Vec<_>>(), "{query}");
        }
        // The control: an administrator finds both reservations of the buyer.
        let admin = http.logged_in(ADMIN, UserRole::Admin);
        assert_eq!(found(&admin, "q=haru@example.com").await.len(), 2);
        mina.get(&format!("/api/admin/reservations?q={}", "x".repeat(101))).await
            .refused(400, "INVALID_QUERY");
        mina.get("/api/admin/reservations?day=yesterday").await.refused(400, "INVALID_QUERY");
    }

    async fn pages_go_on_where_the_last_one_ended(world: World) {
        let event_id = sale_of(&world, MINA).await;
        for seat in 0..5 {
            world.clock.advance(MINUTE);
            sold(&world, event_id, world.ids.next_id(), &[seat]).await;
        }
        let mina = HttpReader::new(&world).logged_in(MINA, UserRole::Organiser);
        let mut path = "/api/admin/reservations?limit=2".to_owned();
        let mut ids = Vec::new();
        let mut pages = 0;
        loop {
            let page = mina.get(&path).await.json();
            ids.extend(page["reservations"].as_array().unwrap().iter().map(|one| one["id"].clone()));
            pages += 1;
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            // What is sold meanwhile does not shift the pages.
            sold(&world, event_id, world.ids.next_id(), &[4 + pages]).await;
            path = format!("/api/admin/reservations?limit=2&cursor={cursor}");
        }
        ids.dedup();
        assert_eq!((ids.len(), pages), (5, 3));
    }

    async fn organisers_see_names_and_masked_addresses_and_support_the_whole(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let peers = FakePeers::default();
        let haru = world.ids.next_id();
        peers.register(haru, "김하루", "haru@example.com");
        let paid = sold(&world, event_id, haru, &[0]).await;
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        for (role, email) in [
            (UserRole::Organiser, "h***@example.com"),
            (UserRole::Support, "haru@example.com"),
            (UserRole::Admin, "haru@example.com"),
        ] {
            let reader = http.logged_in(MINA, role);
            let list = reader.get("/api/admin/reservations").await.json();
            let buyer = json!({ "name": "김하루", "email": email });
            assert_eq!(list["reservations"][0]["buyer"], buyer, "{role}");
            assert_eq!(list["buyersAvailable"], true);
            let one = reader.get(&format!("/api/admin/reservations/{}", paid.id())).await.json();
            assert_eq!(one["reservation"]["buyer"], buyer, "{role}");
        }
    }

    async fn the_door_staff_of_an_event_has_names_and_addresses(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let (peers, haru) = (FakePeers::default(), world.ids.next_id());
        peers.register(haru, "김하루", "haru@example.com");
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let mina = http.logged_in(MINA, UserRole::Organiser);
        let path = format!("/api/admin/events/{event_id}/staff");
        assert_eq!(mina.request(Method::PUT, &format!("{path}/{haru}")).await.status, 204);
        for (reader, email) in [
            (&mina, "h***@example.com"),
            (&http.logged_in(ADMIN, UserRole::Admin), "haru@example.com"),
        ] {
            let staff = reader.get(&path).await.json();
            assert_eq!(staff["staff"][0]["name"], "김하루");
            assert_eq!(staff["staff"][0]["email"], email);
        }
        peers.set_away(true);
        let staff = mina.get(&path).await.json();
        assert_eq!(staff["staff"][0]["userId"], json!(haru), "the list is there without names");
        assert_eq!(staff["staff"][0]["name"], Value::Null);
    }

    async fn while_the_auth_service_is_away_only_numbers_are_found_and_the_answer_says_so(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let peers = FakePeers::default();
        let paid = sold(&world, event_id, world.ids.next_id(), &[0]).await;
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let mina = http.logged_in(MINA, UserRole::Organiser);
        peers.set_crowded(true);
        mina.get("/api/admin/reservations?q=Kim").await.refused(409, "TOO_MANY_BUYERS");
        peers.set_away(true);
        mina.get("/api/admin/reservations?q=Kim").await.refused(503, "BUYERS_UNAVAILABLE");
        let number = &paid.record.reservation.number;
        let list = mina.get(&format!("/api/admin/reservations?q={number}")).await.json();
        assert_eq!(list["reservations"][0]["reservationNumber"], json!(number));
        assert_eq!(list["reservations"][0]["buyer"], Value::Null);
        assert_eq!(list["buyersAvailable"], false);
        // A file without names would look as if nobody had one.
        let file = format!("/api/admin/events/{event_id}/reservations.csv");
        mina.get(&file).await.refused(503, "BUYERS_UNAVAILABLE");
        // The rest of the history is shown.
        let history = mina.get(&format!("/api/admin/reservations/{}/history", paid.id())).await.json();
        assert_eq!(history["missing"], json!(["payments", "mails", "names"]));
        assert_eq!(kinds(&history), [("held", "owner"), ("paid", "system")]);
    }

    async fn the_history_of_a_reservation_is_one_list_in_the_order_of_time(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let peers = FakePeers::default();
        let haru = world.ids.next_id();
        peers.register(haru, "김하루", "haru@example.com");
        let held = world.hold(event_id, haru, &[0, 1]).await;
        let id = held.reservation.id;
        world.clock.advance(MINUTE);
        world.ticket.extend_hold(id, haru, held.reservation.fence).await.unwrap();
        world.clock.advance(MINUTE);
        let change = ChangeSeats { user_id: haru, seat_ids: vec![2, 3], fencing_token: None };
        world.ticket.change_seats(id, change, world.context()).await.unwrap();
        world.clock.advance(MINUTE);
        let paid = world.pay(&world.find(id).await).await;
        peers.pay(&paid, world.clock.now());
        peers.mail(&paid, "purchase", world.clock.now() + MINUTE);
        world.clock.advance(10 * MINUTE);
        let tickets = world.rows("select number from tickets order by position", |row| {
            row.get::<String>("number")
        });
        let tickets = tickets.await;
        let by = TicketCanceller::Owner(haru);
        let request = CancelTickets { ticket_numbers: vec![tickets[0].clone()], by };
        world.ticket.cancel_tickets(id, request, world.context()).await.unwrap();
        world.clock.advance(MINUTE);
        let reason = "음향 사고".to_owned();
        let by = AdminCancel { admin_id: ADMIN, reason, fee: FeeMode::Waived, payment_id: None };
        world.ticket.cancel_as_admin(id, by, world.context()).await.unwrap();
        peers.refund(&paid, 100_000, world.clock.now() + MINUTE);
        world.clock.advance(5 * MINUTE);
        // The time of a step stays what it was, whatever comes after it.
        world.refund(&paid, 100_000).await.unwrap();
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let path = format!("/api/admin/reservations/{id}/history");
        let history = http.logged_in(MINA, UserRole::Organiser).get(&path).await.json();
        assert_eq!(kinds(&history), [
            ("held", "owner"), ("extended", "owner"), ("seats_changed", "owner"), ("paid", "owner"),
            ("mail_sent", "system"), ("tickets_cancelled", "owner"), ("cancelled", "admin"),
            ("refunded", "system"),
        ]);
        let entry = |number: usize| &history["entries"][number];
        assert_eq!(entry(0)["userName"], "김하루");
        assert_eq!(entry(2)["details"]["previousSeats"].as_array().map(Vec::len), Some(2));
        assert_ne!(entry(2)["details"]["previousSeats"], entry(2)["details"]["seats"]);
        assert_eq!(entry(3)["amount"], 200_000);
        assert_eq!(entry(4)["details"]["mailKind"], "purchase");
        assert_eq!(entry(5)["details"]["ticketNumbers"], json!([tickets[0]]));
        assert_eq!((&entry(6)["userId"], &entry(6)["reason"]), (&json!(ADMIN), &json!("음향 사고")));
        assert_eq!(history["missing"], json!([]));
        let times: Vec<Timestamp> = (0..8).map(|n| entry(n)["at"].as_str().unwrap().parse().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        let refused = http.logged_in(JUNHO, UserRole::Organiser).get(&path).await;
        refused.refused(404, "RESERVATION_NOT_FOUND");
    }

    async fn an_organiser_reads_what_was_done_to_the_own_reservations(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let paid = sold(&world, event_id, world.ids.next_id(), &[0]).await;
        let reason = "음향 사고".to_owned();
        let by = AdminCancel { admin_id: ADMIN, reason, fee: FeeMode::Waived, payment_id: None };
        world.ticket.cancel_as_admin(paid.id(), by, world.context()).await.unwrap();
        let http = HttpReader::new(&world);
        let path = format!("/api/admin/reservations/{}/log", paid.id());
        let log = http.logged_in(MINA, UserRole::Organiser).get(&path).await.json();
        let entries = log["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{log}");
        assert_eq!(entries[0]["adminId"], json!(ADMIN));
        let refused = http.logged_in(JUNHO, UserRole::Organiser).get(&path).await;
        refused.refused(404, "RESERVATION_NOT_FOUND");
    }

    /// Only door staff are found by an address: organisers learn of no other account.
    async fn door_staff_are_assigned_by_their_address(world: World) {
        let (own, other) = (sale_of(&world, MINA).await, sale_of(&world, JUNHO).await);
        let peers = FakePeers::default();
        let (haru, sora) = (world.ids.next_id(), world.ids.next_id());
        peers.register(haru, "김하루", "haru@example.com");
        peers.register(sora, "이소라", "sora@example.com");
        peers.hire(haru);
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let mina = http.logged_in(MINA, UserRole::Organiser);
        let path = format!("/api/admin/events/{own}/staff");
        let elsewhere = format!("/api/admin/events/{other}/staff");
        let body = |email: &str| json!({ "email": email });
        mina.post(&elsewhere, &body("haru@example.com")).await.refused(403, "NOT_YOUR_EVENT");
        for unknown in ["sora@example.com", "nobody@example.com", "김하루", ""] {
            mina.post(&path, &body(unknown)).await.refused(404, "STAFF_NOT_FOUND");
        }
        // Twice is once.
        for _ in 0..2 {
            assert_eq!(mina.post(&path, &body(" haru@example.com ")).await.status, 204);
        }
        let list = mina.get(&path).await.json();
        assert_eq!(list["staff"].as_array().map(Vec::len), Some(1));
        assert_eq!(list["staff"][0]["userId"], json!(haru));
        peers.set_away(true);
        mina.post(&path, &body("haru@example.com")).await.refused(503, "ACCOUNTS_UNAVAILABLE");
        let fan = http.logged_in(haru, UserRole::User);
        fan.post(&path, &body("haru@example.com")).await.refused(403, "ROLE_REQUIRED");
    }

    async fn a_hold_that_expired_or_was_released_says_so(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let (expired, released) = (
            world.hold(event_id, world.ids.next_id(), &[0]).await.reservation,
            world.hold(event_id, world.ids.next_id(), &[1]).await.reservation,
        );
        let user_id = released.user_id;
        world.ticket.release_hold(released.id, user_id, None, world.context()).await.unwrap();
        world.clock.advance(6 * MINUTE);
        world.sweep().await;
        let admin = HttpReader::new(&world).logged_in(ADMIN, UserRole::Admin);
        for (id, expected) in [
            (expired.id, [("held", "owner"), ("expired", "system")]),
            (released.id, [("held", "owner"), ("cancelled", "owner")]),
        ] {
            let path = format!("/api/admin/reservations/{id}/history");
            assert_eq!(kinds(&admin.get(&path).await.json()), expected);
        }
        let rows = "select count(*) as n from reservation_history";
        assert_eq!(world.number(rows).await, 1, "what a row says already is not written twice");
    }

    async fn a_preview_says_what_a_cancellation_of_the_event_would_end(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let peers = FakePeers::default();
        let haru = world.ids.next_id();
        sold(&world, event_id, haru, &[0, 1]).await;
        sold(&world, event_id, haru, &[2]).await;
        sold(&world, event_id, world.ids.next_id(), &[3]).await;
        world.hold(event_id, world.ids.next_id(), &[4]).await;
        let pinned = world.hold(event_id, world.ids.next_id(), &[5]).await;
        world.pin(&pinned).await;
        peers.set_unclear(1, 100_000);
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let path = format!("/api/admin/events/{event_id}/cancel-preview");
        let preview = http.logged_in(MINA, UserRole::Organiser).get(&path).await.json();
        assert_eq!(preview, json!({
            "eventId": event_id, "at": world.clock.now(), "reservations": 3, "tickets": 4,
            "buyers": 2, "refundAmount": 400_000, "holds": 1, "paymentsInProgress": 1,
            "checkedIn": 0, "unclearPayments": 1, "unclearAmount": 100_000,
        }));
        http.logged_in(JUNHO, UserRole::Organiser).get(&path).await.refused(403, "NOT_YOUR_EVENT");
        let unknown = format!("/api/admin/events/{}/cancel-preview", world.ids.next_id());
        http.logged_in(ADMIN, UserRole::Admin).get(&unknown).await.refused(404, "EVENT_NOT_FOUND");
        peers.set_away(true);
        let preview = http.logged_in(MINA, UserRole::Organiser).get(&path).await.json();
        assert_eq!((&preview["tickets"], &preview["unclearPayments"]), (&json!(4), &Value::Null));
    }

    async fn a_move_to_another_day_lets_everybody_cancel_and_another_hour_lets_nobody(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let haru = world.ids.next_id();
        sold(&world, event_id, haru, &[0, 1]).await;
        sold(&world, event_id, haru, &[2]).await;
        world.hold(event_id, world.ids.next_id(), &[3]).await;
        // The event is on 21 December at 21:00 in Korea.
        for (starts_at, free, refund) in [
            ("2026-12-21T13:00:00Z", 0, 0),
            ("2026-12-22T12:00:00Z", 2, 300_000),
        ] {
            let path = format!("/internal/ticket/events/{event_id}/move-preview?startsAt={starts_at}");
            let who = CallerIdentity::Service(Caller::Catalog);
            let (status, answer) = world.call(who, Method::GET, &path, Value::Null).await;
            assert_eq!(status, 200, "{answer}");
            let answer: MovePreviewAnswer = serde_json::from_value(answer).unwrap();
            assert_eq!((answer.reservations, answer.tickets, answer.buyers), (2, 3, 1));
            assert_eq!((answer.free_reservations, answer.refund_max.amount()), (free, refund), "{starts_at}");
        }
    }

    async fn sales_are_told_by_grade_with_what_was_cancelled(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let paid = sold(&world, event_id, world.ids.next_id(), &[0, 1]).await;
        sold(&world, event_id, world.ids.next_id(), &[2]).await;
        world.hold(event_id, world.ids.next_id(), &[3]).await;
        let user_id = paid.record.reservation.user_id;
        world.ticket.cancel_reservation(paid.id(), user_id, world.context()).await.unwrap();
        let path = GetGradeSales::SPEC.path.replace("{eventId}", &event_id.to_string());
        let who = CallerIdentity::Service(Caller::Payment);
        let (status, answer) = world.call(who, Method::GET, &path, Value::Null).await;
        assert_eq!(status, 200, "{answer}");
        let answer: GradeSalesAnswer = serde_json::from_value(answer).unwrap();
        let grade = &answer.grades[0];
        assert_eq!((answer.grades.len(), grade.grade.as_str()), (1, "R"));
        assert_eq!((grade.sold, grade.sold_amount.amount()), (1, 100_000));
        assert_eq!((grade.cancelled, grade.cancelled_amount.amount()), (2, 200_000));
    }

    async fn the_file_of_an_event_has_every_reservation_and_no_formula(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let peers = FakePeers::default();
        let haru = world.ids.next_id();
        peers.register(haru, "=HYPERLINK(\"http://x\")", "haru@example.com");
        let paid = sold(&world, event_id, haru, &[0, 1]).await.record.reservation;
        sold(&world, sale_of(&world, JUNHO).await, haru, &[0]).await;
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let path = format!("/api/admin/events/{event_id}/reservations.csv?language=en");
        let file = http.logged_in(MINA, UserRole::Organiser).get(&path).await;
        assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
        let name = format!("attachment; filename=\"reservations-{event_id}.csv\"");
        assert_eq!(file.headers["content-disposition"], name.as_str());
        let text = String::from_utf8(file.bytes).unwrap();
        assert!(text.starts_with("\u{feff}Reservation,Status,"), "{text}");
        let lines: Vec<&str> = text.trim_end().split("\r\n").collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[1].starts_with(&format!("{},confirmed,paid,2026-12-01 21:00:00,", paid.number)), "{text}");
        assert!(lines[1].contains(",\"'=HYPERLINK(\"\"http://x\"\")\",h***@example.com,2,"), "{text}");
        let refused = http.logged_in(JUNHO, UserRole::Organiser).get(&path).await;
        refused.refused(403, "NOT_YOUR_EVENT");
        let odd = format!("/api/admin/events/{event_id}/reservations.csv?language=fr");
        http.logged_in(MINA, UserRole::Organiser).get(&odd).await.refused(400, "INVALID_LANGUAGE");
    }

    async fn a_long_file_is_read_a_page_at_a_time(world: World) {
        let (event_id, type_id) = world.open_standing(1_000).await;
        for _ in 0..250 {
            world.hold_tickets(event_id, type_id, 1).await;
        }
        let peers = FakePeers::default();
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let path = format!("/api/admin/events/{event_id}/reservations.csv");
        let file = http.logged_in(ADMIN, UserRole::Admin).get(&path).await;
        let text = String::from_utf8(file.bytes).unwrap();
        assert_eq!(text.trim_end().split("\r\n").count(), 251);
        assert_eq!(peers.asked_at_once(), [100, 100, 50]);
    }

    async fn tickets_are_sent_again_and_the_log_says_who_did_it(world: World) {
        let event_id = sale_of(&world, MINA).await;
        let peers = FakePeers::default();
        let paid = sold(&world, event_id, world.ids.next_id(), &[0]).await;
        let held = world.hold(event_id, world.ids.next_id(), &[1]).await.reservation;
        let http = HttpReader::of(&world.ticket_with_peers(peers.clients(&world)), &world);
        let mina = http.logged_in(MINA, UserRole::Organiser);
        let path = |id: Uuid| format!("/api/admin/reservations/{id}/resend-mail");
        let sent = mina.post(&path(paid.id().0), &json!({})).await;
        assert_eq!(sent.status, 200, "{:?}", sent.json());
        assert_eq!(peers.resent(), [(paid.id().0, paid.record.reservation.user_id)]);
        mina.post(&path(held.id.0), &json!({})).await.refused(409, "RESERVATION_UNPAID");
        let junho = http.logged_in(JUNHO, UserRole::Organiser);
        junho.post(&path(paid.id().0), &json!({})).await.refused(404, "RESERVATION_NOT_FOUND");
        let log = world.rows("select admin_id, details from admin_actions", |row| {
            Ok((row.get::<Uuid>("admin_id")?, row.get_json::<Value>("details")?))
        });
        let log = log.await;
        assert_eq!(log.len(), 1, "what was refused is not in the log");
        assert_eq!((log[0].0, &log[0].1["outcome"]), (MINA, &json!("done")));
        peers.set_away(true);
        assert_eq!(mina.post(&path(paid.id().0), &json!({})).await.status, 503);
        let unknown = "select count(*) as n from admin_actions where details is not null";
        assert_eq!(world.number(unknown).await, 2, "that it was tried is in the log");
    }

    async fn members_of_an_artist_are_for_who_has_an_event_of_them(world: World) {
        let (artist, fan) = (world.ids.next_id(), world.ids.next_id());
        let event_id = sale_of(&world, MINA).await;
        let membership = world.ids.next_id();
        let expires_at = world.clock.now() + 240 * 60 * MINUTE;
        let made = world.db.write(move |tx| {
            tx.execute("update sales set artist_id = $1 where event_id = $2", params![artist, event_id])?;
            tx.execute(
                "insert into memberships (id, user_id, artist_id, tier, status, expires_at, points, \
                 joined_at) values ($1, $2, $3, 'gold', 'active', $4, 620, $4)",
                params![membership, fan, artist, expires_at],
            )
        });
        assert_eq!(made.await, Ok::<_, StorageError>(1));
        let http = HttpReader::new(&world);
        let path = format!("/api/admin/memberships?artistId={artist}");
        let list = http.logged_in(MINA, UserRole::Organiser).get(&path).await.json();
        let member = &list["members"][0];
        assert_eq!((&member["userId"], &member["points"]), (&json!(fan), &json!(620)));
        assert_eq!(list["nextCursor"], Value::Null);
        http.logged_in(JUNHO, UserRole::Organiser).get(&path).await.refused(403, "NOT_YOUR_ARTIST");
        let all = http.logged_in(ADMIN, UserRole::Admin).get(&path).await.json();
        assert_eq!(all["members"].as_array().map(Vec::len), Some(1));
    }

    async fn transfers_are_listed_for_the_organiser_of_their_event(world: World) {
        let (own, other) = (sale_of(&world, MINA).await, sale_of(&world, JUNHO).await);
        for event_id in [own, other] {
            let paid = sold(&world, event_id, world.ids.next_id(), &[0]).await;
            let (user_id, id) = (paid.record.reservation.user_id, paid.id());
            let body = json!({ "reservationId": id.0 });
            let who = CallerIdentity::User(user_id);
            let (status, answer) = world.call(who, Method::POST, "/api/transfers", body).await;
            assert_eq!(status, 201, "{answer}");
        }
        let http = HttpReader::new(&world);
        let mina = http.logged_in(MINA, UserRole::Organiser);
        let list = mina.get("/api/admin/transfers?status=listed").await.json();
        assert_eq!(list["transfers"].as_array().map(Vec::len), Some(1), "{list}");
        assert_eq!(list["transfers"][0]["eventId"], json!(own));
        let theirs = mina.get(&format!("/api/admin/transfers?eventId={other}")).await.json();
        assert_eq!(theirs["transfers"], json!([]));
        let all = http.logged_in(ADMIN, UserRole::Admin).get("/api/admin/transfers").await.json();
        assert_eq!(all["transfers"].as_array().map(Vec::len), Some(2), "the control");
        mina.get("/api/admin/transfers?status=gone").await.refused(400, "INVALID_STATUS");
    }
}
