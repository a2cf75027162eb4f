//! What administrators and operators see and change: figures, wishes, pauses, messages, the end of a
//! line; who may not; and the log of it all.

mod control;
mod room_change;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::{Timestamp, Uuid};
use urr_queue::QueueService;
use urr_service::{Caller, Identity, UserRole};

use crate::contract;
use crate::fixture::{Answer, HOUR, SECOND, World};

const ADMIN: Uuid = Uuid::from_u128(99);

/// The caller of a request.
#[derive(Clone, Copy)]
enum TestCaller {
    Nobody,
    Fan,
    Admin,
    Organiser(Uuid),
    Service(Caller),
}

/// Someone with something to say, at one of the processes.
struct Desk {
    router: Router,
    who: TestCaller,
}

impl Desk {
    fn of(world: &World, who: TestCaller) -> Desk {
        Desk { router: world.router.clone(), who }
    }

    /// An administrator at another process.
    fn at(world: &World, queue: &QueueService) -> Desk {
        Desk { router: world.at(queue, &world.fan()).router, who: TestCaller::Admin }
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Answer {
        let (caller, identity) = match self.who {
            TestCaller::Nobody => (Caller::Gateway, None),
            TestCaller::Fan => (Caller::Gateway, Some((ADMIN, UserRole::User))),
            TestCaller::Admin => (Caller::Gateway, Some((ADMIN, UserRole::Admin))),
            TestCaller::Organiser(id) => (Caller::Gateway, Some((id, UserRole::Organiser))),
            TestCaller::Service(caller) => (caller, None),
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json").extension(caller);
        let mut request = request.body(Body::from(body.to_string())).unwrap();
        if let Some((user_id, role)) = identity {
            Identity { user_id, email: None, role }.write(request.headers_mut());
        }
        Answer::of(self.router.clone().oneshot(request).await.unwrap()).await
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, Value::Null).await.ok()
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, body).await
    }

    async fn room(&self, event: Uuid) -> Value {
        self.get(&format!("/api/admin/queue/{event}")).await["room"].clone()
    }

    async fn patch(&self, event: Uuid, body: Value) -> Answer {
        self.send(Method::PATCH, &format!("/api/admin/queue/{event}"), body).await
    }

    async fn order(&self, event: Uuid, verb: &str, body: Value) -> Answer {
        self.post(&format!("/api/admin/queue/{event}/{verb}"), body).await
    }

    /// The lines of the log of an event, the newest first.
    async fn log(&self, event: Uuid) -> Vec<Value> {
        let listed = self.get(&format!("/api/admin/queue/log?resourceId={event}")).await;
        listed["entries"].as_array().unwrap().clone()
    }

    async fn actions(&self, event: Uuid) -> Vec<String> {
        let lines = self.log(event).await;
        lines.iter().map(|line| line["action"].as_str().unwrap().to_owned()).collect()
    }
}

/// An event with this sale.
async fn event_on_sale(world: &World, from: Timestamp, to: Timestamp) -> Uuid {
    world.event_with(json!({ "saleStartsAt": from, "saleEndsAt": to })).await
}

