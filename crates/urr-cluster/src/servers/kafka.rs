//! A private Kafka: one node that is broker and controller, or three.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::folder::ServerFolder;
use super::process::{Recipe, ServerProcess, TestServer};
use super::{Server, ServerCertificates, ServerLogin, folder, port, program};

const HEAP: &str = "-Xmx512m";
const HEAP_OF_THREE: &str = "-Xmx256m";

/// A Kafka broker. Topics are not created by use.
pub type KafkaServer = TestServer<KafkaKind>;

/// The kind of a [`KafkaServer`].
pub enum KafkaKind {}

impl KafkaServer {
    pub fn start() -> Result<KafkaServer> {
        let recipe = |port| recipe(folder::create("kafka")?, port);
        TestServer::find_or_start(Server::Kafka, recipe, |port| format!("127.0.0.1:{port}"))
    }

    /// One that speaks only TLS with clients, and knows only the user [`KafkaServer::USER`], by
    /// SCRAM and PLAIN. Its address is that of `localhost`.
    pub fn start_with_tls(certificates: &ServerCertificates<'_>) -> Result<KafkaServer> {
        let [user, password] = KafkaServer::USER;
        let login = ServerLogin { user, password };
        let recipe =
            |port| tls_recipe(folder::create("kafka")?, [port, port], &login, certificates);
        TestServer::start_own(Server::Kafka, recipe, |port| format!("localhost:{port}"))
    }

    /// Name and password of the user of a server with TLS.
    pub const USER: [&str; 2] = ["shop", "password-of-the-shop"];

    /// The value of `bootstrap.servers`.
    pub fn bootstrap(&self) -> &str {
        self.address()
    }
}

/// Three nodes, each broker and controller: what three have copied survives the loss of one.
pub struct KafkaCluster {
    nodes: Vec<ServerProcess>,
}

impl KafkaCluster {
    /// Of ours, whatever the environment names.
    pub fn start() -> Result<KafkaCluster> {
        let ports = |_| Ok([port::free()?, port::free()?]);
        let ports = (0..3).map(ports).collect::<Result<Vec<[u16; 2]>>>()?;
        let voters = ports.iter().zip(1..).map(|([_, own], id)| format!("{id}@127.0.0.1:{own}"));
        let voters = voters.collect::<Vec<String>>().join(",");
        let start = |id: u16, [port, controller_port]: [u16; 2]| {
            let listener = format!("BROKER://127.0.0.1:{port}");
            let node = KafkaNode { id, voters: &voters, copies: 3, controller_port };
            let properties = node.properties(&listener, &listener);
            let answers = |port| coordinates_groups(port).unwrap_or(false);
            let mut recipe = recipe_with(folder::create("kafka")?, port, &properties, &[])?;
            let heap = recipe.command.iter_mut().filter(|argument| *argument == HEAP);
            heap.for_each(|argument| *argument = HEAP_OF_THREE.into());
            let mut process = ServerProcess::new(Recipe { answers, ..recipe });
            // None of them is ready before all of them run.
            process.start_again()?;
            anyhow::Ok(process)
        };
        let nodes = thread::scope(|scope| {
            let start = &start;
            let starting: Vec<_> = (1..)
                .zip(&ports)
                .map(|(id, ports)| scope.spawn(move || start(id, *ports)))
                .collect();
            let started = starting.into_iter().map(|node| node.join().expect("it does not panic"));
            started.collect::<Result<Vec<ServerProcess>>>()
        })?;
        Ok(KafkaCluster { nodes })
    }

    /// The value of `bootstrap.servers`.
    pub fn bootstrap(&self) -> String {
        let addresses = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port()));
        addresses.collect::<Vec<String>>().join(",")
    }

    /// Kills a node. Of a topic of three partitions it led one.
    pub fn lose_node(&mut self) -> Result<()> {
        self.nodes.first_mut().context("three nodes")?.kill()
    }
}

pub(super) fn find_programs() -> Result<()> {
    program::find("Kafka", "java")?;
    program::find_jars("Kafka", "kafka")?;
    Ok(())
}

