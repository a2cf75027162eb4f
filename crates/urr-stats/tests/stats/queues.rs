//! How the waiting rooms observed.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use urr_kernel::{DomainEvent, Timestamp, Uuid};
use urr_service::UserRole;

use crate::contract;
use crate::fixture::{copy_of, event_created, message, now};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn observed(event: u128, [waiting, inside, joined]: [i64; 3], at: Timestamp) -> DomainEvent {
    let data = json!({
        "eventId": Uuid::from_u128(event), "waiting": waiting, "inside": inside,
        "joinedTotal": joined, "admittedTotal": joined / 2, "leftTotal": 1,
    });
    message("QUEUE_OBSERVED", at, data)
}

fn counters(row: &Value) -> [i64; 5] {
    ["waitingMax", "insideMax", "joined", "admitted", "left"]
        .map(|name| row[name].as_i64().unwrap())
}

contract! {
    async fn a_room_has_the_most_of_each_hour_whatever_the_order_of_the_news(world: World) {
        let first = observed(1, [70, 10, 80], now() - HOUR);
        let news = [
            event_created(1, "한강의 밤"),
            observed(1, [20, 90, 300], now()),
            first.clone(),
            observed(1, [40, 30, 120], now() - HOUR),
            observed(2, [5, 1, 6], now()),
            copy_of(&first, Duration::ZERO),
        ];
        world.consume_all(&news).await;
        let queues = world.data("queues").await;
        assert_eq!(queues.as_array().unwrap().len(), 2);
        assert_eq!(queues[0]["title"], "한강의 밤", "the longest line first");
        assert_eq!(counters(&queues[0]), [70, 90, 300, 150, 1]);
        assert_eq!(counters(&queues[1]), [5, 1, 6, 3, 1]);
        let hours = world.data(&format!("queues/{}", Uuid::from_u128(1))).await;
        let hours: Vec<_> = hours.as_array().unwrap().iter().map(counters).collect();
        assert_eq!(hours, [[70, 30, 120, 60, 1], [20, 90, 180, 90, 0]], "what each hour added");
        let unknown = world.data(&format!("queues/{}", Uuid::from_u128(9))).await;
        assert_eq!(unknown, json!([]));
    }

    async fn observations_are_no_activity_and_only_administrators_see_the_rooms(world: World) {
        let near = message("ADMISSION_NEAR", now(), json!({"eventId": Uuid::from_u128(1)}));
        world.consume_all(&[observed(1, [1, 1, 1], now()), near]).await;
        assert_eq!(world.get_as(Some(UserRole::Admin), "activity").await.1["activity"], json!([]));
        for role in [None, Some(UserRole::User)] {
            let (status, _) = world.get_as(role, "queues").await;
            assert!([StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status));
        }
    }
}
