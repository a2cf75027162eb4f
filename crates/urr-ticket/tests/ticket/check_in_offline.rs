//! Phones without a network: the list beforehand, the report afterwards.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::{Timestamp, Uuid};
use urr_ticket::SignedTicket;

use crate::check_in::{CHECK_INS, scanner, shown, ticket};
use crate::contract;
use crate::fixture::{MINUTE, SECOND, World, hall};
use crate::reader::Answer;

/// A phone that gathers scans.
struct OfflinePhone {
    door: &'static str,
    /// How far its clock is ahead.
    ahead: Duration,
    scans: Vec<Value>,
}

impl OfflinePhone {
    fn new(door: &'static str) -> OfflinePhone {
        OfflinePhone { door, ahead: Duration::ZERO, scans: Vec::new() }
    }

    fn now(&self, world: &World) -> Timestamp {
        world.clock.now() + self.ahead
    }

    fn scan(&mut self, world: &World, of: &SignedTicket) {
        let payload = world.ticket.signer().payload(of);
        self.scans.push(json!({
            "scanId": world.ids.next_id(), "payload": payload, "door": self.door,
            "scannedAt": self.now(world),
        }));
    }

    fn report(&self, world: &World, event_id: Uuid) -> Value {
        json!({"eventId": event_id, "sentAt": self.now(world), "scans": self.scans})
    }

    async fn send(&self, world: &World, event_id: Uuid) -> Answer {
        scanner(world).post(&format!("{CHECK_INS}/batch"), &self.report(world, event_id)).await
    }

    async fn outcomes(&self, world: &World, event_id: Uuid) -> Vec<String> {
        let answer = self.send(world, event_id).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let results = answer.json()["results"].take();
        let outcome = |result: &Value| result["outcome"].as_str().unwrap().to_owned();
        results.as_array().unwrap().iter().map(outcome).collect()
    }
}

async fn list(world: &World, event_id: Uuid, query: &str) -> Answer {
    let path = format!("/api/admin/events/{event_id}/check-in-list{query}");
    scanner(world).get(&path).await
}

