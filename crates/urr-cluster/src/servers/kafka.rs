//! A private Kafka: one node that is broker and controller.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::folder::ServerFolder;
use super::process::{Recipe, TestServer};
use super::{Server, folder, port, program};

/// A Kafka broker. Topics are not created by use.
pub type KafkaServer = TestServer<KafkaKind>;

/// The kind of a [`KafkaServer`].
pub enum KafkaKind {}

impl KafkaServer {
    pub fn start() -> Result<KafkaServer> {
        let recipe = |port| recipe(folder::create("kafka")?, port, port);
        TestServer::find_or_start(Server::Kafka, recipe, |port| format!("127.0.0.1:{port}"))
    }

    /// The value of `bootstrap.servers`.
    pub fn bootstrap(&self) -> &str {
        self.address()
    }
}

pub(super) fn find_programs() -> Result<()> {
    program::find("Kafka", "java")?;
    program::find_jars("Kafka", "kafka")?;
    Ok(())
}

/// Clients are told to come to `announced_port`.
pub(super) fn recipe(folder: ServerFolder, port: u16, announced_port: u16) -> Result<Recipe> {
    let properties = properties(port, announced_port, port::free()?);
    fs::write(folder.path().join("server.properties"), properties)?;
    let java = java_command(folder.path())?;
    if !folder.path().join("data/meta.properties").exists() {
        format_folder(&java, folder.path())?;
    }
    let command = java.into_iter().chain(["kafka.Kafka", "server.properties"].map(OsString::from));
    let answers = |port| coordinates_groups(port).unwrap_or(false);
    let recipe = Recipe::new("Kafka", folder, port, command.collect(), "Kafka Server started");
    Ok(Recipe { answers, ..recipe })
}

fn format_folder(java: &[OsString], folder: &Path) -> Result<()> {
    program::run(
        Command::new(&java[0])
            .args(&java[1..])
            .args(["kafka.tools.StorageTool", "format", "--config", "server.properties"])
            // Any id will do: it only has to stay the same.
            .args(["--cluster-id", "dXJyLXRlc3QtY2x1c3Rlcg"])
            .current_dir(folder),
    )
    .context("formatting Kafka's data folder")?;
    Ok(())
}

fn java_command(folder: &Path) -> Result<Vec<OsString>> {
    let mut temporary_files = OsString::from("-Djava.io.tmpdir=");
    temporary_files.push(folder);
    Ok(vec![
        program::find("Kafka", "java")?.into(),
        "-Xmx512m".into(),
        "-XX:+UseSerialGC".into(),
        // Starts a fifth sooner; peak speed is not what tests need.
        "-XX:TieredStopAtLevel=1".into(),
        // Its files in /tmp would outlive a crash, as would the native libraries it unpacks.
        "-XX:-UsePerfData".into(),
        temporary_files,
        "-cp".into(),
        program::find_jars("Kafka", "kafka")?,
    ])
}

fn properties(port: u16, announced_port: u16, controller_port: u16) -> String {
    format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=BROKER://127.0.0.1:{announced_port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs=data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# After a crash the controller waits this long before it lets the broker register again.
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=4194304
"
    )
}

/// Whether consumer groups find their coordinator. That takes a broker that knows that it may
/// serve, and the topic of the groups' offsets, which is created when it is first asked for; a
/// client that comes before it is there waits three seconds.
fn coordinates_groups(port: u16) -> io::Result<bool> {
    const FIND_COORDINATOR: i16 = 10;
    const VERSION: i16 = 0;
    const CORRELATION_ID: i32 = 1;
    const NO_CLIENT_ID: i16 = -1;
    const GROUP: [u8; 3] = [0, 1, b'g'];
    let mut request = Vec::new();
    request.extend(FIND_COORDINATOR.to_be_bytes());
    request.extend(VERSION.to_be_bytes());
    request.extend(CORRELATION_ID.to_be_bytes());
    request.extend(NO_CLIENT_ID.to_be_bytes());
    request.extend(GROUP);

    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let size = u32::try_from(request.len()).expect("the request is small");
    stream.write_all(&size.to_be_bytes())?;
    stream.write_all(&request)?;

    // The size, the correlation id, and the error code: zero if there is none.
    let mut reply = [0; 10];
    stream.read_exact(&mut reply)?;
    Ok(reply[8..] == [0, 0])
}
