//! A server is lost during a sale and another takes its place: nobody restarts a process of URR, and
//! what buyers were told stays true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use urr_bus::{Bus, KafkaOptions};
use urr_contracts::events::TOPICS;
use urr_kernel::Uuid;
use urr_payment::provider::TestCard;
use urr_storage::{Db, Schema, SqliteOptions, StorageError};
use urr_test::servers::{self, KafkaCluster, PostgresServer, RedisCluster, Server};

use crate::http_client::activity;
use crate::kill_during_payment::PaymentRun;
use crate::process::{Installation, Running, eventually, free_port};
use crate::whole_audit::check_whole_audit;

const BUYERS: usize = 4;
/// Before another try of somebody who was refused.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How many buy before the server is lost.
const BOUGHT_BEFORE: usize = 10;

/// A purchase that a buyer was told of.
struct Purchase {
    begun: Instant,
    user_id: Uuid,
    reservation_id: String,
}

/// People who buy one after the other until the sale is over.
struct Buyers<'a> {
    run: &'a PaymentRun,
    port: u16,
    bought: Mutex<Vec<Purchase>>,
    is_over: AtomicBool,
}

/// Lets people buy while something happens. Gives what they were told they have.
fn sell_while(
    run: &PaymentRun,
    port: u16,
    happens: impl FnOnce(&Buyers<'_>) -> Result<()>,
) -> Result<Vec<Purchase>> {
    let (bought, is_over) = (Mutex::default(), AtomicBool::default());
    let buyers = Buyers { run, port, bought, is_over };
    thread::scope(|scope| {
        for _ in 0..BUYERS {
            scope.spawn(|| buyers.buy_until_it_is_over());
        }
        let happened = happens(&buyers);
        buyers.is_over.store(true, Ordering::SeqCst);
        happened
    })?;
    Ok(buyers.bought.into_inner().expect("nobody panics with it"))
}

impl Buyers<'_> {
    fn buy_until_it_is_over(&self) {
        while self.is_open() {
            let user_id = self.run.ids.next_id();
            // A refusal is one of the moment: the next person tries.
            let begun = Instant::now();
            if let Ok(Some(reservation_id)) = self.buy(user_id) {
                let mut bought = self.bought.lock().expect("nobody panics with it");
                bought.push(Purchase { begun, user_id, reservation_id });
            }
        }
    }

    fn is_open(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    /// Somebody new waits, holds a seat and pays. Nothing: they leave without a ticket.
    fn buy(&self, user_id: Uuid) -> Result<Option<String>> {
        let run = self.run;
        let seat = run.next_seat.fetch_add(1, Ordering::SeqCst);
        let body = json!({"eventId": run.event_id, "seatIds": [seat]});
        while self.is_open() {
            let entry = self.ask_queue(user_id, "check")?["entryToken"].as_str().map(str::to_owned);
            let path = "/api/seats/reserve";
            let held = match &entry {
                Some(_) => run.send_with(self.port, user_id, "POST", path, &body, entry.as_deref()),
                None => {
                    thread::sleep(RETRY_PAUSE);
                    continue;
                }
            }?;
            match held.status {
                201 => {
                    let id = text(&held.json()?["reservation"]["id"]);
                    let paid = run.pay(self.port, user_id, &id, TestCard::Approve)?;
                    if paid.status == 200 {
                        return Ok(Some(id));
                    }
                    break;
                }
                // An attempt before has got it after all.
                409 => break,
                _ => thread::sleep(RETRY_PAUSE),
            }
        }
        // Others wait for the slot.
        while self.is_open() && self.ask_queue(user_id, "leave")?["code"].is_string() {
            thread::sleep(RETRY_PAUSE);
        }
        Ok(None)
    }

    fn ask_queue(&self, user_id: Uuid, verb: &str) -> Result<Value> {
        let path = format!("/api/queue/{verb}/{}", self.run.event_id);
        self.run.send(self.port, user_id, "POST", &path, &Value::Null)?.json()
    }

    fn count(&self, counts: impl Fn(&Purchase) -> bool) -> usize {
        let bought = self.bought.lock().expect("nobody panics with it");
        bought.iter().filter(|purchase| counts(purchase)).count()
    }

    fn await_sales(&self) -> Result<()> {
        eventually("people buy", || Ok(self.count(|_| true) >= BOUGHT_BEFORE))
    }

    /// Waits until everything works for those who come after this moment.
    #[expect(clippy::print_stderr, reason = "how long a takeover takes is worth knowing")]
    fn await_sales_from_now_on(&self, what: &str) -> Result<()> {
        let now = Instant::now();
        eventually(what, || Ok(self.count(|purchase| purchase.begun > now) >= BUYERS))?;
        eprintln!("{what}: after {:?}", now.elapsed());
        Ok(())
    }
}

/// Everybody who was told so has a ticket, and everything agrees.
fn check_bought(run: &PaymentRun, port: u16, bought: &[Purchase]) -> Result<()> {
    for Purchase { user_id, reservation_id, .. } in bought {
        let path = format!("/api/reservations/{reservation_id}");
        let mine = run.send(port, *user_id, "GET", &path, &Value::Null)?;
        ensure!(mine.status == 200, "a sold ticket is lost: {mine:?}");
        assert_eq!(mine.json()?["reservation"]["status"], "confirmed", "{mine:?}");
    }
    check_whole_audit(&run.installation)
}

fn installation() -> Result<Installation> {
    let mut installation = Installation::new()?;
    installation.share_secrets();
    installation.set("URR_DEMO_SEED", "false");
    installation.set("URR_PAYMENTS_TIMEOUT_SECONDS", "2");
    Ok(installation)
}

/// A sale whose PostgreSQL is lost, and whose standby is promoted.
struct PromotedStandby {
    run: PaymentRun,
    urr: Running,
    bought: Vec<Purchase>,
    _standby: PostgresServer,
}

impl PromotedStandby {
    /// Sells until the standby is promoted. A commit waits for a synchronous one; the other one follows
    /// no more when the sale begins.
    fn sell(is_synchronous: bool) -> Result<PromotedStandby> {
        let mut primary = PostgresServer::start_with(&[])?;
        let url = primary.create_database("sale")?;
        let standby = primary.start_standby()?;
        if is_synchronous {
            primary.wait_for_standby()?;
        }
        let host = |url: &str| url.split(['@', '/']).nth(3).map(str::to_owned);
        let (first, second) =
            (host(&url).context("a host")?, host(standby.url()).context("a host")?);
        let mut installation = installation()?;
        // The standby comes first: which of them can write is found out.
        let url = url.replace(&first, &format!("{second},{first}"));
        installation.set("URR_DATABASE_URL", &format!("{url}?target_session_attrs=read-write"));
        let urr = installation.up(&[])?;
        let said = if is_synchronous { "a standby has every sale" } else { WAITS_FOR_NONE };
        check_doctor(&installation, said)?;
        let run = PaymentRun::open(installation, urr.port)?;
        if !is_synchronous {
            standby.stop_following()?;
        }
        let bought = sell_while(&run, urr.port, |buyers| {
            buyers.await_sales()?;
            primary.kill()?;
            standby.promote()?;
            match is_synchronous {
                true => buyers.await_sales_from_now_on("people buy from the promoted standby"),
                false => Ok(()),
            }
        })?;
        Ok(PromotedStandby { run, urr, bought, _standby: standby })
    }
}

const WAITS_FOR_NONE: &str = "PostgreSQL waits for no standby";

#[test]
fn a_sale_goes_on_when_the_standby_of_postgresql_is_promoted() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    let sale = PromotedStandby::sell(true)?;
    check_bought(&sale.run, sale.urr.port, &sale.bought)?;
    check_doctor(&sale.run.installation, WAITS_FOR_NONE)?;
    sale.urr.stop("TERM")?.succeeded()?;
    Ok(())
}

