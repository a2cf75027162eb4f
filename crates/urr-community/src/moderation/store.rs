//! The SQL of reports.

use urr_kernel::{Timestamp, Uuid};
use urr_service::CursorPage;
use urr_storage::{DbResult, Row, Tx, Value, from_row, params};

use super::{ModeratedReport, NewReport, ReportFilter};
use crate::named::get_named;

impl NewReport {
    /// The comment, or else the post.
    fn subject_id(&self) -> Uuid {
        self.comment_id.map_or(self.post_id.0, |comment_id| comment_id.0)
    }
}

pub fn report_exists(tx: &mut Tx<'_>, report: &NewReport, reporter_id: Uuid) -> DbResult<bool> {
    let sql = "select id from reports where subject_id = $1 and reporter_id = $2";
    let found =
        tx.query_opt(sql, params![report.subject_id(), reporter_id], |row| row.get::<Uuid>("id"))?;
    Ok(found.is_some())
}

pub fn report_insert(
    tx: &mut Tx<'_>,
    id: Uuid,
    report: &NewReport,
    (artist_id, reporter_id): (Option<Uuid>, Uuid),
    now: Timestamp,
) -> DbResult<()> {
    tx.execute(
        "insert into reports (id, post_id, comment_id, subject_id, artist_id, reporter_id, \
         reason, note, is_open, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, true, $9) \
         on conflict (subject_id, reporter_id) do nothing",
        params![
            id,
            report.post_id,
            report.comment_id,
            report.subject_id(),
            artist_id,
            reporter_id,
            report.reason,
            report.note,
            now
        ],
    )?;
    Ok(())
}

/// A moderator has decided about a post or comment.
pub fn reports_close(tx: &mut Tx<'_>, subject_id: Uuid) -> DbResult<()> {
    let sql = "update reports set is_open = false where subject_id = $1 and is_open";
    tx.execute(sql, params![subject_id]).map(drop)
}

fn report_read(row: &Row<'_>) -> DbResult<ModeratedReport> {
    Ok(from_row!(row => ModeratedReport {
        id, post_id, comment_id, artist_id, reason, note, is_open, created_at, title, content;
        status: get_named(row, "status")?,
    }))
}

/// Reports of what was not deleted, newest first, and one more than a page has.
pub fn report_list(
    tx: &mut Tx<'_>,
    filter: ReportFilter,
    page: CursorPage,
) -> DbResult<Vec<ModeratedReport>> {
    let mut values = vec![Value::Bool(filter.is_open)];
    let mut wanted = String::from("r.is_open = $1");
    let mut add = |condition: &str, value: Value<'static>| {
        values.push(value);
        wanted += &format!(" and {}", condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(artist_id) = filter.artist_id {
        add("r.artist_id = ?", Value::Uuid(artist_id));
    }
    if let Some(organiser_id) = filter.organiser_id {
        let own = "r.artist_id in (select e.artist_id from artist_events e \
                   where e.organiser_id = ? and e.is_live)";
        add(own, Value::Uuid(organiser_id));
    }
    if let Some(cursor) = page.cursor() {
        add("r.id < ?", Value::Uuid(cursor));
    }
    values.push(Value::Int(i64::from(page.rows_max())));
    let at_limit = values.len();
    let sql = format!(
        "select r.id, r.post_id, r.comment_id, r.artist_id, r.reason, r.note, r.is_open, \
         r.created_at, p.title, coalesce(c.content, p.content) as content, \
         coalesce(c.status, p.status) as status from reports r join posts p on p.id = r.post_id \
         left join comments c on c.id = r.comment_id where {wanted} \
         order by r.id desc limit ${at_limit}"
    );
    tx.query(&sql, &values, report_read)
}

/// Reports of posts and comments that are gone.
pub fn reports_purge(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> DbResult<u64> {
    tx.execute(
        "delete from reports where id in (select r.id from reports r where r.created_at < $1 \
         and (not exists (select 1 from posts p where p.id = r.post_id) \
         or (r.comment_id is not null and not exists (select 1 from comments c \
         where c.id = r.comment_id))) limit $2)",
        params![before, limit],
    )
}
