//! A private Redis, and a private Redis Cluster of three nodes.

use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::process::{Process, Recipe, TestServer, poll};
use super::{Server, ServerCertificates, folder, port, program};

/// A Redis server that keeps its data: an append-only file, synced every second.
pub type RedisServer = TestServer<RedisKind>;

/// The kind of a [`RedisServer`].
pub enum RedisKind {}

impl RedisServer {
    pub fn start() -> Result<RedisServer> {
        RedisServer::start_with(&[])
    }

    /// With settings of its own, as in `["--appendfsync", "always"]`; a server that the environment
    /// named has what it has.
    pub fn start_with(settings: &[[&str; 2]]) -> Result<RedisServer> {
        TestServer::find_or_start(Server::Redis, |port| recipe(port, settings), url_of)
    }

    /// One that speaks only TLS, and only with the user [`RedisServer::USER`]. Its URL names the
    /// user and `localhost`.
    pub fn start_with_tls(certificates: &ServerCertificates<'_>) -> Result<RedisServer> {
        let recipe = |port| tls_recipe(port, &[], certificates);
        TestServer::start_own(Server::Redis, recipe, tls_url_of)
    }

    /// Name and password of the user of a server with TLS.
    pub const USER: [&str; 2] = ["shop", "password-of-the-shop"];

    pub fn url(&self) -> &str {
        self.address()
    }
}

/// A Redis Cluster of three nodes without replicas, which together serve every slot.
pub struct RedisCluster {
    /// Held for its `Drop`; empty if the environment named the cluster.
    _nodes: Vec<Process>,
    urls: Vec<String>,
}

impl RedisCluster {
    pub fn start() -> Result<RedisCluster> {
        if let Some(urls) = Server::RedisCluster.external() {
            let urls = urls.split(',').map(|url| url.trim().to_owned()).collect();
            return Ok(RedisCluster { _nodes: Vec::new(), urls });
        }
        let nodes = (0..3).map(|_| start_node(recipe)).collect::<Result<Vec<_>>>()?;
        let urls = nodes.iter().map(|node| url_of(node.port())).collect();
        RedisCluster::of(nodes, urls, &[])
    }

    /// One that speaks only TLS, as [`RedisServer::start_with_tls`] does.
    pub fn start_with_tls(certificates: &ServerCertificates<'_>) -> Result<RedisCluster> {
        let recipe = |port, settings: &[[&str; 2]]| {
            let settings = [settings, &[["--tls-cluster", "yes"]]].concat();
            tls_recipe(port, &settings, certificates)
        };
        let nodes = (0..3).map(|_| start_node(recipe)).collect::<Result<Vec<_>>>()?;
        let urls = nodes.iter().map(|node| tls_url_of(node.port())).collect();
        let [user, password] = RedisServer::USER;
        let login =
            ["--tls", "--insecure", "--no-auth-warning", "--user", user, "--pass", password];
        RedisCluster::of(nodes, urls, &login)
    }

    fn of(nodes: Vec<Process>, urls: Vec<String>, login: &[&str]) -> Result<RedisCluster> {
        program::run(
            redis_cli()?
                .args(login)
                .args(["--cluster", "create"])
                .args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())))
                .args(["--cluster-replicas", "0", "--cluster-yes"]),
        )?;
        for node in &nodes {
            let port = node.port().to_string();
            poll(Duration::from_secs(30), || {
                let mut ask = redis_cli()?;
                let info = program::run(ask.args(login).args(["-p", &port, "cluster", "info"]))?;
                Ok(info.contains("cluster_state:ok").then_some(()))
            })?
            .context("the Redis Cluster did not form")?;
        }
        Ok(RedisCluster { _nodes: nodes, urls })
    }

    pub fn urls(&self) -> &[String] {
        &self.urls
    }
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

fn start_node(recipe: impl Fn(u16, &[[&str; 2]]) -> Result<Recipe>) -> Result<Process> {
    Process::start(|port| {
        // Nodes talk to each other on a second port, by default 10000 above: where the kernel takes
        // ports for outgoing connections from.
        let cluster_port = port::free()?.to_string();
        let node_timeout_ms = "2000";
        recipe(
            port,
            &[
                ["--cluster-enabled", "yes"],
                ["--cluster-port", &cluster_port],
                ["--cluster-node-timeout", node_timeout_ms],
            ],
        )
    })
}

pub(super) fn recipe(port: u16, more_settings: &[[&str; 2]]) -> Result<Recipe> {
    let folder = folder::create("redis")?;
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

fn tls_recipe(
    port: u16,
    more_settings: &[[&str; 2]],
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
    let recipe = recipe(port, &[&tls, more_settings].concat())?;
    certificates.write(recipe.folder.path())?;
    let [user, password] = RedisServer::USER;
    let users = format!("user default off\nuser {user} on >{password} ~* &* +@all\n");
    fs::write(recipe.folder.path().join("users.acl"), users)?;
    Ok(recipe)
}
