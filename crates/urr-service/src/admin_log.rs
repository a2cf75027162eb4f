//! The admin log: what administrators did, written in the transaction of what they did.
//!
//! Every service has the table `admin_actions`; [`routes`] lists it for administrators,
//! [`list_of_resource`] what was done to one thing for those who may see that thing.

use std::borrow::Cow;

use axum::extract::{FromRef, State};
use serde::{Deserialize, Serialize};
use urr_kernel::{Timestamp, Uuid};
use urr_storage::{Db, DbResult, Row, StorageError, Tx, Value, from_row, params, storable_time};
use utoipa::openapi::path::Operation;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use crate::{Admin, ApiError, Errors, Json, Page, Paged, Pagination, Query};

const SUMMARY_CHARS_MAX: usize = 1_000;

/// Something that an administrator did.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminAction {
    pub id: Uuid,
    /// `None`: an operator, by the command line.
    pub admin_id: Option<Uuid>,
    /// `EVENT_CANCELLED`
    pub action: Cow<'static, str>,
    /// `event`
    pub resource_type: Cow<'static, str>,
    pub resource_id: String,
    /// A sentence for people.
    pub summary: String,
    /// For programs, for example what a setting was before and after.
    pub details: Option<serde_json::Value>,
    pub created_at: Timestamp,
}

/// Writes an action down. A summary that is too long is cut.
pub fn insert(tx: &mut Tx<'_>, action: &AdminAction) -> DbResult<()> {
    let summary: String = action.summary.chars().take(SUMMARY_CHARS_MAX).collect();
    tx.execute(
        "insert into admin_actions (id, admin_id, action, resource_type, resource_id, summary, \
         details, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![
            action.id,
            action.admin_id,
            &*action.action,
            &*action.resource_type,
            action.resource_id,
            summary,
            action.details,
            action.created_at
        ],
    )?;
    Ok(())
}

/// Adds the result of an action that was written down before it was done.
pub fn set_details(tx: &mut Tx<'_>, id: Uuid, details: &serde_json::Value) -> DbResult<()> {
    tx.execute("update admin_actions set details = $2 where id = $1", params![id, details])?;
    Ok(())
}

/// Which actions are listed. `None` in a field means all.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct AdminLogFilter {
    pub admin_id: Option<Uuid>,
    /// For example `EVENT_CANCELLED`.
    #[param(max_length = 100)]
    pub action: Option<String>,
    /// For example `event`.
    #[param(max_length = 100)]
    pub resource_type: Option<String>,
    #[param(max_length = 100)]
    pub resource_id: Option<String>,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

