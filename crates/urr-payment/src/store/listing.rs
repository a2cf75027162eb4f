//! Payments in lists, the newest first.

use urr_kernel::Uuid;
use urr_service::Page;
use urr_storage::{StorageError, ToValue, Tx, Value};

use super::payments::{COLUMNS, read};
use crate::domain::payment::{Payment, PaymentStatus};

/// Which payments are wanted. What is not named does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaymentFilter {
    pub user_id: Option<Uuid>,
    pub payable_id: Option<Uuid>,
    pub status: Option<PaymentStatus>,
}

impl PaymentFilter {
    /// What a row must be, and the parameters that say it. Only what is named is asked for, so that
    /// the database sees which index to take.
    pub(super) fn conditions(&self) -> (String, Vec<Value<'_>>) {
        let mut values = Vec::new();
        let mut conditions = vec!["true".to_owned()];
        let mut ask = |column: &str, value: Value<'static>| {
            values.push(value);
            conditions.push(format!("{column} = ${}", values.len()));
        };
        if let Some(user_id) = self.user_id {
            ask("user_id", Value::Uuid(user_id));
        }
        if let Some(payable_id) = self.payable_id {
            ask("payable_id", Value::Uuid(payable_id));
        }
        if let Some(status) = self.status {
            ask("status", Value::Text(status.name()));
        }
        (conditions.join(" and "), values)
    }
}

/// More than so many are not counted.
pub const COUNTED_MAX: u32 = 10_000;

/// The newest first, and how many there are, up to [`COUNTED_MAX`].
pub fn payment_list(
    tx: &mut Tx<'_>,
    filter: PaymentFilter,
    page: Page,
) -> Result<(Vec<Payment>, u64), StorageError> {
    let (conditions, mut values) = filter.conditions();
    let sql = format!(
        "select count(*) as total from \
         (select 1 from payments where {conditions} limit {COUNTED_MAX}) as counted"
    );
    let total = tx.query_one(&sql, &values, |row| row.get("total"))?;
    let sql = page_sql(&conditions, values.len());
    let (limit, offset) = (page.limit(), page.offset());
    values.extend([limit.to_value(), offset.to_value()]);
    Ok((tx.query(&sql, &values, read)?, total))
}

/// With so many parameters before those of the page.
pub(super) fn page_sql(conditions: &str, parameters: usize) -> String {
    let (limit, offset) = (parameters + 1, parameters + 2);
    format!(
        "select {COLUMNS} from payments where {conditions} \
         order by id desc limit ${limit} offset ${offset}"
    )
}
