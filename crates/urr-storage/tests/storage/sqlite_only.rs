//! What only SQLite can do to us: a log that readers keep from starting anew.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use urr_kernel::Uuid;
use urr_storage::{StorageError, check_sqlite, params};

use crate::fixture::{Form, run};

const WRITES: u128 = 260;
const PAYLOAD_BYTES: usize = 512 * 1024;

#[test]
fn the_log_does_not_grow_without_end_under_steady_reading() {
    run(Form::Sqlite, |place| async move {
        let db = place.open();
        let is_over = Arc::new(AtomicBool::new(false));
        // They overlap, so that there is always one: SQLite alone would never empty the log.
        let readers: Vec<_> = (0..4)
            .map(|_| {
                let (db, is_over) = (db.clone(), Arc::clone(&is_over));
                tokio::spawn(async move {
                    while !is_over.load(Ordering::SeqCst) {
                        db.read(|tx| {
                            // The first statement takes the snapshot that keeps the log.
                            let count = "select count(*) as n from samples";
                            let n = tx.query_one(count, &[], |row| row.get::<i64>("n"))?;
                            std::thread::sleep(Duration::from_millis(20));
                            Ok(n)
                        })
                        .await
                        .unwrap_or_else(|error: StorageError| panic!("{error}"));
                    }
                })
            })
            .collect();
        for n in 0..WRITES {
            let insert = "insert into samples (id, payload) values ($1, $2)";
            db.write(move |tx| {
                tx.execute(insert, params![Uuid::from_u128(n), vec![7_u8; PAYLOAD_BYTES]])
            })
            .await
            .unwrap_or_else(|error: StorageError| panic!("{error}"));
        }
        let mut log = place.path().into_os_string();
        log.push("-wal");
        let bytes = std::fs::metadata(log).unwrap().len();
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.await.unwrap();
        }
        assert!(bytes < 100 * 1024 * 1024, "{bytes} bytes after {WRITES} writes");
    });
}

#[test]
fn the_files_are_readable_for_their_owner_only() {
    run(Form::Sqlite, |place| async move {
        let rights = |suffix: &str| {
            let mut name = place.path().into_os_string();
            name.push(suffix);
            std::fs::metadata(name).unwrap().permissions().mode() & 0o777
        };
        // As a careless copy leaves it: SQLite gives its log the rights of the file.
        std::fs::set_permissions(place.path(), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(rights(""), 0o644, "the control");
        let db = place.open();
        let insert = "insert into samples (id, payload) values ($1, $2)";
        db.write(move |tx| tx.execute(insert, params![Uuid::from_u128(1), vec![7_u8; 8]]))
            .await
            .unwrap_or_else(|error: StorageError| panic!("{error}"));
        assert_eq!(["", "-wal", "-shm"].map(rights), [0o600; 3]);
    });
}

#[test]
fn a_damaged_file_is_told_from_a_sound_one() {
    run(Form::Sqlite, |place| async move {
        assert_eq!(check_sqlite(&place.path()), Ok(()));
        let garbage = place.path().with_file_name("garbage.db");
        std::fs::write(&garbage, vec![7; 10_000]).unwrap();
        assert!(check_sqlite(&garbage).is_err());
    });
}
