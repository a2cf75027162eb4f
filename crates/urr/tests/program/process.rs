//! Runs the program in a folder of its own, with nothing in its environment but what a test gives.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::http_client::{self, Reply};
use crate::machine::{MACHINE, MachineUse};

/// For what must happen, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Secrets that processes share. Each is different, as the configuration demands.
pub const SHARED_SECRETS: [(&str, &str); 6] = [
    ("JWT_SECRET", "a secret of this test, for the log-ins of users"),
    ("INTERNAL_API_TOKEN", INTERNAL_TOKEN),
    ("QUEUE_ENTRY_TOKEN_SECRET", "a secret of this test, for the waiting room"),
    ("URR_DATABASE_ROLE_SECRET", "a secret of this test, for the database roles"),
    ("URR_AUTH_DATA_KEY", "a secret of this test, for the data of users"),
    ("URR_SEATS_TICKET_SIGNING_KEY", "a secret of this test, for the tickets of users"),
];
/// The roles that have a secret which others do not need.
const HOLDERS: [(&str, &[&str]); 4] = [
    ("JWT_SECRET", &["auth", "gateway"]),
    ("QUEUE_ENTRY_TOKEN_SECRET", &["gateway", "queue"]),
    ("URR_AUTH_DATA_KEY", &["auth", "ticket"]),
    ("URR_SEATS_TICKET_SIGNING_KEY", &["ticket"]),
];
pub const INTERNAL_TOKEN: &str = "a secret of this test, for the calls between services";

/// A user's folder with the program at hand.
pub struct Installation {
    folder: TempDir,
    environment: Vec<(String, String)>,
    _machine: MachineUse<'static>,
}

/// What a command left behind.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Installation {
    pub fn new() -> Result<Installation> {
        Installation::on(MACHINE.share())
    }

    /// While no other test has one.
    pub fn alone() -> Result<Installation> {
        Installation::on(MACHINE.take())
    }

    fn on(_machine: MachineUse<'static>) -> Result<Installation> {
        Ok(Installation { folder: tempfile::tempdir()?, environment: Vec::new(), _machine })
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub fn share_secrets(&mut self) {
        SHARED_SECRETS.iter().for_each(|(name, value)| self.set(name, value));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_of(env!("CARGO_BIN_EXE_urr"));
        command.args(arguments);
        command
    }

    /// Another program in the same folder and environment.
    pub fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Result<CommandOutput> {
        Process::start(self.command(arguments))?.await_end()
    }

    /// Starts `urr up` and waits until it answers.
    pub fn up(&self, arguments: &[&str]) -> Result<Running> {
        self.start(free_port(), self.command(&[&["up"], arguments].concat()))
    }

    /// Starts `urr serve` on a port and waits until it answers. The process has the secrets of its
    /// roles, and no others.
    pub fn serve(&self, port: u16, roles: &str) -> Result<Running> {
        let mut command = self.command(&["serve", "--roles", roles]);
        for (secret, holders) in HOLDERS {
            if !roles.split(',').any(|role| holders.contains(&role)) {
                command.env_remove(secret);
            }
        }
        self.start(port, command)
    }

    /// The same for listeners with TLS, on the port of the environment: `urr health` asks.
    pub fn up_with_tls(&self, port: u16) -> Result<Running> {
        let mut running = Running { process: Process::start(self.command(&["up"]))?, port };
        eventually("the program answers", || {
            if let Some(status) = running.process.child.try_wait()? {
                bail!("it ended with {status}:\n{}", running.process.said("stderr")?)
            }
            Ok(self.run(&["health"])?.status.success())
        })?;
        Ok(running)
    }

    fn start(&self, port: u16, mut command: Command) -> Result<Running> {
        command.args(["--port", &port.to_string()]);
        let mut running = Running { process: Process::start(command)?, port };
        eventually("the program answers", || {
            let Some(status) = running.process.child.try_wait()? else {
                return Ok(http_client::get(port, "/health").is_ok_and(|reply| reply.status == 200));
            };
            let said = running.process.said("stderr")?;
            bail!("it ended with {status} while it was to start:\n{said}")
        })?;
        Ok(running)
    }
}

