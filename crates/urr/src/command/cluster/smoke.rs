//! `urr cluster smoke`: someone buys two tickets, by both gateways in turn, shows one at the door and
//! gives the other back, and everything agrees.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use urr_kernel::{Clock, IdSource, Uuid};
use urr_rush::{FanClient, FanRequest, FanResponse, create_sale};
use urr_service::UserRole;

use super::site_of;
use crate::cluster::{ClusterFolder, Control};
use crate::command::audit::await_agreement;
use crate::command::rush::AccountMaker;
use crate::command::solve::solve;
use crate::command::{CommandNotRun, block_on, print_line};
use crate::config::Config;
use crate::role::ProcessRole;

const SEATS: usize = 20;
const PATIENCE: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(200);

/// Exit code 1: a step failed, or something does not agree. 2: it could not begin.
pub fn run(folder: &ClusterFolder) -> Result<()> {
    let prepare = || {
        let (config, status) = (folder.operator_config()?, Control::new(folder).status()?);
        ensure!(status.is_up, "the cluster is still starting");
        Ok((config, status))
    };
    let (config, status) = prepare().map_err(CommandNotRun::wrap)?;
    let is_gateway = |name: &str| name.starts_with(ProcessRole::Gateway.name());
    let gateways = status.members.iter().filter(|member| is_gateway(&member.name));
    let scheme = status.site.split("://").next().unwrap_or("http");
    let gateways: Vec<String> =
        gateways.map(|member| format!("{scheme}://127.0.0.1:{}", member.port)).collect();
    block_on(async {
        let mut journey = Journey::begin(&config, &status.site, &gateways)?;
        journey.register_and_log_in().await?;
        let event_id = journey.open_sale(&config, &status.site).await?;
        let kept = journey.buy(event_id, 0).await?;
        let ticket = journey.check_ticket(&kept).await?;
        journey.check_in(event_id, &ticket).await?;
        let returned = journey.buy(event_id, 1).await?;
        journey.give_back(&returned).await?;
        journey.check_statistics(event_id).await?;
        let report = await_agreement(&config, PATIENCE).await?;
        print_line(&report.to_text())?;
        ensure!(report.is_clean(), "the audit is not clean: {} differences", report.differences());
        ensure!(report.is_quiet(), "something is still under way");
        print_line("The journey is whole.")
    })
}

/// Someone on the way to a ticket.
struct Journey {
    /// One per gateway.
    clients: Vec<FanClient>,
    turn: usize,
    begun: Instant,
    token: String,
    admin_token: String,
}

impl Journey {
    fn begin(config: &Config, site: &str, gateways: &[String]) -> Result<Journey> {
        let urls = gateways.iter().map(String::as_str).chain([site]);
        let client = |url: &str| Ok(FanClient::new(site_of(config, url)?, 1, 1));
        let admin = AccountMaker::new(config, 1)?.account(UserRole::Admin);
        Ok(Journey {
            clients: urls.map(client).collect::<Result<_>>()?,
            turn: 0,
            begun: Instant::now(),
            token: String::new(),
            admin_token: admin.token,
        })
    }

    fn tell(&mut self, what: &str) -> Result<()> {
        let took = self.begun.elapsed();
        self.begun = Instant::now();
        print_line(&format!("ok        {what} ({} ms)", took.as_millis()))
    }

    /// Sends a request by the next gateway.
    async fn send(&mut self, request: FanRequest) -> Result<FanResponse> {
        self.turn += 1;
        let client = &self.clients[self.turn % self.clients.len()];
        let path = request.path.clone();
        let Ok(answer) = client.send(0, request).await else { bail!("{path}: no answer") };
        Ok(answer)
    }

    /// Sends a request that must succeed.
    async fn ask(&mut self, request: FanRequest) -> Result<Value> {
        let path = request.path.clone();
        let answer = self.send(request).await?;
        ensure!(answer.status.is_success(), "{path}: {} {}", answer.status, answer.body);
        Ok(answer.body)
    }

    async fn register_and_log_in(&mut self) -> Result<()> {
        let name = IdSource::from_system_randomness(Clock::System).next_id();
        let email = format!("smoke-{name}@example.com");
        let password = format!("secret of {name}");
        let terms = self.ask(FanRequest::get("/api/auth/terms")).await?;
        let agree =
            |it: &Value| json!({ "type": it["type"], "version": it["version"], "agreed": true });
        let terms: Vec<Value> =
            terms["terms"].as_array().context("there are terms")?.iter().map(agree).collect();
        let challenge = self.ask(FanRequest::get("/api/auth/challenge?for=register")).await?;
        let proof = solve(serde_json::from_value(challenge)?)?;
        let body = json!({ "email": email, "password": password, "name": "Smoke", "terms": terms });
        self.ask(FanRequest::post("/api/auth/register").proof(proof).body(body)).await?;
        let body = json!({ "email": email, "password": password });
        let session = self.ask(FanRequest::post("/api/auth/login").body(body)).await?;
        self.token = session["token"].as_str().context("a session has a token")?.to_owned();
        self.tell("registered and logged in")
    }

