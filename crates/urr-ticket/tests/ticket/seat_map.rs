//! Seat maps: compact, cheap however many look, and never behind what this process did.

use std::sync::mpsc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use urr_kernel::Uuid;
use urr_layout::{GradeRows, Grid, Layout, SeatRow, Section};
use urr_service::UserRole;
use urr_storage::StorageError;
use urr_ticket::{SeatMapSettings, TicketService, TicketSettings};

use crate::contract;
use crate::fixture::{World, hall};
use crate::gateway::{Fan, GatewayClient};
use crate::reader::HttpReader;

fn path(event_id: Uuid) -> String {
    format!("/api/seats/events/{event_id}")
}

/// What a client does with a map: the description of the interface, followed to the letter.
fn decode(map: &Value, seats: usize) -> Vec<u8> {
    let bytes = STANDARD.decode(map["statuses"].as_str().unwrap()).unwrap();
    (0..seats).map(|n| (bytes[n >> 2] >> ((n & 3) * 2)) & 3).collect()
}

/// And what it does with changes.
fn apply(statuses: &mut [u8], changes: &Value) {
    for change in changes.as_array().unwrap() {
        let seat = usize::try_from(change[0].as_u64().unwrap()).unwrap();
        statuses[seat] = u8::try_from(change[1].as_u64().unwrap()).unwrap();
    }
}

fn with_maps(world: &World, seat_maps: SeatMapSettings) -> TicketService {
    world.ticket_with(TicketSettings { seat_maps, ..TicketSettings::default() })
}

/// Reads that keep all connections busy.
struct BusyReaders {
    gates: Vec<mpsc::Sender<()>>,
    reads: JoinSet<Result<(), StorageError>>,
}

impl BusyReaders {
    /// More than either engine has connections; what is asked later waits behind them.
    fn new(world: &World) -> BusyReaders {
        let mut busy = BusyReaders { gates: Vec::new(), reads: JoinSet::new() };
        for _ in 0..32 {
            let (gate, opened) = mpsc::channel::<()>();
            let db = world.db.clone();
            let wait = move |_: &mut urr_storage::Tx<'_>| {
                assert!(opened.recv().is_err(), "the gate opens by going away");
                Ok(())
            };
            let mut read = Box::pin(async move { db.read(wait).await });
            assert!(read.as_mut().now_or_never().is_none());
            busy.gates.push(gate);
            busy.reads.spawn(read);
        }
        busy
    }

    async fn release(self) {
        drop(self.gates);
        assert!(self.reads.join_all().await.iter().all(Result::is_ok));
    }
}

fn refreshed_every(refresh_interval: Duration) -> SeatMapSettings {
    SeatMapSettings { refresh_interval, ..SeatMapSettings::default() }
}

/// 40 sections of 25 rows of 50 seats.
fn stadium() -> Layout {
    let row = |number: u16| SeatRow {
        label: number.to_string(),
        seats: 50,
        first_number: 1,
        number_step: 1,
        offset: 0,
        accessible: Vec::new(),
        restricted_view: Vec::new(),
    };
    let section = |number: i32| Section {
        name: format!("{}층 {number}구역", number / 20 + 1),
        grade: ["VIP", "R", "S", "A"][usize::try_from(number / 10).unwrap()].to_owned(),
        x: number % 10 * 2_500 - 12_500,
        y: 1_000 + number / 10 * 3_000,
        angle_degrees: 15,
        curve_radius: 20_000,
        seat_pitch: 50,
        row_pitch: 90,
        view_image_url: None,
        rows: (1..=25).map(row).collect(),
    };
    Layout { sections: (0..40).map(section).collect() }
}

