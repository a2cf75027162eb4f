//! A private PostgreSQL: durable, and with passwords that count.

mod copies;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::folder::ServerFolder;
use super::process::{Recipe, TestServer};
use super::{Server, ServerCertificates, folder, port, program};

const ADMIN: &str = "urr_admin";

/// The user that the distribution's package creates. PostgreSQL refuses to run as root.
const UNPRIVILEGED_USER: &str = "postgres";

/// A PostgreSQL server. `fsync` and `synchronous_commit` are on, and every login needs its
/// password: crash tests rely on the one, tests of the services' roles on the other.
pub type PostgresServer = TestServer<PostgresKind>;

/// The kind of a [`PostgresServer`].
pub enum PostgresKind {}

impl PostgresServer {
    pub fn start() -> Result<PostgresServer> {
        let password = format!("{:016x}", port::random());
        let url = |port| format!("postgres://{ADMIN}:{password}@127.0.0.1:{port}/postgres");
        TestServer::find_or_start(
            Server::Postgres,
            |port| recipe(folder::create("postgres")?, port, &password, None),
            url,
        )
    }

    /// One that refuses connections without TLS. Its URL says nothing about TLS.
    pub fn start_with_tls(certificates: &ServerCertificates<'_>) -> Result<PostgresServer> {
        let password = format!("{:016x}", port::random());
        let url = |port| format!("postgres://{ADMIN}:{password}@127.0.0.1:{port}/postgres");
        let recipe =
            |port| recipe(folder::create("postgres")?, port, &password, Some(certificates));
        TestServer::start_own(Server::Postgres, recipe, url)
    }

    /// The administrator's URL of the database `postgres`.
    pub fn url(&self) -> &str {
        self.address()
    }

    /// Creates an empty database and gives the administrator's URL of it. Its name gets a random
    /// ending: tests may choose the same one, and a server that the environment names may still
    /// hold the databases of earlier runs. Roles are shared by all databases of a server.
    pub fn create_database(&self, name: &str) -> Result<String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        ensure!(
            !name.is_empty() && name.len() <= 40 && name.chars().all(plain),
            "a database is named by at most 40 of a-z, 0-9 and _, not {name:?}"
        );
        let database = format!("{name}_{:016x}", port::random());
        self.ask(&format!("create database {database}"))?;
        Ok(with_database(self.url(), &database))
    }

    /// Runs a statement as the administrator and gives its rows as lines.
    pub fn ask(&self, sql: &str) -> Result<String> {
        let said = program::run(
            Command::new(program::find_postgres("psql")?)
                .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", self.url()])
                .args(["--tuples-only", "--no-align", "--command", sql]),
        )?;
        Ok(said.trim_end().to_owned())
    }
}

pub(super) fn find_programs() -> Result<()> {
    for name in ["initdb", "postgres", "psql"] {
        program::find_postgres(name)?;
    }
    Ok(())
}

pub(super) fn recipe(
    folder: ServerFolder,
    port: u16,
    password: &str,
    certificates: Option<&ServerCertificates<'_>>,
) -> Result<Recipe> {
    let user = other_user()?;
    if let Some(certificates) = certificates {
        certificates.write(folder.path())?;
    }
    if !folder.path().join("data/PG_VERSION").exists() {
        initialise(folder.path(), user, password).context("initialising PostgreSQL's data")?;
    } else if let Some(user) = user {
        // The certificates are ours as long as nobody hands them over.
        hand_over(folder.path(), user)?;
    }

    let mut command: Vec<OsString> = vec![program::find_postgres("postgres")?.into()];
    command.extend(["-D", "data"].map(OsString::from));
    for setting in [
        &format!("port={port}"),
        "listen_addresses=127.0.0.1",
        // A socket's path is short, and a folder's need not be.
        "unix_socket_directories=",
        "max_connections=200",
        "fsync=on",
        "synchronous_commit=on",
        "full_page_writes=on",
        "logging_collector=off",
        // In files of the data folder, so that a crash leaves nothing in /dev/shm.
        "dynamic_shared_memory_type=mmap",
    ] {
        command.extend(["-c", setting].map(OsString::from));
    }
    if let Some(certificates) = certificates {
        require_tls(folder.path(), certificates)?;
        for setting in [
            "ssl=on",
            "ssl_cert_file=../server.pem",
            "ssl_key_file=../server.key",
            "ssl_ca_file=../authority.pem",
        ] {
            command.extend(["-c", setting].map(OsString::from));
        }
    }
    // A standby accepts connections that only read.
    let ready_line = "database system is ready to accept";
    let recipe = Recipe::new("PostgreSQL", folder, port, command, ready_line);
    // QUIT is its immediate shutdown: as quick as KILL, but it frees its System V shared memory, of
    // which the kernel has only 4096 pieces.
    Ok(Recipe { user, stop_signal: "INT", end_signal: "QUIT", ..recipe })
}

