//! An event on sale, buyers, test cards, and checks on them.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use urr_e2e::{Deployment, TestApp, TestResponse};
use urr_kernel::{Timestamp, Uuid, Won};
use urr_payment::provider::{Sandbox, TestCard};
use urr_service::UserRole;
use urr_test::{engines, eventually};

/// Caches expire after this time.
const SECOND: Duration = Duration::from_secs(1);

pub const VIP: i64 = 150_000;
pub const R: i64 = 90_000;

pub fn run<F: Future<Output = ()>>(form: Deployment, case: impl FnOnce(TestApp) -> F) {
    engines::block_on(async {
        if let Some(app) = TestApp::start(form).await {
            case(app).await;
        }
    });
}

/// Declares cases that run on both forms: `on_both_deployments! { async fn name(app: TestApp) { … } }`.
#[macro_export]
macro_rules! on_both_deployments {
    ($($cases:tt)*) => {
        urr_test::on_both! {
            run = $crate::fixture::run,
            embedded = urr_e2e::Deployment::Embedded,
            distributed = urr_e2e::Deployment::Distributed;
            $($cases)*
        }
    };
}

/// How long before the event a cancellation is free.
pub const FAR: &str = "2026-12-24T10:00:00Z";
/// The day after tomorrow: 30 per cent are kept.
pub const NEAR: &str = "2026-11-17T10:00:00Z";

/// An event with a hall of two rows of VIP and two of R, fifty seats each, on sale now.
pub struct Shop<'a> {
    pub app: &'a TestApp,
    pub event_id: Uuid,
}

/// A reservation.
#[derive(Clone, Debug)]
pub struct HeldSeats {
    pub user_id: Uuid,
    pub entry: String,
    pub id: String,
    pub amount: i64,
}

/// An order as its buyer sees it.
#[derive(Clone, Debug)]
pub struct Order {
    pub id: String,
    pub payment_id: String,
    pub payment_key: String,
}