contract! {
    async fn p_2_a_map_of_50_000_seats_is_below_100_kilobytes_even_uncompressed(world: World) {
        let event_id = world.open_sale(stadium()).await;
        // No two seats beside each other follow a pattern that a shorter code could use.
        world.execute(
            "update seats set fence = 1, reservation_id = event_id, \
             status = case when (seat_id * 7919 + seat_id / 7 * 104729) % 101 < 40 \
             then 'sold' else 'held' end \
             where (seat_id * 7919 + seat_id / 7 * 104729) % 101 < 60",
        ).await;
        world.execute("update sales set fence = 1").await;
        let answer = HttpReader::new(&world).get(&path(event_id)).await;
        assert_eq!(answer.status, 200);
        assert!(answer.bytes.len() < 100_000, "{} bytes", answer.bytes.len());

        let map = answer.json();
        assert_eq!(map["eventId"], event_id.to_string());
        assert_eq!(map["version"], 1);
        assert_eq!(map["layout"], serde_json::to_value(stadium()).unwrap());
        assert_eq!(map["prices"]["VIP"], 100_000);
        let stored = world.rows("select seat_id, status from seats order by seat_id", |row| {
            Ok(match row.get::<String>("status")?.as_str() {
                "available" => 0,
                "held" => 1,
                _ => 2,
            })
        }).await;
        let told = decode(&map, 50_000);
        assert_eq!(told, stored);
        let count = |code| told.iter().filter(|status| **status == code).count();
        assert!([0, 1, 2].map(count).iter().all(|count| *count > 5_000), "all kinds are there");
    }

    async fn an_unchanged_map_is_not_sent_again(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let (reader, gateway) = (HttpReader::new(&world), GatewayClient::new(&world));
        let first = reader.get(&path(event_id)).await;
        let ask = async |tag: &str| {
            reader.get_with(&path(event_id), &[("if-none-match", tag)]).await
        };
        let again = ask(first.tag()).await;
        assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0));
        assert_eq!(again.tag(), first.tag());
        assert_eq!(ask(&format!("\"0-0\", {}", first.tag())).await.status, 304);
        let strong = first.tag().strip_prefix("W/").expect("who stands between may compress it");
        assert_eq!(ask(strong).await.status, 304);
        assert_eq!(ask("\"0-0\"").await.status, 200);

        gateway.must_reserve(&Fan::new(&world), event_id, &[3]).await;
        let changed = ask(first.tag()).await;
        assert_eq!(changed.status, 200);
        assert_ne!(changed.tag(), first.tag());
        assert_eq!(decode(&changed.json(), 10), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    async fn the_changes_since_a_version_lead_to_the_same_map(world: World) {
        let event_id = world.open_sale(hall(4, 25)).await;
        let (reader, gateway) = (HttpReader::new(&world), GatewayClient::new(&world));
        let map = reader.get(&path(event_id)).await.json();
        let (mut statuses, mut version) = (decode(&map, 100), map["version"].as_i64().unwrap());
        for round in 0..10_u32 {
            gateway.must_reserve(&Fan::new(&world), event_id, &[round * 7, round * 7 + 1]).await;
            if round % 3 == 0 {
                continue;
            }
            let news = reader.get(&format!("{}?since={version}", path(event_id))).await.json();
            assert!(news["layout"].is_null() && news["statuses"].is_null(), "{news}");
            let expected = if round % 3 == 1 { 4 } else { 2 };
            assert_eq!(news["changes"].as_array().unwrap().len(), expected, "only what is new");
            apply(&mut statuses, &news["changes"]);
            version = news["version"].as_i64().unwrap();
        }
        gateway.must_reserve(&Fan::new(&world), event_id, &[99]).await;
        let news = reader.get(&format!("{}?since={version}", path(event_id))).await.json();
        apply(&mut statuses, &news["changes"]);
        let whole = reader.get(&format!("{}?layout=false", path(event_id))).await.json();
        assert!(whole["layout"].is_null() && whole["prices"].is_null());
        assert_eq!(decode(&whole, 100), statuses);
        assert_eq!(statuses.iter().filter(|status| **status == 1).count(), 21);
        let version = whole["version"].as_u64().unwrap();
        for ahead in [version, version + 1_000] {
            let news = reader.get(&format!("{}?since={ahead}", path(event_id))).await.json();
            assert_eq!(news["changes"], json!([]));
        }
        let news = reader.get(&format!("{}?since={}", path(event_id), u64::MAX)).await.json();
        assert_eq!(decode(&news, 100), statuses, "what was never a version is none of ours");
    }

    async fn p_2_a_thousand_viewers_are_one_look_at_the_database(world: World) {
        let event_id = world.open_sale(hall(10, 50)).await;
        let reader = HttpReader::new(&world);
        assert_eq!(look_all(&reader, event_id, 1_000).await, 1_000);
        assert_eq!(world.ticket.seat_maps().reads(), 1, "the first time");
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(look_all(&reader, event_id, 1_000).await, 1_000);
        assert_eq!(world.ticket.seat_maps().reads(), 2, "and when the map has grown old");
    }

    /// The control: without a time for which a map is good, whoever comes later is a look.
    async fn without_a_memory_every_viewer_is_a_look_at_the_database(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let ticket = with_maps(&world, refreshed_every(Duration::ZERO));
        let reader = HttpReader::of(&ticket, &world);
        for _ in 0..100 {
            assert_eq!(reader.get(&path(event_id)).await.status, 200);
        }
        assert_eq!(ticket.seat_maps().reads(), 100);
    }

    /// The read takes as long as a map is good for, so no map is young when it is there.
    async fn p_2_those_who_wait_for_a_slow_look_share_the_next_one(world: World) {
        let event_id = world.open_sale(hall(2, 5)).await;
        let ticket = with_maps(&world, refreshed_every(Duration::ZERO));
        let maps = ticket.seat_maps();
        let look_together = async || {
            let before = maps.reads();
            let busy = BusyReaders::new(&world);
            let mut looks: Vec<_> = (0..1_000).map(|_| Box::pin(maps.load(event_id))).collect();
            for look in &mut looks {
                assert!(look.as_mut().now_or_never().is_none(), "the first one is at the database");
            }
            busy.release().await;
            let seen = join_all(looks).await.into_iter().flatten().flatten().count();
            (seen, maps.reads() - before)
        };
        assert_eq!(look_together().await, (1_000, 2), "the one under way, and one for all others");
        assert_eq!(look_together().await, (1_000, 2));
        world.execute("delete from seats").await;
        world.execute("delete from sales").await;
        assert_eq!(look_together().await, (0, 2), "that it is gone is an answer for all, too");
    }

    async fn numbers_that_go_back_are_another_map(world: World) {
        let (event_id, other) = (world.open_sale(hall(1, 6)).await, world.open_sale(hall(1, 6)).await);
        let (reader, gateway) = (HttpReader::new(&world), GatewayClient::new(&world));
        for (event, seat_id) in [(event_id, 1), (event_id, 2), (event_id, 3), (other, 0)] {
            gateway.must_reserve(&Fan::new(&world), event, &[seat_id]).await;
        }
        let (before, elsewhere) = (reader.get(&path(event_id)).await, reader.get(&path(other)).await);
        assert_eq!(before.json()["version"], 3);

        // Back to after the first change; then another process sells what nobody here has seen.
        world.execute(
            "update seats set status = 'available', reservation_id = null, fence = 0 \
             where fence > 1",
        ).await;
        world.execute(
            "update seats set status = 'held', reservation_id = event_id, fence = 2 \
             where seat_id = 5 and exists (select 1 from sales \
             where sales.event_id = seats.event_id and fence = 3)",
        ).await;
        world.execute("update sales set fence = 2 where fence = 3").await;
        world.clock.advance(Duration::from_secs(1));

        let since = async |event: Uuid, version: &Value| {
            reader.get(&format!("{}?since={version}", path(event))).await.json()
        };
        let tag = [("if-none-match", before.tag())];
        assert_eq!(reader.get_with(&path(event_id), &tag).await.status, 200);
        let known = &before.json()["version"];
        let restored = since(event_id, known).await;
        assert_eq!(decode(&restored, 6), [0, 1, 0, 0, 0, 1], "the seats after it was restored");
        let follower = reader.logged_in(world.ids.next_id(), UserRole::User);
        let mut events = follower.follow(&format!("{}/stream?since=3", path(event_id)), &[]).await;
        let (id, told) = events.next().await.unwrap();
        assert_eq!((json!(id), &told), (restored["version"].clone(), &restored));

        gateway.must_reserve(&Fan::new(&world), event_id, &[4]).await;
        assert_eq!(decode(&since(event_id, known).await, 6), [0, 1, 0, 0, 1, 1], "the number again");
        let news = since(event_id, &restored["version"]).await;
        assert_eq!(news["changes"], json!([[4, 1]]), "and from then on only what changes");
        let told = since(other, &elsewhere.json()["version"]).await;
        assert_eq!(decode(&told, 6), [1, 0, 0, 0, 0, 0], "the whole database was restored");
    }

    async fn what_this_process_did_is_seen_at_once_and_what_others_did_soon(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        let other = world.ticket_with(TicketSettings::default());
        let (here, there) = (HttpReader::new(&world), HttpReader::of(&other, &world));
        let seen = async |reader: &HttpReader| decode(&reader.get(&path(event_id)).await.json(), 6);
        assert_eq!((seen(&here).await, seen(&there).await), (vec![0; 6], vec![0; 6]));

        GatewayClient::new(&world).must_reserve(&Fan::new(&world), event_id, &[2]).await;
        assert_eq!(seen(&here).await, [0, 0, 1, 0, 0, 0]);
        assert_eq!(seen(&there).await, [0; 6], "the control: it is not asked every time");
        world.clock.advance(Duration::from_millis(300));
        assert_eq!(seen(&there).await, [0, 0, 1, 0, 0, 0]);
    }

    async fn a_version_names_the_same_map_in_every_process(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        let gateway = GatewayClient::new(&world);
        let here = HttpReader::new(&world);
        here.get(&path(event_id)).await;
        for seat_id in [4, 1] {
            gateway.must_reserve(&Fan::new(&world), event_id, &[seat_id]).await;
            here.get(&path(event_id)).await;
        }
        let there = HttpReader::of(&world.ticket_with(TicketSettings::default()), &world);
        let (here, there) = (here.get(&path(event_id)).await, there.get(&path(event_id)).await);
        assert_eq!((here.tag(), &here.bytes), (there.tag(), &there.bytes));
    }

    async fn f_9_what_has_no_map_is_said_clearly(world: World) {
        let reader = HttpReader::new(&world);
        let unknown = world.ids.next_id();
        reader.get(&path(unknown)).await.refused(404, "EVENT_NOT_FOUND");
        reader.get("/api/seats/events/7").await.refused(400, "INVALID_PATH");
        let (standing, _) = world.open_standing(5).await;
        reader.get(&path(standing)).await.refused(404, "NO_SEAT_SELECTION");
        let event_id = world.open_sale(hall(1, 4)).await;
        for query in ["since=-1", "since=x", "layout=perhaps"] {
            let answer = reader.get(&format!("{}?{query}", path(event_id))).await;
            answer.refused(400, "INVALID_QUERY");
        }
        assert_eq!(world.ticket.seat_maps().events(), 1, "what does not exist takes no memory");

        assert_eq!(reader.get(&path(event_id)).await.status, 200);
        world.execute("update sales set status = 'deleted' where kind = 'seated'").await;
        world.clock.advance(Duration::from_secs(1));
        reader.get(&path(event_id)).await.refused(404, "EVENT_NOT_FOUND");
    }

    async fn the_maps_that_nobody_looks_at_are_forgotten(world: World) {
        let settings = SeatMapSettings { events_max: 3, ..SeatMapSettings::default() };
        let ticket = with_maps(&world, settings);
        let reader = HttpReader::of(&ticket, &world);
        let mut events = Vec::new();
        for _ in 0..5 {
            events.push(world.open_sale(hall(1, 4)).await);
        }
        for event_id in &events {
            world.clock.advance(Duration::from_millis(10));
            reader.get(&path(events[0])).await;
            world.clock.advance(Duration::from_millis(10));
            assert_eq!(reader.get(&path(*event_id)).await.status, 200);
        }
        assert_eq!(ticket.seat_maps().events(), 3);
        let reads = ticket.seat_maps().reads();
        reader.get(&path(events[0])).await;
        reader.get(&path(events[4])).await;
        assert_eq!(ticket.seat_maps().reads(), reads, "those that were looked at are there");
        reader.get(&path(events[1])).await;
        assert_eq!(ticket.seat_maps().reads(), reads + 1);
    }

    async fn a_hint_never_calls_a_seat_taken_that_was_freed_here(world: World) {
        let event_id = world.open_sale(hall(1, 6)).await;
        let maps = world.ticket.seat_maps();
        assert_eq!(maps.taken_hint(event_id, &[2, 3]), None, "nobody looked yet");
        let taken = GatewayClient::new(&world).must_reserve(&Fan::new(&world), event_id, &[3]).await;
        let fence = taken["fencingToken"].as_i64().unwrap();
        maps.load(event_id).await.unwrap();
        assert_eq!(maps.taken_hint(event_id, &[2, 3]), Some(3));
        assert_eq!(maps.taken_hint(event_id, &[2, 4]), None);
        assert_eq!(maps.taken_hint(event_id, &[1_000_000]), None);
        assert!(maps.is_free_at(event_id, 2, fence) && !maps.is_free_at(event_id, 3, fence));
        assert!(!maps.is_free_at(event_id, 2, fence + 1), "not known yet");
        maps.mark_taken(event_id);
        assert_eq!(maps.taken_hint(event_id, &[3]), Some(3), "taking frees nothing");
        maps.mark_dirty(event_id);
        assert_eq!(maps.taken_hint(event_id, &[3]), None, "it may be free now");
        maps.load(event_id).await.unwrap();
        assert_eq!(maps.taken_hint(event_id, &[3]), Some(3));
        world.clock.advance(Duration::from_millis(300));
        assert_eq!(maps.taken_hint(event_id, &[3]), None, "others may have freed it");
    }

    async fn what_is_left_is_told_by_grade(world: World) {
        let range = |grade: &str, from_row, to_row| {
            GradeRows { grade: grade.to_owned(), from_row, to_row }
        };
        let grade_mapping = vec![range("VIP", 1, 1), range("R", 2, 3), range("VIP", 4, 4)];
        let layout = Grid { rows: 4, seats_per_row: 10, grade_mapping }.to_layout().unwrap();
        let event_id = world.open_sale(layout).await;
        let (reader, gateway) = (HttpReader::new(&world), GatewayClient::new(&world));
        let left = async || {
            let body = reader.get(&format!("/api/tickets/event/{event_id}")).await.json();
            assert_eq!(body["ticketTypes"], json!([]));
            body["grades"].clone()
        };
        let grade = |grade, available| {
            json!({"grade": grade, "price": 100_000, "total": 20, "available": available})
        };
        assert_eq!(left().await, json!([grade("VIP", 20), grade("R", 20)]));
        gateway.must_reserve(&Fan::new(&world), event_id, &[0, 1, 30]).await;
        gateway.must_reserve(&Fan::new(&world), event_id, &[15]).await;
        assert_eq!(left().await, json!([grade("VIP", 17), grade("R", 19)]));
        let unknown = world.ids.next_id();
        let answer = reader.get(&format!("/api/tickets/event/{unknown}")).await;
        answer.refused(404, "EVENT_NOT_FOUND");
    }

    async fn what_is_left_of_standing_tickets_is_told_by_type(world: World) {
        let (event_id, type_id) = world.open_standing(50).await;
        let (reader, gateway) = (HttpReader::new(&world), GatewayClient::new(&world));
        let items = json!([{"ticketTypeId": type_id, "quantity": 3}]);
        let by_event = format!("/api/tickets/event/{event_id}");
        let by_type = format!("/api/tickets/availability/{type_id}");
        let left = reader.get(&by_type).await.json();
        assert_eq!(left, json!({"total": 50, "available": 50}));
        let (status, body) = gateway.reserve_tickets(&Fan::new(&world), event_id, items).await;
        assert_eq!(status, 201, "{body}");
        assert_eq!(reader.get(&by_type).await.json(), json!({"total": 50, "available": 47}));
        let body = reader.get(&by_event).await.json();
        assert_eq!(body["grades"], json!([]));
        assert_eq!(body["ticketTypes"][0], json!({
            "id": type_id, "eventId": event_id, "name": "스탠딩", "description": "", "price": 88_000,
            "total": 50, "available": 47,
        }));
        let unknown = format!("/api/tickets/availability/{event_id}");
        reader.get(&unknown).await.refused(404, "TICKET_TYPE_NOT_FOUND");
    }

    async fn a_stream_tells_every_change_and_goes_on_where_it_ended(world: World) {
        let event_id = world.open_sale(hall(1, 8)).await;
        let (reader, gateway) = (HttpReader::new(&world), GatewayClient::new(&world));
        let stream = format!("{}/stream", path(event_id));
        let reader = reader.logged_in(world.ids.next_id(), UserRole::User);
        let mut events = reader.follow(&stream, &[]).await;
        let (_, map) = events.next().await.unwrap();
        let mut statuses = decode(&map, 8);
        assert_eq!(statuses, [0; 8]);

        gateway.must_reserve(&Fan::new(&world), event_id, &[1, 2]).await;
        let (id, change) = events.next().await.unwrap();
        assert_eq!(change["changes"], json!([[1, 1], [2, 1]]));
        assert_eq!(change["version"], id);
        apply(&mut statuses, &change["changes"]);
        drop(events);

        gateway.must_reserve(&Fan::new(&world), event_id, &[5]).await;
        let last = id.to_string();
        let mut events = reader.follow(&stream, &[("last-event-id", &last)]).await;
        let (_, change) = events.next().await.unwrap();
        assert_eq!(change["changes"], json!([[5, 1]]), "only what was missed");
        apply(&mut statuses, &change["changes"]);
        let whole = reader.get(&path(event_id)).await.json();
        assert_eq!(decode(&whole, 8), statuses);

        world.ticket.seat_maps().close_streams();
        assert_eq!(events.next().await, None);
    }

    async fn streams_are_bounded_and_end_by_themselves(world: World) {
        let event_id = world.open_sale(hall(1, 8)).await;
        let settings = SeatMapSettings {
            streams_max: 2,
            stream_lifetime: Duration::from_millis(1),
            ..SeatMapSettings::default()
        };
        let ticket = with_maps(&world, settings);
        let reader = HttpReader::of(&ticket, &world).logged_in(world.ids.next_id(), UserRole::User);
        let stream = format!("{}/stream?since=0", path(event_id));
        let mut first = reader.follow(&stream, &[]).await;
        let second = reader.follow(&stream, &[]).await;
        reader.get(&stream).await.refused(503, "TOO_MANY_STREAMS");
        drop(second);
        assert_eq!(first.next().await, None, "its time is over");
        reader.follow(&stream, &[]).await;
        let unknown = world.ids.next_id();
        let nothing = reader.get(&format!("{}/stream", path(unknown))).await;
        nothing.refused(404, "EVENT_NOT_FOUND");
    }

    async fn one_user_cannot_take_the_streams_of_all(world: World) {
        let event_id = world.open_sale(hall(1, 8)).await;
        let stream = format!("{}/stream", path(event_id));
        let stream_lifetime = Duration::from_millis(1);
        let settings = SeatMapSettings { stream_lifetime, ..SeatMapSettings::default() };
        let anyone = HttpReader::of(&with_maps(&world, settings), &world);
        anyone.get(&stream).await.refused(401, "AUTHENTICATION_REQUIRED");
        let [greedy, modest] = [(); 2].map(|()| anyone.logged_in(world.ids.next_id(), UserRole::User));
        let mut open = Vec::new();
        for _ in 0..3 {
            open.push(greedy.follow(&stream, &[]).await);
        }
        greedy.get(&stream).await.refused(429, "STREAM_LIMIT");
        open.push(modest.follow(&stream, &[]).await);
        greedy.get(&stream).await.refused(429, "STREAM_LIMIT");
        drop(open.remove(0));
        open.push(greedy.follow(&stream, &[]).await);
    }

    async fn a_stream_tells_no_oftener_than_a_map_is_refreshed(world: World) {
        let event_id = world.open_sale(hall(1, 8)).await;
        let stream = format!("{}/stream?since=0", path(event_id));
        let follow = async |interval: Duration, seats: [u32; 2]| {
            let ticket = with_maps(&world, refreshed_every(interval));
            let gateway = GatewayClient::to(&ticket, &world);
            let reader = HttpReader::of(&ticket, &world).logged_in(world.ids.next_id(), UserRole::User);
            gateway.must_reserve(&Fan::new(&world), event_id, &seats[..1]).await;
            let mut events = reader.follow(&stream, &[]).await;
            assert!(events.next().await.is_some(), "the first one comes at once");
            gateway.must_reserve(&Fan::new(&world), event_id, &seats[1..]).await;
            (ticket, events)
        };
        let (ticket, mut events) = follow(Duration::from_secs(3_600), [1, 2]).await;
        let reads = ticket.seat_maps().reads();
        assert_eq!(events.next().now_or_never(), None);
        assert_eq!(ticket.seat_maps().reads(), reads, "it does not even look");

        let (_ticket, mut events) = follow(Duration::ZERO, [3, 4]).await;
        assert!(events.next().await.is_some(), "the control: the time is over");
    }

    async fn the_time_of_the_server_is_told(world: World) {
        let time = HttpReader::new(&world).get("/api/time").await.json();
        assert_eq!(time, json!({"time": "2026-12-01T12:00:00Z"}));
    }

    async fn a_database_that_is_gone_is_said_and_not_hidden(world: World) {
        let event_id = world.open_sale(hall(1, 4)).await;
        let reader = HttpReader::new(&world);
        assert_eq!(reader.get(&path(event_id)).await.status, 200);
        let db = world.db.clone();
        tokio::task::spawn_blocking(move || db.close()).await.unwrap();
        assert_eq!(reader.get(&path(event_id)).await.status, 200, "it is in memory");
        world.clock.advance(Duration::from_secs(1));
        reader.get(&path(event_id)).await.refused(503, "STORAGE_UNAVAILABLE");
        let looked = world.ticket.seat_maps().load(event_id).await;
        assert_eq!(looked.err(), Some(StorageError::Closed));
    }
}

