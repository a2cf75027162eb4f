//! The data folder: locked by one process at a time, and tested for writing before anything runs.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A start needs at least this much room: the first transactions and their log.
const PROBE_BYTES: usize = 4 * 1024 * 1024;

const LOCK_FILE: &str = "urr.lock";
/// The rights of our files: for their owner only.
const PRIVATE: u32 = 0o600;
/// Hold the addresses at which commands reach the process that has the folder.
const INTERNAL_URL_FILE: &str = "internal-url";
const PUBLIC_URL_FILE: &str = "public-url";
/// Tells that the tables were moved to PostgreSQL, and where.
const MOVED_FILE: &str = "moved-to";

/// The folder, locked by this process until it is dropped or dies.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    /// The lock ends with the file handle, also in a crash.
    _lock: File,
}

/// Why a folder cannot be used; each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error(
        "the data folder {} is in use by another urr process{pid}; stop it, or choose another \
         folder with --data", folder.display()
    )]
    InUse { folder: PathBuf, pid: String },
    #[error(
        "the data folder {} cannot be written to: {reason}; change its rights, or choose another \
         folder with --data", folder.display()
    )]
    NotWritable { folder: PathBuf, reason: String },
    #[error(
        "the disk of the data folder {} is full; make room, or choose another folder with --data",
        folder.display()
    )]
    DiskFull { folder: PathBuf },
}

impl DataFolder {
    /// Creates the folder if it is missing, and locks it for this process.
    pub fn lock(path: &Path) -> Result<DataFolder, FolderError> {
        let explain = |error: io::Error| explain(path, &error);
        create_private(path).map_err(explain)?;
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(PRIVATE)
            .open(path.join(LOCK_FILE))
            .map_err(explain)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path, lock)),
            Err(TryLockError::Error(error)) => return Err(explain(error)),
        }
        remove_urls(path);
        lock.set_len(0).map_err(explain)?;
        lock.write_all(std::process::id().to_string().as_bytes()).map_err(explain)?;
        probe(path).map_err(explain)?;
        warn_if_shared(path);
        Ok(DataFolder { path: path.to_owned(), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores the addresses of our listeners, for commands on this machine.
    pub fn write_urls(&self, internal: &str, public: &str) -> io::Result<()> {
        write_private(&self.path.join(INTERNAL_URL_FILE), internal)?;
        write_private(&self.path.join(PUBLIC_URL_FILE), public)
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        remove_urls(&self.path);
    }
}

/// Also removes what a killed process left.
fn remove_urls(path: &Path) {
    for file in [INTERNAL_URL_FILE, PUBLIC_URL_FILE] {
        if let Err(error) = fs::remove_file(path.join(file))
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, file, "the stored address of a listener could not be removed");
        }
    }
}

/// Writes a new file that only its owner may read. The folder is locked, so nobody else writes it.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
    file.write_all(text.as_bytes())
}

/// Notes where the tables of this folder are from now on: nobody sells from the files any more.
pub fn mark_moved(folder: &DataFolder, place: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(PRIVATE);
    let mut file = options.open(folder.path.join(MOVED_FILE))?;
    file.write_all(place.as_bytes())?;
    file.sync_all()?;
    File::open(&folder.path)?.sync_all()
}

/// Where the tables of a folder were moved to, if they were.
pub fn moved_to(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path.join(MOVED_FILE)) {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a private file in place of another, as a whole.
pub fn replace_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let new = path.with_extension("new");
    let written = match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => write_private(&new, text).and_then(|()| fs::rename(&new, path)),
    };
    anyhow::Context::with_context(written, || format!("{}", path.display()))
}

/// The internal listener of the process that has the folder, if there is one.
pub fn internal_url(path: &Path) -> io::Result<Option<String>> {
    stored_url(path, INTERNAL_URL_FILE)
}

/// The public listener of the process that has the folder, if there is one.
pub fn public_url(path: &Path) -> io::Result<Option<String>> {
    stored_url(path, PUBLIC_URL_FILE)
}

