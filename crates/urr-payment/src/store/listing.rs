//! Payments in lists, the newest first.

use urr_kernel::Uuid;
use urr_service::Page;
use urr_storage::{StorageError, Tx, params};

use super::payments::{COLUMNS, read};
use crate::domain::payment::{Payment, Status};

/// Which payments are wanted. What is not named does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaymentFilter {
    pub user_id: Option<Uuid>,
    pub target_id: Option<Uuid>,
    pub status: Option<Status>,
}

const MATCHES: &str = "($1::uuid is null or user_id = $1) \
    and ($2::uuid is null or target_id = $2) and ($3::text is null or status = $3)";

pub fn payment_list(
    tx: &mut Tx<'_>,
    filter: PaymentFilter,
    page: Page,
) -> Result<(Vec<Payment>, u64), StorageError> {
    let PaymentFilter { user_id, target_id, status } = filter;
    let status = status.map(Status::name);
    let sql = format!(
        "select {COLUMNS} from payments where {MATCHES} order by id desc limit $4 offset $5"
    );
    let (limit, offset) = (page.limit(), page.offset());
    let values = params![user_id, target_id, status, limit, offset];
    let payments = tx.query(&sql, values, read)?;
    let sql = format!("select count(*) as total from payments where {MATCHES}");
    let total = tx.query_one(&sql, params![user_id, target_id, status], |row| row.get("total"))?;
    Ok((payments, total))
}
