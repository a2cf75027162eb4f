//! One server process: started, awaited, stopped, crashed, and never left behind.
//!
//! `setpriv --pdeathsig` makes the kernel end the server when the thread that started it ends. A
//! thread of the test harness ends with its test, so servers are started from one thread that lasts
//! as long as the process. This holds when the test process is killed with -9, and for shared
//! servers, which nothing drops.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::folder::ServerFolder;
use super::{Server, port, program};
use anyhow::{Context, Result, bail};

/// A Java server on a busy machine of two cores takes some seconds.
const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const PORT_ATTEMPTS_MAX: u32 = 5;

/// What every one of the servers logs when its port is not free.
const PORT_TAKEN: &str = "Address already in use";

/// How a server is run and how it shows that it serves.
pub struct Recipe {
    pub(super) name: String,
    /// Its data, its log and its current folder.
    pub(super) folder: ServerFolder,
    pub(super) port: u16,
    /// Program and arguments.
    pub(super) command: Vec<OsString>,
    /// Whether it gets no variable of our environment.
    pub(super) has_no_environment: bool,
    /// The user to run as, if it may not be ours.
    pub(super) user: Option<&'static str>,
    /// What it logs once it serves. Only our own process writes that log, so this cannot be
    /// mistaken for another server that was faster to take the port.
    pub(super) ready_line: &'static str,
    /// Asked after the line was seen.
    pub(super) answers: fn(port: u16) -> bool,
    /// Asks it to finish its work and end.
    pub(super) stop_signal: &'static str,
    /// Ends it at once; sent when it is dropped and by the kernel when the test process is gone.
    pub(super) end_signal: &'static str,
}

impl Recipe {
    /// A server that runs as we do, serves when its port accepts, and stops by TERM.
    pub(super) fn new(
        name: impl Into<String>,
        folder: ServerFolder,
        port: u16,
        command: Vec<OsString>,
        ready_line: &'static str,
    ) -> Recipe {
        let (stop_signal, end_signal) = ("TERM", "KILL");
        let (user, answers) = (None, port::accepts);
        Recipe {
            name: name.into(),
            folder,
            port,
            command,
            has_no_environment: false,
            user,
            ready_line,
            answers,
            stop_signal,
            end_signal,
        }
    }
}

/// A server process of ours, running or not.
pub struct ServerProcess {
    recipe: Recipe,
    child: Option<Child>,
    /// Where in the log its last start begins.
    log_start: usize,
}

impl ServerProcess {
    /// One that does not run yet.
    pub fn new(recipe: Recipe) -> ServerProcess {
        ServerProcess { recipe, child: None, log_start: 0 }
    }

