//! What a cluster keeps in its folder: its arguments, its ports, and which processes are its own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use urr_cluster::servers::{end_process, free_port, start_time_of};
use urr_kernel::Secret;

use crate::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};
use crate::data_folder::replace_private;
use crate::role::ProcessRole;

/// A socket's path is at most 107 bytes long.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// So many nodes has the Redis Cluster, none of them with a replica.
pub const REDIS_NODES: u8 = 3;
/// So many processes has each role, if nobody asks for others.
pub const REPLICAS: u8 = 2;
/// The mail server, which is a part of the supervisor.
pub const MAIL_SERVER: &str = "smtp";
/// What speaks TLS for the SQS server, which does not. It is a part of the supervisor, too.
pub const SQS_TLS: &str = "sqs-tls";

/// How a cluster was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterOptions {
    /// How many processes each role has.
    pub replicas: u8,
    /// Whether the public listeners have TLS.
    pub tls: bool,
    /// Whether a balancer that can slow, cut and garble stands before each server.
    pub fault_lines: bool,
    /// Settings of all processes.
    pub settings: BTreeMap<String, String>,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            replicas: REPLICAS,
            tls: false,
            fault_lines: false,
            settings: BTreeMap::new(),
        }
    }
}

/// A process that may have ended since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownProcess {
    pub pid: u32,
    /// Tells it from a later process with the same id.
    pub start_time: u64,
}

impl KnownProcess {
    pub fn of(pid: u32) -> Option<KnownProcess> {
        start_time_of(pid).map(|start_time| KnownProcess { pid, start_time })
    }

    pub fn is_running(self) -> bool {
        start_time_of(self.pid) == Some(self.start_time)
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterState {
    pub options: ClusterOptions,
    /// By what listens there. They stay the same: nodes of a Redis Cluster remember each other.
    pub ports: BTreeMap<String, u16>,
    pub processes: BTreeMap<String, KnownProcess>,
}

impl ClusterState {
    /// The port of this name.
    pub fn port(&self, name: &str) -> u16 {
        *self.ports.get(name).expect("every port of the cluster was chosen at its start")
    }

    /// Where clients find a server: the balancer before it, or itself.
    pub fn client_port(&self, server: &str) -> u16 {
        match (self.options.fault_lines, server) {
            (true, _) => self.port(&line_of(server)),
            (false, "sqs") => self.port(SQS_TLS),
            (false, _) => self.port(server),
        }
    }

    /// The address of the site: the balancer before the gateways.
    pub fn site(&self) -> String {
        self.public_url(ProcessRole::Gateway.name())
    }

    pub fn public_url(&self, name: &str) -> String {
        let scheme = if self.options.tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port(name))
    }

    fn choose_ports(&mut self) -> Result<()> {
        let mut servers = server_names();
        servers.push(MAIL_SERVER.to_owned());
        let replicas = self.options.replicas;
        let cluster_ports = servers.iter().filter(|name| name.starts_with("redis"));
        let lines = servers.iter().map(|name| line_of(name));
        let roles = ProcessRole::ALL.into_iter().flat_map(|role| {
            replica_names(role, replicas)
                .into_iter()
                .chain([role.name().to_owned()])
                .collect::<Vec<_>>()
        });
        let names: Vec<String> = [SQS_TLS.to_owned()]
            .into_iter()
            .chain(lines)
            .chain(cluster_ports.map(|name| cluster_port_of(name)))
            .chain(servers.iter().cloned())
            .chain(roles)
            .collect();
        for name in names {
            if let Entry::Vacant(entry) = self.ports.entry(name) {
                entry.insert(free_port()?);
            }
        }
        Ok(())
    }
}

/// The servers, in the order in which they are started.
pub fn server_names() -> Vec<String> {
    let redis = (1..=REDIS_NODES).map(|number| format!("redis-{number}"));
    ["postgres", "kafka", "sqs"].into_iter().map(str::to_owned).chain(redis).collect()
}

pub fn replica_names(role: ProcessRole, replicas: u8) -> Vec<String> {
    (1..=replicas).map(|number| format!("{role}-{number}")).collect()
}

fn line_of(server: &str) -> String {
    format!("{server}-line")
}

pub fn cluster_port_of(node: &str) -> String {
    format!("{node}-cluster")
}

/// The folder of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterFolder(PathBuf);

impl ClusterFolder {
    pub fn new(path: &Path) -> Result<ClusterFolder> {
        Ok(ClusterFolder(std::path::absolute(path)?))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn state_path(&self) -> PathBuf {
        self.0.join("cluster.json")
    }

    pub fn certificates(&self) -> PathBuf {
        self.0.join("certificates")
    }

    /// The settings of a role, or of the operator.
    pub fn settings_path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.toml"))
    }

