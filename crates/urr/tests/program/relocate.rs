//! `urr move`: a shop that was sold from moves to PostgreSQL, Redis and Kafka, and sells on there.

use std::fs;

use anyhow::{Context, Result, ensure};
use postgres::{Client, NoTls};
use serde_json::{Value, json};
use urr_test::servers::{self, KafkaServer, PostgresServer, RedisServer, Server};

use crate::audit::sell_a_ticket;
use crate::distributed_purchase::Buyer;
use crate::process::{CommandOutput, Installation, Process, eventually};
use crate::rush::event_on_sale;
use crate::whole_audit::check_whole_audit;

/// Changes a line of the ledger on its way into the database.
const WRONG_LEDGER: &str = "\
    create function payment_service.wrong() returns trigger language plpgsql as \
    $$ begin new.amount := new.amount + 1; return new; end $$; \
    create trigger wrong before insert on payment_service.ledger_lines for each row \
    when (new.account = 'sales') execute function payment_service.wrong();";

fn move_to(installation: &Installation, url: &str, more: &[&str]) -> Result<CommandOutput> {
    installation.run(&[&["move", "--to", url], more].concat())
}

fn count(url: &str, table: &str) -> Result<i64> {
    let mut client = Client::connect(url, NoTls)?;
    Ok(client.query_one(&format!("select count(*) from {table}"), &[])?.get(0))
}

/// A fan bought a ticket, became a member, and waits for more.
fn fill_shop(installation: &Installation, port: u16) -> Result<(Buyer, String, Value)> {
    let fan = sell_a_ticket(installation, port)?;
    let artists = fan.send("GET", "/api/artists", "", &Value::Null)?.json()?;
    let artist = artists["artists"][0]["id"].as_str().context("an artist")?.to_owned();
    let body = json!({ "artistId": artist });
    let member = fan.send("POST", "/api/memberships/subscribe", "", &body)?;
    ensure!(member.status == 201, "{member:?}");
    let event = event_on_sale(installation)?;
    installation.run(&["queue", "pause", &event])?.succeeded()?;
    let mut place = Value::Null;
    eventually("the fan waits", || {
        fan.queue("POST", "check")?;
        place = fan.queue("GET", "status")?;
        Ok(place["status"] == "queued")
    })?;
    Ok((fan, event, place))
}

/// What must not be moved from or to, and what is not moved unchanged.
fn check_refusals(installation: &Installation, server: &PostgresServer) -> Result<()> {
    let url = server.create_database("refused")?;
    let nowhere = installation.run(&["move"])?;
    nowhere.refused_with(&["say where to"]);
    let none = installation.run(&["move", "--to", &url, "--data", "elsewhere"])?;
    none.refused_with(&["there is no shop in elsewhere"]);
    assert!(!installation.path("elsewhere").exists());

    let secrets = |file| move_to(installation, &url, &["--secrets-to", file]);
    secrets("data/secrets.toml")?.refused_with(&["data/secrets.toml exists"]);
    secrets("nowhere/secrets.env")?.refused_with(&["there is no nowhere"]);

    let looked = move_to(installation, &url, &["--dry-run"])?.succeeded()?.stdout;
    assert!(looked.contains("Nothing was changed"), "{looked}");
    assert!(looked.contains("reservation_service.reservations"), "{looked}");
    assert!(count(&url, "payment_service.payments").is_err(), "not even a schema was made");

    let mut migrate = installation.command(&["migrate"]);
    migrate.env("URR_DATABASE_URL", &url);
    Process::start(migrate)?.await_end()?.succeeded()?;
    Client::connect(&url, NoTls)?.batch_execute(WRONG_LEDGER)?;
    let wrong = move_to(installation, &url, &[])?;
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("nothing was moved"), "{wrong:?}");
    for name in ["payment_service.ledger_lines", "ledger: sales"] {
        let line = wrong.stdout.lines().find(|line| line.starts_with(name));
        assert!(line.is_some_and(|line| line.ends_with("DIFFERENT")), "{wrong:?}");
    }
    assert_eq!(count(&url, "payment_service.payments")?, 0);
    assert!(!installation.path("data/moved-to").exists());
    Ok(())
}

#[test]
fn a_shop_moves_with_its_sales_and_its_lines_and_sells_on() -> Result<()> {
    for server in [Server::Postgres, Server::Kafka, Server::Redis] {
        if !servers::available(server)? {
            return Ok(());
        }
    }
    let (server, kafka) = (PostgresServer::start()?, KafkaServer::start()?);
    let redis = RedisServer::start()?;
    let mut installation = Installation::new()?;
    let urr = installation.up(&[])?;
    let (fan, event, place) = fill_shop(&installation, urr.port)?;
    let url = server.create_database("moved")?;
    move_to(&installation, &url, &[])?.refused_with(&["is in use"]);
    urr.stop("TERM")?.succeeded()?;
    check_refusals(&installation, &server)?;

    installation.set("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap());
    installation.set("URR_REDIS_URL", redis.url());
    let moved = move_to(&installation, &url, &["--secrets-to", "secrets.env"])?.succeeded()?;
    for part in ["go to Kafka", "with 1 waiting and 0 inside, go to Redis", " same\n"] {
        assert!(moved.stdout.contains(part), "{part:?} is not in {}", moved.stdout);
    }
    assert!(!moved.stdout.contains("DIFFERENT"), "{}", moved.stdout);
    let secrets = fs::read_to_string(installation.path("secrets.env"))?;
    for name in ["URR_AUTH_DATA_KEY=", "URR_DATABASE_ROLE_SECRET="] {
        assert!(secrets.contains(name), "{name} is not there");
    }
    // Neither the files nor the move are used a second time.
    move_to(&installation, &url, &[])?.refused_with(&["is not empty"]);
    let old = installation.run(&["up"])?;
    old.refused_with(&["was moved to 127.0.0.1"]);

    installation.set("URR_DATABASE_URL", &url);
    check_whole_audit(&installation)?;
    let urr = installation.up(&[])?;
    let fan = fan.at(urr.port);
    let now = fan.queue("GET", "status")?;
    for field in ["status", "number", "position"] {
        assert_eq!((field, &now[field]), (field, &place[field]));
    }
    assert_eq!(now["position"], 1, "{now}");
    installation.run(&["queue", "resume", &event])?.succeeded()?;
    fan.buy(2)?;
    check_whole_audit(&installation)?;
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}
