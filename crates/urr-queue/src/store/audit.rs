//! What administrators did.

use serde_json::Value;
use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{Row, StorageError, Tx, params};

/// One deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: Uuid,
    pub at: Timestamp,
    /// None: whoever runs the installation.
    pub admin_id: Option<Uuid>,
    /// `ROOM_PAUSED`
    pub action: String,
    pub event_id: Uuid,
    pub details: Value,
}

pub fn audit_insert(tx: &mut Tx<'_>, entry: &AuditEntry) -> Result<(), StorageError> {
    let AuditEntry { id, at, admin_id, action, event_id, details } = entry;
    tx.execute(
        "insert into admin_audit (id, at, admin_id, action, event_id, details) \
         values ($1, $2, $3, $4, $5, $6)",
        params![id, at, admin_id, action, event_id, details],
    )?;
    Ok(())
}

/// What came of a deed that began before.
pub fn audit_complete(tx: &mut Tx<'_>, id: Uuid, details: &Value) -> Result<(), StorageError> {
    tx.execute("update admin_audit set details = $2 where id = $1", params![id, details])?;
    Ok(())
}

/// The newest first, of one event or of all, and how many there are.
pub fn audit_list(
    tx: &mut Tx<'_>,
    event_id: Option<Uuid>,
    page: Page,
) -> Result<(Vec<AuditEntry>, u64), StorageError> {
    let total = tx.query_one(
        "select count(*) as total from admin_audit where $1::uuid is null or event_id = $1",
        params![event_id],
        |row| row.get("total"),
    )?;
    let entries = tx.query(
        "select id, at, admin_id, action, event_id, details from admin_audit \
         where $1::uuid is null or event_id = $1 order by at desc, id desc limit $2 offset $3",
        params![event_id, page.limit(), page.offset()],
        audit_read,
    )?;
    Ok((entries, total))
}

fn audit_read(row: &Row<'_>) -> Result<AuditEntry, StorageError> {
    Ok(AuditEntry {
        id: row.get("id")?,
        at: row.get("at")?,
        admin_id: row.get("admin_id")?,
        action: row.get("action")?,
        event_id: row.get("event_id")?,
        details: row.get("details")?,
    })
}
