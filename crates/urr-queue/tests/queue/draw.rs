//! The draw of a lottery, step by step, and what everybody can see of it.

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use urr_kernel::{Timestamp, Uuid};
use urr_outbound::Outbound;
use urr_queue::draw::{self, BeaconSource, DrandClient, DrawError, DrawReport, DrawSecret};
use urr_queue::{QueueService, QueueSettings, verify_draw};
use urr_room::{AdmissionRules, AdmissionState, RoomRequest, UserStatus};
use urr_storage::StorageError;
use urr_test::eventually;

use crate::contract;
use crate::fixture::{Answer, Fan, MINUTE, SECOND, World, draw_seal};

/// A lottery whose sale begins in half an hour: people gather for it.
async fn lottery(world: &World) -> Uuid {
    let opens_at = world.clock.now() + 30 * MINUTE;
    let event = world.event_with(json!({ "saleStartsAt": opens_at })).await;
    commit(world, event, &draw::new_secret()).await;
    world.set_room(event, "opening = 'lottery'").await;
    event
}

async fn commit(world: &World, event: Uuid, secret: &DrawSecret) {
    let (secret, now) = (secret.clone(), world.clock.now());
    let committed =
        world.db.write(move |tx| draw::commit(tx, event, &secret, &draw_seal(), now)).await;
    committed.unwrap_or_else(|error: StorageError| panic!("{error}"));
}

/// What everybody can see of a draw.
async fn public_draw(world: &World, event: Uuid) -> Value {
    world.fan().get(&format!("/api/queue/draw/{event}"), &[]).await.ok()
}