impl AdminLogFilter {
    /// The condition and its parameters: a text per combination, so that each can use its index.
    fn condition(&self) -> (String, Vec<Value<'_>>) {
        let AdminLogFilter { admin_id, action, resource_type, resource_id, from, to } = self;
        let conditions = [
            ("admin_id =", admin_id.map(Value::Uuid)),
            ("action =", action.as_deref().map(Value::Text)),
            ("resource_type =", resource_type.as_deref().map(Value::Text)),
            ("resource_id =", resource_id.as_deref().map(Value::Text)),
            ("created_at >=", from.map(storable_time).map(Value::Time)),
            ("created_at <", to.map(storable_time).map(Value::Time)),
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

/// One page, the newest first, and how many actions there are.
fn list(
    tx: &mut Tx<'_>,
    filter: &AdminLogFilter,
    page: Page,
) -> DbResult<(Vec<AdminActionView>, u64)> {
    let (wanted, mut values) = filter.condition();
    let count = format!("select count(*) as total from admin_actions where {wanted}");
    let total = tx.query_one(&count, &values, |row| row.get("total"))?;
    let (limit, offset) = (values.len() + 1, values.len() + 2);
    values.extend([Value::Int(i64::from(page.limit())), Value::Int(page.offset())]);
    let sql = format!(
        "select id, admin_id, action, resource_type, resource_id, summary, details, created_at \
         from admin_actions where {wanted} order by created_at desc, id desc \
         limit ${limit} offset ${offset}"
    );
    Ok((tx.query(&sql, &values, action_read)?, total))
}

fn action_read(row: &Row<'_>) -> DbResult<AdminActionView> {
    let admin_id: Option<Uuid> = row.get("admin_id")?;
    Ok(from_row!(row => AdminActionView {
        id, action, resource_type, resource_id, summary, details, created_at;
        by: if admin_id.is_some() { "admin" } else { "operator" },
        admin_id: admin_id,
    }))
}

/// The place of the log in a service's interface.
#[derive(Clone, Copy, Debug)]
pub struct AdminLogRoute {
    /// `/api/admin/payments/log`
    pub path: &'static str,
    /// `list_payment_admin_actions`; unique among all services.
    pub operation_id: &'static str,
    pub tag: &'static str,
}

/// The route that lists the log of the service `S`, whose tables are in its `Db`. For administrators
/// only.
pub fn routes<S>(route: AdminLogRoute) -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Db: FromRef<S>,
{
    let (schemas, mut paths, handler): UtoipaMethodRouter<S> = routes!(list_admin_actions);
    let mut described = std::mem::take(&mut paths.paths).into_values();
    let mut item = described.next().expect("the handler has one path");
    if let Some(Operation { operation_id, tags, .. }) = &mut item.get {
        *operation_id = Some(route.operation_id.to_owned());
        *tags = Some(vec![route.tag.to_owned()]);
    }
    paths.paths.insert(route.path.to_owned(), item);
    OpenApiRouter::new().routes((schemas, paths, handler))
}

#[derive(Serialize, ToSchema)]
pub struct AdminLogView {
    entries: Vec<AdminActionView>,
    pagination: Pagination,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminActionView {
    id: Uuid,
    /// `admin`, or `operator` for the command line.
    #[schema(example = "admin")]
    by: &'static str,
    admin_id: Option<Uuid>,
    #[schema(example = "EVENT_CANCELLED")]
    action: String,
    #[schema(example = "event")]
    resource_type: String,
    resource_id: String,
    summary: String,
    #[schema(value_type = Option<Object>)]
    details: Option<serde_json::Value>,
    created_at: Timestamp,
}

/// Lists what administrators did in this service, newest first.
///
/// For administrators. The filters combine; `from` and `to` bound the time. A change and its entry
/// are written in one transaction. `adminId` is null for what an operator did at the command line.
#[utoipa::path(
    get, path = "/", params(AdminLogFilter, Page),
    responses((status = 200, body = AdminLogView), Errors<401, 403>),
)]
async fn list_admin_actions(
    State(db): State<Db>,
    _admin: Admin,
    Query(filter): Query<AdminLogFilter>,
    page: Page,
) -> Result<Json<AdminLogView>, ApiError> {
    list_filtered(&db, filter, page).await
}

/// What was done to one thing in this service, newest first. The caller has checked who asks.
pub async fn list_of_resource(
    db: &Db,
    resource_id: String,
    page: Page,
) -> Result<Json<AdminLogView>, ApiError> {
    let filter = AdminLogFilter { resource_id: Some(resource_id), ..AdminLogFilter::default() };
    list_filtered(db, filter, page).await
}

async fn list_filtered(
    db: &Db,
    filter: AdminLogFilter,
    page: Page,
) -> Result<Json<AdminLogView>, ApiError> {
    let listed = db.read(move |tx| list(tx, &filter, page)).await;
    let (actions, total) = listed.map_err(|error: StorageError| ApiError::from(error))?;
    let Paged { items: entries, pagination } = Paged::new(actions, total, page);
    Ok(Json(AdminLogView { entries, pagination }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use urr_storage::{Schema, SqliteOptions, migrate};

    use super::*;

    fn action(number: u128, resource_id: &str) -> AdminAction {
        let seconds = u64::try_from(number).unwrap();
        AdminAction {
            id: Uuid::from_u128(number),
            admin_id: (number != 1).then(|| Uuid::from_u128(9)),
            action: "EVENT_CANCELLED".into(),
            resource_type: "event".into(),
            resource_id: resource_id.to_owned(),
            summary: "가".repeat(SUMMARY_CHARS_MAX + 1),
            details: None,
            created_at: Timestamp::UNIX_EPOCH + Duration::from_secs(seconds),
        }
    }

    #[tokio::test]
    async fn actions_are_listed_by_filter_and_page_with_the_newest_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let schema = Schema { name: "log", migrations: &[] };
        migrate::migrate_sqlite(&path, &schema, Timestamp::UNIX_EPOCH).unwrap();
        let db = Db::open_sqlite(&path, &SqliteOptions::default()).unwrap();
        let written: Result<(), StorageError> = db
            .write(|tx| {
                for (number, resource) in [(1, "a"), (2, "b"), (3, "a")] {
                    insert(tx, &action(number, resource))?;
                }
                set_details(tx, Uuid::from_u128(3), &serde_json::json!({"waiting": 5}))
            })
            .await;
        written.unwrap();
        let filter = AdminLogFilter { resource_id: Some("a".to_owned()), ..Default::default() };
        let listed: Result<_, StorageError> =
            db.read(move |tx| list(tx, &filter, Page::new(1, 1))).await;
        let (actions, total) = listed.unwrap();
        assert_eq!((actions.len(), total), (1, 2));
        assert_eq!(actions[0].id, Uuid::from_u128(3));
        assert_eq!(actions[0].details, Some(serde_json::json!({"waiting": 5})));
        assert_eq!(actions[0].summary.chars().count(), SUMMARY_CHARS_MAX);
        let filter = AdminLogFilter { to: Some(action(2, "").created_at), ..Default::default() };
        let listed: Result<_, StorageError> =
            db.read(move |tx| list(tx, &filter, Page::new(1, 20))).await;
        let views = listed.unwrap().0;
        assert_eq!(views.iter().map(|view| view.by).collect::<Vec<_>>(), ["operator"]);
    }

    #[test]
    fn the_route_is_described_under_the_path_and_id_that_the_service_gives() {
        let route = AdminLogRoute { path: "/api/x/log", operation_id: "list_x", tag: "x" };
        let openapi = routes::<Db>(route).into_openapi();
        let item = &openapi.paths.paths["/api/x/log"];
        let operation = item.get.as_ref().unwrap();
        assert_eq!(operation.operation_id.as_deref(), Some("list_x"));
        assert_eq!(openapi.paths.paths.len(), 1);
    }
}