/// The control: a standby that nobody waits for lacks what was sold, and the check notices.
#[test]
fn what_an_asynchronous_standby_lacks_is_noticed() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    let sale = PromotedStandby::sell(false)?;
    let mut outcome = Ok(());
    eventually("the promoted standby is asked", || {
        outcome = check_bought(&sale.run, sale.urr.port, &sale.bought);
        Ok(outcome.as_ref().map_or_else(|error| !error.to_string().contains("503"), |()| true))
    })?;
    let noticed = outcome.err().context("the sales are lost, and nobody noticed")?.to_string();
    ensure!(noticed.contains("a sold ticket is lost") && noticed.contains("404"), "{noticed}");
    Ok(())
}

fn check_doctor(installation: &Installation, said: &str) -> Result<()> {
    let doctor = installation.run(&["doctor"])?.succeeded()?.stdout;
    ensure!(doctor.contains(said), "{said:?} is not in {doctor}");
    Ok(())
}

#[test]
fn a_sale_goes_on_when_a_replica_of_redis_takes_over() -> Result<()> {
    if !servers::available(Server::RedisCluster)? {
        return Ok(());
    }
    let mut redis = RedisCluster::start_with_replicas()?;
    let mut installation = installation()?;
    installation.set("REDIS_CLUSTER_NODES", &redis.addresses().join(","));
    // Most of the buyers wait.
    installation.set("URR_QUEUE_THRESHOLD", "2");
    installation.set("URR_QUEUE_ADMISSION_INTERVAL_MS", "100");
    let urr = installation.up(&[])?;
    let run = PaymentRun::open(installation, urr.port)?;
    let line = format!("{{{}}}:queue", run.event_id);
    let bought = sell_while(&run, urr.port, |buyers| {
        buyers.await_sales()?;
        redis.lose_master_of(&line)?;
        buyers.await_sales_from_now_on("people enter by the room of the replica")
    })?;
    check_bought(&run, urr.port, &bought)?;
    urr.stop("TERM")?.succeeded()?;
    Ok(())
}

