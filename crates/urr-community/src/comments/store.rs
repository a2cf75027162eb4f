//! The SQL of comments.

use urr_kernel::Timestamp;
use urr_service::CursorPage;
use urr_storage::{DbResult, Row, Tx, Value, from_row, params};

use super::{Comment, CommentId};
use crate::named::get_named;
use crate::posts::{PostId, PostStatus};

const COLUMNS: &str = "id, post_id, author_id, content, status, created_at, edited_at";

fn comment_read(row: &Row<'_>) -> DbResult<Comment> {
    Ok(from_row!(row => Comment {
        id, post_id, author_id, content, created_at, edited_at;
        status: get_named(row, "status")?,
    }))
}

pub fn comment_insert(tx: &mut Tx<'_>, comment: &Comment) -> DbResult<()> {
    tx.execute(
        "insert into comments (id, post_id, author_id, content, status, created_at) \
         values ($1, $2, $3, $4, $5, $6)",
        params![
            comment.id,
            comment.post_id,
            comment.author_id,
            comment.content,
            comment.status.as_str(),
            comment.created_at
        ],
    )?;
    Ok(())
}

/// A comment of any status.
pub fn comment_find(tx: &mut Tx<'_>, id: CommentId) -> DbResult<Option<Comment>> {
    let sql = format!("select {COLUMNS} from comments where id = $1");
    tx.query_opt(&sql, params![id], comment_read)
}

pub fn comment_update(
    tx: &mut Tx<'_>,
    id: CommentId,
    content: &str,
    now: Timestamp,
) -> DbResult<()> {
    let sql = "update comments set content = $2, edited_at = $3 where id = $1";
    tx.execute(sql, params![id, content, now]).map(drop)
}

/// Takes the text away; the row goes later.
pub fn comment_delete(tx: &mut Tx<'_>, id: CommentId, now: Timestamp) -> DbResult<()> {
    let sql = "update comments set status = 'deleted', deleted_at = $2, content = '' \
               where id = $1";
    tx.execute(sql, params![id, now]).map(drop)
}

pub fn comment_set_status(tx: &mut Tx<'_>, id: CommentId, status: PostStatus) -> DbResult<()> {
    let sql = "update comments set status = $2 where id = $1";
    tx.execute(sql, params![id, status.as_str()]).map(drop)
}

fn list_statement(post_id: PostId, page: CursorPage) -> (String, Vec<Value<'static>>) {
    let mut values = vec![Value::Uuid(post_id.0)];
    let mut wanted = "post_id = $1 and status = 'visible'".to_owned();
    if let Some(cursor) = page.cursor() {
        values.push(Value::Uuid(cursor));
        wanted += " and id > $2";
    }
    values.push(Value::Int(i64::from(page.rows_max())));
    let at_limit = values.len();
    let sql =
        format!("select {COLUMNS} from comments where {wanted} order by id limit ${at_limit}");
    (sql, values)
}

/// Visible comments, oldest first, and one more than a page has.
pub fn comment_list(tx: &mut Tx<'_>, post_id: PostId, page: CursorPage) -> DbResult<Vec<Comment>> {
    let (sql, values) = list_statement(post_id, page);
    tx.query(&sql, &values, comment_read)
}

/// The database's plan for a page, for the test that it uses an index.
pub fn comment_list_explain(
    tx: &mut Tx<'_>,
    post_id: PostId,
    page: CursorPage,
) -> DbResult<Vec<String>> {
    let (sql, values) = list_statement(post_id, page);
    let (words, column) = match tx.is_postgres() {
        true => ("explain", "QUERY PLAN"),
        false => ("explain query plan", "detail"),
    };
    tx.query(&format!("{words} {sql}"), &values, |row| row.get(column))
}

/// Comments that were deleted before a time, and all of a post that was.
pub fn comments_purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    let own = tx.execute(
        "delete from comments where id in (select id from comments where status = 'deleted' \
         and deleted_at < $1 order by deleted_at, id limit $2)",
        params![before, limit],
    )?;
    let of_posts = tx.execute(
        "delete from comments where id in (select c.id from posts p join comments c \
         on c.post_id = p.id where p.status = 'deleted' and p.deleted_at < $1 limit $2)",
        params![before, limit],
    )?;
    Ok(own + of_posts)
}