impl<'a> Shop<'a> {
    pub async fn open(app: &'a TestApp, starts_at: &str) -> Shop<'a> {
        Shop::open_of(app, starts_at, None).await
    }

    /// The same, by an artist.
    pub async fn open_of(app: &'a TestApp, starts_at: &str, artist_id: Option<Uuid>) -> Shop<'a> {
        let times = json!({
            "startsAt": starts_at, "saleStartsAt": "2026-11-14T00:00:00Z",
            "saleEndsAt": "2026-11-17T00:00:00Z",
        });
        Shop::open_with(app, &times, artist_id).await
    }

    /// The same, at these times.
    pub async fn open_at(app: &'a TestApp, times: &BTreeMap<&str, Timestamp>) -> Shop<'a> {
        Shop::open_with(app, &json!(times), None).await
    }

    async fn open_with(app: &'a TestApp, times: &Value, artist_id: Option<Uuid>) -> Shop<'a> {
        let name = format!("강변 홀 {}", app.ids.next_id());
        let venue = json!({"name": name, "address": "서울 한강로 1"});
        let venue = created(app.post("/api/admin/venues").as_admin().json(&venue).send().await);
        let grades = json!([{"grade": "VIP", "fromRow": 1, "toRow": 2},
                            {"grade": "R", "fromRow": 3, "toRow": 4}]);
        let grid = json!({"rows": 4, "seatsPerRow": 50, "gradeMapping": grades});
        let halls = format!("/api/admin/venues/{}/halls", text(&venue["venue"]["id"]));
        let hall = json!({"name": "대극장", "grid": grid});
        let hall = created(app.post(&halls).as_admin().json(&hall).send().await);
        let mut event = json!({
            "title": "한강의 밤", "hallId": hall["hall"]["id"], "prices": {"VIP": VIP, "R": R},
        });
        let fields = event.as_object_mut().unwrap();
        fields.extend(times.as_object().unwrap().clone());
        if let Some(artist_id) = artist_id {
            event["artistId"] = json!(artist_id);
        }
        let event = created(app.post("/api/admin/events").as_admin().json(&event).send().await);
        let event_id = text(&event["event"]["id"]).parse().unwrap();
        eventually("the ticket office has made the seats", async || {
            app.clock.advance(SECOND);
            let event = app.get(&format!("/api/events/{event_id}")).send().await.json();
            (event["event"]["inventoryReady"] == true).then_some(())
        })
        .await;
        Shop { app, event_id }
    }

    /// Somebody new comes in and takes seats. Below 100 they are VIP.
    pub async fn hold(&self, seats: &[u32]) -> HeldSeats {
        self.hold_as(self.app.ids.next_id(), seats).await
    }

    pub async fn hold_as(&self, user_id: Uuid, seats: &[u32]) -> HeldSeats {
        let entry = self.app.admit(user_id, self.event_id).await;
        let body = json!({"eventId": self.event_id, "seatIds": seats});
        let call = self.app.post("/api/seats/reserve").as_admitted(user_id, &entry);
        let held = created(call.json(&body).send().await)["reservation"].take();
        let (id, amount) = (text(&held["id"]), held["totalAmount"].as_i64().unwrap());
        HeldSeats { user_id, entry, id, amount }
    }

    pub async fn pay(&self, held: &HeldSeats, card: TestCard) -> TestResponse {
        let body = json!({"reservationId": held.id, "paymentMethod": card.as_str()});
        self.send(held.user_id, Method::POST, "/api/payments/process", Some(body)).await
    }

    /// A hold that is paid at once.
    pub async fn buy(&self, seats: &[u32]) -> (HeldSeats, Order) {
        self.buy_as(self.app.ids.next_id(), seats).await
    }

    pub async fn buy_as(&self, user_id: Uuid, seats: &[u32]) -> (HeldSeats, Order) {
        let held = self.hold_as(user_id, seats).await;
        let paid = self.pay(&held, TestCard::Approve).await;
        assert_eq!(paid.status, 200, "{paid:?}");
        (held, order_of(&paid.json()["payment"]))
    }

    /// Makes an order and goes through the checkout, up to the confirmation.
    pub async fn prepare(&self, held: &HeldSeats, card: TestCard) -> Value {
        let body = json!({"reservationId": held.id, "amount": held.amount});
        let path = "/api/payments/prepare";
        let order = self.send(held.user_id, Method::POST, path, Some(body)).await;
        assert_eq!(order.status, 200, "{order:?}");
        let order_id = text(&order.json()["orderId"]);
        let db = self.app.database("payment").clone();
        // A checkout of its own, as a buyer's browser sees it.
        let checkout = Sandbox::new(db, self.app.clock.clone(), self.app.ids.clone());
        let key = checkout.issue_key(card, &order_id, Won::new(held.amount)).await.unwrap();
        json!({"paymentKey": key, "orderId": order_id, "amount": held.amount})
    }

    /// Other seats for a hold.
    pub async fn change(&self, held: &HeldSeats, seats: &[u32]) -> TestResponse {
        let path = format!("/api/reservations/{}/seats", held.id);
        let call = self.app.request(Method::PUT, &path).as_admitted(held.user_id, &held.entry);
        call.json(&json!({"seatIds": seats, "overwrite": true})).send().await
    }

    /// The organiser calls the event off.
    pub async fn call_off(&self) {
        let call = self.app.post(&format!("/api/admin/events/{}/cancel", self.event_id));
        let cancelled = call.as_admin().json(&json!({"reason": "태풍"})).send().await;
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
    }

    pub async fn confirm(&self, user_id: Uuid, body: &Value) -> TestResponse {
        self.send(user_id, Method::POST, "/api/payments/confirm", Some(body.clone())).await
    }

    pub async fn cancel(&self, held: &HeldSeats) -> TestResponse {
        let path = format!("/api/reservations/{}/cancel", held.id);
        self.send(held.user_id, Method::POST, &path, None).await
    }

    pub async fn reservation(&self, held: &HeldSeats) -> Value {
        let path = format!("/api/reservations/{}", held.id);
        self.send(held.user_id, Method::GET, &path, None).await.json()
    }

    pub async fn order(&self, held: &HeldSeats, order: &Order) -> Value {
        let path = format!("/api/payments/order/{}", order.id);
        self.send(held.user_id, Method::GET, &path, None).await.json()["payment"].take()
    }

    /// Status and payment status of a reservation, its valid tickets, status of the order and what
    /// went back.
    pub async fn state(
        &self,
        held: &HeldSeats,
        order: &Order,
    ) -> (String, String, usize, String, i64) {
        let (reservation, order) = (self.reservation(held).await, self.order(held, order).await);
        let reservation = &reservation["reservation"];
        let tickets = reservation["tickets"].as_array().unwrap();
        let valid = tickets.iter().filter(|ticket| ticket["isValid"] == true).count();
        (
            text(&reservation["status"]),
            text(&reservation["paymentStatus"]),
            valid,
            text(&order["status"]),
            order["refundedAmount"].as_i64().unwrap(),
        )
    }

    /// What the statistics say, by the name of the endpoint.
    pub async fn statistics(&self, name: &str) -> Value {
        let answer = self.app.get(&format!("/api/stats/{name}")).as_admin().send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["data"].take()
    }

    /// Everything is finished and agrees: tickets, payments, provider, statistics, and the audit
    /// of the ledger.
    pub async fn settle(&self) {
        self.app.settle().await;
        let proof = self.audit("payments").await;
        assert_eq!(proof["holds"], true, "{proof}");
        assert_eq!(proof["unexplained"], json!([]));
        let seats = self.audit("reservations").await;
        assert_eq!(seats["differences"], json!([]), "{seats}");
        let overview = self.statistics("overview").await;
        let number = |name: &str| overview[name].as_i64().unwrap();
        assert_eq!(number("paymentRevenue"), proof["charged"].as_i64().unwrap(), "{overview}");
        assert_eq!(number("refunds"), proof["refunded"].as_i64().unwrap(), "{overview}");
    }

    /// What an audit of everything comes to now.
    pub async fn audit(&self, of: &str) -> Value {
        let path = format!("/api/admin/{of}/audit");
        let answer = self.app.post(&path).as_admin().send().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["last"].take()
    }

    pub async fn send(
        &self,
        user_id: Uuid,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> TestResponse {
        let call = self.app.request(method, path).as_person(user_id, UserRole::User);
        match body {
            Some(body) => call.json(&body).send().await,
            None => call.send().await,
        }
    }
}

pub fn order_of(payment: &Value) -> Order {
    Order {
        id: text(&payment["orderId"]),
        payment_id: text(&payment["id"]),
        payment_key: text(&payment["paymentKey"]),
    }
}

pub fn created(answer: TestResponse) -> Value {
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.bytes));
    answer.json()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a text")).to_owned()
}
