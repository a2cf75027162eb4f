//! What administrators did.

use urr_kernel::{Timestamp, Uuid};
use urr_service::Page;
use urr_storage::{Row, StorageError, ToValue, Tx, params};

use crate::admin_log::{AuditEntry, AuditFilter};
use crate::sql::Conditions;

const COLUMNS: &str = "id, admin_id, action, resource_type, resource_id, summary, created_at";

pub fn audit_insert(tx: &mut Tx<'_>, entry: &AuditEntry) -> Result<(), StorageError> {
    tx.execute(
        "insert into admin_audit \
         (id, admin_id, action, resource_type, resource_id, summary, created_at) \
         values ($1, $2, $3, $4, $5, $6, $7)",
        params![
            entry.id,
            entry.admin_id,
            entry.action,
            entry.resource_type,
            entry.resource_id,
            entry.summary,
            entry.created_at
        ],
    )?;
    Ok(())
}

fn audit_from_row(row: &Row<'_>) -> Result<AuditEntry, StorageError> {
    Ok(AuditEntry {
        id: row.get::<Uuid>("id")?,
        admin_id: row.get("admin_id")?,
        action: row.get("action")?,
        resource_type: row.get("resource_type")?,
        resource_id: row.get("resource_id")?,
        summary: row.get("summary")?,
        created_at: row.get::<Timestamp>("created_at")?,
    })
}

fn conditions(filter: &AuditFilter) -> Conditions<'_> {
    let mut conditions = Conditions::new("1 = 1");
    let AuditFilter { admin_id, action, resource_type, resource_id, from, to } = filter;
    if let Some(admin_id) = admin_id {
        conditions.and("admin_id = ?", admin_id.to_value());
    }
    if let Some(action) = action {
        conditions.and("action = ?", action.to_value());
    }
    if let Some(resource_type) = resource_type {
        conditions.and("resource_type = ?", resource_type.to_value());
    }
    if let Some(resource_id) = resource_id {
        conditions.and("resource_id = ?", resource_id.to_value());
    }
    if let Some(from) = from {
        conditions.and("created_at >= ?", from.to_value());
    }
    if let Some(to) = to {
        conditions.and("created_at < ?", to.to_value());
    }
    conditions
}

/// The newest first.
pub fn audit_list(
    tx: &mut Tx<'_>,
    filter: &AuditFilter,
    page: Page,
) -> Result<(Vec<AuditEntry>, u64), StorageError> {
    let mut conditions = conditions(filter);
    let count = format!("select count(*) as total from admin_audit where {}", conditions.sql());
    let total = tx.query_one(&count, conditions.values(), |row| row.get("total"))?;
    let (limit, offset) = (page.limit(), page.offset());
    let limit = conditions.value(limit.to_value());
    let offset = conditions.value(offset.to_value());
    let sql = format!(
        "select {COLUMNS} from admin_audit where {} order by created_at desc, id desc \
         limit {limit} offset {offset}",
        conditions.sql(),
    );
    Ok((tx.query(&sql, conditions.values(), audit_from_row)?, total))
}