/// A process and what it says. It is killed when dropped.
pub struct Process {
    child: Child,
    output: TempDir,
}

impl Process {
    pub fn start(mut command: Command) -> Result<Process> {
        let output = tempfile::tempdir()?;
        let file = |name: &str| File::create(output.path().join(name));
        let child = command.stdout(file("stdout")?).stderr(file("stderr")?).spawn()?;
        Ok(Process { child, output })
    }

    fn said(&self, where_to: &str) -> Result<String> {
        Ok(fs::read_to_string(self.output.path().join(where_to))?)
    }

    pub fn stderr(&self) -> Result<String> {
        self.said("stderr")
    }

    pub fn signal(&self, signal: &str) -> Result<()> {
        send_signal(self.child.id(), signal)
    }

    /// The memory that it has at the moment, without the program itself and files; none when it has
    /// ended.
    pub fn memory_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }

    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    pub fn await_end(self) -> Result<CommandOutput> {
        self.await_end_within(PATIENCE)
    }

    /// For a command that has much to do.
    pub fn await_end_within(mut self, patience: Duration) -> Result<CommandOutput> {
        let mut ended = None;
        eventually_within(patience, "the command ends", || {
            ended = self.child.try_wait()?;
            Ok(ended.is_some())
        })?;
        let status = ended.context("it has ended")?;
        Ok(CommandOutput { status, stdout: self.said("stdout")?, stderr: self.said("stderr")? })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended, and nothing can be done about another failure.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A process that answers on a port.
pub struct Running {
    process: Process,
    pub port: u16,
}

impl Running {
    pub fn get(&self, path: &str) -> Result<Reply> {
        http_client::get(self.port, path)
    }

    pub fn stdout(&self) -> Result<String> {
        self.process.said("stdout")
    }

    pub fn pid(&self) -> u32 {
        self.process.child.id()
    }

    pub fn signal(&self, signal: &str) -> Result<()> {
        self.process.signal(signal)
    }

    pub fn await_end(self) -> Result<CommandOutput> {
        self.process.await_end()
    }

    /// Sends a signal and waits for the end.
    pub fn stop(self, signal: &str) -> Result<CommandOutput> {
        self.signal(signal)?;
        self.await_end()
    }
}

/// The standard library sends only KILL; any shell sends the rest.
fn send_signal(pid: u32, signal: &str) -> Result<()> {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {pid}")]).status()?;
    ensure!(sent.success(), "{signal} could not be sent to {pid}");
    Ok(())
}

/// Asks until the answer is yes.
pub fn eventually(what: &str, is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    eventually_within(PATIENCE, what, is_so)
}

pub fn eventually_within(
    patience: Duration,
    what: &str,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + patience;
    while !is_so()? {
        ensure!(Instant::now() < deadline, "waited for {patience:?} in vain: {what}");
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// A port that nothing listens on: below those of outgoing connections and those of the test
/// servers, and apart for the tests of this process and, most likely, of others.
pub fn free_port() -> u16 {
    const PORT_MIN: u16 = 10_000;
    const PORT_COUNT: u16 = 10_000;
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 1_000).expect("it is below 1,000") * 10;
    loop {
        let offset = start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % PORT_COUNT;
        let port = PORT_MIN + offset;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl CommandOutput {
    /// Checks that the program refused in one sentence that has all of `parts`.
    pub fn refused_with(&self, parts: &[&str]) {
        let CommandOutput { status, stdout, stderr } = self;
        assert_eq!(status.code(), Some(1), "{self:?}");
        assert_eq!(stdout, "", "nothing was done");
        assert_eq!(stderr.lines().count(), 1, "one sentence: {stderr}");
        assert!(stderr.starts_with("urr: "), "{stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{part:?} is not in {stderr}");
        }
    }

    pub fn succeeded(self) -> Result<CommandOutput> {
        ensure!(self.status.success(), "{self:?}");
        Ok(self)
    }
}

/// The rights of a file, as `chmod` takes them.
pub fn rights(path: &Path) -> Result<u32> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}