/// The file of a draw that is done, as it was checked.
async fn checked(world: &World, event: Uuid) -> DrawReport {
    let answer = world.fan().get(&format!("/api/queue/draw/{event}/file"), &[]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    verify_draw(&*answer.bytes).unwrap()
}

/// Everybody in the line stands as the file says, without those who are gone.
async fn stand_as_drawn(world: &World, event: Uuid, fans: &[Fan]) {
    let report = checked(world, event).await;
    let mut ranked: Vec<_> =
        fans.iter().map(|fan| (report.rank_of(fan.id).unwrap(), fan)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    for (position, (rank, fan)) in (1..).zip(ranked) {
        let status = fan.status(event).await.ok();
        assert_eq!(status["position"], json!(position), "{status}");
        let number = i64::from(rank) - 1 - i64::from(report.header.count);
        assert_eq!(status["number"], json!(number), "{status}");
    }
}

/// The steps of a draw that are taken before the process is killed.
async fn take_steps(queue: &QueueService, event: Uuid, now: Timestamp, steps: usize) {
    if steps > 0 {
        draw::close(queue, event, now).await.unwrap();
    }
    if steps > 1 {
        draw::fix_entrants(queue, event, now).await.unwrap();
    }
    if steps > 2 {
        draw::order_entrants(queue, event, now).await.unwrap();
    }
    if steps > 3 {
        draw::number_entrants(queue, event).await.unwrap();
    }
    if steps > 4 {
        draw::finish(queue, event).await.unwrap();
    }
}

fn failed<T>(error: StorageError) -> T {
    panic!("{error}")
}

/// A server that publishes one round of drand, and before it one that publishes what nobody signed.
async fn publisher() -> DrandClient {
    let genuine = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
                   41076862b98fad56e91a6b85b89cd97b";
    let mut urls = Vec::new();
    for signature in [genuine.replace("b713", "b813"), genuine.to_owned()] {
        let publish = async move |Path((_, round)): Path<(String, i64)>| match round {
            657_413 => Ok(axum::Json(json!({ "round": round, "signature": signature }))),
            _ => Err(StatusCode::NOT_FOUND),
        };
        let router = Router::new().route("/{chain}/public/{round}", get(publish));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        urls.push(format!("http://{}", listener.local_addr().unwrap()));
        tokio::spawn(async move { axum::serve(listener, router).await });
    }
    DrandClient::new(Outbound::new(), urls)
}

/// Joins as a client does: Redis may be busy with other tests, and is asked again.
async fn join(world: &World, request: RoomRequest, rules: &AdmissionRules) -> bool {
    for _ in 0..20 {
        match world.rooms.check(request, rules).await {
            Ok(seen) => return matches!(seen.status, UserStatus::Waiting(_)),
            Err(_) => tokio::time::sleep(SECOND / 5).await,
        }
    }
    false
}

contract! {
    async fn those_who_gathered_are_drawn_and_latecomers_stand_behind(world: World) {
        let event = lottery(&world).await;
        world.set_room(event, "threshold = 1").await;
        let fans = world.come(event, 12).await;
        assert_eq!(fans[0].status(event).await.ok()["position"], Value::Null, "there is no order");
        let before = public_draw(&world, event).await;
        world.clock.advance(30 * MINUTE);
        let late = world.fan();
        late.check(event).await.ok();
        // Nobody is let in before the order is there.
        world.queue.admit(event).await;
        assert_eq!(late.status(event).await.ok()["status"], "queued");
        world.queue.draw(event).await.unwrap();
        // It came before the closing, if after the beginning of the sale.
        let latest = world.fan();
        latest.check(event).await.ok();
        let everybody: Vec<Fan> = fans.iter().chain([&late]).cloned().collect();
        stand_as_drawn(&world, event, &everybody).await;
        assert_eq!(latest.status(event).await.ok()["position"], json!(14));
        let after = public_draw(&world, event).await;
        assert_eq!(after["commitment"], before["commitment"]);
        assert_eq!((&after["state"], &after["count"]), (&json!("done"), &json!(13)));
        world.clock.advance(SECOND);
        world.queue.admit(event).await;
        let report = checked(&world, event).await;
        for fan in &everybody {
            let is_in = fan.status(event).await.ok()["status"] == "active";
            assert_eq!(is_in, report.rank_of(fan.id) == Some(1));
        }
    }

    async fn the_secret_is_published_when_the_draw_is_done_and_not_before(world: World) {
        let event = lottery(&world).await;
        world.come(event, 3).await;
        let committed = public_draw(&world, event).await;
        let fields = committed.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
        let fields: Vec<&String> = fields.map(|(name, _)| name).collect();
        assert_eq!(fields, ["commitment", "committedAt", "eventId", "state"]);
        assert_eq!(committed["state"], "committed");
        world.clock.advance(30 * MINUTE);
        let now = world.clock.now();
        for steps in 1..=4 {
            take_steps(&world.queue, event, now, steps).await;
            let drawing = public_draw(&world, event).await;
            assert_eq!((&drawing["state"], &drawing["secret"]), (&json!("drawing"), &Value::Null));
            let file = world.fan().get(&format!("/api/queue/draw/{event}/file"), &[]).await;
            file.refused(409, "NOT_DRAWN_YET");
        }
        draw::finish(&world.queue, event).await.unwrap();
        let done = public_draw(&world, event).await;
        let report = checked(&world, event).await;
        assert_eq!(done["secret"], json!(urr_kernel::hex::encode(report.header.secret.expose())));
        assert_eq!(done["digest"], json!(urr_kernel::hex::encode(report.header.digest)));
        assert_eq!(done["arrivals"], json!(urr_kernel::hex::encode(report.header.arrivals)));
        assert_eq!(done["seed"], json!(urr_kernel::hex::encode(report.header.seed)));
    }

    async fn a_draw_that_was_broken_off_anywhere_is_brought_to_its_end(world: World) {
        for steps in 0..=5 {
            let event = lottery(&world).await;
            let fans = world.come(event, 10).await;
            world.clock.advance(30 * MINUTE);
            take_steps(&world.queue, event, world.clock.now(), steps).await;
            let other = world.another(QueueSettings::default());
            other.load().await.unwrap();
            world.clock.advance(SECOND);
            other.draw(event).await.unwrap();
            world.queue.load().await.unwrap();
            stand_as_drawn(&world, event, &fans).await;
        }
    }

    async fn a_draw_that_was_broken_off_while_it_numbered_is_brought_to_its_end(world: World) {
        let event = lottery(&world).await;
        let fans = world.come(event, 10).await;
        world.clock.advance(30 * MINUTE);
        take_steps(&world.queue, event, world.clock.now(), 3).await;
        // What the numbers will be is known from the rows of a draw that nobody has seen yet.
        let rows = "select entrants from draw_entrants where event_id = $1";
        let rows = world.db.read(move |tx| {
            tx.query_one(rows, urr_storage::params![event], |row| row.get::<Vec<u8>>("entrants"))
        });
        let rows: Vec<u8> = rows.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        let drawn: Vec<_> = rows.chunks(20).map(|row| row[..16].to_vec()).collect();
        let numbered = fans.iter().step_by(2).map(|fan| {
            let tag = draw::EntrantTag::of(event, fan.id);
            let rank = drawn.iter().position(|drawn| *drawn == tag.0).unwrap();
            (fan.id, i64::try_from(rank).unwrap() - 10)
        });
        world.rooms.renumber(event, 10, &numbered.collect::<Vec<_>>()).await.unwrap();
        world.queue.draw(event).await.unwrap();
        stand_as_drawn(&world, event, &fans).await;
    }

    async fn several_processes_draw_at_once_and_come_to_the_same(world: World) {
        for _ in 0..5 {
            let event = lottery(&world).await;
            let fans = world.come(event, 8).await;
            world.clock.advance(30 * MINUTE);
            let others: Vec<QueueService> =
                (0..4).map(|_| world.another(QueueSettings::default())).collect();
            for other in &others {
                other.load().await.unwrap();
            }
            // One of those who gathered leaves in the middle of it all.
            let (drawn, left) = tokio::join!(
                join_all(others.iter().map(|other| other.draw(event))),
                fans[0].leave(event),
            );
            left.ok();
            drawn.into_iter().for_each(|drawn| drawn.unwrap());
            world.queue.load().await.unwrap();
            stand_as_drawn(&world, event, &fans[1..]).await;
        }
    }

    async fn who_leaves_is_gone_and_who_comes_again_stands_behind(world: World) {
        let event = lottery(&world).await;
        let fans = world.come(event, 10).await;
        fans[0].leave(event).await.ok();
        world.clock.advance(30 * MINUTE);
        draw::close(&world.queue, event, world.clock.now()).await.unwrap();
        fans[1].leave(event).await.ok();
        fans[1].check(event).await.ok();
        draw::fix_entrants(&world.queue, event, world.clock.now()).await.unwrap();
        draw::order_entrants(&world.queue, event, world.clock.now()).await.unwrap();
        fans[2].leave(event).await.ok();
        fans[2].check(event).await.ok();
        draw::number_entrants(&world.queue, event).await.unwrap();
        fans[3].leave(event).await.ok();
        fans[3].check(event).await.ok();
        draw::finish(&world.queue, event).await.unwrap();
        stand_as_drawn(&world, event, &fans[4..]).await;
        let report = checked(&world, event).await;
        let took_part: Vec<bool> =
            fans[..5].iter().map(|fan| report.rank_of(fan.id).is_some()).collect();
        assert_eq!(took_part, [false, false, true, true, true]);
        for (fan, position) in fans[1..4].iter().zip([7, 8, 9]) {
            assert_eq!(fan.status(event).await.ok()["position"], json!(position));
        }
    }

    /// What is mixed in appears after the list was published. The secret alone decides nothing.
    async fn the_beacon_decides_after_the_list_is_published(world: World) {
        let event = lottery(&world).await;
        let fans = world.come(event, 10).await;
        world.clock.advance(30 * MINUTE);
        let drand = world.another_with_beacon(BeaconSource::Drand(publisher().await));
        let now = world.clock.now();
        draw::close(&drand, event, now).await.unwrap();
        draw::fix_entrants(&drand, event, now).await.unwrap();
        let fixed = public_draw(&world, event).await;
        assert!(fixed["digest"].is_string() && fixed["beaconRound"].is_number(), "{fixed}");
        assert_eq!((&fixed["beacon"], &fixed["secret"]), (&Value::Null, &Value::Null));
        // The round has not appeared.
        let pending = draw::order_entrants(&drand, event, now).await.unwrap_err();
        assert!(matches!(pending, DrawError::BeaconPending(_)), "{pending}");
        let refused = draw::number_entrants(&drand, event).await;
        assert_eq!(refused, Err(DrawError::OutOfOrder));
        // As if the list had been fixed just before a round that the test knows.
        let times = ["2023-09-01T00:00:00Z", "2023-09-15T10:59:57Z", "2023-09-15T10:59:58Z"];
        let [committed, closed, fixed] = times.map(|time| time.parse::<Timestamp>().unwrap());
        let moved = "update draws set committed_at = $1, closed_at = $2, fixed_at = $3";
        let moved = world
            .db
            .write(move |tx| tx.execute(moved, urr_storage::params![committed, closed, fixed]));
        moved.await.unwrap_or_else(failed);
        draw::order_entrants(&drand, event, now).await.unwrap();
        draw::number_entrants(&drand, event).await.unwrap();
        draw::finish(&world.queue, event).await.unwrap();
        stand_as_drawn(&world, event, &fans).await;
        let report = checked(&world, event).await.to_string();
        assert!(report.contains("signed by drand for round 657413"), "{report}");
    }

    async fn a_beacon_that_cannot_be_reached_delays_the_opening_for_a_while(world: World) {
        let event = lottery(&world).await;
        world.come(event, 3).await;
        world.clock.advance(30 * MINUTE);
        let nobody = DrandClient::new(Outbound::new(), vec!["http://127.0.0.1:1".to_owned()]);
        let alone = world.another_with_beacon(BeaconSource::Drand(nobody));
        alone.load().await.unwrap();
        let pending = alone.draw(event).await.unwrap_err();
        assert!(matches!(pending, DrawError::BeaconPending(_)), "{pending}");
        world.clock.advance(MINUTE);
        alone.draw(event).await.unwrap();
        world.queue.load().await.unwrap();
        let report = checked(&world, event).await.to_string();
        assert!(report.contains("NO PUBLIC BEACON"), "{report}");
    }

    /// The database does not reveal the secret before the draw.
    async fn the_secret_is_sealed_in_the_database(world: World) {
        let event = lottery(&world).await;
        world.come(event, 3).await;
        world.clock.advance(30 * MINUTE);
        let sealed = "select sealed_secret from draws";
        let sealed = world.db.read(move |tx| {
            tx.query_one(sealed, &[], |row| row.get::<Vec<u8>>("sealed_secret"))
        });
        let sealed: Vec<u8> = sealed.await.unwrap_or_else(failed);
        world.queue.draw(event).await.unwrap();
        let secret = *checked(&world, event).await.header.secret.expose();
        assert!(!sealed.windows(32).any(|window| window == secret));
        // With another key the sale opens, and the file shows that the secret came late.
        let lost = lottery(&world).await;
        world.come(lost, 3).await;
        let damage = "update draws set sealed_secret = commitment where done_at is null";
        world.db.write(move |tx| tx.execute(damage, &[])).await.unwrap_or_else(failed);
        world.clock.advance(30 * MINUTE);
        world.queue.draw(lost).await.unwrap();
        let file = world.fan().get(&format!("/api/queue/draw/{lost}/file"), &[]).await;
        let refused = verify_draw(&*file.bytes).unwrap_err().to_string();
        assert!(refused.contains("committed to after the draw was closed"), "{refused}");
    }

    async fn a_commitment_is_never_replaced(world: World) {
        let event = lottery(&world).await;
        let first = public_draw(&world, event).await;
        world.clock.advance(SECOND);
        commit(&world, event, &draw::new_secret()).await;
        assert_eq!(public_draw(&world, event).await, first);
    }

    async fn nothing_is_drawn_before_its_time_or_twice(world: World) {
        let event = lottery(&world).await;
        let fans = world.come(event, 5).await;
        world.queue.draw(event).await.unwrap();
        assert_eq!(public_draw(&world, event).await["state"], "committed");
        world.clock.advance(30 * MINUTE);
        world.queue.draw(event).await.unwrap();
        let done = public_draw(&world, event).await;
        fans[4].leave(event).await.ok();
        world.clock.advance(MINUTE);
        world.queue.draw(event).await.unwrap();
        // A process that has not heard of it yet.
        take_steps(&world.another(QueueSettings::default()), event, world.clock.now(), 5).await;
        assert_eq!(public_draw(&world, event).await, done);
        stand_as_drawn(&world, event, &fans[..4]).await;
    }

    async fn a_lottery_to_which_nobody_came_opens_too(world: World) {
        let event = lottery(&world).await;
        world.clock.advance(30 * MINUTE);
        world.queue.draw(event).await.unwrap();
        assert_eq!(checked(&world, event).await.header.count, 0);
        assert_eq!(world.fan().check(event).await.ok()["status"], "active");
    }

    /// It cannot come to that; but if it does, the sale opens and the file shows what happened.
    async fn a_lottery_without_a_commitment_opens_and_proves_nothing(world: World) {
        let opens_at = world.clock.now() + 30 * MINUTE;
        let event = world.event_with(json!({ "saleStartsAt": opens_at })).await;
        world.set_room(event, "opening = 'lottery'").await;
        world.come(event, 3).await;
        world.clock.advance(30 * MINUTE);
        world.queue.draw(event).await.unwrap();
        let file = world.fan().get(&format!("/api/queue/draw/{event}/file"), &[]).await;
        let refused = verify_draw(&*file.bytes).unwrap_err().to_string();
        assert!(refused.contains("committed to after the draw was closed"), "{refused}");
    }

    async fn only_a_lottery_has_a_draw(world: World) {
        let fan = world.fan();
        for (event, code) in
            [(world.open_event().await, "NO_LOTTERY"), (Uuid::from_u128(404), "EVENT_NOT_FOUND")]
        {
            fan.get(&format!("/api/queue/draw/{event}"), &[]).await.refused(404, code);
            fan.get(&format!("/api/queue/draw/{event}/file"), &[]).await.refused(404, code);
        }
        fan.get("/api/queue/draw/x", &[]).await.refused(400, "INVALID_PATH");
    }

    async fn a_due_draw_is_done_without_anybody_asking(world: World) {
        let event = lottery(&world).await;
        let fans = world.come(event, 3).await;
        world.clock.advance(30 * MINUTE);
        // A user who was not seen for this long would be dropped.
        for fan in &fans {
            fan.status(event).await.ok();
        }
        let stop = CancellationToken::new();
        let (queue, until) = (world.queue.clone(), stop.clone());
        let jobs = tokio::spawn(async move { queue.run_jobs(until).await });
        eventually("the draw is done", async || {
            let state = public_draw(&world, event).await["state"].clone();
            (state == "done").then_some(())
        })
        .await;
        stop.cancel();
        jobs.await.unwrap();
        assert_eq!(checked(&world, event).await.header.count, 3);
    }

    async fn a_hundred_thousand_are_drawn(world: World) {
        const PEOPLE: usize = 100_000;
        let event = lottery(&world).await;
        let rules = AdmissionRules {
            admission: AdmissionState::Closed,
            threshold: 1,
            admitted_per_second_max: 1,
            slot_ttl: MINUTE,
            slot_max: MINUTE,
            waiting_max: 1_000_000,
            queues_per_user_max: 3,
        };
        let now = world.clock.now();
        let request = |user_id| RoomRequest { event_id: event, user_id, now };
        let users: Vec<Uuid> = (0..PEOPLE).map(|_| world.ids.next_id()).collect();
        let joins = stream::iter(&users).map(|user_id| join(&world, request(*user_id), &rules));
        assert!(joins.buffer_unordered(256).all(async |is_waiting| is_waiting).await);
        world.clock.advance(30 * MINUTE);
        world.queue.draw(event).await.unwrap();
        let report = checked(&world, event).await;
        assert_eq!(report.header.count as usize, PEOPLE);
        for user_id in users.iter().step_by(9_973) {
            let seen = world.rooms.poll(request(*user_id), &rules).await.unwrap();
            let UserStatus::Waiting(place) = seen.status else { panic!("{seen:?}") };
            assert_eq!(Some(place.position), report.rank_of(*user_id));
            assert_eq!(place.number, i64::from(place.position) - 1 - 100_000);
        }
    }

    async fn a_draw_is_read_once_a_second_for_all_who_ask(world: World) {
        let event = lottery(&world).await;
        let before = public_draw(&world, event).await;
        world.close_database().await;
        assert_eq!(public_draw(&world, event).await, before);
        world.clock.advance(SECOND);
        let answer = world.fan().get(&format!("/api/queue/draw/{event}"), &[]).await;
        assert!(answer.status.is_server_error(), "it is read again");
    }

    /// Readers who take the file and do not read it cannot hide it from others.
    async fn slow_readers_lose_their_places_to_others(world: World) {
        let event = lottery(&world).await;
        world.come(event, 3).await;
        world.clock.advance(30 * MINUTE);
        world.queue.draw(event).await.unwrap();
        let path = format!("/api/queue/draw/{event}/file");
        let mut unread = Vec::new();
        for _ in 0..64 {
            let request = Request::get(&path).body(Body::empty()).unwrap();
            unread.push(world.fan().response(request).await);
        }
        let refused = world.fan().get(&path, &[]).await;
        refused.refused(503, "TOO_MANY_DOWNLOADS");
        assert!(refused.headers.contains_key("retry-after"));
        // The first of them reads the file after all.
        let whole = Answer::of(unread.remove(0)).await;
        assert_eq!(verify_draw(&*whole.bytes).unwrap().header.count, 3);
        for _ in 0..5 {
            let file = eventually("others get the file while the rest hold on", async || {
                Some(world.fan().get(&path, &[]).await).filter(|answer| answer.status == 200)
            })
            .await;
            assert_eq!(verify_draw(&*file.bytes).unwrap().header.count, 3);
            let request = Request::get(&path).body(Body::empty()).unwrap();
            let response = world.fan().response(request).await;
            unread.push(response);
        }
        drop(unread);
    }

    async fn a_draw_stays_public_when_its_event_is_long_over(world: World) {
        let event = lottery(&world).await;
        world.come(event, 3).await;
        world.clock.advance(30 * MINUTE);
        world.queue.draw(event).await.unwrap();
        let done = public_draw(&world, event).await;
        world.clock.advance(400 * 24 * 60 * MINUTE);
        world.open_event().await;
        world.fan().status(event).await.refused(404, "EVENT_NOT_FOUND");
        assert_eq!(public_draw(&world, event).await, done);
        assert_eq!(checked(&world, event).await.header.count, 3);
    }
}