    /// Starts a server on a free port, on another one if that is taken meanwhile.
    pub(super) fn start(recipe: impl Fn(u16) -> Result<Recipe>) -> Result<ServerProcess> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut process = ServerProcess::new(recipe(port::free()?)?);
            let Err(error) = process.start_again() else {
                return Ok(process);
            };
            if !process.log().contains(PORT_TAKEN) || attempts == PORT_ATTEMPTS_MAX {
                return Err(error);
            }
        }
    }

    pub fn port(&self) -> u16 {
        self.recipe.port
    }

    pub fn name(&self) -> &str {
        &self.recipe.name
    }

    pub(super) fn folder(&self) -> &Path {
        self.recipe.folder.path()
    }

    /// Starts it on the same port and data, and waits until it serves.
    pub fn start_again(&mut self) -> Result<()> {
        let name = self.recipe.name.clone();
        if self.pid().is_ok() {
            bail!("{name} already runs");
        }
        let log = File::options().create(true).append(true).open(self.log_path())?;
        self.log_start = usize::try_from(log.metadata()?.len())?;
        let mut command = Command::new(program::find("util-linux", "setpriv")?);
        command.args(["--pdeathsig", self.recipe.end_signal]);
        if let Some(user) = self.recipe.user {
            command.args(["--reuid", user, "--regid", user, "--init-groups"]);
        }
        command
            .arg("--")
            .args(&self.recipe.command)
            .current_dir(self.recipe.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Its own group: Ctrl-C is for the test process, which takes the servers with it.
            .process_group(0);
        if self.recipe.has_no_environment {
            command.env_clear();
        }
        let child = spawn(command).with_context(|| format!("starting {name}"))?;
        self.child = Some(child);
        self.await_ready().inspect_err(|_| self.end())
    }

    /// Lets it finish its work and end.
    pub fn stop(&mut self) -> Result<()> {
        signal(self.pid()?, self.recipe.stop_signal)?;
        if self.await_exit(STOP_MAX)?.is_none() {
            self.end();
            bail!("{} did not stop within {STOP_MAX:?}", self.recipe.name);
        }
        self.child = None;
        Ok(())
    }

    /// Kills it and the processes it started, at once, as a crash would. PostgreSQL's would else
    /// run on until they notice, and finish what they were at.
    pub fn kill(&mut self) -> Result<()> {
        // While it is paused it can neither start more processes nor let the ids of ended ones go.
        self.pause()?;
        let pid = self.pid()?;
        let helpers = children_of(pid)?;
        for helper in &helpers {
            signal(*helper, "KILL")?;
        }
        signal(pid, "KILL")?;
        self.await_exit(STOP_MAX)?.context("a killed process ends")?;
        self.child = None;
        for helper in helpers {
            poll(STOP_MAX, || Ok(matches!(state_of(helper), None | Some('Z')).then_some(())))?
                .context("a killed process ends")?;
        }
        Ok(())
    }

    /// Freezes it: connections stay open and connect, but nothing answers.
    pub fn pause(&mut self) -> Result<()> {
        let pid = self.pid()?;
        signal(pid, "STOP")?;
        poll(STOP_MAX, || Ok(matches!(state_of(pid), Some('T' | 'Z')).then_some(())))?
            .with_context(|| format!("{} did not pause", self.recipe.name))
    }

    pub fn resume(&mut self) -> Result<()> {
        signal(self.pid()?, "CONT")
    }

    /// Lets it and the processes it started write to no file, as a full disk does, or ends that.
    pub fn set_full(&mut self, is_full: bool) -> Result<()> {
        // The second limit, above which nobody gets, stays.
        let limit = if is_full { "--fsize=0:" } else { "--fsize=unlimited:" };
        let pid = self.pid()?;
        let setpriv = program::find("util-linux", "setpriv")?;
        let set = |pid: u32| {
            // Only the user of a process may limit it, and root not always.
            let mut command = Command::new(&setpriv);
            if let Some(user) = self.recipe.user {
                command.args(["--reuid", user, "--regid", user, "--init-groups"]);
            }
            let pid = pid.to_string();
            program::run(command.args(["--", "prlimit", limit, "--pid", &pid]))
        };
        // What it starts from now on has its limit; what has ended meanwhile needs none.
        set(pid)?;
        children_of(pid)?.into_iter().for_each(|helper| drop(set(helper)));
        Ok(())
    }

    /// Its id, to send it a signal. Asked for each time: the id of a process that has ended and
    /// been collected may be another's.
    pub fn pid(&mut self) -> Result<u32> {
        let ended = self.try_wait()?;
        match &self.child {
            Some(child) if ended.is_none() => Ok(child.id()),
            _ => bail!("{} does not run", self.recipe.name),
        }
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.log_path()).unwrap_or_default();
        String::from_utf8_lossy(bytes.get(self.log_start..).unwrap_or_default()).into_owned()
    }

    pub fn log_path(&self) -> PathBuf {
        self.recipe.folder.path().join("log")
    }

    fn await_ready(&mut self) -> Result<()> {
        let name = self.recipe.name.clone();
        let ready = poll(START_MAX, || {
            // In this order, so that the log is whole once the process has ended.
            let ended = self.try_wait()?;
            let log = self.log();
            if let Some(status) = ended {
                bail!("{name} ended while starting, with {status}:\n{}", last_lines(&log));
            }
            // ElasticMQ lives on without its port.
            if log.contains(PORT_TAKEN) {
                bail!("{name}'s port {} was taken:\n{}", self.recipe.port, last_lines(&log));
            }
            let serves =
                log.contains(self.recipe.ready_line) && (self.recipe.answers)(self.recipe.port);
            Ok(serves.then_some(()))
        })?;
        ready.with_context(|| {
            let log = self.log();
            format!("{name} was not ready within {START_MAX:?}:\n{}", last_lines(&log))
        })
    }

    fn await_exit(&mut self, timeout: Duration) -> Result<Option<ExitStatus>> {
        poll(timeout, || Ok(self.try_wait()?))
    }

    /// How it ended, if it has ended by itself.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.as_mut().map_or(Ok(None), Child::try_wait)
    }

    /// Ends it at once, whatever state it is in. Nothing can be done about a failure here.
    pub fn end(&mut self) {
        let Ok(pid) = self.pid() else { return };
        signal(pid, self.recipe.end_signal).ok();
        let ended = matches!(self.await_exit(STOP_MAX), Ok(Some(_)));
        if let Some(mut child) = self.child.take()
            && !ended
        {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// A private server of kind `K`, or one that the environment named.
pub struct TestServer<K> {
    server: Server,
    /// None if the environment named it.
    process: Option<ServerProcess>,
    address: String,
    kind: PhantomData<K>,
}

impl<K> TestServer<K> {
    /// The server that the environment names; otherwise one of ours, and its address by its port.
    pub(super) fn find_or_start(
        server: Server,
        recipe: impl Fn(u16) -> Result<Recipe>,
        address: impl FnOnce(u16) -> String,
    ) -> Result<TestServer<K>> {
        match server.external() {
            Some(address) => Ok(TestServer { server, process: None, address, kind: PhantomData }),
            None => TestServer::start_own(server, recipe, address),
        }
    }

    /// One of ours, whatever the environment names.
    pub(super) fn start_own(
        server: Server,
        recipe: impl Fn(u16) -> Result<Recipe>,
        address: impl FnOnce(u16) -> String,
    ) -> Result<TestServer<K>> {
        let process = ServerProcess::start(recipe)?;
        let address = address(process.port());
        Ok(TestServer { server, process: Some(process), address, kind: PhantomData })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The folder of its data, if it is ours.
    pub(super) fn folder(&mut self) -> Result<PathBuf> {
        Ok(self.ours()?.folder().to_owned())
    }

    /// The process, if it is ours to stop and start.
    fn ours(&mut self) -> Result<&mut ServerProcess> {
        let variable = self.server.variable();
        let process = self.process.as_mut();
        process.with_context(|| format!("this server is not ours to restart: {variable} named it"))
    }

    /// Stops it in order: its data are written out.
    pub fn stop(&mut self) -> Result<()> {
        self.ours()?.stop()
    }

    /// Stops it in order and starts it on the same port and data.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Crashes it: every process of it is killed at once. What the file system already has survives.
    pub fn kill(&mut self) -> Result<()> {
        self.ours()?.kill()
    }

    /// Starts it after `stop` or `kill`, on the same port and data.
    pub fn start_again(&mut self) -> Result<()> {
        self.ours()?.start_again()
    }

    /// Freezes it: clients can connect, but nothing answers until `resume`.
    pub fn pause(&mut self) -> Result<()> {
        self.ours()?.pause()
    }

    pub fn resume(&mut self) -> Result<()> {
        self.ours()?.resume()
    }
}

/// Starts a process from the thread that lasts as long as we do.
fn spawn(command: Command) -> io::Result<Child> {
    type Request = (Command, Sender<io::Result<Child>>);
    static SPAWNER: LazyLock<Mutex<Sender<Request>>> = LazyLock::new(|| {
        let (requests, inbox) = mpsc::channel::<Request>();
        thread::spawn(move || {
            // Ends only if the sender is dropped, and it is static.
            for (mut command, reply) in inbox {
                reply.send(command.spawn()).expect("the caller waits for the reply");
            }
        });
        Mutex::new(requests)
    });
    let (reply, child) = mpsc::channel();
    let spawner = SPAWNER.lock().expect("sending does not panic");
    spawner.send((command, reply)).expect("the spawner never ends");
    drop(spawner);
    child.recv().expect("the spawner replies")
}

/// The standard library sends only KILL; any shell sends the rest.
fn signal(pid: u32, name: &str) -> Result<()> {
    program::run(Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]))?;
    Ok(())
}

/// The direct children of a process. Not every kernel has `/proc/<pid>/task/<pid>/children`.
fn children_of(parent: u32) -> Result<Vec<u32>> {
    let is_child = |pid: &u32| stat_of(*pid).is_some_and(|stat| stat.parent == parent);
    Ok(process_ids()?.into_iter().filter(is_child).collect())
}

fn process_ids() -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        ids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(ids)
}

