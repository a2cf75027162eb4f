//! A private Redis, and a private Redis Cluster of three nodes or of six.

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::folder::ServerFolder;
use super::process::{Recipe, ServerProcess, TestServer, poll};
use super::{Server, ServerCertificates, ServerLogin, folder, port, program};

/// A Redis server that keeps its data: an append-only file, synced every second.
pub type RedisServer = TestServer<RedisKind>;

const LOGIN: ServerLogin<'static> =
    ServerLogin { user: RedisServer::USER[0], password: RedisServer::USER[1] };

/// The kind of a [`RedisServer`].
pub enum RedisKind {}

impl RedisServer {
    pub fn start() -> Result<RedisServer> {
        RedisServer::start_with(&[])
    }

    /// With settings of its own, as in `["--appendfsync", "always"]`; a server that the environment
    /// named has what it has.
    pub fn start_with(settings: &[[&str; 2]]) -> Result<RedisServer> {
        TestServer::find_or_start(
            Server::Redis,
            |port| recipe(folder::create("redis")?, port, settings),
            url_of,
        )
    }

    /// One that speaks only TLS, and only with the user [`RedisServer::USER`]. Its URL names the
    /// user and `localhost`.
    pub fn start_with_tls(certificates: &ServerCertificates<'_>) -> Result<RedisServer> {
        let recipe = |port| tls_recipe(folder::create("redis")?, port, &[], &LOGIN, certificates);
        TestServer::start_own(Server::Redis, recipe, tls_url_of)
    }

    /// Name and password of the user of a server with TLS.
    pub const USER: [&str; 2] = ["shop", "password-of-the-shop"];

    pub fn url(&self) -> &str {
        self.address()
    }
}

/// A Redis Cluster of three masters, which together serve every slot, with or without replicas.
pub struct RedisCluster {
    /// Empty if the environment named the cluster.
    nodes: Vec<ServerProcess>,
    urls: Vec<String>,
}

impl RedisCluster {
    pub fn start() -> Result<RedisCluster> {
        if let Some(urls) = Server::RedisCluster.external() {
            let urls = urls.split(',').map(|url| url.trim().to_owned()).collect();
            return Ok(RedisCluster { nodes: Vec::new(), urls });
        }
        RedisCluster::start_plain(3, 0)
    }

    /// One of ours whose masters have a replica each, so that it survives the loss of a node.
    pub fn start_with_replicas() -> Result<RedisCluster> {
        RedisCluster::start_plain(6, 1)
    }

    fn start_plain(nodes: usize, replicas: usize) -> Result<RedisCluster> {
        let plain = |port, settings: &[[&str; 2]]| recipe(folder::create("redis")?, port, settings);
        let nodes = (0..nodes).map(|_| start_node(plain)).collect::<Result<Vec<_>>>()?;
        let urls = nodes.iter().map(|node| url_of(node.port())).collect();
        RedisCluster::of(nodes, urls, &[], replicas)
    }

    /// One that speaks only TLS, as [`RedisServer::start_with_tls`] does.
    pub fn start_with_tls(certificates: &ServerCertificates<'_>) -> Result<RedisCluster> {
        let recipe = |port, settings: &[[&str; 2]]| {
            let settings = [settings, &[["--tls-cluster", "yes"]]].concat();
            tls_recipe(folder::create("redis")?, port, &settings, &LOGIN, certificates)
        };
        let nodes = (0..3).map(|_| start_node(recipe)).collect::<Result<Vec<_>>>()?;
        let urls = nodes.iter().map(|node| tls_url_of(node.port())).collect();
        RedisCluster::of(nodes, urls, &login_arguments(&LOGIN), 0)
    }

    fn of(
        nodes: Vec<ServerProcess>,
        urls: Vec<String>,
        login: &[&str],
        replicas: usize,
    ) -> Result<RedisCluster> {
        let ports: Vec<u16> = nodes.iter().map(ServerProcess::port).collect();
        form_cluster(&ports, login, replicas)?;
        Ok(RedisCluster { nodes, urls })
    }

    pub fn urls(&self) -> &[String] {
        &self.urls
    }

    /// The addresses without the scheme.
    pub fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect()
    }

    /// Kills the master of a key, whose replica has all of it, and waits until that is the master.
    pub fn lose_master_of(&mut self, key: &str) -> Result<()> {
        for node in &self.nodes {
            poll(TAKEOVER_MAX, || {
                let replication = ask(node.port(), &[], &["info", "replication"])?;
                let lags = replication.contains("role:slave")
                    && !replication.contains("master_link_status:up");
                Ok((!lags).then_some(()))
            })?
            .context("a replica did not follow its master")?;
        }
        let first = self.nodes.first().context("a cluster of ours")?.port();
        let lost = master_of(first, key)?.context("every slot has a master")?;
        let master = self.nodes.iter_mut().find(|node| node.port() == lost);
        master.context("a node of ours")?.kill()?;
        let others = self.nodes.iter().map(ServerProcess::port).find(|port| *port != lost);
        let other = others.context("a node that is left")?;
        poll(TAKEOVER_MAX, || Ok(master_of(other, key)?.filter(|port| *port != lost)))?
            .context("no replica took over")?;
        Ok(())
    }
}

/// For what takes some times the timeout of a node.
const TAKEOVER_MAX: Duration = Duration::from_secs(60);

fn ask(port: u16, login: &[&str], question: &[&str]) -> Result<String> {
    let port = port.to_string();
    program::run(redis_cli()?.args(login).args(["-p", &port]).args(question))
}

