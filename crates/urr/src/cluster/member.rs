//! One server or process of a cluster.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use anyhow::{Result, ensure};
use urr_cluster::servers::ServerProcess;

use super::control::ClusterMemberStatus;
use crate::role::ProcessRole;

/// What its methods do takes as long as the process does: they block.
pub struct ClusterMember {
    pub name: String,
    /// None: a server.
    pub role: Option<ProcessRole>,
    pub port: u16,
    /// Whether it said so when it was last asked.
    is_ready: AtomicBool,
    state: Mutex<MemberState>,
}

struct MemberState {
    process: ServerProcess,
    /// Whether it is started again if it ends.
    is_wanted: bool,
    is_paused: bool,
    /// Whether it can write to no file. It is not started again meanwhile: it could not start.
    is_full: bool,
}

impl ClusterMember {
    pub fn new(name: &str, role: Option<ProcessRole>, process: ServerProcess) -> ClusterMember {
        let port = process.port();
        let state = MemberState { process, is_wanted: false, is_paused: false, is_full: false };
        ClusterMember {
            name: name.to_owned(),
            role,
            port,
            is_ready: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn state(&self) -> MutexGuard<'_, MemberState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Relaxed);
    }

    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Starts it, if it does not run, and waits until it serves.
    pub fn start(&self) -> Result<()> {
        let mut state = self.state();
        state.is_wanted = true;
        state.is_paused = false;
        if state.process.pid().is_ok() { Ok(()) } else { state.process.start_again() }
    }

    /// Lets it finish its work and end.
    pub fn stop(&self) -> Result<()> {
        let mut state = self.state();
        state.is_wanted = false;
        if state.process.pid().is_err() {
            return Ok(());
        }
        if std::mem::take(&mut state.is_paused) {
            state.process.resume()?;
        }
        state.process.stop()
    }

    /// As a crash does.
    pub fn kill(&self) -> Result<()> {
        let mut state = self.state();
        state.is_wanted = false;
        state.is_paused = false;
        if state.process.pid().is_ok() { state.process.kill() } else { Ok(()) }
    }

    pub fn restart(&self) -> Result<()> {
        let mut state = self.state();
        ensure!(state.process.pid().is_ok(), "{} does not run", self.name);
        state.process.stop()?;
        state.process.start_again()
    }

    /// It keeps its connections and answers nothing.
    pub fn pause(&self) -> Result<()> {
        let mut state = self.state();
        state.process.pause()?;
        state.is_paused = true;
        Ok(())
    }

    pub fn resume(&self) -> Result<()> {
        let mut state = self.state();
        state.is_paused = false;
        // It may have been killed meanwhile.
        if state.process.pid().is_ok() { state.process.resume() } else { Ok(()) }
    }

    /// Lets a server write to no file, or ends that: it serves when this returns.
    pub fn set_full(&self, is_full: bool) -> Result<()> {
        let mut state = self.state();
        state.is_full = is_full;
        match (state.process.pid().is_ok(), is_full) {
            (true, _) => state.process.set_full(is_full),
            (false, true) => Ok(()),
            (false, false) => state.process.start_again(),
        }
    }

    /// Starts it again if it ended by itself. Says how it ended.
    pub fn revive(&self) -> Option<(String, Result<()>)> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Somebody starts or stops it at this moment.
            Err(TryLockError::WouldBlock) => return None,
        };
        if !state.is_wanted || state.is_full || state.process.pid().is_ok() {
            return None;
        }
        let ended = state.process.try_wait().ok().flatten();
        let how = ended.map_or_else(|| "did not run".to_owned(), |how| format!("ended: {how}"));
        Some((how, state.process.start_again()))
    }

    pub fn view(&self) -> ClusterMemberStatus {
        let (pid, state) = match self.state.try_lock() {
            Err(_) => (None, "changing"),
            Ok(mut state) => match (state.process.pid().ok(), state.is_paused) {
                (None, _) => (None, "stopped"),
                (pid, true) => (pid, "paused"),
                (pid, false) => (pid, "running"),
            },
        };
        let is_ready = match self.role {
            Some(_) => self.is_ready(),
            None => state == "running",
        };
        let (name, port, state) = (self.name.clone(), self.port, state.to_owned());
        ClusterMemberStatus { name, port, pid, state, is_ready, cpu_ms: None }
    }
}
