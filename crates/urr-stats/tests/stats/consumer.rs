//! From the bus to the counters, by the consumer that the program runs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use urr_bus::dead_letters::{self, DeadLetterScope};
use urr_bus::{BusMessage, BusMetrics, Consumer, EventHandler, consumer};
use urr_stats::{GROUP, TOPICS};

use crate::contract;
use crate::fixture::{Booking, now, user_registered};
use crate::rebuild::{bus, publish};

contract! {
    async fn what_cannot_be_counted_becomes_a_dead_letter_and_the_rest_is_counted(world: World) {
        let (_folder, bus) = bus(&world).await;
        let mut broken = Booking::new(1, 50).created(now());
        broken.data["quantity"] = (-1).into();
        publish(&bus, &[broken]).await;
        let garbage = BusMessage::new("user-events", "k", b"{".to_vec());
        bus.publish_one(garbage).await.unwrap();
        publish(&bus, &Booking::new(2, 50).sold(now())).await;
        publish(&bus, &[user_registered(1, now())]).await;

        let stop = CancellationToken::new();
        let consumer = Consumer {
            bus: bus.clone(),
            db: world.db.clone(),
            group: GROUP.to_owned(),
            topics: TOPICS.iter().map(|topic| (*topic).to_owned()).collect(),
            types: None,
            handler: EventHandler::Repeatable(Arc::new(urr_stats::handle)),
            clock: world.clock.clone(),
            metrics: BusMetrics::default(),
        };
        let consuming = tokio::spawn(consumer::run(consumer, stop.clone()));
        urr_test::eventually("everything is dealt with", async || {
            let letters = dead_letters::list(&bus, None, DeadLetterScope::Open, 10).await.unwrap();
            let overview = world.data("overview").await;
            let is_counted = overview["confirmedReservations"] == 1
                && overview["totalRevenue"] == 100_000
                && overview["totalUsers"] == 1;
            (letters.letters.len() == 2 && is_counted).then_some(())
        })
        .await;
        let overview = world.data("overview").await;
        assert_eq!(overview["totalReservations"], 1, "the broken one is not counted");
        stop.cancel();
        consuming.await.unwrap();
        bus.close().await;
    }
}
