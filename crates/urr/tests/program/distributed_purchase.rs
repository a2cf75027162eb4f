//! A whole purchase through processes that communicate over the network only.

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::admin::LOGIN;
use crate::http_client::{Reply, get, request};
use crate::process::{CommandOutput, Running, eventually};

/// Someone who has logged in and wants to go to an event.
pub struct Buyer {
    gateway_port: u16,
    session: String,
    event_id: String,
}

impl Buyer {
    /// With the account that a test before has made, for the opera of the demo data.
    fn log_in(gateway_port: u16) -> Result<Buyer> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse()?);
        let tokens = request(gateway_port, "POST", "/api/auth/login", &headers, LOGIN)?.json()?;
        let events = get(gateway_port, "/api/events?status=on_sale&limit=50")?.json()?;
        let events = events["events"].as_array().context("a list")?.clone();
        let title = |event: &Value| text(&event["title"]);
        let opera = events.iter().find(|event| title(event).contains("Opera Night"));
        Ok(Buyer {
            gateway_port,
            session: text(&tokens["token"]),
            event_id: text(&opera.context("the opera is on sale")?["id"]),
        })
    }

    pub fn send(&self, method: &str, path: &str, token: &str, body: &Value) -> Result<Reply> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse()?);
        headers.insert("authorization", format!("Bearer {}", self.session).parse()?);
        if !token.is_empty() {
            headers.insert("x-queue-entry-token", token.parse()?);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        request(self.gateway_port, method, path, &headers, &body)
    }

    fn ask_queue(&self, method: &str, verb: &str) -> Result<Reply> {
        self.send(method, &format!("/api/queue/{verb}/{}", self.event_id), "", &Value::Null)
    }

    /// Comes to the waiting room, which may not have heard of the event yet, and is let in.
    fn enter(&self) -> Result<String> {
        let mut token = None;
        eventually("someone is let in", || {
            let told = self.ask_queue("POST", "check")?;
            token = told.json()?["entryToken"].as_str().map(str::to_owned);
            Ok(token.is_some())
        })?;
        token.context("they were let in")
    }

    /// The same buyer at another gateway.
    pub fn at(self, gateway_port: u16) -> Buyer {
        Buyer { gateway_port, ..self }
    }

    /// What the waiting room answers.
    pub fn queue(&self, method: &str, verb: &str) -> Result<Value> {
        self.ask_queue(method, verb)?.json()
    }

    /// Enters, and buys a seat.
    pub fn buy(&self, seat: u32) -> Result<()> {
        let held = self.reserve(&self.enter()?, seat)?;
        ensure!(held.status == 201, "{held:?}");
        let id = text(&held.json()?["reservation"]["id"]);
        let body = json!({ "reservationId": id, "paymentMethod": "approve" });
        let paid = self.send("POST", "/api/payments/process", "", &body)?;
        ensure!(paid.status == 200, "{paid:?}");
        Ok(())
    }

    fn reserve(&self, token: &str, seat: u32) -> Result<Reply> {
        let body = json!({ "eventId": self.event_id, "seatIds": [seat] });
        self.send("POST", "/api/seats/reserve", token, &body)
    }
}

/// From the waiting room to the ticket; the turn is over with the purchase.
pub fn check_purchase(gateway_port: u16) -> Result<Buyer> {
    let fan = Buyer::log_in(gateway_port)?;
    refused(&fan.reserve("", 0)?, 403, "ENTRY_TOKEN_REQUIRED")?;
    let token = fan.enter()?;
    let held = fan.reserve(&token, 0)?;
    ensure!(held.status == 201, "{held:?}");
    let id = text(&held.json()?["reservation"]["id"]);
    let body = json!({ "reservationId": id, "paymentMethod": "approve" });
    let paid = fan.send("POST", "/api/payments/process", "", &body)?;
    ensure!(paid.status == 200, "{paid:?}");
    // The waiting room is told beside the purchase, which waits for that only a moment.
    eventually("the turn is over", || {
        Ok(fan.ask_queue("GET", "status")?.json()?["status"] == "not_in_queue")
    })?;
    refused(&fan.reserve(&token, 1)?, 403, "ENTRY_TOKEN_INVALID")?;
    let mine = fan.send("GET", &format!("/api/reservations/{id}"), "", &Value::Null)?;
    assert_eq!(mine.json()?["reservation"]["status"], "confirmed", "{mine:?}");
    Ok(fan)
}

/// What was bought is given back: by way of the bus, the payments, their provider and the ticket
/// office, each a process of its own.
pub fn check_refund(fan: &Buyer) -> Result<()> {
    let paid = fan.send("GET", "/api/payments/user/me", "", &Value::Null)?.json()?;
    let paid = &paid["payments"][0];
    let (id, order_id) = (text(&paid["reservationId"]), text(&paid["orderId"]));
    let path = format!("/api/reservations/{id}");
    let cancelled = fan.send("POST", &format!("{path}/cancel"), "", &Value::Null)?;
    ensure!(cancelled.status == 200, "{cancelled:?}");
    let promised = cancelled.json()?["reservation"]["refundAmount"].clone();
    eventually("the money is back, and the ticket office knows", || {
        let mine = fan.send("GET", &path, "", &Value::Null)?.json()?;
        Ok(mine["reservation"]["paymentStatus"] == "refunded")
    })?;
    let order = format!("/api/payments/order/{order_id}");
    let order = fan.send("GET", &order, "", &Value::Null)?.json()?["payment"].take();
    assert_eq!((&order["status"], &order["refundedAmount"]), (&json!("refunded"), &promised));
    Ok(())
}

/// The buyer gets a mail with the data of the ticket service.
pub fn check_told(fan: &Buyer) -> Result<()> {
    eventually("the buyer is told", || {
        let told = fan.send("GET", "/api/notifications", "", &Value::Null)?.json()?;
        Ok(text(&told["notifications"][0]["subject"]).contains("Opera Night"))
    })
}

/// Without the queue service nobody can book; after its return everybody has their old position.
pub fn check_outage_of_the_waiting_room(
    fan: &Buyer,
    gateway_port: u16,
    stop: impl FnOnce() -> Result<CommandOutput>,
    start: impl FnOnce() -> Result<Running>,
) -> Result<Running> {
    let token = fan.enter()?;
    stop()?;
    let silent = fan.reserve(&token, 1)?;
    refused(&silent, 503, "QUEUE_UNAVAILABLE")?;
    ensure!(silent.header("retry-after").is_some(), "{silent:?}");
    assert_eq!(get(gateway_port, "/api/artists")?.status, 200, "others answer");
    let queue = start()?;
    eventually("the ticket office notices that the waiting room is back", || {
        Ok(fan.reserve(&token, 1)?.status == 201)
    })?;
    Ok(queue)
}

fn refused(reply: &Reply, status: u16, code: &str) -> Result<()> {
    ensure!(reply.status == status && reply.json()?["code"] == code, "{reply:?}");
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