/// People buy while a broker is lost. `then` is told how many bought by then.
fn sell_without_a_broker(
    kafka: &mut KafkaCluster,
    copies: &str,
    then: impl FnOnce(u16, i64) -> Result<()>,
) -> Result<(PaymentRun, Running, Vec<Purchase>)> {
    let mut installation = installation()?;
    installation.set("KAFKA_BOOTSTRAP_SERVERS", &kafka.bootstrap());
    installation.set("KAFKA_TOPIC_REPLICATION_FACTOR", copies);
    let private_port = free_port();
    installation.set("MANAGEMENT_PORT", &private_port.to_string());
    let urr = installation.up(&[])?;
    let run = PaymentRun::open(installation, urr.port)?;
    let bought = sell_while(&run, urr.port, |buyers| {
        buyers.await_sales()?;
        kafka.lose_node()?;
        buyers.await_sales_from_now_on("people buy without the broker")?;
        then(private_port, i64::try_from(buyers.count(|_| true))?)
    })?;
    Ok((run, urr, bought))
}

#[test]
fn no_event_is_lost_with_a_broker_of_kafka() -> Result<()> {
    if !servers::available(Server::Kafka)? {
        return Ok(());
    }
    let mut kafka = KafkaCluster::start()?;
    let (run, urr, bought) = sell_without_a_broker(&mut kafka, "3", |private_port, told| {
        eventually("the statistics hear of them", || {
            Ok(activity(private_port, "PAYMENT_CONFIRMED")? >= told)
        })
    })?;
    check_bought(&run, urr.port, &bought)?;
    urr.stop("TERM")?.succeeded()?;
    // The lost broker is still listed, and what it led may be led by nobody for a moment.
    let mut letters = None;
    eventually("every partition has a leader", || {
        letters = Some(run.installation.run(&["dlq", "list"])?);
        Ok(letters.as_ref().is_some_and(|it| it.status.success()))
    })
    .with_context(|| format!("{letters:?}"))?;
    let letters = letters.context("they were asked for")?.stdout;
    assert_eq!(letters, "There are no dead letters.\n");
    check_events(&run.installation, kafka.bootstrap())
}

/// The control: what one broker alone has is lost with it, and the check notices.
#[test]
fn events_that_only_a_lost_broker_had_are_noticed() -> Result<()> {
    if !servers::available(Server::Kafka)? {
        return Ok(());
    }
    let mut kafka = KafkaCluster::start()?;
    let (run, urr, _) = sell_without_a_broker(&mut kafka, "1", |_, _| Ok(()))?;
    urr.stop("KILL")?;
    let noticed = check_events(&run.installation, kafka.bootstrap()).err();
    let noticed = noticed.context("events are lost, and nobody noticed")?.to_string();
    ensure!(noticed.contains("looking at a topic"), "{noticed}");
    Ok(())
}

/// Every event of the outboxes is in its topic, and those of one subject are in their order.
fn check_events(installation: &Installation, bootstrap: String) -> Result<()> {
    let schemas: [&Schema; 4] =
        [&urr_catalog::SCHEMA, &urr_ticket::SCHEMA, &urr_payment::SCHEMA, &urr_queue::SCHEMA];
    tokio::runtime::Runtime::new()?.block_on(async {
        let mut announced: BTreeMap<[String; 2], Vec<Uuid>> = BTreeMap::new();
        for schema in schemas {
            let path = installation.path(&format!("data/{}.db", schema.name));
            let db = Db::open_sqlite(&path, &SqliteOptions::default())?;
            let sql = "select topic, key, event_id from outbox order by seq";
            let rows: Result<Vec<([String; 2], Uuid)>, StorageError> = db
                .read(move |tx| {
                    tx.query(sql, &[], |row| {
                        Ok(([row.get("topic")?, row.get("key")?], row.get("event_id")?))
                    })
                })
                .await;
            rows?.into_iter().for_each(|(subject, id)| {
                announced.entry(subject).or_default().push(id);
            });
            tokio::task::spawn_blocking(move || db.close()).await?;
        }
        let bus = Bus::connect_kafka(KafkaOptions::new(bootstrap))?;
        let mut published: BTreeMap<[String; 2], Vec<Uuid>> = BTreeMap::new();
        let mut known = BTreeSet::new();
        for topic in TOPICS {
            for delivery in bus.scan(topic).await? {
                let id = text(&serde_json::from_slice::<Value>(&delivery.body)?["id"]).parse()?;
                let subject = [(*topic).to_owned(), String::from_utf8(delivery.key)?];
                // It may have been sent twice: an inbox ignores the second.
                if known.insert(id) {
                    published.entry(subject).or_default().push(id);
                }
            }
        }
        ensure!(announced.len() > BOUGHT_BEFORE, "events of each purchase: {announced:?}");
        for (subject, ids) in announced {
            assert_eq!(published.get(&subject), Some(&ids), "{subject:?}");
        }
        bus.close().await;
        Ok(())
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