    async fn open_sale(&mut self, config: &Config, site: &str) -> Result<Uuid> {
        let event_id = create_sale(&site_of(config, site)?, &self.admin_token, SEATS).await?;
        self.tell("an event is on sale")?;
        Ok(event_id)
    }

    async fn enter(&mut self, event_id: Uuid) -> Result<String> {
        let ends_at = Instant::now() + PATIENCE;
        loop {
            let check = FanRequest::post(format!("/api/queue/check/{event_id}")).token(&self.token);
            let answer = self.send(check).await?;
            if let Some(token) = answer.body["entryToken"].as_str() {
                self.tell("admitted by the waiting room")?;
                return Ok(token.to_owned());
            }
            ensure!(Instant::now() < ends_at, "not admitted: {} {}", answer.status, answer.body);
            sleep(PAUSE).await;
        }
    }

    /// Waits for a turn, reserves a seat and pays for it. Returns the reservation.
    async fn buy(&mut self, event_id: Uuid, seat: usize) -> Result<String> {
        let entry_token = self.enter(event_id).await?;
        let body = json!({ "eventId": event_id, "seatIds": [seat] });
        let reserve = FanRequest::post("/api/seats/reserve").token(&self.token);
        let held = self.ask(reserve.entry_token(&entry_token).body(body)).await?;
        let id = held["reservation"]["id"].as_str().context("a reservation has an id")?.to_owned();
        self.tell("a seat is reserved")?;
        let body = json!({ "reservationId": id, "paymentMethod": "approve" });
        let pay = FanRequest::post("/api/payments/process").token(&self.token).body(body);
        let paid = self.ask(pay).await?;
        ensure!(paid["success"] == true, "not paid: {paid}");
        self.tell("it is paid at the sandbox")?;
        Ok(id)
    }

    async fn look_at(&mut self, reservation: &str) -> Result<Value> {
        let path = format!("/api/reservations/{reservation}");
        let mine = self.ask(FanRequest::get(path).token(&self.token)).await?;
        Ok(mine["reservation"].clone())
    }

    /// Returns what the ticket's code says.
    async fn check_ticket(&mut self, reservation: &str) -> Result<String> {
        let mine = self.look_at(reservation).await?;
        ensure!(mine["status"] == "confirmed", "not confirmed: {mine}");
        let code = mine["tickets"][0]["qr"].as_str().with_context(|| format!("no code: {mine}"))?;
        self.tell("the ticket is there")?;
        Ok(code.to_owned())
    }

    /// It opens the door once.
    async fn check_in(&mut self, event_id: Uuid, code: &str) -> Result<()> {
        let body = json!({ "eventId": event_id, "payload": code });
        let scan = FanRequest::post("/api/admin/check-ins").token(&self.admin_token).body(body);
        self.ask(scan.clone()).await?;
        let again = self.send(scan).await?;
        ensure!(again.code() == "ALREADY_CHECKED_IN", "{} {}", again.status, again.body);
        self.tell("it opens the door once")
    }

    async fn give_back(&mut self, reservation: &str) -> Result<()> {
        let path = format!("/api/reservations/{reservation}/cancel");
        self.ask(FanRequest::post(path).token(&self.token)).await?;
        let ends_at = Instant::now() + PATIENCE;
        loop {
            let mine = self.look_at(reservation).await?;
            if mine["paymentStatus"] == "refunded" {
                return self.tell("the other one is given back, and so is the money");
            }
            ensure!(Instant::now() < ends_at, "no refund: {mine}");
            sleep(PAUSE).await;
        }
    }

    async fn check_statistics(&mut self, event_id: Uuid) -> Result<()> {
        let ends_at = Instant::now() + PATIENCE;
        loop {
            let path = format!("/api/stats/events/{event_id}");
            let stats = self.ask(FanRequest::get(path).token(&self.admin_token)).await;
            if stats.as_ref().is_ok_and(has_sold_one) {
                return self.tell("the statistics know of it");
            }
            ensure!(Instant::now() < ends_at, "the statistics do not know of it: {stats:?}");
            sleep(PAUSE).await;
        }
    }
}

/// Whether the figures of an event say, somewhere, that one seat is sold.
fn has_sold_one(stats: &Value) -> bool {
    match stats {
        Value::Object(fields) => {
            fields.get("soldSeats") == Some(&json!(1)) || fields.values().any(has_sold_one)
        }
        _ => false,
    }
}
