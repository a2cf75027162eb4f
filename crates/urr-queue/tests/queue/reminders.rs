//! Being told that one's turn is near: asked for, told once, taken back.

mod crash;
mod phases;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use urr_kernel::Uuid;
use urr_queue::{QueueService, QueueSettings};
use urr_storage::{Row, StorageError, params};
use urr_test::eventually;

use crate::contract;
use crate::fixture::{Answer, Fan, HOUR, MINUTE, SECOND, World};

/// So many at the front are near while nobody knows when the slots are given back.
const NEAR: usize = 100;

impl Fan {
    async fn ask_reminder(&self, event_id: Uuid) -> Answer {
        self.post(&format!("/api/queue/{event_id}/reminder")).await
    }

    async fn withdraw_reminder(&self, event_id: Uuid) -> Answer {
        let path = format!("/api/queue/{event_id}/reminder");
        self.send(Request::delete(path).body(Body::empty()).unwrap()).await
    }

    /// They ask, and will be told.
    #[track_caller]
    fn is_noted(answer: &Answer) {
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{:?}", answer.bytes);
        assert!(answer.bytes.is_empty());
    }
}

impl World {
    async fn rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        read: fn(&Row<'_>) -> Result<T, StorageError>,
    ) -> Vec<T> {
        let rows = self.db.read(move |tx| tx.query(sql, &[], read)).await;
        rows.unwrap_or_else(|error: StorageError| panic!("{error}"))
    }

    /// What was announced, oldest first.
    async fn announced(&self) -> Vec<Value> {
        let bodies = self.rows("select body from outbox order by seq", |row| row.get("body"));
        let bodies: Vec<String> = bodies.await;
        let all = bodies.iter().map(|body| serde_json::from_str::<Value>(body).unwrap());
        // The statistics are told something, too.
        all.filter(|event| event["type"] != "QUEUE_OBSERVED").collect()
    }

    /// Who was told, in order of their ids, and what position they had.
    async fn told(&self) -> Vec<(Uuid, u64)> {
        let announced = self.announced().await;
        let mut told: Vec<_> = announced
            .iter()
            .map(|event| {
                assert_eq!(event["type"], "ADMISSION_NEAR");
                let user_id = event["data"]["userId"].as_str().unwrap();
                (user_id.parse().unwrap(), event["data"]["position"].as_u64().unwrap())
            })
            .collect();
        told.sort_unstable();
        told
    }

    /// Whose reminders are kept, in order of their ids, with the numbers that were noted.
    async fn kept(&self) -> Vec<(Uuid, i64)> {
        let sql = "select user_id, number from reminders order by user_id";
        self.rows(sql, |row| Ok((row.get("user_id")?, row.get("number")?))).await
    }

    async fn kept_users(&self) -> Vec<Uuid> {
        self.kept().await.into_iter().map(|(user_id, _)| user_id).collect()
    }

    /// A turn of the reminders, a second later: what is known of the room as a whole is new then.
    async fn remind(&self, event_id: Uuid) {
        self.clock.advance(SECOND);
        self.queue.remind(event_id).await;
    }

    /// A sale with one slot, which is taken, and so many who wait.
    async fn slow_line(&self, count: usize) -> (Uuid, Vec<Fan>) {
        let event = self.open_event().await;
        self.set_room(event, "threshold = 1, admitted_per_second_max = 1").await;
        self.come(event, 1).await;
        (event, self.come(event, count).await)
    }

    /// Some wait, of whom all want to be told, and nobody is near.
    async fn paused_line(&self, count: usize) -> (Uuid, Vec<Fan>) {
        let event = self.open_event().await;
        self.set_room(event, "is_paused = true").await;
        let fans = self.come(event, count).await;
        for fan in &fans {
            Fan::is_noted(&fan.ask_reminder(event).await);
        }
        (event, fans)
    }
}

fn sorted(fans: &[Fan]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = fans.iter().map(|fan| fan.id).collect();
    ids.sort_unstable();
    ids
}

