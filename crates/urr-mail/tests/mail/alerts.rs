//! Mails to fans who asked for alerts.

use std::time::Duration;

use serde_json::{Value, json};
use urr_kernel::Uuid;
use urr_mail::{MailKind, MailStatus};

use crate::contract;
use crate::fixture::{World, send};

fn sale_alert(world: &World, user_id: Uuid, opens_at: &str) -> Value {
    json!({
        "userId": user_id, "eventId": world.ids.next_id(), "eventTitle": "한강의 밤",
        "venueName": "강변 홀", "eventStartsAt": "2026-12-24T10:30:00Z", "opensAt": opens_at,
        "isPresale": false,
    })
}

fn seat_alert(world: &World, user_id: Uuid) -> Value {
    json!({
        "alertId": world.ids.next_id(), "userId": user_id, "eventId": world.ids.next_id(),
        "eventTitle": "한강의 밤", "venueName": "강변 홀",
        "eventStartsAt": "2026-12-24T10:30:00Z", "grade": "VIP", "quantity": 2,
        "headStartUntil": "2026-12-01T12:03:00Z", "usefulUntil": "2026-12-01T12:30:00Z",
    })
}

contract! {
    async fn a_fan_is_told_once_of_every_opening_and_once_of_every_alert(world: World) {
        let fan = world.register_user("mina@example.com");
        for opens_at in ["2026-12-01T12:10:00Z", "2026-12-01T13:00:00Z"] {
            let event = world.event("SALE_ALERT_DUE", sale_alert(&world, fan, opens_at));
            world.consume(&event).await.unwrap();
            world.consume(&event).await.unwrap();
        }
        let data = seat_alert(&world, fan);
        for _ in 0..2 {
            world.consume(&world.event("SEAT_ALERT_DUE", data.clone())).await.unwrap();
        }
        assert_eq!(send(&world.service).await, 3);
        assert_eq!(world.of_kind(MailKind::SaleAlert).await.len(), 2);
        let [mail] = world.of_kind(MailKind::SeatAlert).await.try_into().unwrap();
        assert_eq!(mail.status, MailStatus::Sent);
        let text = world.service.preview_mail(&mail).text;
        assert!(text.contains("VIP") && text.contains("/queue/"), "{text}");
    }

    async fn an_alert_that_is_late_is_dropped(world: World) {
        let fan = world.register_user("mina@example.com");
        let sale = sale_alert(&world, fan, "2026-12-01T12:10:00Z");
        world.consume(&world.event("SALE_ALERT_DUE", sale)).await.unwrap();
        world.consume(&world.event("SEAT_ALERT_DUE", seat_alert(&world, fan))).await.unwrap();
        // Both are still sent a moment before.
        for (minutes, status) in [(29, MailStatus::Waiting), (12, MailStatus::Dropped)] {
            world.clock.advance(Duration::from_mins(minutes));
            if status == MailStatus::Dropped {
                send(&world.service).await;
            }
            for mail in world.all().await {
                assert_eq!(mail.status, status, "{mail:?}");
            }
        }
    }

    async fn an_unverified_address_gets_no_alert(world: World) {
        let fan = world.register_user("mina@example.com");
        world.peers.set_verified(fan, false);
        world.consume(&world.event("SEAT_ALERT_DUE", seat_alert(&world, fan))).await.unwrap();
        send(&world.service).await;
        assert_eq!(world.all().await[0].status, MailStatus::Waiting);
        // The control: who verifies it in time is told.
        world.peers.set_verified(fan, true);
        world.clock.advance(Duration::from_mins(2));
        assert_eq!(send(&world.service).await, 1);
        assert_eq!(world.all().await[0].status, MailStatus::Sent);
    }
}
