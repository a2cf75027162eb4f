//! The SQL of posts.

use urr_kernel::{Timestamp, Uuid};
use urr_service::CursorPage;
use urr_storage::{DbResult, Row, Tx, Value, from_row, params};

use super::search_store::search_condition;
use super::{NewPost, Post, PostFilter, PostId, PostKind, PostStatus, PostSummary};
use crate::named::get_named;
use crate::text::PostText;

const COLUMNS: &str = "p.id, p.kind, p.artist_id, a.name as artist_name, p.author_id, p.title, \
    p.status, p.is_pinned, p.views, p.comment_count, p.created_at, p.edited_at";
const TABLES: &str = "posts p left join artists a on a.id = p.artist_id";

/// A board has at most this many pinned posts.
pub const PINNED_MAX: u32 = 5;

fn summary_read(row: &Row<'_>) -> DbResult<PostSummary> {
    Ok(from_row!(row => PostSummary {
        id, artist_id, artist_name, author_id, title, is_pinned, views, comment_count, created_at,
        edited_at;
        kind: get_named(row, "kind")?,
        status: get_named(row, "status")?,
    }))
}

fn post_read(row: &Row<'_>) -> DbResult<Post> {
    Ok(Post {
        summary: summary_read(row)?,
        content: row.get("content")?,
        images: row.get_json("images")?,
    })
}

/// A new post, which is visible at once.
pub fn post_insert(
    tx: &mut Tx<'_>,
    id: PostId,
    new: &NewPost,
    author_id: Uuid,
    search_text: &str,
    now: Timestamp,
) -> DbResult<()> {
    let NewPost { kind, artist_id, text, .. } = new;
    tx.execute(
        "insert into posts (id, kind, artist_id, author_id, title, content, images, status, \
         is_pinned, views, comment_count, created_at, search_text) \
         values ($1, $2, $3, $4, $5, $6, $7, 'visible', false, 0, 0, $8, $9)",
        params![
            id,
            kind.as_str(),
            artist_id,
            author_id,
            text.title(),
            text.content(),
            serde_json::json!(text.images()),
            now,
            search_text
        ],
    )?;
    Ok(())
}

/// Locks the post, so that changes of it run one after the other.
pub fn post_lock(tx: &mut Tx<'_>, id: PostId) -> DbResult<()> {
    tx.query_opt("select id from posts where id = $1 for update", params![id], |_| Ok(()))?;
    Ok(())
}

/// A post of any status.
pub fn post_find(tx: &mut Tx<'_>, id: PostId) -> DbResult<Option<Post>> {
    let sql = format!("select {COLUMNS}, p.content, p.images from {TABLES} where p.id = $1");
    tx.query_opt(&sql, params![id], post_read)
}

pub fn post_update(
    tx: &mut Tx<'_>,
    id: PostId,
    text: &PostText,
    search_text: &str,
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "update posts set title = $2, content = $3, images = $4, search_text = $5, \
         edited_at = $6 where id = $1",
        params![
            id,
            text.title(),
            text.content(),
            serde_json::json!(text.images()),
            search_text,
            now
        ],
    )?;
    Ok(())
}

/// Takes the text away; the row goes later.
pub fn post_delete(tx: &mut Tx<'_>, id: PostId, now: Timestamp) -> DbResult<()> {
    tx.execute(
        "update posts set status = 'deleted', deleted_at = $2, title = '', content = '', \
         images = $3, search_text = '', is_pinned = false where id = $1",
        params![id, now, serde_json::json!([])],
    )?;
    Ok(())
}

pub fn post_set_status(tx: &mut Tx<'_>, id: PostId, status: PostStatus) -> DbResult<()> {
    let sql = "update posts set status = $2 where id = $1";
    tx.execute(sql, params![id, status.as_str()]).map(drop)
}

pub fn post_set_pinned(tx: &mut Tx<'_>, id: PostId, is_pinned: bool) -> DbResult<()> {
    let sql = "update posts set is_pinned = $2 where id = $1";
    tx.execute(sql, params![id, is_pinned]).map(drop)
}

pub fn post_add_comments(tx: &mut Tx<'_>, id: PostId, number: i64) -> DbResult<()> {
    let sql = "update posts set comment_count = comment_count + $2 where id = $1";
    tx.execute(sql, params![id, number]).map(drop)
}

/// The statement that lists a page, with its parameters. `patterns` are those of the search.
fn list_statement<'a>(
    filter: &'a PostFilter,
    patterns: &'a [String],
    page: CursorPage,
) -> (String, Vec<Value<'a>>) {
    let mut values = vec![Value::Text(filter.kind.as_str())];
    let mut wanted = "p.status = 'visible' and p.kind = $1".to_owned();
    if let Some(artist_id) = filter.artist_id {
        values.push(Value::Uuid(artist_id));
        wanted += &format!(" and p.artist_id = ${}", values.len());
        if filter.search.is_none() {
            wanted += " and not p.is_pinned";
        }
    }
    if let Some(search) = &filter.search {
        wanted += &search_condition(search, patterns, &mut values);
    }
    if let Some(cursor) = page.cursor() {
        values.push(Value::Uuid(cursor));
        wanted += &format!(" and p.id < ${}", values.len());
    }
    values.push(Value::Int(i64::from(page.rows_max())));
    let at_limit = values.len();
    let sql = format!(
        "select {COLUMNS} from {TABLES} where {wanted} order by p.id desc limit ${at_limit}"
    );
    (sql, values)
}

/// Visible posts, newest first, and one more than a page has. Pinned posts of a board are not among
/// them: they stand above.
pub fn post_list(
    tx: &mut Tx<'_>,
    filter: &PostFilter,
    page: CursorPage,
) -> DbResult<Vec<PostSummary>> {
    let patterns = filter.search.as_ref().map(|search| search.patterns()).unwrap_or_default();
    let (sql, values) = list_statement(filter, &patterns, page);
    tx.query(&sql, &values, summary_read)
}

/// The pinned posts of a board, newest first.
pub fn post_list_pinned(
    tx: &mut Tx<'_>,
    kind: PostKind,
    artist_id: Uuid,
) -> DbResult<Vec<PostSummary>> {
    let sql = format!(
        "select {COLUMNS} from {TABLES} where p.status = 'visible' and p.is_pinned \
         and p.artist_id = $1 and p.kind = $2 order by p.id desc limit $3"
    );
    tx.query(&sql, params![artist_id, kind.as_str(), PINNED_MAX], summary_read)
}

/// Rows of posts that were deleted before a time and have no comments any more.
pub fn posts_purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from posts where id in (select p.id from posts p where p.status = 'deleted' \
         and p.deleted_at < $1 and not exists (select 1 from comments c where c.post_id = p.id) \
         order by p.deleted_at, p.id limit $2)",
        params![before, limit],
    )
}

/// The database's plan for a page, for the test that it uses an index.
pub fn post_list_explain(
    tx: &mut Tx<'_>,
    filter: &PostFilter,
    page: CursorPage,
) -> DbResult<Vec<String>> {
    let patterns = filter.search.as_ref().map(|search| search.patterns()).unwrap_or_default();
    let (sql, values) = list_statement(filter, &patterns, page);
    let (words, column) = match tx.is_postgres() {
        true => ("explain", "QUERY PLAN"),
        false => ("explain query plan", "detail"),
    };
    tx.query(&format!("{words} {sql}"), &values, |row| row.get(column))
}
