//! What administrators did, written with the change itself, and read again. A service that keeps
//! it has the table `admin_audit`.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Row, StorageError, Tx, Value, params};

use crate::Page;

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

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedAction {
    pub id: Uuid,
    pub admin_id: Uuid,
    pub action: String,
    pub resource_type: String,
    pub resource_id: Uuid,
    pub summary: String,
    pub created_at: Timestamp,
}

/// Which lines are wanted. None of a field: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionFilter {
    pub admin_id: Option<Uuid>,
    pub action: Option<String>,
    pub resource_type: Option<String>,
    pub resource_id: Option<Uuid>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// One page, the newest first, and how many there are.
pub fn action_list(
    tx: &mut Tx<'_>,
    filter: &ActionFilter,
    page: Page,
) -> Result<(Vec<NotedAction>, u64), StorageError> {
    let (wanted, mut values) = filter.condition();
    let count = format!("select count(*) as total from admin_audit where {wanted}");
    let total = tx.query_one(&count, &values, |row| row.get("total"))?;
    let (limit, offset) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Int(i64::from(page.limit())), Value::Int(page.offset())]);
    let sql = format!(
        "select id, admin_id, action, resource_type, resource_id, summary, created_at \
         from admin_audit where {wanted} order by created_at desc, id desc \
         limit ${limit} offset ${offset}"
    );
    Ok((tx.query(&sql, &values, noted_read)?, total))
}

fn noted_read(row: &Row<'_>) -> Result<NotedAction, StorageError> {
    Ok(NotedAction {
        id: row.get("id")?,
        admin_id: row.get("admin_id")?,
        action: row.get("action")?,
        resource_type: row.get("resource_type")?,
        resource_id: row.get("resource_id")?,
        summary: row.get("summary")?,
        created_at: row.get("created_at")?,
    })
}

impl ActionFilter {
    /// The condition and its parameters: a text per combination, so that each can use its index.
    fn condition(&self) -> (String, Vec<Value<'_>>) {
        let ActionFilter { admin_id, action, resource_type, resource_id, from, to } = self;
        let conditions = [
            ("admin_id =", admin_id.map(Value::Uuid)),
            ("action =", action.as_deref().map(Value::Text)),
            ("resource_type =", resource_type.as_deref().map(Value::Text)),
            ("resource_id =", resource_id.map(Value::Uuid)),
            ("created_at >=", from.map(Value::Time)),
            ("created_at <", to.map(Value::Time)),
        ];
        let (mut wanted, mut values) = (vec!["true".to_owned()], Vec::new());
        for (condition, value) in conditions {
            if let Some(value) = value {
                values.push(value);
                wanted.push(format!("{condition} ${}", values.len()));
            }
        }
        (wanted.join(" and "), values)
    }
}
