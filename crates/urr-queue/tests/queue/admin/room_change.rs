//! How a room is run: what may be changed, by whom at once, and until when.

use std::sync::{Arc, Barrier};

use futures_util::future::join_all;
use serde_json::{Value, json};
use urr_queue::{QueueService, QueueSettings};
use urr_storage::{Row, StorageError, params};

use super::{ADMIN, Desk, TestCaller, event_on_sale};
use crate::contract;
use crate::fixture::{Form, HOUR, MINUTE, World, run};

/// Another process, which knows what there is.
async fn replica(world: &World) -> QueueService {
    let queue = world.another(QueueSettings::default());
    queue.load().await.unwrap();
    queue
}

/// The one row of a query.
async fn row<T: Send + 'static>(
    world: &World,
    sql: &'static str,
    read: fn(&Row<'_>) -> Result<T, StorageError>,
) -> T {
    world.db.read(move |tx| tx.query_one(sql, &[], read)).await.unwrap()
}

async fn revision(world: &World) -> i64 {
    row(world, "select revision from rooms_revision", |row| row.get("revision")).await
}

async fn commitment(world: &World) -> Vec<u8> {
    row(world, "select commitment from draws", |row| row.get("commitment")).await
}

contract! {
    async fn a_change_counts_at_once_here_and_with_the_next_look_elsewhere(world: World) {
        let event = world.open_event().await;
        let other = replica(&world).await;
        let (here, there) = (Desk::of(&world, TestCaller::Admin), Desk::at(&world, &other));
        let room_settings = json!({ "threshold": 7, "admittedPerSecondMax": 3, "autopilot": true,
                             "message": "  곧 이어집니다  ", "paused": true });
        let told = here.patch(event, room_settings).await.ok()["room"].clone();
        assert_eq!((&told["threshold"], &told["phase"]), (&json!(7), &json!("paused")));
        assert_eq!((&told["paused"], &told["message"]), (&json!(true), &json!("곧 이어집니다")));
        assert_eq!(told["settings"]["autopilot"], json!({ "value": true, "source": "event" }));

        assert_eq!(there.room(event).await["threshold"], 1_000, "it has not looked yet");
        // As its job does every second.
        other.load().await.unwrap();
        let told = there.room(event).await;
        assert_eq!((&told["threshold"], &told["phase"]), (&json!(7), &json!("paused")));

        let lines = here.log(event).await;
        assert_eq!(lines.len(), 1);
        let line = &lines[0];
        assert_eq!((&line["by"], &line["adminId"]), (&json!("admin"), &json!(ADMIN)));
        assert_eq!(line["action"], "ROOM_CHANGED");
        assert_eq!(line["createdAt"], json!(world.clock.now()));
        assert_eq!((&line["resourceType"], &line["resourceId"]), (&json!("room"), &json!(event)));
        let details = json!({
            "threshold": { "before": null, "after": 7 },
            "admittedPerSecondMax": { "before": null, "after": 3 },
            "autopilot": { "before": false, "after": true },
            "paused": { "before": false, "after": true },
            "message": { "before": null, "after": "곧 이어집니다" },
        });
        assert_eq!(line["details"], details);
    }

    async fn null_is_the_default_again_and_what_is_so_already_is_no_change(world: World) {
        let event = world.open_event().await;
        let admin = Desk::of(&world, TestCaller::Admin);
        admin.patch(event, json!({ "threshold": 7, "message": "a", "paused": true })).await.ok();
        let same = json!({ "threshold": 7, "message": " a ", "paused": true, "opening": "fifo",
                           "autopilot": null, "gatheringSeconds": null });
        for nothing in [same, json!({})] {
            admin.patch(event, nothing).await.ok();
        }
        assert_eq!(admin.log(event).await.len(), 1, "only the first was a change");
        let default = json!({ "threshold": null, "message": null, "paused": null });
        let told = admin.patch(event, default).await.ok()["room"].clone();
        assert_eq!(told["settings"]["threshold"], json!({ "value": 1_000, "source": "default" }));
        assert_eq!((&told["message"], &told["paused"]), (&Value::Null, &json!(false)));
        assert_eq!(admin.log(event).await.len(), 2);
    }

    async fn what_is_out_of_range_or_unknown_is_refused_and_changes_nothing(world: World) {
        let event = world.open_event().await;
        let admin = Desk::of(&world, TestCaller::Admin);
        let known = revision(&world).await;
        for (body, code) in [
            (json!({ "threshold": 0 }), "INVALID_THRESHOLD"),
            (json!({ "threshold": -1 }), "INVALID_THRESHOLD"),
            (json!({ "threshold": 100_000_001 }), "INVALID_THRESHOLD"),
            (json!({ "admittedPerSecondMax": 0 }), "INVALID_RATE"),
            (json!({ "gatheringSeconds": -1 }), "INVALID_GATHERING"),
            (json!({ "gatheringSeconds": 604_801 }), "INVALID_GATHERING"),
            (json!({ "message": "" }), "INVALID_MESSAGE"),
            (json!({ "message": "a\nb" }), "INVALID_MESSAGE"),
            (json!({ "message": "가".repeat(501) }), "INVALID_MESSAGE"),
            (json!({ "opening": "first" }), "INVALID_BODY"),
            (json!({ "threshold": "many" }), "INVALID_BODY"),
            (json!({ "treshold": 5 }), "INVALID_BODY"),
            (json!({ "threshold": 5, "admittedPerSecondMax": 0 }), "INVALID_RATE"),
        ] {
            admin.patch(event, body).await.refused(400, code);
        }
        let refused = admin.patch(event, json!({ "threshold": 0 })).await.json();
        assert_eq!(refused["error"], "The threshold is a number from 1 to 100000000.");
        // The original took any threshold.
        let threshold = format!("/api/queue/admin/threshold/{event}");
        for (query, code) in [
            ("", "INVALID_QUERY"),
            ("?threshold=x", "INVALID_QUERY"),
            ("?threshold=0", "INVALID_THRESHOLD"),
            ("?threshold=-3", "INVALID_THRESHOLD"),
            ("?threshold=99999999999", "INVALID_THRESHOLD"),
        ] {
            admin.post(&format!("{threshold}{query}"), json!({})).await.refused(400, code);
        }
        assert_eq!((admin.log(event).await.len(), revision(&world).await), (0, known));
        // Control: the same with a good number.
        let answer = admin.post(&format!("{threshold}?threshold=3"), json!({})).await.ok();
        assert_eq!((&answer["eventId"], &answer["threshold"]), (&json!(event), &json!(3)));
        assert_eq!((admin.log(event).await.len(), revision(&world).await), (1, known + 1));
    }

    async fn a_lottery_is_committed_to_before_anybody_may_come_and_then_it_stays(world: World) {
        let now = world.clock.now();
        // People may gather in an hour.
        let event = event_on_sale(&world, now + 2 * HOUR, now + 72 * HOUR).await;
        let admin = Desk::of(&world, TestCaller::Admin);
        let told = admin.patch(event, json!({ "opening": "lottery" })).await.ok();
        let lottery = json!({ "value": "lottery", "source": "event" });
        assert_eq!(told["room"]["settings"]["opening"], lottery);
        // There and back: the commitment that may have been seen stays.
        let committed = commitment(&world).await;
        admin.patch(event, json!({ "opening": "fifo" })).await.ok();
        admin.patch(event, json!({ "opening": "lottery" })).await.ok();
        assert_eq!(commitment(&world).await, committed);

        world.clock.advance(HOUR);
        let lines = admin.log(event).await.len();
        for (body, code) in [
            (json!({ "opening": "fifo" }), "OPENING_FIXED"),
            (json!({ "opening": null }), "OPENING_FIXED"),
            (json!({ "gatheringSeconds": 60 }), "GATHERING_FIXED"),
            // A refusal refuses all of it.
            (json!({ "threshold": 5, "opening": "fifo" }), "OPENING_FIXED"),
        ] {
            admin.patch(event, body).await.refused(409, code);
        }
        assert_eq!(admin.room(event).await["threshold"], 1_000);
        assert_eq!(admin.log(event).await.len(), lines);
        // Control: something else is changed, and the same opening is no change.
        admin.patch(event, json!({ "threshold": 5, "opening": "lottery" })).await.ok();
    }

    async fn who_waits_is_not_moved_by_a_sale_that_was_put_off(world: World) {
        let now = world.clock.now();
        let event = event_on_sale(&world, now + 30 * MINUTE, now + 72 * HOUR).await;
        world.come(event, 3).await;
        let mut put_off = world.facts(event, 2);
        put_off["saleStartsAt"] = json!(now + 30 * HOUR);
        world.hear("EVENT_UPDATED", put_off).await;
        let admin = Desk::of(&world, TestCaller::Admin);
        assert_eq!(admin.room(event).await["phase"], "closed");
        let lottery = json!({ "opening": "lottery" });
        admin.patch(event, lottery.clone()).await.refused(409, "OPENING_FIXED");
        // Control: without them it may be changed.
        admin.order(event, "clear", json!({ "confirm": event })).await.ok();
        admin.patch(event, lottery).await.ok();
    }

    async fn changes_at_the_same_moment_are_all_kept(world: World) {
        let event = world.open_event().await;
        let mut desks = Vec::new();
        for _ in 0..3 {
            desks.push(Desk::at(&world, &replica(&world).await));
        }
        let admin = Desk::of(&world, TestCaller::Admin);
        for round in 1..=10 {
            let message = round.to_string();
            let bodies = [
                json!({ "threshold": round }),
                json!({ "admittedPerSecondMax": round }),
                json!({ "message": message }),
            ];
            let changes = desks.iter().zip(bodies).map(|(desk, body)| desk.patch(event, body));
            for answer in join_all(changes).await {
                answer.ok();
            }
            world.queue.load().await.unwrap();
            let told = admin.room(event).await;
            assert_eq!((&told["threshold"], &told["message"]), (&json!(round), &json!(message)));
            assert_eq!(told["settings"]["admittedPerSecondMax"]["value"], round);
            assert_eq!(told["settings"]["threshold"]["source"], "event");
        }
        let log = admin.get("/api/admin/queue/log").await;
        assert_eq!(log["pagination"]["total"], 30);
    }
}

