//! The private servers serve, keep their data across restarts, and end with the tests.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use postgres::NoTls;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::util::Timeout;
use urr_test::servers::{self, KafkaServer, PostgresServer, RedisServer, Server};

/// For what must happen, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(30);
/// For what must not happen.
const A_MOMENT: Duration = Duration::from_millis(500);

#[test]
fn postgres_gives_every_test_a_database_of_its_own() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    let server = servers::shared_postgres()?;
    let urls = [server.create_database("same_name")?, server.create_database("same_name")?];
    for url in urls {
        // The second would find the table of the first.
        let mut client = postgres::Client::connect(&url, NoTls)?;
        client.batch_execute("create table seat (id bigint primary key)")?;
    }
    assert!(server.create_database("x; drop table seat").is_err());
    Ok(())
}

#[test]
fn postgres_is_durable_and_asks_for_passwords() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    let server = servers::shared_postgres()?;
    let mut admin = postgres::Client::connect(server.url(), NoTls)?;
    for (setting, expected) in
        [("fsync", "on"), ("synchronous_commit", "on"), ("max_connections", "200")]
    {
        let value: String = admin.query_one(&format!("show {setting}"), &[])?.get(0);
        assert_eq!(value, expected, "{setting}");
    }

    admin.batch_execute("create role urr_ticket login password 'right'")?;
    let (_, address) = server.url().split_once('@').context("the URL has a user")?;
    let login = |password| {
        postgres::Client::connect(&format!("postgres://urr_ticket:{password}@{address}"), NoTls)
    };
    login("right")?;
    assert!(login("wrong").is_err(), "a wrong password must not be let in");
    Ok(())
}

#[test]
fn postgres_keeps_what_was_committed_through_a_restart_and_a_crash() -> Result<()> {
    if !servers::available(Server::Postgres)? {
        return Ok(());
    }
    let mut server = PostgresServer::start()?;
    let url = server.create_database("kept")?;
    let connect = || postgres::Client::connect(&url, NoTls);
    connect()?.batch_execute("create table kept (id bigint primary key)")?;

    server.restart()?;
    connect()?.batch_execute("insert into kept values (1)")?;

    let mut busy = connect()?;
    busy.batch_execute("begin; insert into kept values (2)")?;
    server.kill()?;
    assert!(busy.batch_execute("commit").is_err(), "no process of it may survive the crash");
    assert!(connect().is_err());
    server.start_again()?;
    let ids: Vec<i64> =
        connect()?.query("select id from kept", &[])?.iter().map(|row| row.get(0)).collect();
    assert_eq!(ids, [1]);

    server.stop()?;
    assert!(connect().is_err());
    server.start_again()?;
    assert!(server.start_again().is_err(), "it already runs");

    let folder: String = connect()?.query_one("show data_directory", &[])?.get(0);
    drop(server);
    assert!(connect().is_err());
    assert!(!Path::new(&folder).exists(), "{folder} must be removed");
    Ok(())
}

#[test]
fn redis_keeps_its_data_through_a_restart_and_a_crash() -> Result<()> {
    if !servers::available(Server::Redis)? {
        return Ok(());
    }
    let mut server = RedisServer::start()?;
    let url = server.url().to_owned();
    assert_eq!(ask_redis(&url, "SET seat A1")?, "OK");
    server.restart()?;
    assert_eq!(ask_redis(&url, "GET seat")?, "A1");

    server.kill()?;
    assert!(ask_redis(&url, "PING").is_err());
    assert!(server.kill().is_err(), "it does not run");
    server.start_again()?;
    assert_eq!(ask_redis(&url, "GET seat")?, "A1");

    server.pause()?;
    assert!(ask_redis_within(&url, "PING", A_MOMENT).is_err());
    server.resume()?;
    assert_eq!(ask_redis(&url, "PING")?, "PONG");

    let information = ask_redis(&url, "INFO server")?;
    let pid = value_of(&information, "process_id:").context("Redis tells its process id")?;
    let folder = PathBuf::from(format!("/proc/{pid}/cwd")).read_link()?;
    drop(server);
    assert!(ask_redis(&url, "PING").is_err());
    assert!(!folder.exists(), "{} must be removed", folder.display());
    Ok(())
}

#[test]
fn a_shared_server_outlives_the_thread_that_started_it() -> Result<()> {
    if !servers::available(Server::Redis)? {
        return Ok(());
    }
    let start = || servers::shared_redis().map(|server| server.url().to_owned());
    let url = thread::spawn(start).join().expect("the thread does not panic")?;
    assert_eq!(ask_redis(&url, "PING")?, "PONG");
    assert_eq!(start()?, url, "it is started once");
    Ok(())
}

