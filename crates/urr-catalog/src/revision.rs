//! The revision of the catalogue: it counts changes, so that caches know what is outdated.

use urr_storage::{DbResult, Tx};

pub fn revision_load(tx: &mut Tx<'_>) -> DbResult<i64> {
    tx.query_one("select revision from catalog_revision where id = 1", &[], |row| {
        row.get("revision")
    })
}

/// The first statement of every change. Changes are rare, so they run one after the other: what
/// one of them has read stays true until it commits, and deadlocks are impossible.
pub fn catalog_lock(tx: &mut Tx<'_>) -> DbResult<()> {
    let sql = "select revision from catalog_revision where id = 1 for update";
    tx.query_one(sql, &[], |_| Ok(()))
}

/// The last statement of every change that readers can see.
pub fn revision_bump(tx: &mut Tx<'_>) -> DbResult<i64> {
    tx.query_one(
        "update catalog_revision set revision = revision + 1 where id = 1 returning revision",
        &[],
        |row| row.get("revision"),
    )
}
