//! The document that everybody may read.

use axum::body::Body;
use axum::http::Request;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tower::ServiceExt;
use urr_kernel::Uuid;
use urr_queue::position_bounds;
use urr_room::LinePosition;
use urr_service::Caller;
use urr_storage::{StorageError, Tx, params};

use crate::contract;
use crate::fixture::{Answer, HOUR, MINUTE, SECOND, World};

/// Somebody without an account reads it.
async fn read(world: &World, event: Uuid, tag: Option<&str>) -> Answer {
    let mut request = Request::get(format!("/api/queue/crowd/{event}"));
    if let Some(tag) = tag {
        request = request.header("if-none-match", tag);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(Caller::Gateway);
    Answer::of(world.router.clone().oneshot(request).await.unwrap()).await
}

fn marks(crowd: &Value) -> Vec<LinePosition> {
    let marks: Vec<(i64, u32)> = serde_json::from_value(crowd["marks"].clone()).unwrap();
    marks.into_iter().map(|(number, position)| LinePosition { number, position }).collect()
}

contract! {
    async fn everybody_may_read_how_a_room_is_doing(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 2, message = '줄은 하나입니다'").await;
        let fans = world.come(event, 7).await;
        fans[6].leave(event).await.ok();
        world.clock.advance(SECOND);
        let answer = read(&world, event, None).await;
        assert_eq!(answer.headers["cache-control"], "public, max-age=1");
        let crowd = answer.ok();
        assert_eq!((&crowd["eventId"], &crowd["phase"]), (&json!(event), &json!("open")));
        assert_eq!((&crowd["waiting"], &crowd["active"]), (&json!(4), &json!(2)));
        assert_eq!((&crowd["threshold"], &crowd["soldOut"]), (&json!(2), &json!(false)));
        assert_eq!((&crowd["admittedTotal"], &crowd["leftTotal"]), (&json!(2), &json!(1)));
        assert_eq!(crowd["message"], json!("줄은 하나입니다"));
        assert_eq!(crowd["serverTime"], json!(world.clock.now()));
        assert_eq!(crowd["drawCommitment"], json!(null));
        assert_eq!(marks(&crowd).first().unwrap().position, 1);
        read(&world, Uuid::from_u128(404), None).await.refused(404, "EVENT_NOT_FOUND");
    }

    async fn it_is_sent_again_only_if_something_is_new(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        world.come(event, 3).await;
        world.clock.advance(SECOND);
        let known = read(&world, event, None).await;
        let tag = known.headers["etag"].to_str().unwrap().to_owned();
        world.clock.advance(2 * SECOND);
        read(&world, event, Some(&tag)).await.is_unchanged();
        world.come(event, 1).await;
        read(&world, event, Some(&tag)).await.is_unchanged();
        world.clock.advance(SECOND);
        assert_eq!(read(&world, event, Some(&tag)).await.ok()["waiting"], json!(3));
        world.set_room(event, "message = '잠시만요'").await;
        assert_eq!(read(&world, event, None).await.ok()["message"], json!("잠시만요"));
    }

    /// However many ask within a second, the room is looked at once.
    async fn a_room_is_looked_at_once_a_second(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        world.come(event, 2).await;
        let all = join_all((0..50).map(|_| read(&world, event, None))).await;
        assert!(all.iter().all(|one| one.bytes == all[0].bytes));
        world.come(event, 1).await;
        world.clock.advance(SECOND - std::time::Duration::from_micros(1));
        assert_eq!(read(&world, event, None).await.ok()["waiting"], json!(1));
        world.clock.advance(std::time::Duration::from_micros(1));
        assert_eq!(read(&world, event, None).await.ok()["waiting"], json!(2));
    }

    async fn everybody_finds_their_place_in_it(world: World) {
        let event = world.open_event().await;
        world.set_room(event, "threshold = 1").await;
        let mut fans = world.come(event, 400).await;
        fans.remove(0);
        world.clock.advance(SECOND);
        // Where nobody left, the place is exact.
        let all = marks(&read(&world, event, None).await.ok());
        for fan in &fans {
            let told = fan.status(event).await.ok();
            let number = told["number"].as_i64().unwrap();
            let position = u32::try_from(told["position"].as_u64().unwrap()).unwrap();
            assert_eq!(position_bounds(&all, number), Some(position..=position));
        }
        let (gone, stayed): (Vec<_>, Vec<_>) =
            fans.into_iter().enumerate().partition(|(index, _)| index % 7 == 3);
        for (_, fan) in gone {
            fan.leave(event).await.ok();
        }
        world.clock.advance(SECOND);
        let all = marks(&read(&world, event, None).await.ok());
        for (_, fan) in stayed {
            let told = fan.status(event).await.ok();
            let bounds = position_bounds(&all, told["number"].as_i64().unwrap()).unwrap();
            let position = u32::try_from(told["position"].as_u64().unwrap()).unwrap();
            assert!(bounds.contains(&position), "{position} is not in {bounds:?}");
            assert!(bounds.end() - bounds.start() <= 4, "{bounds:?} is too wide");
        }
    }

    async fn before_a_draw_it_shows_what_was_committed_to_and_no_order(world: World) {
        let opens_at = world.clock.now() + 30 * MINUTE;
        let event = world.event_with(json!({"saleStartsAt": opens_at})).await;
        world.set_room(event, "opening = 'lottery'").await;
        let now = world.clock.now();
        let commit = move |tx: &mut Tx<'_>| {
            let (secret, commitment) = (vec![1_u8; 32], vec![0xab_u8; 32]);
            tx.execute(
                "insert into draws (event_id, sealed_secret, commitment, committed_at) \
                 values ($1, $2, $3, $4)",
                params![event, secret, commitment, now],
            )
        };
        world.db.write(commit).await.unwrap_or_else(|error: StorageError| panic!("{error}"));
        world.set_room(event, "opening = 'lottery'").await;
        world.come(event, 3).await;
        world.clock.advance(SECOND);
        let crowd = read(&world, event, None).await.ok();
        assert_eq!((&crowd["phase"], &crowd["opensAt"]), (&json!("gathering"), &json!(opens_at)));
        assert_eq!((&crowd["marks"], &crowd["waiting"]), (&json!([]), &json!(3)));
        assert_eq!(crowd["drawCommitment"], json!("ab".repeat(32)));
    }

    async fn it_tells_those_who_come_too_early_when_to_come(world: World) {
        let opens_at = world.clock.now() + 3 * HOUR;
        let event = world.event_with(json!({"saleStartsAt": opens_at})).await;
        let crowd = read(&world, event, None).await.ok();
        assert_eq!(crowd["phase"], json!("closed"));
        assert_eq!(crowd["gathersAt"], json!(opens_at - HOUR));
    }
}