fn recipe(folder: ServerFolder, port: u16) -> Result<Recipe> {
    let listener = format!("BROKER://127.0.0.1:{port}");
    let properties = single_properties(&listener, &listener)?;
    let answers = |port| coordinates_groups(port).unwrap_or(false);
    Ok(Recipe { answers, ..recipe_with(folder, port, &properties, &[])? })
}

/// Clients come by the listener CLIENT, and are told to come to `announced_port`; the broker speaks
/// with itself by BROKER.
pub(super) fn tls_recipe(
    folder: ServerFolder,
    [port, announced_port]: [u16; 2],
    login: &ServerLogin<'_>,
    certificates: &ServerCertificates<'_>,
) -> Result<Recipe> {
    let own = port::free()?;
    let listeners = format!("BROKER://127.0.0.1:{own},CLIENT://127.0.0.1:{port}");
    let announced = format!("BROKER://127.0.0.1:{own},CLIENT://localhost:{announced_port}");
    let demand = if certificates.demands_certificates { "required" } else { "none" };
    let ServerLogin { user, password } = *login;
    let settings = format!(
        "ssl.keystore.type=PEM
ssl.keystore.location=keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location=authority.pem
listener.name.client.ssl.client.auth={demand}
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.client.scram-sha-256.sasl.jaas.config={SCRAM_MODULE} required;
listener.name.client.scram-sha-512.sasl.jaas.config={SCRAM_MODULE} required;
listener.name.client.plain.sasl.jaas.config={PLAIN_MODULE} required user_{user}=\"{password}\";
"
    );
    let scram = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
        .map(|name| format!("{name}=[name={user},password={password}]"));
    let users: Vec<&str> = scram.iter().flat_map(|user| ["--add-scram", user]).collect();
    certificates.write(folder.path())?;
    let store = format!("{}{}", certificates.key, certificates.certificate);
    folder::write_private(&folder.path().join("keystore.pem"), &store)?;
    let properties = single_properties(&listeners, &announced)? + &settings;
    recipe_with(folder, port, &properties, &users)
}

fn recipe_with(
    folder: ServerFolder,
    port: u16,
    properties: &str,
    users: &[&str],
) -> Result<Recipe> {
    fs::write(folder.path().join("server.properties"), properties)?;
    let java = java_command(folder.path())?;
    if !folder.path().join("data/meta.properties").exists() {
        format_folder(&java, folder.path(), users)?;
    }
    let command = java.into_iter().chain(["kafka.Kafka", "server.properties"].map(OsString::from));
    Ok(Recipe::new("Kafka", folder, port, command.collect(), "Kafka Server started"))
}

fn format_folder(java: &[OsString], folder: &Path, users: &[&str]) -> Result<()> {
    program::run(
        Command::new(&java[0])
            .args(&java[1..])
            .args(["kafka.tools.StorageTool", "format", "--config", "server.properties"])
            // Any id will do: it only has to stay the same.
            .args(["--cluster-id", "dXJyLXRlc3QtY2x1c3Rlcg"])
            .args(users)
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
        HEAP.into(),
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

const SCRAM_MODULE: &str = "org.apache.kafka.common.security.scram.ScramLoginModule";
const PLAIN_MODULE: &str = "org.apache.kafka.common.security.plain.PlainLoginModule";

/// A node of a Kafka.
struct KafkaNode<'a> {
    id: u16,
    /// Every node: its id and the address of its controller.
    voters: &'a str,
    /// How many nodes keep what Kafka itself remembers.
    copies: u16,
    controller_port: u16,
}

/// Of the only node.
fn single_properties(listeners: &str, announced: &str) -> Result<String> {
    let controller_port = port::free()?;
    let voters = format!("1@127.0.0.1:{controller_port}");
    let node = KafkaNode { id: 1, voters: &voters, copies: 1, controller_port };
    Ok(node.properties(listeners, announced))
}

impl KafkaNode<'_> {
    fn properties(&self, listeners: &str, announced: &str) -> String {
        let KafkaNode { id, voters, copies, controller_port } = self;
        format!(
            "process.roles=broker,controller
node.id={id}
controller.quorum.voters={voters}
listeners={listeners},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners={announced}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENT:SASL_SSL
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs=data
auto.create.topics.enable=false
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=1
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor={copies}
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