/// This many clients read at the same time; the result is how many got a map.
async fn look_all(reader: &HttpReader, event_id: Uuid, count: usize) -> usize {
    let mut looking = JoinSet::new();
    for _ in 0..count {
        let reader = reader.clone();
        looking.spawn(async move { reader.get(&path(event_id)).await.status == 200 });
    }
    looking.join_all().await.into_iter().filter(|saw| *saw).count()
}

/// Clients are generated from it.
#[test]
fn the_description_of_a_map_says_what_may_be_left_out() {
    let described = serde_json::to_value(urr_ticket::openapi()).unwrap();
    let view = &described["components"]["schemas"]["SeatMapView"];
    assert_eq!(view["required"], json!(["eventId", "version"]), "{view:#}");
    let fields: Vec<&String> = view["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["changes", "eventId", "layout", "prices", "statuses", "version"]);
    let layout = view["properties"]["layout"].to_string();
    assert!(layout.contains("#/components/schemas/Layout"), "{layout}");
    assert!(described["components"]["schemas"]["Layout"].is_object());
}

/// A browser's own reader of streams cannot send the token that the stream needs.
#[test]
fn the_description_of_a_stream_says_how_a_browser_reads_it() {
    let described = serde_json::to_value(urr_ticket::openapi()).unwrap();
    let stream = &described["paths"]["/api/seats/events/{eventId}/stream"]["get"];
    let text = stream["description"].as_str().unwrap();
    for word in ["`fetch`", "`x-queue-entry-token`", "`EventSource`"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(stream["responses"]["429"].is_object());
}
