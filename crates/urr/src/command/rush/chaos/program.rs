//! `urr up` as a process that is killed, stopped and started again.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};
use urr_rush::ServerUsage;

use crate::config::{self, CommandLineOverrides, Config, LoadMode, LoadOptions};

const READY_WITHIN: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// What a fan loses by a fault is free again after this time: longer than fans take to pay.
const HOLD_TTL_SECONDS: &str = "60";
/// Linux tells programs processor time in hundredths of a second.
const TICK_MS: u64 = 10;

/// `urr up` as a process of ours, killed when it is dropped.
pub struct ChaosProgram {
    pub data: PathBuf,
    pub address: SocketAddr,
    threshold: u32,
    child: Option<Child>,
    usage: ServerUsage,
}

impl ChaosProgram {
    pub fn new(data: PathBuf, threshold: u32) -> Result<ChaosProgram> {
        // The port is free again when the listener is dropped.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        Ok(ChaosProgram { data, address, threshold, child: None, usage: ServerUsage::default() })
    }

    /// Its configuration, with the secrets of its folder.
    pub fn config(&self) -> Result<Config> {
        let overrides = CommandLineOverrides {
            data_dir: Some(self.data.clone()),
            ..CommandLineOverrides::default()
        };
        let options = LoadOptions { mode: LoadMode::Inspect, config_file: None, overrides };
        Ok(config::load(options, [])?)
    }

    /// What it has used so far, in all its processes.
    pub fn usage(&self) -> ServerUsage {
        self.usage
    }

    /// Starts it and waits until it answers.
    pub async fn start(&mut self) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.log_path())?;
        let program = std::env::current_exe().context("our own program")?;
        let child = Command::new(program)
            .args(["up", "--port", &self.address.port().to_string(), "--data"])
            .arg(&self.data)
            .env_clear()
            .env("URR_DEMO_SEED", "false")
            .env("URR_QUEUE_THRESHOLD", self.threshold.to_string())
            .env("URR_SEATS_HOLD_TTL_SECONDS", HOLD_TTL_SECONDS)
            // A killed process keeps its claim on a payment for longer than all calls could take.
            .env("URR_PAYMENTS_TIMEOUT_SECONDS", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("starting `urr up`")?;
        self.child = Some(child);
        self.await_ready().await
    }

    fn log_path(&self) -> PathBuf {
        self.data.with_file_name("log")
    }

    pub async fn await_ready(&mut self) -> Result<()> {
        let ends_at = Instant::now() + READY_WITHIN;
        loop {
            let child = self.child.as_mut().context("it was started")?;
            if let Some(status) = child.try_wait()? {
                let log = fs::read_to_string(self.log_path()).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                bail!("`urr up` ended with {status}: {}", last.join(" | "));
            }
            if is_ready(self.address).await {
                return Ok(());
            }
            ensure!(Instant::now() < ends_at, "`urr up` is not ready after {READY_WITHIN:?}");
            sleep(POLL_INTERVAL).await;
        }
    }

    /// A process that cannot write may end itself; somebody starts it again.
    pub async fn restart_if_ended(&mut self) -> Result<()> {
        let child = self.child.as_mut().context("it was started")?;
        match child.try_wait()? {
            Some(_) => self.start().await,
            None => Ok(()),
        }
    }

    /// The standard library sends only KILL.
    pub fn signal(&self, signal: &str) -> Result<()> {
        let pid = self.child.as_ref().context("it was started")?.id();
        let sent = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status()?;
        ensure!(sent.success(), "{signal} could not be sent");
        Ok(())
    }

    /// As `kill -9` does.
    pub fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            self.note_usage(child.id());
            // It may have ended by itself.
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// Only Linux tells.
    fn note_usage(&mut self, pid: u32) {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
        let memory = read("status").ok().and_then(|text| memory_bytes_max(&text)).unwrap_or(0);
        self.usage.memory_bytes_max = self.usage.memory_bytes_max.max(memory);
        let ticks = read("stat").ok().and_then(|text| processor_ticks(&text)).unwrap_or(0);
        self.usage.processor_ms += ticks * TICK_MS;
    }
}

impl Drop for ChaosProgram {
    fn drop(&mut self) {
        self.end();
    }
}

/// The most memory that a process ever had, of `/proc/PID/status`.
fn memory_bytes_max(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1_024)
}

/// The time in the program and in the kernel for it, of `/proc/PID/stat`.
fn processor_ticks(stat: &str) -> Option<u64> {
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

async fn is_ready(address: SocketAddr) -> bool {
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        let request =
            format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        Ok::<_, std::io::Error>(answer == *b"HTTP/1.1 200")
    };
    tokio::time::timeout(Duration::from_secs(1), ask).await.is_ok_and(|it| it.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_processor_time_are_read_as_linux_writes_them() {
        let status = "Name:\turr\nVmPeak:\t  999 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(memory_bytes_max(status), Some(2 << 20));
        let stat = "77 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0";
        assert_eq!(processor_ticks(stat), Some(200));
        assert_eq!((memory_bytes_max(""), processor_ticks("")), (None, None));
    }
}