/// An address that a killed process left is not used: another program may listen there now, and
/// would receive our credential.
fn stored_url(path: &Path, file: &str) -> io::Result<Option<String>> {
    // The lock is tried only if there is an address: a start at this moment could fail because of it.
    let Some(url) = some_file(fs::read_to_string(path.join(file)))? else {
        return Ok(None);
    };
    let Some(lock) = some_file(File::open(path.join(LOCK_FILE)))? else {
        return Ok(None);
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(url)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn some_file<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Readable by its owner only: it holds secrets and personal data.
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Warns only: the rights of a folder that existed before are its owner's choice.
fn warn_if_shared(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        let folder = path.display();
        tracing::warn!(%folder, "other users of this machine can read the data folder; chmod 700 it");
    }
}

/// Writes and syncs a file, so that a full or broken disk is reported now and not during a sale.
fn probe(path: &Path) -> io::Result<()> {
    let file = path.join("urr.probe");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(PRIVATE);
    let written = options.open(&file).and_then(|mut probe| {
        probe.write_all(&vec![0; PROBE_BYTES])?;
        probe.sync_all()
    });
    // Half a probe file must not stay behind on a full disk.
    let removed = fs::remove_file(&file);
    written.and(removed)
}

fn in_use(path: &Path, mut lock: File) -> FolderError {
    let mut text = String::new();
    let read = lock.rewind().and_then(|()| lock.read_to_string(&mut text));
    let pid = match read {
        Ok(_) if !text.is_empty() => format!(" (process {text})"),
        _ => String::new(),
    };
    FolderError::InUse { folder: path.to_owned(), pid }
}

fn explain(path: &Path, error: &io::Error) -> FolderError {
    let folder = path.to_owned();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FolderError::DiskFull { folder },
        _ => FolderError::NotWritable { folder, reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_process_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("new/data");
        let locked = DataFolder::lock(&path).unwrap();
        let error = DataFolder::lock(&path).unwrap_err();
        assert!(matches!(error, FolderError::InUse { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&std::process::id().to_string()), "{text}");
        drop(locked);
        DataFolder::lock(&path).unwrap();
    }

    #[test]
    fn the_internal_address_is_known_as_long_as_its_process_has_the_folder() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        assert_eq!(internal_url(&path).unwrap(), None, "there is not even a folder");
        let folder = DataFolder::lock(&path).unwrap();
        assert_eq!(internal_url(&path).unwrap(), None, "it does not listen yet");
        folder.write_urls("http://127.0.0.1:4000", "http://127.0.0.1:3001").unwrap();
        assert_eq!(internal_url(&path).unwrap().as_deref(), Some("http://127.0.0.1:4000"));
        assert_eq!(public_url(&path).unwrap().as_deref(), Some("http://127.0.0.1:3001"));
        drop(folder);
        assert_eq!(internal_url(&path).unwrap(), None);
        // As a killed process leaves it.
        fs::write(path.join(INTERNAL_URL_FILE), "http://127.0.0.1:4000").unwrap();
        assert_eq!(internal_url(&path).unwrap(), None);
        let folder = DataFolder::lock(&path).unwrap();
        assert_eq!(internal_url(&path).unwrap(), None, "the next one begins without it");
        drop(folder);
    }

    #[test]
    fn a_new_folder_is_private_and_holds_no_probe() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = DataFolder::lock(&parent.path().join("data")).unwrap();
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(!folder.path().join("urr.probe").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told_with_the_reason() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "not a folder").unwrap();
        let error = DataFolder::lock(&file).unwrap_err();
        assert!(matches!(error, FolderError::NotWritable { .. }), "{error}");
    }

    #[test]
    fn a_full_disk_is_told_in_a_sentence() {
        let error = io::Error::from(ErrorKind::StorageFull);
        let text = explain(Path::new("/data"), &error).to_string();
        assert!(text.starts_with("the disk of the data folder /data is full"), "{text}");
    }
}