contract! {
    async fn who_asks_twice_is_told_once_when_their_turn_is_near(world: World) {
        let (event, fans) = world.slow_line(NEAR + 10).await;
        let last = &fans[NEAR + 9];
        for _ in 0..2 {
            Fan::is_noted(&last.ask_reminder(event).await);
        }
        let number = last.status(event).await.ok()["number"].as_i64().unwrap();
        assert_eq!(world.kept().await, [(last.id, number)]);
        world.remind(event).await;
        assert_eq!(world.told().await, [], "not yet");
        assert_eq!(world.kept_users().await, [last.id]);
        for gone in &fans[..9] {
            gone.leave(event).await.ok();
        }
        world.remind(event).await;
        assert_eq!(world.told().await, [], "there is one too many before them");
        fans[9].leave(event).await.ok();
        world.remind(event).await;
        assert_eq!(world.told().await, [(last.id, NEAR as u64)]);
        assert_eq!(world.kept().await, []);
        world.remind(event).await;
        assert_eq!(world.told().await.len(), 1, "once");
        assert!(world.metrics.text().contains("urr_queue_reminded_total 1\n"));
    }

    async fn what_is_announced_is_an_event_like_all_others(world: World) {
        let (event, fans) = world.slow_line(3).await;
        Fan::is_noted(&fans[2].ask_reminder(event).await);
        world.remind(event).await;
        let mut announced = world.announced().await.remove(0);
        assert_eq!(announced["data"]["sagaId"], announced["correlationid"]);
        for id in ["id", "correlationid"] {
            let id = announced.as_object_mut().unwrap().remove(id).unwrap();
            assert_ne!(id.as_str().unwrap().parse::<Uuid>().unwrap(), Uuid::nil());
        }
        let trace = announced.as_object_mut().unwrap().remove("traceparent").unwrap();
        assert!(trace.as_str().unwrap().starts_with("00-"), "{trace}");
        let expected = json!({
            "specversion": "1.0", "source": "urr/queue", "type": "ADMISSION_NEAR",
            "subject": event, "time": world.clock.now(), "datacontenttype": "application/json",
            "data": {
                "eventId": event, "userId": fans[2].id, "eventTitle": "한강의 밤",
                "position": 3, "estimatedWaitSeconds": null,
                "saleEndsAt": "2026-12-11T12:00:00Z", "type": "ADMISSION_NEAR",
                "sagaId": announced["data"]["sagaId"],
            },
        });
        assert_eq!(announced, expected);
        let sql = "select topic, key from outbox";
        let read = |row: &Row<'_>| Ok((row.get("topic")?, row.get("key")?));
        let rows: Vec<(String, String)> = world.rows(sql, read).await;
        assert_eq!(rows, [("queue-events".to_owned(), event.to_string())]);
    }

    async fn only_who_waits_can_ask(world: World) {
        let (event, fans) = world.slow_line(2).await;
        let stranger = world.fan();
        stranger.ask_reminder(event).await.refused(409, "NOT_WAITING");
        fans[0].leave(event).await.ok();
        fans[0].ask_reminder(event).await.refused(409, "NOT_WAITING");
        let other = world.open_event().await;
        let inside = &world.come(other, 1).await[0];
        inside.ask_reminder(other).await.refused(409, "NOT_WAITING");
        fans[1].ask_reminder(other).await.refused(409, "NOT_WAITING");
        let unknown = Uuid::from_u128(404);
        fans[1].ask_reminder(unknown).await.refused(404, "EVENT_NOT_FOUND");
        assert_eq!(world.kept().await, []);
        // The control.
        Fan::is_noted(&fans[1].ask_reminder(event).await);
        assert_eq!(world.kept_users().await, [fans[1].id]);
        world.hear("EVENT_CANCELLED", json!({"eventId": event, "revision": 2})).await;
        fans[1].ask_reminder(event).await.refused(409, "NOT_WAITING");
    }

    async fn what_was_taken_back_is_not_told_and_can_be_asked_for_again(world: World) {
        let (event, fans) = world.slow_line(2).await;
        for fan in &fans {
            Fan::is_noted(&fan.ask_reminder(event).await);
        }
        for _ in 0..2 {
            Fan::is_noted(&fans[0].withdraw_reminder(event).await);
        }
        world.remind(event).await;
        assert_eq!(world.told().await, [(fans[1].id, 2)], "the other one is the control");
        Fan::is_noted(&fans[0].ask_reminder(event).await);
        world.remind(event).await;
        assert_eq!(world.told().await.len(), 2);
        let stranger = world.fan();
        Fan::is_noted(&stranger.withdraw_reminder(event).await);
        Fan::is_noted(&stranger.withdraw_reminder(Uuid::from_u128(404)).await);
    }

    async fn nobody_takes_back_what_someone_else_has_asked_for(world: World) {
        let (event, fans) = world.slow_line(2).await;
        let (other_event, others) = world.slow_line(1).await;
        Fan::is_noted(&fans[0].ask_reminder(event).await);
        Fan::is_noted(&others[0].ask_reminder(other_event).await);
        Fan::is_noted(&fans[1].withdraw_reminder(event).await);
        Fan::is_noted(&fans[0].withdraw_reminder(other_event).await);
        world.remind(event).await;
        assert_eq!(world.told().await, [(fans[0].id, 1)], "and of this event alone");
        assert_eq!(world.kept_users().await, [others[0].id]);
        assert_eq!(world.queue.events_with_reminders().await.unwrap(), [other_event]);
    }

    /// Also those who ask for a reminder have to be there (the control asks where they stand).
    async fn a_reminder_keeps_nobody_in_line(world: World) {
        let (event, fans) = world.paused_line(2).await;
        for _ in 0..10 {
            world.clock.advance(MINUTE);
            Fan::is_noted(&fans[0].ask_reminder(event).await);
            world.queue.remind(event).await;
            fans[1].status(event).await.ok();
            world.queue.sweep(event).await;
        }
        fans[0].ask_reminder(event).await.refused(409, "NOT_WAITING");
        assert_eq!(fans[1].status(event).await.ok()["position"], json!(1));
        world.remind(event).await;
        assert_eq!(world.kept_users().await, [fans[1].id], "who is gone is forgotten");
        assert_eq!(world.told().await, [], "and not told");
    }

    async fn a_reminder_does_not_prolong_a_turn(world: World) {
        let (event, fans) = world.paused_line(2).await;
        world.set_room(event, "is_paused = false").await;
        world.queue.admit(event).await;
        // Its owner is told once they are in, and then looked for no more; so another asks for them.
        for _ in 0..5 {
            world.clock.advance(2 * MINUTE);
            let users = [fans[0].id];
            world.rooms.locate(event, &users, world.clock.now()).await.unwrap();
            fans[1].status(event).await.ok();
        }
        assert_eq!(fans[0].status(event).await.ok()["status"], "not_in_queue");
        assert_eq!(fans[1].status(event).await.ok()["status"], "active", "the control");
        world.remind(event).await;
        assert_eq!(world.told().await, [(fans[1].id, 0)], "whose turn is over is not told of it");
        assert_eq!(world.kept().await, []);
    }

    async fn who_was_let_in_without_having_been_told_is_told_at_once(world: World) {
        let (event, fans) = world.paused_line(2).await;
        world.set_room(event, "is_paused = false, admitted_per_second_max = 1").await;
        world.queue.admit(event).await;
        // Nobody more is let in: only who is in is told.
        world.set_room(event, "is_paused = true").await;
        world.remind(event).await;
        assert_eq!(world.told().await, [(fans[0].id, 0)]);
        assert_eq!(world.announced().await[0]["data"]["estimatedWaitSeconds"], json!(0));
        assert_eq!(world.kept_users().await, [fans[1].id]);
    }

    async fn several_processes_at_once_tell_everybody_once(world: World) {
        let (event, fans) = world.paused_line(60).await;
        world.set_room(event, "is_paused = false").await;
        world.clock.advance(SECOND);
        let others: [QueueService; 3] = std::array::from_fn(|_| world.another(QueueSettings::default()));
        for other in &others {
            other.load().await.unwrap();
        }
        let turns = others.iter().chain([&world.queue]).cycle().take(12).cloned();
        let turns = turns.map(|queue| tokio::spawn(async move { queue.remind(event).await }));
        join_all(turns).await.into_iter().for_each(|turn| turn.unwrap());
        let told: Vec<Uuid> = world.told().await.into_iter().map(|(user_id, _)| user_id).collect();
        assert_eq!(told, sorted(&fans));
        assert_eq!(world.kept().await, []);
    }

    async fn who_came_again_is_told_of_the_new_place(world: World) {
        let (event, fans) = world.slow_line(NEAR + 2).await;
        Fan::is_noted(&fans[0].ask_reminder(event).await);
        fans[0].leave(event).await.ok();
        fans[0].check(event).await.ok();
        world.remind(event).await;
        assert_eq!(world.told().await, [], "they stand at the end now");
        let number = fans[0].status(event).await.ok()["number"].as_i64().unwrap();
        assert_eq!(world.kept().await, [(fans[0].id, number)]);
        fans[1].leave(event).await.ok();
        fans[2].leave(event).await.ok();
        world.remind(event).await;
        assert_eq!(world.told().await, [(fans[0].id, NEAR as u64)]);
    }

    /// What a long line costs: who cannot be near by their number is not even looked for.
    async fn those_far_behind_are_not_looked_for(world: World) {
        let (event, fans) = world.slow_line(NEAR + 60).await;
        let far = &fans[NEAR + 59];
        Fan::is_noted(&far.ask_reminder(event).await);
        far.leave(event).await.ok();
        world.remind(event).await;
        assert_eq!(world.kept_users().await, [far.id], "nobody has noticed that they are gone");
        for gone in &fans[..70] {
            gone.leave(event).await.ok();
        }
        world.remind(event).await;
        assert_eq!((world.kept().await, world.told().await), (vec![], vec![]));
    }

    async fn more_than_fit_one_transaction_are_told_and_ended_in_one_go(world: World) {
        let (event, users) = many(&world).await;
        world.set_room(event, "is_paused = false, threshold = 2000").await;
        world.remind(event).await;
        let told: Vec<Uuid> = world.told().await.into_iter().map(|(user_id, _)| user_id).collect();
        assert_eq!(told, users);
        assert_eq!(world.kept().await, []);
        let (event, _) = many(&world).await;
        world.hear("EVENT_CANCELLED", json!({"eventId": event, "revision": 2})).await;
        world.remind(event).await;
        assert_eq!(world.kept().await, []);
        assert_eq!(world.announced().await.len(), users.len(), "nobody is told");
    }

    async fn the_jobs_tell_by_themselves(world: World) {
        let (event, fans) = world.slow_line(2).await;
        Fan::is_noted(&fans[1].ask_reminder(event).await);
        let stop = CancellationToken::new();
        let (queue, stopped) = (world.queue.clone(), stop.clone());
        let jobs = tokio::spawn(async move { queue.run_jobs(stopped).await });
        eventually("they are told", async || (world.told().await.len() == 1).then_some(())).await;
        stop.cancel();
        jobs.await.unwrap();
    }

    async fn without_its_tables_nothing_is_promised(world: World) {
        let (event, fans) = world.slow_line(1).await;
        world.close_database().await;
        fans[0].ask_reminder(event).await.refused(503, "STORAGE_UNAVAILABLE");
        fans[0].withdraw_reminder(event).await.refused(503, "STORAGE_UNAVAILABLE");
        world.queue.remind(event).await;
        assert_eq!(fans[0].status(event).await.ok()["position"], json!(1), "a poll reads none");
    }
}

/// An event for which so many wait that they fill three batches, all of whom want to be told.
async fn many(world: &World) -> (Uuid, Vec<Uuid>) {
    let event = world.open_event().await;
    world.set_room(event, "is_paused = true").await;
    let mut users: Vec<Uuid> = (0..1_100).map(|_| world.ids.next_id()).collect();
    for user_id in &users {
        let fan = Fan { id: *user_id, router: world.router.clone() };
        fan.check(event).await.ok();
    }
    users.sort_unstable();
    let (asked, now) = (users.clone(), world.clock.now());
    let insert = world.db.write(move |tx| {
        let sql = "insert into reminders (event_id, user_id, number, asked_at) \
                   values ($1, $2, $3, $4)";
        for (number, user_id) in (1_i64..).zip(&asked) {
            tx.execute(sql, params![event, *user_id, number, now])?;
        }
        Ok(())
    });
    insert.await.unwrap_or_else(|error: StorageError| panic!("{error}"));
    (event, users)
}