/// The user to run PostgreSQL as, if it may not be ours.
fn other_user() -> Result<Option<&'static str>> {
    // The owner of our own entry in /proc is the user we run as.
    let is_root = fs::metadata("/proc/self")?.uid() == 0;
    Ok(is_root.then_some(UNPRIVILEGED_USER))
}

/// A program that runs as that user.
fn command_as(user: Option<&str>, program: &Path) -> Result<Command> {
    let Some(user) = user else { return Ok(Command::new(program)) };
    let mut command = Command::new(program::find("util-linux", "setpriv")?);
    command.args(["--reuid", user, "--regid", user, "--init-groups", "--"]).arg(program);
    Ok(command)
}

/// Creates the data folder `data` and hands everything to the user that will run the server.
fn initialise(folder: &Path, user: Option<&str>, password: &str) -> Result<()> {
    let password_file = folder.join("password");
    fs::write(&password_file, password)?;
    if let Some(user) = user {
        hand_over(folder, user)?;
    }
    let mut command = command_as(user, &program::find_postgres("initdb")?)?;
    command
        .current_dir(folder)
        .args(["--pgdata=data", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"])
        .arg(format!("--username={ADMIN}"))
        .arg(format!("--pwfile={}", password_file.display()))
        // Only the empty data: the server itself runs with `fsync`.
        .arg("--no-sync");
    program::run(&mut command)?;
    fs::remove_file(password_file)?;
    Ok(())
}

/// Gives everything in the folder to the user who runs the server, who must be able to get there.
fn hand_over(folder: &Path, user: &str) -> Result<()> {
    program::run(
        Command::new("chown").args(["--recursive", &format!("{user}:{user}")]).arg(folder),
    )?;
    program::run(command_as(Some(user), Path::new("ls"))?.arg(folder)).with_context(|| {
        let folder = folder.display();
        format!("PostgreSQL runs as {user}, who cannot get to {folder}; choose another folder")
    })?;
    Ok(())
}

/// Nobody gets in without TLS, nor without a certificate if the server demands one.
fn require_tls(folder: &Path, certificates: &ServerCertificates<'_>) -> Result<()> {
    let demand = if certificates.demands_certificates { " clientcert=verify-ca" } else { "" };
    let rule = format!("hostssl all all 127.0.0.1/32 scram-sha-256{demand}\n");
    Ok(fs::write(folder.join("data/pg_hba.conf"), rule)?)
}

/// The same server, user and options, but another database.
fn with_database(url: &str, database: &str) -> String {
    let (address, options) = match url.split_once('?') {
        Some((address, options)) => (address, format!("?{options}")),
        None => (url, String::new()),
    };
    let authority_start = address.find("://").map_or(0, |at| at + "://".len());
    let authority_end =
        address[authority_start..].find('/').map_or(address.len(), |at| authority_start + at);
    format!("{}/{database}{options}", &address[..authority_end])
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn a_url_keeps_all_but_its_database() {
        let check = |url, expected| assert_eq!(with_database(url, "new"), expected);
        check("postgres://u:p@127.0.0.1:5432/old", "postgres://u:p@127.0.0.1:5432/new");
        check("postgres://u:p@host/old?sslmode=require", "postgres://u:p@host/new?sslmode=require");
        check("postgres://host", "postgres://host/new");
        check("postgres://host?a=/b", "postgres://host/new?a=/b");
    }
}