/// The letter by which the kernel tells the state of a process; none if it is gone. A dead process
/// whose new parent does not collect it stays `Z`.
fn state_of(pid: u32) -> Option<char> {
    stat_of(pid).map(|stat| stat.state)
}

/// When a process started, in the kernel's own count; none if it is gone. A process id with another
/// start is another process.
pub fn start_time_of(pid: u32) -> Option<u64> {
    stat_of(pid).filter(|stat| stat.state != 'Z').map(|stat| stat.start_time)
}

/// The processor time so far of every process on this machine, with that of those it started.
pub fn cpu_times() -> Result<BTreeMap<u32, Duration>> {
    /// The kernel counts in hundredths of a second.
    const TICK: Duration = Duration::from_millis(10);
    let mut times = BTreeMap::<u32, Duration>::new();
    for pid in process_ids()? {
        let Some(stat) = stat_of(pid) else { continue };
        let time = TICK * u32::try_from(stat.ticks)?;
        *times.entry(pid).or_default() += time;
        *times.entry(stat.parent).or_default() += time;
    }
    Ok(times)
}

/// Ends a process that an earlier program started, if it is still the same one.
pub fn end_process(pid: u32, start_time: u64) -> Result<()> {
    let is_there = || start_time_of(pid) == Some(start_time);
    for (name, patience) in [("TERM", STOP_MAX), ("KILL", STOP_MAX)] {
        if !is_there() {
            return Ok(());
        }
        signal(pid, name)?;
        poll(patience, || Ok((!is_there()).then_some(())))?;
    }
    Ok(())
}