#[test]
fn redis_cluster_serves_every_slot() -> Result<()> {
    if !servers::available(Server::RedisCluster)? {
        return Ok(());
    }
    let cluster = servers::shared_redis_cluster()?;
    assert_eq!(cluster.urls().len(), 3);
    let mut owners = 0;
    for url in cluster.urls() {
        let information = ask_redis(url, "CLUSTER INFO")?;
        assert_eq!(value_of(&information, "cluster_state:"), Some("ok"));
        assert_eq!(value_of(&information, "cluster_slots_ok:"), Some("16384"));
        match ask_redis(url, "SET {event-1}:seat A1") {
            Ok(reply) => {
                assert_eq!(reply, "OK");
                owners += 1;
            }
            Err(error) => assert!(error.to_string().starts_with("MOVED "), "{error}"),
        }
    }
    assert_eq!(owners, 1, "one node owns the slot");
    Ok(())
}

#[test]
fn kafka_keeps_its_records_through_a_restart_and_a_crash() -> Result<()> {
    if !servers::available(Server::Kafka)? {
        return Ok(());
    }
    let mut server = KafkaServer::start()?;
    let bootstrap = server.bootstrap().to_owned();
    assert!(produce(&bootstrap, "absent", A_MOMENT).is_err(), "topics are not created by use");
    create_topic(&bootstrap, "seats")?;
    produce(&bootstrap, "seats", PATIENCE)?;
    assert_eq!(consume(&bootstrap, "seats", 1)?, ["A1"]);

    server.restart()?;
    produce(&bootstrap, "seats", PATIENCE)?;
    server.kill()?;
    assert!(produce(&bootstrap, "seats", A_MOMENT).is_err());
    server.start_again()?;
    assert_eq!(consume(&bootstrap, "seats", 2)?, ["A1", "A1"]);

    server.pause()?;
    assert!(produce(&bootstrap, "seats", A_MOMENT).is_err());
    server.resume()?;
    produce(&bootstrap, "seats", PATIENCE)?;

    drop(server);
    assert!(TcpStream::connect(&bootstrap).is_err());
    Ok(())
}

#[test]
fn sqs_has_fifo_queues() -> Result<()> {
    if !servers::available(Server::Sqs)? {
        return Ok(());
    }
    let endpoint = servers::shared_sqs()?.endpoint();
    let reply = ask_sqs(
        endpoint,
        "CreateQueue",
        r#"{"QueueName":"notices.fifo","Attributes":{"FifoQueue":"true"}}"#,
    )?;
    let queue = format!("{endpoint}/000000000000/notices.fifo");
    assert!(reply.contains(&queue), "{reply}");

    for (body, id) in [("first", 1), ("second", 2), ("first", 1)] {
        let message = format!(
            r#"{{"QueueUrl":"{queue}","MessageBody":"{body}",
                "MessageGroupId":"g","MessageDeduplicationId":"{id}"}}"#
        );
        ask_sqs(endpoint, "SendMessage", &message)?;
    }
    let wanted = format!(r#"{{"QueueUrl":"{queue}","MaxNumberOfMessages":10}}"#);
    let reply = ask_sqs(endpoint, "ReceiveMessage", &wanted)?;
    let bodies: Vec<&str> =
        reply.split(r#""Body":""#).skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(bodies, ["first", "second"]);
    Ok(())
}

#[test]
fn servers_die_with_a_killed_test_process_and_the_next_one_cleans_up() -> Result<()> {
    if !servers::available(Server::Redis)? || !servers::available(Server::Postgres)? {
        return Ok(());
    }
    if env::var_os("URR_TEST_ROLE").is_some() {
        let (redis, postgres) = (servers::shared_redis()?, servers::shared_postgres()?);
        writeln!(std::io::stdout(), "\nURLS {} {}", redis.url(), postgres.url())?;
        // Killed here, the first time; the second time, standard input is at its end.
        std::io::stdin().read_to_end(&mut Vec::new())?;
        return Ok(());
    }
    let this = "servers_die_with_a_killed_test_process_and_the_next_one_cleans_up";
    let mut killed = this_test_again(this).stdin(Stdio::piped()).spawn()?;
    let addresses = addresses_from(&mut killed)?;
    let folder = env::temp_dir().join(format!("urr-test-{}", killed.id()));
    killed.kill()?;
    killed.wait()?;
    for address in &addresses {
        await_refusal(address)?;
    }
    assert!(folder.exists(), "nobody was left to remove {}", folder.display());

    let mut finished = this_test_again(this).stdin(Stdio::null()).spawn()?;
    let addresses = addresses_from(&mut finished)?;
    ensure!(finished.wait()?.success(), "the second process failed");
    for address in &addresses {
        await_refusal(address)?;
    }
    assert!(!folder.exists(), "{} must be removed", folder.display());
    Ok(())
}

#[test]
fn a_server_named_by_the_environment_is_not_ours_to_restart() -> Result<()> {
    if env::var_os("URR_TEST_ROLE").is_some() {
        let mut server = RedisServer::start()?;
        assert_eq!(server.url(), "redis://elsewhere:6379");
        for result in [server.restart(), server.kill(), server.pause()] {
            let error = result.expect_err("it is not ours").to_string();
            assert!(error.starts_with("this server is not ours to restart"), "{error}");
        }
        return Ok(());
    }
    let output = this_test_again("a_server_named_by_the_environment_is_not_ours_to_restart")
        .env("URR_TEST_REDIS_URL", "redis://elsewhere:6379")
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

#[test]
fn a_missing_server_is_skipped_here_but_not_in_ci() -> Result<()> {
    if env::var_os("URR_TEST_ROLE").is_some() {
        assert!(!servers::available(Server::Kafka)?);
        return Ok(());
    }
    for (ci, is_ok) in [("", true), ("true", false)] {
        let output = this_test_again("a_missing_server_is_skipped_here_but_not_in_ci")
            .env("CI", ci)
            .env("URR_TEST_CACHE", "/nowhere")
            .output()?;
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(output.status.success(), is_ok, "{told}");
        let hint = "Kafka's jars were not found in /nowhere/kafka; \
                    run scripts/install-test-servers.sh";
        assert!(told.contains(hint), "{told}");
    }
    Ok(())
}

/// This test binary once more, for one test, which then takes the other branch on `URR_TEST_ROLE`.
fn this_test_again(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test runs from a file"));
    command.args(["--exact", test, "--nocapture"]).env("URR_TEST_ROLE", "other");
    command.stdout(Stdio::piped());
    command
}

/// The `host:port` of each URL that the other process reports.
fn addresses_from(process: &mut Child) -> Result<Vec<String>> {
    // Borrowed, not taken: the process still has something to say when it ends.
    let output = process.stdout.as_mut().context("its output is piped")?;
    for line in BufReader::new(output).lines() {
        if let Some(urls) = line?.strip_prefix("URLS ") {
            return Ok(urls.split(' ').map(|url| address_of(url).to_owned()).collect());
        }
    }
    bail!("the other process ended without a report");
}

fn address_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let after_user = after_scheme.rsplit_once('@').map_or(after_scheme, |(_, rest)| rest);
    after_user.split('/').next().unwrap_or(after_user)
}

/// The server was killed just now; its end takes a moment.
fn await_refusal(address: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_ok() {
        ensure!(Instant::now() < deadline, "{address} still accepts connections");
        thread::yield_now();
    }
    Ok(())
}

fn value_of<'a>(information: &'a str, key: &str) -> Option<&'a str> {
    information.lines().find_map(|line| line.strip_prefix(key))
}

