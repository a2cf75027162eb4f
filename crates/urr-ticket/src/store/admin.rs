//! What administrators did, written with the change itself.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{StorageError, Tx, params};

/// Something that an administrator does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminAction {
    pub id: Uuid,
    pub admin_id: Uuid,
    pub action: &'static str,
    pub resource_type: &'static str,
    pub resource_id: Uuid,
    pub summary: String,
    pub now: Timestamp,
}

pub fn action_insert(tx: &mut Tx<'_>, action: &AdminAction) -> Result<(), StorageError> {
    tx.execute(
        "insert into admin_audit \
         (id, admin_id, action, resource_type, resource_id, summary, created_at) \
         values ($1, $2, $3, $4, $5, $6, $7)",
        params![
            action.id,
            action.admin_id,
            action.action,
            action.resource_type,
            action.resource_id,
            action.summary,
            action.now
        ],
    )?;
    Ok(())
}