    /// The folder of one server or process.
    pub fn member(&self, name: &str) -> PathBuf {
        self.0.join("members").join(name)
    }

    /// The mails that its processes have sent.
    pub fn mails(&self) -> PathBuf {
        self.0.join("mails")
    }

    pub fn supervisor_log(&self) -> PathBuf {
        self.0.join("supervisor.log")
    }

    /// The socket by which commands reach the supervisor.
    pub fn socket(&self) -> Result<PathBuf> {
        let path = self.0.join("control.sock");
        ensure!(
            path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX,
            "{} is too long for a socket; choose a folder with a shorter path",
            path.display()
        );
        Ok(path)
    }

    /// Locks the folder for one supervisor, until the file is dropped or the process dies.
    pub fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.0).with_context(|| format!("{}", self.0.display()))?;
        let path = self.0.join("cluster.lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                bail!("the cluster in {} runs already", self.0.display())
            }
            Err(TryLockError::Error(error)) => Err(error).context("the lock of the cluster"),
        }
    }

    /// The state that an earlier start left, with these options and a port for everything.
    pub fn open_state(&self, options: ClusterOptions) -> Result<ClusterState> {
        let mut state = match self.state_path().exists() {
            true => self.read_state()?,
            false => ClusterState::default(),
        };
        state.end_leftovers()?;
        state.options = options;
        state.choose_ports()?;
        self.write_state(&state)?;
        Ok(state)
    }

    pub fn read_state(&self) -> Result<ClusterState> {
        let path = self.state_path();
        let text = fs::read(&path)
            .with_context(|| format!("no cluster was started in {}", self.0.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    pub fn write_state(&self, state: &ClusterState) -> Result<()> {
        replace_private(&self.state_path(), &serde_json::to_string_pretty(state)?)
    }

    /// The secret from which all secrets of the cluster follow.
    pub fn root_secret(&self) -> Result<Secret> {
        let path = self.0.join("secret");
        if !path.exists() {
            replace_private(&path, Secret::generate().expose())?;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        Ok(Secret::new(text.trim()))
    }

    /// The configuration with which an operator of the cluster works.
    pub fn operator_config(&self) -> Result<Config> {
        let options = LoadOptions {
            mode: LoadMode::Inspect,
            config_file: Some(self.settings_path("operator")),
            overrides: CommandLineOverrides::default(),
        };
        Ok(config::load(options, [])?)
    }

    /// Ends what a supervisor that was killed left behind, which the kernel normally does.
    pub fn end_leftovers(&self) -> Result<usize> {
        let mut state = self.read_state()?;
        let ended = state.end_leftovers()?;
        self.write_state(&state)?;
        Ok(ended)
    }

    /// Removes everything, if it is a cluster's folder.
    pub fn remove(&self) -> Result<()> {
        self.read_state()?;
        fs::remove_dir_all(&self.0).with_context(|| format!("removing {}", self.0.display()))
    }
}

impl ClusterState {
    /// Only processes that this cluster started: an id that another process has now is left alone.
    fn end_leftovers(&mut self) -> Result<usize> {
        let running = std::mem::take(&mut self.processes).into_values();
        let running: Vec<KnownProcess> = running.filter(|process| process.is_running()).collect();
        for process in &running {
            end_process(process.pid, process.start_time)?;
        }
        Ok(running.len())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_is_not_ours_any_more_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = ClusterFolder::new(folder.path()).unwrap();
        let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
        let known = KnownProcess::of(sleeper.id()).unwrap();
        let mut state = folder.open_state(ClusterOptions::default()).unwrap();
        let other = KnownProcess { start_time: known.start_time + 1, ..known };
        state.processes.insert("ticket-1".to_owned(), other);
        folder.write_state(&state).unwrap();
        assert_eq!(folder.end_leftovers().unwrap(), 0);
        assert!(known.is_running(), "another process has the id now");

        // The control: the same process is ended.
        state.processes.insert("ticket-1".to_owned(), known);
        folder.write_state(&state).unwrap();
        let waiting = std::thread::spawn(move || sleeper.wait());
        assert_eq!(folder.end_leftovers().unwrap(), 1);
        assert!(!known.is_running());
        waiting.join().unwrap().unwrap();
        assert!(folder.read_state().unwrap().processes.is_empty());
    }

    #[test]
    fn ports_stay_and_a_second_supervisor_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = ClusterFolder::new(folder.path()).unwrap();
        let first = folder.open_state(ClusterOptions::default()).unwrap();
        let second = folder.open_state(ClusterOptions::default()).unwrap();
        assert_eq!(first.ports, second.ports);
        let lock = folder.lock().unwrap();
        assert!(folder.lock().unwrap_err().to_string().contains("runs already"));
        drop(lock);
        folder.lock().unwrap();
    }
}