/// One command in Redis' inline form; its reply, or its error.
fn ask_redis(url: &str, command: &str) -> Result<String> {
    ask_redis_within(url, command, PATIENCE)
}

fn ask_redis_within(url: &str, command: &str, timeout: Duration) -> Result<String> {
    let mut stream = TcpStream::connect(address_of(url))?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    match line.trim_end().split_at_checked(1) {
        Some(("+", text)) => Ok(text.to_owned()),
        Some(("$", length)) => {
            let mut text = vec![0; length.parse()?];
            reader.read_exact(&mut text)?;
            Ok(String::from_utf8(text)?)
        }
        Some(("-", error)) => bail!("{error}"),
        _ => bail!("an unexpected reply: {line:?}"),
    }
}

fn ask_sqs(endpoint: &str, action: &str, body: &str) -> Result<String> {
    let address = address_of(endpoint);
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/x-amz-json-1.0\r\nx-amz-target: AmazonSQS.{action}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    ensure!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    Ok(reply)
}

fn create_topic(bootstrap: &str, topic: &str) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> = kafka_config(bootstrap).create()?;
    let topic = NewTopic::new(topic, 1, TopicReplication::Fixed(1));
    let options = AdminOptions::new();
    for result in block_on(admin.create_topics([&topic], &options))?? {
        result.map_err(|(topic, code)| anyhow!("{topic}: {code}"))?;
    }
    Ok(())
}

/// Waits until the broker has the record.
fn produce(bootstrap: &str, topic: &str, timeout: Duration) -> Result<()> {
    let producer: FutureProducer = kafka_config(bootstrap)
        .set("message.timeout.ms", timeout.as_millis().to_string())
        .create()?;
    let record = FutureRecord::to(topic).key("A").payload("A1");
    block_on(producer.send(record, Timeout::Never))?.map_err(|(error, _)| error)?;
    Ok(())
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future))
}

/// Reads the first records of a topic through a consumer group.
fn consume(bootstrap: &str, topic: &str, count: usize) -> Result<Vec<String>> {
    let consumer: BaseConsumer = kafka_config(bootstrap)
        .set("group.id", "readers")
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .create()?;
    consumer.subscribe(&[topic])?;
    let deadline = Instant::now() + PATIENCE;
    let mut texts = Vec::new();
    while texts.len() < count {
        ensure!(Instant::now() < deadline, "only {} records came", texts.len());
        // It also returns, without a record, when the group has changed.
        if let Some(message) = consumer.poll(PATIENCE) {
            let payload = message?.payload().unwrap_or_default().to_vec();
            texts.push(String::from_utf8(payload)?);
        }
    }
    Ok(texts)
}

fn kafka_config(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("log_level", "0");
    config
}
