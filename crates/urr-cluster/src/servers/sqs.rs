//! A private server that speaks SQS: ElasticMQ. The install script says why this one.

use std::ffi::OsString;
use std::fs;

use anyhow::Result;

use super::folder::ServerFolder;
use super::process::{Recipe, TestServer};
use super::{Server, folder, program};

/// The queue that is there from the start.
const NOTICES: &str = "admissions.fifo";

/// An SQS-compatible server. Its queues live in memory.
pub type SqsServer = TestServer<SqsKind>;

/// The kind of a [`SqsServer`].
pub enum SqsKind {}

impl SqsServer {
    pub fn start() -> Result<SqsServer> {
        let recipe = |port| recipe(folder::create("sqs")?, port);
        TestServer::find_or_start(Server::Sqs, recipe, |port| format!("http://127.0.0.1:{port}"))
    }

    /// The URL to send requests to. Any region and credentials will do.
    pub fn endpoint(&self) -> &str {
        self.address()
    }
}

pub(super) fn find_programs() -> Result<()> {
    program::find("ElasticMQ", "java")?;
    program::find_jars("ElasticMQ", "elasticmq")?;
    Ok(())
}

/// With the FIFO queue [`NOTICES`].
pub(super) fn recipe(folder: ServerFolder, port: u16) -> Result<Recipe> {
    let configuration = format!(
        r#"include classpath("application.conf")
rest-sqs {{ bind-hostname = "127.0.0.1", bind-port = {port}, sqs-limits = strict }}
node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}
rest-stats.enabled = false
queues {{ "{NOTICES}" {{ fifo = true }} }}
"#
    );
    fs::write(folder.path().join("elasticmq.conf"), configuration)?;
    let command = vec![
        program::find("ElasticMQ", "java")?.into(),
        "-Xmx256m".into(),
        "-XX:+UseSerialGC".into(),
        "-XX:TieredStopAtLevel=1".into(),
        "-XX:-UsePerfData".into(),
        "-Dconfig.file=elasticmq.conf".into(),
        OsString::from("-cp"),
        program::find_jars("ElasticMQ", "elasticmq")?,
        "org.elasticmq.server.Main".into(),
    ];
    Ok(Recipe::new("ElasticMQ", folder, port, command, "Started SQS rest server"))
}