/// The control of `changes_at_the_same_moment_are_all_kept`: who reads a room without its lock, and
/// writes it as a whole, undoes what another has changed meanwhile. SQLite has one writer.
#[test]
fn without_the_lock_of_the_room_a_change_would_be_forgotten() {
    run(Form::Shared, async |world: World| {
        let event = world.open_event().await;
        let have_read = Arc::new(Barrier::new(2));
        let change = |threshold: Option<u32>, message: Option<&'static str>| {
            let have_read = Arc::clone(&have_read);
            world.db.write(move |tx| {
                let sql = "select threshold, message from rooms where event_id = $1";
                let (old_threshold, old_message) = tx.query_one(sql, params![event], |row| {
                    Ok((
                        row.get::<Option<u32>>("threshold")?,
                        row.get::<Option<String>>("message")?,
                    ))
                })?;
                have_read.wait();
                let sql = "update rooms set threshold = $2, message = $3 where event_id = $1";
                let message = message.map(str::to_owned).or(old_message);
                tx.execute(sql, params![event, threshold.or(old_threshold), message])
            })
        };
        let (first, second) = tokio::join!(change(Some(11), None), change(None, Some("둘")));
        first.and(second).unwrap_or_else(|error: StorageError| panic!("{error}"));
        let kept = "select threshold, message from rooms";
        let has = |row: &Row<'_>| {
            let (threshold, message): (Option<u32>, Option<String>) =
                (row.get("threshold")?, row.get("message")?);
            Ok(usize::from(threshold.is_some()) + usize::from(message.is_some()))
        };
        assert_eq!(row(&world, kept, has).await, 1, "one of the two is gone");
    });
}