contract! {
    async fn a_fan_and_an_operator_without_a_name_are_not_let_in(world: World) {
        let event = world.open_event().await;
        let (get, post) = (Method::GET, Method::POST);
        let public = [
            (&get, "/api/admin/queue".to_owned()),
            (&get, "/api/admin/queue/log".to_owned()),
            (&get, format!("/api/admin/queue/{event}")),
            (&Method::PATCH, format!("/api/admin/queue/{event}")),
            (&post, format!("/api/admin/queue/{event}/pause")),
            (&post, format!("/api/admin/queue/{event}/resume")),
            (&post, format!("/api/admin/queue/{event}/clear")),
            (&Method::PUT, format!("/api/admin/queue/{event}/message")),
            (&Method::DELETE, format!("/api/admin/queue/{event}/message")),
            (&get, format!("/api/queue/admin/{event}")),
            (&post, format!("/api/queue/admin/clear/{event}")),
            (&post, format!("/api/queue/admin/threshold/{event}?threshold=5")),
        ];
        for (method, path) in public {
            // The log and the paths of the original system are for administrators only.
            let is_admins = path.ends_with("/log") || path.starts_with("/api/queue/admin");
            let role_code = if is_admins { "ADMIN_REQUIRED" } else { "ROLE_REQUIRED" };
            for (who, status, code) in [
                (TestCaller::Nobody, 401, "AUTHENTICATION_REQUIRED"),
                (TestCaller::Fan, 403, role_code),
                // An operator is no user: what administrators do has a name in the log.
                (TestCaller::Service(Caller::Operator), 401, "AUTHENTICATION_REQUIRED"),
            ] {
                let body = json!({ "confirm": event, "paused": true });
                let answer = Desk::of(&world, who).send(method.clone(), &path, body).await;
                answer.refused(status, code);
            }
        }
        let others = Caller::ALL.into_iter().filter(|caller| *caller != Caller::Operator);
        let others: Vec<TestCaller> = others.map(TestCaller::Service).chain([TestCaller::Admin]).collect();
        for (method, path) in [
            (&get, "/internal/queue/admin/rooms".to_owned()),
            (&get, format!("/internal/queue/admin/rooms/{event}")),
            (&post, format!("/internal/queue/admin/rooms/{event}")),
            (&post, format!("/internal/queue/admin/rooms/{event}/clear")),
        ] {
            for who in &others {
                let answer = Desk::of(&world, *who).send(method.clone(), &path, json!({})).await;
                answer.refused(403, "CALLER_NOT_ALLOWED");
            }
        }
        let admin = Desk::of(&world, TestCaller::Admin);
        assert_eq!(admin.log(event).await.len(), 0, "nobody has done anything");
        assert_eq!(admin.room(event).await["paused"], false);
    }

    async fn the_figures_of_a_room_are_told_in_both_forms(world: World) {
        let event = world.open_event().await;
        let admin = Desk::of(&world, TestCaller::Admin);
        admin.patch(event, json!({ "threshold": 2 })).await.ok();
        world.come(event, 5).await;
        let told = admin.room(event).await;
        let metrics = ["waiting", "active", "available", "threshold", "admittedTotal", "leftTotal"];
        let metrics = metrics.map(|name| told[name].as_u64().unwrap());
        assert_eq!(metrics, [3, 2, 0, 2, 2, 0], "{told}");
        assert_eq!((&told["phase"], &told["soldOut"]), (&json!("open"), &json!(false)));
        assert_eq!(told["settings"]["threshold"], json!({ "value": 2, "source": "event" }));
        let rate = json!({ "value": 100, "source": "default" });
        assert_eq!(told["settings"]["admittedPerSecondMax"], rate);
        assert_eq!(told["settings"]["opening"], json!({ "value": "fifo", "source": "default" }));
        assert_eq!(told["autopilot"], json!({ "enabled": false, "ratePerSecond": null }));
        assert_eq!(told["lastWait"], json!(null), "nobody has left the room");
        let original = admin.get(&format!("/api/queue/admin/{event}")).await;
        let expected = json!({ "eventId": event, "queueSize": 3, "currentUsers": 2,
                               "threshold": 2, "available": 0, "phase": "open" });
        assert_eq!(original, expected);
    }

    async fn the_wait_of_the_last_is_told_with_its_range(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "is_paused = true").await;
        world.come(event, 5).await;
        world.set_room(event, "is_paused = false").await;
        let told = Desk::of(&world, TestCaller::Admin).room(event).await;
        let wait = ["from", "estimatedWait", "to"].map(|name| told["lastWait"][name].as_u64());
        assert!(wait.is_sorted() && wait[0].is_some(), "{told}");
    }

    async fn rooms_with_people_are_listed_first_and_those_of_tomorrow_too(world: World) {
        let now = world.clock.now();
        let quiet = world.open_event().await;
        let tomorrow = event_on_sale(&world, now + 24 * HOUR, now + 72 * HOUR).await;
        let far = event_on_sale(&world, now + 240 * HOUR, now + 480 * HOUR).await;
        let over = event_on_sale(&world, now - 72 * HOUR, now - HOUR).await;
        let busy = world.open_event().await;
        world.come(busy, 1).await;
        let admin = Desk::of(&world, TestCaller::Admin);
        let list = async |query: &str| {
            let listed = admin.get(&format!("/api/admin/queue{query}")).await;
            let rooms = listed["rooms"].as_array().unwrap().iter();
            let ids: Vec<Value> = rooms.map(|room| room["eventId"].clone()).collect();
            (ids, listed["pagination"]["total"].as_u64())
        };
        let all = vec![json!(busy), json!(quiet), json!(tomorrow)];
        assert_eq!(list("").await, (all, Some(3)));
        assert_eq!(list("?limit=1&page=2").await, (vec![json!(quiet)], Some(3)));
        assert_eq!(list("?limit=1&page=4").await, (vec![], Some(3)));
        // One that is not listed can be looked at all the same.
        assert_eq!(admin.room(far).await["phase"], "closed");
        assert_eq!(admin.room(over).await["phase"], "over");
    }

    async fn an_organiser_sees_the_rooms_of_their_own_events_only(world: World) {
        let [mina, junho, stranger] = [1, 2, 3].map(|number| Uuid::from_u128(0xb00 + number));
        let own = world.event_with(json!({ "organiserId": mina })).await;
        let other = world.event_with(json!({ "organiserId": junho })).await;
        let nobodys = world.open_event().await;
        for event in [own, other, nobodys] {
            world.come(event, 1).await;
        }
        let listed = async |who: TestCaller| {
            let listed = Desk::of(&world, who).get("/api/admin/queue").await;
            let rooms = listed["rooms"].as_array().unwrap().iter();
            let mut ids: Vec<String> =
                rooms.map(|room| room["eventId"].as_str().unwrap().to_owned()).collect();
            assert_eq!(listed["pagination"]["total"], json!(ids.len()), "the total tells no more");
            ids.sort();
            ids
        };
        assert_eq!(listed(TestCaller::Organiser(mina)).await, [own.to_string()]);
        assert_eq!(listed(TestCaller::Organiser(junho)).await, [other.to_string()]);
        assert_eq!(listed(TestCaller::Organiser(stranger)).await, [""; 0]);
        assert_eq!(listed(TestCaller::Admin).await.len(), 3, "the control: all of them");
        let desk = Desk::of(&world, TestCaller::Organiser(mina));
        assert_eq!(desk.room(own).await["active"], json!(1));
        for event in [other, nobodys] {
            let path = format!("/api/admin/queue/{event}");
            desk.send(Method::GET, &path, Value::Null).await.refused(403, "NOT_YOUR_EVENT");
        }
        // The event is handed over.
        let mut facts = world.facts(own, 2);
        facts["organiserId"] = json!(junho);
        world.hear("EVENT_UPDATED", facts).await;
        assert_eq!(listed(TestCaller::Organiser(mina)).await, [""; 0]);
        assert_eq!(listed(TestCaller::Organiser(junho)).await.len(), 2);
    }

    async fn an_organiser_runs_the_rooms_of_their_own_events_only(world: World) {
        let [mina, junho] = [1, 2].map(|number| Uuid::from_u128(0xb00 + number));
        let own = world.event_with(json!({ "organiserId": mina })).await;
        let other = world.event_with(json!({ "organiserId": junho })).await;
        let nobodys = world.open_event().await;
        for event in [own, other, nobodys] {
            world.come(event, 1).await;
        }
        let desk = Desk::of(&world, TestCaller::Organiser(mina));
        let admin = Desk::of(&world, TestCaller::Admin);
        let orders = |event: Uuid| {
            let room = format!("/api/admin/queue/{event}");
            let message = format!("{room}/message");
            [
                (Method::PATCH, room.clone(), json!({ "threshold": 7 })),
                (Method::POST, format!("{room}/pause"), json!({})),
                (Method::PUT, message.clone(), json!({ "message": "곧 시작합니다" })),
                (Method::DELETE, message, json!({})),
                (Method::POST, format!("{room}/resume"), json!({})),
                (Method::POST, format!("{room}/clear"), json!({ "confirm": event })),
            ]
        };
        for event in [other, nobodys] {
            for (method, path, body) in orders(event) {
                let answer = desk.send(method, &path, body).await;
                answer.refused(403, "NOT_YOUR_EVENT");
            }
            // How many users there are is not said either.
            let answer = desk.order(event, "clear", json!({})).await;
            answer.refused(403, "NOT_YOUR_EVENT");
            let room = admin.room(event).await;
            assert_eq!((&room["active"], &room["paused"]), (&json!(1), &json!(false)));
            assert_eq!(admin.log(event).await.len(), 0);
        }
        for (method, path, body) in orders(own) {
            desk.send(method, &path, body).await.ok();
        }
        let lines = admin.log(own).await;
        assert_eq!(lines.len(), 6);
        assert!(lines.iter().all(|line| line["adminId"] == json!(mina)), "{lines:?}");
        let read = desk.get(&format!("/api/admin/queue/{own}/log")).await;
        assert_eq!(read["entries"], json!(lines), "an organiser reads what was done");
        for event in [other, nobodys] {
            let path = format!("/api/admin/queue/{event}/log");
            desk.send(Method::GET, &path, Value::Null).await.refused(403, "NOT_YOUR_EVENT");
        }
        assert_eq!(admin.room(own).await["active"], json!(0));
        // The paths of the original system stay with administrators.
        let path = format!("/api/queue/admin/clear/{own}");
        desk.post(&path, json!({})).await.refused(403, "ADMIN_REQUIRED");
        // Who has handed the event over, runs its room no longer.
        let mut facts = world.facts(own, 2);
        facts["organiserId"] = json!(junho);
        world.hear("EVENT_UPDATED", facts).await;
        desk.patch(own, json!({ "paused": true })).await.refused(403, "NOT_YOUR_EVENT");
    }

    async fn an_event_that_nobody_knows_or_that_was_deleted_has_no_room(world: World) {
        let deleted = world.open_event().await;
        world.hear("EVENT_DELETED", json!({ "eventId": deleted, "revision": 2 })).await;
        let admin = Desk::of(&world, TestCaller::Admin);
        for event in [world.ids.next_id(), deleted] {
            for (method, path, body) in [
                (Method::GET, format!("/api/admin/queue/{event}"), json!({})),
                (Method::PATCH, format!("/api/admin/queue/{event}"), json!({ "paused": true })),
                (Method::POST, format!("/api/admin/queue/{event}/pause"), json!({})),
                (Method::POST, format!("/api/admin/queue/{event}/resume"), json!({})),
                (Method::POST, format!("/api/admin/queue/{event}/clear"), json!({})),
                (
                    Method::POST,
                    format!("/api/admin/queue/{event}/clear"),
                    json!({ "confirm": event }),
                ),
                (
                    Method::PUT,
                    format!("/api/admin/queue/{event}/message"),
                    json!({ "message": "a" }),
                ),
                (Method::DELETE, format!("/api/admin/queue/{event}/message"), json!({})),
                (Method::GET, format!("/api/queue/admin/{event}"), json!({})),
                (Method::POST, format!("/api/queue/admin/clear/{event}"), json!({})),
                (
                    Method::POST,
                    format!("/api/queue/admin/threshold/{event}?threshold=5"),
                    json!({}),
                ),
            ] {
                admin.send(method, &path, body).await.refused(404, "EVENT_NOT_FOUND");
            }
            assert_eq!(admin.log(event).await.len(), 0);
        }
    }

    async fn the_log_is_given_out_in_pages_the_newest_first(world: World) {
        let (event, other) = (world.open_event().await, world.open_event().await);
        let admin = Desk::of(&world, TestCaller::Admin);
        for threshold in 1..=5 {
            world.clock.advance(SECOND);
            admin.patch(event, json!({ "threshold": threshold })).await.ok();
        }
        world.clock.advance(SECOND);
        admin.patch(other, json!({ "threshold": 9 })).await.ok();
        let list = async |query: String| {
            let listed = admin.get(&format!("/api/admin/queue/log?{query}")).await;
            let lines = listed["entries"].as_array().unwrap().iter();
            let after = |line: &Value| line["details"]["threshold"]["after"].as_u64().unwrap();
            (lines.map(after).collect::<Vec<_>>(), listed["pagination"]["total"].as_u64())
        };
        assert_eq!(list(format!("resourceId={event}&limit=2")).await, (vec![5, 4], Some(5)));
        assert_eq!(list(format!("resourceId={event}&limit=2&page=3")).await, (vec![1], Some(5)));
        assert_eq!(list(format!("resourceId={other}")).await, (vec![9], Some(1)));
        assert_eq!(list("limit=3".to_owned()).await, (vec![9, 5, 4], Some(6)));
    }

    async fn operators_do_the_same_and_the_log_says_that_it_was_them(world: World) {
        let event = world.open_event().await;
        let admin = Desk::of(&world, TestCaller::Admin);
        let operator = Desk::of(&world, TestCaller::Service(Caller::Operator));
        let path = format!("/internal/queue/admin/rooms/{event}");
        let told = operator.post(&path, json!({ "threshold": 1 })).await.ok();
        assert_eq!(told["room"]["threshold"], 1);
        operator.post(&path, json!({ "threshold": 0 })).await.refused(400, "INVALID_THRESHOLD");
        world.come(event, 3).await;
        assert_eq!(operator.get(&path).await["room"], admin.room(event).await);
        let listed = operator.get("/internal/queue/admin/rooms").await;
        assert_eq!(listed["rooms"][0]["eventId"], json!(event));

        let clear = format!("{path}/clear");
        operator.post(&clear, json!({})).await.refused(400, "CONFIRMATION_REQUIRED");
        let cleared = operator.post(&clear, json!({ "confirm": event })).await.ok();
        assert_eq!(cleared, json!({ "eventId": event, "waiting": 2, "active": 1 }));
        let lines = admin.log(event).await;
        assert_eq!(lines.len(), 2);
        for line in lines {
            assert_eq!((&line["by"], &line["adminId"]), (&json!("operator"), &Value::Null));
        }
    }
}
