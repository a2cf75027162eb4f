//! What fans do on a cluster, and what they are answered.

use std::fs;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;
use urr::config::{self, CommandLineOverrides, LoadMode, LoadOptions};
use urr_kernel::{Clock, IdSource, Timestamp, Uuid};
use urr_rush::{FanClient, FanRequest, Site};
use urr_service::UserRole;
use urr_service::token::{self, AccessClaims, TokenFacts, TokenKey};

use super::TestCluster;
use crate::admin::{LOGIN, REGISTRATION};

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
const HOUR: Duration = Duration::from_hours(1);
/// Limits count by address: fans come from many.
const ADDRESSES: u16 = 100;
const CONNECTIONS: usize = 400;
const ROWS: u32 = 40;
const SEATS_PER_ROW: u32 = 100;

/// A shop with an event on sale.
pub struct ClusterShop {
    site: String,
    client: FanClient,
    token_key: TokenKey,
    ids: IdSource,
    pub event_id: Uuid,
    /// Its sale has not begun, so everybody waits in its room.
    pub later_event_id: Uuid,
    fans: AtomicUsize,
    seats: AtomicU32,
}

/// Somebody who is logged in.
#[derive(Clone)]
pub struct ShopFan {
    number: usize,
    token: String,
}

/// What the shop answered.
#[derive(Clone, Debug)]
pub struct ShopAnswer {
    /// 0: nothing.
    pub status: u16,
    pub body: Value,
}

impl ShopAnswer {
    /// The status, and the code of an error.
    pub fn text(&self) -> String {
        match (self.status, self.body["code"].as_str()) {
            (0, _) => "no answer".to_owned(),
            (status, Some(code)) if status >= 400 => format!("{status} {code}"),
            (status, _) => status.to_string(),
        }
    }

    pub fn is(&self, status: u16) -> Result<Value> {
        ensure!(self.status == status, "{self:?}");
        Ok(self.body.clone())
    }
}

impl ClusterShop {
    /// Makes a hall, the events and an account.
    pub async fn open(cluster: &TestCluster) -> Result<ClusterShop> {
        let site = text(&cluster.status()?["site"]);
        let options = LoadOptions {
            mode: LoadMode::Inspect,
            config_file: Some(cluster.folder().join("operator.toml")),
            overrides: CommandLineOverrides::default(),
        };
        let config = config::load(options, []).map_err(|error| anyhow::anyhow!("{error}"))?;
        let mut shop = ClusterShop {
            client: FanClient::new(Site::parse(&site)?, CONNECTIONS, ADDRESSES),
            site,
            token_key: TokenKey::new(&config.auth.jwt_key()),
            ids: IdSource::from_system_randomness(Clock::System),
            event_id: Uuid::nil(),
            later_event_id: Uuid::nil(),
            fans: AtomicUsize::new(0),
            seats: AtomicU32::new(0),
        };
        shop.register(cluster, "fan@example.com").await?;
        let admin = shop.fan_of(UserRole::Admin);
        let hall = shop.create_hall(&admin).await?;
        let now = Clock::System.now();
        shop.event_id = shop.create_event(&admin, &hall, now - HOUR).await?;
        shop.later_event_id = shop.create_event(&admin, &hall, now + HOUR / 2).await?;
        for event_id in [shop.event_id, shop.later_event_id] {
            shop.await_rooms(event_id).await?;
        }
        Ok(shop)
    }

    /// Opens an account. A mail with a link goes to its address.
    pub async fn register(&self, cluster: &TestCluster, email: &str) -> Result<()> {
        let solve = ["solve", "register", "--url", &self.site];
        let proof = cluster.installation.run(&solve)?.succeeded()?.stdout.trim().to_owned();
        let mut body: Value = serde_json::from_str(REGISTRATION)?;
        body["email"] = json!(email);
        let number = self.fans.fetch_add(1, Ordering::Relaxed);
        let register = FanRequest::post("/api/auth/register").proof(proof).body(body);
        self.send(number, register).await.is(201).map(drop)
    }

