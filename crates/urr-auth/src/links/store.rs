//! The SQL of links and of the requests for them.

use urr_kernel::{Timestamp, Uuid};
use urr_storage::{DbResult, Row, Tx, from_row, params};

use crate::accounts::account::UserId;
use crate::links::rules::LinkKind;

/// A row of `account_links`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLink {
    pub id: Uuid,
    pub kind: LinkKind,
    pub user_id: UserId,
    /// The data key that its secret follows from.
    pub key_version: u16,
    /// The address and password that it is for.
    pub email_index: Vec<u8>,
    pub password_version: u32,
    pub expires_at: Timestamp,
    pub used_at: Option<Timestamp>,
}

const LINK: &str = "select id, kind, user_id, key_version, email_index, password_version, \
                    expires_at, used_at from account_links";

fn link_from_row(row: &Row<'_>) -> DbResult<StoredLink> {
    Ok(from_row!(row => StoredLink {
        id, kind, user_id, key_version, email_index, password_version, expires_at, used_at
    }))
}

pub fn link_insert(
    tx: &mut Tx<'_>,
    link: &StoredLink,
    token_hash: &[u8],
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "insert into account_links (id, kind, user_id, token_hash, key_version, email_index, \
         password_version, created_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        params![
            link.id,
            link.kind,
            link.user_id,
            token_hash,
            link.key_version,
            link.email_index,
            link.password_version,
            now,
            link.expires_at
        ],
    )
    .map(drop)
}

pub fn link_find(tx: &mut Tx<'_>, id: Uuid) -> DbResult<Option<StoredLink>> {
    tx.query_opt(&format!("{LINK} where id = $1"), params![id], link_from_row)
}

pub fn link_find_by_hash(tx: &mut Tx<'_>, hash: &[u8]) -> DbResult<Option<StoredLink>> {
    tx.query_opt(&format!("{LINK} where token_hash = $1"), params![hash], link_from_row)
}

/// `false` if it was used already.
pub fn link_use(tx: &mut Tx<'_>, id: Uuid, now: Timestamp) -> DbResult<bool> {
    let sql = "update account_links set used_at = $2 where id = $1 and used_at is null";
    Ok(tx.execute(sql, params![id, now])? == 1)
}

pub fn link_erase(tx: &mut Tx<'_>, user_id: UserId) -> DbResult<()> {
    tx.execute("delete from account_links where user_id = $1", params![user_id]).map(drop)
}

pub fn request_insert(
    tx: &mut Tx<'_>,
    kind: LinkKind,
    email_index: &[u8],
    now: Timestamp,
) -> DbResult<()> {
    let sql = "insert into link_requests (kind, email_index, requested_at) values ($1, $2, $3)";
    tx.execute(sql, params![kind, email_index, now]).map(drop)
}

/// How often links of a kind were asked for since then, counted up to `enough`.
pub fn request_count(
    tx: &mut Tx<'_>,
    kind: LinkKind,
    email_index: &[u8],
    since: Timestamp,
    enough: u32,
) -> DbResult<u32> {
    let sql = "select count(*) as total from (select id from link_requests \
               where email_index = $1 and kind = $2 and requested_at > $3 limit $4) as recent";
    tx.query_one(sql, params![email_index, kind, since, enough], |row| row.get("total"))
}
