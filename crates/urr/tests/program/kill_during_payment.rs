//! Money and tickets of the real program: killed again and again while people pay with every test
//! card; and a refund that an operator repairs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use serde_json::{Value, json};
use urr::config::{self, CommandLineOverrides, LoadMode, LoadOptions};
use urr_kernel::{Clock, IdSource, Uuid};
use urr_payment::provider::TestCard;
use urr_service::UserRole;
use urr_service::token::{self, AccessClaims, TokenFacts, TokenKey};
use urr_storage::{Db, SqliteOptions, StorageError, params};
use urr_test::consistency::ServiceTables;

use crate::http_client::{Reply, request};
use crate::process::{Installation, SHARED_SECRETS, eventually};

const ROUNDS: u32 = 3;
/// How long the program lives in a round, in milliseconds.
const LIVES_MS: [u64; 7] = [1_500, 3_000, 700, 2_300, 400, 4_100, 1_100];
const TIME_LIMIT_SECONDS: &str = "2";
const HEALED_WITHIN: Duration = Duration::from_secs(90);
/// That these were never charged is believed only after minutes.
const SLOW_TO_FAIL: [&str; 2] = [TestCard::TimeOut.as_str(), TestCard::UnknownCode.as_str()];
const HEALED_WHOLLY_WITHIN: Duration = Duration::from_secs(600);

/// A running program and its public listener.
pub struct PaymentRun {
    pub installation: Installation,
    token_key: TokenKey,
    pub ids: IdSource,
    pub event_id: String,
    pub next_seat: AtomicU32,
    /// What buyers were told: the reservation, and the last that was said of it.
    told: Mutex<BTreeMap<String, &'static str>>,
}

impl PaymentRun {
    pub fn open(installation: Installation, port: u16) -> Result<PaymentRun> {
        let overrides = CommandLineOverrides {
            data_dir: Some("data".into()),
            ..CommandLineOverrides::default()
        };
        let args = LoadOptions { mode: LoadMode::Embedded, config_file: None, overrides };
        let secrets = SHARED_SECRETS.map(|(name, value)| (OsString::from(name), value.into()));
        let config = config::load(args, secrets).map_err(|error| anyhow::anyhow!("{error}"))?;
        let mut run = PaymentRun {
            installation,
            token_key: TokenKey::new(&config.auth.jwt_key()),
            ids: IdSource::from_system_randomness(Clock::System),
            event_id: String::new(),
            next_seat: AtomicU32::new(0),
            told: Mutex::default(),
        };
        run.event_id = run.create_event(port)?;
        Ok(run)
    }

    /// In a hall of twenty rows of a hundred seats, far away.
    fn create_event(&self, port: u16) -> Result<String> {
        let make = |path: &str, body: Value| {
            let made = self.send(port, Uuid::nil(), "POST", path, &body)?;
            ensure!(made.status == 201, "{made:?}");
            made.json()
        };
        let venue = make("/api/admin/venues", json!({"name": "강변 홀", "address": "서울"}))?;
        let grades = json!([{"grade": "R", "fromRow": 1, "toRow": 20}]);
        let grid = json!({"rows": 20, "seatsPerRow": 100, "gradeMapping": grades});
        let halls = format!("/api/admin/venues/{}/halls", text(&venue["venue"]["id"]));
        let hall = make(&halls, json!({"name": "대극장", "grid": grid}))?;
        let now = Clock::System.now();
        let (day, month) = (Duration::from_hours(24), Duration::from_hours(30 * 24));
        let event = json!({
            "title": "한강의 밤", "hallId": hall["hall"]["id"], "startsAt": (now + month * 2),
            "saleStartsAt": (now - day), "saleEndsAt": (now + month), "prices": {"R": 90_000},
        });
        let event = make("/api/admin/events", event)?;
        let id = text(&event["event"]["id"]);
        eventually("the event can be booked", || {
            let event = crate::http_client::get(port, &format!("/api/events/{id}"))?.json()?;
            Ok(event["event"]["inventoryReady"] == true)
        })?;
        Ok(id)
    }

