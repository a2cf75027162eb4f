//! The number of the catalogue's state, by which caches know what is old.

use urr_storage::{StorageError, Tx};

pub fn revision_load(tx: &mut Tx<'_>) -> Result<i64, StorageError> {
    tx.query_one("select revision from catalog_revision where id = 1", &[], |row| {
        row.get("revision")
    })
}

/// The first statement of every change. Changes of the catalogue are rare, so they wait for each
/// other: what one of them has read stays true until it commits, and no two can lock each other
/// out.
pub fn catalog_lock(tx: &mut Tx<'_>) -> Result<(), StorageError> {
    let sql = "select revision from catalog_revision where id = 1 for update";
    tx.query_one(sql, &[], |_| Ok(()))
}

/// The last statement of every change that readers can see.
pub fn revision_bump(tx: &mut Tx<'_>) -> Result<i64, StorageError> {
    tx.query_one(
        "update catalog_revision set revision = revision + 1 where id = 1 returning revision",
        &[],
        |row| row.get("revision"),
    )
}
