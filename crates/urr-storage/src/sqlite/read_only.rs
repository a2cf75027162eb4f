//! A SQLite file that is only looked at: no thread writes, nothing is created, nothing is kept in
//! memory that grows with the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::OpenFlags;
use urr_kernel::percent;

use super::{ReadGate, SqliteConnection, run_reader};
use crate::db::SqliteOptions;
use crate::engine::{EngineShared, EngineThreads, QueueLimits, StorageEngine, spawn};
use crate::{DbResult, StorageError};

/// Starts the readers of a file. Whoever writes is told that the storage is closed.
pub(crate) fn start_read_only(
    path: &Path,
    options: &SqliteOptions,
    shared: &Arc<EngineShared>,
) -> DbResult<StorageEngine> {
    let limits = QueueLimits { queue_max: options.queue_max, batch_max: None };
    StorageEngine::start(limits, |_writes, reads| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut threads = EngineThreads::default();
        for _ in 0..options.readers {
            let reader = SqliteConnection::open_read_only(path, options.statement_timeout)?;
            let (queue, gate, shared) = (reads.clone(), ReadGate::default(), Arc::clone(shared));
            let body = move || run_reader(&reader, &queue, &gate, &shared);
            threads.readers.push(spawn(&format!("r {name}"), body));
        }
        Ok(threads)
    })
}

impl SqliteConnection {
    /// A connection that cannot write. Sorted rows and automatic indexes are in temporary files, not
    /// in memory.
    fn open_read_only(path: &Path, limit: Duration) -> DbResult<SqliteConnection> {
        let connection = match has_log(path) {
            true => Self::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, limit),
            false => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Self::open(&immutable_uri(path)?, flags, limit)
            }
        }?;
        connection.run_plain("pragma temp_store = file")?;
        // The first look into the file: if it has a log, its index may have to be made, which a
        // folder without the right to write does not allow.
        let look = connection.query("select 1 as one from sqlite_schema", &[], &mut |_| Ok(()));
        look.map_err(|error| explain(path, error))?;
        Ok(connection)
    }
}

/// A file whose log exists is open in some process, or was when that died. Without a log nobody has
/// the file open.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    Path::new(&log).exists()
}

/// A file that nobody has open is read without locks, for which files would be made beside it.
fn immutable_uri(path: &Path) -> DbResult<PathBuf> {
    let Some(text) = path.to_str() else {
        let reason = format!("the path {} is not UTF-8", path.display());
        return Err(StorageError::Unavailable(reason));
    };
    Ok(format!("file:{}?immutable=1", percent::encode(text)).into())
}

fn explain(path: &Path, error: StorageError) -> StorageError {
    if !has_log(path) {
        return error;
    }
    StorageError::Unavailable(format!(
        "{} has a log that was not folded into it, because the process that had it open was killed; \
         the log cannot be read where nothing can be written ({error}). Look at a copy in a folder \
         that can be written to",
        path.display()
    ))
}
