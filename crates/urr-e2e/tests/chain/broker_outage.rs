//! The broker is away while tickets are sold.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::task::block_in_place;
use urr_e2e::{Deployment, TestApp};
use urr_kernel::{DomainEvent, Uuid};
use urr_payment::provider::TestCard;
use urr_storage::StorageError;

use crate::fixture::{FAR, HeldSeats, Shop, run};

const PURCHASES: u32 = 20;
/// It is away for as long as the purchases take, and so much longer.
const AWAY: Duration = Duration::from_secs(3);

/// K-2: purchases and cancellations go on, and afterwards nothing is missing.
#[test]
fn k_2_sales_go_on_without_the_broker_and_then_everything_arrives() {
    run(Deployment::Distributed, async |app| {
        let shop = Shop::open(&app, FAR).await;
        let before = shop.buy(&[0]).await;
        shop.settle().await;
        block_in_place(|| app.kafka().kill()).unwrap();
        let gone_at = Instant::now();

        let bought = sell(&shop).await;
        assert_eq!(shop.cancel(&before.0).await.status, 200);
        for held in &bought[..5] {
            let cancelled = shop.cancel(held).await;
            assert_eq!(cancelled.status, 200, "{cancelled:?}");
            let reservation = cancelled.json()["reservation"].take();
            assert_eq!(reservation["paymentStatus"], "refunding", "the refund waits for the bus");
        }
        let waiting = outbox_ids(&app).await;
        // Three for each purchase, one for each cancellation; what was sent before is gone.
        assert!(waiting.len() >= 20 * 3 + 6, "{} wait", waiting.len());
        tokio::time::sleep(away().saturating_sub(gone_at.elapsed())).await;
        block_in_place(|| app.kafka().start_again()).unwrap();

        shop.settle().await;
        let told = ids_on_bus(&app).await;
        assert_eq!(waiting.difference(&told).count(), 0, "events were lost");
        let overview = shop.statistics("overview").await;
        assert_eq!(overview["confirmedReservations"], 21, "{overview}");
        assert_eq!(overview["cancelledReservations"], 6, "{overview}");
        let kept: i64 = bought[5..].iter().map(|held| held.amount).sum();
        assert_eq!(overview["totalRevenue"], kept);
        app.stop().await;
    });
}

/// How long the broker is away; a longer outage can be ordered.
#[expect(clippy::disallowed_methods, reason = "orders, not configuration")]
fn away() -> Duration {
    let ordered = std::env::var("URR_TEST_OUTAGE_SECONDS").ok();
    ordered.and_then(|text| text.parse().ok()).map_or(AWAY, Duration::from_secs)
}

async fn sell(shop: &Shop<'_>) -> Vec<HeldSeats> {
    let mut bought = Vec::new();
    for seat in 1..=PURCHASES {
        // Every other one in the cheaper rows, and some by a card whose answer is lost.
        let held = shop.hold(&[if seat % 2 == 0 { seat } else { 100 + seat }]).await;
        let (card, status) = match seat % 10 {
            7 => (TestCard::ChargeThenFail, 202),
            _ => (TestCard::Approve, 200),
        };
        let paid = shop.pay(&held, card).await;
        assert_eq!(paid.status, status, "{paid:?}");
        bought.push(held);
    }
    for held in &bought {
        urr_test::eventually("who has paid has a ticket", async || {
            shop.app.clock.advance(Duration::from_millis(500));
            let reservation = shop.reservation(held).await;
            (reservation["reservation"]["status"] == "confirmed").then_some(())
        })
        .await;
    }
    bought
}

async fn outbox_ids(app: &TestApp) -> BTreeSet<Uuid> {
    let mut ids = BTreeSet::new();
    for service in ["ticket", "payment"] {
        let sql = "select event_id from outbox where published_at is null";
        let found: Result<Vec<Uuid>, StorageError> =
            app.database(service).read(|tx| tx.query(sql, &[], |row| row.get("event_id"))).await;
        ids.extend(found.unwrap());
    }
    ids
}

async fn ids_on_bus(app: &TestApp) -> BTreeSet<Uuid> {
    let mut ids = BTreeSet::new();
    for topic in ["reservation-events", "payment-events"] {
        let deliveries = app.bus().scan(topic).await.unwrap();
        ids.extend(deliveries.iter().map(|found| DomainEvent::from_bytes(&found.body).unwrap().id));
    }
    ids
}