    /// Whether a mail to this address has arrived.
    pub fn has_mail(&self, cluster: &TestCluster, email: &str) -> Result<bool> {
        for mail in fs::read_dir(cluster.folder().join("mails"))? {
            let mail = fs::read_to_string(mail?.path()).unwrap_or_default();
            if mail.lines().any(|line| line.starts_with("To:") && line.contains(email)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn create_hall(&self, admin: &ShopFan) -> Result<Value> {
        let venue = json!({ "name": "강변 홀", "address": "서울" });
        let venue = self.create(admin, "/api/admin/venues", venue).await?;
        let grades = json!([{ "grade": "R", "fromRow": 1, "toRow": ROWS }]);
        let grid = json!({ "rows": ROWS, "seatsPerRow": SEATS_PER_ROW, "gradeMapping": grades });
        let halls = format!("/api/admin/venues/{}/halls", text(&venue["venue"]["id"]));
        let hall = self.create(admin, &halls, json!({ "name": "대극장", "grid": grid })).await?;
        Ok(hall["hall"]["id"].clone())
    }

    async fn create_event(
        &self,
        admin: &ShopFan,
        hall: &Value,
        sale_starts_at: Timestamp,
    ) -> Result<Uuid> {
        let month = 30 * 24 * HOUR;
        let event = json!({
            "title": "한강의 밤", "hallId": hall, "startsAt": sale_starts_at + 2 * month,
            "saleStartsAt": sale_starts_at, "saleEndsAt": sale_starts_at + month,
            "prices": { "R": 90_000 },
        });
        let event = self.create(admin, "/api/admin/events", event).await?;
        Ok(text(&event["event"]["id"]).parse()?)
    }

    async fn create(&self, admin: &ShopFan, path: &str, body: Value) -> Result<Value> {
        self.post(admin, path, body).await.is(201)
    }

    /// Every process of the queue knows the event, and its seats are there.
    async fn await_rooms(&self, event_id: Uuid) -> Result<()> {
        let ends_at = Instant::now() + PATIENCE;
        let mut seen_in_a_row = 0;
        while seen_in_a_row < 4 {
            ensure!(Instant::now() < ends_at, "the event cannot be booked");
            let fan = self.fan();
            let status = self.get(&fan, &format!("/api/queue/status/{event_id}")).await;
            let event = self.get(&fan, &format!("/api/events/{event_id}")).await;
            let is_there = status.status == 200 && event.body["event"]["inventoryReady"] == true;
            seen_in_a_row = if is_there { seen_in_a_row + 1 } else { 0 };
            sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn send(&self, number: usize, request: FanRequest) -> ShopAnswer {
        match self.client.send(number, request).await {
            Ok(answer) => ShopAnswer { status: answer.status.as_u16(), body: answer.body },
            Err(_) => ShopAnswer { status: 0, body: Value::Null },
        }
    }

    pub async fn get(&self, fan: &ShopFan, path: &str) -> ShopAnswer {
        self.send(fan.number, FanRequest::get(path).token(&fan.token)).await
    }

    async fn post(&self, fan: &ShopFan, path: &str, body: Value) -> ShopAnswer {
        let request = FanRequest::post(path).token(&fan.token);
        let request = if body.is_null() { request } else { request.body(body) };
        self.send(fan.number, request).await
    }

    /// Somebody new.
    pub fn fan(&self) -> ShopFan {
        self.fan_of(UserRole::User)
    }

    fn fan_of(&self, role: UserRole) -> ShopFan {
        let (user_id, id, family_id) = (self.ids.next_id(), self.ids.next_id(), self.ids.next_id());
        let (issued_at, lifetime) = (Clock::System.now(), HOUR);
        let facts = TokenFacts { subject: user_id.to_string(), id, issued_at, lifetime };
        let (email, email_verified) = (format!("{user_id}@example.com"), true);
        let claims = AccessClaims { email, role, family_id, email_verified };
        let token = self.token_key.sign(token::ACCESS, &facts, &claims);
        ShopFan { number: self.fans.fetch_add(1, Ordering::Relaxed), token }
    }

    /// Logs the one who has an account in.
    pub async fn log_in(&self) -> ShopAnswer {
        let body = serde_json::from_str(LOGIN).expect("it is JSON");
        let number = self.fans.fetch_add(1, Ordering::Relaxed);
        self.send(number, FanRequest::post("/api/auth/login").body(body)).await
    }

    /// The one who was logged in by this answer.
    pub fn fan_with_session(&self, session: &Value) -> ShopFan {
        let number = self.fans.fetch_add(1, Ordering::Relaxed);
        ShopFan { number, token: text(&session["token"]) }
    }

    pub async fn page(&self) -> ShopAnswer {
        self.get(&self.fan(), &format!("/api/events/{}", self.event_id)).await
    }

    /// Comes to the room of an event.
    pub async fn join(&self, fan: &ShopFan, event_id: Uuid) -> ShopAnswer {
        self.post(fan, &format!("/api/queue/check/{event_id}"), Value::Null).await
    }

    /// Gives the turn at the sale to somebody else.
    pub async fn leave(&self, fan: &ShopFan) -> ShopAnswer {
        self.post(fan, &format!("/api/queue/leave/{}", self.event_id), Value::Null).await
    }

    /// Asks for the place in the line of the later event.
    pub async fn place(&self, fan: &ShopFan) -> ShopAnswer {
        self.get(fan, &format!("/api/queue/status/{}", self.later_event_id)).await
    }

    /// Comes to the room of the sale and is let in, if it answers. Gives the entry token.
    pub async fn enter(&self, fan: &ShopFan) -> Result<String> {
        let ends_at = Instant::now() + PATIENCE;
        loop {
            let told = self.join(fan, self.event_id).await.is(200)?;
            if let Some(token) = told["entryToken"].as_str() {
                return Ok(token.to_owned());
            }
            ensure!(Instant::now() < ends_at, "not let in: {told}");
            sleep(PAUSE).await;
        }
    }

    /// Holds a seat that nobody asked for before.
    pub async fn hold(&self, fan: &ShopFan, entry_token: &str) -> ShopAnswer {
        let seat = self.seats.fetch_add(1, Ordering::Relaxed) % (ROWS * SEATS_PER_ROW);
        let body = json!({ "eventId": self.event_id, "seatIds": [seat] });
        let request = FanRequest::post("/api/seats/reserve").token(&fan.token).body(body);
        self.send(fan.number, request.entry_token(entry_token)).await
    }

    pub async fn pay(&self, fan: &ShopFan, reservation: &str, card: &str) -> ShopAnswer {
        let body = json!({ "reservationId": reservation, "paymentMethod": card });
        self.post(fan, "/api/payments/process", body).await
    }

    pub async fn own_reservations(&self, fan: &ShopFan) -> ShopAnswer {
        self.get(fan, "/api/reservations/my").await
    }

    /// `pending`, `confirmed` and so on.
    pub async fn status_of(&self, fan: &ShopFan, reservation: &str) -> Result<String> {
        let mine = self.get(fan, &format!("/api/reservations/{reservation}")).await.is(200)?;
        Ok(text(&mine["reservation"]["status"]))
    }

    /// How many seats are sold, as the statistics know.
    pub async fn sold_seats(&self) -> Result<i64> {
        let path = format!("/api/stats/events/{}", self.event_id);
        let stats = self.get(&self.fan_of(UserRole::Admin), &path).await;
        if stats.status == 404 {
            return Ok(0);
        }
        find_sold(&stats.is(200)?).with_context(|| format!("{stats:?}"))
    }

    /// Buys a seat from the beginning to the end.
    pub async fn buy(&self, fan: &ShopFan) -> Result<()> {
        let entry_token = self.enter(fan).await?;
        let held = self.hold(fan, &entry_token).await.is(201)?;
        let id = reservation_id(&held);
        self.pay(fan, &id, "approve").await.is(200)?;
        match self.status_of(fan, &id).await?.as_str() {
            "confirmed" => Ok(()),
            other => bail!("paid, and {other}"),
        }
    }
}

fn find_sold(stats: &Value) -> Option<i64> {
    let fields = stats.as_object()?;
    let own = fields.get("soldSeats").and_then(Value::as_i64);
    own.or_else(|| fields.values().find_map(find_sold))
}

pub fn reservation_id(held: &Value) -> String {
    text(&held["reservation"]["id"])
}

/// The number in the line of a status.
pub fn place_number(told: &Value) -> Result<i64> {
    told["number"].as_i64().with_context(|| format!("nobody waits: {told}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
