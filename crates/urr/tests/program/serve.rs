//! `urr serve`: the services in processes of their own, on PostgreSQL, Redis and Kafka.

use anyhow::{Context, Result, ensure};
use axum::http::HeaderMap;
use urr_test::servers::{self, KafkaServer, PostgresServer, Server};

use crate::admin::register;
use crate::audit::check_audit;
use crate::distributed_purchase::{
    check_outage_of_the_waiting_room, check_purchase, check_refund, check_told,
};
use crate::http_client::{activity, artist_names, create_artist, get, identity_headers, request};
use crate::process::{Installation, eventually, free_port};
use crate::stats::check_rebuild;
use crate::whole_audit::check_whole_audit;

/// The number of failed calls after which the breaker of the gateway opens.
const CALLS_UNTIL_OPEN: usize = 10;

#[test]
fn nine_processes_are_one_system() -> Result<()> {
    for server in [Server::Postgres, Server::Kafka, Server::Redis] {
        if !servers::available(server)? {
            return Ok(());
        }
    }
    let (auth_port, catalog_port, stats_port) = (free_port(), free_port(), free_port());
    let (queue_port, ticket_port, payment_port) = (free_port(), free_port(), free_port());
    let (mail_port, community_port) = (free_port(), free_port());
    let mut installation = distributed_installation(catalog_port, stats_port)?;
    installation.set("AUTH_SERVICE_URL", &format!("http://127.0.0.1:{auth_port}"));
    installation.set("QUEUE_SERVICE_URL", &format!("http://127.0.0.1:{queue_port}"));
    installation.set("TICKET_SERVICE_URL", &format!("http://127.0.0.1:{ticket_port}"));
    installation.set("PAYMENT_SERVICE_URL", &format!("http://127.0.0.1:{payment_port}"));
    installation.set("MAIL_SERVICE_URL", &format!("http://127.0.0.1:{mail_port}"));
    installation.set("COMMUNITY_SERVICE_URL", &format!("http://127.0.0.1:{community_port}"));
    let auth = installation.serve(auth_port, "auth")?;
    let queue = installation.serve(queue_port, "queue")?;
    let ticket = installation.serve(ticket_port, "ticket")?;
    let payment = installation.serve(payment_port, "payment")?;
    let mail = installation.serve(mail_port, "mail")?;
    let community = installation.serve(community_port, "community")?;
    let catalog = installation.serve(catalog_port, "catalog")?;
    let stats = installation.serve(stats_port, "stats")?;
    let gateway = installation.serve(free_port(), "gateway")?;

    assert_eq!(artist_names(gateway.port)?, [] as [String; 0], "demo data are for `urr up`");
    let created = create_artist(catalog_port, "한강 밴드")?;
    ensure!(created.status == 201, "{created:?}");
    assert_eq!(artist_names(gateway.port)?, ["한강 밴드"]);
    eventually("the event reaches the statistics", || {
        Ok(activity(stats_port, "ARTIST_CREATED")? == 1)
    })?;

    check_forged_identity(catalog_port, gateway.port)?;
    check_login(&installation, gateway.port)?;

    catalog.stop("TERM")?.succeeded()?;
    check_outage(gateway.port)?;
    let catalog = installation.serve(catalog_port, "catalog")?;
    eventually("the gateway notices that the catalogue is back", || {
        Ok(get(gateway.port, "/api/artists")?.status == 200)
    })?;
    assert_eq!(artist_names(gateway.port)?, ["한강 밴드"]);
    assert_eq!(activity(stats_port, "ARTIST_CREATED")?, 1, "counted once, also after the restart");
    check_demo(&installation, gateway.port)?;
    let fan = check_purchase(gateway.port)?;
    check_told(&fan)?;
    check_audit(&installation)?;
    check_whole_audit(&installation)?;
    check_rebuild(&installation, stats_port)?;
    check_refund(&fan)?;
    let stop = || queue.stop("TERM")?.succeeded();
    let start = || installation.serve(queue_port, "queue");
    let queue = check_outage_of_the_waiting_room(&fan, gateway.port, stop, start)?;
    for process in [gateway, community, mail, stats, catalog, payment, ticket, queue, auth] {
        process.stop("TERM")?.succeeded()?;
    }
    assert!(!installation.path("data").exists(), "nothing is stored in a folder");
    Ok(())
}

