//! Temporary folders, gathered in one folder per test process: `<tmp>/urr-test-<pid>`.
//!
//! Statics are never dropped in Rust, so the folders of shared servers outlive the process. The
//! next test process removes them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

const PREFIX: &str = "urr-test-";

/// Where a server has its data and its log.
pub enum ServerFolder {
    /// Removed when it is dropped.
    Temporary(TempDir),
    /// It stays, with what an earlier start left in it.
    Kept(PathBuf),
}

impl ServerFolder {
    pub(super) fn path(&self) -> &Path {
        match self {
            ServerFolder::Temporary(folder) => folder.path(),
            ServerFolder::Kept(folder) => folder,
        }
    }
}

/// A new folder for one server, removed when dropped.
pub(super) fn create(server: &str) -> Result<ServerFolder> {
    let folder = tempfile::Builder::new().prefix(&format!("{server}-")).tempdir_in(of_process()?)?;
    Ok(ServerFolder::Temporary(folder))
}

/// Writes a file that only its owner can read.
pub(super) fn write_private(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(())
}

/// The folder of this process; the first call removes those of processes that are gone.
fn of_process() -> Result<&'static Path> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOLDER.get_or_init(|| create_of_process().map_err(|error| format!("{error:#}"))) {
        Ok(folder) => Ok(folder),
        Err(error) => bail!("{error}"),
    }
}

fn create_of_process() -> Result<PathBuf> {
    let parent = std::env::temp_dir();
    let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
    remove_stale(&parent)?;
    if folder.exists() {
        // An earlier process had our id, so `remove_stale` took its folder for ours.
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
    // PostgreSQL runs as another user, who must be able to pass through, whatever our umask is.
    fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// Removes what test processes that no longer live have left behind.
fn remove_stale(parent: &Path) -> Result<()> {
    for entry in fs::read_dir(parent).with_context(|| format!("reading {}", parent.display()))? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(pid) = pid.and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if !Path::new(&format!("/proc/{pid}")).exists() {
            // Another process may be sweeping too, and another user's folder is not ours to remove.
            fs::remove_dir_all(parent.join(name)).ok();
        }
    }
    Ok(())
}