contract! {
    async fn of_two_phones_without_a_network_the_earlier_scan_counts(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let (mut north, mut south) = (OfflinePhone::new("북문"), OfflinePhone::new("남문"));
        // The clock of one of them is two hours ahead.
        north.ahead = 120 * MINUTE;
        north.scan(&world, &good);
        world.clock.advance(2 * MINUTE);
        south.scan(&world, &good);
        world.clock.advance(10 * MINUTE);

        // The later scan is reported first.
        assert_eq!(south.outcomes(&world, event_id).await, ["accepted"]);
        world.clock.advance(MINUTE);
        let answer = north.send(&world, event_id).await.json();
        let result = &answer["results"][0];
        assert_eq!(result["outcome"], "accepted", "{result}");
        assert_eq!(result["otherEntry"]["door"], "남문", "the phone is told");
        assert_eq!(result["otherEntry"]["at"], "2026-12-01T12:02:00Z");
        assert_eq!(result["ticket"]["seat"]["label"], "R-1-2");

        let path = format!("/api/admin/events/{event_id}/check-in-conflicts");
        let kept = scanner(&world).get(&path).await.json();
        assert_eq!(kept["conflicts"].as_array().unwrap().len(), 1);
        let conflict = &kept["conflicts"][0];
        assert_eq!((&conflict["outcome"], &conflict["door"]), (&json!("duplicate"), &json!("남문")));
        assert_eq!(conflict["entry"]["door"], "북문");
        assert_eq!(conflict["entry"]["at"], "2026-12-01T12:00:00Z");
        // The other phone asks again and is told now.
        let again = south.send(&world, event_id).await.json();
        assert_eq!(again["results"][0]["outcome"], "duplicate");
        assert_eq!(again["results"][0]["otherEntry"]["door"], "북문");
        let body = scanner(&world).post(CHECK_INS, &shown(&world, &good)).await;
        let body = body.refused(409, "ALREADY_CHECKED_IN");
        assert_eq!((&body["door"], &body["checkedInAt"]), (&json!("북문"), &json!("2026-12-01T12:00:00Z")));
    }

    async fn a_report_that_is_repeated_changes_nothing(world: World) {
        let event_id = world.open_sale(hall(10, 60)).await;
        let mut phone = OfflinePhone::new("A");
        for seat_id in 0..250 {
            let good = ticket(&world, event_id, Ok(seat_id)).await;
            phone.scan(&world, &good);
        }
        let first = phone.outcomes(&world, event_id).await;
        assert_eq!(first, vec!["accepted"; 250]);
        world.clock.advance(MINUTE);
        let mut sending = JoinSet::new();
        for _ in 0..5 {
            let (reader, report) = (scanner(&world), phone.report(&world, event_id));
            sending.spawn(async move { reader.post(&format!("{CHECK_INS}/batch"), &report).await });
        }
        for answer in sending.join_all().await {
            let results = answer.json()["results"].take();
            let results = results.as_array().unwrap();
            assert!(results.iter().all(|result| result["outcome"] == "accepted"), "{results:?}");
        }
        assert_eq!(world.number("select count(*) as n from ticket_scans").await, 250);
        let at = "select count(*) as n from tickets where checked_in_at = created_at and is_inside";
        assert_eq!(world.number(at).await, 250, "with the times of the first report");
    }

    async fn a_scan_that_timed_out_and_was_reported_later_is_one_scan(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(1)).await;
        let mut phone = OfflinePhone::new("A");
        phone.scan(&world, &good);
        let mut online = shown(&world, &good);
        online["scanId"] = phone.scans[0]["scanId"].clone();
        assert_eq!(scanner(&world).post(CHECK_INS, &online).await.status, 200);
        world.clock.advance(MINUTE);
        assert_eq!(phone.outcomes(&world, event_id).await, ["accepted"]);
        assert_eq!(world.number("select count(*) as n from ticket_scans").await, 1);
    }

    async fn each_scan_is_told_what_it_turned_out_to_be(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let other_event = world.open_sale(hall(2, 5)).await;
        let mut phone = OfflinePhone::new("A");
        let good = ticket(&world, event_id, Ok(0)).await;
        let cancelled = ticket(&world, event_id, Ok(1)).await;
        let sold_on = ticket(&world, event_id, Ok(2)).await;
        let elsewhere = ticket(&world, other_event, Ok(3)).await;
        let never = SignedTicket { ticket_id: world.ids.next_id(), ..good };
        for shown in [&good, &good, &cancelled, &sold_on, &elsewhere, &never] {
            phone.scan(&world, shown);
            world.clock.advance(SECOND);
        }
        let forger = urr_ticket::Signer::new(&urr_kernel::Secret::new("of a forger"), &[]);
        let mut forged = phone.scans[0].clone();
        forged["scanId"] = json!(world.ids.next_id());
        forged["payload"] = json!(forger.payload(&good));
        phone.scans.push(forged);
        world.execute("update tickets set is_valid = false where seat_id = 1").await;
        world.execute("update tickets set issue = 2 where seat_id = 2").await;
        let expected = [
            "accepted", "duplicate", "cancelled", "reissued", "wrong_event", "unknown", "forged",
        ];
        assert_eq!(phone.outcomes(&world, event_id).await, expected);
        assert_eq!(phone.outcomes(&world, event_id).await, expected, "and again");
        let counted = scanner(&world).get(&format!("{CHECK_INS}?eventId={event_id}")).await.json();
        assert_eq!((&counted["inside"], &counted["conflicts"]), (&json!(1), &json!(3)));
    }

    async fn a_report_is_bounded(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let good = ticket(&world, event_id, Ok(0)).await;
        let mut phone = OfflinePhone::new("A");
        phone.send(&world, event_id).await.refused(400, "INVALID_SCANS");
        phone.scan(&world, &good);
        phone.scans.push(phone.scans[0].clone());
        phone.send(&world, event_id).await.refused(400, "INVALID_SCANS");
        phone.scans.truncate(1);
        phone.scans[0]["door"] = json!("가".repeat(41));
        phone.send(&world, event_id).await.refused(400, "INVALID_DOOR");
        phone.scans[0]["door"] = json!("A");
        // A scan from the future, and one from long ago.
        phone.scans[0]["scannedAt"] = json!("2199-01-01T00:00:00Z");
        assert_eq!(phone.outcomes(&world, event_id).await, ["accepted"]);
        let now = "select count(*) as n from ticket_scans where scanned_at = recorded_at";
        assert_eq!(world.number(now).await, 1);
        let other = ticket(&world, event_id, Ok(1)).await;
        phone.scans.clear();
        phone.scan(&world, &other);
        phone.scans[0]["scannedAt"] = json!("1971-01-01T00:00:00Z");
        assert_eq!(phone.outcomes(&world, event_id).await, ["accepted"]);
        let read = |row: &urr_storage::Row<'_>| row.get::<Timestamp>("scanned_at");
        let times = world.rows("select min(scanned_at) as scanned_at from ticket_scans", read).await;
        assert_eq!(times[0].to_string(), "2026-11-30T12:00:00Z", "at most a day ago");
        phone.send(&world, world.ids.next_id()).await.refused(404, "EVENT_NOT_FOUND");
    }

    async fn the_list_has_every_ticket_page_by_page(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let other_event = world.open_sale(hall(2, 5)).await;
        let mut tickets = Vec::new();
        for seat_id in 0..5 {
            tickets.push(ticket(&world, event_id, Ok(seat_id)).await);
        }
        ticket(&world, other_event, Ok(0)).await;
        scanner(&world).post(CHECK_INS, &shown(&world, &tickets[1])).await;
        world.execute("update tickets set is_valid = false where seat_id = 2").await;

        let first = list(&world, event_id, "?limit=3").await;
        let page = first.json();
        let seats = |page: &Value| {
            let tickets = page["tickets"].as_array().unwrap().iter();
            let word = |ticket: &Value, field| ticket[field].as_str().unwrap().to_owned();
            let seat = |ticket| word(ticket, "seatLabel") + " " + &word(ticket, "status");
            tickets.map(seat).collect::<Vec<_>>()
        };
        assert_eq!(seats(&page), ["R-1-1 unused", "R-1-2 inside", "R-1-3 cancelled"]);
        assert_eq!(page["tickets"][1]["checkedInAt"], "2026-12-01T12:00:00Z");
        assert_eq!(page["tickets"][0]["holderInitials"], Value::Null, "the auth service is away");
        assert_eq!(page["allowsReentry"], false);
        let next = page["next"].as_str().unwrap();
        let second = list(&world, event_id, &format!("?limit=3&after={next}")).await.json();
        assert_eq!(seats(&second), ["R-1-4 unused", "R-1-5 unused"]);
        assert_eq!(second["next"], Value::Null);

        let path = format!("/api/admin/events/{event_id}/check-in-list?limit=3");
        let tag = [("if-none-match", first.tag())];
        assert_eq!(scanner(&world).get_with(&path, &tag).await.status, 304);
        scanner(&world).post(CHECK_INS, &shown(&world, &tickets[0])).await;
        world.clock.advance(6 * SECOND);
        let changed = scanner(&world).get_with(&path, &tag).await;
        assert_eq!(seats(&changed.json())[0], "R-1-1 inside");
        assert_ne!(changed.tag(), first.tag());
    }
}