/// Without Redis the line is in one process and its folder, and no other process gets at that.
#[test]
fn a_queue_process_without_redis_keeps_its_line_in_its_folder() -> Result<()> {
    if !servers::available(Server::Postgres)? || !servers::available(Server::Kafka)? {
        return Ok(());
    }
    // Logins and groups of consumers are shared by everyone on a server, so they must be our own.
    let (postgres, kafka) = (PostgresServer::start()?, KafkaServer::start()?);
    let mut installation = Installation::new()?;
    installation.share_secrets();
    installation.set("URR_DATABASE_URL", &postgres.create_database("alone")?);
    installation.set("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap());
    installation.run(&["migrate"])?.succeeded()?;
    let port = free_port().to_string();
    let serve = ["serve", "--roles", "queue", "--port", &port];
    let alone = installation.run(&serve)?;
    assert_eq!(alone.status.code(), Some(1), "{alone:?}");
    assert!(alone.stderr.contains("set services.ticket_url"), "{alone:?}");
    let refused = |role: &str, setting: &str| {
        let outcome = installation.run(&["serve", "--roles", role, "--port", &port])?;
        assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("set services.{setting}")), "{outcome:?}");
        anyhow::Ok(())
    };
    // Accounts could neither be closed nor copied, and the dashboard would have no figures.
    refused("auth", "ticket_url")?;
    refused("catalog", "ticket_url")?;
    installation.set("TICKET_SERVICE_URL", &format!("http://127.0.0.1:{}", free_port()));
    let queue = installation.serve(free_port(), "queue")?;
    assert!(installation.path("data/queue_room.db").exists());
    let second = installation.run(&serve)?;
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    assert!(second.stderr.contains("is in use"), "{second:?}");
    let doctor = installation.run(&["doctor"])?.stdout;
    assert!(doctor.contains("run one queue process only, or set redis.url"), "{doctor}");
    let ended = queue.stop("TERM")?.succeeded()?;
    assert!(ended.stderr.contains("run one queue process only, or set redis.url"), "{ended:?}");
    installation.serve(free_port(), "queue")?.stop("TERM")?.succeeded()?;
    Ok(())
}

