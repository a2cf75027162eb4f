//! The live board of a sale: what it shows, who sees it, and what it costs.

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_service::{Caller, Identity, UserRole};

use crate::contract;
use crate::fixture::{Answer, MINUTE, SECOND, World};

const ORGANISER: Uuid = Uuid::from_u128(41);

async fn open(router: &Router, event: Uuid, who: (Uuid, UserRole), seen: Option<&str>) -> Response {
    let mut request = Request::get(format!("/api/admin/events/{event}/live"));
    if let Some(seen) = seen {
        request = request.header("last-event-id", seen);
    }
    let mut request = request.extension(Caller::Gateway).body(Body::empty()).unwrap();
    let (user_id, role) = who;
    Identity { user_id, email: None, role }.write(request.headers_mut());
    router.clone().oneshot(request).await.unwrap()
}

/// A page that shows the board.
struct Board {
    stream: BodyDataStream,
    read: String,
    /// The id of the last message.
    seen: String,
}

impl Board {
    async fn open(world: &World, event: Uuid) -> Board {
        Board::open_as(world, event, world.ids.next_id(), None).await
    }

    async fn open_as(world: &World, event: Uuid, user: Uuid, seen: Option<&str>) -> Board {
        let response = open(&world.router, event, (user, UserRole::Admin), seen).await;
        assert_eq!(response.status(), StatusCode::OK);
        let stream = response.into_body().into_data_stream();
        Board { stream, read: String::new(), seen: String::new() }
    }

    /// None: the stream has ended.
    async fn next(&mut self) -> Option<Value> {
        let next = tokio::time::timeout(30 * SECOND, self.read_next());
        next.await.expect("a message comes")
    }

    async fn read_next(&mut self) -> Option<Value> {
        loop {
            let Some((message, rest)) = self.read.split_once("\n\n") else {
                let bytes = self.stream.next().await?.unwrap();
                self.read.push_str(str::from_utf8(&bytes).unwrap());
                continue;
            };
            let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name));
            let data = field("data:").map(|data| serde_json::from_str(data).unwrap());
            if data.is_some() {
                assert_eq!(field("event:").map(str::trim), Some("board"));
                self.seen = field("id:").unwrap().trim().to_owned();
            }
            self.read = rest.to_owned();
            if data.is_some() {
                return data;
            }
        }
    }
}

fn looks(world: &World) -> u64 {
    let text = world.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix("urr_queue_live_looks_total "));
    line.unwrap().parse().unwrap()
}

fn column(message: &Value, name: &str) -> Vec<Option<i64>> {
    message["seconds"][name].as_array().unwrap().iter().map(Value::as_i64).collect()
}

/// A second passes, in which the jobs run.
async fn tick(world: &World) {
    world.clock.advance(SECOND);
    world.queue.refresh_health().await;
    world.queue.tell_boards().await;
}

