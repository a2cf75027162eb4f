//! Backups of the data folder: all databases as they were at one moment, checked, with a manifest of
//! their hashes.
//!
//! A backup is a folder `urr-<time>`. It gets this name when it is complete; until then it ends in
//! `.partial`, and the next backup removes what a crash left.

pub mod manifest;
pub mod restore;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use urr_kernel::{Clock, Timestamp};
use urr_storage::{SqliteCut, check_sqlite};

use self::manifest::{BackupFile, BackupManifest, MANIFEST_FILE, fingerprint};
use crate::config::{Config, FIRST_START_MARK, secrets_path};
use crate::engines;
use crate::role::ProcessRole;

const PREFIX: &str = "urr-";
const PARTIAL: &str = ".partial";
const LOCK_FILE: &str = ".urr-backup.lock";
/// Short of it, two backups of one second have one name.
const TIME_FORMAT: &str = "%Y%m%dT%H%M%S%.3fZ";

/// What was made.
#[derive(Debug)]
pub struct FinishedBackup {
    pub folder: PathBuf,
    pub manifest: BackupManifest,
    /// Older backups that were removed.
    pub removed: Vec<PathBuf>,
}

/// Makes a backup in `place`, and then removes all but the newest `keep` ones.
pub fn back_up(
    config: &Config,
    place: &Path,
    keep: Option<usize>,
    clock: &Clock,
) -> Result<FinishedBackup> {
    let databases = databases(config)?;
    create_private(place)
        .with_context(|| format!("the folder {} cannot be made", place.display()))?;
    let _lock = lock(place)?;
    remove_partial(place)?;
    let made_at = clock.now();
    let name = format!("{PREFIX}{}", made_at.strftime(TIME_FORMAT));
    let partial = place.join(format!("{name}{PARTIAL}"));
    create_private(&partial).with_context(|| partial.display().to_string())?;
    let manifest = fill(config, &databases, &partial, made_at)?;
    let folder = place.join(name);
    fs::rename(&partial, &folder).with_context(|| folder.display().to_string())?;
    sync_folder(place)?;
    let removed = match keep {
        Some(keep) => remove_old(place, keep)?,
        None => Vec::new(),
    };
    Ok(FinishedBackup { folder, manifest, removed })
}

/// The files of an embedded installation. On servers there is nothing here to copy.
fn databases(config: &Config) -> Result<Vec<PathBuf>> {
    let folder = &config.data.dir;
    if let Some(role) = ProcessRole::ALL.into_iter().find(|r| engines::is_on_postgres(config, *r)) {
        bail!(
            "the tables of the {role} service are on PostgreSQL; back it up with its own tools, as \
             OPERATIONS says"
        );
    }
    let files = ProcessRole::SERVICES.into_iter().filter_map(ProcessRole::schema);
    let mut paths: Vec<PathBuf> =
        files.map(|schema| engines::sqlite_path(folder, &schema)).collect();
    if config.bus.kafka_bootstrap_servers.is_empty() {
        paths.push(engines::bus_path(folder));
    }
    if engines::has_rooms_in_process(config) {
        paths.push(engines::sqlite_path(folder, &urr_room::JOURNAL));
    }
    if let Some(missing) = paths.iter().find(|path| !path.is_file()) {
        bail!(
            "{} does not exist; start `urr up` on this folder first, or choose another one with \
             --data",
            missing.display()
        );
    }
    Ok(paths)
}

fn fill(
    config: &Config,
    databases: &[PathBuf],
    into: &Path,
    made_at: Timestamp,
) -> Result<BackupManifest> {
    let cut = SqliteCut::take(databases).context("the databases")?;
    let pause = cut.pause;
    cut.copy_into(into).context("the copies")?;
    drop(cut);
    let mut files = Vec::new();
    for path in databases {
        let name =
            path.file_name().and_then(|name| name.to_str()).context("our names are UTF-8")?;
        let copy = into.join(name);
        check_sqlite(&copy).with_context(|| format!("the copy of {name} is damaged"))?;
        fs::set_permissions(&copy, PermissionsExt::from_mode(0o600))?;
        File::open(&copy)?.sync_all()?;
        files.push(BackupFile::read(into, name)?);
    }
    let mark = config.data.dir.join(FIRST_START_MARK);
    if mark.exists() {
        fs::copy(&mark, into.join(FIRST_START_MARK))?;
        files.push(BackupFile::read(into, FIRST_START_MARK)?);
    }
    let secrets = secrets_path(&config.data.dir);
    let manifest = BackupManifest {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        made_at,
        pause_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
        secrets_fingerprint: if secrets.exists() { Some(fingerprint(&secrets)?) } else { None },
        files,
    };
    manifest.write(into)?;
    sync_folder(into)?;
    Ok(manifest)
}

fn lock(place: &Path) -> Result<File> {
    let path = place.join(LOCK_FILE);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(&path).with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("another backup into {} is under way", place.display())
        }
        Err(TryLockError::Error(error)) => Err(error).context("the lock of the backups"),
    }
}

/// The complete backups, the newest last: their names are times.
pub fn list(place: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).with_context(|| place.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_ours = name.starts_with(PREFIX) && !name.ends_with(PARTIAL);
        if is_ours && path.join(MANIFEST_FILE).is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn remove_old(place: &Path, keep: usize) -> Result<Vec<PathBuf>> {
    ensure!(keep > 0, "the backup that was just made is kept");
    let mut old = list(place)?;
    old.truncate(old.len().saturating_sub(keep));
    for path in &old {
        fs::remove_dir_all(path).with_context(|| path.display().to_string())?;
    }
    Ok(old)
}

/// The lock is ours, so nobody is making them.
fn remove_partial(place: &Path) -> Result<()> {
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(PREFIX) && name.ends_with(PARTIAL) {
            fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn sync_folder(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).context("the folder on disk")
}
