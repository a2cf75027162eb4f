//! What was read from files, read again when they change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::TlsError;

/// How often files are looked at, at most. A connection that comes sooner uses what was read.
pub(crate) const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Tells a replaced file from the one that was read.
type FileMark = Option<(u64, u64, i64, i64)>;

pub(crate) struct Reloaded<T> {
    paths: Vec<PathBuf>,
    interval: Duration,
    read: Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>,
    state: Mutex<ReloadState<T>>,
}

struct ReloadState<T> {
    current: Arc<T>,
    /// Of the files that were read last, usable or not.
    marks: Vec<FileMark>,
    looked: Instant,
}

impl<T> Reloaded<T> {
    pub fn read(
        paths: Vec<PathBuf>,
        interval: Duration,
        read: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Reloaded<T>, TlsError> {
        // Looked at before they are read: a change in between is found the next time.
        let marks = marks(&paths);
        let current = Arc::new(read()?);
        let state = Mutex::new(ReloadState { current, marks, looked: Instant::now() });
        Ok(Reloaded { paths, interval, read: Box::new(read), state })
    }

    /// What the files hold. Files that cannot be used, as while they are being replaced one after the
    /// other, leave the last good content in force.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= self.interval {
            state.looked = Instant::now();
            let marks = marks(&self.paths);
            if marks != state.marks {
                match (self.read)() {
                    Ok(read) => {
                        tracing::info!(files = ?self.paths, "certificates were read again");
                        state.current = Arc::new(read);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a new certificate cannot be used; the old one stays");
                    }
                }
                state.marks = marks;
            }
        }
        Arc::clone(&state.current)
    }
}

fn marks(paths: &[PathBuf]) -> Vec<FileMark> {
    let mark = |path: &PathBuf| {
        let found = fs::metadata(path).ok()?;
        Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
    };
    paths.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_in(folder: &std::path::Path) -> Reloaded<u32> {
        let path = folder.join("number");
        let read = move || {
            let text = fs::read_to_string(&path).unwrap();
            let reason = || TlsError { path: path.clone(), reason: text.clone() };
            text.parse().map_err(|_| reason())
        };
        Reloaded::read(vec![folder.join("number")], Duration::ZERO, read).unwrap()
    }

    #[test]
    fn a_replaced_file_is_read_and_an_unusable_one_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| {
            fs::write(folder.path().join("new"), text).unwrap();
            fs::rename(folder.path().join("new"), folder.path().join("number")).unwrap();
        };
        write("1");
        let number = number_in(folder.path());
        assert_eq!(*number.current(), 1);
        write("22");
        assert_eq!(*number.current(), 22);
        write("none");
        assert_eq!(*number.current(), 22);
        write("333");
        assert_eq!(*number.current(), 333);
    }

    #[test]
    fn files_are_not_looked_at_more_often_than_the_interval() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("number"), "1").unwrap();
        let number = Reloaded { interval: Duration::from_hours(1), ..number_in(folder.path()) };
        fs::write(folder.path().join("number"), "22").unwrap();
        assert_eq!(*number.current(), 1);
    }
}