contract! {
    async fn a_board_begins_with_the_past_and_goes_on_by_seconds(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        world.ticket.set_left(event, 95, 2);
        world.come(event, 1).await;
        for _ in 0..3 {
            tick(&world).await;
            world.come(event, 1).await;
        }
        assert_eq!((looks(&world), world.ticket.board_calls()), (0, 0), "nobody watches");
        let now = world.clock.now().as_second();
        let span = |at: i64| json!({
            "at": at, "charges": 1, "charged": 500, "refunds": 0, "refunded": 0,
        });
        let room = json!({
            "waiting": 9, "inside": 1, "joinedTotal": 10, "admittedTotal": 1, "leftTotal": 0,
        });
        let mut minute = span(now - 60);
        minute["room"] = room;
        world.money.set_history(json!({
            "totals": {"charges": 7, "charged": 7_000, "refunds": 1, "refunded": 100},
            "seconds": [span(now - 1)], "minutes": [minute],
        }));
        let mut board = Board::open(&world, event).await;
        let first = board.next().await.unwrap();
        assert_eq!(column(&first, "at"), [now - 2, now - 1, now].map(Some));
        assert_eq!(column(&first, "waiting"), [Some(0), Some(1), Some(2)]);
        assert_eq!(column(&first, "inside"), [Some(1); 3]);
        assert_eq!(column(&first, "threshold"), [Some(1); 3]);
        assert_eq!(column(&first, "available"), [Some(95); 3]);
        assert_eq!(column(&first, "arrivals")[1..], [Some(1), Some(1)]);
        assert_eq!(column(&first, "payments"), [None, Some(1), Some(0)]);
        assert_eq!(first["minutes"]["at"], json!([now - 60]));
        assert_eq!(first["minutes"]["waiting"], json!([9]));
        let state = &first["now"];
        assert_eq!((&state["phase"], &state["threshold"]), (&json!("open"), &json!(1)));
        assert_eq!(state["grades"][0]["sold"], json!(6));
        assert_eq!(state["unclearPayments"], json!(2));
        tick(&world).await;
        let next = board.next().await.unwrap();
        assert_eq!(column(&next, "at"), [Some(now + 1)]);
        assert_eq!(column(&next, "sold"), [Some(6)]);
        assert_eq!(column(&next, "errors"), [Some(1)]);
        assert_eq!(next["minutes"], Value::Null);
        assert_eq!(board.seen, (now + 1).to_string());
        world.set_room(event, "is_paused = true, message = '잠시만요'").await;
        tick(&world).await;
        let paused = board.next().await.unwrap();
        assert_eq!(paused["now"]["phase"], "paused");
        assert_eq!(paused["now"]["message"], "잠시만요");
        assert_eq!(column(&paused, "payments"), [Some(1)], "one with every question");
    }

    /// Twenty boards cost what one costs: the sale is looked at once a second.
    async fn twenty_boards_are_one_look_a_second(world: World) {
        let event = world.open_event().await;
        world.come(event, 2).await;
        let mut boards = Vec::new();
        for _ in 0..20 {
            boards.push(Board::open(&world, event).await);
        }
        for board in &mut boards {
            board.next().await.unwrap();
        }
        assert_eq!((looks(&world), world.ticket.board_calls()), (1, 1));
        let statements = world.db.stats().statements;
        for _ in 0..5 {
            tick(&world).await;
            for board in &mut boards {
                board.next().await.unwrap();
            }
        }
        assert_eq!((looks(&world), world.ticket.board_calls()), (6, 6));
        assert_eq!(world.money.calls(), [6, 1, 2], "the past once, declined ones now and then");
        assert_eq!(world.db.stats().statements, statements, "no statement of our own");
        assert!(world.metrics.text().contains("\nurr_queue_live_boards 20\n"));
        drop(boards);
        assert!(world.metrics.text().contains("\nurr_queue_live_boards 0\n"));
        world.clock.advance(MINUTE);
        tick(&world).await;
        tick(&world).await;
        assert_eq!(looks(&world), 6, "nobody watches any more");
    }

    async fn only_those_who_run_the_sale_see_it(world: World) {
        let event = world.event_with(json!({ "organiserId": ORGANISER })).await;
        let mut watched = Vec::new();
        for (who, role) in [
            (ORGANISER, UserRole::Organiser),
            (Uuid::from_u128(2), UserRole::Support),
            (Uuid::from_u128(3), UserRole::Admin),
        ] {
            let response = open(&world.router, event, (who, role), None).await;
            assert_eq!(response.status(), StatusCode::OK, "{role:?}");
            watched.push(response);
        }
        for (role, code) in [
            (UserRole::Organiser, "NOT_YOUR_EVENT"),
            (UserRole::Staff, "ROLE_REQUIRED"),
            (UserRole::User, "ROLE_REQUIRED"),
        ] {
            let other = (Uuid::from_u128(42), role);
            Answer::of(open(&world.router, event, other, None).await).await.refused(403, code);
        }
        let admin = (Uuid::from_u128(3), UserRole::Admin);
        let unknown = open(&world.router, Uuid::from_u128(77), admin, None).await;
        Answer::of(unknown).await.refused(404, "EVENT_NOT_FOUND");
    }

    /// Also at another process, which has seen the same rooms.
    async fn a_board_that_was_away_misses_no_second(world: World) {
        let event = world.open_event().await;
        world.come(event, 1).await;
        let other = world.another(urr_queue::QueueSettings::default());
        other.load().await.unwrap();
        let user = world.ids.next_id();
        let mut board = Board::open_as(&world, event, user, None).await;
        board.next().await.unwrap();
        tick(&world).await;
        board.next().await.unwrap();
        let (seen, second) = (board.seen.clone(), world.clock.now().as_second());
        drop(board);
        for _ in 0..4 {
            world.clock.advance(SECOND);
            other.refresh_health().await;
            world.queue.refresh_health().await;
            world.queue.tell_boards().await;
        }
        let missed = [1, 2, 3, 4].map(|later| Some(second + later));
        let mut again = Board::open_as(&world, event, user, Some(&seen)).await;
        let first = again.next().await.unwrap();
        assert_eq!((column(&first, "at"), &first["minutes"]), (missed.to_vec(), &Value::Null));
        tick(&world).await;
        assert_eq!(column(&again.next().await.unwrap(), "at"), [Some(second + 5)]);
        let elsewhere = world.at(&other, &world.fan()).router;
        let response = open(&elsewhere, event, (user, UserRole::Admin), Some(&seen)).await;
        let stream = response.into_body().into_data_stream();
        let mut elsewhere = Board { stream, read: String::new(), seen: String::new() };
        let at = column(&elsewhere.next().await.unwrap(), "at");
        assert_eq!(at[..4], missed);
        // An id that is not ours begins anew.
        let lost = (second + 1_000).to_string();
        let mut lost = Board::open_as(&world, event, user, Some(&lost)).await;
        assert!(lost.next().await.unwrap()["minutes"].is_object());
    }

    async fn a_board_that_does_not_read_is_ended_and_not_kept_for(world: World) {
        let event = world.open_event().await;
        let (mut slow, mut quick) =
            (Board::open(&world, event).await, Board::open(&world, event).await);
        quick.next().await.unwrap();
        for _ in 0..20 {
            tick(&world).await;
            quick.next().await.unwrap();
        }
        assert!(slow.next().await.is_some(), "what it was sent first");
        assert_eq!(slow.next().await, None);
        tick(&world).await;
        assert!(quick.next().await.is_some(), "others go on");
    }

    async fn nobody_opens_too_many_boards_and_a_process_that_ends_closes_them(world: World) {
        let (event, user) = (world.open_event().await, world.ids.next_id());
        let mut boards = Vec::new();
        for _ in 0..10 {
            boards.push(Board::open_as(&world, event, user, None).await);
        }
        let refused = open(&world.router, event, (user, UserRole::Admin), None).await;
        Answer::of(refused).await.refused(429, "STREAM_LIMIT");
        boards.remove(0);
        let mut last = Board::open_as(&world, event, user, None).await;
        last.next().await.unwrap();
        world.queue.close_streams();
        assert_eq!(last.next().await, None);
    }

    async fn a_service_that_is_away_is_named_and_its_last_numbers_stay(world: World) {
        let event = world.open_event().await;
        let mut board = Board::open(&world, event).await;
        board.next().await.unwrap();
        world.ticket.fail(true);
        world.money.fail(true);
        tick(&world).await;
        let next = board.next().await.unwrap();
        let missing = next["now"]["missing"].as_array().unwrap();
        assert!(missing.contains(&json!("ticket")) && missing.contains(&json!("stats")));
        assert_eq!(column(&next, "sold"), [Some(6)]);
        assert_eq!(next["now"]["grades"][0]["total"], json!(100));
        world.ticket.fail(false);
        world.money.fail(false);
    }
}