/// What the kernel tells of a process.
struct ProcessStat {
    state: char,
    parent: u32,
    start_time: u64,
    /// Of the processor, with those of children that have ended.
    ticks: u64,
}

/// The name before the fields is in brackets and may contain any character.
fn stat_of(pid: u32) -> Option<ProcessStat> {
    /// The 22nd field of all, of which the first two are before the bracket's end.
    const START_TIME: usize = 19;
    /// User and system, of itself and of its children.
    const TICKS: std::ops::Range<usize> = 11..15;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    Some(ProcessStat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(START_TIME)?.parse().ok()?,
        ticks: fields.get(TICKS)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum(),
    })
}

/// Asks until there is an answer; none if there is none in time.
pub(super) fn poll<T>(
    timeout: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let deadline = Instant::now() + timeout;
    loop {
        let answer = ask()?;
        if answer.is_some() || Instant::now() >= deadline {
            return Ok(answer);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn last_lines(log: &str) -> String {
    const LINES_MAX: usize = 20;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::cell::OnceCell;
    use std::net::{Ipv4Addr, TcpListener};

    use super::super::{available, folder, postgres, redis, sqs};
    use super::*;

    /// Takes the port that the server was given just before it starts.
    fn check(server: Server, recipe: fn(u16) -> Result<Recipe>) -> Result<()> {
        if !available(server)? || server.external().is_some() {
            return Ok(());
        }
        let rival = OnceCell::new();
        let process = ServerProcess::start(|port| {
            rival.get_or_init(|| TcpListener::bind((Ipv4Addr::LOCALHOST, port)));
            recipe(port)
        })?;
        let rival = rival.into_inner().context("the recipe was asked for")??;
        assert_ne!(process.port(), rival.local_addr()?.port());
        Ok(())
    }

    #[test]
    fn a_server_that_loses_its_port_takes_another() -> Result<()> {
        check(Server::Redis, |port| redis::recipe(folder::create("redis")?, port, &[]))?;
        check(Server::Postgres, |port| {
            postgres::recipe(folder::create("postgres")?, port, "secret", None)
        })?;
        // This one logs the loss but does not end.
        check(Server::Sqs, |port| sqs::recipe(folder::create("sqs")?, port))
    }
}
