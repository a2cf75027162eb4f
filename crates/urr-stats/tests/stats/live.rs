//! The money of one sale, as live boards ask for it, and its days.

use std::time::Duration;

use serde_json::{Value, json};
use urr_kernel::Uuid;

use crate::contract;
use crate::fixture::{Booking, DAY, MINUTE, copy_of, event_created, message, now};

const SECOND: Duration = Duration::from_secs(1);

fn event() -> Uuid {
    Uuid::from_u128(1)
}

contract! {
    async fn a_sale_has_its_money_by_seconds_and_minutes(world: World) {
        let purchases = [1, 2, 3].map(|id| Booking::new(id, 1));
        let [first, second, third] = &purchases;
        let observed = message("QUEUE_OBSERVED", now() - MINUTE, json!({
            "eventId": event(), "waiting": 70, "inside": 9, "joinedTotal": 80,
            "admittedTotal": 10, "leftTotal": 1,
        }));
        let old = message("QUEUE_OBSERVED", now() - 3 * DAY, observed.data.clone());
        let charged = first.charged(now() - 10 * SECOND, "card");
        world.consume_all(&[
            event_created(1, "한강의 밤"),
            old,
            observed.clone(),
            copy_of(&observed, Duration::ZERO),
            charged.clone(),
            copy_of(&charged, 5 * SECOND),
            second.charged(now() - 10 * SECOND, "card"),
            third.charged(now() - 40 * MINUTE, "card"),
            third.refunded(now() - 5 * SECOND, "card", third.amount, "cancelled"),
            Booking::new(9, 2).charged(now(), "card"),
        ]).await;
        let totals = world.call(&format!("/internal/stats/sales/{}", event())).await;
        let amount = first.amount;
        assert_eq!(totals, json!({
            "charges": 3, "charged": 3 * amount, "refunds": 1, "refunded": amount,
        }));
        let since = format!("secondsSince={}&minutesSince={}", now() - 15 * MINUTE, now() - DAY);
        let path = format!("/internal/stats/sales/{}/history?{since}", event());
        let history = world.call(&path).await;
        assert_eq!(history["totals"], totals);
        let at = |row: &Value| row["at"].as_i64().unwrap() - now().as_second();
        let seconds: Vec<_> = history["seconds"].as_array().unwrap().iter()
            .map(|row| (at(row), row["charges"].clone(), row["refunds"].clone())).collect();
        assert_eq!(seconds, [(-10, json!(2), json!(0)), (-5, json!(0), json!(1))]);
        let minutes: Vec<_> = history["minutes"].as_array().unwrap().iter()
            .map(|row| (at(row), row["charges"].clone(), row["room"]["waiting"].clone())).collect();
        assert_eq!(minutes, [(-2_400, json!(1), Value::Null), (-60, json!(2), json!(70))]);
        let everything = format!("secondsSince={}&minutesSince={}", now(), now() - 30 * DAY);
        let path = format!("/internal/stats/sales/{}/history?{everything}", event());
        let minutes = world.call(&path).await["minutes"].as_array().unwrap().len();
        assert_eq!(minutes, 2, "the minute of three days ago was forgotten");
    }

    async fn an_event_has_its_days(world: World) {
        let [early, late] = [1, 2].map(|id| Booking::new(id, 1));
        world.consume_all(&[
            event_created(1, "한강의 밤"),
            late.charged(now(), "card"),
            early.charged(now() - DAY, "card"),
        ]).await;
        let days = world.data(&format!("events/{}/days", event())).await;
        let days: Vec<_> = days.as_array().unwrap().iter()
            .map(|day| (day["date"].clone(), day["revenue"].clone())).collect();
        assert_eq!(days, [
            (json!("2026-11-14"), json!(early.amount)),
            (json!("2026-11-15"), json!(late.amount)),
        ]);
        let (status, _) =
            world.get_as(Some(urr_service::UserRole::Organiser), &format!("events/{}/days", event()))
                .await;
        assert_eq!(status, 404, "it belongs to somebody else");
    }
}