/// In a cluster the database often starts after us.
#[test]
fn a_service_that_starts_before_its_database_waits_for_it() -> Result<()> {
    if !servers::available(Server::Postgres)? || !servers::available(Server::Kafka)? {
        return Ok(());
    }
    let (postgres, kafka) = (PostgresServer::start()?, KafkaServer::start()?);
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let url = postgres.create_database("late")?;
    installation.set("KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap());
    installation.set("URR_DATABASE_URL", &url);
    installation.run(&["migrate"])?.succeeded()?;

    let late_port = free_port();
    let here = url.split(['@', '/']).find(|part| part.starts_with("127.0.0.1:"));
    let here = here.context("the address of the server")?.to_owned();
    let moved = url.replace(&here, &format!("127.0.0.1:{late_port}"));
    ensure!(moved != url, "{here} is not in {url}");
    installation.set("URR_DATABASE_URL", &moved);
    // The control: without patience it ends, although the database comes a moment later.
    installation.set("URR_DATABASE_START_WAIT_SECONDS", "0");
    let port = free_port().to_string();
    let hasty = installation.run(&["serve", "--roles", "stats", "--port", &port])?;
    assert_eq!(hasty.status.code(), Some(1), "{hasty:?}");
    let said = "the database of the stats service does not answer";
    assert!(hasty.stderr.contains(said), "{hasty:?}");
    installation.set("URR_DATABASE_START_WAIT_SECONDS", "60");
    let appears = std::thread::spawn(move || -> Result<()> {
        std::thread::sleep(std::time::Duration::from_secs(2));
        pass_on(std::net::TcpListener::bind(("127.0.0.1", late_port))?, here)
    });
    let stats = installation.serve(free_port(), "stats")?;
    ensure!(!appears.is_finished(), "the way to the database is open");
    let ended = stats.stop("TERM")?.succeeded()?;
    ensure!(ended.stderr.contains("does not answer yet"), "it had to wait: {}", ended.stderr);
    Ok(())
}

/// Passes every connection on to another address, for as long as the test runs.
fn pass_on(listener: std::net::TcpListener, target: String) -> Result<()> {
    for client in listener.incoming() {
        let (client, server) = (client?, std::net::TcpStream::connect(&target)?);
        for (mut from, mut to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
    }
    Ok(())
}

/// The catalog announces the demo events; the ticket service creates their seats and announces that.
fn check_demo(installation: &Installation, gateway_port: u16) -> Result<()> {
    installation.run(&["seed"])?.succeeded()?;
    let again = installation.run(&["seed"])?.succeeded()?.stdout;
    assert!(again.starts_with("the demo data are there: "), "{again}");
    eventually("every event on sale has its seats", || {
        let events = get(gateway_port, "/api/events?status=on_sale&limit=50")?.json()?;
        let events = events["events"].as_array().cloned().unwrap_or_default();
        Ok(!events.is_empty() && events.iter().all(|event| event["inventoryReady"] == true))
    })
}

fn distributed_installation(catalog_port: u16, stats_port: u16) -> Result<Installation> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    let url = servers::shared_postgres()?.create_database("distributed")?;
    installation.set("URR_DATABASE_URL", &url);
    installation.set("KAFKA_BOOTSTRAP_SERVERS", servers::shared_kafka()?.bootstrap());
    installation.set("URR_REDIS_URL", servers::shared_redis()?.url());
    installation.set("CATALOG_SERVICE_URL", &format!("http://127.0.0.1:{catalog_port}"));
    installation.set("STATS_SERVICE_URL", &format!("http://127.0.0.1:{stats_port}"));
    installation.run(&["migrate"])?.succeeded()?;
    Ok(installation)
}

/// Someone registers at the gateway and is known there, until they leave.
fn check_login(installation: &Installation, gateway_port: u16) -> Result<()> {
    let registered = register(installation, gateway_port)?;
    assert_eq!(registered.status, 201, "{registered:?}");
    let tokens = registered.json()?;
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/json".parse()?);
    headers.insert("authorization", format!("Bearer {}", text(&tokens["token"])).parse()?);
    let me = request(gateway_port, "GET", "/api/auth/me", &headers, "")?;
    assert_eq!((me.status, text(&me.json()?["user"]["name"])), (200, "Buyer".to_owned()));
    let refresh = format!(r#"{{"refreshToken":"{}"}}"#, text(&tokens["refreshToken"]));
    let left = request(gateway_port, "POST", "/api/auth/logout", &headers, &refresh)?;
    assert_eq!(left.status, 200, "{left:?}");
    let me = request(gateway_port, "GET", "/api/auth/me", &headers, "")?;
    assert_eq!((me.status, code_of(&me.body)?.as_str()), (401, "TOKEN_REVOKED"));
    Ok(())
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A forged administrator header is refused by the service and removed by the gateway.
fn check_forged_identity(catalog_port: u16, gateway_port: u16) -> Result<()> {
    let forge = |port: u16, headers: &HeaderMap| {
        request(port, "POST", "/api/admin/artists", headers, r#"{"name":"Forger"}"#)
    };
    let mut forged = identity_headers();
    forged.insert("content-type", "application/json".parse()?);
    let refused = forge(catalog_port, &forged)?;
    assert_eq!((refused.status, code_of(&refused.body)?.as_str()), (403, "UNTRUSTED_IDENTITY"));
    let unheard = forge(gateway_port, &forged)?;
    assert_eq!(
        (unheard.status, code_of(&unheard.body)?.as_str()),
        (401, "AUTHENTICATION_REQUIRED")
    );
    forged.insert("x-urr-caller", "gateway".parse()?);
    forged.insert("x-urr-credential", "guessed".parse()?);
    let refused = forge(catalog_port, &forged)?;
    assert_eq!((refused.status, code_of(&refused.body)?.as_str()), (403, "INVALID_CREDENTIAL"));
    assert_eq!(forge(gateway_port, &forged)?.status, 401);
    Ok(())
}

/// Without its service a path is answered at once, and says when to come back.
fn check_outage(gateway_port: u16) -> Result<()> {
    for _ in 0..CALLS_UNTIL_OPEN + 2 {
        let reply = get(gateway_port, "/api/artists")?;
        assert_eq!(reply.status, 503, "{reply:?}");
        assert_eq!(code_of(&reply.body)?, "SERVICE_UNAVAILABLE");
        let seconds: u64 = reply.header("retry-after").unwrap_or("none").parse()?;
        assert!((1..=10).contains(&seconds), "{reply:?}");
        assert!(reply.json()?["traceId"].is_string(), "{reply:?}");
    }
    let reply = get(gateway_port, "/api/stats/activity")?;
    assert_eq!(reply.status, 401, "other services answer: {reply:?}");
    assert_eq!(get(gateway_port, "/health")?.status, 200);
    Ok(())
}

fn code_of(body: &str) -> Result<String> {
    let body: serde_json::Value = serde_json::from_str(body)?;
    Ok(body["code"].as_str().unwrap_or_default().to_owned())
}
