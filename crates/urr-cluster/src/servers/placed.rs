//! Servers whose folders and ports stay: the parts of a cluster on this machine.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::folder::ServerFolder;
use super::process::{Recipe, ServerProcess};
use super::{ServerCertificates, kafka, postgres, redis, sqs};

/// Where a server of a cluster is.
#[derive(Clone, Copy)]
pub struct ServerPlace<'a> {
    /// Its data, its settings and its log; made if it is missing.
    pub folder: &'a Path,
    pub port: u16,
    /// Where clients find it; another one than its own port if a proxy stands before it.
    pub announced_port: u16,
}

/// Name and password of the user whom a server accepts.
#[derive(Clone, Copy)]
pub struct ServerLogin<'a> {
    pub user: &'a str,
    pub password: &'a str,
}

impl ServerPlace<'_> {
    fn folder(&self) -> Result<ServerFolder> {
        let folder = std::path::absolute(self.folder)?;
        fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
        Ok(ServerFolder::Kept(folder))
    }

    /// PostgreSQL with TLS only. The password is that of its administrator `urr_admin`.
    pub fn postgres(
        &self,
        password: &str,
        certificates: &ServerCertificates<'_>,
    ) -> Result<ServerProcess> {
        let recipe = postgres::recipe(self.folder()?, self.port, password, Some(certificates))?;
        Ok(ServerProcess::new(recipe))
    }

    /// Kafka: one node, with TLS for clients.
    pub fn kafka(
        &self,
        login: &ServerLogin<'_>,
        certificates: &ServerCertificates<'_>,
    ) -> Result<ServerProcess> {
        let ports = [self.port, self.announced_port];
        let recipe = kafka::tls_recipe(self.folder()?, ports, login, certificates)?;
        Ok(ServerProcess::new(recipe))
    }

    /// A node of a Redis Cluster with TLS only, whose nodes talk to each other at `cluster_port`.
    pub fn redis_node(
        &self,
        cluster_port: u16,
        login: &ServerLogin<'_>,
        certificates: &ServerCertificates<'_>,
    ) -> Result<ServerProcess> {
        let cluster_port = cluster_port.to_string();
        let announced = self.announced_port.to_string();
        let mut settings = redis::cluster_settings(&cluster_port).to_vec();
        settings.push(["--tls-cluster", "yes"]);
        if self.announced_port != self.port {
            settings.push(["--cluster-announce-tls-port", &announced]);
        }
        let folder = self.folder()?;
        let recipe = redis::tls_recipe(folder, self.port, &settings, login, certificates)?;
        Ok(ServerProcess::new(recipe))
    }

    /// A server that speaks SQS, with the FIFO queue `admissions.fifo`.
    pub fn sqs(&self) -> Result<ServerProcess> {
        Ok(ServerProcess::new(sqs::recipe(self.folder()?, self.port)?))
    }

    /// A program of ours with its arguments, ready when it logs `ready_line`. It gets no variable of
    /// our environment.
    pub fn program(
        &self,
        name: &str,
        command: Vec<OsString>,
        ready_line: &'static str,
    ) -> Result<ServerProcess> {
        let recipe = Recipe::new(name, self.folder()?, self.port, command, ready_line);
        Ok(ServerProcess::new(Recipe { has_no_environment: true, ..recipe }))
    }
}

/// Lets a node of Redis store nothing more, or as much as it can.
pub fn set_redis_full(port: u16, login: &ServerLogin<'_>, is_full: bool) -> Result<()> {
    redis::set_memory_max(port, &redis::login_arguments(login), u8::from(is_full))
}

/// Makes a Redis Cluster of started nodes, unless they are one already.
pub fn form_redis_cluster(ports: &[u16], login: &ServerLogin<'_>) -> Result<()> {
    redis::form_cluster(ports, &redis::login_arguments(login), 0)
}