    /// As someone who has logged in; nobody's id is an administrator's.
    pub fn send(
        &self,
        port: u16,
        user_id: Uuid,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<Reply> {
        self.send_with(port, user_id, method, path, body, None)
    }

    pub fn send_with(
        &self,
        port: u16,
        user_id: Uuid,
        method: &str,
        path: &str,
        body: &Value,
        entry: Option<&str>,
    ) -> Result<Reply> {
        let role = if user_id.is_nil() { UserRole::Admin } else { UserRole::User };
        let issue = TokenFacts {
            subject: user_id.to_string(),
            id: self.ids.next_id(),
            issued_at: Clock::System.now(),
            lifetime: Duration::from_mins(30),
        };
        let family_id = self.ids.next_id();
        let (email, email_verified) = ("fan@example.com".to_owned(), true);
        let claims = AccessClaims { email, role, family_id, email_verified };
        let session = self.token_key.sign(token::ACCESS, &issue, &claims);
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse()?);
        headers.insert("authorization", format!("Bearer {session}").parse()?);
        if let Some(entry) = entry {
            headers.insert("x-queue-entry-token", entry.parse()?);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        request(port, method, path, &headers, &body)
    }

    /// Somebody new is let in and holds a seat. An error: the program has gone.
    fn hold(&self, port: u16) -> Result<(Uuid, String)> {
        let user_id = self.ids.next_id();
        let path = format!("/api/queue/check/{}", self.event_id);
        let mut entry = None;
        while entry.is_none() {
            let told = self.send(port, user_id, "POST", &path, &Value::Null)?.json()?;
            entry = told["entryToken"].as_str().map(str::to_owned);
        }
        let seat = self.next_seat.fetch_add(1, Ordering::SeqCst);
        let body = json!({"eventId": self.event_id, "seatIds": [seat]});
        let path = "/api/seats/reserve";
        let held = self.send_with(port, user_id, "POST", path, &body, entry.as_deref())?;
        ensure!(held.status == 201, "{held:?}");
        Ok((user_id, text(&held.json()?["reservation"]["id"])))
    }

    pub fn pay(&self, port: u16, user_id: Uuid, id: &str, card: TestCard) -> Result<Reply> {
        let body = json!({"reservationId": id, "paymentMethod": card.as_str()});
        self.send(port, user_id, "POST", "/api/payments/process", &body)
    }

    /// Buys with one card until the program is gone, and gives back every other purchase.
    fn buy_until_it_ends(&self, port: u16, card: TestCard) {
        let note = |id: &str, what| {
            self.told.lock().expect("nobody panics with it").insert(id.to_owned(), what);
        };
        let buy = |gives_back: bool| -> Result<()> {
            let (user_id, id) = self.hold(port)?;
            let paid = self.pay(port, user_id, &id, card)?;
            if paid.status == 200 {
                note(&id, "confirmed");
            }
            if paid.status == 200 && gives_back && card != TestCard::RefundDeclined {
                note(&id, "either");
                let path = format!("/api/reservations/{id}/cancel");
                let cancelled = self.send(port, user_id, "POST", &path, &Value::Null)?;
                ensure!(cancelled.status == 200, "{cancelled:?}");
                note(&id, "cancelled");
            }
            Ok(())
        };
        let mut gives_back = false;
        while buy(gives_back).is_ok() {
            gives_back = !gives_back;
        }
    }

    fn service_tables(&self) -> Result<ServiceTables> {
        let open = |schema: &str| {
            let path = self.installation.path("data").join(format!("{schema}.db"));
            Db::open_sqlite(&path, &SqliteOptions::default())
        };
        Ok(ServiceTables {
            ticket: open("reservation_service")?,
            payment: open("payment_service")?,
            stats: open("stats_service")?,
        })
    }

    /// Waits until everybody agrees; `aside` are cards that may take longer.
    fn await_healed(
        &self,
        tables: &ServiceTables,
        aside: &[&str],
        patience: Duration,
    ) -> Result<()> {
        let runtime = tokio::runtime::Runtime::new()?;
        let deadline = Instant::now() + patience;
        loop {
            let differences = runtime.block_on(tables.differences_except_cards(aside));
            if differences.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "they never agree: {differences:#?}");
            thread::sleep(Duration::from_millis(250));
        }
    }
}

/// M-3, M-11, M-17, K-2: no double charge, no lost ticket, no orphan payment, no stuck hold; the
/// ledger equals the provider's and the statistics equal the services' tables.
#[test]
fn m_17_killed_again_and_again_the_program_loses_no_ticket_and_no_won() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    // A killed process keeps its claim for longer than all calls could take.
    installation.set("URR_PAYMENTS_TIMEOUT_SECONDS", TIME_LIMIT_SECONDS);
    let first = installation.up(&[])?;
    let run = PaymentRun::open(installation, first.port)?;
    let mut running = Some(first);
    let ordered = rounds_ordered();
    for round in 0..ordered.unwrap_or(ROUNDS) {
        let program = match running.take() {
            Some(program) => program,
            None => run.installation.up(&[])?,
        };
        let life = LIVES_MS[round as usize % LIVES_MS.len()];
        let (run, port) = (&run, program.port);
        thread::scope(|scope| {
            for card in TestCard::ALL {
                scope.spawn(move || run.buy_until_it_ends(port, card));
            }
            thread::sleep(Duration::from_millis(life));
            program.stop("KILL").map(|_| ())
        })?;
    }
    let program = run.installation.up(&[])?;
    let tables = run.service_tables()?;
    run.await_healed(&tables, &SLOW_TO_FAIL, HEALED_WITHIN)?;
    if ordered.is_some() {
        run.await_healed(&tables, &[], HEALED_WHOLLY_WITHIN)?;
    }
    check_what_was_told(&run, &tables)?;
    for path in ["/api/admin/payments/audit", "/api/admin/reservations/audit"] {
        let audit = run.send(program.port, Uuid::nil(), "POST", path, &Value::Null)?.json()?;
        let last = &audit["last"];
        ensure!(last["holds"] != false && last.is_object(), "{audit}");
        ensure!(last["differences"].as_array().is_none_or(Vec::is_empty), "{audit}");
    }
    program.stop("TERM")?.succeeded()?;
    Ok(())
}