/// The port of the master that has a key, as a node sees it.
fn master_of(node: u16, key: &str) -> Result<Option<u16>> {
    let slot: u16 = ask(node, &[], &["cluster", "keyslot", key])?.trim().parse()?;
    let has_slot = |range: &str| match range.split_once('-') {
        Some((first, last)) => {
            first.parse().is_ok_and(|first: u16| first <= slot)
                && last.parse().is_ok_and(|last: u16| slot <= last)
        }
        None => range.parse() == Ok(slot),
    };
    // Each line: id, address, flags, master, ping, pong, epoch, state, slots.
    let nodes = ask(node, &[], &["cluster", "nodes"])?;
    let found = nodes.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let flags: Vec<&str> = fields.get(2)?.split(',').collect();
        let is_master = flags.contains(&"master") && !flags.contains(&"fail");
        let is_it = is_master && fields.iter().skip(8).any(|range| has_slot(range));
        let (address, _) = fields[1].split_once('@')?;
        address.rsplit(':').next()?.parse().ok().filter(|_| is_it)
    });
    Ok(found)
}

/// What a client of a server with TLS says.
pub(super) fn login_arguments<'a>(login: &ServerLogin<'a>) -> [&'a str; 7] {
    let ServerLogin { user, password } = *login;
    ["--tls", "--insecure", "--no-auth-warning", "--user", user, "--pass", password]
}

/// Makes a cluster of nodes that do not know each other yet, and waits until it serves.
pub(super) fn form_cluster(ports: &[u16], login: &[&str], replicas: usize) -> Result<()> {
    let first = ports.first().context("a cluster has nodes")?;
    let known = ask(*first, login, &["cluster", "info"])?;
    if known.lines().any(|line| line.trim() == "cluster_known_nodes:1") {
        program::run(
            redis_cli()?
                .args(login)
                .args(["--cluster", "create"])
                .args(ports.iter().map(|port| format!("127.0.0.1:{port}")))
                .args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"]),
        )?;
    }
    for port in ports {
        poll(Duration::from_secs(60), || {
            let info = ask(*port, login, &["cluster", "info"])?;
            Ok(info.contains("cluster_state:ok").then_some(()))
        })?
        .context("the Redis Cluster did not form")?;
    }
    Ok(())
}

/// In bytes; 0 means no limit. What is stored already stays.
pub(super) fn set_memory_max(port: u16, login: &[&str], bytes: u8) -> Result<()> {
    let (port, bytes) = (port.to_string(), bytes.to_string());
    let set = ["config", "set", "maxmemory", &bytes];
    let said = program::run(redis_cli()?.args(login).args(["-p", &port]).args(set))?;
    anyhow::ensure!(said.trim() == "OK", "Redis did not take the limit: {said}");
    Ok(())
}

pub(super) fn find_programs() -> Result<()> {
    program::find("Redis", "redis-server")?;
    redis_cli()?;
    Ok(())
}

fn redis_cli() -> Result<Command> {
    Ok(Command::new(program::find("Redis", "redis-cli")?))
}

fn url_of(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn tls_url_of(port: u16) -> String {
    let [user, password] = RedisServer::USER;
    format!("rediss://{user}:{password}@localhost:{port}")
}

fn start_node(recipe: impl Fn(u16, &[[&str; 2]]) -> Result<Recipe>) -> Result<ServerProcess> {
    ServerProcess::start(|port| {
        // Nodes talk to each other on a second port, by default 10000 above: where the kernel takes
        // ports for outgoing connections from.
        recipe(port, &cluster_settings(&port::free()?.to_string()))
    })
}

pub(super) fn cluster_settings(cluster_port: &str) -> [[&str; 2]; 3] {
    let node_timeout_ms = "2000";
    [
        ["--cluster-enabled", "yes"],
        ["--cluster-port", cluster_port],
        ["--cluster-node-timeout", node_timeout_ms],
    ]
}

pub(super) fn recipe(
    folder: ServerFolder,
    port: u16,
    more_settings: &[[&str; 2]],
) -> Result<Recipe> {
    let mut command: Vec<OsString> = vec![program::find("Redis", "redis-server")?.into()];
    let port_text = port.to_string();
    let settings = [
        ["--port", &port_text],
        ["--bind", "127.0.0.1"],
        ["--appendonly", "yes"],
        ["--appendfsync", "everysec"],
        ["--save", ""],
    ];
    for setting in settings.iter().chain(more_settings) {
        command.extend(setting.map(OsString::from));
    }
    Ok(Recipe::new("Redis", folder, port, command, "Ready to accept connections"))
}

pub(super) fn tls_recipe(
    folder: ServerFolder,
    port: u16,
    more_settings: &[[&str; 2]],
    login: &ServerLogin<'_>,
    certificates: &ServerCertificates<'_>,
) -> Result<Recipe> {
    let port_text = port.to_string();
    let demand = if certificates.demands_certificates { "yes" } else { "no" };
    let tls = [
        ["--port", "0"],
        ["--tls-port", &port_text],
        ["--tls-cert-file", "server.pem"],
        ["--tls-key-file", "server.key"],
        ["--tls-ca-cert-file", "authority.pem"],
        ["--tls-auth-clients", demand],
        ["--aclfile", "users.acl"],
    ];
    let recipe = recipe(folder, port, &[&tls, more_settings].concat())?;
    certificates.write(recipe.folder.path())?;
    let ServerLogin { user, password } = login;
    // Nobody logs in as the default user, but Redis loads its file as that user: without the right to
    // all commands it leaves out transactions, and so loses what scripts wrote.
    let users = format!("user default off ~* &* +@all\nuser {user} on >{password} ~* &* +@all\n");
    super::folder::write_private(&recipe.folder.path().join("users.acl"), &users)?;
    Ok(recipe)
}
