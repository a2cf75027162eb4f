//! The statistics are told how the rooms stand.

use futures_util::future::join_all;
use serde_json::{Value, json};
use urr_storage::StorageError;

use crate::contract;
use crate::fixture::{MINUTE, SECOND, World};

async fn observed(world: &World) -> Vec<Value> {
    let bodies: Result<Vec<String>, StorageError> = world
        .db
        .read(|tx| tx.query("select body from outbox order by seq", &[], |row| row.get("body")))
        .await;
    let told = bodies.unwrap();
    let told = told.iter().map(|body| serde_json::from_str::<Value>(body).unwrap());
    told.filter(|event| event["type"] == "QUEUE_OBSERVED").map(|mut it| it["data"].take()).collect()
}

contract! {
    async fn a_room_is_told_of_once_a_minute_by_however_many_processes(world: World) {
        let event_id = world.open_event().await;
        world.set_room(event_id, "threshold = 2").await;
        world.come(event_id, 5).await;
        // What is known of a room may be a second old.
        world.clock.advance(2 * SECOND);
        let others = [world.queue.clone(), world.queue.clone(), world.queue.clone()];
        join_all(others.iter().map(|queue| queue.publish_stats())).await;
        world.queue.publish_stats().await;
        let told = observed(&world).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0], json!({
            "eventId": event_id, "waiting": 3, "inside": 2, "joinedTotal": 3,
            "admittedTotal": 2, "leftTotal": 0, "type": "QUEUE_OBSERVED",
            "sagaId": told[0]["sagaId"],
        }));
        world.clock.advance(MINUTE);
        world.queue.publish_stats().await;
        assert_eq!(observed(&world).await.len(), 2);
    }

    async fn nobody_there_is_nothing_to_tell(world: World) {
        world.open_event().await;
        world.queue.publish_stats().await;
        assert_eq!(observed(&world).await, Vec::<Value>::new());
    }
}