/// What a buyer was told stays true, whatever happened afterwards.
#[expect(clippy::print_stderr, reason = "for whoever orders more rounds")]
fn check_what_was_told(run: &PaymentRun, tables: &ServiceTables) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let (reserved, paid) =
        runtime.block_on(async { (tables.reservations().await, tables.payments().await) });
    let told = run.told.lock().expect("nobody panics with it");
    for (id, what) in &*told {
        let reservation = reserved.get(&id.parse()?).context("a reservation is lost")?;
        let is_true = match *what {
            "either" => ["confirmed", "cancelled"].contains(&reservation.status.as_str()),
            what => reservation.status == what,
        };
        ensure!(is_true, "told that {id} is {what}, and it is {reservation:?}");
    }
    let charged = paid.values().filter(|paid| paid.theirs.0 > 0).count();
    let cards = paid.values().filter_map(|paid| paid.card.as_deref());
    let cards: std::collections::BTreeSet<&str> = cards.collect();
    ensure!(cards.len() == TestCard::ALL.len(), "not every card was used: {cards:?}");
    ensure!(!told.is_empty() && charged > 0, "nothing was bought");
    eprintln!("{} reservations, {} payments, {charged} charged", reserved.len(), paid.len());
    Ok(())
}

/// How often it is killed, if more is ordered.
#[expect(clippy::disallowed_methods, reason = "orders, not configuration")]
fn rounds_ordered() -> Option<u32> {
    std::env::var("URR_TEST_CRASH_ROUNDS").ok()?.parse().ok()
}

/// K-7: a refund that could not begin waits among the dead letters, and `urr dlq replay` begins it.
#[test]
fn k_7_an_operator_repairs_a_refund_by_sending_its_dead_letter_again() -> Result<()> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let program = installation.up(&[])?;
    let (run, port) = (PaymentRun::open(installation, program.port)?, program.port);
    let (user_id, id) = run.hold(port)?;
    let paid = run.pay(port, user_id, &id, TestCard::Approve)?;
    ensure!(paid.status == 200, "{paid:?}");
    let payment_id: Uuid = text(&paid.json()?["payment"]["id"]).parse()?;
    let tables = run.service_tables()?;
    // A hand in the tables.
    set_target(&tables.payment, payment_id, Uuid::nil())?;
    let path = format!("/api/reservations/{id}/cancel");
    let cancelled = run.send(port, user_id, "POST", &path, &Value::Null)?;
    ensure!(cancelled.status == 200, "{cancelled:?}");
    let listed = ["dlq", "list", "--topic", "reservation-events"];
    eventually("the dead letter is there", || {
        let list = run.installation.run(&listed)?.succeeded()?.stdout;
        Ok(list.contains("payment-service-group") && list.contains("RESERVATION_CANCELLED"))
    })?;

    set_target(&tables.payment, payment_id, id.parse()?)?;
    let sent = run.installation.run(&["dlq", "replay", "--all"])?.succeeded()?.stdout;
    assert_eq!(sent, "1 dead letters were sent again.\n");
    run.await_healed(&tables, &[], HEALED_WITHIN)?;
    let path = format!("/api/reservations/{id}");
    let mine = run.send(port, user_id, "GET", &path, &Value::Null)?.json()?;
    assert_eq!(mine["reservation"]["paymentStatus"], "refunded", "{mine}");
    let left = run.installation.run(&["dlq", "list"])?.succeeded()?.stdout;
    assert_eq!(left, "There are no dead letters.\n");
    Ok(())
}

fn set_target(payments: &Db, id: Uuid, target: Uuid) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let sql = "update payments set payable_id = $2 where id = $1";
    let written: Result<u64, StorageError> =
        runtime.block_on(payments.write(move |tx| tx.execute(sql, params![id, target])));
    ensure!(written? == 1, "there is such a payment");
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
