//! How commands talk to the supervisor of a cluster: a line of JSON each way, by a socket that only
//! its user can open.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio_util::task::AbortOnDropHandle;
use urr_cluster::LineFault;

use super::state::ClusterFolder;
use super::supervisor::Supervisor;

/// A member that starts may take this long, and so does an answer.
const ANSWER_WITHIN: Duration = Duration::from_mins(5);

/// What the supervisor is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ControlAction {
    Status,
    Down,
    Start,
    Stop,
    Restart,
    Kill,
    Pause,
    Resume,
    /// Cuts the connections to a role or server.
    Cut,
    /// Heals the line before a role or server.
    Heal,
    Slow {
        ms: u64,
    },
    Silence,
    Garble,
    Close,
    /// Lets a server store nothing more.
    Fill,
}

impl ControlAction {
    /// What it does to a line, if it is about one.
    pub fn line_fault(self) -> Option<LineFault> {
        match self {
            ControlAction::Heal => Some(LineFault::None),
            ControlAction::Slow { ms } => Some(LineFault::Slow(Duration::from_millis(ms))),
            ControlAction::Silence => Some(LineFault::Silent),
            ControlAction::Garble => Some(LineFault::Garbled),
            ControlAction::Close => Some(LineFault::Closed),
            _ => None,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct ControlRequest {
    action: ControlAction,
    #[serde(default)]
    name: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlAnswer {
    /// Why it was not done.
    pub error: Option<String>,
    /// Whether everything has been started.
    pub is_up: bool,
    /// The balancer before the gateways.
    pub site: String,
    pub members: Vec<ClusterMemberStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterMemberStatus {
    pub name: String,
    pub port: u16,
    pub pid: Option<u32>,
    /// running, paused, stopped, or changing.
    pub state: String,
    pub is_ready: bool,
    /// Processor time since its start, with the processes that it started.
    pub cpu_ms: Option<u64>,
}

/// The way to the supervisor of a folder. Its calls block.
#[derive(Clone, Debug)]
pub struct Control {
    folder: ClusterFolder,
}

impl Control {
    pub fn new(folder: &ClusterFolder) -> Control {
        Control { folder: folder.clone() }
    }

    pub fn status(&self) -> Result<ControlAnswer> {
        self.ask(ControlAction::Status, "")
    }

    /// Asks for something and waits until it is done.
    pub fn ask(&self, action: ControlAction, name: &str) -> Result<ControlAnswer> {
        let stream = UnixStream::connect(self.folder.socket()?);
        let mut stream = stream.with_context(|| {
            format!(
                "no cluster runs in {}; `urr cluster up` starts one",
                self.folder.path().display()
            )
        })?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        let request = ControlRequest { action, name: name.to_owned() };
        stream.write_all((serde_json::to_string(&request)? + "\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).context("the supervisor does not answer")?;
        let answer: ControlAnswer =
            serde_json::from_str(&line).context("the supervisor ended meanwhile")?;
        match answer.error {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }
}

/// Answers commands until it is dropped.
pub fn serve(socket: &Path, supervisor: &Arc<Supervisor>) -> Result<AbortOnDropHandle<()>> {
    if socket.exists() {
        // A killed supervisor left it; the folder is locked by us.
        fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket).with_context(|| format!("{}", socket.display()))?;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))?;
    let supervisor = Arc::clone(supervisor);
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A command that went away gets no answer.
            let supervisor = Arc::clone(&supervisor);
            tokio::spawn(async move { drop(answer(stream, &supervisor).await) });
        }
    })))
}

async fn answer(stream: tokio::net::UnixStream, supervisor: &Arc<Supervisor>) -> Result<()> {
    let (from, mut to) = stream.into_split();
    let mut line = String::new();
    tokio::io::BufReader::new(from).read_line(&mut line).await?;
    let request: ControlRequest = serde_json::from_str(&line)?;
    let done = supervisor.perform(request.action, &request.name).await;
    let error = done.err().map(|error| format!("{error:#}"));
    let answer = ControlAnswer { error, ..supervisor.status() };
    to.write_all((serde_json::to_string(&answer)? + "\n").as_bytes()).await?;
    Ok(())
}
