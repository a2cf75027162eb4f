//! Fans are told before a sale opens: in time, once per opening, and only who asked.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, params};
use urr_ticket::{AlertSettings, TicketSettings};

use crate::contract;
use crate::fixture::{MINUTE, World, hall, new_sale};
use crate::operations::CallerIdentity;
use crate::projection::must_deliver;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl World {
    /// An event whose sale opens in this time.
    pub async fn upcoming(&self, opens_in: Duration, artist_id: Option<Uuid>) -> Uuid {
        let event_id = self.ids.next_id();
        let mut sale = new_sale(event_id, hall(1, 5), &self.clock);
        sale.facts.sale_starts_at = self.clock.now() + opens_in;
        sale.facts.artist_id = artist_id;
        sale.facts.has_presale = artist_id.is_some();
        assert!(self.sale_insert(sale).await);
        event_id
    }

    async fn ask_sale_alert(&self, user_id: Uuid, event_id: Uuid) -> (u16, Value) {
        let path = format!("/api/alerts/events/{event_id}/sale");
        self.call(CallerIdentity::User(user_id), Method::PUT, &path, Value::Null).await
    }

    pub async fn alerts_of(&self, user_id: Uuid) -> Value {
        let who = CallerIdentity::User(user_id);
        let (status, body) = self.call(who, Method::GET, "/api/alerts", Value::Null).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// The openings that fans were told of.
    async fn told_openings(&self) -> Vec<(Uuid, Timestamp)> {
        self.ticket.tell_sale_alerts().await.unwrap();
        let told = self.announced("SALE_ALERT_DUE").await;
        let read = |event: &Value| {
            let time = event["opensAt"].as_str().unwrap().parse().unwrap();
            (event["userId"].as_str().unwrap().parse().unwrap(), time)
        };
        told.iter().map(read).collect()
    }

    async fn make_member(&self, user_id: Uuid, artist_id: Uuid, tier: &'static str) {
        let (id, until) = (self.ids.next_id(), self.clock.now() + 300 * DAY);
        let joined = self.db.write(move |tx| {
            tx.execute(
                "insert into memberships (id, user_id, artist_id, tier, status, expires_at) \
                 values ($1, $2, $3, $4, 'active', $5)",
                params![id, user_id, artist_id, tier, until],
            )
        });
        assert_eq!(joined.await, Ok::<u64, StorageError>(1));
    }

    /// The catalog moves the opening of a sale.
    async fn move_opening(&self, event_id: Uuid, revision: i64, opens_at: Timestamp) {
        let data = json!({
            "eventId": event_id, "revision": revision, "title": "한강의 밤", "kind": "seated",
            "status": "upcoming", "artistId": null, "venueId": Uuid::from_u128(7),
            "venueName": "강변 홀", "address": "서울", "startsAt": opens_at + 20 * DAY,
            "saleStartsAt": opens_at, "saleEndsAt": opens_at + 10 * DAY, "hasPresale": false,
            "seatsPerUserMax": 4, "prices": {"R": 100_000},
        });
        must_deliver(self, "EVENT_UPDATED", data).await;
    }
}

contract! {
    async fn a_fan_is_told_ten_minutes_before_the_opening_and_once(world: World) {
        let event_id = world.upcoming(2 * HOUR, None).await;
        let (opens_at, mina) = (world.clock.now() + 2 * HOUR, world.ids.next_id());
        for _ in 0..2 {
            let (status, body) = world.ask_sale_alert(mina, event_id).await;
            assert_eq!(status, 200, "{body}");
            assert_eq!(body["opensAt"], json!(opens_at));
            assert_eq!(body["alertAt"], json!(opens_at - 10 * MINUTE));
        }
        assert_eq!(world.told_openings().await, []);
        world.clock.advance(110 * MINUTE - Duration::from_secs(1));
        assert_eq!(world.told_openings().await, []);
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(world.told_openings().await, [(mina, opens_at)]);
        let alerts = world.alerts_of(mina).await;
        assert_eq!(alerts["saleAlerts"][0]["toldAt"], json!(world.clock.now()));
        for _ in 0..60 {
            world.clock.advance(MINUTE);
            assert_eq!(world.told_openings().await.len(), 1);
        }
        assert_eq!(world.alerts_of(mina).await["saleAlerts"], json!([]), "it is over");
    }

    async fn several_processes_tell_a_fan_once(world: World) {
        let event_id = world.upcoming(5 * MINUTE, None).await;
        for _ in 0..20 {
            assert_eq!(world.ask_sale_alert(world.ids.next_id(), event_id).await.0, 200);
        }
        let mut processes = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let ticket = world.ticket_with(TicketSettings::default());
            processes.spawn(async move { ticket.tell_sale_alerts().await });
        }
        for told in processes.join_all().await {
            told.unwrap();
        }
        assert_eq!(world.announced("SALE_ALERT_DUE").await.len(), 20);
    }

    async fn a_moved_opening_is_told_anew_and_a_cancelled_event_is_not(world: World) {
        let event_id = world.upcoming(5 * MINUTE, None).await;
        let (first, mina) = (world.clock.now() + 5 * MINUTE, world.ids.next_id());
        world.ask_sale_alert(mina, event_id).await;
        assert_eq!(world.told_openings().await, [(mina, first)]);
        let later = first + 3 * HOUR;
        world.move_opening(event_id, 2, later).await;
        assert_eq!(world.told_openings().await.len(), 1, "it is hours away");
        world.clock.advance(3 * HOUR);
        assert_eq!(world.told_openings().await, [(mina, first), (mina, later)]);
        // An edit that moves nothing is no reason to tell anybody.
        world.move_opening(event_id, 3, later).await;
        assert_eq!(world.told_openings().await.len(), 2);

        let cancelled = world.upcoming(HOUR, None).await;
        world.ask_sale_alert(mina, cancelled).await;
        must_deliver(&world, "EVENT_CANCELLED", json!({"eventId": cancelled, "revision": 2})).await;
        world.clock.advance(55 * MINUTE);
        assert_eq!(world.told_openings().await.len(), 2);
        assert_eq!(world.number("select count(*) as n from sale_alerts").await, 0);
    }

    async fn an_opening_that_is_long_ago_is_no_news(world: World) {
        for (late, told) in [(29 * MINUTE, 1), (30 * MINUTE, 1)] {
            let event_id = world.upcoming(HOUR, None).await;
            world.ask_sale_alert(world.ids.next_id(), event_id).await;
            // Nobody looked at it meanwhile.
            world.clock.advance(HOUR + late);
            assert_eq!(world.told_openings().await.len(), told, "{late:?}");
        }
    }

    async fn in_a_presale_the_tier_at_that_time_decides(world: World) {
        let artist_id = world.ids.next_id();
        let event_id = world.upcoming(HOUR, Some(artist_id)).await;
        let opens_at = world.clock.now() + HOUR;
        let [gold, public, joining] = [(); 3].map(|()| world.ids.next_id());
        world.make_member(gold, artist_id, "gold").await;
        for fan in [gold, public, joining] {
            assert_eq!(world.ask_sale_alert(fan, event_id).await.0, 200);
        }
        world.told_openings().await;
        world.clock.advance(10 * MINUTE);
        world.make_member(joining, artist_id, "diamond").await;
        world.clock.advance(40 * MINUTE);
        assert_eq!(world.told_openings().await, [(joining, opens_at)]);
        world.clock.advance(HOUR);
        assert_eq!(world.told_openings().await[1..], [(gold, opens_at + HOUR)]);
        let told = &world.announced("SALE_ALERT_DUE").await[1];
        assert_eq!(told["isPresale"], true);
        world.clock.advance(47 * HOUR);
        assert_eq!(world.told_openings().await[2..], [(public, opens_at + 48 * HOUR)]);
    }

    async fn who_withdraws_is_not_told_and_others_cannot_withdraw_it(world: World) {
        let event_id = world.upcoming(HOUR, None).await;
        let [mina, jun] = [(); 2].map(|()| world.ids.next_id());
        world.ask_sale_alert(mina, event_id).await;
        let path = format!("/api/alerts/events/{event_id}/sale");
        for (who, left) in [(jun, 1), (mina, 0), (mina, 0)] {
            let who = CallerIdentity::User(who);
            let (status, _) = world.call(who, Method::DELETE, &path, Value::Null).await;
            assert_eq!(status, 204);
            let alerts = world.alerts_of(mina).await;
            assert_eq!(alerts["saleAlerts"].as_array().unwrap().len(), left);
        }
        world.clock.advance(55 * MINUTE);
        assert_eq!(world.told_openings().await, []);
        let nobody = CallerIdentity::Nobody;
        assert_eq!(world.call(nobody, Method::PUT, &path, Value::Null).await.0, 401);
    }

    async fn what_can_be_bought_or_is_unknown_has_no_alert_and_there_are_limits(world: World) {
        let mina = world.ids.next_id();
        let open = world.open_sale(hall(1, 5)).await;
        for (event_id, status, code) in
            [(open, 409, "SALE_HAS_BEGUN"), (world.ids.next_id(), 404, "EVENT_NOT_FOUND")]
        {
            let (found, body) = world.ask_sale_alert(mina, event_id).await;
            assert_eq!((found, &body["code"]), (status, &json!(code)), "{body}");
        }
        let alerts = AlertSettings { sale_alerts_per_user_max: 1, ..AlertSettings::default() };
        let settings = TicketSettings { alerts, ..TicketSettings::default() };
        let strict = world.ticket_with(settings);
        let (first, second) = (world.upcoming(HOUR, None).await, world.upcoming(HOUR, None).await);
        for _ in 0..2 {
            strict.ask_sale_alert(first, mina).await.unwrap();
        }
        let refused = strict.ask_sale_alert(second, mina).await.unwrap_err();
        assert!(refused.to_string().contains("1 alerts already"), "{refused}");
        // The control: with the usual limit there is room.
        world.ticket.ask_sale_alert(second, mina).await.unwrap();
    }
}
